"""What was kept of runs and comparisons, once more: the same measurements and the same replies, no device."""

from __future__ import annotations

import contextlib
import json
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from tests.running import FIXTURES, expect_success
from tests.samples import log_of
from tests.talkers import Scripted
from tunesmith.base.codec import encode_tagged
from tunesmith.problem.template import Template
from tunesmith.run.budget import STRATEGIES
from tunesmith.run.candidates import Templates
from tunesmith.run.events import (
    Baseline,
    Enlisted,
    Event,
    Extended,
    Instructed,
    LeftOut,
    Measured,
    Primed,
    Profiled,
    Recorded,
    Replied,
    Requested,
    RunInstruction,
    Served,
    Started,
    Surveyed,
    Verified,
)
from tunesmith.run.folder import RunFolder
from tunesmith.run.journal import UNCHAINED
from tunesmith.run.loop import Loop
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.ports import Delivery, Power, SizedCall
from tunesmith.run.stages import World
from tunesmith.run.state import State, apply_record
from tunesmith.run.talk import ModelDialogue
from tunesmith.search import load_searcher
from tunesmith.session import roles as casting
from tunesmith.session.problems import PROMPT, templates_of
from tunesmith.space.configset import Config

SINCE_TOLD = ("sent", "received", "round_tokens", "searches", "stopped")  # facts of later comparisons
DIGITS = 9  # of numbers that another machine computes from the same measurements


def events_of(run: Path) -> list[Event]:
    return [record.event for record in RunFolder.open(run).journal().read()]


class Unmeasured(KeyError):
    """Nobody measured what a lab of records is asked for."""


class _Measurements(dict[Any, Any]):
    def __missing__(self, key: object) -> Any:
        raise Unmeasured(key)


class _Recorded:
    """A lab that gives back what a journal says was measured, and nothing else."""

    def __init__(self, events: list[Event]) -> None:
        self._baseline = next(e for e in events if isinstance(e, Baseline))
        self._outcomes = _Measurements(
            {e.outcome.trial: e.outcome for e in events if isinstance(e, Measured)}
        )
        self._verified = _Measurements({e.outcome.trial: e for e in events if isinstance(e, Verified)})
        self._served = [e for e in events if isinstance(e, Served)]
        self._surveyed = _Measurements({e.config: e for e in events if isinstance(e, Surveyed)})
        self._extended = [e for e in events if isinstance(e, Extended)]
        self._profiled = _Measurements({(e.config, e.workload): e for e in events if isinstance(e, Profiled)})
        self.lacks: dict[Power, str] = {} if self._served else {"serve": "the recorded run called nothing"}
        self.lacks |= {} if self._profiled else {"profile": "nothing was profiled"}
        self._builds: list[Trial] = []
        self._queue: list[Trial] = []

    def baseline(self) -> Baseline:
        return self._baseline

    def extend(self, _wanted: Extended) -> Extended:
        return self._extended[0]

    def profile(self, config: Config | None, workload: str, _seconds: float) -> Profiled:
        return self._profiled[config, workload]

    def admit(self, template: Template) -> None: ...

    def build(self, trial: Trial) -> None:
        self._builds.append(trial)

    def built(self) -> Surveyed:
        return self._surveyed[self._builds.pop(0).config]

    def drop_builds(self) -> None:
        self._builds.clear()

    def submit(self, trial: Trial) -> None:
        self._queue.append(trial)

    def collect(self) -> Outcome:
        return self._outcomes[self._queue.pop(0)]

    def verify(self, trial: Trial, _later: Sequence[Trial] = ()) -> Verified:
        return self._verified[trial]

    def serve(self, _delivery: Delivery, _calls: Sequence[SizedCall]) -> Served:
        return self._served.pop(0)

    def close(self) -> None: ...


class _RecordedDevices(_Recorded):
    """Of several devices: what came when."""

    def __init__(self, events: list[Event], written: _Memory) -> None:
        super().__init__(events)
        self._events, self._written = events, written

    def _next(self) -> Event | None:
        return next(iter(self._events[len(self._written.events) :]), None)

    def submit(self, trial: Trial, device: str = "") -> None: ...

    def changed(self) -> LeftOut | Enlisted | None:
        event = self._next()
        if isinstance(event, Enlisted):  # the first of them is written before there is a loop
            return event
        return event if isinstance(event, LeftOut) and event.lost else None

    def leave_out(self, device: str) -> None: ...

    def collect(self) -> Outcome | None:  # type: ignore[override]
        event = self._next()
        return event.outcome if isinstance(event, Measured) else None


class _Memory:
    def __init__(self, events: list[Event]) -> None:
        self.events = events

    def read(self) -> Iterator[Recorded]:
        return iter([Recorded(i, 0.0, e) for i, e in enumerate(self.events)])

    def append(self, event: Event) -> Recorded:
        self.events.append(event)
        return Recorded(len(self.events) - 1, 0.0, event)


