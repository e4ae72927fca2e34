from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.problem.test_problem_file import assert_told, line_of, read_faults
from tests.core.problem.test_problem_file import edited as edited_problem
from tests.samples import TEMPLATE as SAMPLE
from tests.samples import a_problem, a_template
from tests.thoroughness import examples
from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Remedy, Template
from tunesmith.problem.template_file import parse_template
from tunesmith.space.configset import Config, Param

PROBLEM = parse_problem(
    """\
name = "scale"
[kernel]
source = "kernel.cl"
entry = "scale"
defines = { KIND = 1 }
[[argument]]
name = "out"
type = "float32*"
role = "output"
shape = ["rows", "d"]
[[argument]]
name = "input"
type = "float32*"
role = "input"
shape = ["rows", "d"]
[[argument]]
name = "d"
type = "int32"
value = "d"
[launch]
grid = ["rows"]
block = [64]
[contract]
rows = { min = 1, max = 4096 }
d = { min = 4, max = 4096 }
[workloads]
small = { rows = 16, d = 100 }
large = { rows = 1024, d = 1024 }
""",
    path="problem.toml",
    read=lambda name: "__kernel void scale() {}",
)

TEXT = Path(__file__).with_name("scale.cl").read_text()


def parse(text: str, problem: Problem = PROBLEM) -> Template:
    return parse_template(text, path="template.cl", problem=problem)


def edited(*changes: tuple[str, str]) -> str:
    return edited_problem(*changes, text=TEXT)


