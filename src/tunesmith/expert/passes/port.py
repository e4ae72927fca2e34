"""What a move is: one performance choice made a parameter, or a sentence that says why it cannot be.

Each has a file of its own with everything that is known of it, and a place in the list of this package. It
looks at the model and the contract, and where its precondition is proved adds a choice to the draft's
schedule. What makes it worthwhile and which remedies it is follow from its parameter's name and what the move
says of the kernel (`problem/usual`); only what holds for one kernel alone is a `prefer` or an answer of the
draft. What a choice must fulfil to be legal the writer states beside the code that relies on it. A move never
changes what is computed: the writer prints the choice, the search decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, get_args

from tunesmith import backends
from tunesmith.backends.port import TuningFlags
from tunesmith.expert.model.kernel import ParameterChoice, Schedule, TemplateDraft
from tunesmith.expert.writing.naming import Pairs, distinct
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Remedy


class Noted(Protocol):
    """A draft: its choices can be told what they are."""

    def noted(self, notes: Mapping[str, str]) -> Self: ...


AnyDraft = TypeVar("AnyDraft", bound=Noted)
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Context:
    """What a move may know beside the kernel: the contract, and the limits of the device."""

    problem: Problem
    device: Device
    number: str = ""  # of the kernel in a call that has several: its parameters end with it

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
        name = f"{name}_{self.number}" if self.number else name
        while name in self.taken:
            name += "_"
        return name


Turn = Literal["sharing", "seldom", "anywhere", "afterwards", "compiler"]
TURNS: tuple[Turn, ...] = get_args(Turn)


@dataclass(frozen=True)
class Move(Generic[AnyDraft]):
    """On the model of a kernel (`TemplateDraft`), or on its text (`LocalDraft`)."""

    name: str
    needs: str  # its precondition, in words; of a move on the text: where it is refused
    remedies: tuple[Remedy, ...]  # what it can answer; which of them a template does is in its `answers`
    # When it is tried with nothing else known: at once, because such values hang together; soon, since it
    # seldom applies and pays where it does; later; in no first round, since it remedies what sharing the work
    # may have remedied by then; last, since it costs a build for every size or only guides the compiler.
    turn: Turn
    parameters: tuple[tuple[str, str], ...]  # its choices by name, each with what it says
    function: Callable[..., AnyDraft | str]
    # Where it would act: arrays, loops with their lines, sizes; "" for the kernel as a whole.
    places: Callable[[Any, Context], str]
    stays_open: bool  # what is best here shifts with every other move
    of_file: bool = False  # it acts on the whole file, or its build: once for all kernels of a call

    def apply(self, draft: AnyDraft, context: Context) -> AnyDraft | str:
        """The draft with the move's choice; or why it does not apply, in words."""
        notes = {context.macro(name): note for name, note in self.parameters}
        changed = self.function(draft, context, *notes)
        return changed if isinstance(changed, str) else changed.noted(notes)

    @property
    def about(self) -> str:
        """What it does, in one sentence: the first paragraph of its docstring."""
        first = (self.function.__doc__ or "").strip().split("\n\n")[0]
        return " ".join(first.split())


def move(
    name: str,
    *,
    needs: str,
    turn: Turn,
    remedies: tuple[Remedy, ...],
    places: Callable[[Any, Context], str] = lambda _draft, _context: "",
    stays_open: bool = False,
    of_file: bool = False,
    **parameters: str,
) -> Callable[[Callable[..., AnyDraft | str]], Move[AnyDraft]]:
    """Makes a move of a function of the draft, the context, and the names of its parameters.

    `parameters` are its choices, with what each says, before `Context.macro` makes them unlike the source's
    words.
    """
    listed = tuple(parameters.items())
    return lambda function: Move(name, needs, remedies, turn, listed, function, places, stays_open, of_file)


def extend(
    draft: TemplateDraft,
    move: str,
    choice: ParameterChoice | Mapping[str, ParameterChoice],
    prefer: Pairs = (),
    answers: Pairs = (),
    **facts: str | int,
) -> TemplateDraft:
    """The draft with a move's choice, or several by role, and what it tells of the kernel."""
    choices = {move: choice} if isinstance(choice, ParameterChoice) else choice
    return replace(
        told(draft, **facts),
        schedule=draft.schedule.having(**choices),
        prefer=distinct(draft.prefer, prefer),
        answers=either(draft.answers, answers),
        moves=(*draft.moves, move),
    )


def told(draft: TemplateDraft, **facts: str | int) -> TemplateDraft:
    """With what the usual rules have to know of the kernel (`problem/usual`); "" is not known."""
    known = {name: str(fact) for name, fact in facts.items() if fact != ""}
    return replace(draft, shape=tuple({**dict(draft.shape), **known}.items()))


def product(schedule: Schedule, *roles: str) -> str:
    """Of parameters, as text; what is no parameter counts as 1."""
    return " * ".join(schedule[role].name for role in roles if role in schedule) or "1"


def either(have: Pairs, more: Pairs) -> tuple[tuple[str, str], ...]:
    """A remedy that several moves answer is there where one of them is."""
    found = dict(have)
    for name, text in more:
        name = str(name)
        before = found.get(name)
        found[name] = text if before is None or before == text else f"{before} or {text}"
    return tuple(found.items())
