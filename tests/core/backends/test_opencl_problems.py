"""Whole problems on a real OpenCL device: what the files can say must reach the kernel, and the judge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.lab.labs import Harness, device_of, lab, read_problem, template_text
from tests.hostile.cheats import corpus
from tests.opencl_here import needs_opencl
from tests.wording import says
from tunesmith.backends.messages import TimeRuns
from tunesmith.base.errors import BadInput, KernelWrong
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template_file import parse_template

pytestmark = [needs_opencl, pytest.mark.usefixtures("timed_briefly")]

INT_N = """
[[argument]]
name = "n"
type = "int32"
value = "n"
"""


FEW_SIZES = "n = { one_of = [1, 33, 64, 256] }"  # where sizes are not the subject


def array(name: str, type_: str, role: str, shape: str = '"n"', more: str = "") -> str:
    return f'[[argument]]\nname = "{name}"\ntype = "{type_}*"\nrole = "{role}"\nshape = [{shape}]\n{more}\n'


def problem(
    arguments: str,
    kernel: str,
    reference: str | None,
    *,
    entry: str = "op",
    launch: str = '[launch]\ngrid = ["ceildiv(n, 16)"]\nblock = ["16"]',
    contract: str = "n = { min = 1, max = 300 }",
    workload: str = "n = 256",
    accuracy: str = "",
    more: str = "",
    in_kernel: str = "",
    cache: str = "warm",
    checks: str = "",
) -> Problem:
    named = 'reference = "reference.py:ref"' if reference is not None else ""
    text = f"""
name = "example"
{more}
[kernel]
source = "kernel.cl"
entry = "{entry}"
{in_kernel}
{arguments}
{launch}
[contract]
{contract}
[workloads]
only = {{ {workload}, cache = "{cache}" }}
[accuracy]
{named}
{accuracy}
"""
    return read_problem(text, {"kernel.cl": kernel, "reference.py": reference or "", "checks.py": checks})


def declared(params: str, launch: str, more: str = "", bad: int = 1) -> str:
    """A declaration whose defaults are the first values; BAD chooses a planted error."""
    lines = [*params.splitlines(), f"BAD = {list(range(bad + 1))}"]
    names = [line.split("=") for line in lines if line.strip()]
    default = "\n".join(f"{name.strip()} = {values.strip(' []').split(',')[0]}" for name, values in names)
    listed = "\n".join("=".join(pair) for pair in names)
    return f"[params]\n{listed}\n[default]\n{default}\n{more}\n{launch}"


LAUNCH = '[launch]\ngrid = ["ceildiv(n, BLOCK)"]\nblock = ["BLOCK"]'


@contextmanager
def tried(problem_: Problem, declaration: str, code: str, **options: object) -> Iterator[Harness]:
    with lab(problem_, template_text(declaration, code), spec="opencl", **options) as harness:  # type: ignore[arg-type]
        yield harness


def statuses(harness: Harness, bad: int = 1, **values: int) -> list[str]:
    """Of the good configuration, quick and thorough, then of each planted error."""
    results = [harness.result("short", **values), harness.result("long", **values)]
    results += [harness.result("short", **values, BAD=number) for number in range(1, bad + 1)]
    assert all((r.timing is not None) == r.ok for r in results)
    return [str(r.status) for r in results]


RIGHT = ["ok", "ok", "wrong"]


class TestSimple:
    """One operator, out = 2 * x, and what can go wrong with it."""

    SOURCE = """
#ifndef WANTED
#define WANTED 0
#endif
#ifndef NOTHING
#define NOTHING 1
#endif
#if WANTED
__attribute__((reqd_work_group_size(WANTED, 1, 1)))
#endif
__kernel void op(__global float* out, __global float* x, __global int* turn, int n) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        float y = NOTHING > 100 ? 0 : 2 * x[i];
#if BAD == 1
        y += 1;
#elif BAD == 2  // reads past the end
        y += 0.0f * x[i + 1];
