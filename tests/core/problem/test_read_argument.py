"""Packed elements and quantised codes in a problem file."""

from __future__ import annotations

import pytest

from tests.core.lab.labs import read_problem
from tests.samples import KERNEL
from tunesmith.backends.fake import FakeBackend
from tunesmith.base.errors import BadInput
from tunesmith.problem.dispatch import dispatch_argument
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import original_variant

TEXT = """\
name = "dequantise"
kernel = { source = "kernel.cl", entry = "scale" }
launch = { grid = ["rows"], block = ["64"] }
contract = { rows = { min = 1, max = 4096 }, d = { min = 8, max = 4096, multiple_of = 8 } }
workloads = { small = { rows = 16, d = 256 } }
"""


def parse(
    out: str = "float16", w: str = "int4*", out_more: str = "", w_more: str = "", scales: str = "float32",
    more: str = "",
) -> Problem:  # fmt: skip
    arguments = (
        ("out", f"{out}*", f'role = "output"\nshape = ["rows", "d"]\n{out_more}'),
        ("w", w, f'role = "input"\nshape = ["rows", "d"]\n{w_more}'),
        ("scales", f"{scales}*", 'role = "output"\nshape = ["rows"]'),
    )
    tables = [f'[[argument]]\nname = "{name}"\ntype = "{type}"\n{rest}\n' for name, type, rest in arguments]
    text = "".join([TEXT, *tables, more])
    return parse_problem(text, path="problem.toml", read=lambda name: KERNEL)


@pytest.mark.parametrize("type", ["int4", "uint4"])
def test_packed_arrays_are_read_like_others(type: str) -> None:
    problem = parse(out=type, w=f"{type}*", w_more="range = [0, 7]\nalign = 16")
    w = problem.argument("w")
    assert (w.type, w.range, w.align, w.element.packed) == (type, (0.0, 7.0), 16, 2)
    assert problem.argument("out").is_written


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"w_more": 'strides = ["d", "1"]'}, "argument 'w': int4 arrays are dense"),
        ({"w_more": "range = [0, 8]"}, "range must lie within int4, got"),
        ({"w": "uint4*", "w_more": "range = [-1, 8]"}, "range must lie within uint4, got"),
        ({"out": "int4", "out_more": "init = 9"}, "init must be a value of int4, got 9"),
    ],
)
def test_what_packed_arrays_cannot_be(change: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(**change)
    assert words in str(caught.value)


def test_a_packed_scalar_does_not_exist() -> None:
    with pytest.raises(BadInput, match="uint4 comes in arrays alone, two to a byte"):
        parse(more='[[argument]]\nname = "n"\ntype = "uint4"\nvalue = 3\n')


def test_integers_need_a_range_that_has_some() -> None:
    with pytest.raises(BadInput, match=r"there is no integer in the range \[0.2, 0.8\]"):
        parse(w="float32*", w_more='values = "integers"\nrange = [0.2, 0.8]')
    assert parse(w="float32*", w_more='values = "integers"\nrange = [0.2, 1.0]')
    assert parse(w="float32*", w_more="range = [0.2, 0.8]")


@pytest.mark.parametrize("type", ["float8_e4m3", "float8_e5m2", "int8", "int4"])
def test_codes_have_the_tolerance_of_what_they_are_rounded_from(type: str) -> None:
    """Not of their own type: an eighth from a tie would be anywhere."""
    for scales in ("float32", "float16"):
        problem = parse(out=type, out_more='compare = "codes"', scales=scales)
        out = problem.argument("out")
        assert out.compare == "codes"
        assert problem.accuracy.rtol == 1e-4
        assert out.rtol in (None, 1e-4)
    first = parse(out=type, out_more='compare = "codes"', scales="float16").argument("scales")
    assert (first.rtol, first.atol) == (4e-3, 2e-3)


def test_a_tolerance_of_codes_that_the_user_names_counts() -> None:
    own = parse(out="float8_e4m3", out_more='compare = "codes"\nrtol = 0.5').argument("out")
    assert own.rtol == 0.5
    named = parse(out="float8_e4m3", out_more='compare = "codes"', more="[accuracy]\nrtol = 0.25")
    assert (named.accuracy.rtol, named.argument("out").rtol) == (0.25, None)
    plain = parse(out="float8_e4m3")
    assert plain.accuracy.rtol == 0.125


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1 / sqrt(e)", "unknown name 'e'"),
        ("exp(d)", "'exp(d)' is not allowed"),
        ("1 / (d - 32)", "has no value (float division by zero) at workload 'only'"),
        ("0.5", "value of a float32 must be a number, got '0.5'"),
    ],
)
def test_a_float_by_an_expression_has_a_value_at_every_workload(value: str, words: str) -> None:
    text = FLOAT.replace("VALUE", value)
    with pytest.raises(BadInput) as caught:
        read_problem(text, {"kernel.fake": "void f();"})
    assert words in str(caught.value)
    assert caught.value.where == "problem.toml:14"
    assert caught.value.hint


def test_a_float_may_follow_the_sizes() -> None:
    problem = read_problem(FLOAT.replace("VALUE", "2 / sqrt(d + 4)"), {"kernel.fake": "void f();"})
    plan = plan_launch(problem, original_variant(problem), {"d": 32}, FakeBackend().devices()[0], None)
    assert isinstance(plan, Plan)
    assert plan.scalars[0].value == 2 / 6.0
    listed = dispatch_argument(problem.argument("scale"))
    assert (listed.value, listed.follows_sizes) == ("2 / sqrt(d + 4)", True)


FLOAT = """name = "scaled"
kernel = { source = "kernel.fake", entry = "f" }
launch = { grid = [1], block = [1] }
contract = { d = { min = 1, max = 64 } }
workloads = { only = { d = 32 } }
[[argument]]
name = "out"
type = "float32*"
role = "output"
shape = ["d"]
[[argument]]
name = "scale"
type = "float32"
value = "VALUE"
"""
