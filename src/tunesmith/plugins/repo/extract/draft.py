"""The problem file and the other texts of an extraction, from what is known of the kernel."""

from __future__ import annotations

import ast
import json
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tunesmith.base.errors import BadInput
from tunesmith.base.text import format_count, sha256_hex, truncate_text
from tunesmith.expert.drafts.bare import BareKernel, BareReading, KnownFacts, KnownWorkload
from tunesmith.expert.drafts.draft import draft_of, read_safely
from tunesmith.expert.drafts.headers import KernelSignature, LaunchSite, SourceModel
from tunesmith.expert.drafts.launches import FILL, draft_arguments, draft_launch, possible_name
from tunesmith.expert.drafts.signature import read_with_headers
from tunesmith.plugins.repo.capture.records import CapturedKernel
from tunesmith.plugins.repo.extract.flatten import FlatKernel, Parts, kernel_in_parts
from tunesmith.plugins.repo.extract.host import (
    ChosenLaunch,
    HostFactReader,
    HostFacts,
    HostLaunch,
    HostReading,
    with_limits,
)
from tunesmith.plugins.repo.extract.seen import SeenSizes, seen_facts
from tunesmith.plugins.repo.extract.slice import (
    FRAMEWORK,
    KERNEL_FILE,
    BuildAttempt,
    FittedSlice,
    FoundKernel,
    KernelSlice,
    Pairs,
    is_system,
)
from tunesmith.plugins.repo.extract.tree import SourceTree, is_frameworks
from tunesmith.problem.problem import Origin
from tunesmith.problem.problem_text import toml_text


@dataclass(frozen=True)
class ExtractionWish:
    """What is asked for. `kernel`: a name, with template arguments or without."""

    kernel: str
    file: str | None = None
    folders: tuple[str, ...] = ()
    defines: Pairs = ()
    flags: tuple[str, ...] = ()
    workloads: tuple[KnownWorkload, ...] = ()
    reference: str | None = None
    trim: bool = True
    seen: CapturedKernel | None = None  # what a program launched
    inside: tuple[str, str] | None = None  # file and host function whose launch is meant


@dataclass(frozen=True)
class Extraction:
    """What was made of it. `files`: name -> text, of the folder."""

    place: str  # where the kernel is defined
    entry: str
    files: tuple[tuple[str, str], ...]
    fills: int
    lines: int  # of the kernel's file
    items: int
    attempt: BuildAttempt
    report: tuple[str, ...]  # what was found, in words
    missing: tuple[str, ...] = ()  # why it does not stand alone, where it does not
    seen_sizes: SeenSizes = ()
    parts: Parts = ()  # of captured arguments that are structs
    passed: Pairs = ()  # the host's words for arguments, by their names
    launch: HostLaunch | None = None
    cut: KernelSlice | None = None
    members: tuple[Extraction, ...] = ()  # kernels that one call launches, each by itself
    origin: Origin | None = None
    unread: tuple[str, ...] = ()  # conditions of the host's that are not over sizes

    @property
    def stands_alone(self) -> bool:
        return self.attempt.ok


# -- A reference from a function that the user names: called in float64, as reference files are.


REFERENCE_FILE = "reference.py"
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_EXAMPLE = "for example: --reference 'torch.nn.functional.rms_norm(input, [hidden], weight, epsilon)'"


def reference_text(
    said: str, function: str, arrays: Sequence[str], scalars: Sequence[str], sizes: Collection[str]
) -> str:
    """`said`: a call over the problem's names, or a function's name alone, which is then called with the
    arrays that the kernel reads, in their order, and its numbers. Raises BadInput."""
    call = said if "(" in said else f"{said}({', '.join((*arrays, *scalars))})"
    try:
        tree = ast.parse(call, mode="eval").body
    except SyntaxError:
        raise BadInput(f"--reference is a call in Python; got {said!r}", hint=_EXAMPLE) from None
    if not isinstance(tree, ast.Call) or not _DOTTED.fullmatch(ast.unparse(tree.func)):
        raise BadInput(f"--reference calls a function of a module; got {said!r}", hint=_EXAMPLE)
    path = ast.unparse(tree.func).rpartition(".")[0]
    module = path.split(".")[0]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {module}
    known = [*arrays, *scalars, *sorted(sizes)]
    unknown = sorted(names - set(known))
    if unknown:
        fault = f"--reference speaks of {', '.join(unknown)}; the problem has {', '.join(known)}"
        raise BadInput(fault, hint=_EXAMPLE)
    taken = [name for name in known if name in names]
    tensors = [name for name in arrays if name in names]
    is_torch = module == "torch"
    lines = [
        f'"""The expected result of {function}, in float64: {ast.unparse(tree.func)}."""',
        "",
        *(["import numpy as np"] if is_torch else []),
        f"import {module if is_torch else path}",
        "",
        "",
        f"def {function}(*, {', '.join(taken)}):",
    ]
    if is_torch:
        lines += [f"    {name} = torch.from_numpy(np.array({name}))" for name in tensors]
        lines += [f"    return ({ast.unparse(tree)}).numpy()"]
    else:
        lines += [f"    return {ast.unparse(tree)}"]
    return "\n".join(lines) + "\n"