class _Instructions:
    """What whoever watched asked of the run, where it asked it."""

    def __init__(self, events: list[Event], written: _Memory) -> None:
        self._events, self._written = events, written

    def waiting(self) -> Sequence[RunInstruction]:
        event = next(iter(self._events[len(self._written.events) :]), None)
        return (RunInstruction(event.id, event.what),) if isinstance(event, Instructed) else ()

    def drop(self, id: str) -> None: ...


class _Silent:
    def event(self, *_: object) -> None: ...

    def note(self, _text: str) -> None: ...

    def say(self, _text: str) -> None: ...


def talking(folder: RunFolder, templates: Templates, state: State) -> ModelDialogue:
    """The roles of a run, as those that a journal names play them."""
    assert state.started is not None
    files, settings = dict(state.started.files), state.settings
    roles = STRATEGIES[settings.strategy].roles
    prompts = {r: folder.get(files[f"{PROMPT}{r}"]).decode() for r in roles if f"{PROMPT}{r}" in files}
    cast = casting.RoleContext(settings.models, prompts, folder.path, strategy=settings.strategy)
    return casting.create_talking(templates.problem, templates, state, cast)


def replayed(run: Path, until_unmeasured: bool = False) -> list[Event]:
    """The events of an uninterrupted run that sees the measurements and the replies of this one; with
    `until_unmeasured`, up to where it asks for what nobody measured."""
    events, folder = events_of(run), RunFolder.open(run)
    # Devices that came later are told of by the lab.
    memory = _Memory(list(takewhile(lambda e: isinstance(e, Started | Primed | Enlisted), events)))
    state = apply_record(State(), next(memory.read()))
    templates = templates_of(folder, state)
    talk = talking(folder, templates, state)
    said = Scripted({e.number: [e.reply] for e in events if isinstance(e, Replied)}, "mailbox")
    talk.conversation.models = dict.fromkeys(talk.conversation.models, said)
    several = any(isinstance(event, Enlisted) for event in events)
    lab = _RecordedDevices(events, memory) if several else _Recorded(events)
    with contextlib.suppress(Unmeasured) if until_unmeasured else contextlib.nullcontext():
        inbox = _Instructions(events, memory)
        chosen = load_searcher(state.settings.search)
        world = World(templates.problem, templates, lab, chosen, talk, inbox, heeds_words=False)
        Loop(world, log_of(memory, _Silent())).run()  # type: ignore[arg-type]
    return memory.events


def course(events: list[Event]) -> list[object]:
    """What happened, as far as it is the same on every machine and whatever models are told: without the last
    digits of numbers, and of a request just who was asked."""
    return [_course(event) for event in events]


def _course(event: Event) -> object:
    if isinstance(event, Requested):
        return ("asked", event.request.number, event.request.role)
    # `replace`: with what events have been given since, as it is where nobody says otherwise.
    return rounded(json.loads(encode_tagged(replace(event))))


def rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(FIXTURES / "comparisons" / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def figures(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "compare-data.json").read_text())
    return data


def _with_seconds(figures: dict[str, Any]) -> list[dict[str, Any]]:
    told = figures["comparison"]
    cells = [cell["costs"] for cell in (*told["cells"], *told["overall"])]
    return [part for part in (*cells, *(run["facts"] for run in told["runs"])) if part is not None]


def compared_again(folder: Path) -> None:
    """All that a comparison tells is made from its journals, and is what it was; but these were recorded
    before journals were chained, and that is told."""
    before = figures(folder)
    for run in before["comparison"]["runs"]:
        if run["facts"] is not None:
            run["facts"]["judged_by"] = UNCHAINED
    (folder / "compare-data.json").unlink()
    (folder / "compare.md").unlink()
    shutil.rmtree(folder / "plots")
    expect_success(folder, "compare", "--resume", folder)
    after = figures(folder)
    for part in _with_seconds(after):  # what a budget counts was not told then
        assert 0 < part.pop("searched_seconds") <= part["device_seconds"]
    assert [arm["runs"] for arm in after.pop("figures")["arms"]] == [
        cell["counted"] for cell in after["comparison"]["overall"]
    ]
    for run in after["comparison"]["runs"]:  # nor were these
        own = {name: run["facts"].pop(name) for name in SINCE_TOLD}
        assert own["sent"] + own["received"] == run["facts"]["tokens_by_length"]
        assert len(own["round_tokens"]) == len(run["facts"]["rounds"])
        assert own["stopped"]["tried"] == run["facts"]["evaluations"]
    assert rounded(after) == rounded(before)
    page = (folder / "compare.md").read_text()
    for name in ("speed-ups.svg", "gain-per-round.svg"):
        assert (folder / "plots" / name).read_text().startswith("<svg")
        assert f"plots/{name}" in page
