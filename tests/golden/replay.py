"""A recorded run once more: what came from outside it (outcomes, replies, instructions, the clock) is given
back, and the loop decides anew. Where it decides as it did, the events are the same ones in the same order.

What a machine adds when a run is taken up again (another device, another sandbox) is taken from the record
where it stands there: a session ends before it, as if it had been killed there.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

from tests.golden import entry

DIGITS = 9  # of numbers that another machine computes from the same measurements
BEGIN_A_SESSION = (entry.Attached, entry.Protected)
BEFORE_THE_LOOP = (
    *(entry.Started, entry.Primed, entry.Enlisted, entry.Instructed),
    *BEGIN_A_SESSION,
)


class Unmeasured(KeyError):
    """Nobody measured what is asked for."""


class SessionEnded(Exception):
    """What the record has next is written when a run is taken up again."""


class RecordedJournal:
    """What is written, with the recorded clock."""

    def __init__(self, recorded: Sequence[entry.Recorded]) -> None:
        self.recorded = recorded
        self.written: list[entry.Recorded] = []

    @property
    def events(self) -> list[entry.Event]:
        return [record.event for record in self.written]

    def next(self) -> entry.Event | None:
        place = len(self.written)
        return self.recorded[place].event if place < len(self.recorded) else None

    def take_what_begins_a_session(self) -> int:
        """How many events that was."""
        before = len(self.written)
        while isinstance(self.next(), BEFORE_THE_LOOP):
            self.written.append(self.recorded[len(self.written)])
        return len(self.written) - before

    def read(self) -> Iterator[entry.Recorded]:
        return iter(list(self.written))

    def append(self, event: entry.Event) -> entry.Recorded:
        number = len(self.written)
        at = self.recorded[min(number, len(self.recorded) - 1)].at
        self.written.append(entry.Recorded(number, at, event))
        if isinstance(self.next(), BEGIN_A_SESSION):
            raise SessionEnded
        return self.written[-1]


class RecordedLab:
    """Gives back what a journal says was measured, and nothing else; it serves both ways to go on."""

    def __init__(self, journal: RecordedJournal) -> None:
        self._journal = journal
        self._known: dict[object, list[Any]] = defaultdict(list)
        for record in journal.recorded:
            match record.event:
                case entry.Measured(outcome):
                    self._known["measured", outcome.trial].append(outcome)
                case entry.Verified(outcome):
                    self._known["verified", outcome.trial].append(record.event)
                case entry.Surveyed(config) | entry.Rehearsed(config):
                    self._known[type(record.event), config].append(record.event)
                case entry.Profiled(config, workload):
                    self._known[entry.Profiled, config, workload].append(record.event)
                case event:
                    self._known[type(event)].append(event)
        kinds = {type(record.event) for record in journal.recorded}
        self.lacks: dict[entry.Power, str] = {}
        if entry.Served not in kinds:
            self.lacks["serve"] = "the recorded run called nothing"
        if entry.Profiled not in kinds:
            self.lacks["profile"] = "nothing was profiled"
        self._has_several = entry.Enlisted in kinds
        self._builds: list[entry.Config | None] = []
        self._queue: list[entry.Trial] = []

    def begin_a_session(self) -> None:
        """What the last one had asked for is asked for again."""
        self._queue.clear()
        self._builds.clear()
        self.lacks.pop("time", None)

    def take(self, *key: object) -> Any:
        """What was recorded first; of the last there may be more than one use."""
        known = self._known.get(key[0] if len(key) == 1 else key, [])
        if not known:
            raise Unmeasured(key)
        return known.pop(0) if len(known) > 1 else known[0]

    def rehearse(self, _template: entry.Template | None, wanted: Any) -> entry.Rehearsed | None:
        try:
            return self.take(entry.Rehearsed, None if wanted is None else wanted.config)
        except Unmeasured:
            return None  # the host had nothing to say

    def baseline(self) -> entry.Baseline:
        return self.take(entry.Baseline)

    def extend(self, _wanted: entry.Extended) -> entry.Extended:
        return self.take(entry.Extended)

    def profile(self, config: entry.Config | None, workload: str, _seconds: float) -> entry.Profiled:
        return self.take(entry.Profiled, config, workload)

    def admit(self, template: entry.Template) -> None: ...

    def build(self, trial: entry.Trial) -> None:
        self._builds.append(trial.config)

    def built(self) -> entry.Surveyed:
        return self.take(entry.Surveyed, self._builds.pop(0))

    def drop_builds(self) -> None:
        self._builds.clear()

    def submit(self, trial: entry.Trial, device: str = "") -> None:
        self._queue.append(trial)

    def collect(self) -> entry.Outcome | None:
        if not self._has_several:
            return self.take("measured", self._queue.pop(0))
        event = self._journal.next()
        return event.outcome if isinstance(event, entry.Measured) else None

    def changed(self) -> entry.LeftOut | entry.Enlisted | None:
        event = self._journal.next()
        if isinstance(event, entry.Enlisted):
            return event
        return event if isinstance(event, entry.LeftOut) and event.lost else None

    def leave_out(self, device: str) -> None: ...

    def verify(self, trial: entry.Trial, _later: Sequence[entry.Trial] = ()) -> entry.Verified:
        return self.take("verified", trial)

    def serve(self, _delivery: entry.Delivery, _calls: Sequence[entry.SizedCall]) -> entry.Served:
        return self.take(entry.Served)

    def close(self) -> None: ...


class RecordedModel:
    """Answers each request as it was answered then, attempt by attempt."""

    name, at_once = "recorded", True

    def __init__(self, journal: RecordedJournal) -> None:
        self._said: dict[int, list[entry.Reply | entry.NoReply]] = defaultdict(list)
        for event in (record.event for record in journal.recorded):
            if isinstance(event, entry.Replied):
                self._said[event.number].append(event.reply)
            elif isinstance(event, entry.Unanswered):
                given_up = entry.NoReply(event.reason, event.lasts, usage=event.usage, came=event.came)
                self._said[event.number].append(given_up)

    def reply(self, request: entry.Request) -> entry.Reply | entry.NoReply | entry.Pending:
        said = self._said[request.number]
        return said.pop(0) if said else entry.Pending("nowhere: the run ended before it was answered")


class RecordedInbox:
    """What whoever watched asked of the run, where it asked it."""

    def __init__(self, journal: RecordedJournal) -> None:
        self._journal = journal

    def waiting(self) -> Sequence[entry.RunInstruction]:
        """All that follow each other there; what a session begins with was not found by the loop."""
        events = (record.event for record in self._journal.recorded[len(self._journal.written) :])
        own = takewhile(lambda e: isinstance(e, entry.Instructed) and e.what != "resume", events)
        return [entry.RunInstruction(event.id, event.what, event.text) for event in own]

    def drop(self, id: str) -> None: ...


class Silence:
    def event(self, *_: object) -> None: ...
    def note(self, _text: str) -> None: ...
    def say(self, _text: str) -> None: ...


def records_of(run: Path) -> list[entry.Recorded]:
    return list(entry.RunFolder.open(run).journal().read())


def replay(run: Path) -> RecordedJournal:
    """All that is decided when the run in this folder is decided anew, as far as the record carries it."""
    folder = entry.RunFolder.open(run)
    journal = RecordedJournal(records_of(run))
    lab, model, inbox = RecordedLab(journal), RecordedModel(journal), RecordedInbox(journal)
    while journal.take_what_begins_a_session() and not _play_session(folder, journal, lab, model, inbox):
        pass
    return journal


def _play_session(
    folder: entry.RunFolder,
    journal: RecordedJournal,
    lab: RecordedLab,
    model: RecordedModel,
    inbox: RecordedInbox,
) -> bool:
    """Whether the run has ended."""
    lab.begin_a_session()
    state = entry.fold_records(journal.read())
    templates = entry.templates_of(folder, state)
    cast = entry.casting_of_run(folder, state.started, entry.RunConfig(), Silence())
    spec = re.sub(r"recorded:[^,+]*", f"recorded:{folder.path}", cast.spec)  # which has to be there
    talk = entry.create_talking(templates.problem, templates, state, replace(cast, spec=spec, inbox=inbox))
    talk.conversation.models = dict.fromkeys(talk.conversation.models, model)
    is_absent = state.device.absent
    lab.lacks |= {"time": "it was not there"} if is_absent else {}
    chosen = entry.load_searcher("random" if is_absent else state.settings.search)
    world = entry.World(templates.problem, templates, lab, chosen, talk, inbox, heeds_words=False)
    world.rehearse = lab.rehearse
    ends = (SessionEnded, Unmeasured, KeyboardInterrupt, entry.WaitingForModel)
    with contextlib.suppress(*ends):
        entry.Loop(world, entry.RunLog(journal, state, Silence())).run()
    return entry.fold_records(journal.read()).stopped is not None


# -- what differs ---------------------------------------------------------------------------------------


def facts(event: entry.Event | None) -> Any:
    """As JSON, with what events have been given since, and without the last digits of numbers."""
    return None if event is None else rounded(json.loads(entry.encode_tagged(replace(event))))


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def first_difference(journal: RecordedJournal) -> str:
    """Empty: every event is the recorded one."""
    recorded = [record.event for record in journal.recorded]
    for number, (old, new) in enumerate(zip_longest(recorded, journal.events)):
        if (was := facts(old)) != (now := facts(new)):
            return (
                f"event {number}, {' / '.join(type(e).__name__ for e in (old, new))}: {differing(was, now)}"
            )
    return ""


def differing(was: Any, now: Any, where: str = "") -> str:
    """The innermost place in which they differ."""
    if isinstance(was, dict) and isinstance(now, dict):
        key = next(k for k in {**was, **now} if was.get(k, "absent") != now.get(k, "absent"))
        return differing(was.get(key, "absent"), now.get(key, "absent"), f"{where}.{key}")
    if isinstance(was, list) and isinstance(now, list):
        pairs = enumerate(zip_longest(was, now))
        place, (one, other) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        return differing(one, other, f"{where}[{place}]")
    if isinstance(was, str) and isinstance(now, str):
        lines = zip_longest(was.splitlines(), now.splitlines())
        was, now = next(((a, b) for a, b in lines if a != b), (was, now))
    return f"{where} was {was!r}, is {now!r}"[:2000]
