"""What a large language model and an H200 did, once more without either.

`fixtures/comparisons/h200.tar.xz` has every journal of the comparison in docs/results.md and of the two runs
beside it, every text in them, and the mailboxes: requests and replies as files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from benchmarks.cuda.evidence import ROOT
from benchmarks.cuda.render_agents import SHOWN
from tests.end_to_end.replaying import compared_again, course, events_of, figures, replayed, talking, unpacked
from tunesmith.deliver.compared import ComparisonResult
from tunesmith.deliver.comparison import comparison_sections
from tunesmith.errors import TunesmithError
from tunesmith.problem.codec import decode
from tunesmith.run.dialogue import Reply
from tunesmith.run.events import Replied, Requested
from tunesmith.run.state import fold
from tunesmith.run.store import RunFolder
from tunesmith.session.problems import templates_of

KERNELS = ("fused_add_rmsnorm", "merge_attn_states_lse", "silu_and_mul_vector")
ARMS = ("template", "rewrite", "single")
ALONE = ("argmax", "transpose_tiled")
COMPARED = [f"compared/runs/{kernel}/{arm}-{n}" for kernel in KERNELS for arm in ARMS for n in (1, 2)]
EVERY = [*COMPARED, *(f"alone/{name}" for name in ALONE)]
QUICK = ("compared/runs/silu_and_mul_vector/template-2", "alone/transpose_tiled")
WRITTEN = [run for run in EVERY if "/rewrite-" in run or "/single-" in run]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("h200", tmp_path_factory.mktemp("h200"))


@pytest.mark.timeout(120)
@pytest.mark.long
def test_the_figures_follow_from_what_was_recorded(recorded: Path) -> None:
    compared_again(recorded / "compared")
    runs = figures(recorded / "compared")["comparison"]["runs"]
    assert len(runs) == len(COMPARED)
    for run in runs:
        assert run["status"] == "finished"
        assert run["facts"]["device"] == "NVIDIA H200"
        assert run["facts"]["success"]


def test_the_page_of_results_says_the_same(recorded: Path) -> None:
    data = json.dumps(figures(recorded / "compared")["comparison"]).encode()
    sections = comparison_sections(decode(data, ComparisonResult), "benchmarks/strategies-")
    page = (ROOT / "docs" / "results.md").read_text().splitlines()
    for title in SHOWN:
        lines = [line for line in sections[title] if line]
        assert lines
        assert [line for line in lines if line not in page] == []


@pytest.mark.parametrize("run", WRITTEN)
@pytest.mark.few(1)
@pytest.mark.long
def test_kernels_that_are_rewritten_take_the_same_course(recorded: Path, run: str) -> None:
    """Event by event: gate, measurements, profiles, decisions, verified winner."""
    assert course(replayed(recorded / run)) == course(events_of(recorded / run))


def run_of_templates(run: str) -> ParameterSet:  # those that take seconds wait for make test-long
    return pytest.param(run, marks=() if run in QUICK else pytest.mark.long)


@pytest.mark.parametrize("run", [run_of_templates(run) for run in EVERY if run not in WRITTEN])
@pytest.mark.few(1)
def test_templates_take_the_same_course(recorded: Path, run: str) -> None:
    """With the searcher that there was: another would ask for configurations that nobody has measured. Where
    a change of the search is meant, this is to be left out."""
    assert course(replayed(recorded / run)) == course(events_of(recorded / run))


@pytest.mark.parametrize("run", EVERY)
@pytest.mark.few(2)
def test_what_the_model_wrote_is_read_and_vetted_as_it_was(recorded: Path, run: str) -> None:
    folder = RunFolder.open(recorded / run)
    state = fold(folder.journal().read())
    templates = templates_of(folder, state)
    writer = talking(folder, templates, state).writer
    assert writer is not None
    drafts = [c for c in state.candidates if c.drafted is not None]
    assert drafts
    for draft in drafts:
        try:
            fault = writer.faults(templates.of(draft))
        except TunesmithError as error:
            fault = str(error)
        assert (fault is None) == (draft.status == "searched"), fault


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
