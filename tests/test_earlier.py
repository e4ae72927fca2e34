"""Earlier runs as a prior: which are found, which fit, and what is taken over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.samples import (
    DEVICE,
    PROBLEM,
    TEMPLATE,
    WORKLOADS,
    a_problem,
    a_template,
    baseline,
    config,
    finalist,
    outcome,
)
from tests.samples import KERNEL as SOURCE
from tunesmith.base.errors import BadInput
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status
from tunesmith.run.events import Admitted, Asked, Measured, Primed, Settings, Started
from tunesmith.run.folder import RunFolder
from tunesmith.run.library import ROWS
from tunesmith.run.outcome import Outcome
from tunesmith.session.problems import PROBLEM_FILE
from tunesmith.session.problems import TEMPLATE as TEMPLATE_NAME
from tunesmith.session.retune import USED, priors_of
from tunesmith.space.configset import Config

OWN = a_problem()
SAME = a_template(OWN)
OTHER_DEVICE = replace(DEVICE, name="another device")
A_FEW = (
    outcome(0, config(32), {"small": 0.5, "wide": 0.25}),
    outcome(1, config(64, 2), {"small": 1.0, "wide": 1.0}),
    outcome(2, config(256), {"small": Status.WRONG, "wide": Status.WRONG}),
)


def a_run(
    root: Path,
    name: str,
    outcomes: Sequence[Outcome] = A_FEW,
    *,
    device: Device = DEVICE,
    problem: str = PROBLEM,
    template: str = TEMPLATE,
    at: int = 0,
) -> Path:
    """A run's folder as `tune` leaves it when it is interrupted in its search."""
    folder = RunFolder.create(root / name)
    texts = {
        PROBLEM_FILE: problem.format(kernel="", workloads=WORKLOADS),
        "kernel.cl": SOURCE,
        f"{TEMPLATE_NAME}template.cl": template,
    }
    stored = tuple((name, folder.put(text.encode())) for name, text in texts.items())
    named = f"{TEMPLATE_NAME}template.cl"
    journal = folder.journal()
    journal.append(Started("scale", stored, named, "fake", device, Settings(), ()))
    journal.append(baseline({"small": 1.0, "wide": 1.0}))
    journal.append(Admitted("t", 12, 12))
    for number, one in enumerate(outcomes):
        trial = replace(one.trial, id=number)
        journal.append(Asked((trial,)))
        journal.append(Measured(replace(one, trial=trial)))
    journal.close()
    folder.unlock()
    if at:
        os.utime(folder.path / "journal.jsonl", (at, at))
    return folder.path


def found(root: Path, *named: Path, device: Device = DEVICE) -> tuple[Primed, ...]:
    return priors_of(root, named, OWN, SAME, device)


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert found(tmp_path) == found(tmp_path / "nowhere") == ()


def test_scores_are_taken_over_and_failures_too(tmp_path: Path) -> None:
    a_run(tmp_path, "scale-1")
    (primed,) = found(tmp_path)
    assert primed.name == "scale-1 on a device"
    rows = dict(primed.rows)
    assert rows[config(32)] == pytest.approx((0.693147 + 3 * 1.386294) / 4, abs=1e-5)
    assert rows[config(64, 2)] == pytest.approx(0.0)
    assert rows[config(256)] is None


