from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.base.errors import BadInput
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem

TEXT = """\
name = "silu_and_mul"

[kernel]
source   = "kernel.cu"
entry    = "silu_and_mul<__half>"
flags    = ["-use_fast_math"]

[[argument]]
name = "out"
type = "float16*"
shape = ["tokens", "d"]
role = "output"
[[argument]]
name = "input"
type = "float16*"
shape = ["tokens", "2 * d"]
role = "input"
[[argument]]
name = "tokens"
type = "int32"
value = "tokens"
[[argument]]
name = "d"
type = "int32"
value = "d"

[launch]
grid  = ["min(tokens, 256)"]
block = ["128"]

[contract]
tokens = { min = 1, max = 1048576 }
d = { min = 8, max = 65536, multiple_of = 8 }

[workloads]
decode  = { tokens = 16,   d = 4096 }
prefill = { tokens = 4096, d = 14336, weight = 2.0 }

[accuracy]
reference = "reference.py:silu_and_mul"
rtol = 4e-3
atol = 2e-3
"""
FILES = {
    "kernel.cu": "__global__ void silu_and_mul() {}",
    "kernel.cl": "__kernel void k() {}",
    "kernel.txt": "?",
    "empty.cu": " \n",
    "long.cu": '"' + "x" * 5_000_000 + '"',
    "reference.py": "import numpy as np\n\ndef silu_and_mul(input):\n    return input\n\nclass C: pass\n",
    "inputs.py": "def make(sizes, rng):\n    return {}\n",
    "broken.py": "def f(:\n    pass\n",
    "nul.py": "x = 1\0",
}


def read_file(name: str) -> str:
    if name not in FILES:
        raise BadInput(f"there is no file {name}", hint="write it")
    return FILES[name]


def parse(text: str) -> Problem:
    return parse_problem(text, path="problem.toml", read=read_file)


