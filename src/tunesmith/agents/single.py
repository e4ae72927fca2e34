"""One conversation that plays every role: it is told what the lab found, and replies with the next kernel.

Each request is the whole conversation so far. Where it grows too long, old turns are shortened, the oldest
first; the kernel as it is, the last reply and the best kernel stay whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tunesmith.agents import material, prompting
from tunesmith.agents.prompting import (
    NoAnswer,
    PromptPart,
    StopReply,
    Unusable,
    fence_with_backticks,
    shorten_middle,
)
from tunesmith.agents.roles import ModelAuthor, to_measure
from tunesmith.problem.problem import Problem
from tunesmith.run.budget import last_written, rounds_begun
from tunesmith.run.events import SINGLE, Decided, Exchange, Message, Question, Reply, tokens_of
from tunesmith.run.ports import Declined, Written
from tunesmith.run.prior import in_view
from tunesmith.run.rounds import leading_candidate, round_reports
from tunesmith.run.state import State

CONVERSATION = 40_000  # tokens that a request may have, if shortening old turns can reach it
OLD_WORDS = 600  # characters that are left of an old turn
NOTED = 400  # of the words around a kernel, for the report
_LEFT_OUT = "(the file that was here is left out)"


def read_turn(reply: Reply) -> str | StopReply | Unusable:
    """A whole kernel, or the word that there will be no other."""
    if prompting.MARK not in reply.text:
        stop = prompting.read_json(reply, StopReply)
        if isinstance(stop, StopReply):
            return stop
    return prompting.read_kernel(reply)


@dataclass(frozen=True)
class SinglePlanner:
    """Decides nothing but whether the conversation goes on."""

    problem: Problem

    def decide(self, state: State) -> Decided:
        if (found := to_measure(state)) is not None:
            return found
        last = last_said(state)
        if last is not None and last.reply is None:
            return Decided("finish", f"the model did not answer: {last.failed}")
        said = read_turn(last.reply) if last is not None and last.reply is not None else None
        if isinstance(said, StopReply):
            return Decided("finish", said.why)
        best = leading_candidate(self.problem, state)
        why = "the conversation begins" if last is None else "the conversation goes on"
        return Decided("refactor", why, (), best.id if best else "")


@dataclass(frozen=True)
class SingleWriter(ModelAuthor):
    concrete: bool = True
    lessons: str = field(default="", kw_only=True)  # of earlier runs

    def write(self, state: State, decision: Decided) -> Written | Declined | Question:
        turn = state.this_turn(SINGLE)
        found: str | StopReply | Question | NoAnswer = prompting.settle_turn(
            "model",
            turn,
            state.settings.repairs,
            read_turn,
            lambda: self._next(state, bool(turn)),
            state.drafts(),
            lambda why: self._go_on(state, prompting.refusal_message(why, "turn")),
        )
        if isinstance(found, Question):
            return found
        if isinstance(found, NoAnswer):
            return Declined(str(found))
        if isinstance(found, StopReply):
            return Declined(f"the model stops: {found.why}")
        assert turn[-1].reply is not None, "what was read was said"
        noted = words_around(turn[-1].reply.text)
        return Written(found, decision.moves, notes=(noted,) if noted else (), author=self.name)

    def _next(self, state: State, is_repair: bool) -> Question:
        """The first message, what the lab says of the last kernel, or why it has to be corrected."""
        before = state.written
        rejected = before[-1].rejected if before else None
        if is_repair and rejected is not None:
            why = shorten_middle(rejected.reason, material.LONGEST_REASON)
            return self._go_on(state, prompting.refusal_message(why, "turn"))
        if last_said(state) is None:
            opening = prompting.build_messages(self.prompt, self._opening(state))
            return Question(SINGLE, opening, "turn", self._example())
        return self._go_on(state, prompting.fit_material(self._news(state)))

    def _opening(self, state: State) -> list[PromptPart]:
        """Everything a planner and an author would be told."""
        return [
            *self._stable(state),
            material.lessons_part(self.lessons),
            *material.ideas_parts(state, self.catalogue),
            prompting.shape_part(self._example()),
            *material.standing_parts(self.problem, state),
            PromptPart("Your turn", _turn_words(state)),
        ]

    def _news(self, state: State) -> list[PromptPart]:
        """What came of the round before this one."""
        last = round_reports(self.problem, state)[-2]
        kernel = last.drafts[-1].template if last.drafts else ""
        lines = [f"Result: {shorten_middle(last.verdict, material.LONGEST_REASON)}"]
        if kernel and last.speedup is not None:
            measured = material.measured_lines(self.problem, state, kernel)
            lines = [f"Kernel {kernel} is right.", *measured, *lines]
        seen = in_view(self.problem, state)
        is_seen = seen is not None and seen.candidate == kernel
        return [
            PromptPart(
                f"The laboratory on {f'kernel {kernel}' if kernel else 'your reply'}", "\n".join(lines)
            ),
            *([material.diagnosis_part(self.problem, state)] if is_seen else []),
            PromptPart(
                "Your turn", f"So far {material.best_line(self.problem, state)}. {_turn_words(state)}"
            ),
        ]

    def _go_on(self, state: State, words: str) -> Question:
        """All that was said, the last reply, and what is said to it."""
        last = last_said(state)
        assert last is not None, "the conversation has begun"
        assert last.reply is not None, "without a reply it does not go on"
        said = (*last.request.messages, Message("assistant", self._quote_reply(state, last, last.reply)))
        whole = fit_conversation((*said, Message("user", words)))
        best = leading_candidate(self.problem, state)
        text = self.templates.text(best) if best else ""
        if best is not None and not any(text.strip() in message.text for message in whole):
            shown = f"## Kernel {best.id}, the best that is right\n\n{fence_with_backticks(text)}"
            whole = fit_conversation((*said, Message("user", f"{words}\n\n{shown}")))
        return Question(SINGLE, whole, "turn", self._example())

    def _quote_reply(self, state: State, last: Exchange, reply: Reply) -> str:
        """The last reply; of one beyond measure its kernel, if that is right, or its beginning and end."""
        kernel = last_written(state)
        is_right = kernel is not None and kernel.admitted is not None and last.drafts < state.drafts()
        if kernel is not None and is_right and len(reply.text) > prompting.QUOTED:
            return f"{words_around(reply.text)}\n\n{fence_with_backticks(self.templates.text(kernel))}"
        return shorten_middle(reply.text, prompting.QUOTED) or "(nothing)"

    def _example(self) -> str:
        return prompting.example_file(self.problem.kernel.language, concrete=True)


def last_said(state: State) -> Exchange | None:
    return next((e for e in reversed(state.dialogue) if e.request.role == SINGLE), None)


def words_around(text: str) -> str:
    """What a reply says beside its file, on one line."""
    return shorten_middle(" ".join(prompting.without_files(text, "").split()), NOTED).replace("\n", " ")


def fit_conversation(said: Sequence[Message], budget: int = CONVERSATION) -> tuple[Message, ...]:
    """As much of a conversation as there is room for. Its first two messages and its last two stay whole."""
    kept = list(said)
    for at in range(2, len(kept) - 2):
        if sum(tokens_of(m.text) for m in kept) <= budget:
            break
        words = prompting.without_files(kept[at].text, _LEFT_OUT)
        kept[at] = Message(kept[at].speaker, shorten_middle(words, OLD_WORDS))
    return tuple(kept)


def _turn_words(state: State) -> str:
    most = state.settings.rounds
    of = f" of {most} at most" if most is not None else ""
    left = "".join(f"; {one}" for one in material.still_left(state))
    return f"This is round {rounds_begun(state)}{of}{left}. Send a kernel, whole, or stop."
