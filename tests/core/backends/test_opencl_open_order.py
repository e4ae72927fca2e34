"""Outputs that are not compared element by element, on a real OpenCL device: what may differ may, and whoever
leaves out, repeats or changes something is caught."""

from __future__ import annotations

import pytest

from tests.core.backends.test_opencl_problems import INT_N, array, declared, problem, tried
from tests.core.lab.labs import Harness
from tests.opencl_here import needs_opencl
from tests.wording import says
from tunesmith.base.errors import BadInput

pytestmark = [needs_opencl, pytest.mark.usefixtures("timed_briefly")]

ONE = '[launch]\ngrid = ["ceildiv(n, BLOCK)"]\nblock = ["BLOCK"]'
BLOCK = "BLOCK = [16]"


def outcomes(harness: Harness, bad: int) -> list[tuple[str, str]]:
    """Of the good configuration, quick and thorough, then of each planted error."""
    results = [harness.result("short"), harness.result("long")]
    results += [harness.result("short", BAD=number) for number in range(1, bad + 1)]
    return [(str(r.status), r.detail) for r in results]


# Where an element is positive, its place: in whatever order groups come to it.
COMPACT = """
__kernel void op(__global int *out, __global int *count, __global const float *x, int n) {
    int i = get_global_id(0);
    if (i < n && x[i] > 0.0f) out[atomic_inc(count)] = i;
}
"""
COMPACT_IN_ORDER = """
__kernel void op(__global int *out, __global int *count, __global const float *x, int n) {
    if (get_global_id(0)) return;
    int found = 0;
    for (int i = 0; i < n; i++) if (x[i] > 0.0f) out[found++] = i;
    *count = found;
}
"""
COMPACT_REFERENCE = """
import numpy as np

def ref(x, n):
    found = np.flatnonzero(x > 0)
    return {"out": np.concatenate([found, np.full(n - found.size, -1)]), "count": np.array([found.size])}
"""
COMPACT_BACKWARDS = """
__kernel void op(__global int *out, __global int *count, __global const float *x, int n) {
    if (get_global_id(0)) return;
    int found = 0;
    for (int i = n - 1; i >= 0; i--) {
        if (!(x[i] > 0.0f)) continue;
#if BAD == 1
        if (found != 2) out[found] = i;
#elif BAD == 2
        out[found] = found == 2 ? out[1] : i;
#elif BAD == 3
        out[found] = found == 2 ? i + n : i;
#else
        out[found] = i;
#endif
        found++;
    }
    *count = found;
}
"""


def compaction(reference: str | None, kernel: str = COMPACT, order: str = 'order = "any"\n') -> object:
    out = array("out", "int32", "output", more=f"{order}init = -1")
    count = array("count", "int32", "output", '"1"', "init = 0")
    arguments = out + count + array("x", "float32", "input") + INT_N
    return problem(arguments, kernel, reference, accuracy="deterministic = false")


class TestAnyOrder:
    @pytest.mark.parametrize("reference", [pytest.param(COMPACT_REFERENCE, marks=pytest.mark.long), None])
    @pytest.mark.long
    def test_what_is_left_out_repeated_or_changed_is_wrong(self, reference: str | None) -> None:
        asked = compaction(reference)
        with tried(asked, declared(BLOCK, ONE, bad=3), COMPACT_BACKWARDS) as harness:  # type: ignore[arg-type]
            found = outcomes(harness, 3)
        assert [status for status, _ in found] == ["ok", "ok", "wrong", "wrong", "wrong"]
        assert all("sorted out[" in detail and "it must be equal" in detail for _, detail in found[2:]), found

    @pytest.mark.long
    def test_without_it_the_order_counts(self) -> None:
        asked = compaction(COMPACT_REFERENCE, COMPACT_IN_ORDER, order="")
        with tried(asked, declared(BLOCK, ONE, bad=1), COMPACT_BACKWARDS) as harness:  # type: ignore[arg-type]
            assert harness.result("short").status == "wrong"