def report_of(
    found: FoundKernel,
    host: HostReading,
    instance: ChosenLaunch,
    facts: HostFacts | None,
    fitted: FittedSlice,
    entry: str,
) -> tuple[str, ...]:
    files = dict.fromkeys(item.path for item in fitted.slice.items if item.path != FRAMEWORK)
    said = [
        f"found in {found.item.place}",
        f"the slice has {format_count(len(fitted.slice.items), 'declaration')} of {', '.join(files)}",
    ]
    if fitted.left_out:
        why = "the machine code is the same without them"
        said.append(f"{fitted.left_out} more by name were left out: {why}")
    if fitted.slice.uses_framework:
        said.append(f"a framework's types and macros are ours, in {FRAMEWORK}")
    if instance.launch is None:
        said.append("no launch of it was found in the repository's host code")
    else:
        more = f", one of {instance.others} launches" if instance.others > 1 else ""
        said.append(f"launched in {instance.launch.place}{more}: {entry}")
    for name, values in instance.chosen.offered:
        said.append(f"{name} may be {', '.join(values)}; choose another with --entry")
    for name, guess in instance.chosen.guessed:
        where = f"nobody says what {name} is where it is launched"
        said.append(f"{where}: {guess} was taken, another with --entry")
    if instance.chosen.open_names:
        names = ", ".join(instance.chosen.open_names)
        said.append(f"nobody says what {names} is: say it with --entry '{found.item.name}<...>'")
    if facts is not None:
        said += [f"not over sizes, so left to you: {text}" for text in facts.unread]
    asked = [f"{name} ({place})" for name, place in found.sources.undefined if _is_a_flag(name)]
    if asked:
        said.append(f"taken as not defined: {', '.join(asked[:8])}; --define NAME if your build does")
    said += [f"unreadable host code: {trouble}" for trouble in host.troubles]
    if fitted.attempt.ok:
        said.append(f"compiled with {fitted.attempt.compiler}")
    return tuple(said)


def _is_a_flag(name: str) -> bool:
    return not name.startswith("_") and name.isupper() and "ROCM" not in name and "HIP" not in name


def missing_in(found: FoundKernel, fitted: FittedSlice) -> tuple[str, ...]:
    """What the slice lacks, with the line of the repository that asks for it."""
    said: list[str] = []
    named = dict.fromkeys(re.findall(r'identifier "(\w+)" is undefined', fitted.attempt.log))
    words = [(item.path, token) for item in fitted.slice.items for token in item.tokens]
    for name in named:
        place = next((f"{path}:{token.line}" for path, token in words if token.text == name), None)
        where = f", used in {place}," if place else ""
        said.append(f"{name}{where} is defined nowhere in what {found.item.path} includes")
    lost = [
        f"{one.name} ({one.path}:{one.line})"
        for one in found.sources.outside
        if one.spelling.startswith('"') and not is_frameworks(one.name) and not is_system(one.name)
    ]
    if lost:
        said.append(f"not in the repository: {', '.join(lost[:6])}; say where headers lie with -I DIR")
    if not named or not fitted.attempt.log.startswith(KERNEL_FILE):
        said.append(truncate_text(fitted.attempt.log.strip(), 2000))
    return tuple(said)


