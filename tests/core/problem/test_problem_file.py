"""Problem files: what is read, and what is refused with its line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.lab.labs import scale_problem
from tests.samples import a_problem
from tests.thoroughness import examples
from tunesmith.base.errors import BadInput
from tunesmith.lab.profile import necessary_work
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.problem_file import parse_problem, with_workloads

TEXT, RICH = (Path(__file__).with_name(name).read_text() for name in ("silu_and_mul.toml", "every_word.toml"))
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


def edited(*changes: tuple[str, str], text: str = TEXT) -> str:
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
    return text.count("\n", 0, text.index(part)) + 1


def read_faults(file: str) -> list[tuple[str, str, str, str]]:
    """What is changed and into what, the text whose line the message names, and what it says."""
    groups = tomllib.loads(Path(__file__).with_name(file).read_text("utf-8"))
    return [tuple(fault) for faults in groups.values() for fault in faults]


def assert_told(error: BadInput, says: str, path: str, text: str, at: str) -> None:
    """In a line of the message, at the line of the text that has `at`; without it at the file alone."""
    where = f"{path}:{line_of(text, at)}" if at else path
    lines = [line for line in str(error).split("\n") if says in line]
    assert lines, f"{says!r} is not in: {error}"
    assert lines[0].startswith(f"{where}: "), str(error)


def test_the_example_of_the_format() -> None:
    problem = parse(TEXT)
    assert problem.name == "silu_and_mul"
    assert problem.kernel.language == "cuda"
    assert problem.kernel.text == FILES["kernel.cu"]
    assert problem.kernel.flags == ("-use_fast_math",)
    arrays = [("out", "float16", "output"), ("input", "float16", "input")]
    scalars = [("tokens", "int32", "scalar"), ("d", "int32", "scalar")]
    assert [(a.name, a.type, a.role) for a in problem.arguments] == arrays + scalars
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
    change = 'name = "out"\ntype = "float16*"', f'name = "out"\ntype = "{type_}*"'
    text = edited(change, ("rtol = 4e-3\n", ""))
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
    assert parse(TEXT).digest == parse(TEXT).digest != parse(edited(("d = 14336", "d = 8192"))).digest


FAULTS = read_faults("problem_faults.toml")


@pytest.mark.parametrize(("old", "new", "at", "says"), FAULTS)
def test_a_fault_is_reported_with_its_line(old: str, new: str, at: str, says: str) -> None:
    text = edited((old, new))
    assert_told(refusal(text), says, "problem.toml", text, at)


@pytest.mark.parametrize(
    ("section", "says"),
    [(name, f"{name} is missing") for name in ("kernel", "contract", "workloads")]
    + [("launch", "[launch] is missing")],
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
    rule = "'d' has no rule in [contract]: sizes are tokens, and weight and cache go here too"
    assert error.message == f"workload 'decode': {rule}"
    assert error.hint == "add d = { min = ..., max = ... } to [contract]"


@pytest.mark.parametrize("name", ["min", "device", "in", "weight", "cache", "a-b"])
def test_a_size_s_name_must_work_in_expressions_and_workloads(name: str) -> None:
    text = edited(("[contract]", f"[contract]\n{name} = {{ min = 1, max = 2 }}"))
    assert f"'{name}' cannot be a size's name" in refusal(text).message


def test_a_type_of_c_is_told_by_its_own_name() -> None:
    change = 'type = "float16*"\nshape = ["tokens", "d"]', 'type = "half*"\nshape = ["d"]'
    assert refusal(edited(change)).hint == "did you mean 'float16'?"


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
    parts = ('"a b"', "outptu", "tokns", "nan")
    assert [int(fault.split(":")[1]) for fault in faults] == [line_of(text, part) for part in parts]
    assert "(did you mean 'output'?)" in faults[1]
    assert error.hint


def test_a_long_list_of_faults_is_cut() -> None:
    text = TEXT + "".join(f"unknown_{i} = 1\n" for i in range(30))
    lines = refusal(text).message.split("\n")
    assert lines[0] == "30 faults"
    assert lines[-1] == "and 10 more"


def test_an_argument_with_a_fault_is_not_unknown_to_a_launch() -> None:
    changes = ('role = "output"', 'role = "outptu"'), ('block = ["128"]', 'block = ["128"]\nargs = ["out"]')
    text = edited(*changes)
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


PLAIN = st.sampled_from(
    [
        r"1",
        r"-1",
        r"0",
        r"1.5",
        r"nan",
        r"inf",
        r"true",
        r'"d"',
        r'""',
        r'"float32*"',
        r'"x.py:f"',
        r"1979-05-27",
        r'"\n"',
    ]
)


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(inner, max_size=3)
    tables = lists.map(lambda items: ", ".join(f"k{i} = {item}" for i, item in enumerate(items)))
    return lists.map(lambda items: f"[{', '.join(items)}]") | tables.map(lambda text: f"{{{text}}}")


VALUES = st.recursive(PLAIN, nested, max_leaves=4)


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


def refused(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        with_workloads(a_problem(), text, path="sizes.toml")
    return str(caught.value)


def test_they_take_the_place_of_the_problems_own_and_nothing_else_changes() -> None:
    flat = '[workloads.flat]\nrows = 1\nd = 4096\nweight = 2.0\ncache = "warm"\n'
    text = f"[workloads.tall]\nrows = 512\nd = 64\n{flat}"
    found = with_workloads(a_problem(), text, path="sizes.toml")
    tall, flat = Workload("tall", (("rows", 512), ("d", 64))), (("rows", 1), ("d", 4096))
    assert found.workloads == (tall, Workload("flat", flat, 2.0, "warm"))
    assert found.kernel == a_problem().kernel
    assert found.contract == a_problem().contract


def test_inline_tables_will_do() -> None:
    found = with_workloads(a_problem(), "[workloads]\none = { rows = 8, d = 8 }\n", path="sizes.toml")
    assert [w.name for w in found.workloads] == ["one"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "sizes.toml: workloads is missing"),
        ("[workloads]\n", "sizes.toml:1: [workloads]: there are no workloads"),
        (
            "[workloads.a]\nrows = 5000\nd = 8\n",
            "sizes.toml:2: workload 'a': rows = 5000 is outside",
        ),
        ("[workloads.a]\nrows = 5\nd = 9\n", "sizes.toml:3: workload 'a': d = 9 is outside the contract"),
        ("[workloads.a]\nrows = 5\n", "sizes.toml:1: workload 'a': no value for d"),
        (
            "[workloads.a]\nrows = 5\nd = 8\nn = 3\n",
            "sizes.toml:4: workload 'a': 'n' has no rule in",
        ),
        ('[workloads.a]\nrows = "5"\nd = 8\n', "sizes.toml:2"),
        ("[workloads.a]\nrows = 5\nd = 8\nweight = 0\n", "weight must be above 0"),
        ("name = 3\n[workloads.a]\nrows = 5\nd = 8\n", "sizes.toml:1: unknown key 'name'"),
        ("[workloads\n", "sizes.toml:1: not readable as TOML"),
        ('[workloads."a/b"]\nrows = 5\nd = 8\n', "a workload's name has letters"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, words: str) -> None:
    assert words in refused(text)


NAME = 'name = "scale"'


def test_they_are_expressions_in_the_sizes() -> None:
    problem = scale_problem((NAME, 'operations = { fp32 = "8 * rows * d", fp16 = 3 }\n' + NAME))
    work = necessary_work(problem, Workload("w", (("rows", 4), ("d", 16))))
    assert work.operations.fp32 == 512
    assert work.operations.fp16 == 3
    assert work.operations.tensor is None
    assert (work.read, work.written) == (256, 256)


def test_none_are_needed() -> None:
    assert scale_problem().operations == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{ fp32 = "8 * e" }', "unknown name 'e'"),
        ('{ int8 = "8" }', "int8"),
        ('"8 * d"', "operations must be a table"),
        ("{ }", "operations is empty"),
        ("{ fp32 = 1.5 }", "an integer or an expression in quotes"),
        ('{ fp32 = "d - 9999" }', "operations: fp32 'd - 9999' is -9967, allowed is at least 0"),
    ],
)
def test_faults_are_reported_with_their_line(text: str, said: str) -> None:
    with pytest.raises(BadInput) as error:
        scale_problem((NAME, f"operations = {text}\n{NAME}"))
    assert said in str(error.value)
    assert "problem.toml:2" in str(error.value)
