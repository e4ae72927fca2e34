"""What a move is: one performance choice made a parameter, or a sentence that says why it cannot be.

A move looks at the model and the contract, and where its precondition is proved adds a choice to the draft's
schedule, with what makes it worthwhile (`prefer`) and which remedies it is (`answers`). What a choice must
fulfil to be legal the writer states beside the code that relies on it; a move adds what only it knows
(`require`). It never changes what is computed: the writer prints the choice, the search decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Remedy

Pairs = Iterable[tuple[str, str]]

AnyDraft = TypeVar("AnyDraft")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class NotApplicable:
    """Why a move does not apply, in words."""

    reason: str


@dataclass(frozen=True)
class Context:
    """What a move may know beside the kernel: the contract, and the limits of the device."""

    problem: Problem
    device: Device

    @property
    def language(self) -> str:
        return self.problem.kernel.language

    @property
    def on_cpu(self) -> bool:
        return self.device.kind == "cpu"

    @cached_property
    def taken(self) -> frozenset[str]:
        """Words that a macro must not replace."""
        problem = self.problem
        texts = (problem.kernel.text, *(text for _, text in problem.kernel.headers))
        words = {word for text in texts for word in _WORD.findall(text)}
        words |= {argument.name for argument in problem.arguments}
        return frozenset(words.union(problem.size_names, (name for name, _ in problem.kernel.defines)))

    def macro(self, name: str) -> str:
        """The name for a parameter: its own, unless the source or the problem means something else by it."""
        while name in self.taken:
            name += "_"
        return name


class Move(Protocol[AnyDraft]):
    """On the model of a kernel (`TemplateDraft`), or on its text (`LocalDraft`)."""

    @property
    def name(self) -> str: ...
    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What it can answer; which of them a template answers where is in its `answers`."""
        ...

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its choices, before `Context.macro` makes them unlike the source's own words."""
        ...

    def apply(self, draft: AnyDraft, context: Context) -> AnyDraft | NotApplicable: ...


def extend(
    draft: TemplateDraft,
    move: Move[TemplateDraft],
    choices: Mapping[str, ParameterChoice],
    require: Pairs = (),
    prefer: Pairs = (),
    answers: Pairs = (),
) -> TemplateDraft:
    """The draft with a move's choices, by field of the schedule, and its conditions."""
    return replace(
        draft,
        schedule=replace(draft.schedule, **choices),
        require=distinct(draft.require, require),
        prefer=distinct(draft.prefer, prefer),
        answers=either(draft.answers, answers),
        moves=(*draft.moves, move.name),
    )


def product(*choices: ParameterChoice | None) -> str:
    """Of parameters, as text; what is no parameter counts as 1."""
    return " * ".join(choice.name for choice in choices if choice is not None) or "1"


def distinct(have: Pairs, more: Pairs) -> tuple[tuple[str, str], ...]:
    """Conditions by name; a name that stands for something else already gets a number."""
    found = dict(have)
    for name, text in more:
        if text in found.values():
            continue
        free, number = name, 2
        while free in found:
            free, number = f"{name}_{number}", number + 1
        found[free] = text
    return tuple(found.items())


def either(have: Pairs, more: Pairs) -> tuple[tuple[str, str], ...]:
    """A remedy that several moves answer is there where one of them is."""
    found = dict(have)
    for name, text in more:
        name = str(name)
        before = found.get(name)
        found[name] = text if before is None or before == text else f"{before} or {text}"
    return tuple(found.items())