def edited(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    return text


def refusal(text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert caught.value.hint is None or caught.value.hint.strip()
    return caught.value


def line_of(text: str, part: str) -> int:
    at = text.index(part)
    return text.count("\n", 0, at) + 1


# -- what is read -----------------------------------------------------------------------------------------


def test_the_example_of_the_format() -> None:
    problem = parse(TEXT)
    assert problem.name == "silu_and_mul"
    assert problem.kernel.language == "cuda"
    assert problem.kernel.text == FILES["kernel.cu"]
    assert problem.kernel.flags == ("-use_fast_math",)
    assert [(a.name, a.type, a.role) for a in problem.arguments] == [
        ("out", "float16", "output"),
        ("input", "float16", "input"),
        ("tokens", "int32", "scalar"),
        ("d", "int32", "scalar"),
    ]
    assert [e.text for e in problem.argument("input").shape] == ["tokens", "2 * d"]
    (launch,) = problem.launches
    assert launch.entry == "silu_and_mul<__half>"
    assert launch.args == ("out", "input", "tokens", "d")
    assert launch.grid[0].evaluate({"tokens": 300}) == 256
    assert problem.size_names == ("tokens", "d")
    assert problem.contract.sizes[1].multiple_of == 8
    assert problem.workload("prefill").weight == 2.0
    assert problem.workload("decode").as_dict() == {"tokens": 16, "d": 4096}
    assert problem.workload("decode").cache == "cold"
    assert problem.accuracy.rtol == 4e-3
    assert problem.accuracy.reference is not None
    assert problem.accuracy.reference.function == "silu_and_mul"
    assert problem.accuracy.deterministic
    assert not problem.accuracy.baseline_may_fail


RICH = """\
name = "rich-1.0"
inputs = "inputs.py:make"
traffic = "8 * n"

[kernel]
source = "kernel.cl"
entry = "first<{n}>"
language = "fake"
include = ["include", "../include"]
defines = { TILE = 4, NAME = "x y", HALF = 0.5 }

[[argument]]
name = "x"
type = "float32*"
role = "inout"
shape = ["n", 3]
strides = ["4", 1]
values = "uniform"
range = [-1, 1.5]
align = 16
rtol = 0.0
atol = 1
compare = "exact"
traffic = "4 * n"
[[argument]]
name = "y"
type = "float32*"
alias = "x"
[[argument]]
name = "codes"
type = "uint8 *"
role = "output"
shape = ["n"]
init = 255
compare = "codes"
[[argument]]
name = "scratch"
type = "int32*"
role = "workspace"
shape = ["n // 2"]
init = 0
[[argument]]
name = "tile"
type = "float32*"
role = "local"
shape = ["min(n, 64)"]
[[argument]]
name = "eps"
type = "float32"
value = 1e-5
[[argument]]
name = "one"
type = "float64"
role = "scalar"
value = 1
[[argument]]
name = "minus"
type = "int8"
value = -128

[[launch]]
grid = [1, "device.sms", "n"]
block = [64]
shared = "4 * n"
cluster = [2]
cooperative = true
[[launch]]
entry = "second"
grid = ["ceildiv(n, 64)"]
block = ["64", 1, 1]
args = ["x", "eps"]
pdl = true

[contract]
n = { one_of = [64, 128, 0] }
heads = { min = 0, max = 8 }
require = ["heads % 2 == 0", "n >= heads"]

[workloads]
only = { n = 128, heads = 8, cache = "warm" }

[accuracy]
independent = "n"
deterministic = false
baseline_may_fail = true
"""


def test_the_further_words() -> None:
    problem = parse(RICH)
    assert problem.inputs is not None
    assert problem.inputs.function == "make"
    assert problem.traffic is not None
    assert problem.traffic.evaluate({"n": 2}) == 16
    assert problem.kernel.language == "fake"
    assert problem.kernel.include == ("include", "../include")
    assert problem.kernel.defines == (("TILE", "4"), ("NAME", "x y"), ("HALF", "0.5"))
    x, y, codes, scratch, tile, eps, one, minus = problem.arguments
    assert [e.text for e in x.strides] == ["4", "1"]
    assert (x.values, x.range, x.align, x.rtol, x.atol, x.compare) == (
        "uniform", (-1.0, 1.5), 16, 0.0, 1.0, "exact",
    )  # fmt: skip
    assert x.traffic is not None
    assert (y.alias, y.role, y.shape) == ("x", "inout", ())
    assert (codes.type, codes.init, codes.compare) == ("uint8", 255.0, "codes")
    assert (scratch.role, scratch.init, tile.role) == ("workspace", 0.0, "local")
    assert (eps.value, one.value) == (1e-5, 1.0)
    assert str(minus.value) == "-128"
    first, second = problem.launches
    assert first.entry == "first<{n}>"
    assert (first.cooperative, first.pdl, second.pdl) == (True, False, True)
    assert first.shared is not None
    assert first.grid[1].names == {"device.sms"}
    assert [e.text for e in first.cluster] == ["2"]
    assert (second.entry, second.args) == ("second", ("x", "eps"))
    assert problem.contract.sizes[0].one_of == (64, 128, 0)
    assert [c.expr.text for c in problem.contract.require] == ["heads % 2 == 0", "n >= heads"]
    assert problem.workloads[0].cache == "warm"
    assert problem.accuracy.independent == "n"
    assert not problem.accuracy.deterministic
    assert problem.accuracy.baseline_may_fail


@pytest.mark.parametrize(
    ("source", "language"), [("kernel.cu", "cuda"), ("kernel.cl", "opencl"), ("a/b.c/kernel.cu", "cuda")]
)
def test_the_language_follows_from_the_suffix(source: str, language: str) -> None:
    text = edited(('"kernel.cu"', f'"{source}"'))
    problem = parse_problem(text, path="p", read=lambda name: FILES[name.rpartition("/")[2]])
    assert problem.kernel.language == language


@pytest.mark.parametrize(
    ("type_", "rtol", "atol"),
    [("float32", 1e-4, 1e-5), ("float16", 4e-3, 2e-3), ("bfloat16", 1.6e-2, 1e-2), ("float64", 1e-10, 1e-12)],
)
def test_tolerances_default_by_the_output_s_type(type_: str, rtol: float, atol: float) -> None:
    text = edited(
        ('name = "out"\ntype = "float16*"', f'name = "out"\ntype = "{type_}*"'), ("rtol = 4e-3\n", "")
    )
    assert parse(text).accuracy.rtol == rtol
    assert parse(text).accuracy.atol == 2e-3, "what is given stays"
    assert parse(text.replace("atol = 2e-3\n", "")).accuracy.atol == atol


def test_a_second_output_of_another_type_has_its_own_tolerances() -> None:
    scale = '[[argument]]\nname = "scale"\ntype = "float32*"\nrole = "output"\nshape = ["tokens"]\n'
    text = edited(("[launch]", f"{scale}\n[launch]"), ("rtol = 4e-3\natol = 2e-3\n", ""))
    problem = parse(text)
    assert (problem.accuracy.rtol, problem.accuracy.atol) == (4e-3, 2e-3)
    assert (problem.argument("scale").rtol, problem.argument("scale").atol) == (1e-4, 1e-5)
    assert problem.argument("out").rtol is None


def test_accuracy_may_be_left_out() -> None:
    accuracy = parse(TEXT[: TEXT.index("[accuracy]")]).accuracy
    assert (accuracy.rtol, accuracy.reference) == (4e-3, None)


def test_equal_texts_have_equal_digests() -> None:
    assert parse(TEXT).digest == parse(TEXT).digest
    assert parse(TEXT).digest != parse(edited(("d = 14336", "d = 8192"))).digest


EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*/problem.toml")), ids=lambda p: p.parent.name)
def test_the_examples_are_read(path: Path) -> None:
    folder = path.parent
    problem = parse_problem(
        path.read_text("utf-8"), path=path.name, read=lambda name: (folder / name).read_text("utf-8")
    )
    assert problem.workloads


# -- what is refused --------------------------------------------------------------------------------------

OUT = 'name = "out"\ntype = "float16*"\nshape = ["tokens", "d"]\nrole = "output"'


def out(*lines: str) -> tuple[str, str]:
    """The argument `out`, written otherwise."""
    return OUT, "\n".join(lines)


# Each: what is changed, the text whose line the message names ("" for the file alone), what it says.
FAULTS: list[tuple[tuple[str, str], str, str]] = [
    # names and unknown words
    (('name = "silu_and_mul"', ""), "", "name is missing"),
    (('name = "silu_and_mul"', 'name = "a/b"'), "a/b", "letters, digits and _ . -"),
    (('name = "silu_and_mul"', 'name = ".."'), '".."', "letters, digits"),
    (('name = "silu_and_mul"', "name = 3"), "name = 3", "name must be a text in quotes, got 3"),
    (('name = "silu_and_mul"', 'name = ""'), 'name = ""', "not empty"),
    (("[accuracy]", "[acuracy]"), "[acuracy]", "unknown key 'acuracy'"),
    (("flags    =", "flag ="), "flag =", "unknown key 'flag'"),
    (("block = [", "blok = ["), "[launch]", "block is missing"),
    (("weight = 2.0", "wieght = 2.0"), "prefill", "'wieght' has no rule in [contract]"),
    (("multiple_of = 8", "multiple = 8"), "d = { min", "unknown key 'multiple'"),
    (("rtol = 4e-3", "rtoll = 4e-3"), "rtoll", "unknown key 'rtoll'"),
    (out(OUT, "extra = 1"), "extra", "argument 'out': unknown key 'extra'"),
    # kernel
    (('source   = "kernel.cu"', ""), "[kernel]", "source is missing"),
    (('"kernel.cu"', '"none.cu"'), "none.cu", "there is no file none.cu"),
    (('"kernel.cu"', '"empty.cu"'), "empty.cu", "is empty"),
    (('"kernel.cu"', '"long.cu"'), "long.cu", "at most 4,000,000 are read"),
    (('"kernel.cu"', '"kernel.txt"'), "kernel.txt", "the language cannot be told"),
    (('entry    = "silu_and_mul<__half>"', ""), "[kernel]", "entry is missing"),
    (('"silu_and_mul<__half>"', '"silu<{dd}>"'), "silu<{dd}>", "inserts {dd}, which is not there"),
    (("flags    = [", 'language = "cude"\nflags = ['), "cude", "one of cuda, hip, opencl, fake, got 'cude'"),
    (('["-use_fast_math"]', '"-use_fast_math"'), "flags", "a list of texts"),
    (('["-use_fast_math"]', "[1]"), "flags", "got 1"),
    (("flags    = [", "defines = { A = true }\nflags = ["), "defines", "one line of text, got true"),
    (("flags    = [", 'defines = { "A B" = 1 }\nflags = ['), "defines", "no C identifier"),
    (("flags    = [", "defines = { A = inf }\nflags = ["), "defines", "finite"),
    # arguments
    (('name = "out"\n', ""), "[[argument]]", "argument 1: name is missing"),
    (('name = "out"', 'name = "o-ut"'), "o-ut", "C identifier"),
    (
        ('name = "out"', 'name = "input"'),
        'name = "input"\ntype = "float16*"\nshape = ["tokens", "2',
        "already",
    ),
    (out('name = "out"', 'type = "float*"'), "float*", "unknown element type 'float', known are float16"),
    (out('name = "out"', 'role = "output"'), "[[argument]]", "type is missing"),
    (
        out('name = "out"', 'type = "float16*"', 'shape = ["d"]'),
        "[[argument]]",
        "input, output, inout, workspace",
    ),
    (('role = "output"', 'role = "outptu"'), "outptu", "role must be one of input, output"),
    (('role = "output"', 'role = "input"'), "[[argument]]", "no argument is written"),
    (('role = "output"', 'role = "local"'), 'role = "local"', "role local is for OpenCL"),
    (('shape = ["tokens", "d"]', ""), "[[argument]]", "shape is missing"),
    (('shape = ["tokens", "d"]', "shape = []"), "shape = []", "1 to 8 entries, got 0"),
    (('shape = ["tokens", "d"]', 'shape = "d"'), 'shape = "d"', "a list of expressions"),
    (('shape = ["tokens", "d"]', 'shape = ["tokns"]'), "tokns", "unknown name 'tokns'"),
    (('shape = ["tokens", "d"]', "shape = [true]"), "shape = [true]", "got true"),
    (('shape = ["tokens", "d"]', "shape = [\n1.5]"), "shape = [", "got 1.5"),
    (('shape = ["tokens", "d"]', 'shape = ["device.sms"]'), "device.sms", "unknown name 'device.sms'"),
    (('shape = ["tokens", "d"]', 'shape = ["tokens", "d - 5000"]'), "5000", "is -904, allowed is at least 0"),
    (('shape = ["tokens", "d"]', 'shape = ["d // (tokens - 16)"]'), "16)", "division by zero"),
    (('role = "output"', 'role = "output"\nstrides = [1]'), "strides", "got 1 for 2 axes"),
    (('role = "output"', 'role = "output"\nstrides = ["-d", 1]'), "strides", "is -4096"),
    (('role = "output"', 'role = "output"\nalign = 24'), "align", "power of two of at least 2"),
    (('role = "output"', 'role = "output"\nalign = 1'), "align", "power of two of at least 2"),
    (('role = "output"', 'role = "output"\nalign = true'), "align", "got true"),
    (
        ('role = "output"', 'role = "output"\nvalues = "normal"'),
        "values",
        "says nothing about an argument of role",
    ),
    (('role = "output"', 'role = "output"\ncompare = "near"'), "compare", "one of close, exact, codes"),
    (('role = "output"', 'role = "output"\nrtol = nan'), "rtol = nan", "finite number"),
    (('role = "output"', 'role = "output"\natol = -1'), "atol = -1", "at least 0"),
    (('role = "output"', 'role = "output"\ninit = inf'), "init", "finite number"),
    (('role = "output"', 'role = "output"\ntraffic = "2 * e"'), "traffic", "unknown name 'e'"),
    (('role = "input"', 'role = "input"\nvalues = "gauss"'), "gauss", "normal, uniform, positive"),
    (('role = "input"', 'role = "input"\nrange = [1]'), "range", "two finite numbers"),
    (('role = "input"', 'role = "input"\nrange = [0, inf]'), "range", "two finite numbers"),
    (('role = "input"', 'role = "input"\nrange = [2, 1]'), "range", "lower end first"),
    (('role = "input"', 'role = "input"\nrange = 2'), "range", "a list of two numbers"),
    (('value = "tokens"', ""), 'argument]]\nname = "tokens"', "value is missing"),
    (('value = "tokens"', 'value = "tokns"'), "tokns", "unknown name 'tokns'"),
    (('value = "tokens"', "value = 1.5"), "value = 1.5", "got 1.5"),
    (
        ('value = "tokens"', 'value = "d * 1000000"'),
        "1000000",
        "int32 value 'd * 1000000' is 4096000000, allowed is at most 2147483647, at workload",
    ),
    (
        ('value = "tokens"', 'value = "tokens"\nshape = [1]'),
        "shape = [1]",
        "nothing about an argument of role scalar",
    ),
    (('value = "tokens"', 'value = "tokens"\nrole = "output" #'), '"output" #', "a scalar has no role"),
    (
        ('type = "int32"\nvalue = "tokens"', 'type = "float32"\nvalue = "1"'),
        'value = "1"',
        "must be a number",
    ),
    (
        out('name = "out"', 'type = "float16*"', 'alias = "input"'),
        "alias",
        "role inout (none is), got 'input'",
    ),
    (out(OUT, "[[argument]]", 'name = "y"', 'type = "int8"', 'alias = "out"'), "alias", "only an array"),
    (
        out(OUT, "[[argument]]", 'name = "y"', 'type = "int8*"', 'alias = "out"', "init = 1"),
        "init",
        "says nothing",
    ),
    # launch
    (('grid  = ["min(tokens, 256)"]', ""), "[launch]", "grid is missing"),
    (('grid  = ["min(tokens, 256)"]', "grid = [1, 1, 1, 1]"), "grid", "1 to 3 entries, got 4"),
    (('grid  = ["min(tokens, 256)"]', 'grid = ["BLOCK"]'), "BLOCK", "unknown name 'BLOCK'"),
    (('grid  = ["min(tokens, 256)"]', 'grid = ["device.smz"]'), "device.smz", "unknown name 'device.smz'"),
    (('grid  = ["min(tokens, 256)"]', 'grid = ["tokens // 64"]'), "// 64", "is 0, allowed is at least 1"),
    (
        ('block = ["128"]', 'block = ["128"]\nargs = ["out", "inptu"]'),
        "args",
        "'inptu', which is no argument",
    ),
    (('block = ["128"]', 'block = ["128"]\ncooperative = 1'), "cooperative", "true or false, got 1"),
    (('block = ["128"]', 'block = ["128"]\nshared = "-1"'), "shared", "allowed is at least 0"),
    (('block = ["128"]', 'block = ["128 +"]'), "128 +", "is not an expression"),
    # contract
    (("tokens = { min = 1, max = 1048576 }", "tokens = 5"), "tokens = 5", "must be a table, got 5"),
    (
        ("tokens = { min = 1, max = 1048576 }", "tokens = { min = 1 }"),
        "tokens = { min = 1 }",
        "max is missing",
    ),
    (("min = 1, max = 1048576", "min = -1, max = 4096"), "min = -1", "an integer from 0 to 2**62, got -1"),
    (
        ("min = 1, max = 1048576", "min = 5000, max = 40"),
        "min = 5000",
        "max must be at least min = 5000, got 40",
    ),
    (("min = 1, max = 1048576", "min = true, max = 4096"), "min = true", "got true"),
    (("min = 1, max = 1048576", 'min = 1, max = "9"'), 'max = "9"', "got '9'"),
    (("min = 1, max = 1048576", "one_of = []"), "one_of", "one_of has no values"),
    (("min = 1, max = 1048576", "one_of = [16, 4096, 16]"), "one_of", "lists 16 more than once"),
    (("min = 1, max = 1048576", "one_of = [16, 4096], max = 1"), "one_of", "cannot stand beside one_of"),
    (
        ("min = 8, max = 65536, multiple_of = 8", "min = 9, max = 15, multiple_of = 8"),
        "min = 9",
        "no multiple of 8",
    ),
    (("multiple_of = 8", "multiple_of = 0"), "multiple_of = 0", "from 1 to"),
    (("[contract]", '[contract]\nrequire = ["e > 1"]'), "require", "unknown name 'e'"),
    (("[contract]", '[contract]\nrequire = "d > 1"'), "require", "a list of conditions"),
    # workloads
    (("tokens = 16,   d = 4096", "tokens = 16"), "decode", "no value for d"),
    (("tokens = 16,   d = 4096", "tokens = 16, d = 4097"), "decode", "8 to 65536 in steps of 8"),
    (("tokens = 16,   d = 4096", "tokens = -1, d = 4096"), "decode", "got -1"),
    (("tokens = 16,   d = 4096", "tokens = true, d = 4096"), "decode", "got true"),
    (("tokens = 16,   d = 4096", "tokens = 1.0, d = 4096"), "decode", "got 1.0"),
    (("tokens = 16,   d = 4096", "tokens = 16, d = 4096, e = 1"), "decode", "'e' has no rule in [contract]"),
    (("tokens = 16,   d = 4096", 'tokens = 16, d = 4096, cache = "hot"'), "decode", "one of cold, warm"),
    (("weight = 2.0", "weight = 0"), "prefill", "above 0, got 0"),
    (("weight = 2.0", "weight = -1.5"), "prefill", "above 0, got -1.5"),
    (("weight = 2.0", "weight = inf"), "prefill", "finite"),
    (("weight = 2.0", 'weight = "2"'), "prefill", "got '2'"),
    (("decode  =", '"a b" ='), "a b", "a workload's name"),
    (("decode  = {", "decode = 1\nx = {"), "decode = 1", "decode must be a table, got 1"),
    (("[contract]", '[contract]\nrequire = ["tokens > 16"]'), "decode", "tokens = 16 breaks the contract's"),
    # accuracy
    (("reference.py:silu_and_mul", "reference.py"), "reference.py", "must be file.py:function"),
    (("reference.py:silu_and_mul", "none.py:f"), "none.py", "there is no file none.py"),
    (("reference.py:silu_and_mul", "reference.py:silu"), "reference.py", "defines no function 'silu'"),
    (("reference.py:silu_and_mul", "reference.py:C"), "reference.py", "it defines silu_and_mul"),
    (("reference.py:silu_and_mul", "broken.py:f"), "broken.py", "broken.py:1: not readable as Python"),
    (("reference.py:silu_and_mul", "nul.py:f"), "nul.py", "not readable as Python"),
    (("rtol = 4e-3", "rtol = inf"), "rtol = inf", "finite number"),
    (("rtol = 4e-3", 'rtol = "1e-3"'), "rtol =", "got '1e-3'"),
    (("rtol = 4e-3", 'independent = "rows"'), "independent", "must name a size, got 'rows'"),
    (("rtol = 4e-3", 'independent = "d"'), "independent", "first axis of every output"),
    (("rtol = 4e-3", "deterministic = 0"), "deterministic", "true or false"),
    (('name = "silu', 'inputs = "inputs.py:mak"\nname = "silu'), "inputs", "defines no function 'mak'"),
    (('name = "silu', 'traffic = "e"\nname = "silu'), "traffic", "unknown name 'e'"),
    (('name = "silu', 'traffic = "d - 9999"\nname = "silu'), "traffic", "is -5903"),
    # TOML itself
    (("[launch]", "[launch"), "[launch", "not readable as TOML"),
    (('name = "silu_and_mul"', "name = silu_and_mul"), "name = silu", "not readable as TOML: Invalid value"),
    (("rtol = 4e-3", "reference = 1"), "reference = 1", "Cannot overwrite a value"),
]


@pytest.mark.parametrize(("change", "at", "says"), FAULTS, ids=[says for _, _, says in FAULTS])
def test_a_fault_is_reported_with_its_line(change: tuple[str, str], at: str, says: str) -> None:
    text = edited(change)
    error = refusal(text)
    where = f"problem.toml:{line_of(text, at)}" if at else "problem.toml"
    lines = [line for line in str(error).split("\n") if says in line]
    assert lines, f"{says!r} is not in: {error}"
    assert lines[0].startswith(f"{where}: "), str(error)


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("kernel", "kernel is missing"),
        ("launch", "[launch] is missing"),
        ("contract", "contract is missing"),
        ("workloads", "workloads is missing"),
    ],
)
def test_a_missing_section_is_one_fault(section: str, says: str) -> None:
    start = TEXT.index(f"[{section}]")
    end = TEXT.index("\n\n", start)
    error = refusal(TEXT[:start] + TEXT[end:])
    assert error.message == says
    assert error.where == "problem.toml"
    assert error.hint


