"""A template: one source whose performance choices are macros, its variants, and what of it fits a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, reduce
from math import prod

import numpy as np

from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.text import digest_of
from tunesmith.problem.device import DEVICE_NAMES, Device, Limits
from tunesmith.problem.problem import Argument, Launch, Problem, Workload, map_exprs
from tunesmith.source.text import blank_elements, find_directives, join_spliced_lines
from tunesmith.space import expr_arrays
from tunesmith.space.configset import Config, ConfigSet, Param
from tunesmith.space.expr import Arithmetic, Compare, Expr, Node, Num, Undefined, parse_expr, unparse
from tunesmith.space.space import Constraint, Space

_OPEN = re.compile(r"\s*//\s*///\s*tunesmith\s*")
_CLOSE = re.compile(r"\s*//\s*///\s*")
_COMMENT_LINE = re.compile(r"\s*// ?(.*)")
_EXAMPLE = 'open the file with "// /// tunesmith", then e.g. "// [params]", and close with "// ///"'

_DEFINE = re.compile(r"(\w+)(\(?)[ \t]*(.*)")
_INTEGER = re.compile(r"[(\s]*[-+]?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*[)\s]*")
_DEFINED = re.compile(r"\bdefined\s*(?:\w+|\(\s*\w+\s*\))")
WORD = re.compile(r"[A-Za-z_]\w*")
_UNROLL = re.compile(r"(?<=pragma unroll)[^\n]*")
_BLANKS = "\\ \t"


@dataclass(frozen=True)
class DeclarationBlock:
    toml: str
    line: int  # of the line that opens it


@dataclass(frozen=True)
class Define:
    """One `#define` of a macro without arguments."""

    name: str
    value: str
    line: int
    conditions: tuple[str, ...]  # of the #if, #ifdef and #ifndef around it, outermost first
    follows_ifndef: bool  # stands right under `#ifndef name`

    @property
    def is_guarded(self) -> bool:
        """Whether a definition made before the text can take its place."""
        return any(self.name in WORD.findall(condition) for condition in self.conditions)

    @property
    def is_default(self) -> bool:
        """`#ifndef X` / `#define X 1`; an include guard has no value."""
        return self.follows_ifndef and _INTEGER.fullmatch(self.value) is not None


def find_block(text: str, path: str) -> DeclarationBlock:
    """The TOML text between `// /// tunesmith` and `// ///`, with its comment signs off."""
    lines = text.replace("\r\n", "\n").split("\n")
    opens = [number for number, line in enumerate(lines, 1) if _OPEN.fullmatch(line)]
    if not opens:
        fault = "a template declares its parameters in a comment, there is none"
        raise BadInput(fault, hint=_EXAMPLE, where=path)
    if len(opens) > 1:
        fault = f"a template has one declaration, a second opens here and the first at line {opens[0]}"
        raise BadInput(fault, hint="join the two", where=f"{path}:{opens[1]}")
    start = opens[0]
    inside: list[str] = []
    for line in lines[start:]:
        if _CLOSE.fullmatch(line):
            return DeclarationBlock("\n".join(inside), start)
        comment = _COMMENT_LINE.fullmatch(line)
        if comment is None:
            break
        inside.append(comment[1])
    fault = f"the declaration opened at line {start} is not closed before line {start + len(inside) + 1}"
    hint = 'end it with a line "// ///"; every line in between starts with //'
    raise BadInput(fault, hint=hint, where=f"{path}:{start}")


def without_block(text: str) -> str:
    """The code of a template whose declaration could be read, with empty lines in place of that."""
    lines = text.replace("\r\n", "\n").split("\n")
    start = next(number for number, line in enumerate(lines) if _OPEN.fullmatch(line))
    end = next(number for number in range(start + 1, len(lines)) if _CLOSE.fullmatch(lines[number]))
    return "\n".join([*lines[:start], *[""] * (end + 1 - start), *lines[end + 1 :]])


def find_defines(code: str) -> Iterator[Define]:
    conditions: list[str] = []
    word, rest, before = "", "", 0  # the directive above, and where it ends
    for directive in find_directives(code):
        under_ifndef = word == "ifndef" and not code[before : directive.start].strip()
        name, (word, rest) = rest, directive[:2]
        before = directive.end
        if word in ("if", "ifdef", "ifndef"):
            conditions.append(rest)
        elif word == "elif" and conditions:
            conditions[-1] += f" {rest}"
        elif word == "endif" and conditions:
            conditions.pop()
        elif word == "define" and (found := _DEFINE.fullmatch(rest)) and not found[2]:
            under = under_ifndef and name == found[1]
            yield Define(found[1], found[3].strip(), directive.line, tuple(conditions), under)


def used_words(code: str) -> frozenset[str]:
    """Every identifier the code uses; to ask whether a macro is defined, or to define it, is no use of it."""
    words = set(WORD.findall(blank_elements(code, ("directive",))))
    for word, rest, *_ in find_directives(code):
        if word == "define":
            words.update(WORD.findall(rest)[1:])
        elif word not in ("ifdef", "ifndef", "undef", "error", "warning"):
            words.update(WORD.findall(_DEFINED.sub("", rest)))
    return frozenset(words)


MAX_FILES = 500
MAX_BYTES = 4 << 20

_SPELLED = re.compile(r"(?:\"([^\"\n]+)\"|<([^>\n]+)>)")


@dataclass(frozen=True)
class HeaderFile:
    path: str  # tells two files apart, and where to look for what it includes itself
    text: str


FindHeader = Callable[[str, str | None, Sequence[str]], HeaderFile | None]
"""The header of that spelling, among the include folders of the problem file. One in quotes comes with the
path of the file that includes it, which is looked beside first; one in <> comes with None."""


def no_headers(_spelling: str, _includer: str | None, _folders: Sequence[str]) -> HeaderFile | None:
    """For sources that stand alone."""
    return None


def find_includes(text: str) -> Iterator[tuple[str, bool]]:
    """What a text includes, as it is spelled, and whether in quotes."""
    for word, rest, *_ in find_directives(join_spliced_lines(text)):
        if word == "include" and (found := _SPELLED.match(rest)):
            yield found[1] or found[2], found[1] is not None


def user_headers(
    text: str, path: str, find: FindHeader, folders: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Every header of the user's that the source reaches, as included -> text. A file has its text under its
    first spelling alone: compilers that know headers by spelling would take another one for another file, and
    read what says `#pragma once` twice."""
    found: dict[str, HeaderFile] = {}
    first: dict[str, str] = {}  # path -> its first spelling
    waiting = [HeaderFile(path, text)]
    read = {path}
    size = 0
    for file in waiting:
        for spelling, quoted in find_includes(file.text):
            header = find(spelling, file.path if quoted else None, folders)
            if header is None:
                continue
            if spelling not in found:
                found[spelling] = header
                first.setdefault(header.path, spelling)
                size += len(header.text.encode(errors="surrogatepass"))
                if len(found) > MAX_FILES or size > MAX_BYTES:
                    raise _too_many_headers(len(found), size, spelling)
            elif found[spelling].text != header.text:
                files = f"{found[spelling].path} and {header.path} (included by {file.path})"
                hint = "include one of them by another path, for instance with its folder's name"
                raise BadInput(f'"{spelling}" means two different files: {files}', hint=hint)
            if header.path not in read:
                read.add(header.path)
                waiting.append(header)
    # In <>: in quotes, a file "../c.h" that means "c.h" would find itself beside it.
    spelled = [(spelling, first[header.path], header.text) for spelling, header in found.items()]
    return tuple((one, text if one == whole else f"#include <{whole}>\n") for one, whole, text in spelled)