#elif BAD == 3  // remembers how often it ran
        if (i == 0) turn[0] += 1;
        if (i == 0) y = turn[0];
#elif BAD == 4  // does not compile
        y = nonsense;
#endif
        out[i] = y;
    }
}
"""
    TEMPLATE = template_text(
        declared("BLOCK = [16, 32, 8192]\nWANTED = [0, 16, 64]\nNOTHING = [1, 2, 3]", LAUNCH, bad=4), SOURCE
    )

    @pytest.fixture(scope="class")
    @staticmethod
    def simple() -> Iterator[Harness]:
        arguments = array("out", "float32", "output") + array("x", "float32", "input")
        turn = array("turn", "int32", "workspace", '"1"')
        kernel = "\n\n#define BAD 0" + TestSimple.SOURCE
        reference = "def ref(x):\n    return 2 * x\n"
        example = problem(arguments + turn + INT_N, kernel, reference, contract=FEW_SIZES)
        with lab(example, TestSimple.TEMPLATE, spec="opencl") as harness:
            yield harness

    def test_right_is_right(self, simple: Harness) -> None:
        assert simple.result("short").status is Status.OK
        assert simple.result("long").status is Status.OK
        assert simple.lab.verify(simple.trial("long")).outcome.status is Status.OK

    @pytest.mark.parametrize(
        ("bad", "status", "words"),
        [
            (1, Status.WRONG, "off by 1"),
            (2, Status.WRONG, "not both finite"),  # guards hold NaN: what is read there passes for no number
            (3, Status.UNSTABLE, "two runs on the same inputs give different out"),
        ],
    )
    @pytest.mark.few(2)
    def test_wrong_is_wrong(self, simple: Harness, bad: int, status: Status, words: str) -> None:
        result = simple.result(BAD=bad)
        assert (result.status, result.timing) == (status, None)
        assert words in result.detail

    def test_the_compiler_speaks_in_the_templates_own_lines(self, simple: Harness) -> None:
        result = simple.result(BAD=4)
        line = next(i for i, text in enumerate(self.TEMPLATE.splitlines(), 1) if "nonsense" in text)
        assert result.status is Status.BUILD_FAILED
        assert f"template.fake:{line}:" in result.detail

    def test_a_group_larger_than_the_device_allows(self, simple: Harness) -> None:
        result = simple.result(BLOCK=8192)
        assert result.status is Status.OVER_LIMITS
        assert "8192 threads per block, the device allows 4096" in result.detail

    def test_a_required_group_size_that_the_launch_does_not_have(self, simple: Harness) -> None:
        assert simple.result(WANTED=16).status is Status.OK
        assert simple.result(WANTED=64).status is Status.CRASHED
        assert simple.result().status is Status.OK

    @pytest.mark.long
    def test_equal_binaries_are_timed_once(self, simple: Harness) -> None:
        """A parameter that changes nothing in the code; another launch of the binary is another thing."""
        first = simple.outcome(NOTHING=1)
        before = len(simple.log.of(TimeRuns))
        second = simple.outcome(NOTHING=2)
        assert second.code_digest == first.code_digest
        assert second.results == first.results
        assert len(simple.log.of(TimeRuns)) == before
        third = simple.outcome(NOTHING=3, BLOCK=32)
        assert third.code_digest == first.code_digest
        assert third.results[0].key != first.results[0].key
        assert len(simple.log.of(TimeRuns)) == before + 1


@pytest.mark.parametrize("defines", ["", "defines = { MORE = 1 }"])
def test_the_compiler_speaks_in_the_kernels_own_lines(defines: str) -> None:
    source = "\n\n__kernel void op(__global float* out, int n) {\n  out[0] = nonsense;\n}"
    example = problem(array("out", "float32", "output") + INT_N, source, None, in_kernel=defines)
    with pytest.raises(BadInput, match=r"kernel\.cl:4:"), lab(example, spec="opencl"):
        pass


@pytest.mark.long
def test_local_memory() -> None:
    """An argument of it, which each group uses to reverse its part, and arrays of the kernel's own."""
    source = """
__kernel void op(__global float* out, __global const float* x, __local float* tile, int n) {
    __local float own[OWN];
    int i = get_global_id(0), l = get_local_id(0), first = i - l;
    int count = min((int)get_local_size(0), n - first);
    if (i < n) tile[l] = x[i];
    own[(l * 1000) % OWN] = BAD;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) out[first + count - 1 - l] = tile[l] + own[(l * 1000) % OWN];
}
"""
    tile = array("tile", "float32", "local", '"16"')
    arguments = array("out", "float32", "output") + array("x", "float32", "input") + tile + INT_N
    reference = """
import numpy as np
def ref(x, n):
    return np.concatenate([x[i:i + 16][::-1] for i in range(0, n, 16)])
"""
    example = problem(arguments, source.replace("BAD", "0").replace("OWN", "64"), reference)
    launch = '[launch]\ngrid = ["ceildiv(n, 16)"]\nblock = ["16"]'
    with tried(example, declared("OWN = [32, 1048576]", launch), source) as harness:
        assert statuses(harness) == RIGHT
        # PoCL would run it all the same.
        result = harness.result(OWN=1048576)
        assert result.status is Status.OVER_LIMITS
        says(result.detail, "4194368 bytes", "shared memory", "device allows")