def test_no_arguments_is_a_fault() -> None:
    start, end = TEXT.index("[[argument]]"), TEXT.index("[launch]")
    assert "there are no arguments" in refusal(TEXT[:start] + TEXT[end:]).message


def test_no_workloads_is_a_fault() -> None:
    start, end = TEXT.index("decode"), TEXT.index("[accuracy]")
    error = refusal(TEXT[:start] + TEXT[end:])
    assert error.where == f"problem.toml:{line_of(TEXT, '[workloads]')}"
    assert "there are no workloads" in error.message


def test_a_size_without_contract_is_reported_once() -> None:
    text = edited(("d = { min = 8, max = 65536, multiple_of = 8 }\n", ""))
    error = refusal(text)
    assert error.message == (
        "workload 'decode': 'd' has no rule in [contract]: sizes are tokens, and weight and cache go here too"
    )
    assert error.hint == "add d = { min = ..., max = ... } to [contract]"


@pytest.mark.parametrize("name", ["min", "device", "in", "weight", "cache", "a-b"])
def test_a_size_s_name_must_work_in_expressions_and_workloads(name: str) -> None:
    text = edited(("[contract]", f"[contract]\n{name} = {{ min = 1, max = 2 }}"))
    assert f"'{name}' cannot be a size's name" in refusal(text).message


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (("[accuracy]", "[acuracy]"), "did you mean 'accuracy'?"),
        (
            ('type = "float16*"\nshape = ["tokens", "d"]', 'type = "half*"\nshape = ["d"]'),
            "did you mean 'float16'?",
        ),
        (('role = "output"', 'role = "ouput"'), "did you mean 'output'?"),
        (('shape = ["tokens", "d"]', 'shape = ["tokens_"]'), "did you mean 'tokens'?"),
    ],
)
def test_near_misses_are_named(change: tuple[str, str], hint: str) -> None:
    assert refusal(edited(change)).hint == hint


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = edited(
        ('name = "silu_and_mul"', 'name = "a b"'),
        ('role = "output"', 'role = "outptu"'),
        ('grid  = ["min(tokens, 256)"]', 'grid = ["tokns"]'),
        ("rtol = 4e-3", "rtol = nan"),
    )
    error = refusal(text)
    assert error.where == "problem.toml"
    first, *faults = error.message.split("\n")
    assert first == "4 faults"
    assert [int(fault.split(":")[1]) for fault in faults] == [
        line_of(text, part) for part in ('"a b"', "outptu", "tokns", "nan")
    ]
    assert "(did you mean 'output'?)" in faults[1]
    assert error.hint