def _too_many_headers(count: int, size: int, spelling: str) -> BadInput:
    rule = f"a kernel's own headers are at most {MAX_FILES} files and {MAX_BYTES >> 20} MiB"
    hint = "take folders of libraries out of include, or include only the headers that the kernel uses"
    return BadInput(f'{rule}, got {count} files and {size:,} bytes up to "{spelling}"', hint=hint)


def with_counts(text: str, values: Mapping[str, object]) -> str:
    """`#pragma unroll N` with the value of N: nvcc's host compiler expands no macro in a pragma."""
    return _UNROLL.sub(
        lambda pragma: WORD.sub(lambda word: str(values.get(word[0], word[0])), pragma[0]), text
    )


def macro_lines(macros: Iterable[tuple[str, object]]) -> str:
    return "".join(f"#define {name} {value}\n" for name, value in macros)


def describe_launch(launch: Launch) -> str:
    axes = (launch.grid, launch.block, launch.cluster)
    grid, block, cluster = (", ".join(e.text for e in each) for each in axes)
    how = f"grid ({grid}), block ({block})"
    # Each only where it is said: a text that changes would make another variant of every kernel known so far.
    how += f", {launch.shared.text} bytes of shared memory" if launch.shared is not None else ""
    how += f", clusters of ({cluster})" if launch.cluster else ""
    how += ", cooperative" if launch.cooperative else ""
    how += ", programmatic dependent launch" if launch.pdl else ""
    how += f", where {launch.when.text}" if launch.when is not None else ""
    return f"{launch.entry}: {how}; arguments {', '.join(launch.args)}"


