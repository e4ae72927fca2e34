"""Blocks that a kernel may be launched with: those of the file, of its numbers, or usual ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tunesmith.csource.binding import bind
from tunesmith.csource.inline import inline
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.walk import names_in
from tunesmith.expert.reading.bare_text import BareKernel
from tunesmith.expert.reading.launches import FILL, translate

AXES = "xyz"
_THREADS_WORD = re.compile(r"block|thread|tpb|tile|wg", re.IGNORECASE)
_TIMES = re.compile(r"\b(?:hipB|b)lockIdx\s*[._]\s*([xyz])\s*\*\s*(\w+)")
_SHARED = re.compile(r"(?:__shared__|__local|\blocal)\s+[\w\s]+?\w+((?:\s*\[[^\]]*\])+)")
_OPENCL_INDEX = re.compile(r"\bget_(local|group|global)_id\s*\(\s*([012])\s*\)")
_CUDA_INDEX = re.compile(r"\b(?:hip)?([Tt]hread|[Bb]lock)Idx\s*[._]\s*([xyz])\b")
_USUAL: Mapping[int, tuple[tuple[int, ...], ...]] = {
    1: ((256,), (128,), (64,), (32,), (512,), (1024,)),
    2: ((32, 8), (16, 16), (32, 4), (32, 32), (8, 8)),
    3: ((32, 4, 2), (8, 8, 8), (8, 8, 4)),
}


def likely_blocks(bare: BareKernel) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Blocks, and whether the file itself says so; the likeliest first."""
    found: dict[tuple[str, ...], bool] = {}
    if FILL not in bare.launch.block:
        found[bare.launch.block] = True
    axes = used_axes(bare, "thread") or "x"
    for candidate in _own_blocks(bare, axes):
        found.setdefault(candidate, True)
    for usual in _USUAL[len(axes)]:
        found.setdefault(_along(axes, usual), False)
    yield from found.items()


def _own_blocks(bare: BareKernel, axes: str) -> Iterator[tuple[str, ...]]:
    """Blocks that the text tells of: what a block's number is times, bounds, constants, shared rows."""
    constants = {**dict(bare.source.constants), **dict(bare.bound)}

    def value(text: str) -> int:
        said = translate(text, {}, constants)
        return int(said) if said is not None and said.isdecimal() else 0

    times = {axis: n for axis, text in _TIMES.findall(bare.text) if (n := value(text)) > 1}
    bounds = [value(text) for text in (bare.kernel.launch_bounds or ())[:1]]
    named = [value(text) for name, text in constants.items() if _THREADS_WORD.search(name)]
    rows = [
        [value(text.strip()) for text in re.findall(r"\[([^\]]*)\]", dimensions)]
        for dimensions in _SHARED.findall(bare.text)
    ]
    if len(axes) == 1:
        first = times.get(axes[-1], 0)
        numbers = [first * 32 if 0 < first < 32 else first, first, *bounds, *named]
        numbers += [n for row in rows if len(row) == 1 for n in row if n > 32]
        yield from (_along(axes, (n,)) for n in numbers if 1 < n <= 1024)
        return
    for usual in _USUAL[len(axes)] if times else ():
        yield _along(axes, tuple(times.get(axis, n) for axis, n in zip(axes, usual, strict=True)))
    for n in [n for n in named if 1 < n <= 32]:
        yield _along(axes, (n, *(n if n * n <= 1024 else 1 for _ in axes[1:2]), *(1 for _ in axes[2:])))


def _along(axes: str, numbers: Sequence[int]) -> tuple[str, ...]:
    """Numbers along some axes, 1 along those before them."""
    along = dict(zip(axes, numbers, strict=True))
    last = AXES.index(axes[-1])
    return tuple(str(along.get(axis, 1)) for axis in AXES[: last + 1])


def used_axes(bare: BareKernel, kind: str) -> str:
    """Axes of `thread` or `block` numbers that the kernel asks for; x where it seems to ask for neither."""
    text = _inlined_text(bare)
    used = {axis for word, axis in _CUDA_INDEX.findall(text) if word.lower() == kind}
    group = "group" if kind == "block" else "local"
    used |= {AXES[int(at)] for word, at in _OPENCL_INDEX.findall(text) if word in ("global", group)}
    seen = _CUDA_INDEX.search(text) or _OPENCL_INDEX.search(text)
    return "".join(axis for axis in AXES if axis in used) or ("" if seen else "x")


def _inlined_text(bare: BareKernel) -> str:
    """The names that the kernel and its helpers use, or the whole file where they are not found."""
    try:
        source = read_source_tree(bare.text, bare.language, bare.defines, bare.headers)
        bound = bind(source, bare.entry)
        if isinstance(bound, str) or len(bare.source.kernels) == 1:
            return bare.text
        found = names_in(inline(bound.function, source).function.body)
        return " ".join(found) if any("Idx" in name for name in found) else bare.text
    except (Unreadable, RecursionError):
        return bare.text