def refusal(text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        parse(text)
    return caught.value


def test_the_parts_of_a_template() -> None:
    template = parse(TEXT)
    ordered = [Param("BLOCK", (64, 128, 256)), Param("VEC", (1, 2, 4, 8))]
    assert list(template.space.params) == [*ordered, Param("UNROLL", (1, 2), categorical=True)]
    assert template.default == Config((("BLOCK", 128), ("VEC", 1), ("UNROLL", 1)))
    kinds = {c.name: c.kind for c in template.space.constraints}
    assert kinds == {"whole_vectors": "require", "fits": "require", "no_idle_block": "prefer"}
    (launch,) = template.launches
    assert (launch.entry, launch.args) == ("scale", ("out", "input", "d"))
    assert template.source == TEXT
    assert (template.path, template.language) == ("template.cl", "opencl")
    variant = template.render(PROBLEM, template.default)
    assert "#define BLOCK 128\n#define VEC 1\n#define UNROLL 1\n" in variant.source


def test_the_further_words() -> None:
    template = parse(
        edited(
            (
                "// [launch]\n",
                '// [build]\n// flags = ["--maxrregcount={REGS}", "-O3"]\n'
                '// [defines]\n// D_CONST = "d if BAKE else 0"\n// WAYS = 2\n'
                '// [workspace]\n// partial = { type = "float32*", shape = ["rows", "BLOCK * device.sms"] }\n'
                '// flags = { type = "int32*", shape = [1], init = 0, align = 64 }\n'
                "// [[launch]]\n",
            ),
            (
                '// block = ["BLOCK"]\n',
                '// block = ["BLOCK"]\n// args = ["out", "input", "d", "partial"]\n'
                '// [[launch]]\n// entry = "second<{WAYS}, {VEC}>"\n// grid = ["resources.blocks_per_sm"]\n'
                '// block = [1]\n// args = ["partial", "flags"]\n',
            ),
            ("// UNROLL = { values", "// REGS = [32, 64]\n// BAKE = [0, 1]\n// UNROLL = { values"),
            ("// UNROLL = 1", "// UNROLL = 1\n// REGS = 64\n// BAKE = 0"),
            ("i < d;", "i < (D_CONST ? D_CONST : d);"),
        )
    )
    assert template.flags == ("--maxrregcount={REGS}", "-O3")
    assert [name for name, _ in template.defines] == ["D_CONST", "WAYS"]
    assert [(a.name, a.type, a.role, a.init, a.align) for a in template.workspace] == [
        ("partial", "float32", "workspace", None, None),
        ("flags", "int32", "workspace", 0.0, 64),
    ]
    variant = template.render(PROBLEM, template.default)
    assert variant.flags == ("--maxrregcount=64", "-O3")
    assert variant.entries == ("scale", "second<2, 1>")
    assert template.bakes_sizes(template.default.replace("BAKE", 1))
    assert not template.bakes_sizes(template.default)


def test_answers_are_conditions_by_remedy_in_the_order_of_the_file() -> None:
    section = '// [answers]\n// unroll = "UNROLL > 1"\n// wide_access = "VEC >= 4"\n// [launch]\n'
    template = parse(edited(("// [launch]\n", section)))
    wanted = [(Remedy.UNROLL, "UNROLL > 1"), (Remedy.WIDE_ACCESS, "VEC >= 4")]
    assert [(remedy, expr.text) for remedy, expr in template.answers] == wanted
    assert parse(TEXT).answers == ()


def test_several_answers_may_share_a_line() -> None:
    rows = '// all = [{ unroll = "UNROLL > 1", wide_access = "VEC >= 4" },\n'
    rows += '//        { block_size = "VEC > 1" }]'
    template = parse(edited(("// [launch]\n", f"// [answers]\n{rows}\n// [launch]\n")))
    assert [str(remedy) for remedy, _ in template.answers] == ["unroll", "wide_access", "block_size"]
    for wrong, words in (
        ('all = "VEC > 1"', "all must be a list of tables"),
        ('all = [{ wide = "VEC > 1" }]', "unknown key 'wide'"),
        ('unroll = "VEC > 1"\n// all = [{ unroll = "VEC > 2" }]', "unroll has its condition already"),
    ):
        error = refusal(edited(("// [launch]\n", f"// [answers]\n// {wrong}\n// [launch]\n")))
        assert words in str(error)


def test_a_parameter_may_have_its_default_beside_its_values() -> None:
    problem = a_problem()
    whole = a_template(problem)
    old = "// BLOCK = [32, 64, 128, 256]\n// VEC = [1, 2, 4]\n// [default]\n// BLOCK = 64\n// VEC = 1\n"
    assert old in SAMPLE
    block = "// BLOCK = { values = [32, 64, 128, 256], default = 64 }  # threads\n"
    both = block + "// VEC = { values = [1, 2, 4], default = 1 }\n"
    mixed = block + "// VEC = [1, 2, 4]\n// [default]\n// VEC = 1\n"
    for new in (both, mixed):
        template = a_template(problem, SAMPLE.replace(old, new))
        assert (template.space, template.default) == (whole.space, whole.default)
    for new, words in (
        (block + "// VEC = [1, 2, 4]\n", "no default for VEC"),
        (both.replace("default = 64", "default = 65"), "BLOCK must be one of 32, 64, 128, 256, got 65"),
        (both + "// [default]\n// VEC = 1\n", "VEC has its default in [params] already"),
    ):
        with pytest.raises(BadInput) as caught:
            a_template(problem, SAMPLE.replace(old, new))
        assert words in str(caught.value)
        assert caught.value.where is not None


def test_parameters_that_are_alike_may_share_a_line() -> None:
    more = ("// BLOCK = 128\n", "// BLOCK = 128\n// WIDE = 64\n"), ("out[i] =", "out[i + WIDE] =")
    template = parse(edited(("// BLOCK  = [64, 128, 256]\n", '// "BLOCK, WIDE" = [64, 128, 256]\n'), *more))
    values = {param.name: param.values for param in template.space.params}
    assert values["BLOCK"] == values["WIDE"] == (64, 128, 256)
    twice = edited(("// BLOCK  = [64, 128, 256]\n", '// "BLOCK, VEC" = [64, 128, 256]\n'))
    assert "VEC is there twice" in str(refusal(twice))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// /// tunesmith", "   //   ///  tunesmith  "),
        ("// ///\n", "\t// ///  \n"),
        ("// [launch]", "//[launch]"),
        ("// [require]", "//\n  // [require]"),
        ("\n", "\r\n"),
    ],
)
def test_spaces_do_not_matter(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    assert parse(text).space == parse(TEXT).space


@pytest.mark.parametrize(
    "code",
    [
        "#ifndef GUARD_H\n#define GUARD_H\n#endif\n",
        "#ifndef KIND\n#define KIND 1\n#endif\n",  # the problem defines it
        "#ifndef lower\n#define lower 1\n#endif\n",
        "#ifndef PI\n#define PI 3.14f\n#endif\n",
        "#ifndef STORE\n#define STORE(x) 1\n#endif\n",
        "#define TWO 2\n",
        "// #ifndef CACHE\n// #define CACHE 1\n",
        "#if !defined(VEC)\n#define VEC 2\n#endif\n",
        "#ifndef A\nint x;\n#define A 1\n#endif\n",
    ],
)
def test_other_macros_are_the_code_s_own_business(code: str) -> None:
    parse(TEXT + code)


def test_the_launch_counts_as_a_use() -> None:
    parse(edited(("u < UNROLL", "u < 1")))
    parse(edited(("i += BLOCK * VEC", "i += d")))


FAULTS = read_faults("template_faults.toml")


@pytest.mark.parametrize(("old", "new", "at", "words"), FAULTS)
def test_a_fault_is_reported_with_its_line(old: str, new: str, at: str, words: str) -> None:
    text = edited((old, new))
    assert_told(refusal(text), words, "template.cl", text, at)


@pytest.mark.parametrize(
    ("section", "after", "says"),
    [
        ("// [params]", "// [default]", "params is missing"),
        ("// [default]", "// [require]", "[default] is missing"),
        ("// [launch]", "// ///\n\n", "[launch] is missing"),
    ],
)
def test_a_missing_section(section: str, after: str, says: str) -> None:
    error = refusal(TEXT[: TEXT.index(section)] + TEXT[TEXT.index(after) :])
    assert says in str(error)


def test_a_file_that_says_nothing_of_parameters_is_one_kernel() -> None:
    text = '// /// tunesmith\n// [launch]\n// grid = ["rows"]\n// block = ["64"]\n// ///\nint x;\n'
    template = parse(text)
    assert template.is_concrete
    assert template.default == Config(())
    assert template.space.combinations == 1
    configs = template.space.configs([w.as_dict() for w in PROBLEM.workloads])
    assert list(configs) == [Config(())]
    assert Config(()) in configs
    assert "tuned by Tunesmith: as written" in template.render(PROBLEM, Config(())).source
    for table in ("default", "prefer", "answers"):
        assert "params is missing" in str(refusal(text.replace("// [launch]", f"// [{table}]\n// [launch]")))
    none = '// [require]\n// none = "rows < 0"\n// [launch]'
    assert "breaks require" in str(refusal(text.replace("// [launch]", none)))


def test_no_parameters_is_a_fault() -> None:
    start, end = TEXT.index("// BLOCK  ="), TEXT.index("// [default]")
    error = refusal(TEXT[:start] + TEXT[end:])
    assert_told(error, "[params]: there are no parameters", "template.cl", TEXT, "[params]")


@pytest.mark.parametrize(
    "use", ["#ifdef MODE\n#endif\n", '#error "MODE"\n', "#if defined(MODE)\n#endif\n", "#undef MODE\n"]
)
def test_to_ask_whether_a_parameter_is_defined_is_no_use_of_it(use: str) -> None:
    text = edited(("// VEC    =", "// MODE = [0, 1]\n// VEC    ="), ("// VEC = 1", "// VEC = 1\n// MODE = 0"))
    assert "'MODE' is unused" in refusal(text + use).message
    parse(text + "#if MODE == 1\n#endif\n")


def test_the_default_may_break_a_requirement_at_one_workload() -> None:
    parse(edited(("// VEC = 1", "// VEC = 8")))  # 100 is no multiple of 8, 1024 is


def test_a_default_that_each_workload_refuses_for_another_reason() -> None:
    text = edited(('"d % VEC == 0" ', '"d == 100"\n// other = "BLOCK < 100 or d == 1024" '))
    says(refusal(text).message, "default", "require", "every workload")


def test_what_depends_on_the_device_is_not_judged() -> None:
    parse(edited(('"BLOCK <= device.max_threads"', '"device.sms < 0"')))
    parse(edited(('"BLOCK <= device.max_threads"', '"resources.spills == 1 and device.sms < 0"')))


def test_a_fault_in_the_launch_does_not_make_its_parameters_unused() -> None:
    error = refusal(edited(('"ceildiv(d, BLOCK * VEC * UNROLL)"', '"UNROLL +"'), ("u < UNROLL", "u < 1")))
    assert "unused" not in str(error)
    assert "is not an expression" in error.message


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = edited(
        ("BLOCK  = [64, 128, 256]", "BLOCK = [64, 128, 64]"),
        ('"d % VEC == 0"', '"d % VECS == 0"'),
        ("#ifndef VEC\n", "#ifndef TILE\n#define TILE 4\n#endif\n#ifndef VEC\n"),
    )
    error = refusal(text)
    first, *faults = error.message.split("\n")
    assert first == "3 faults"
    parts = ("BLOCK =", "VECS", "#define TILE")
    assert [int(fault.split(":")[1]) for fault in faults] == [line_of(text, part) for part in parts]


def test_an_entry_that_inserts_a_size_can_be_inherited() -> None:
    launches = tuple(replace(launch, entry="scale<{d}>") for launch in PROBLEM.launches)
    assert parse(TEXT, replace(PROBLEM, launches=launches)).entry_sizes == ("d",)


def test_a_template_beyond_measure_is_refused() -> None:
    assert "at most 1,000,000 bytes" in refusal(TEXT + "/" * 1_000_000).message


@given(st.text(max_size=200))
def test_arbitrary_text_raises_only_bad_input(text: str) -> None:
    for template in (text, f"// /// tunesmith\n// {text}\n// ///\n"):
        with pytest.raises(BadInput):
            parse(template)


PIECES = st.sampled_from([
    "[]", "[1]", "[1, 2]", "1", "-1", "nan", "true", '"d"', '"VEC // 0"', '["d"]', '["BLOCK * 8"]',
    "{ a = 1 }", '""',
])  # fmt: skip


@given(st.data())
@examples(300)
def test_any_line_may_hold_anything(data: st.DataObject) -> None:
    lines = TEXT.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[at].partition(" = ")
        drawn = f"{key} = {data.draw(PIECES)}" if equals else data.draw(st.text(max_size=8))
        lines[at] = data.draw(st.sampled_from([drawn, "", f"// other = {data.draw(PIECES)}", lines[at][:-1]]))
    with suppress(BadInput):
        parse("\n".join(lines))


def test_short_entries_may_share_a_line() -> None:
    problem = a_problem()
    old = '// [require]\n// whole = "d % (8 * VEC) == 0"\n'
    assert old in SAMPLE
    rules = '// all = [{ whole = "d % (8 * VEC) == 0", few = "VEC <= 4" }, { some = "d > 8" }]\n'
    lines = "// [require]\n" + rules + '// long = """d > 1\n//         and rows > 0"""\n'
    template = a_template(problem, SAMPLE.replace(old, lines))
    found = {c.name: c.expr.text for c in template.space.constraints}
    apart = {"some": "d > 8", "long": "d > 1 and rows > 0"}
    assert found == {"whole": "d % (8 * VEC) == 0", "few": "VEC <= 4", **apart}
    for wrong, words in (
        ('// all = ["VEC <= 4"]\n', "all must be a list of tables"),
        ('// few = "VEC < 4"\n// all = [{ few = "VEC <= 4" }]\n', "few is there twice"),
    ):
        with pytest.raises(BadInput) as caught:
            a_template(problem, SAMPLE.replace(old, f"// [require]\n{wrong}"))
        assert words in str(caught.value)


def test_defines_under_a_parameter_are_zero_without_it() -> None:
    problem = a_problem()
    defines = '// [defines]\n// VEC = { D_CONST = "d", TWICE = "2 * d" }\n'
    text = SAMPLE.replace("// [launch]\n", f"{defines}// [launch]\n")
    text = text.replace("int k = BLOCK * VEC;", "int k = BLOCK * VEC + D_CONST + TWICE;")
    found = dict(a_template(problem, text).defines)
    assert [found[name].evaluate({"VEC": 2, "d": 24}) for name in ("D_CONST", "TWICE")] == [24, 48]
    assert [found[name].evaluate({"VEC": 0, "d": 24}) for name in ("D_CONST", "TWICE")] == [0, 0]