def tuned_header(name: str, config: Config, launches: tuple[Launch, ...], flags: tuple[str, ...]) -> str:
    """How to use the file, in the file: what is compiled and timed is, to the byte, what is delivered."""
    lines = [f"{name}, tuned by Tunesmith: {config}"]
    lines += [f"launch {describe_launch(launch)}" for launch in launches]
    if flags:
        lines.append(f"build with {' '.join(flags)}")
    # A backslash at the end of a line would swallow the next one, even with blanks behind it.
    return "".join(f"// {line.rstrip(_BLANKS)}\n" for text in lines for line in text.splitlines())


Combination = tuple[tuple[str, int], ...]  # values of some parameters


class Remedy(StrEnum):
    """What can be done about a finding, and what that means."""

    _value_: str
    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Remedy:
        remedy = str.__new__(cls, value)
        remedy._value_, remedy.meaning = value, meaning
        return remedy

    # fmt: off
    BLOCK_SIZE = "block_size", "another number of threads in a block; on a GPU a multiple of the warp"
    MORE_BLOCKS = "more_blocks", "a grid that gives every compute unit several blocks"
    PERSISTENT_GRID = (
        "persistent_grid", "as many blocks as the device holds at once, each taking work in turn")
    SPLIT_ROWS = "split_rows", "several blocks for one row, or for one piece of work of another kind"
    ROWS_PER_BLOCK = "rows_per_block", "several rows for one block"
    WARP_PER_ROW = "warp_per_row", "a warp (sub-group) for each row, with no barrier between warps"
    COALESCE = "coalesce", "neighbouring threads take neighbouring elements"
    STAGE_IN_SHARED = (
        "stage_in_shared", "tiles go through shared memory, so that reads and writes are both in order")
    PAD_SHARED = "pad_shared", "a row of a shared array one access longer, or its columns permuted"
    WIDE_ACCESS = "wide_access", "loads and stores of up to 16 bytes a thread"
    ITEMS_IN_FLIGHT = "items_in_flight", "several elements of a thread loaded before the first is used"
    UNROLL = "unroll", "loops unrolled"
    CACHE_HINTS = "cache_hints", "loads and stores that tell the caches what is used once"
    ROW_IN_REGISTERS = "row_in_registers", "a row kept in registers between passes, instead of read again"
    SHUFFLE_REDUCTION = (
        "shuffle_reduction", "reductions by shuffles within a warp, instead of trees in shared memory")
    SHARE_SERIAL_WORK = "share_serial_work", "all threads share what one of them does"
    REGROUP_BRANCHES = (
        "regroup_branches", "threads of a warp go one way: cases by warp, or arithmetic for branches")
    HOIST_INVARIANTS = "hoist_invariants", "what does not change in a loop computed before it"
    CHEAP_DIVISION = "cheap_division", "index division by a precomputed reciprocal, by shifts, or not at all"
    BAKE_SIZES = "bake_sizes", "sizes as constants of the build"
    FP32_LITERALS = "fp32_literals", "literals and functions in single precision: 0.5f, and in CUDA tanhf"
    FAST_INTRINSICS = (
        "fast_intrinsics", "__expf (in OpenCL native_exp) and their like, as far as the accuracy allows")
    RECIPROCAL = "reciprocal", "multiplication by a reciprocal instead of divisions by one number"
    HARDWARE_CONVERSIONS = (
        "hardware_conversions", "conversions that are one instruction, two elements at a time")
    LAUNCH_BOUNDS = (
        "launch_bounds", "__launch_bounds__ (in OpenCL reqd_work_group_size) that leave a thread its "
        "registers, or room for one block more")
    REGISTER_CAP = "register_cap", "another limit on registers, higher or lower"
    LESS_SHARED = "less_shared", "less shared memory for a block"
    COMPILER_FLAGS = (
        "compiler_flags", "flags of the compiler, -use_fast_math (in OpenCL -cl-fast-relaxed-math) among "
        "them, as far as the accuracy allows")
    AGGREGATE_ATOMICS = "aggregate_atomics", "atomics once for a warp or a block, on partial results"
    FEWER_LAUNCHES = "fewer_launches", "work of several launches in one, or launches that overlap"
    # fmt: on


PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Variant:
    """One concrete kernel: the whole text that is compiled, and how it is launched. `domain` holds the
    conditions over sizes, `device.*` and `resources.*` under which it may run."""

    path: str
    source: str
    language: str
    flags: tuple[str, ...]
    launches: tuple[Launch, ...]
    arguments: tuple[Argument, ...]
    domain: tuple[Expr, ...] = ()
    config: Config | None = None  # None: the original
    headers: tuple[tuple[str, str], ...] = ()  # the user's own, as included -> text
    # By a stranger, from these texts of the user's: vetted before it is built.
    made_from: tuple[str, ...] = ()
    refused: str = ""  # why nothing may be built of it, as the reader of its conditions says

    @cached_property
    def digest(self) -> str:
        headers = (repr(self.headers),) if self.headers else ()
        # Without what is not said: every kernel known so far keeps its digest.
        launches = encode_json(self.launches).replace(b',"when":null', b"")
        return digest_of(self.source, self.language, repr(self.flags), launches, *headers)

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(launch.entry for launch in self.launches))

    @property
    def overlapping(self) -> tuple[str, ...]:
        """Entries that may start before the launch ahead of them has ended."""
        return tuple(dict.fromkeys(launch.entry for launch in self.launches if launch.pdl))

    def argument(self, name: str) -> Argument:
        return next(a for a in self.arguments if a.name == name)

    def allows(self, names: Mapping[str, int]) -> bool:
        """Whether it may run there; conditions on names not known yet are left for later."""
        return all(c.holds(names) for c in self.domain if c.names <= names.keys())


@dataclass(frozen=True)
class Shape:
    """What a template says of its kernel for the usual rules (`problem/default_rules`)."""

    facts: Mapping[str, str]  # by name: expressions over parameters and sizes, and counts of bytes
    fixed: Mapping[str, int]  # parameters by their usual names that have one value
    on_cpu: bool = False
    prefer: tuple[tuple[str, str], ...] = ()  # preferences and answers of the template's own
    answers: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, Shape], ...] = ()  # of several kernels, by the number of each