def compared_code(kernel: CapturedKernel, attempt: BuildAttempt) -> Iterator[str]:
    """Whether what was built is what ran."""
    if not attempt.ok:
        return
    if not kernel.code:
        yield "whether these sources are what ran is not known: the machine code that ran was not to be had"
    elif not attempt.code:
        yield "whether these sources are what ran is not known: nothing was compiled to compare"
    elif kernel.code == attempt.code:
        yield "its machine code is that of the kernel that ran"
    else:
        ran, built = kernel.binary_version, attempt.capability
        other = f"sm_{built} instead of sm_{ran}, " if ran and built and ran != built else ""
        yield (
            f"its machine code differs from that of the kernel that ran: {other}another compiler, other "
            "flags (--flag), or other sources; captured memory (capture --keep) tells which"
        )


def named_kernel(model: SourceModel, name: str) -> KernelSignature:
    found = [kernel for kernel in model.kernels if kernel.name == name]
    if not found:
        raise BadInput(f"the header of {name} could not be read", hint="write it without macros in its name")
    return found[0]


def draft_extraction(
    found: FoundKernel,
    host: HostReading,
    instance: ChosenLaunch,
    entry: str,
    fitted: FittedSlice,
    flat: FlatKernel | None,
    wish: ExtractionWish,
    said: tuple[str, ...] = (),
) -> Extraction:
    """`flat`: the kernel that takes fields, where the own one takes structs; `said`: reported besides."""
    cut = flat.slice if flat else fitted.slice
    text = cut.text(f"{found.item.name}, taken from {found.item.place}")
    headers = ((FRAMEWORK, cut.framework_text()),) if cut.uses_framework else ()
    bare, facts = _read_bare_kernel(found, instance, flat.entry if flat else entry, text, headers, wish, flat)
    known = _known_facts(found, instance, facts, fitted, wish)
    known = flat.with_roles(known) if flat else known
    reading = read_safely(bare)
    report = (*report_of(found, host, instance, facts, fitted, entry), *said)
    sizes: SeenSizes = ()
    if wish.seen is not None:
        shapes = reading.shapes if isinstance(reading, BareReading) else {}
        extents = {name: known.renamed(shape.extents) for name, shape in shapes.items()}
        ran = kernel_in_parts(wish.seen, flat.parts) if flat else wish.seen
        seen = seen_facts(ran, bare.arguments, known, bare.launch, extents)
        known, bare = seen.known, replace(bare, launch=seen.launch)
        report = (*report, *seen.notes, *compared_code(wish.seen, fitted.attempt))
        sizes = seen.sizes
    known = with_limits(known, "given" if wish.seen is None or wish.workloads else "seen")
    draft = draft_of(bare, reading, (), replace(known, reference=None))
    files = ((KERNEL_FILE, text), *headers, *draft.files.items())
    if wish.reference is not None:
        name = possible_name(found.item.name)
        called = _draft_reference(wish.reference, name, bare, draft.files["problem.toml"])
        known = replace(known, reference=f"{REFERENCE_FILE}:{name}")
        draft = draft_of(bare, reading, (), known)
        files = ((KERNEL_FILE, text), *headers, *draft.files.items(), (REFERENCE_FILE, called))
    report = (*report, *_strange_sizes(wish, draft.files["problem.toml"]))
    missing = () if fitted.attempt.ok else missing_in(found, fitted)
    measured = (len(text.splitlines()), len(cut.items))
    place, attempt = found.item.place, fitted.attempt
    parts = flat.parts if flat else ()
    entry = flat.entry if flat else entry
    passed = tuple(facts.passed.items()) if facts is not None else ()
    return Extraction(
        place, entry, files, draft.fills, *measured, attempt, report, missing, sizes, parts, passed,
        instance.launch, cut, unread=facts.unread if facts is not None else (),
    )  # fmt: skip


def _strange_sizes(wish: ExtractionWish, problem: str) -> list[str]:
    """Sizes of the workloads that were given which the problem does not have."""
    sizes = [name for name in tomllib.loads(problem).get("contract", {}) if name not in ("require", FILL)]
    given = dict.fromkeys(name for workload in wish.workloads for name, _ in workload.sizes)
    known = ", ".join(sizes) or "none yet"
    strange = (name for name in given if name not in sizes)
    return [f"--workload says {name}, which is no size of the problem ({known})" for name in strange]


def _draft_reference(said: str, name: str, bare: BareKernel, problem: str) -> str:
    read = tomllib.loads(problem)
    arrays = [a["name"] for a in read["argument"] if a.get("role") in ("input", "inout")]
    scalars = [a.name for a in bare.arguments if not a.parameter.pointer and not a.is_integer]
    return reference_text(
        said, name, arrays, scalars, [size for size in read["contract"] if size != "require"]
    )


