"""Every OpenCL cheat is caught at the stage and for the reason that its table names; honest texts are not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.core.lab.labs import Harness, device_of, lab
from tests.hostile.cheats.corpus import HONEST, Cheat, problem, text_of
from tests.hostile.cheats.opencl_cheats import CHEATS as DISHONEST
from tests.hostile.cheats.opencl_faults import FAULTS
from tests.hostile.cheats.structure_cheats import CHEATS as STRUCTURES
from tests.opencl_here import needs_opencl
from tunesmith.problem.plan import Status
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import vet_source
from tunesmith.run.outcome import Result

pytestmark = needs_opencl
CHEATS = DISHONEST | FAULTS | STRUCTURES
RUN = {name: cheat for name, cheat in CHEATS.items() if cheat.at != "vetting"}


class Labs:
    """One for each problem, with its original timed: cheats come one after the other, as in a search."""

    def __init__(self, stack: ExitStack, scratch: Path) -> None:
        self._stack = stack
        self._scratch = scratch
        self._open: dict[str, Harness] = {}

    def of(self, base: str) -> Harness:
        if base not in self._open:
            device = device_of("opencl", self._scratch)
            made = lab(problem(base), spec="opencl", scratch=self._scratch, device=device)
            self._open[base] = self._stack.enter_context(made)
        return self._open[base]

    def results(self, cheat: Cheat, at: str) -> tuple[Result, ...]:
        harness = self.of("tiny" if cheat.quick else cheat.base)
        text = text_of(HONEST[cheat.base], cheat)
        harness.template = parse_template(text, path="template.cl", problem=harness.problem)
        harness.lab.admit(harness.template)
        if at == "verify":
            return harness.lab.verify(harness.trial(effort="long")).outcome.results
        return harness.outcome("long" if at == "long" else "short").results


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    with ExitStack() as stack:
        yield Labs(stack, tmp_path_factory.mktemp("labs"))


def marks(cheat: Cheat) -> list[pytest.MarkDecorator]:
    return [] if cheat.quick else [pytest.mark.long]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(RUN[name])) for name in RUN])
def test_is_caught(name: str, labs: Labs) -> None:
    """At one workload at least, which is enough: what is wrong anywhere wins nowhere."""
    cheat, found = RUN[name], ()
    for _ in range(cheat.tries):
        found = labs.results(cheat, cheat.at)
        if {r.status for r in found} & set(cheat.verdicts):
            return
    raise AssertionError([(r.workload, r.status, r.detail) for r in found])


@pytest.mark.long
@pytest.mark.parametrize("at", ["short", "long", "verify"])
@pytest.mark.parametrize("base", HONEST)
def test_the_honest_text_is_not(base: str, at: str, labs: Labs) -> None:
    found = labs.results(Cheat("", "", base=base), at)
    assert {r.status for r in found} == {Status.OK}, [(r.workload, r.status, r.detail) for r in found]


@pytest.mark.few(8)
@pytest.mark.parametrize("name", CHEATS)
def test_vetting_turns_away_what_the_table_says_and_nothing_else(name: str) -> None:
    cheat = CHEATS[name]
    text = text_of(HONEST[cheat.base], cheat)
    refusal = vet_source(text.replace("LOCAL", "16"), problem(cheat.base).kernel.text, "opencl")
    assert (refusal.rule if refusal else "") == cheat.rule, refusal


def test_no_name_is_given_twice() -> None:
    assert len(CHEATS) == len(DISHONEST) + len(FAULTS) + len(STRUCTURES)


def test_each_kind_has_a_quick_one() -> None:
    kinds = {cheat.kind for cheat in CHEATS.values()}
    assert {cheat.kind for cheat in CHEATS.values() if cheat.quick} == kinds
    assert {cheat.base for cheat in CHEATS.values() if cheat.quick} <= {"rmsnorm", "groups"}
    assert all(cheat.why and cheat.verdicts for cheat in CHEATS.values())
    assert all(cheat.rule for cheat in CHEATS.values() if cheat.at == "vetting")
    assert len(CHEATS) >= 50
