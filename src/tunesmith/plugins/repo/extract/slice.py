"""The slice: a kernel, the declarations it needs and no more, in their order, as a text that stands alone."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import groupby

from tunesmith import backends
from tunesmith.backends.cuda import cubin as entries
from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.lab.build import Builders
from tunesmith.lab.memory import Verdict
from tunesmith.plugins.repo.extract.items import FileItem, NameUse, items_of, uses_of
from tunesmith.plugins.repo.extract.tree import (
    SUFFIXES,
    Included,
    Includes,
    ReadSources,
    SourceTree,
    TextTree,
    is_frameworks_own,
    read_sources,
)
from tunesmith.problem.problem import Launch
from tunesmith.problem.template import Variant
from tunesmith.session import place as machine
from tunesmith.source.macros import Macro
from tunesmith.source.tree import Unreadable
from tunesmith.space.expr import parse_expr

# -- Which headers of CUDA and of the C++ library a text needs, by the words in it.


# A header, and the words for which it is needed.
_BY_WORD: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (header, re.compile(words))
    for header, words in (
        ("cstdint", r"u?int(?:_fast|_least)?(?:8|16|32|64)_t|u?intptr_t|UINT\d+_MAX|INT\d+_MAX"),
        ("cstddef", r"size_t|ptrdiff_t"),
        ("cfloat", r"FLT_\w+|DBL_\w+"),
        ("climits", r"(?:U?INT|U?CHAR|U?SHRT|U?LONG|U?LLONG)_M(?:AX|IN)"),
        ("cmath", r"INFINITY|NAN|M_(?:PI|SQRT\w*|2_SQRTPI|LOG\w*|E)|HUGE_VALF?|isnan|isinf|isfinite|signbit"),
        ("cassert", r"assert"),
        ("cuda_fp16.h", r"__half2?|half2?|__\w+2half\w*|__half\w+"
         r"|__h(?:add|sub|mul|fma|max|min|lt|gt|eq|neg)\w*"
         r"|h2?(?:exp2?|rsqrt|sqrt|rcp|tanh)|make_half2"),
        ("cuda_bf16.h", r"(?:__)?nv_bfloat162?|__\w*bfloat16\w*|make_bfloat162"),
        ("cuda_fp8.h", r"__nv_fp8\w*|__nv_cvt_\w*fp8\w*"),
        ("cuda_fp4.h", r"__nv_fp4\w*|__nv_cvt_\w*fp4\w*"),
        ("cooperative_groups.h", r"cooperative_groups|cg"),
        ("curand_kernel.h", r"curand\w+"),
        ("mma.h", r"nvcuda|wmma"),
        ("cuda_pipeline.h", r"__pipeline_\w+"),
        ("type_traits", r"is_[a-z_]+|enable_if(?:_t)?|conditional(?:_t)?|(?:true|false)_type|remove_\w+"
         r"|integral_constant|decay(?:_t)?|common_type(?:_t)?|bool_constant|void_t"),
        ("limits", r"numeric_limits"),
        ("utility", r"declval|forward|move|swap|index_sequence|make_index_sequence|pair"),
        ("algorithm", r"clamp|min|max"),
        ("initializer_list", r"initializer_list"),
        ("tuple", r"tuple|tie"),
        ("array", r"array"),
        ("cmath", r"abs|exp2?|expm1|log(?:2|10|1p)?|pow|sqrt|tanh?|sin|cos|erf|floor|ceil|round|fma|fmod"
         r"|isnan|isinf|fabs|fmax|fmin"),
    )
)  # fmt: skip
_MATHS = _BY_WORD[-1][1]  # functions that CUDA has without std:: as well
# Of these a file has chosen the parts itself: its own #include is taken.
_FAMILIES = frozenset({"thrust", "cuda", "cooperative_groups"})
# NVRTC refuses the whole of CUB: its parts have headers of their own.
_CUB_PARTS = {
    **{name: f"block/{header}" for name, header in (
        ("BlockReduce", "block_reduce"), ("BlockScan", "block_scan"), ("BlockLoad", "block_load"),
        ("BlockStore", "block_store"), ("BlockExchange", "block_exchange"),
        ("BlockRadixSort", "block_radix_sort"), ("BlockHistogram", "block_histogram"),
        ("BlockMergeSort", "block_merge_sort"), ("BlockShuffle", "block_shuffle"),
        ("BlockDiscontinuity", "block_discontinuity"),
        ("BLOCK_REDUCE_WARP_REDUCTIONS", "block_reduce"), ("BLOCK_LOAD_WARP_TRANSPOSE", "block_load"),
        ("BLOCK_STORE_WARP_TRANSPOSE", "block_store"), ("BLOCK_SCAN_WARP_SCANS", "block_scan"),
        ("BLOCK_LOAD_DIRECT", "block_load"), ("BLOCK_STORE_DIRECT", "block_store"),
        ("BLOCK_LOAD_VECTORIZE", "block_load"), ("BLOCK_STORE_VECTORIZE", "block_store"),
        ("RadixSortTwiddle", "radix_rank_sort_operations"), ("Traits", "block_radix_sort"),
    )},
    "WarpReduce": "warp/warp_reduce", "WarpScan": "warp/warp_scan", "WarpMergeSort": "warp/warp_merge_sort",
}  # fmt: skip
_CUB_OPERATORS = frozenset({
    "Sum", "Max", "Min", "KeyValuePair", "ArgMax", "ArgMin", "Inequality", "Equality", "CTA_SYNC", "Log2",
})  # fmt: skip
_BEHIND_STD = frozenset(
    {"type_traits", "limits", "utility", "algorithm", "tuple", "array", "initializer_list"}
)


def is_system(name: str) -> bool:
    """Whether a header is one of CUDA's or of the C++ library's that is known here."""
    return any(name == header for header, _ in _BY_WORD) or name.startswith(("cuda", "cub/", "thrust/"))


def headers_for(
    items: Iterable[FileItem], outside: Sequence[Included], more: Iterable[str] = ()
) -> tuple[str, ...]:
    """`more`: further words, those of template arguments."""
    listed = tuple(items)
    # What a text defines itself it needs of nobody.
    words = (_all_words(listed) | frozenset(more)) - {name for item in listed for name in item.names}
    found = dict.fromkeys(_standard_headers(words, _words_after_spaces(listed, {"std"})))
    for included in outside:
        family = included.name.split("/")[0]
        if family == "cub" or "/" not in included.name:
            continue
        if family in _FAMILIES and (family in words or (family == "cooperative_groups" and "cg" in words)):
            found[f"<{included.name}>"] = None
    cub_words = _words_after_spaces(listed, _namespace_names(listed, "cub"))
    found.update(dict.fromkeys(_cub_headers(cub_words, outside)))
    if "thrust" in words and not any(name.startswith("<thrust/") for name in found):
        found["<thrust/tuple.h>"] = None
    return tuple(found)


def _namespace_names(items: Iterable[FileItem], space: str) -> frozenset[str]:
    """A namespace and its other names: `namespace other = cub;`."""
    others = (item.name for item in items if [token.text for token in item.tokens[2:4]] == ["=", space])
    return frozenset((space, *others))


def _cub_headers(used: frozenset[str], outside: Sequence[Included]) -> Iterator[str]:
    if not used:
        return
    if used <= _CUB_PARTS.keys() | _CUB_OPERATORS:
        yield from sorted({f"<cub/{_CUB_PARTS[name]}.cuh>" for name in used if name in _CUB_PARTS})
        return
    yield from sorted({f"<{one.name}>" for one in outside if one.name.startswith("cub/")}) or (
        "<cub/cub.cuh>",
    )


def _standard_headers(words: frozenset[str], scoped: frozenset[str]) -> Iterator[str]:
    for header, pattern in _BY_WORD:
        asked = scoped if header in _BEHIND_STD or pattern is _MATHS else words
        if any(pattern.fullmatch(word) for word in asked):
            yield f"<{header}>"


def _all_words(items: Iterable[FileItem]) -> frozenset[str]:
    return frozenset(token.text for item in items for token in item.tokens if token.kind == "word")


def _words_after_spaces(items: Iterable[FileItem], spaces: Collection[str]) -> frozenset[str]:
    """Words behind `std::`, `cub::` and their like."""
    return frozenset(
        name.text
        for item in items
        for first, mark, name in zip(item.tokens, item.tokens[1:], item.tokens[2:], strict=False)
        if first.text in spaces and mark.text == "::" and name.kind == "word"
    )


FRAMEWORK = "framework_types.cuh"
_DEVICE_WORDS = frozenset({"__device__", "__global__", "constexpr", "__constant__", "__shared__"})
_SYSTEM_NAMESPACES = frozenset(
    {"std", "nvcuda", "cub", "cooperative_groups", "thrust", "cuda", "cute", "cutlass"}
)
_MACRO_DEPTH = 4


@dataclass(frozen=True)
class KernelSlice:
    items: tuple[FileItem, ...]
    headers: tuple[str, ...]  # of the system, as they are spelled
    kernel: FileItem

    @property
    def uses_framework(self) -> bool:
        return any(item.path == FRAMEWORK for item in self.items)

    def text(self, note: str = "") -> str:
        """The kernel's file. `note`: comment lines at its top."""
        parts = [f"// {line}" for line in note.splitlines()]
        lines = [*parts, *([""] if parts else []), *self._include_lines()]
        return "\n".join([*lines, *(text for text, _ in _laid_out(self._without_framework()))]) + "\n"

    def at_lines(self, lines: Collection[int]) -> list[FileItem]:
        """Declarations that stand in these lines of the kernel's file without a note."""
        found, line = [], len(self._include_lines()) + 1
        for text, item in _laid_out(self._without_framework()):
            after = line + text.count("\n") + 1
            if item is not None and any(line <= one < after for one in lines):
                found.append(item)
            line = after
        return found

    def _without_framework(self) -> list[FileItem]:
        return [item for item in self.items if item.path != FRAMEWORK]

    def _include_lines(self) -> list[str]:
        lines = [f"#include {header}" for header in self.headers]
        return [*lines, *([f'#include "{FRAMEWORK}"'] if self.uses_framework else []), ""]

    def framework_text(self) -> str:
        items = [item for item in self.items if item.path == FRAMEWORK]
        head = [
            "// Types and macros that stand for a framework's: numbers of the same bits that round alike.",
            "#pragma once",
            *(f"#include {name}" for name in headers_for(items, ())),
            "",
        ]
        # As device code sees them, which is how they were read: a host's compiler need not understand them.
        lines = [
            line if line.lstrip().startswith("#") else line.replace("__host__ __device__", "__device__")
            for part, _ in _laid_out(items)
            for line in part.split("\n")
        ]
        return "\n".join([*head, *lines]) + "\n"


