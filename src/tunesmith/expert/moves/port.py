"""What a move is: one performance choice made a parameter, or a sentence that says why it cannot be.

A move looks at the model and the contract, and where its precondition is proved adds a choice to the draft's
schedule, with what makes it worthwhile (`prefer`) and which remedies it is (`answers`). What a choice must
fulfil to be legal the writer states beside the code that relies on it. A move never changes what is computed:
the writer prints the choice, the search decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from tunesmith import backends
from tunesmith.backends.port import TuningFlags
from tunesmith.expert.model.kernel import ParameterChoice, Schedule, TemplateDraft
from tunesmith.expert.writing.naming import Pairs, distinct
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Remedy

AnyDraft = TypeVar("AnyDraft")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Context:
    """What a move may know beside the kernel: the contract, and the limits of the device."""

    problem: Problem
    device: Device

    @property
    def language(self) -> str:
        return self.problem.kernel.language

    @property
    def flags(self) -> TuningFlags:
        """Of the backend that runs the kernel's language."""
        own = backends.kind_for(self.language)
        return own.flags if own is not None else TuningFlags()

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


@dataclass(frozen=True)
class Move(Generic[AnyDraft]):
    """On the model of a kernel (`TemplateDraft`), or on its text (`LocalDraft`)."""

    name: str
    remedies: tuple[Remedy, ...]  # what it can answer; which of them a template does is in its `answers`
    parameters: tuple[str, ...]  # its choices, before `Context.macro` makes them unlike the source's words
    function: Callable[..., AnyDraft | str]

    def apply(self, draft: AnyDraft, context: Context) -> AnyDraft | str:
        """The draft with the move's choice; or why it does not apply, in words."""
        return self.function(draft, context, *map(context.macro, self.parameters))

    @property
    def about(self) -> str:
        """What it does: the first paragraph of its docstring."""
        return " ".join((self.function.__doc__ or "").strip().split("\n\n")[0].split())


def move(
    name: str, remedies: tuple[Remedy, ...], *parameters: str
) -> Callable[[Callable[..., AnyDraft | str]], Move[AnyDraft]]:
    """Makes a move of a function of the draft, the context, and the names of its parameters."""
    return lambda function: Move(name, remedies, parameters, function)


def extend(
    draft: TemplateDraft,
    move: str,
    choice: ParameterChoice | Mapping[str, ParameterChoice],
    prefer: Pairs = (),
    answers: Pairs = (),
) -> TemplateDraft:
    """The draft with a move's choice, or several by field of the schedule, and its conditions."""
    choices = {move: choice} if isinstance(choice, ParameterChoice) else choice
    return replace(
        draft,
        schedule=draft.schedule.having(**choices),
        prefer=distinct(draft.prefer, prefer),
        answers=either(draft.answers, answers),
        moves=(*draft.moves, move),
    )


def product(schedule: Schedule, *roles: str) -> str:
    """Of parameters, as text; what is no parameter counts as 1."""
    return " * ".join(schedule[role].name for role in roles if role in schedule) or "1"


def alone(name: str, default: int, others: Iterable[ParameterChoice | None]) -> list[tuple[str, str]]:
    """What only steers the compiler is tried one by one: together such settings work against each other."""
    return [
        (f"{name.lower()}_or_{c.name.lower()}", f"{name} == {default} or {c.name} == {c.default}")
        for c in others
        if c is not None
    ]


NO_CAP = 255  # registers: all that a thread can have
AS_TODAY = 5  # ptxas's own default, of 0 to 10
FlagChoice = tuple[ParameterChoice, str, tuple[Remedy, str]]  # with its flag, and what it answers


def register_cap(context: Context, name: str) -> FlagChoice | str:
    """For a draft of either kind; or why registers are not capped."""
    if not context.flags.register_cap:
        return f"no flag caps registers in {context.language}"
    if any("maxrregcount" in flag for flag in context.problem.kernel.flags):
        return "the problem's own flags cap registers already"
    choice = ParameterChoice(name, (32, 64, 128, NO_CAP), NO_CAP, "registers of a thread, at most")
    flag = context.flags.register_cap.format(f"{{{name}}}")
    return choice, flag, (Remedy.REGISTER_CAP, f"{name} < {NO_CAP}")


def saving_level(context: Context, name: str) -> FlagChoice | str:
    """The same of a flag that says how hard the assembler should try."""
    if not context.flags.register_level:
        return f"no build flag of {context.language} takes a number that tunes"
    choice = ParameterChoice(name, (0, AS_TODAY, 10), AS_TODAY, "how hard ptxas saves registers")
    flag = context.flags.register_level.format(f"{{{name}}}")
    return choice, flag, (Remedy.COMPILER_FLAGS, f"{name} != {AS_TODAY}")


def either(have: Pairs, more: Pairs) -> tuple[tuple[str, str], ...]:
    """A remedy that several moves answer is there where one of them is."""
    found = dict(have)
    for name, text in more:
        name = str(name)
        before = found.get(name)
        found[name] = text if before is None or before == text else f"{before} or {text}"
    return tuple(found.items())
