"""What is wrong for certain data alone is caught by a verification, or named in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core.lab.labs import Harness, device_of, lab
from tests.hostile.cheats.corpus import HONEST, problem, text_of
from tests.hostile.cheats.data_cheats import CHEATS, QUICK
from tests.opencl_here import needs_opencl
from tunesmith.lab.judge.branch_search import BranchSearch
from tunesmith.problem.plan import Status
from tunesmith.problem.template_file import parse_template
from tunesmith.run.events import Verified
from tunesmith.run.outcome import NO_SIDES

pytestmark = needs_opencl
GUARDS = """
    int seen = 0;
    for (int i = 0; i < d; i++) {
        if (from[i] == 0.0f) continue;
        if (isnan(from[i]) || isinf(from[i])) seen |= 2;
        seen |= 1;
    }
    if (!seen) { for (int i = 0; i < d; i++) to[i] = from[i] * weight[i]; return; }
"""


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    scratch = tmp_path_factory.mktemp("lab")
    with lab(problem("tiny"), spec="opencl", scratch=scratch, device=device_of("opencl", scratch)) as made:
        yield made


def verified(harness: Harness, text: str) -> Verified:
    harness.template = parse_template(text, path="template.cl", problem=harness.problem)
    harness.lab.admit(harness.template)
    return harness.lab.verify(harness.trial(effort="long"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in CHEATS]
)
def test_is_caught_or_named(name: str, harness: Harness) -> None:
    expected, cheat = CHEATS[name]
    found = verified(harness, text_of(HONEST[cheat.base], cheat))
    statuses = {result.status for result in found.outcome.results}
    if expected == "caught":
        assert statuses == {Status.WRONG}, found.sides
    else:
        assert statuses == {Status.OK}
        assert "was never true" in found.sides.sentence


@pytest.mark.long
@pytest.mark.parametrize("name", CHEATS)
def test_no_other_check_meets_it(name: str, harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it shows nothing."""
    monkeypatch.setattr(BranchSearch, "search", lambda *_: ([], NO_SIDES))
    found = verified(harness, text_of(HONEST["rmsnorm"], CHEATS[name][1]))
    assert {result.status for result in found.outcome.results} == {Status.OK}


def test_honest_guards_are_met_on_both_sides_and_nothing_is_said(harness: Harness) -> None:
    text = HONEST["rmsnorm"].replace("/*begin*/", GUARDS).replace("/*end*/", "").replace("/*more*/", "")
    found = verified(harness, text.replace('"]  // args', '"]'))
    assert {result.status for result in found.outcome.results} == {Status.OK}
    assert found.sides.watched > 3
    assert not found.sides.sentence
