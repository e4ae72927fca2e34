"""A source as each compiler that may build it reads it: one kernel to all of them, or none is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.predefined import Predefined, assumed
from tunesmith.expert.model.kernel import KernelModel, NotReadable
from tunesmith.expert.model.same_kernel import is_same
from tunesmith.problem.problem import Kernel

Reader = Callable[[c.Source, Predefined], KernelModel | NotReadable]


def language_of(word: str) -> c.Language:
    return "opencl" if word == "opencl" else "hip" if word == "hip" else "cuda"


def one_kernel(own: Kernel, read: Reader) -> KernelModel | NotReadable:
    """With a note for every condition that what a compiler defines has decided."""
    states = own.predefined or (assumed(own.language),)
    given = (own.text, language_of(own.language), own.defines, own.headers)
    done: list[tuple[Predefined, c.Source, KernelModel | NotReadable]] = []
    for state in states:
        source = read_source_tree(*given, predefined=state)
        alike = (m for _, s, m in done if not s.asks_toolkit and replace(s, decided=source.decided) == source)
        done.append((state, source, next(alike, None) or read(source, state)))
    _, source, first = done[0]
    if isinstance(first, NotReadable):
        return first
    for state, _, other in done[1:]:
        if not is_same(first, other):
            words = f"it is another kernel to {states[0].said_by} than to {state.said_by}"
            return NotReadable(source, None, f"{words}: say which is meant by `compiler` in [kernel]")
    said: dict[str, list[str]] = {}
    for state, source, model in done:
        for words in (model.source if source.asks_toolkit else source).decided:
            said.setdefault(words, []).append(state.said_by)
    notes = (f"{words} ({'; '.join(whose)})" for words, whose in said.items())
    return replace(first, notes=(*first.notes, *notes))