def test_a_long_list_of_faults_is_cut() -> None:
    text = TEXT + "".join(f"unknown_{i} = 1\n" for i in range(30))
    lines = refusal(text).message.split("\n")
    assert lines[0] == "30 faults"
    assert lines[-1] == "and 10 more"


def test_an_argument_with_a_fault_is_not_unknown_to_a_launch() -> None:
    text = edited(
        ('role = "output"', 'role = "outptu"'), ('block = ["128"]', 'block = ["128"]\nargs = ["out"]')
    )
    assert "outptu" in refusal(text).message
    assert "args" not in refusal(text).message


def test_what_is_left_to_fill_in_is_reported_first_and_together() -> None:
    text = edited(
        ("silu_and_mul<__half>", "FILL: the kernel's name"),
        ('shape = ["tokens", "d"]', 'shape = [\n  "tokens",\n  "FILL",\n]'),
        ("max = 1048576", 'max = "FILL"'),
        ("rtol = 4e-3", "rtol = nan"),
    )
    error = refusal(text)
    assert error.message.split("\n") == [
        "3 places still say FILL",
        'problem.toml:5: kernel.entry = "FILL: the kernel\'s name"',
        "problem.toml:13: argument.0.shape.1 = 'FILL'",
        f"problem.toml:{line_of(text, 'tokens = { min')}: contract.tokens.max = 'FILL'",
    ]
    assert error.where == "problem.toml"