def test_a_local_argument_beyond_the_device_is_the_problems_fault() -> None:
    source = "__kernel void op(__global int* out, __local float* tile, int n) { out[0] = 1; }"
    tile = array("tile", "float32", "local", '"16 * n"')
    arguments = array("out", "int32", "output", '"1"') + tile + INT_N
    example = problem(arguments, source, None, contract="n = { min = 1, max = 1000000 }")
    words = "bytes of shared memory per block, the device allows"
    with pytest.raises(BadInput, match=words), lab(example, spec="opencl"):
        pass


SUM = """
__kernel void first(__global float* w, __global const float* x, int rows, int d) {
    int r = get_global_id(0);
    if (r < rows) { float s = 0; for (int i = 0; i < d; ++i) s += x[r * d + i]; w[r] = s; }
}
__kernel void second(__global float* out, __global const float* w, int rows) {
    int r = get_global_id(0);
    if (r < rows) out[r] = 2 * w[r];
}
"""
SUM_LAUNCHES = """
[[launch]]
entry = "first"
grid = ["ceildiv(rows, 16)"]
block = ["16"]
args = ["w", "x", "rows", "d"]
[[launch]]
entry = "second"
grid = ["ceildiv(rows, 8)"]
block = ["8"]
args = ["out", "w", "rows"]
"""
TWO_STEPS = """
__kernel void parts(__global float* partial, __global const float* x, int rows, int d) {
    int r = get_group_id(0), p = get_group_id(1), w = ceil(d / (float)PARTS);
    float s = 0;
    for (int i = p * w; i < min(d, (p + 1) * w); ++i) s += x[r * d + i];
    partial[r * PARTS + p] = s;
}
__kernel void total(__global float* out, __global const float* partial, __global int* visits, int rows) {
    int r = get_global_id(0);
    if (r >= rows) return;
    float s = 0;
    for (int p = 0; p < PARTS; ++p) s += partial[r * PARTS + p];
    visits[r] += 1;
    out[r] = 2 * s + BAD + 100.0f * (visits[r] - 1);
}
"""
TWO_LAUNCHES = """
[workspace]
partial = { type = "float32*", shape = ["rows * PARTS"] }
visits = { type = "int32*", shape = ["rows"], init = 0 }
[[launch]]
entry = "parts"
grid = ["rows", "PARTS"]
block = ["1"]
args = ["partial", "x", "rows", "d"]
[[launch]]
entry = "total"
grid = ["ceildiv(rows, 16)"]
block = ["16"]
args = ["out", "partial", "visits", "rows"]
"""
ROWS_D = "".join(f'[[argument]]\nname = "{s}"\ntype = "int32"\nvalue = "{s}"\n' for s in ("rows", "d"))