@dataclass(frozen=True)
class Template:
    path: str
    source: str
    language: str
    space: Space
    default: Config
    launches: tuple[Launch, ...]
    flags: tuple[str, ...] = ()  # "{NAME}" inserts a parameter's value
    defines: tuple[tuple[str, Expr], ...] = ()  # the only way a size reaches a build
    workspace: tuple[Argument, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()  # its own, beside the problem's
    answers: tuple[tuple[Remedy, Expr], ...] = ()  # configurations that have what a diagnosis may ask for
    is_foreign: bool = False  # neither the user nor this program wrote it: what is built of it is vetted
    device: tuple[tuple[str, int], ...] = ()  # numbers of the one it is built for
    built_for: Device | None = None  # decides the conditions of what a stranger wrote
    # From which preferences and answers follow beside its own.
    shape: Shape | None = field(default=None, hash=False)

    @cached_property
    def digest(self) -> str:
        return digest_of(self.source)

    @property
    def is_concrete(self) -> bool:
        """Whether it is one kernel as it stands: no parameters, so nothing to search."""
        return not self.space.params

    def of_candidate(self, candidate: str) -> Template:
        """The same, with all its configurations marked as this candidate's."""
        default = replace(self.default, candidate=candidate)
        return replace(self, space=replace(self.space, candidate=candidate), default=default)

    def on(self, device: Device) -> Template:
        """The same for builds on this device: its defines may ask for the device's numbers."""
        asked = any(expr.names & {*DEVICE_NAMES} for _, expr in self.defines)
        numbers = tuple(device.limits.names().items()) if asked else self.device
        return replace(self, device=numbers, built_for=device)

    @cached_property
    def entry_sizes(self) -> tuple[str, ...]:
        """Sizes that an entry inserts: one build for each of their values."""
        macros = {*(param.name for param in self.space.params), *(name for name, _ in self.defines)}
        named = (name for launch in self.launches for name in PLACEHOLDER.findall(launch.entry))
        return tuple(dict.fromkeys(name for name in named if name not in macros and not name.isdigit()))

    @property
    def baking(self) -> tuple[str, ...]:
        """What may put sizes into a build, as it is written."""
        settled = {*(param.name for param in self.space.params), *DEVICE_NAMES}
        return (*(e.text for _, e in self.defines if not e.names <= settled), *self.entry_sizes)

    def bakes_sizes(self, config: Config) -> bool:
        """Whether a build of this configuration serves one size only."""
        values = config.as_dict()
        baked = any(e.bind(values).names - {*DEVICE_NAMES} for _, e in self.defines)
        return baked or bool(self.entry_sizes)

    def render(self, problem: Problem, config: Config, sizes: Mapping[str, int] | None = None) -> Variant:
        """The kernel for `config`; `sizes` are needed where the template bakes sizes into the build."""
        values, sizes = config.as_dict(), sizes or {}
        macros, domain = self._macros_at(values, sizes)
        inserts = dict(macros)
        for name in self.entry_sizes:
            inserts[name] = parse_expr(name).evaluate(sizes)
            domain.append(parse_expr(f"{name} == {inserts[name]}"))
        insert = {name: str(value) for name, value in inserts.items()}
        workspace = map_exprs(self.workspace, lambda expr: expr.bind(values))
        flags = (*problem.kernel.flags, *(fill_placeholders(flag, insert) for flag in self.flags))
        launches = made_launches(bind_launch(launch, values, insert) for launch in self.launches)
        # A macro that production sets may be a parameter here: it is defined once, with the value tried.
        defined = {**dict(problem.kernel.defines), **macros}
        head = tuned_header(problem.name, config, launches, flags)
        # The line marker keeps the compiler speaking in the author's line numbers.
        text = f'{macro_lines(defined.items())}#line 1 "{plain_name(self.path)}"\n'
        text += with_counts(self.source, defined)
        headers = tuple({**dict(problem.kernel.headers), **dict(self.headers)}.items())
        refused = ""
        if self.is_foreign:
            text, refused = self._settle_stranger_text(text, problem, headers, flags)
        return Variant(
            path=self.path,
            source=head + text,
            language=self.language,
            flags=flags,
            launches=launches,
            arguments=(*problem.arguments, *workspace),
            domain=tuple(expr for expr in domain if expr.names or not expr.holds({})),
            config=config,
            headers=headers,
            made_from=users_texts(problem) if self.is_foreign else (),
            refused=refused,
        )

    def _macros_at(
        self, values: Mapping[str, int], sizes: Mapping[str, int]
    ) -> tuple[dict[str, int], list[Expr]]:
        """Parameters and defines with their values, and the conditions under which they have these."""
        macros = dict(values)
        domain = [c.expr.bind(values) for c in self.space.constraints if c.kind == "require"]
        for name, expr in self.defines:
            bound = expr.bind({**dict(self.device), **values})
            try:
                macros[name] = bound.evaluate(sizes)
            except Undefined:
                if not bound.names <= sizes.keys():
                    raise  # sizes were needed
                domain.append(parse_expr(f"0 * ({bound.text}) == 0"))  # so wherever it has a value: not here
                continue
            if bound.names:
                domain.append(parse_expr(f"({bound.text}) == {macros[name]}"))
        return macros, domain

    def as_delivered(self, problem: Problem) -> str:
        """The text for people and other programs; a stranger's asks for its own parameters alone."""
        if not self.is_foreign:
            return self.source
        from tunesmith.problem.vetting.decided import settled_text, target_of

        flags = (*problem.kernel.flags, *self.flags)
        target = target_of(self.language, self.built_for, problem.kernel.compiler, flags)
        return settled_text(self.source, target)

    def _settle_stranger_text(
        self, text: str, problem: Problem, headers: tuple[tuple[str, str], ...], flags: tuple[str, ...]
    ) -> tuple[str, str]:
        """A stranger's text as one for the device, without its declaration; or why there is none."""
        from tunesmith.problem.vetting.decided import decide_source, target_of  # a whole preprocessor

        target = target_of(self.language, self.built_for, problem.kernel.compiler, flags)
        original, *_ = users_texts(problem)
        found = decide_source(without_block(text), original, self.language, headers, flags, target)
        return (found, "") if isinstance(found, str) else (text, str(found))


def users_texts(problem: Problem) -> tuple[str, ...]:
    """The kernel with its macros, and its headers: what a stranger's template may take things from."""
    kernel = problem.kernel
    return (macro_lines(kernel.defines) + kernel.text, *(text for _, text in kernel.headers))


def original_variant(problem: Problem, sizes: Mapping[str, int] | None = None) -> Variant:
    """The kernel as it is, launched as it is launched today."""
    kernel = problem.kernel
    prologue = macro_lines(kernel.defines)
    marker = f'#line 1 "{plain_name(kernel.path)}"\n' if prologue else ""
    insert = {name: str(value) for name, value in (sizes or {}).items()}
    return Variant(
        path=kernel.path,
        source=f"{prologue}{marker}{kernel.text}",
        language=kernel.language,
        flags=kernel.flags,
        launches=tuple(bind_launch(launch, {}, insert) for launch in problem.launches),
        arguments=problem.arguments,
        headers=kernel.headers,
    )


@dataclass(frozen=True)
class ToBuild:
    """One variant of a configuration and the workloads it serves; several only where sizes are baked in."""

    variant: Variant
    workloads: tuple[Workload, ...]


def builds_of(
    problem: Problem,
    template: Template | None,
    config: Config | None,
    workloads: Iterable[Workload] | None = None,
) -> tuple[ToBuild, ...]:
    """Everything that is compiled for a configuration, or for the original where it is None, at the workloads
    named, or at all of the problem's."""
    found: dict[str, ToBuild] = {}
    for workload in problem.workloads if workloads is None else workloads:
        sizes = workload.as_dict()
        if template is None or config is None:
            variant = original_variant(problem, sizes)
        else:
            variant = template.render(problem, config, sizes)
        before = found[variant.digest].workloads if variant.digest in found else ()
        found[variant.digest] = ToBuild(variant, (*before, workload))
    return tuple(found.values())


def bind_launch(launch: Launch, values: Mapping[str, int], insert: Mapping[str, str]) -> Launch:
    bound = map_exprs(launch, lambda expr: expr.bind(values))
    pdl = bound.pdl if isinstance(bound.pdl, bool) or bound.pdl.names else bound.pdl.holds({})
    return replace(bound, entry=fill_placeholders(launch.entry, insert), pdl=pdl)


def made_launches(launches: Iterable[Launch]) -> tuple[Launch, ...]:
    """Without those that are made nowhere, and without conditions that hold everywhere."""
    made = [one for one in launches if one.when is None or one.when.names or one.when.holds({})]
    return tuple(one if one.when is None or one.when.names else replace(one, when=None) for one in made)


def plain_name(path: str) -> str:
    """A file's name as it may stand in a source: no folder, no character with a meaning."""
    return re.sub(r"[^\w.+-]", "_", path.replace("\\", "/").rsplit("/", 1)[-1])


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda m: values.get(m.group(1), m.group(0)), text)