def test_one_place_to_fill_in() -> None:
    error = refusal(edited(("silu_and_mul<__half>", "FILL")))
    assert str(error) == "problem.toml:5: 1 place still says FILL: kernel.entry = 'FILL'"


def test_numbers_beyond_measure_are_refused() -> None:
    for number in ("0x" + "f" * 5000, "9" * 5000):
        assert refusal(edited(("max = 1048576", f"max = {number}")))
        assert refusal(edited(("rtol = 4e-3", f"rtol = {number}")))
        assert refusal(edited(('shape = ["tokens", "d"]', f"shape = [{number}]")))
        assert refusal(edited(("flags    = [", f"defines = {{ A = {number} }}\nflags = [")))


def test_nesting_beyond_measure_is_refused() -> None:
    assert "nested too deeply" in refusal("a = " + "[" * 100_000).message


# -- anything at all --------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.sampled_from(
        [
            "1",
            "-1",
            "0",
            "1.5",
            "nan",
            "inf",
            "true",
            '"d"',
            '""',
            '"float32*"',
            '"x.py:f"',
            "1979-05-27",
            '"\\n"',
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"k{i} = {item}" for i, item in enumerate(items)) + "}"
        )
    ),
    max_leaves=4,
)


def anything(text: str) -> Callable[[str], str]:
    return lambda name: text if name.endswith("u") else read_file(name)


@given(st.text(max_size=200), st.text(max_size=40))
def test_arbitrary_text_raises_only_bad_input(text: str, file: str) -> None:
    with suppress(BadInput):
        parse_problem(text, path="p", read=anything(file))


@given(st.sampled_from((TEXT, RICH)), st.data())
@examples(400)
def test_any_line_may_hold_any_value(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[at].partition(" = ")
        drawn = f"{key} = {data.draw(VALUES)}" if equals else ""
        lines[at] = data.draw(st.sampled_from([drawn, "", f"other = {data.draw(VALUES)}", lines[at][:-1]]))
    with suppress(BadInput):
        parse_problem("\n".join(lines), path="p", read=anything("def f(x):\n  return x"))