def _read_bare_kernel(
    found: FoundKernel,
    instance: ChosenLaunch,
    entry: str,
    text: str,
    headers: Pairs,
    wish: ExtractionWish,
    flat: FlatKernel | None,
) -> tuple[BareKernel, HostFacts | None]:
    model = read_with_headers(text, "cuda", KERNEL_FILE, wish.defines, headers)
    kernel = named_kernel(model, flat.slice.kernel.name if flat else found.item.name)
    bound = tuple(zip(kernel.template_params, instance.chosen.arguments, strict=False))
    arguments = draft_arguments(kernel, "cuda", dict(bound))
    facts: HostFacts | None = None
    launch = draft_launch(kernel, arguments, model, "cuda")
    host = instance.launch
    if host is not None:
        host = replace(host, site=flat.site(host.site)) if flat else host
        decided = dict(instance.chosen.decided)
        facts = HostFactReader(host, arguments, comments_of(found), decided).facts()
        site = _named_site(host.site, facts)
        constants = dict((*host.constants, *model.constants))
        model = replace(model, launches=(site,), constants=tuple(constants.items()))
        launch = draft_launch(kernel, arguments, model, "cuda")
        launch = replace(launch, about=f"as launched in {host.place}")  # lines are those of the host's file
    said = (entry, kernel, arguments, model, launch, bound, wish.defines, headers)
    return BareKernel(text, KERNEL_FILE, "cuda", *said), facts


def _named_site(site: LaunchSite, facts: HostFacts) -> LaunchSite:
    """With the sizes that the host asks its tensors for under their own names, and no values behind them."""
    decided = dict(facts.decided)
    kept = tuple((n, decided.get(n, value)) for n, value in site.settled if n not in facts.leaves)
    grid, block = (tuple(_in_names(text, facts) for text in part) for part in (site.grid, site.block))
    shared = None if site.shared is None else _in_names(site.shared, facts)
    return replace(site, settled=kept, grid=grid, block=block, shared=shared)


def _in_names(text: str, facts: HostFacts) -> str:
    for words, name in sorted(facts.leaves.items(), key=lambda pair: -len(pair[0])):
        if text == words:
            return name
        if not words.isidentifier():
            text = text.replace(words, name)
    return text


def comments_of(found: FoundKernel) -> dict[str, str]:
    """What stands behind each parameter of the kernel's header, at the end of its line."""
    tokens = found.item.tokens
    start = next((at for at, token in enumerate(tokens) if token.text == found.item.name), 0)
    said: dict[str, str] = {}
    last = ""
    depth = 0
    for token in tokens[start + 1 :]:
        depth += (token.text == "(") - (token.text == ")")
        if token.kind == "word":
            last = token.text
        for comment in token.comments:
            if comment.behind and last:
                said[last] = comment.text
        if depth == 0:
            break
    return said


def _known_facts(
    found: FoundKernel,
    instance: ChosenLaunch,
    facts: HostFacts | None,
    fitted: FittedSlice,
    wish: ExtractionWish,
) -> KnownFacts:
    notes = [f"{found.item.name} of {found.item.place}"]
    if instance.launch is not None:
        notes[0] += f", launched in {instance.launch.place}"
    notes += [f"{name} may also be {', '.join(values)}" for name, values in instance.chosen.offered]
    compiler = "nvcc" if fitted.attempt.compiler == "nvcc" and fitted.attempt.ok else ""
    plain = KnownFacts(
        head="Drafted by `tunesmith extract`.",
        notes=tuple(notes),
        workloads=wish.workloads,
        flags=fitted.flags,
        compiler=compiler,
    )
    if facts is None:
        return plain
    return replace(
        plain,
        notes=(*plain.notes, *(f"the host also asks for: {text}" for text in facts.unread[:6])),
        values=facts.values, shapes=facts.shapes, shapes_from=facts.shapes_from, nulls=facts.nulls,
        passed=facts.passed, multiples=facts.multiples, requires=facts.requires,
    )  # fmt: skip


# -- Where an extracted kernel comes from, so that what is tuned finds its way back.