def sum_problem(more_workloads: str = "") -> Problem:
    arguments = (
        array("out", "float32", "output", '"rows"')
        + array("x", "float32", "input", '"rows", "d"')
        + array("w", "float32", "workspace", '"rows"')
        + ROWS_D
    )
    return problem(
        arguments,
        SUM,
        "def ref(x):\n    return 2 * x.sum(axis=1)\n",
        entry="first",
        launch=SUM_LAUNCHES,
        contract="rows = { min = 1, max = 40 }\nd = { min = 1, max = 70 }",
        workload="rows = 32, d = 64" + more_workloads,
        accuracy='rtol = 1e-4\natol = 1e-3\nindependent = "rows"',
    )


@pytest.mark.long
def test_several_launches_and_workspaces() -> None:
    """The original's own, and a template's: one poisoned, one that holds its value before every run."""
    with tried(sum_problem(), declared("PARTS = [4, 1, 8]", TWO_LAUNCHES), TWO_STEPS) as harness:
        assert statuses(harness) == RIGHT
        assert harness.result(PARTS=8).status is Status.OK


@pytest.mark.long
def test_sizes_baked_into_the_build() -> None:
    """A build for one d is wrong for every other, and is neither tested nor used there."""
    source = """
__kernel void op(__global float* out, __global const float* x, int rows, int d) {
    int r = get_global_id(0);
    const int length = D_CONST ? D_CONST : d;
    if (r >= rows) return;
    float s = 0;
    for (int i = 0; i < length; ++i) s += x[r * length + i];
    out[r] = 2 * s + BAD;
}
"""
    launch = """
[defines]
D_CONST = "d if BAKE else 0"
[launch]
entry = "op"
args = ["out", "x", "rows", "d"]
grid = ["ceildiv(rows, 16)"]
block = ["16"]
"""
    example = sum_problem(', cache = "warm" }\nother = { rows = 8, d = 9')
    with tried(example, declared("BAKE = [1, 0]", launch), source) as harness:
        assert statuses(harness) == RIGHT
        outcome = harness.outcome("long", BAKE=1)
        assert [(r.workload, str(r.status)) for r in outcome.results] == [("only", "ok"), ("other", "ok")]
        assert harness.lab.verify(harness.trial("long", BAKE=1)).outcome.status is Status.OK


@pytest.mark.long
def test_strided_arrays() -> None:
    """Padded rows, columns first, and padding that belongs to someone else, read-only or in place."""
    source = """
__kernel void op(__global float* out, __global const float* x, __global float* z, int rows, int d, int step) {
    int r = get_global_id(1), c = get_global_id(0);
    if (r >= rows || c >= d) return;
    out[r * step + c] = 3 * x[c * rows + r] + (BAD == 1 && c == 1);
    z[r * step + c] += 1;
    if (BAD == 2 && r < rows - 1 && c == 0) out[r * step + d] = 0;
    if (BAD == 3 && r < rows - 1 && c == 0) z[r * step + d] += 1;
}
"""
    padded = 'strides = ["d + 3", "1"]'
    arguments = (
        array("out", "float32", "output", '"rows", "d"', padded)
        + array("x", "float32", "input", '"rows", "d"', 'strides = ["1", "rows"]')
        + array("z", "float32", "inout", '"rows", "d"', padded)
        + ROWS_D
        + '[[argument]]\nname = "step"\ntype = "int32"\nvalue = "d + 3"\n'
    )
    launch = '[launch]\ngrid = ["ceildiv(d, 8)", "ceildiv(rows, 4)"]\nblock = ["8", "4"]'
    example = problem(
        arguments,
        source.replace("BAD", "0"),
        "def ref(x, z):\n    return 3 * x, z + 1\n",
        launch=launch,
        contract="rows = { min = 1, max = 20 }\nd = { min = 2, max = 40 }",
        workload="rows = 16, d = 32",
    )
    with tried(example, declared("", launch, bad=3), source) as harness:
        assert statuses(harness, bad=3) == ["ok", "ok", "wrong", "wrong", "wrong"]
        assert "writes between the rows of out" in harness.result(BAD=2).detail
        assert "writes between the rows of z" in harness.result(BAD=3).detail