@dataclass(frozen=True)
class StandIns:
    """Our own types and macros for a framework's."""

    items: tuple[FileItem, ...]
    macros: Mapping[str, Macro]

    @cached_property
    def names(self) -> frozenset[tuple[tuple[str, ...], str]]:
        return frozenset((item.spaces, name) for item in self.items for name in item.names)


def stand_ins(sources: ReadSources) -> StandIns:
    items: list[FileItem] = []
    for file in sources.files:
        items += items_of(file, sources.macros, len(items))
    return StandIns(tuple(items), sources.macros)


class Slicer:
    """All declarations that a kernel's file sees, by name. `framework`: what stands for a framework's."""

    def __init__(self, sources: ReadSources, framework: StandIns) -> None:
        self._macros: Mapping[str, Macro] = {**framework.macros, **sources.macros}
        self._outside: tuple[Included, ...] = sources.outside
        self.items: list[FileItem] = list(framework.items)
        order = len(self.items)
        for file in sources.files:
            found = items_of(file, self._macros, order)
            order = found[-1].order + 1 if found else order
            self.items += (item for item in found if not _is_stood_for(item, framework))
        self._index: dict[str, list[FileItem]] = {}
        for item in self.items:
            for name in item.names:
                self._index.setdefault(name, []).append(item)
        self._namespaces = {part for item in self.items for part in item.scope}
        self._namespaces |= {item.name for item in self.items if _is_namespace_alias(item)}

    def named(self, name: str) -> list[FileItem]:
        """Everything of that name that device code could use."""
        return [item for item in self._index.get(name, ()) if self._is_device_code(item)]

    def kernels(self, name: str) -> list[FileItem]:
        """Definitions; "a::name" too."""
        *scope, last = name.removeprefix("::").split("::")
        found = [item for item in self._index.get(last, ()) if item.is_kernel and item.is_definition]
        return [item for item in found if not scope or [*item.spaces][-len(scope) :] == scope]

    def slice(
        self,
        kernel: FileItem,
        words: Iterable[str] = (),
        more: Iterable[FileItem] = (),
        gone: Collection[int] = (),
    ) -> KernelSlice:
        """`words`: names that the instantiation has, such as types and functions among template arguments;
        `more`: what a compiler misses; `gone`: declarations, by their order, that it can do without."""
        named = tuple(words)
        taken: dict[int, FileItem] = {}
        same = [item for item in self._index.get(kernel.name, ()) if item.is_kernel and item.is_definition]
        waiting = [kernel, *more, *(one for one in same if one.scope == kernel.scope and one is not kernel)]
        for word in named:
            *qualifiers, name = word.split("::")
            waiting += self._resolve_use(NameUse(name, tuple(qualifiers), 0, False), kernel)
        while waiting:
            item = waiting.pop()
            if item.order in taken or item.order in gone:
                continue
            taken[item.order] = item
            for use in uses_of(item):
                waiting += [one for one in self._resolve_use(use, item) if one.order not in taken]
            if not waiting:
                waiting += [one for one in self._operators(taken) if one.order not in gone]
        used = (*taken.values(), *self._using_directives(taken.values()))
        items = tuple(sorted(used, key=lambda item: item.order))
        parts = [part for word in named for part in word.split("::")]
        return KernelSlice(items, headers_for(items, self._outside, parts), kernel)

    def _resolve_use(self, use: NameUse, user: FileItem) -> list[FileItem]:
        found = [item for item in self._index.get(use.name, ()) if item is not user]
        if use.qualifiers and use.qualifiers != ("",):
            if use.qualifiers[-1] not in self._namespaces:
                return []
            found = [item for item in found if item.kind != "macro" and self._ends(item, use.qualifiers)]
        elif user.kind != "macro":
            visible = [
                one for one in found if one.kind == "macro" or user.scope[: len(one.scope)] == one.scope
            ]
            found = visible if use.name in user.names else visible or found
        if use.declared_here:
            found = [item for item in found if item.kind not in ("function", "variable")]
        found = [item for item in found if self._is_device_code(item)]
        ours = [item for item in found if item.path == FRAMEWORK]
        if user.path == FRAMEWORK:
            return ours or found
        others = [item for item in found if item.path != FRAMEWORK and not is_frameworks_own(item.path)]
        return others or ours or found

    def _ends(self, item: FileItem, qualifiers: tuple[str, ...]) -> bool:
        aliases = {alias.name: alias.tokens[3:] for alias in self.items if _is_namespace_alias(alias)}
        wanted: list[str] = []
        for name in filter(None, qualifiers):
            target = [token.text for token in aliases.get(name, ()) if token.kind == "word"]
            wanted += target if name in aliases else [name]
        return [*item.spaces][-len(wanted) :] == wanted

    def _is_device_code(self, item: FileItem) -> bool:
        if item.kind != "function" or item.path == FRAMEWORK:
            return True
        words = {token.text for token in item.tokens[: _head_length(item)]}
        for _ in range(_MACRO_DEPTH):
            if words & _DEVICE_WORDS:
                return True
            bodies = (self._macros[word].body for word in words if word in self._macros)
            words = {token.text for body in bodies for token in body}
        return False

    def _operators(self, taken: Mapping[int, FileItem]) -> Iterator[FileItem]:
        """Those whose operands are all known: nobody calls them by name."""
        records = {name for item in taken.values() if item.kind in ("record", "alias") for name in item.names}
        for item in self.items:
            open_one = item.operands and item.order not in taken and item.is_definition
            if open_one and records.intersection(item.operands) and self._is_device_code(item):
                yield item

    def _using_directives(self, taken: Collection[FileItem]) -> Iterator[FileItem]:
        """`using namespace`, where something is in that namespace."""
        scopes = {item.spaces for item in taken}
        words = {token.text for item in taken for token in item.tokens}
        paths = {item.path for item in taken}
        for item in self.items:
            if item.kind == "using" and item.path in paths:
                names = tuple(token.text for token in item.tokens if token.kind == "word")[2:]
                system = names[:1] and names[0] in _SYSTEM_NAMESPACES and names[-1] in words
                if system or any(_has_part(scope, names) for scope in scopes):
                    yield item


