"""The CUDA cheats: each compiles, passes or fails the vetting as its table says, and is caught on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.backends.cuda.builds import unit
from tests.core.lab.labs import device_of, lab
from tests.cuda_here import needs_nvrtc
from tests.hostile.cheats.corpus import Cheat, text_of
from tests.hostile.cheats.cuda_cheats import CHEATS, HONEST, HONEST_CHEAT, READS_EARLY, problem
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.problem.plan import Status
from tunesmith.problem.template import builds_of
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import vet_source
from tunesmith.run.outcome import Result

STAGES = ("short", "long", "verify")
RUN = [name for name in CHEATS if CHEATS[name].at != "vetting"]


def text(cheat: Cheat) -> str:
    return text_of(HONEST[cheat.base], cheat).replace("/*head*/", "")


def results(cheat: Cheat, scratch: Path, every: bool = False) -> list[Result]:
    """Of all stages up to its own, or to the first that catches it; more often where chance decides."""
    own = problem(cheat.base)
    found: list[Result] = []
    with lab(own, text(cheat), spec="cuda", scratch=scratch, device=device_of("cuda", scratch)) as harness:
        for stage in STAGES[: STAGES.index(cheat.at) + 1] * cheat.tries:
            if stage == "verify":
                found += harness.lab.verify(harness.trial(effort="long")).outcome.results
            else:
                found += harness.outcome("long" if stage == "long" else "short").results
            if not every and {r.status for r in found} & set(cheat.verdicts):
                break
    return found


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", RUN)
def test_is_caught(name: str, tmp_path: Path) -> None:
    found = results(CHEATS[name], tmp_path)
    assert {r.status for r in found} & set(CHEATS[name].verdicts), [
        (r.workload, r.status, r.detail) for r in found
    ]


@pytest.mark.gpu
def test_what_reads_before_it_waits_is_caught_where_it_runs(tmp_path: Path) -> None:
    found = results(READS_EARLY, tmp_path)
    assert {r.status for r in found} == {Status.WRONG}
    assert "with pdl it uses" in found[0].detail


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("base", HONEST_CHEAT)
def test_the_honest_text_is_not(base: str, tmp_path: Path) -> None:
    found = results(HONEST_CHEAT[base], tmp_path, every=True)
    assert {r.status for r in found} == {Status.OK}, [(r.workload, r.status, r.detail) for r in found]


@pytest.mark.few(8)
@pytest.mark.parametrize("name", CHEATS)
def test_vetting_turns_away_what_the_table_says_and_nothing_else(name: str) -> None:
    cheat = CHEATS[name]
    own, entry = text(cheat).replace("BLOCK", "128"), problem(cheat.base).kernel.entry
    overlapping = [entry] if "// pdl = true" in own else []
    refusal = vet_source(own, problem(cheat.base).kernel.text, "cuda", (), overlapping)
    assert (refusal.rule if refusal else "") == cheat.rule, refusal


@needs_nvrtc
@pytest.mark.long
@pytest.mark.parametrize("name", RUN)
def test_each_compiles(name: str) -> None:
    """What does not is caught by a compiler, and shows nothing."""
    own = problem(CHEATS[name].base)
    template = parse_template(text(CHEATS[name]), path="template.cu", problem=own)
    item = builds_of(own, template, template.default, own.workloads)[0]
    binary = build_cubin(
        unit(item.variant.source, own.kernel.entry, flags=item.variant.flags), absent_device("H200")
    )
    assert binary.data


def test_there_are_enough() -> None:
    assert len(CHEATS) >= 30
    assert all(cheat.why and cheat.verdicts for cheat in CHEATS.values())