_MAX_TRIED = 1 << 20  # combinations; a constraint over more of them is kept unseen
_AXES = ("x", "y", "z")


def hardware_constraints(template: Template, limits: Limits) -> tuple[Constraint, ...]:
    """One for each limit that some configuration would break, as far as parameters and device decide it. A
    limit that no configuration breaks is left out: as a constraint it would tie parameters together, and
    these would have to be listed in all their combinations."""
    params = {param.name: param for param in template.space.params}
    several = len(template.launches) > 1
    found: dict[Node, Constraint] = {}
    for number, launch in enumerate(template.launches, 1):
        suffix = f" of launch {number}" if several else ""
        for what, expr in _launch_limits(launch, limits):
            bound = expr.bind(limits.names())
            if launch.when is not None:
                bound = parse_expr(f"not ({launch.when.bind(limits.names()).text}) or ({bound.text})")
            if bound.names <= params.keys() and _can_break(bound, params):
                found.setdefault(bound.tree, Constraint(f"device: {what}{suffix}", bound))
    return tuple(found.values())


def _launch_limits(launch: Launch, limits: Limits) -> Iterator[tuple[str, Expr]]:
    sides = [expr.tree for expr in launch.block]
    threads = reduce(lambda a, b: Arithmetic("*", a, b), sides)
    yield "threads per block", _range_expr(1, threads, limits.max_threads)
    for axis, side, most in zip(_AXES, sides, limits.max_block, strict=False):
        yield f"block axis {axis}", _range_expr(1, side, most)
    if launch.shared is not None:
        yield "shared memory per block", _range_expr(0, launch.shared.tree, limits.shared)


