"""Sending what is open: one attempt at a time, with pauses that grow; each attempt is a fact of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.core.dialogue import Exchange, LanguageModel, NoReply, Pending, Reply, Role
from tunesmith.core.errors import BadInput, WaitingForModel
from tunesmith.core.events import Replied, Unanswered

ATTEMPTS = 5
FEW = 2  # attempts with a model that was given up last time
FIRST_PAUSE = 2.0  # seconds before the second attempt; doubled with each
LONGEST_PAUSE = 120.0  # whatever the other side asks for


def _no_pause(_seconds: float) -> None:
    """For those that do not want to wait."""


@dataclass
class Conversation:
    """The models of a run, by role. Remembers nothing that matters: after a restart a pause is left out."""

    models: Mapping[Role, LanguageModel] = field(default_factory=dict)
    pause: Callable[[float], None] = _no_pause
    note: Callable[[str], None] = lambda _text: None
    _wait: float = field(default=0.0, init=False)

    def answer(self, exchange: Exchange, dialogue: Sequence[Exchange] = ()) -> Replied | Unanswered:
        """What comes of one attempt; WaitingForModel where a reply is missing and not to be waited for.
        `dialogue` is all that was asked in the run."""
        request = exchange.request
        model = self.models.get(request.role)
        if model is None:
            why = f"no model plays the {request.role} here"
            return Unanswered(request.number, why, lasts=True, attempt=exchange.attempts + 1, final=True)
        if self._wait:
            self.note(f"asking {model.name} again in {self._wait:.0f} s")
            self.pause(self._wait)
            self._wait = 0.0
        self.note(f"asking {model.name} as {request.role}, request {request.number}")
        try:
            found = model.reply(request)
        except BadInput as error:  # a key or a package that another machine may have
            raise WaitingForModel(
                f"request {request.number} cannot be sent from here: {error}", hint=error.hint
            ) from error
        if isinstance(found, Pending):
            seen = f"; {found.found}" if found.found else ""
            place = f"it is to be written to {found.where}{seen}"
            raise WaitingForModel(
                f"the reply to request {request.number} is missing: {place}", awaits=found.where
            )
        if isinstance(found, Reply):
            return Replied(request.number, _clean(found))
        return self._unanswered(exchange, found, self._most(model, dialogue))

    def _most(self, model: LanguageModel, dialogue: Sequence[Exchange]) -> int:
        """A model that nobody reached a moment ago is not waited for as long again."""
        own = [e for e in dialogue if self.models.get(e.request.role) is model and not e.is_open]
        return FEW if own and own[-1].failed else ATTEMPTS

    def _unanswered(self, exchange: Exchange, found: NoReply, most: int) -> Unanswered:
        attempt = exchange.attempts + 1
        final = found.lasts or attempt >= most
        if not final:
            self._wait = min(max(found.wait or 0.0, FIRST_PAUSE * 2 ** (attempt - 1)), LONGEST_PAUSE)
        return Unanswered(exchange.request.number, found.reason, found.lasts, attempt, final)


def _clean(reply: Reply) -> Reply:
    """Without halves of characters, which a journal cannot hold."""
    text = reply.text.encode("utf-8", "replace").decode()
    return replace(reply, text=text)
