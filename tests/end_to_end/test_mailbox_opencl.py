"""From a plain OpenCL kernel to a verified winner by recorded replies of a language model.

Every folder of `fixtures/conversations` is a recording: requests and replies as files, and `about.json` with
the problem and the settings; `tunesmith resume RUN --record FOLDER` writes all of it. The run is stopped
between every request and reply. Times differ from run to run, so what must be equal is what follows from
them: an uninterrupted run that sees the same measurements and the same replies has the same events, one by
one: conversation, candidates, decisions, trials, verified winner.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from tests.end_to_end.replaying import events_of, replayed
from tests.opencl_here import needs_opencl
from tests.running import EXAMPLES, FIXTURES, Ended, report_in, tunesmith
from tests.talkers import plan
from tunesmith.agents.mailbox import read_about
from tunesmith.agents.models import EXPERT, parse_models
from tunesmith.run.events import Settings

RECORDINGS = sorted(file.parent for file in (FIXTURES / "conversations").glob("*/about.json"))
MAX_EVALS = 8  # of a search: enough to find a winner, and over in a minute


def command(settings: Settings) -> list[object]:
    """As it was recorded, with a mailbox for each role that a model played."""
    played = [role for role, spec in parse_models(settings.models).items() if spec.kind != EXPERT]
    models = ",".join(f"{role}=mailbox" for role in played)
    evals = min(settings.evals or MAX_EVALS, MAX_EVALS)
    rounds = () if settings.rounds is None else ("--rounds", settings.rounds)
    limits = ("--seed", settings.seed, "--evals", evals, *rounds)
    return ["tune", "problem", "--no-cache", "--no-prior", *limits, "--model", models, "--out", "run"]


def replies_in(recording: Path) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = defaultdict(list)
    for file in sorted(recording.glob("*.reply.md")):
        found[file.name.split("-")[1].removesuffix(".reply.md")].append(file.read_bytes())
    return found


def answer(run: Path, left: dict[str, list[bytes]]) -> str:
    """The next reply of the role that is asked, into the mailbox. A planner whose plans are used up stops."""
    requests = sorted((run / "mailbox").glob("*.request.md"))
    name = requests[-1].name.removesuffix(".request.md")
    role = name.split("-")[1]
    if not left[role]:
        assert role == "planner", f"the recording has no further reply of the {role}, for request {name}"
        left[role].append(plan("stop").encode())
    target = run / "mailbox" / f"{name}.reply.md"
    target.write_bytes(left[role].pop(0))
    os.utime(target, (1e9, 1e9))  # nobody writes to it any more
    return target.name


def stopped_everywhere(folder: Path, recording: Path) -> Ended:
    left = replies_in(recording)
    assert left, "a recording has replies"
    ended = tunesmith(folder, *command(read_about(recording).settings), "--no-wait")
    assert ended.code == 4, ended.err
    while ended.code == 4:
        asked = ended.err
        assert answer(folder / "run", left) in asked
        ended = tunesmith(folder, "resume", "run", "--no-wait")
    return ended


@needs_opencl
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda folder: folder.name)
def test_stopped_between_every_request_and_reply(recording: Path, tmp_path: Path) -> None:
    about = read_about(recording)
    shutil.copytree(EXAMPLES / about.backend / about.problem, tmp_path / "problem")
    ended = stopped_everywhere(tmp_path, recording)
    assert ended.code == 0, ended.err
    run = tmp_path / "run"
    report = report_in(run)
    assert report["verified_cases"] > 0
    assert any(w["config"] for w in report["workloads"]), "something won"
    assert report["geometric_mean"] > 1.1
    wrote = any(recording.glob("*-author.reply.md"))
    assert any(r["author"] == "mailbox" for r in report["rounds"]) == wrote
    assert replayed(run) == events_of(run)


def test_there_is_a_recording() -> None:
    assert RECORDINGS
