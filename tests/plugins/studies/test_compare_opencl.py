"""Three strategies and the expert compared on two OpenCL kernels, from recordings of a language model.

`fixtures/conversations/compared` has the replies: with them a comparison is made again here, without a model.
`fixtures/comparisons/opencl.tar.xz` has such a comparison as it ended elsewhere, with all that was measured:
from its journals come the same figures, table and pictures, on any machine.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.replaying import compared_again, events_of, replayed, unpacked
from tests.opencl_here import needs_opencl
from tests.running import EXAMPLES, FIXTURES, tunesmith

REPLIES = FIXTURES / "conversations" / "compared"
ARMS = ("template", "rewrite", "single", "expert")
PROBLEMS = ("softmax", "transpose")
PICTURES = ("speed-ups.svg", "gain-per-round.svg")


def is_whole(folder: Path, problems: tuple[str, ...], arms: tuple[str, ...]) -> None:
    page = (folder / "compare.md").read_text()
    for problem in problems:
        for arm in arms:
            assert f"| {problem} | {arm} | 1 |" in page
    for name in PICTURES:
        assert (folder / "plots" / name).read_text().startswith("<svg")
        assert f"plots/{name}" in page


@pytest.mark.timeout(120)
@pytest.mark.long
def test_the_figures_follow_from_what_was_recorded(tmp_path: Path) -> None:
    recorded = unpacked("opencl", tmp_path) / "compared"
    compared_again(recorded)
    is_whole(recorded, PROBLEMS, ARMS)


def compared(folder: Path, problems: tuple[Path, ...], arms: tuple[str, ...], evals: int) -> None:
    """From the plain kernels, by the recorded replies; what each run is follows from what was measured."""
    names = tuple(problem.name for problem in problems)
    words = ["compare", *problems, "--strategies", ",".join(arms)]
    words += ["--repeats", "1", "--rounds", "2", "--evals", str(evals), "--seed", "1"]
    ended = tunesmith(folder, *words, "--model", f"recorded:{REPLIES}", "--out", "cmp", timeout=1700)
    assert ended.code == 0, ended.err
    is_whole(folder / "cmp", names, arms)
    for problem in names:
        for arm in arms:
            run = folder / "cmp" / "runs" / problem / f"{arm}-1"
            report = json.loads((run / "report.json").read_text())
            # On a busy machine nothing may be found to be faster. What is claimed is verified; what won on a
            # quiet one is in the archive.
            claimed = [report["general"], *(w["config"] for w in report["workloads"])]
            assert (report["verified_cases"] > 0) == any(config is not None for config in claimed)
            if arm in ("template", "expert"):
                assert replayed(run) == events_of(run)
            else:
                assert len(report["rounds"]) == kernels_in(REPLIES / problem / f"{arm}-1")


def kernels_in(recording: Path) -> int:
    return sum(name in file.name for file in recording.glob("*.reply.md") for name in ("author", "single"))


@needs_opencl
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_played_again_on_both(tmp_path: Path) -> None:
    compared(tmp_path, tuple(EXAMPLES / "opencl" / name for name in PROBLEMS), ARMS, evals=16)
