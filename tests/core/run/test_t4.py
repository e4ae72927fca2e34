"""T4 results: what is written is read back, what does not fit is left out and counted, faults are told."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.samples import a_problem, a_template, config, outcome
from tunesmith.base.errors import BadInput
from tunesmith.problem.plan import Status
from tunesmith.run.outcome import Result
from tunesmith.run.t4 import EarlierRows, rows_of_t4, t4_results

TEMPLATE = a_template(a_problem())
TIME = {"name": "time", "value": 1.5, "unit": "ms"}


def entry(block: object = 64, vec: object = 1, time: object = 2.0, **others: Any) -> dict[str, Any]:
    own = {
        "configuration": {"BLOCK": block, "VEC": vec},
        "times": {"runtimes": []},
        "invalidity": "correct",
        "correctness": 1,
        "measurements": [{"name": "time", "value": time, "unit": "ms"}],
    }
    return own | others


def read(*entries: dict[str, Any], **others: Any) -> EarlierRows:
    return rows_of_t4(json.dumps({"results": entries, **others}), TEMPLATE, "file.json")


def test_what_is_written_is_read_back_to_the_same_scores() -> None:
    seconds = {config(32): 0.5, config(64): 1.0, config(128, 2): 4.0}
    found = [(c, outcome(0, c, {"small": s}).results[0]) for c, s in seconds.items()]
    found.append((config(256), Result("small", Status.WRONG)))
    text = t4_results(found, {"workload": "small"}).decode()
    rows = dict(rows_of_t4(text, TEMPLATE, "file.json").rows)
    assert rows.pop(config(256)) is None
    assert rows == pytest.approx({c: math.log(1.0 / s) for c, s in seconds.items()})


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.OK])
def test_what_failed_carries_no_time_and_counts_as_failed(status: Status) -> None:
    (one,) = json.loads(t4_results([(config(32), Result("small", status))], {}))["results"]
    assert one["invalidity"] != "correct"
    assert (one["correctness"], one["measurements"]) == (0, [])
    assert read(one).rows == ((config(32), None),)


def test_times_become_log_speedups_over_the_median() -> None:
    rows = dict(read(entry(32, time=1.0), entry(64, time=2.0), entry(128, time=4000.0)).rows)
    assert rows[config(32)] == pytest.approx(math.log(2))
    assert rows[config(64)] == 0.0
    assert rows[config(128)] == pytest.approx(-math.log(2000))


def test_units_are_heeded_and_run_times_stand_in_for_a_measurement() -> None:
    micro = entry(32, measurements=[{"name": "time", "value": 2000, "unit": "us"}])
    runs = entry(128, measurements=[], times={"runtimes": [1, 2.0, 90]})
    rows = dict(read(micro, entry(64, time=2.0), runs).rows)
    assert rows == pytest.approx(dict.fromkeys(rows, 0.0))
    assert len(rows) == 3


def test_what_failed_once_is_not_believed() -> None:
    twice = read(entry(32, time=1.0), entry(32, invalidity="correctness"), entry(64))
    assert dict(twice.rows)[config(32)] is None
    repeated = read(entry(32, time=1.0), entry(32, time=3.0), entry(64, time=2.0))
    assert dict(repeated.rows)[config(32)] == 0.0


def test_parameters_may_stand_in_another_order() -> None:
    turned = entry(32) | {"configuration": {"VEC": 2, "BLOCK": 32}}
    assert read(turned).rows == ((config(32, 2), 0.0),)


def test_what_the_template_has_not_is_left_out_and_counted() -> None:
    strange = entry() | {"configuration": {"BLOCK": 64, "VEC": 1, "TILE": 4}}
    short = entry() | {"configuration": {"BLOCK": 64}}
    values = [entry(48), entry(64.0), entry(True), entry("64"), entry(10**30)]
    found = read(entry(64), entry(128, invalidity="compile"), strange, strange, short, *values)
    assert [c for c, _ in found.rows] == [config(64), config(128)]
    assert str(found) == (
        "2 configurations known, 1 of them failed; 8 of 10 results left out: "
        "2 with parameters that the template has not (TILE), 5 with values outside the space, "
        "1 without parameters of the template (VEC)"
    )


def test_without_a_template_every_configuration_of_integers_is_kept() -> None:
    text = json.dumps({"results": [entry(7, 9), entry("x")]})
    found = rows_of_t4(text, None, "file.json")
    assert [c.as_dict() for c, _ in found.rows] == [{"BLOCK": 7, "VEC": 9}]
    assert found.left_out == (("with values outside the space", 1),)


def test_numbers_that_json_has_not_do_no_harm_where_nobody_needs_them() -> None:
    own = json.dumps(entry(32, other=1)).replace('"other": 1', '"other": NaN')
    assert rows_of_t4(f'{{"results": [{own}]}}', TEMPLATE, "f").rows == ((config(32), 0.0),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is JSON, this is not"),
        ("[" * 100_000, "is JSON, this is not"),
        ("[]", "no T4 results file"),
        ("{}", "results"),
        ('{"results": 1}', "results"),
        ('{"results": [{"configuration": {}}]}', "missing required field"),
        (json.dumps({"results": [entry(invalidity="fine")]}), "fine"),
        (json.dumps({"results": [entry(measurements=3)]}), "measurements"),
        (json.dumps({"results": [], "schema_version": "2.0.0"}), "this file has '2.0.0'"),
        (json.dumps({"results": [entry(measurements=[])]}), "has neither"),
        (json.dumps({"results": [entry(time=0)]}), "positive number, got 0"),
        (json.dumps({"results": [entry(time="fast")]}), 'positive number, got "fast"'),
        (json.dumps({"results": [entry(time=True)]}), "positive number, got true"),
        (json.dumps({"results": [entry(time=math.nan)]}), "positive number, got null"),
        (json.dumps({"results": [entry(), entry(measurements=[{**TIME, "unit": "h"}])]}), "got 'h'"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_told_of_with_its_place_and_a_next_step(text: str, words: str) -> None:
    with pytest.raises(BadInput) as told:
        rows_of_t4(text, TEMPLATE, "file.json")
    assert words in told.value.message
    assert str(told.value.where).startswith("file.json")
    assert told.value.hint
