"""What a problem file says of outputs that are not compared element by element, and what it may not say."""

from __future__ import annotations

import pytest

from tests.core.lab.labs import read_problem
from tunesmith.backends.fake import FakeBackend
from tunesmith.base.errors import BadInput
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.run.report import judged_by
from tunesmith.run.state import State

TEXT = """name = "top"
kernel = { source = "kernel.fake", entry = "top" }
argument = [
  { name = "value", type = "float32*", role = "output", shape = ["rows", "k"], order = "any" },
  { name = "index", type = "int32*", role = "output", shape = ["rows", "k"], order = "value", keys = "x" },
  { name = "sum", type = "float32*", role = "output", shape = ["rows"], compare = "checks.py:near" },
  { name = "x", type = "float32*", role = "input", shape = ["rows", "n"] },
]
launch = { grid = ["rows"], block = ["32"] }
contract = { rows = { min = 1, max = 8 }, k = { min = 1, max = 4 }, n = { min = 4, max = 64 } }
workloads = { only = { rows = 4, k = 2, n = 16 } }
"""
INDEPENDENT = ("workloads =", 'accuracy.independent = "rows"\nworkloads =')
FILES = {"kernel.fake": "void top();", "checks.py": "def near(got, expected):\n    return True\n"}


def parse(*changes: tuple[str, str]) -> Problem:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return read_problem(text, FILES)


def plan_of(problem: Problem) -> Plan:
    sizes, device = {"rows": 4, "k": 2, "n": 16}, FakeBackend().devices()[0]
    plan = plan_launch(problem, original_variant(problem), sizes, device, None)
    assert isinstance(plan, Plan)
    return plan


def test_it_reaches_the_plan() -> None:
    problem = parse()
    plan = plan_of(problem)
    value, index, total = plan.compared()
    assert (value.order, value.along, index.order, index.along) == ("any", 1, "value", 1)
    assert (index.keys, index.keys_by_row, index.compare) == ("x", True, "exact")
    assert total.compare == "function"
    checker = problem.argument("sum").checker
    assert checker is not None
    assert (checker.path, checker.function, checker.text) == ("checks.py", "near", FILES["checks.py"])


def test_an_index_counts_over_the_whole_array_where_axes_differ() -> None:
    problem = parse(('shape = ["rows", "n"]', 'shape = ["n", "rows"]'))
    assert problem.argument("index").keys == "x"
    assert not plan_of(problem).buffer("index").keys_by_row


def test_what_goes_with_another_has_its_axis() -> None:
    changes = [('order = "any"', 'order = "any", along = "rows"'), (', keys = "x"', "")]
    assert [parse(*changes).argument(name).along for name in ("value", "index")] == [0, 0]


def test_whoever_reads_a_result_is_told() -> None:
    rules = parse().own_rules.split("; ")
    assert rules[0] == "sum compared by the user's own checks.py:near"
    assert rules[1:] == ["value and index in any order", "index by the keys in x"]
    assert judged_by(parse(), State()) == "not judged yet"


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (('order = "any"', 'order = "none"'), 4, 'order must be "any" or another output with an order'),
        (('order = "value"', 'order = "index"'), 5, "(value, sum), got 'index'"),
        (('order = "value"', 'order = "x"'), 5, "(value, sum), got 'x'"),
        (('order = "value"', 'order = "sum"'), 5, "sum is compared by a function"),
        (('order = "any"', 'order = "index"'), 4, "another output with an order of its own (sum)"),
        (('order = "value"', 'order = "value", along = "k"'), 5, "along is said at value"),
        (('order = "any"', 'along = "k"'), 4, "there is no order"),
        (('order = "any"', 'order = "any", along = "n"'), 4, "one entry of shape (rows, k), got 'n'"),
        (('keys = "x"', 'keys = "y"'), 5, "keys must name an array of role input (x), got 'y'"),
        (('keys = "x"', 'keys = "value"'), 5, "role input (x), got 'value'"),
        (('type = "int32*"', 'type = "float32*"'), 5, "which are whole numbers; got float32"),
        (('keys = "x"', 'keys = "x", compare = "codes"'), 5, "equal or not; got codes"),
        (('"checks.py:near"', '"checks.py:far"'), 6, "defines no function 'far' at its top level"),
        (('"checks.py:near"', '"checks.py"'), 6, "compare must be file.py:function"),
        (('"checks.py:near"', '"nearly"'), 6, "close, exact, codes, or file.py:function, got 'nearly'"),
        (('"checks.py:near"', '"checks.py:near", order = "any"'), 6, "where a function compares"),
        (('name = "x"', 'name = "got"'), 6, "called 'got'"),
    ],
)
def test_faults_are_named_with_their_lines(change: tuple[str, str], line: int, words: str) -> None:
    changes = [change, *([('keys = "x"', 'keys = "got"')] if "got" in change[1] else [])]
    with pytest.raises(BadInput) as caught:
        parse(*changes)
    said = f"{caught.value.where}: {caught.value}"
    assert f"problem.toml:{line}" in said
    assert words in said
    assert caught.value.hint


def test_rows_whose_own_order_is_open_are_independent_all_the_same() -> None:
    assert parse(INDEPENDENT).accuracy.independent == "rows"


def test_items_whose_order_is_open_are_not_independent() -> None:
    along = ('order = "any"', 'order = "any", along = "rows"')
    with pytest.raises(BadInput, match="order of value is open along its first axis"):
        parse(along, (', keys = "x"', ""), INDEPENDENT)