@pytest.mark.parametrize("cache", ["warm", "cold"])
@pytest.mark.long
def test_in_place(cache: str) -> None:
    """Through two arguments, and from its own values in every run: after one too many it takes a second."""
    device = device_of("opencl")
    device = replace(device, limits=replace(device.limits, llc=1 << 16))  # rotation takes time and memory
    source = """
__kernel void op(__global int* x, __global const int* y, int n) {
    int i = get_global_id(0);
    if (i >= n) return;
    if (x[i] > 100) for (volatile int k = 0; k < 100000000; ++k) { }
    x[i] = y[i] + 1 + BAD;
}
"""
    alias = '[[argument]]\nname = "y"\ntype = "int32*"\nrole = "input"\nalias = "x"\n'
    example = problem(
        array("x", "int32", "inout", more="range = [100, 100]") + alias + INT_N,
        source.replace("BAD", "0"),
        "def ref(x):\n    return x + 1\n",
        cache=cache,
    )
    with tried(example, declared("BLOCK = [32, 16]", LAUNCH), source, device=device) as harness:
        assert statuses(harness) == RIGHT
        samples = [s for r in harness.log.of(TimeRuns) for one in r.reply.samples for s in one]
        assert len(samples) >= 9
        assert max(samples) < 0.05


@pytest.mark.long
def test_integers_and_codes() -> None:
    """Exact to the last bit, beyond what a float64 can tell; quantised codes may differ at a tie alone."""
    source = """
__kernel void op(__global int* a, __global long* b, __global uchar* c,
                 __global const int* x, __global const long* y, __global const float* z, int n) {
    int i = get_global_id(0);
    if (i >= n) return;
    a[i] = x[i] * x[i] - (BAD == 1 && i == n - 1);
    b[i] = y[i] * 3 + 1 + (BAD == 2);
    c[i] = convert_uchar_sat_rte(z[i] * 25.0f + 128.0f) + (BAD == 3 && i % 2 == 0);
}
"""
    arguments = (
        array("a", "int32", "output")
        + array("b", "int64", "output")
        + array("c", "uint8", "output", more='compare = "codes"\natol = 1e-3\nrtol = 1e-6')
        + array("x", "int32", "input", more="range = [-40000, 40000]")
        + array("y", "int64", "input", more="range = [1000000000000000000, 2000000000000000000]")
        + array("z", "float32", "input")
        + INT_N
    )
    reference = """
def ref(x, y, z):
    return (x.astype("int64") ** 2).astype("int32"), 3 * y + 1, 25 * z + 128
"""
    example = problem(arguments, source.replace("BAD", "0"), reference)
    with tried(example, declared("BLOCK = [8]", LAUNCH, bad=3), source) as harness:
        assert statuses(harness, bad=3) == ["ok", "ok", "wrong", "wrong", "wrong"]
        assert "b[0] is" in harness.result(BAD=2).detail
        assert "it must be equal" in harness.result(BAD=2).detail
        assert "from a tie" in harness.result(BAD=3).detail


def test_bytes_of_an_operator_that_may_vary() -> None:
    """A saturated byte looks like poison: with runs that differ that alone proves nothing."""
    source = """
__kernel void op(__global uchar* out, __global int* turn, int n) {
    int i = get_global_id(0);
    if (i < n) out[i] = i == 0 ? 100 + (turn[0] & 1) : 255;
    if (i == 0) turn[0] += 1;
}
"""
    codes = array("out", "uint8", "output", more='compare = "codes"\natol = 1.0')
    reference = "import numpy as np\ndef ref(n):\n    return np.where(np.arange(n) == 0, 100.5, 255)\n"
    arguments = codes + array("turn", "int32", "workspace", '"1"') + INT_N
    example = problem(arguments, source, reference, accuracy="deterministic = false")
    with lab(example, spec="opencl", baseline=False) as harness:
        assert harness.lab.check() > 3


