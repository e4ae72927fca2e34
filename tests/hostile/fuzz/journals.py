"""Journals of runs, changed so that they can still be read: shown as they are, or refused with the line."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from tests.end_to_end import kept, tiny, written
from tests.end_to_end.replaying import talking, unpacked
from tests.hostile.fuzz.driver import Reader
from tests.hostile.fuzz.mutations import tree_mutation
from tests.running import FIXTURES, tunesmith
from tunesmith import diff, load_run
from tunesmith.base.codec import Malformed
from tunesmith.base.errors import BadInput
from tunesmith.base.text import sha256_hex
from tunesmith.deliver.pages.page import plot_files
from tunesmith.deliver.pages.terminal import event_line
from tunesmith.plugins.studies.plan import facts_of
from tunesmith.run.events import Event, Recorded
from tunesmith.run.folder import JOURNAL, OBJECTS, RunFolder
from tunesmith.run.journal import FIRST, broken_rule, decode_record
from tunesmith.run.library import entries_of
from tunesmith.run.loop import Loop
from tunesmith.run.ports import RunLog
from tunesmith.run.stages import World
from tunesmith.run.state import State, apply_record
from tunesmith.search import load_searcher
from tunesmith.session import profile
from tunesmith.session.problems import problem_texts, state_and_templates, texts_of

MAX_BYTES = 300_000  # of a journal to begin from: larger ones say the same more often


class Enough(BaseException):
    """A run that goes on has come to what takes a device or a model."""


class _NoLab:
    """Everything that would be measured ends it there."""

    lacks: ClassVar[dict[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        def answer(*_given: object) -> None:
            if name not in ("admit", "build", "submit", "drop_builds", "close"):
                raise Enough

        return answer


class _OnlyRead:
    def __init__(self, records: list[Recorded]) -> None:
        self.records = records

    def read(self) -> Iterator[Recorded]:
        return iter(self.records)

    def append(self, event: Event) -> Recorded:
        self.records.append(Recorded(len(self.records), self.records[-1].at, event))
        if len(self.records) > 10_000:
            raise AssertionError("the run goes on for ever")
        return self.records[-1]


class _Silent:
    def event(self, *_: object) -> None: ...

    def note(self, _text: str) -> None: ...

    def say(self, _text: str) -> None: ...


class _NoModel:
    name = "none"

    def reply(self, _request: object) -> Any:
        raise Enough


def temporary() -> Path:
    """A folder that goes with this process."""
    found = Path(tempfile.mkdtemp(prefix="tunesmith-fuzz-"))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


@functools.cache
def folder() -> Path:
    """Where journals are read: the texts of all runs lie beside them, by digest."""
    found = temporary()
    (found / "run" / OBJECTS).mkdir(parents=True)
    return found


def read_journal(data: bytes) -> None:
    """All that is ever done with a journal, up to where a device is needed."""
    run = folder() / "run"
    (run / JOURNAL).write_bytes(data)
    found = load_run(run)
    for form in ("text", "md", "json"):
        found.report(form)  # type: ignore[arg-type]
    found._repr_html_()
    plot_files(found.result)
    own = RunFolder.open(run)
    records = list(own.journal().read())
    state = State()
    for record in records:
        state = apply_record(state, record)
        event_line(record.event, state)
    state, templates = state_and_templates(own)
    assert state.started is not None
    facts_of(templates.problem, state, templates)
    texts = problem_texts(texts_of(own, state.started))
    entries_of(templates.problem, state, templates, texts, "2026-01-01", "here")
    refused(lambda: diff(found, found))
    refused(lambda: profile.of_run(run, None))
    talk = talking(own, templates, state)
    talk.conversation.models = dict.fromkeys(talk.conversation.models, _NoModel())  # type: ignore[arg-type]
    chosen = load_searcher(state.settings.search)
    world = World(templates.problem, templates, _NoLab(), chosen, talk, heeds_words=False)  # type: ignore[arg-type]
    try:
        Loop(world, RunLog(_OnlyRead(records), state, _Silent())).run()  # type: ignore[arg-type]
    except Enough:
        pass


def refused(call: Any) -> None:
    """What one command turns down is no reason to look no further."""
    try:
        call()
    except BadInput:
        return


def mutate_journal(rng: Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    lines = parsed(data)
    if not lines:
        return rng.choice(pool)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        kind = rng.random()
        if kind < 0.75:
            others = rng.sample(lines, min(3, len(lines)))
            changed = tree_mutation(rng, lines[at]["event"], [line["event"] for line in others])
            lines[at] = {**lines[at], "event": changed}
        elif kind < 0.8:
            del lines[at]
        elif kind < 0.85:
            lines.insert(rng.randrange(len(lines) + 1), lines[at])
        elif kind < 0.9:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind < 0.94:
            del lines[at:]
        elif kind < 0.97:
            foreign = parsed(rng.choice(pool))
            lines.insert(at, rng.choice(foreign) if foreign else {"type": "Stopped", "event": {"reason": ""}})
        else:
            lines[at] = {**lines[at], "at": rng.choice((-1.0, 0.0, 1e300, 1e9))}
        if not lines:
            break
    return written_lines(lines)


def parsed(data: bytes) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in data.split(b"\n")[:-1]]
    except ValueError:
        return []


def written_lines(lines: list[dict[str, Any]]) -> bytes:
    """As the journal's writer would have: numbered, and chained."""
    found: list[bytes] = []
    for number, line in enumerate(lines):
        before = sha256_hex(found[-1]) if found else FIRST
        found.append(json.dumps({**line, "number": number, "before": before}).encode())
    return b"".join(line + b"\n" for line in found)


