"""A slice that compiles: what a compiler misses is looked for, what it can do without is left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tunesmith.session.extract.items import FileItem
from tunesmith.session.extract.slicing import KernelSlice, Slicer

RELAXED = "--expt-relaxed-constexpr"
_MISSING = re.compile(
    r'identifier "(\w+)" is undefined|has no member "(\w+)"|"(\w+)" is not a template'
    r'|name followed by "::" must be a class|(\w+) is undefined'
)
_UNMARKED = re.compile(
    r"without execution space annotations|calling a (?:constexpr )?__host__ function|relaxed-constexpr"
)
_ERROR = re.compile(r"^kernel\.cu\((\d+)\): error", re.MULTILINE)
_MOST_ROUNDS = 12
_MOST_TRIES = 120


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
    for _ in range(_MOST_ROUNDS):
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


def trimmed(
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
    while waiting and tries < _MOST_TRIES and goes_on():
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