@pytest.mark.long
def test_half_precision_in_three_dimensions() -> None:
    """Every axis of the launch and every index counts, in halves that only vload and vstore can touch."""
    source = """
__kernel void op(__global half* out, __global const half* x, int a, int b, int c) {
    int i = get_global_id(2), j = get_global_id(1), k = get_global_id(0);
    int at = (i * b + j) * c + k;
    if (i < a && j < b && k < c) vstore_half(vload_half(at, x) * (i + 10 * j + 100 * k) + BAD, at, out);
}
"""
    sizes = "".join(f'[[argument]]\nname = "{s}"\ntype = "int32"\nvalue = "{s}"\n' for s in "abc")
    shape = '"a", "b", "c"'
    reference = """
import numpy as np
def ref(x, a, b, c):
    i, j, k = np.meshgrid(np.arange(a), np.arange(b), np.arange(c), indexing="ij")
    return x * (i + 10 * j + 100 * k)
"""
    example = problem(
        array("out", "float16", "output", shape) + array("x", "float16", "input", shape) + sizes,
        source.replace("BAD", "0"),
        reference,
        launch='[launch]\ngrid = ["ceildiv(c, 4)", "ceildiv(b, 2)", "a"]\nblock = ["4", "2"]',
        contract="\n".join(f"{s} = {{ min = 1, max = 9 }}" for s in "abc"),
        workload="a = 5, b = 6, c = 7",
    )
    other = '[launch]\ngrid = ["ceildiv(c, X)", "ceildiv(b, Y)", "ceildiv(a, Z)"]\nblock = ["X", "Y", "Z"]'
    with tried(example, declared("X = [1, 4]\nY = [2, 1]\nZ = [3, 1]", other), source) as harness:
        assert statuses(harness) == RIGHT
        assert harness.result(X=4, Y=1, Z=1).status is Status.OK


SCALARS = {
    "int8": ("char", "-7"),
    "uint8": ("uchar", "250"),
    "int16": ("short", "-30000"),
    "uint16": ("ushort", "60000"),
    "int32": ("int", "-2000000000"),
    "uint32": ("uint", "4000000000"),
    "int64": ("long", "-4000000000000000000"),
    "uint64": ("ulong", "4000000000000000000"),
    "float32": ("float", "0.1"),
    "float64": ("double", "0.1"),
}


def test_scalars_flags_and_defines() -> None:
    """The kernel writes out what it was given: scalars of every type, flags, a define, a parameter."""
    count = len(SCALARS)
    writes = "\n".join(f"    if (i == {place}) out[i] = s{place};" for place in range(count))
    takes = ", ".join(f"{c} s{place}" for place, (c, _) in enumerate(SCALARS.values()))
    source = f"""
__kernel void op(__global double* out, {takes}) {{
    int i = get_global_id(0);
{writes}
    if (i == {count}) out[i] = FLAG;
    if (i == {count + 1}) out[i] = DEFINE;
    if (i == {count + 2}) out[i] = OWN + BAD;
}}
"""
    listed = "".join(
        f'[[argument]]\nname = "s{place}"\ntype = "{type_}"\nvalue = {value}\n'
        for place, (type_, (_, value)) in enumerate(SCALARS.items())
    )
    names = ", ".join(f"s{place}" for place in range(count))
    example = problem(
        array("out", "float64", "output", f'"{count + 3}"') + listed,
        source.replace("BAD", "0").replace("OWN", "7"),
        f"import numpy as np\ndef ref({names}):\n    return np.array([{names}, 5, 6, 7], dtype=np.float64)\n",
        launch=f'[launch]\ngrid = ["{count + 3}"]\nblock = ["1"]',
        contract="n = { min = 1, max = 2 }",
        workload="n = 1",
        in_kernel='flags = ["-DFLAG=5"]\ndefines = { DEFINE = "(2 * 3)" }',
    )
    launch = (
        f'[build]\nflags = ["-DOWN={{F}}", "-cl-mad-enable"]\n[launch]\ngrid = ["1"]\nblock = ["{count + 3}"]'
    )
    with tried(example, declared("F = [7, 8]", launch), source) as harness:
        assert statuses(harness) == RIGHT
        assert harness.result(F=8).status is Status.WRONG