def _is_stood_for(item: FileItem, framework: StandIns) -> bool:
    """Whether it is a framework's own declaration, read in its repository, of what we have types for."""
    if not is_frameworks_own(item.path):
        return False
    words = item.operands or item.names
    return not framework.names.isdisjoint((item.spaces, word) for word in words)


def _head_length(item: FileItem) -> int:
    return next((at for at, token in enumerate(item.tokens) if token.text == "{"), len(item.tokens))


def _is_namespace_alias(item: FileItem) -> bool:
    return item.kind == "alias" and item.tokens[0].text == "namespace"


def _has_part(scope: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return any(scope[at : at + len(names)] == names for at in range(len(scope)))


def _laid_out(items: Sequence[FileItem]) -> Iterator[tuple[str, FileItem | None]]:
    """Declarations within their namespaces and conditions, line by line or several lines at once."""
    for (scope, guards), group in groupby(items, key=lambda item: (item.scope, item.guards)):
        yield from ((f"#if {guard}", None) for guard in guards)
        if scope:
            yield " ".join(f"namespace {name} {{" if name else "namespace {" for name in scope), None
            yield "", None
        for item in group:
            yield _without_gaps(item.text), item
            if item.kind != "macro" or "\n" in item.text:
                yield "", None
        if scope:
            names = "::".join(name for name in scope if name)
            yield "}" * len(scope) + (f"  // namespace {names}" if names else "  // namespace"), None
            yield "", None
        yield from (("#endif", None) for _ in guards)


def _without_gaps(text: str) -> str:
    """Without the empty lines that undone conditions leave."""
    lines: list[str] = []
    for line in text.split("\n"):
        clean = line.rstrip()
        if clean or (lines and lines[-1]):
            lines.append(clean)
    return "\n".join(lines).strip("\n")


# -- A slice that compiles: what a compiler misses is looked for, what it can do without is left out.


RELAXED = "--expt-relaxed-constexpr"
_MISSING = re.compile(
    r'identifier "(\w+)" is undefined|has no member "(\w+)"|"(\w+)" is not a template'
    r'|name followed by "::" must be a class|(\w+) is undefined'
)
_UNMARKED = re.compile(
    r"without execution space annotations|calling a (?:constexpr )?__host__ function|relaxed-constexpr"
)
_ERROR = re.compile(r"^kernel\.cu\((\d+)\): error", re.MULTILINE)
_MAX_ROUNDS = 12
_MAX_TRIES = 120


@dataclass(frozen=True)
class BuildAttempt:
    """What came of compiling: `digest` of the machine code, or the compiler's words."""

    digest: str
    log: str = ""
    compiler: str = ""
    code: str = ""  # digest of the kernel's own machine code, as captures have it; empty: not known
    capability: int = 0  # that it was compiled for, 90 for sm_90; 0: not known

    @property
    def ok(self) -> bool:
        return bool(self.digest)


@dataclass(frozen=True)
class FittedSlice:
    slice: KernelSlice
    flags: tuple[str, ...]
    attempt: BuildAttempt
    added: tuple[str, ...] = ()  # names that the compiler missed at first
    left_out: int = 0  # declarations of the first slice that were not needed
    dropped: frozenset[int] = frozenset()  # overloads that do not compile, by their order


Build = Callable[[KernelSlice, tuple[str, ...]], BuildAttempt]


def compiled_slice(
    slicer: Slicer, kernel: FileItem, words: Sequence[str], flags: tuple[str, ...], build: Build
) -> FittedSlice:
    """The slice with what the compiler says is missing, as far as the repository has it; overloads and
    specialisations that do not compile are left out: the kernel may mean another one."""
    more: dict[int, FileItem] = {}
    added: list[str] = []
    dropped: set[int] = set()
    for _ in range(_MAX_ROUNDS):
        found = slicer.slice(kernel, words, more.values(), dropped)
        attempt = build(found, flags)
        if attempt.ok:
            break
        if RELAXED not in flags and _UNMARKED.search(attempt.log):
            flags = (*flags, RELAXED)
            continue
        missing = {name for groups in _MISSING.findall(attempt.log) for name in groups if name}
        there = {item.order for item in found.items}
        new = [item for name in sorted(missing) for item in slicer.named(name) if item.order not in there]
        new = [item for item in new if item.order not in dropped]
        if not new:
            if not (broken := _broken_overloads(found, attempt.log)):
                break
            dropped |= broken
        more.update({item.order: item for item in new})
        added += sorted({item.name for item in new})
    return FittedSlice(found, flags, attempt, tuple(dict.fromkeys(added)), dropped=frozenset(dropped))


def _broken_overloads(found: KernelSlice, log: str) -> set[int]:
    """Declarations with an error in them that have others of their name beside them."""
    counts = Counter(name for item in found.items for name in item.names)
    broken = [
        item
        for item in found.at_lines({int(line) for line in _ERROR.findall(log)})
        if item.name != found.kernel.name
        and item.kind in ("function", "record", "alias")
        and (_is_free(item) or any(counts[name] > 1 for name in item.names))
    ]
    gone = Counter(item.name for item in broken)  # the last of a name stays
    return {item.order for item in broken if _is_free(item) or gone[item.name] < counts[item.name]}


def _is_free(item: FileItem) -> bool:
    """An operator, or `using other::name;`: others may serve as well, or the compiler will miss it."""
    words = [token.text for token in item.tokens]
    return bool(item.operands) or (words[:1] == ["using"] and "=" not in words)


def trim_slice(
    slicer: Slicer, fitted: FittedSlice, words: Sequence[str], build: Build, goes_on: Callable[[], bool]
) -> FittedSlice:
    """Without overloads, specialisations and operators that leave the machine code as it is.

    Names alone tell that one of them may be meant; only the compiler knows which.
    """
    if not fitted.attempt.ok:
        return fitted
    first = fitted.slice
    added = [item for name in fitted.added for item in slicer.named(name)]
    counts = Counter(name for item in first.items for name in item.names)
    doubtful = [
        item
        for item in first.items
        if item is not first.kernel
        and not item.guards  # which may be for another device
        and (item.operands or any(counts[name] > 1 for name in item.names) or item in added)
        and item.kind in ("function", "record", "alias", "variable")
    ]
    gone: set[int] = set(fitted.dropped)
    best, tries = first, 0
    waiting = [doubtful] if doubtful else []
    while waiting and tries < _MAX_TRIES and goes_on():
        part = waiting.pop(0)
        tried = gone | {item.order for item in part}
        tries += 1
        found = slicer.slice(first.kernel, words, added, tried)
        attempt = build(found, fitted.flags)
        if attempt.digest == fitted.attempt.digest:
            gone, best = tried, found
        elif len(part) > 1:
            middle = len(part) // 2
            waiting += [part[:middle], part[middle:]]
    left_out = len(first.items) - len(best.items)
    return replace(fitted, slice=best, left_out=left_out)


# -- Slices compiled here, in workers, for the device that is here or the usual one.


KERNEL_FILE = "kernel.cu"
_ONE = (parse_expr("1"),)


@dataclass(frozen=True)
class SliceBuilder:
    """One compiler, by name; `entry`: the instance that is asked for."""

    builders: Builders
    compiler: str
    entry: str
    defines: tuple[tuple[str, str], ...]
    capability: int = 0

    def __call__(self, found: KernelSlice, flags: tuple[str, ...]) -> BuildAttempt:
        given = "".join(f"#define {name} {value}\n" for name, value in self.defines)
        given += "#line 1\n" if given else ""  # faults have the slice's own lines
        text = given + found.text()
        headers = ((FRAMEWORK, found.framework_text()),) if found.uses_framework else ()
        launch = Launch(self.entry, _ONE, _ONE, ())
        variant = Variant(KERNEL_FILE, text, "cuda", flags, (launch,), (), headers=headers)
        code = self.builders.start(variant).result()
        if isinstance(code, Verdict):
            return BuildAttempt("", code.detail, self.compiler)
        symbols, cubin = entries.unpack(code.binary)
        digest = Cubin(cubin).kernel_digest(symbols[self.entry])
        return BuildAttempt(code.code_digest, "", self.compiler, digest, self.capability)


@contextmanager
def slice_builders(entry: str, defines: tuple[tuple[str, str], ...]) -> Iterator[tuple[SliceBuilder, ...]]:
    """One for each compiler here, the quickest first."""
    known = backends.list_compilers("cuda") or ()
    if not known:
        toolchain = backends.find_toolchain("cuda")
        missing = toolchain.none_here if toolchain else "there is no CUDA compiler here"
        raise DeviceMissing(missing, hint=toolchain.how_to_install("") if toolchain else None)
    with machine.temporary_scratch() as scratch, ExitStack() as until:
        place = machine.WorkerSite("cuda", scratch)
        device = machine.choose_device(machine.find_local_devices(place), None)
        made = []
        for name, _ in known:
            builders = machine.make_builders(place, device, 1, name)
            until.callback(builders.close)
            made.append(SliceBuilder(builders, name, entry, defines, device.limits.capability))
        yield tuple(made)


# -- Where in a repository a kernel is defined, and what is read to slice it.


_DEFINITION = re.compile(r"__global__[^;{}()]*?(?:\([^;{}]*?\)[^;{}()]*?)*?\b([^\W\d]\w*)\s*\(")
Pairs = tuple[tuple[str, str], ...]


class NoSuchKernel(BadInput):
    """The sources define none of that name."""


@dataclass(frozen=True)
class FoundKernel:
    """A kernel's definition, with all that its file sees."""

    item: FileItem
    sources: ReadSources
    slicer: Slicer


@cache
def framework_stand_ins() -> StandIns:
    text = files("tunesmith.plugins.repo.extract").joinpath("headers", FRAMEWORK).read_text()
    tree = TextTree(((FRAMEWORK, text),))
    return stand_ins(read_sources(tree, (FRAMEWORK,), Includes(tree)))


def find_kernel(
    tree: SourceTree, name: str, file: str | None = None, folders: Sequence[str] = (), defines: Pairs = ()
) -> FoundKernel:
    """The kernel of that name, "space::name" too. Raises BadInput: there is none, or there are several."""
    plain = name.split("<")[0].strip().removeprefix("::")
    last = plain.split("::")[-1]
    paths = _files_with(tree, last, file)
    includes = Includes(tree, folders)
    found: list[FoundKernel] = []
    troubles: list[str] = []
    for path in paths:
        try:
            sources = read_sources(tree, (path,), includes, defines)
        except Unreadable as trouble:
            troubles.append(f"{path}: {trouble.reason}")
            continue
        slicer = Slicer(sources, framework_stand_ins())
        here = [item for item in slicer.kernels(plain) if item.path == path]
        found += [FoundKernel(item, sources, slicer) for item in _one_each(here)]
    if not found:
        raise _missing_kernel_error(tree, last, file, troubles)
    if len(found) > 1:
        places = ", ".join(f"{one.item.place} ({one.item.qualified_name})" for one in found[:8])
        hint = f"choose one with --file, for example: --file {found[0].item.path}"
        if len({kernel.item.path for kernel in found}) == 1:
            hint = f"choose one by its namespace, for example: --kernel {found[0].item.qualified_name}"
        raise BadInput(f"{len(found)} kernels are called {last}: {places}", hint=hint)
    return found[0]


def _one_each(items: Sequence[FileItem]) -> list[FileItem]:
    """Overloads and specialisations belong together: the longest stands for them, the general one first."""
    best: dict[tuple[str, ...], FileItem] = {}
    for item in sorted(items, key=lambda item: (_is_special(item), -len(item.text))):
        best.setdefault(item.scope, item)
    return list(best.values())


def _is_special(item: FileItem) -> bool:
    return [token.text for token in item.tokens[:3]] == ["template", "<", ">"]


def _files_with(tree: SourceTree, name: str, file: str | None) -> list[str]:
    if file is not None:
        exact = [path for path in tree.paths if path == file or path.endswith(f"/{file}")]
        if not exact:
            close = difflib.get_close_matches(file, tree.paths, n=1, cutoff=0.4)
            hint = f"did you mean: --file {close[0]}" if close else "it counts from the repository's top"
            raise BadInput(f"the repository has no file {file}", hint=hint)
        return exact
    word = re.compile(rf"\b{re.escape(name)}\b")
    texts = ((path, tree.read(path)) for path in tree.paths if path.endswith(SUFFIXES))
    return [path for path, text in texts if "__global__" in text and word.search(text)]


def _missing_kernel_error(
    tree: SourceTree, name: str, file: str | None, troubles: Sequence[str]
) -> NoSuchKernel:
    if troubles:
        fault = f"no kernel {name} could be read: {troubles[0]}"
        return NoSuchKernel(fault, hint="--file names the file to read")
    known: dict[str, str] = {}
    for path in tree.paths:
        if path.endswith(SUFFIXES) and (file is None or path == file or path.endswith(f"/{file}")):
            known |= dict.fromkeys(_DEFINITION.findall(tree.read(path)), path)
    if name in known:
        fault = f"{known[name]} speaks of a kernel {name}, but no definition of it can be read there"
        return NoSuchKernel(fault, hint="is it whole, more than declared, and switched on? --define NAME")
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    if close:
        hint = f"did you mean: --kernel {close[0]}" + (f" (or {', '.join(close[1:])})" if close[1:] else "")
    elif known:
        hint = f"it defines {len(known)}, for example {', '.join(sorted(known)[:5])}"
    else:
        hint = "no file of it has a function marked __global__; kernels that a macro names are not seen"
    where = f"{file} defines" if file else "the repository defines"
    return NoSuchKernel(f"{where} no kernel called {name}", hint=hint)