def test_the_same_device_comes_first_then_the_newest(tmp_path: Path) -> None:
    a_run(tmp_path, "old", at=1_000)
    a_run(tmp_path, "new", at=3_000)
    a_run(tmp_path, "elsewhere", device=OTHER_DEVICE, at=4_000)
    a_run(tmp_path, "older elsewhere", device=OTHER_DEVICE, at=2_000)
    names = [primed.name.partition(" on ")[0] for primed in found(tmp_path)]
    assert names == ["new", "old", "elsewhere"]
    assert len(names) == USED
    first = found(tmp_path, device=OTHER_DEVICE)[0]
    assert first.name == "elsewhere on another device"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"problem": PROBLEM.replace('name = "scale"\n', 'name = "other"\n')}, "its problem is other"),
        (
            {
                "template": TEMPLATE.replace("VEC", "WIDTH"),
                "outcomes": [outcome(0, Config.of({"BLOCK": 32, "WIDTH": 1}), {"small": 0.5, "wide": 0.25})],
            },
            "its parameters are BLOCK, WIDTH, not BLOCK, VEC",
        ),
        ({"outcomes": A_FEW[2:]}, "it has measured no configuration that this template has"),
        ({"outcomes": ()}, "it has measured no configuration that this template has"),
    ],
)
def test_a_run_that_says_nothing_is_passed_over_or_refused_when_named(
    tmp_path: Path, changed: dict[str, object], words: str
) -> None:
    path = a_run(tmp_path, "strange", **changed)  # type: ignore[arg-type]
    assert found(tmp_path) == ()
    with pytest.raises(BadInput, match=words) as refused:
        found(tmp_path, path)
    assert "--prior-run" in str(refused.value.hint)


def test_values_that_the_template_no_longer_has_are_left_out_and_the_order_is_its_own(tmp_path: Path) -> None:
    turned = TEMPLATE.replace(
        "// BLOCK = [32, 64, 128, 256]\n// VEC = [1, 2, 4]\n", "// VEC = [1, 2, 4]\n// BLOCK = [16, 32]\n"
    )
    a_run(tmp_path, "scale-1")
    mine = a_template(OWN, turned.replace("// BLOCK = 64\n", "// BLOCK = 32\n"))
    (primed,) = priors_of(tmp_path, (), OWN, mine, DEVICE)
    assert [row.items for row, _ in primed.rows] == [(("VEC", 1), ("BLOCK", 32))]


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    a_run(tmp_path, "good")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "journal.jsonl").write_text("{ this is not\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "journal.jsonl").write_text("")
    bare = a_run(tmp_path, "bare")
    for path in (bare / "objects").iterdir():
        path.unlink()
    assert [primed.name for primed in found(tmp_path)] == ["good on a device"]
    with pytest.raises(BadInput):
        found(tmp_path, tmp_path / "torn")
    with pytest.raises(BadInput, match="no such run folder"):
        found(tmp_path, tmp_path / "nowhere")


def test_of_a_long_run_the_best_half_and_some_of_the_rest(tmp_path: Path) -> None:
    many = TEMPLATE.replace("[32, 64, 128, 256]", str(list(range(1, 1001))))
    outcomes = [
        outcome(number, config(number + 1), {"small": 1.0 + number, "wide": 1.0 + number})
        for number in range(900)
    ]
    a_run(tmp_path, "long", outcomes, template=many)
    (primed,) = priors_of(tmp_path, (), OWN, a_template(OWN, many), DEVICE)
    blocks = [row["BLOCK"] for row, _ in primed.rows]
    assert ROWS * 3 // 4 <= len(blocks) <= ROWS
    assert blocks[: ROWS // 2] == list(range(1, ROWS // 2 + 1))
    assert max(blocks) > 880


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_run_with_nonsense_in_it_is_passed_over_with_a_note(tmp_path: Path, seconds: float) -> None:
    a_run(tmp_path, "strange", (outcome(0, config(32), {"small": seconds, "wide": 1.0}),))
    notes: list[str] = []
    assert priors_of(tmp_path, (), OWN, SAME, DEVICE, notes.append) == ()
    assert len(notes) == 1
    assert notes[0].startswith("the earlier run strange is passed over: ")


def test_what_a_longer_look_found_wrong_is_no_recommendation(tmp_path: Path) -> None:
    wrong = finalist(3, config(32), {"small": Status.WRONG, "wide": Status.WRONG})
    a_run(tmp_path, "scale-1", (*A_FEW, wrong))
    (primed,) = found(tmp_path)
    assert dict(primed.rows)[config(32)] is None