def origin_of(
    tree: SourceTree, found: FoundKernel, host: HostReading, cut: KernelSlice, captured: str = ""
) -> Origin:
    """`captured`: the kernel's own name in a capture. The repository and the capture are not known here."""
    item = found.item
    last = max((token.line for token in item.tokens), default=item.line)
    launches = tuple(dict.fromkeys(launch.place for launch in host.launches))
    used = (part.path for part in cut.items if part.path != FRAMEWORK)
    paths: Iterable[str] = (item.path, *(launch.path for launch in host.launches), *used)
    digests = tuple((path, text_digest(tree.read(path))) for path in sorted(set(paths)))
    return Origin(item.path, (item.line, max(item.line, last)), launches, digests, kernel=captured)


def origin_text(origin: Origin) -> str:
    """As a problem file has it."""
    lines = [
        "# Where it was taken from, for `tunesmith apply`.",
        "[origin]",
        f"repository = {_quote_toml(origin.repository)}",
        f"file = {_quote_toml(origin.file)}",
        f'lines = "{origin.lines[0]}-{origin.lines[1]}"',
        f"launches = [{', '.join(map(_quote_toml, origin.launches))}]",
    ]
    lines += [f"include = [{', '.join(map(_quote_toml, origin.include))}]"] if origin.include else []
    lines += [f"capture = {_quote_toml(origin.capture)}"] if origin.capture else []
    lines += [f"kernel = {_quote_toml(origin.kernel)}"] if origin.kernel else []
    lines += ["", "[origin.digests]"]
    lines += [f"{_quote_toml(path)} = {_quote_toml(digest)}" for path, digest in origin.digests]
    if origin.read:  # the launch promises were taken from; what it asks for besides may not hold at others
        asked = [" ".join(text.split()) for text in origin.unread]
        lines += ["", "[origin.read]", f"launch = {json.dumps(origin.read)}"]
        lines += [f"unread = [{', '.join(map(json.dumps, asked))}]"] if asked else []
        lines += (
            ["alone = true  # other launches are of other instances of the kernel"] if origin.alone else []
        )
    return "\n".join(lines) + "\n"