def _range_expr(low: int, value: Node, high: int) -> Expr:
    tree = Compare(Num(low), (("<=", value), ("<=", Num(high))))
    return Expr(unparse(tree), tree)


def _can_break(expr: Expr, params: Mapping[str, Param]) -> bool:
    read = [params[name] for name in sorted(expr.names)]
    if prod(len(param.values) for param in read) > _MAX_TRIED:
        return True
    # Each along an axis of its own; single ones take none.
    columns: dict[str, expr_arrays.Ints | int] = {p.name: p.values[0] for p in read if len(p.values) == 1}
    several = [param for param in read if len(param.values) > 1]
    mesh = np.ix_(*(np.array(param.values, dtype=np.int64) for param in several))
    columns |= {param.name: values for param, values in zip(several, mesh, strict=True)}
    return not bool(expr_arrays.evaluate_truth(expr, columns).all())


def configs_of(problem: Problem, template: Template, device: Device) -> ConfigSet:
    """What is searched: the legal configurations, without those that no build could make fit the device."""
    space, sizes, known = template.space, [w.as_dict() for w in problem.workloads], device.limits.names()
    limits = hardware_constraints(template, device.limits)
    fitting = replace(space, constraints=space.constraints + limits)
    try:
        found = fitting.configs(sizes, known)
    except BadInput:
        # The device may tie together parameters that the template leaves apart, until there are more
        # combinations than can be listed. Then trying finds out.
        found = space.configs(sizes, known)
    if len(found):
        return found
    if not limits or _is_empty(space, sizes, known):
        fault = f"the template's constraints leave no configuration on {device.name}"
        raise BadInput(fault, where=template.path, hint="widen a parameter or loosen a constraint")
    # Each limit by itself, or else all of them together.
    alone = [(limit, replace(space, constraints=(*space.constraints, limit))) for limit in limits]
    fatal = [limit for limit, one in alone if _is_empty(one, sizes, known)]
    broken = "; ".join(f"{c.name.removeprefix('device: ')}, {c.expr.text}" for c in fatal or limits)
    fault = f"no configuration of the template fits {device.name}, which demands: {broken}"
    hint = "give its parameters smaller values, or name another device with --device"
    raise BadInput(fault, where=template.path, hint=hint)


def _is_empty(space: Space, sizes: Sequence[dict[str, int]], known: dict[str, int]) -> bool:
    try:
        return not len(space.configs(sizes, known))
    except BadInput:  # too many to list
        return False
