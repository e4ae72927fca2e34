"""From a plain OpenCL kernel to a verified winner by a real language model's recorded replies.

The model had also read the sources of Tunesmith, and wrote the author's reply before that request was
there: this shows that conversations work, not what a model finds from the request files alone. The run is
stopped between every request and reply, and every event is the one an uninterrupted run has with the same
measurements.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.test_kill import _event, _Memory, _raw, _Recorded, _Silent
from tests.opencl_here import needs_opencl
from tests.running import EXAMPLES, FIXTURES, tunesmith
from tests.talkers import Scripted
from tunesmith import casting, problems, registry
from tunesmith.core.candidates import Templates
from tunesmith.core.events import Event, Primed, Replied, Started
from tunesmith.core.state import State, apply
from tunesmith.runs import PROMPT
from tunesmith.store import FolderTexts, RunFolder

REPLIES = FIXTURES / "conversations" / "softmax_opencl"
COMMAND = ("tune", "problem", "--no-cache", "--no-prior", "--seed", 1, "--evals", 24, "--rounds", 2)
MODEL = ("--model", "planner=mailbox,author=mailbox", "--no-wait", "--out", "run")


@needs_opencl
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_stopped_between_every_request_and_reply(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "opencl" / "softmax", tmp_path / "problem")
    ended = tunesmith(tmp_path, *COMMAND, *MODEL)
    for reply in sorted(REPLIES.glob("*.reply.md")):
        assert ended.code == 4, ended.err
        assert reply.name in ended.err
        target = tmp_path / "run" / "mailbox" / reply.name
        target.write_bytes(reply.read_bytes())
        os.utime(target, (1e9, 1e9))
        ended = tunesmith(tmp_path, "resume", "run", "--no-wait")
    assert ended.code == 0, ended.err
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["geometric_mean"] > 1.5
    assert report["verified_cases"] > 0
    assert report["rounds"][0]["author"] == "mailbox"
    run = tmp_path / "run"
    assert _replayed(run) == [_event(line) for line in _raw(run)]


def _replayed(run: Path) -> list[Event]:
    """The events of an uninterrupted run that sees the measurements and the replies of this one."""
    events = [_event(line) for line in _raw(run)]
    started = events[0]
    assert isinstance(started, Started)
    folder = RunFolder.open(run)
    problem, template = problems.reload(folder, started)
    templates = Templates(problem, started.device, template, FolderTexts(folder))
    memory = _Memory([e for e in events if isinstance(e, Started | Primed)])
    state = apply(State(), next(memory.read()))
    files = dict(started.files)
    prompts = {r: folder.get(files[f"{PROMPT}{r}"]).decode() for r in ("planner", "author")}
    cast = casting.Cast(started.settings.models, prompts, run)  # type: ignore[arg-type]
    talk = casting.talking(problem, templates, state, cast)
    said = Scripted({e.number: [e.reply] for e in events if isinstance(e, Replied)}, "mailbox")
    talk.conversation.models = {"planner": said, "author": said}
    lab = _Recorded(events)
    lab.no_profiles = "a recorded lab has none"  # type: ignore[attr-defined]
    registry.loop(problem, templates, started.settings, lab, memory, _Silent(), talk).run()  # type: ignore[arg-type]
    return memory.events