def _quote_toml(text: str) -> str:
    """A basic string of TOML; JSON's escapes are among its own."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def text_digest(text: str) -> str:
    """Of a file's text with plain line ends."""
    return sha256_hex(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass"))


# Drafts of several kernels that one call launches, put together: one problem with a launch for each. What two
# launches are handed is one argument where the host has the same words for it. A buffer that an earlier one
# writes and a later one reads is a workspace, where the host makes it and does not give it back.
ONE_BY_ONE = "leave --call out, and extract the kernels one by one"
Table = dict[str, Any]
Place = tuple[str, str, str]  # table, argument's name or launch's number, key
Kept = Literal["", "made", "zeroed"]  # a buffer of the host's own: none, with any contents, filled with zeros
_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
_POINTED = re.compile(r"(\w+)\s*(?:\.|->)\s*(?:(?:const|mutable)_)?data(?:_ptr)?\b")
_CAST = re.compile(
    r"\b(?:static_cast|reinterpret_cast|const_cast)\s*<[^<>]*>\s*\(|\(\s*(?:const\s+)?[\w:]+\s*\*\s*\)"
)


@dataclass(frozen=True)
class LaunchDraft:
    """One kernel's own problem file. `passed`: the host's words for its arguments, by their names."""

    kernel: str
    entry: str
    toml: str
    passed: Mapping[str, str]
    kept: Mapping[str, Kept] = field(default_factory=dict)  # buffers of the host's own, by its words for them


def merge_drafts(drafts: Sequence[LaunchDraft], notes: Sequence[str] = ()) -> str:
    """The first draft's name stands for all of them."""
    tables = [tomllib.loads(draft.toml) for draft in drafts]
    joined = _Joined()
    launches: list[Table] = []
    for draft, table in zip(drafts, tables, strict=True):
        names = joined.take(draft, table)
        launch = {key: _rename_words(value, names) for key, value in table["launch"].items()}
        args = [names[a["name"]] for a in table["argument"]]
        launches.append({"entry": draft.entry, "args": args, **launch})
    first = tables[0]
    root: Table = {
        "name": first["name"],
        "kernel": {**first["kernel"], "entry": drafts[0].entry},
        "argument": [joined.argument(name) for name in joined.order],
        "launch": launches,
        "contract": joined.contract,
        "workloads": _merge_workloads(tables, joined),
    }
    if "accuracy" in first:
        root["accuracy"] = first["accuracy"]
    head = "\n".join(f"# {note}" for note in notes)
    said: dict[Place, str] = {}
    for number, (draft, names) in enumerate(zip(drafts, joined.renames, strict=True)):
        said = {**dict(_fill_comments(draft.toml, number, names)), **said}
    return (head + "\n" if head else "") + "\n".join(_annotate_lines(toml_text(root), said)) + "\n"


def _fill_comments(toml: str, number: int, names: Mapping[str, str]) -> Iterator[tuple[Place, str]]:
    """What stands beside each open place of a draft, under the names of the whole."""
    for table, name, line in _lines_with_tables(toml):
        code, mark, comment = line.partition("  # ")
        key = code.partition(" = ")[0]
        if mark and "FILL" in code:
            if table in ("argument", "launch"):
                yield (table, names.get(name, name) if table == "argument" else str(number), key), comment
            else:
                yield (table, "", names.get(key, key)), comment


def _annotate_lines(toml: str, said: Mapping[Place, str]) -> Iterator[str]:
    launches = -1
    for table, name, line in _lines_with_tables(toml):
        launches += line == "[[launch]]"
        key = line.partition(" = ")[0]
        place = (table, name if table == "argument" else str(launches) if table == "launch" else "", key)
        yield f"{line}  # {said[place]}" if "FILL" in line and place in said else line


def _lines_with_tables(toml: str) -> Iterator[tuple[str, str, str]]:
    """Each line with the table it is in, and of arguments the name."""
    table = name = ""
    for line in toml.splitlines():
        if line.startswith("["):
            table, name = line.partition("]")[0].strip("["), ""
        if table == "argument" and line.startswith("name = "):
            name = line.split('"')[1]
        yield table, name, line


def tensor_identity(words: str) -> str:
    """The tensor or variable that the host's words for an argument speak of."""
    plain = _CAST.sub("", words).strip("()& ")
    pointed = _POINTED.search(plain)
    return pointed[1] if pointed else "".join(plain.split())


class _Joined:
    """Arguments and sizes of all launches, each once."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.contract: Table = {}
        self.renames: list[dict[str, str]] = []
        self._tables: dict[str, Table] = {}
        self._uses: dict[str, list[str]] = {}
        self._kept: dict[str, Kept] = {}
        self._numbers: dict[tuple[str, str], int] = {}  # of workloads and sizes
        self._by_words: dict[tuple[str, str], str] = {}

    def take(self, draft: LaunchDraft, table: Table) -> dict[str, str]:
        """The draft's names for arguments and sizes -> those of the whole."""
        names: dict[str, str] = {}
        for argument in table["argument"]:
            words = tensor_identity(draft.passed.get(argument["name"], ""))
            key = (words or argument["name"], argument["type"])
            known = self._by_words.get(key)
            name = known or self._free(argument["name"], draft.kernel, table)
            names[argument["name"]] = name
            if known is None:
                self._by_words[key] = name
                self.order.append(name)
        sizes = [size for size in table["contract"] if size != "require" and size not in names]
        names |= {size: self._size_name(size, draft.kernel, table) for size in sizes}
        for argument in table["argument"]:
            name = names[argument["name"]]
            self._uses.setdefault(name, []).append(argument.get("role", ""))
            words = tensor_identity(draft.passed.get(argument["name"], ""))
            self._kept[name] = self._kept.get(name) or draft.kept.get(words, "")
            new = {key: _rename_words(value, names) for key, value in argument.items()} | {"name": name}
            self._tables[name] = _merge_open_values(self._tables.get(name), new)
        self._merge_contract(table["contract"], names)
        for workload, values in table["workloads"].items():
            for size, value in values.items():
                if isinstance(value, int) and size in names:
                    self._numbers.setdefault((workload, names[size]), value)
        self.renames.append(names)
        return names

    def _free(self, name: str, kernel: str, table: Table) -> str:
        taken = name in self._tables or name in self.order or self._is_other(name, table)
        return f"{kernel}_{name}" if taken else name

    def _size_name(self, size: str, kernel: str, table: Table) -> str:
        """Of a size that is no argument: the host has no words for it, so numbers tell."""
        array = size in self.order and size not in self.contract
        return f"{kernel}_{size}" if array or self._is_other(size, table) else size

    def _is_other(self, size: str, table: Table) -> bool:
        """Whether a size of that name has another number in one of the workloads."""
        return any(
            self._numbers.get((workload, size), number) != number
            for workload, values in table["workloads"].items()
            if isinstance(number := values.get(size), int)
        )

    def _merge_contract(self, contract: Table, names: Mapping[str, str]) -> None:
        for size, rule in contract.items():
            if size == "require":
                said = self.contract.setdefault("require", [])
                said += [text for text in _rename_words(rule, names) if text not in said]
            elif isinstance(rule, dict):
                name = names[size]
                known = self.contract.get(name)
                self.contract[name] = rule if known is None else _intersect_rules(name, known, rule)

    def argument(self, name: str) -> Table:
        table, uses = dict(self._tables[name]), self._uses[name]
        if "role" not in table:
            return table
        role = _merge_roles(uses)
        if role == "output" and len(uses) > 1 and self._kept[name]:
            role = "workspace"
            table = {key: value for key, value in table.items() if key not in ("rtol", "atol", "compare")}
        if role == "inout" and self._kept[name] == "zeroed":
            role = "workspace"
            table["init"] = 0
        return {**table, "role": role}


def _merge_roles(uses: Sequence[str]) -> str:
    """Of a buffer by what its launches do with it, in their order."""
    if "FILL" in uses:
        return "FILL"
    if uses[0] == "output":
        return "output"
    return "inout" if any(use in ("output", "inout") for use in uses) else uses[0]


def _merge_open_values(known: Table | None, other: Table) -> Table:
    """What one draft leaves open another may say."""
    known = known or {}
    open_ones = {key: value for key, value in other.items() if "FILL" in str(known.get(key, "FILL"))}
    return {**known, **open_ones}


def _intersect_rules(size: str, one: Table, other: Table) -> Table:
    """What both promise. Raises BadInput: nothing keeps both promises."""
    found = {**other, **one}
    for key, choose in (("min", max), ("max", min), ("multiple_of", math.lcm)):
        values = [rule[key] for rule in (one, other) if isinstance(rule.get(key), int)]
        if values:
            found[key] = choose(*values) if len(values) > 1 else values[0]
    listed = [rule["one_of"] for rule in (one, other) if isinstance(rule.get("one_of"), list)]
    if listed:
        kept = [value for value in listed[0] if value in listed[-1] and _is_value_allowed(value, found)]
        if not kept:
            raise _nothing_left(size, one, other)
        return {"one_of": kept}
    least, most, step = found.get("min"), found.get("max"), found.get("multiple_of", 1)
    if not (isinstance(least, int) and isinstance(most, int) and isinstance(step, int)):
        return found
    if -(-least // step) * step > most:
        raise _nothing_left(size, one, other)
    return found


def _is_value_allowed(value: object, rule: Table) -> bool:
    """By the ends and the step of a rule, where it has these."""
    if not isinstance(value, int):
        return True
    least, most, step = (rule.get(key) for key in ("min", "max", "multiple_of"))
    return (
        (not isinstance(least, int) or value >= least)
        and (not isinstance(most, int) or value <= most)
        and (not isinstance(step, int) or value % step == 0)
    )


def _nothing_left(size: str, one: Table, other: Table) -> BadInput:
    fault = f"the call's launches promise of {size} what no number keeps: {one} and {other}"
    return BadInput(fault, hint=ONE_BY_ONE)


def _merge_workloads(tables: Sequence[Table], joined: _Joined) -> Table:
    """Those of the first, with sizes that only others have from workloads of the same name."""
    sizes = [name for name in joined.contract if name != "require"]
    found: Table = {}
    for workload, values in tables[0]["workloads"].items():
        known: Table = {}
        for table, names in zip(tables, joined.renames, strict=True):
            for size, value in table["workloads"].get(workload, {}).items():
                name = names.get(size, size)
                if name not in known or known[name] == "FILL":
                    known[name] = value
        told = {size: known.get(size, "FILL") for size in sizes}
        beside = {key: value for key, value in values.items() if key in ("weight", "cache")}
        found[workload] = {**told, **beside}
    return found


def _rename_words(value: Any, names: Mapping[str, str]) -> Any:
    """Expressions, which are texts, with other names in them."""
    if isinstance(value, str):
        return _WORD.sub(lambda match: names.get(match[0], match[0]), value)
    if isinstance(value, list):
        return [_rename_words(item, names) for item in value]
    return value


def fills_of(toml: str) -> int:
    return sum("FILL" in text for text in _walk_texts(tomllib.loads(toml)))


def _walk_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _walk_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk_texts(inner)
