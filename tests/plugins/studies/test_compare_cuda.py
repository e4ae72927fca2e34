"""What a large language model and an H200 did, once more without either.

`fixtures/comparisons/h200.tar.xz` has every journal of the comparison in docs/results.md and of the two runs
beside it, every text in them, and the mailboxes: requests and replies as files.
"""

from __future__ import annotations

import json
import shutil
from itertools import zip_longest
from pathlib import Path

import pytest

from benchmarks.cuda.evidence import ROOT
from benchmarks.cuda.render_agents import SHOWN
from tests.end_to_end.replaying import compared_again, course, events_of, figures, replayed, talking, unpacked
from tunesmith.base.codec import decode_json
from tunesmith.base.errors import TunesmithError
from tunesmith.plugins.studies.pages import comparison_sections
from tunesmith.plugins.studies.result import ComparisonResult
from tunesmith.run.events import Asked, Decided, Drafted, Event, Rejected, Replied, Reply, Requested
from tunesmith.run.folder import RunFolder
from tunesmith.run.state import fold_records
from tunesmith.session.problems import templates_of

KERNELS = ("fused_add_rmsnorm", "merge_attn_states_lse", "silu_and_mul_vector")
ARMS = ("template", "rewrite", "single")
ALONE = ("argmax", "transpose_tiled")
COMPARED = [f"compared/runs/{kernel}/{arm}-{n}" for kernel in KERNELS for arm in ARMS for n in (1, 2)]
EVERY = [*COMPARED, *(f"alone/{name}" for name in ALONE)]
WRITTEN = [run for run in EVERY if "/rewrite-" in run or "/single-" in run]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("h200", tmp_path_factory.mktemp("h200"))


@pytest.mark.timeout(120)
@pytest.mark.long
def test_the_figures_follow_from_what_was_recorded(recorded: Path, tmp_path: Path) -> None:
    own = shutil.copytree(recorded / "compared", tmp_path / "compared")  # what it tells is written anew there
    compared_again(own)
    runs = figures(own)["comparison"]["runs"]
    assert len(runs) == len(COMPARED)
    for run in runs:
        assert run["status"] == "finished"
        assert run["facts"]["device"] == "NVIDIA H200"
        assert run["facts"]["success"]


def test_the_page_of_results_says_the_same(recorded: Path) -> None:
    data = json.dumps(figures(recorded / "compared")["comparison"]).encode()
    sections = comparison_sections(decode_json(data, ComparisonResult), "benchmarks/strategies-")
    page = (ROOT / "docs" / "results.md").read_text().splitlines()
    for title in SHOWN:
        lines = [line for line in sections[title] if line]
        assert lines
        assert [line for line in lines if line not in page] == []


@pytest.mark.parametrize("run", WRITTEN)
@pytest.mark.few(1)
@pytest.mark.long
def test_kernels_that_are_rewritten_take_the_same_course(recorded: Path, run: str) -> None:
    """Event by event: gate, measurements, profiles, decisions, verified winner. What is allowed by now was
    refused then, and nobody measured it: up to there."""
    again, then = until_they_part(recorded / run)
    assert (again is None and then is None) or is_allowed_now(then)


@pytest.mark.parametrize("run", [run for run in EVERY if run not in WRITTEN])
@pytest.mark.long
def test_templates_take_the_same_course(recorded: Path, run: str) -> None:
    """Up to where the expert writes another template than then, or the search makes another choice: what it
    would ask for from there on nobody has measured."""
    again, then = until_they_part(recorded / run)
    assert type(again) is type(then)
    assert isinstance(then, Drafted | Decided | Asked | None)
    if isinstance(then, Decided) and isinstance(again, Decided):
        assert (again.decision, again.candidate) == (then.decision, then.candidate)


def until_they_part(run: Path) -> tuple[Event | None, Event | None]:
    """The first event that is another one, as it is now and as it was; None and None: all are the same."""
    again, then = replayed(run, until_unmeasured=True), events_of(run)
    for one, other in zip_longest(again, then):
        if one is None or other is None or course([one]) != course([other]):
            return one, other
    return None, None


def is_allowed_now(event: Event | None) -> bool:
    """Definitions may ask what the device is."""
    return (
        isinstance(event, Rejected)
        and "[defines]" in event.reason
        and "unknown name 'device." in event.reason
    )


@pytest.mark.parametrize("run", EVERY)
@pytest.mark.few(2)
def test_what_the_model_wrote_is_read_and_vetted_as_it_was(recorded: Path, run: str) -> None:
    folder, rejected = (
        RunFolder.open(recorded / run),
        [e for e in events_of(recorded / run) if isinstance(e, Rejected)],
    )
    state = fold_records(folder.journal().read())
    templates = templates_of(folder, state)
    writer = talking(folder, templates, state).writer
    drafts = [c for c in state.candidates if c.drafted is not None]
    assert drafts
    for draft in drafts:
        try:
            fault = writer.faults(templates.of(draft))
        except TunesmithError as error:
            fault = str(error)
        refused = next((e for e in rejected if e.candidate == draft.id), None)
        assert (fault is None) == (draft.status == "searched" or is_allowed_now(refused)), fault


@pytest.mark.parametrize("run", EVERY)
@pytest.mark.few(5)
def test_the_mailbox_has_what_the_journal_has(recorded: Path, run: str) -> None:
    """So each file can be read by people, and is what the model was told and what it said."""
    events = events_of(recorded / run)
    asked = {e.request.number: e.request for e in events if isinstance(e, Requested)}
    said: dict[int, Reply] = {e.number: e.reply for e in events if isinstance(e, Replied)}
    files = {path.name for path in (recorded / run / "mailbox").iterdir()}
    names = {number: f"{number:04}-{request.role}" for number, request in asked.items()}
    assert files == {f"{name}.{kind}.md" for name in names.values() for kind in ("request", "reply")}
    for number, name in names.items():
        request = (recorded / run / "mailbox" / f"{name}.request.md").read_text()
        for message in asked[number].messages:
            assert message.text.strip() in request
        assert (recorded / run / "mailbox" / f"{name}.reply.md").read_text().strip() == said[
            number
        ].text.strip()