@pytest.mark.long
def test_a_launch_that_is_left_out_at_some_sizes() -> None:
    """Whole groups in one launch, what is left in another: neither is there at all sizes."""
    source = """
__kernel void body(__global float* out, __global const float* x, int n) {
    out[get_global_id(0)] = 2.0f * x[get_global_id(0)];
}
__kernel void rest(__global float* out, __global const float* x, int n) {
    int i = n / BLOCK * BLOCK + get_global_id(0);
    if (i < n) out[i] = 2.0f * x[i] + BAD;
}
"""
    body = 'grid = ["n // BLOCK"]\nblock = ["BLOCK"]\nentry = "body"\nwhen = "n >= BLOCK"\n'
    rest = 'grid = ["1"]\nblock = ["BLOCK"]\nentry = "rest"\nwhen = "n % BLOCK"\n'
    launches = f"[[launch]]\n{body}[[launch]]\n{rest}"
    example = problem(
        array("out", "float32", "output") + array("x", "float32", "input") + INT_N,
        source.replace("BAD", "0").replace("BLOCK", "16"),
        "def ref(x):\n    return 2 * x\n",
        entry="body",
        launch=launches.replace("BLOCK", "16"),
        workload="n = 250",
    )
    with tried(example, declared("BLOCK = [16, 32]", launches), source) as harness:
        assert statuses(harness) == RIGHT
        assert harness.result("long", BLOCK=32).ok
    never = launches.replace(
        "n % BLOCK", "n % BLOCK == 1 or n < BLOCK"
    )  # as a template that forgets the rest
    with tried(example, declared("BLOCK = [16]", never), source) as harness:
        assert harness.result("short").status is Status.WRONG


def test_inputs_that_an_expression_makes() -> None:
    source = """
__kernel void op(__global float* out, __global const float* x, __global const int* index, int n) {
    int i = get_global_id(0);
    if (i < n) out[i] = x[index[i]] + BAD;
}
"""
    index = array("index", "int32", "input", more='init = "(i * 7 + 3) % n"')
    example = problem(
        array("out", "float32", "output") + array("x", "float32", "input") + index + INT_N,
        source.replace("BAD", "0"),
        "import numpy as np\ndef ref(x, index, n):\n    return x[(np.arange(n) * 7 + 3) % n]\n",
        contract=FEW_SIZES,
    )
    with tried(example, declared("BLOCK = [16]", LAUNCH), source) as harness:
        assert statuses(harness) == RIGHT


@pytest.mark.long
def test_a_float_that_follows_the_sizes() -> None:
    source = """
__kernel void op(__global float* out, __global const float* x, float scale, int n) {
    int i = get_global_id(0);
    if (i < n) out[i] = scale * x[i] + BAD;
}
"""
    scale = '[[argument]]\nname = "scale"\ntype = "float32"\nvalue = "1 / sqrt(n)"\n'
    example = problem(
        array("out", "float32", "output") + array("x", "float32", "input") + scale + INT_N,
        source.replace("BAD", "0"),
        "import math\ndef ref(x, n, scale):\n    assert abs(scale - 1 / math.sqrt(n)) < 1e-7\n"
        "    return x / math.sqrt(n)\n",
    )
    with tried(example, declared("BLOCK = [16]", LAUNCH), source) as harness:
        assert statuses(harness) == RIGHT