def recorded(place: Path) -> list[bytes]:
    """Journals of runs of all kinds, their texts put where they are looked for."""
    whole = unpacked("opencl", place / "kept")
    made = [tiny_run(place), *simulated(place), *(path.parent for path in whole.rglob(JOURNAL))]
    for run in made:
        for text in (run / OBJECTS).iterdir():
            shutil.copyfile(text, folder() / "run" / OBJECTS / text.name)
    found = [(run / JOURNAL).read_bytes() for run in made]
    return [data for data in found if len(data) <= MAX_BYTES]


def tiny_run(place: Path) -> Path:
    tiny.fake(place / "tiny")
    template = place / "tiny" / "template.fake"
    _ok(place, "tune", "tiny", "--template", template, "--evals", 2, "--no-cache", "--out", "tiny-run")
    return place / "tiny-run"


def simulated(place: Path) -> list[Path]:
    """Templates that are written, mended and refused; two of them; retuned; built where no device is."""
    written.problem(place / "written")
    kept.of_two_templates(place / "two")
    kept.problem(place / "kept-problem")
    plain = ("--no-cache", "--no-library", "--seed", 1)
    _ok(place, "tune", "written", *plain, "--out", "written-run")
    _ok(place, "tune", "two", *plain, "--out", "two-run")
    given = ("--template", "kept-problem/template.fake")
    _ok(place, "tune", "kept-problem", *given, *plain, "--out", "kept-run")
    _ok(place, "retune", "kept-run", *plain[:2], "--out", "retuned-run")
    tunesmith(place, "tune", "kept-problem", *given, *plain, "--backend", "fake:absent", "--out", "built-run")
    names = ["written-run", "two-run", "kept-run", "retuned-run", "built-run"]
    if (place / "built-run" / JOURNAL).exists():
        shutil.copytree(place / "built-run", place / "attached-run")
        tunesmith(place, "resume", "attached-run")
        names.append("attached-run")
    return [place / name for name in names if (place / name / JOURNAL).exists()]


def _ok(place: Path, *arguments: object) -> None:
    ended = tunesmith(place, *arguments)
    assert ended.code == 0, ended.err


def _seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory(prefix="tunesmith-fuzz-") as place:
        return recorded(Path(place))


def read_events(data: bytes) -> None:
    """The events alone, without the texts they name."""
    state = State()
    for number, line in enumerate(data.split(b"\n")[:-1]):
        record = replace(decode_record(line), number=number)
        if (fault := broken_rule(state, record)) is not None:
            raise BadInput(fault)
        state = apply_record(state, record)


def _smallest() -> list[bytes]:
    with tarfile.open(FIXTURES / "comparisons" / "opencl.tar.xz") as archive:
        inside = [member for member in archive if member.name.endswith(f"/{JOURNAL}")]
        chosen = sorted(inside, key=lambda member: member.size)[:2]
        return [file.read() for member in chosen if (file := archive.extractfile(member)) is not None]


JOURNALS = Reader("journal", _seeds, read_journal, mutate_journal, (BadInput,))
EVENTS = Reader("events", _smallest, read_events, mutate_journal, (BadInput, Malformed))