ROWS = '[[argument]]\nname = "rows"\ntype = "int32"\nvalue = "rows"\n'


# A direction: as good the other way round, all of it.
DIRECTION = """
__kernel void op(__global float *out, __global const float *x, int rows, int n) {
    int i = get_global_id(0);
    if (i < rows * n) out[i] = 2.0f * x[i];
}
"""
OTHER_WAY = """
__kernel void op(__global float *out, __global const float *x, int rows, int n) {
    int i = get_global_id(0);
    if (i >= rows * n) return;
    out[i] = -2.0f * x[i];
#if BAD == 1
    if (i == rows * n - 1) out[i] = 2.0f * x[i] + 1.0f;
#elif BAD == 2
    if (i == rows * n - 1) out[i] = 0.0f / 0.0f * x[i] + NAN;
#elif BAD == 3
    if (i == rows * n - 1) out[i + 1] = 1.0f;
#endif
}
"""
CHECKS = """
import numpy as np

def same(got, expected, rtol, atol, rows):
    assert got.shape == expected.shape == (rows, got.shape[1])
    for number, (g, e) in enumerate(zip(got, expected)):
        near = [np.allclose(s * g, e, rtol=rtol, atol=atol, equal_nan=True) for s in (1, -1)]
        if not any(near):
            return f"row {number} is neither way"

def all_right(got):
    return True

def raises(got):
    return got.no_such_thing

def a_number(got):
    return 0.5
"""


def direction(function: str, reference: str | None) -> object:
    out = array("out", "float32", "output", '"rows", "n"', f'compare = "checks.py:{function}"')
    return problem(
        out + array("x", "float32", "input", '"rows", "n"') + ROWS + INT_N,
        DIRECTION,
        reference,
        launch='[launch]\ngrid = ["ceildiv(rows * n, 16)"]\nblock = ["16"]',
        contract="rows = { min = 1, max = 20 }\nn = { min = 2, max = 30 }",
        workload="rows = 7, n = 20",
        checks=CHECKS,
    )


FLAT = '[launch]\ngrid = ["ceildiv(rows * n, BLOCK)"]\nblock = ["BLOCK"]'
TWICE = "def ref(x):\n    return 2 * x\n"


class TestOwnFunction:
    @pytest.mark.parametrize("reference", [pytest.param(TWICE, marks=pytest.mark.long), None])
    @pytest.mark.long
    def test_it_decides_on_values_and_nothing_else(self, reference: str | None) -> None:
        asked = direction("same", reference)
        with tried(asked, declared(BLOCK, FLAT, bad=3), OTHER_WAY) as harness:  # type: ignore[arg-type]
            found = outcomes(harness, 3)
        assert [status for status, _ in found] == ["ok", "ok", "wrong", "wrong", "wrong"]
        says(found[2][1], "out: checks.py: row", "is neither way")
        says(found[4][1], "it writes outside out")

    def test_no_function_excuses_what_is_no_number(self) -> None:
        asked = direction("all_right", TWICE)
        with tried(asked, declared(BLOCK, FLAT, bad=3), OTHER_WAY) as harness:  # type: ignore[arg-type]
            found = outcomes(harness, 3)
        assert [status for status, _ in found] == ["ok", "ok", "ok", "wrong", "wrong"]
        says(found[3][1], "out: 1 of", "NaN or infinite")

    @pytest.mark.parametrize(
        ("function", "words"),
        [("raises", "checks.py:15: AttributeError"), ("a_number", "a_number returned float")],
    )
    def test_one_that_fails_on_the_original_is_named(self, function: str, words: str) -> None:
        asked = direction(function, TWICE)
        with (
            pytest.raises(BadInput, match=words),
            tried(asked, declared(BLOCK, FLAT), OTHER_WAY) as harness,  # type: ignore[arg-type]
        ):
            harness.lab.check()