def test_a_scalar_too_large_for_its_type_is_the_contracts_fault() -> None:
    source = "__kernel void op(__global float* out, int m) {\n  out[get_global_id(0)] = 1.0f;\n}"
    scalar = '[[argument]]\nname = "m"\ntype = "int32"\nvalue = "n * 10000000"\n'
    launch = '[launch]\ngrid = ["n"]\nblock = ["1"]'
    example = problem(
        array("out", "float32", "output") + scalar, source, None, launch=launch, workload="n = 4"
    )
    with pytest.raises(BadInput, match=r"m = \d+ does not fit int32"), lab(example, spec="opencl"):
        pass


TABLES = 'tables = { type = "float32*", shape = ["64", "32768"], init = 0 }'


def test_clearing_64_tables_before_each_call_counts() -> None:
    """What a template asks of its callers is in its time: it was claimed as 1.35x, its clears outside."""
    seconds = []
    with lab(corpus.problem("tiny"), spec="opencl") as harness:
        for tables in (TABLES.replace(", init = 0", ""), TABLES):
            cheat = corpus.Cheat("", "", workspace=tables, parameter="__global float *tables")
            text = corpus.text_of(corpus.HONEST["rmsnorm"], cheat)
            harness.template = parse_template(text, path="template.cl", problem=harness.problem)
            harness.lab.admit(harness.template)
            seconds.append(min(harness.result().timing.samples))
    assert seconds[1] > 2 * seconds[0] + 1e-4, f"8 MiB are cleared in each launch: {seconds}"


class TestRealWorkers:
    """The same through processes, in which kernels are native code."""

    SOURCE = """
__kernel void op(__global float* out, __global float* x, int n) {
    int i = get_global_id(0);
#if KIND == 1
    if (i == 0) *(volatile __global int*)(size_t)64 = 1;
#elif KIND == 2
    if (i == 0) for (int k = 0; k < 3000; ++k) printf("a kernel that will not be quiet, line %d\\n", k);
#elif KIND == 3
    if (i < 16) out[n + i] = 1.0f;
#elif KIND == 4
    if (i == n - 1) x[i] += 1e-3f;
#endif
    if (i < n) out[i] = 2 * x[i];
}
"""
    DECLARATION = """
[params]
KIND = [0, 1, 2, 3, 4]
[default]
KIND = 0
[launch]
grid = ["ceildiv(n, 16)"]
block = ["16"]
"""

    def example(self, kind: int = 0) -> Problem:
        arguments = array("out", "float32", "output") + array("x", "float32", "input") + INT_N
        kernel = self.SOURCE.replace("KIND", str(kind))
        return problem(arguments, kernel, "def ref(x):\n    return 2 * x\n", contract=FEW_SIZES)

    @pytest.mark.long
    def test_each_kernel_is_charged_with_its_own_deeds(self, tmp_path: Path) -> None:
        text = template_text(self.DECLARATION, self.SOURCE)
        with lab(self.example(), text, spec="opencl", scratch=tmp_path) as harness:
            trials = [harness.trial(KIND=kind) for kind in (1, 2, 3, 4, 0)]
            for trial in trials:
                harness.lab.submit(trial)
            crashed, loud, outside, changed, good = (harness.lab.collect().results[0] for _ in trials)
        assert (crashed.status, loud.status, good.status) == (Status.CRASHED, Status.OK, Status.OK)
        assert "killed by SIGSEGV" in crashed.detail
        assert outside.status is changed.status is Status.WRONG
        assert re.search("changes the input x|writes to an input", changed.detail)
        says(outside.detail, "outside out", "64 bytes", "past its end", "0 away")

    @pytest.mark.long
    def test_an_original_that_crashes(self, tmp_path: Path) -> None:
        words = "the kernel crashes at n=1: killed by SIGSEGV"
        with pytest.raises(KernelWrong, match=words), lab(self.example(1), spec="opencl", scratch=tmp_path):
            pass
