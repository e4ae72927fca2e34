"""The usual rules: what follows from the names of parameters where a template has a [shape]."""

from __future__ import annotations

import pytest

from tests.samples import TEMPLATE as SAMPLE
from tests.samples import a_problem, a_template
from tunesmith.base.errors import BadInput
from tunesmith.problem.default_rules import usual_rules
from tunesmith.problem.template import Remedy, Shape, Template
from tunesmith.space.configset import Param
from tunesmith.space.expr import parse_expr


def rules(shape: Shape, *params: Param, require: str = "1") -> tuple[dict[str, str], dict[Remedy, str]]:
    default = {param.name: param.values[0] for param in params}
    prefer, answers = usual_rules(shape, params, default, [parse_expr(require)], ["d", "rows"])
    return {name: e.text for name, e in prefer}, {remedy: e.text for remedy, e in answers}


LANES, TASKS, VEC = Param("LANES", (32, 64)), Param("TASKS", (1, 2)), Param("VEC", (1, 2, 4, 8))


def test_what_is_not_known_is_not_said() -> None:
    prefer, answers = rules(Shape({}, {}), LANES, TASKS)
    assert prefer.keys() == {"enough_threads", "short_rows"}
    assert answers[Remedy.MORE_BLOCKS] == "TASKS == 1"
    assert "no_idle_lanes" in rules(Shape({"row": "d"}, {}), LANES)[0]
    assert Remedy.WIDE_ACCESS not in rules(Shape({}, {}), VEC)[1]


def test_a_parameter_with_one_value_counts_with_it() -> None:
    prefer, _ = rules(Shape({"row": "d"}, {"LANES": 256}), VEC)
    assert prefer["no_idle_lanes"] == "256 * VEC < 2 * d"


def test_names_that_the_source_had_taken_are_known_by_their_beginning() -> None:
    prefer, answers = rules(Shape({"row": "d"}, {}), Param("LANES_", (32, 64)))
    assert prefer == {"no_idle_lanes": "LANES_ < 2 * d"}
    assert answers[Remedy.BLOCK_SIZE] == "LANES_ != 32"


def test_touches_wait_for_the_widest_vector_that_is_legal() -> None:
    shape = Shape({"element": "4"}, {})
    prefer, _ = rules(shape, VEC, Param("FAST", (0, 1)), require="d % VEC == 0")
    assert prefer["touches_if_wide"] == "FAST == 0 or VEC >= 4 or not d % (2 * VEC) == 0"


def test_settings_of_the_compiler_are_tried_one_at_a_time() -> None:
    prefer, _ = rules(Shape({}, {}), Param("REGS", (255, 64)), Param("LEVEL", (5, 0)))
    assert prefer == {"one_setting": "(REGS != 255) + (LEVEL != 5) <= 1"}
    assert rules(Shape({}, {}), Param("REGS", (255, 64)))[0] == {}


def test_a_cpu_has_rules_of_its_own() -> None:
    items = Param("ITEMS", (1, 4))
    assert rules(Shape({"loaded": "4"}, {}, on_cpu=True), items)[0] == {
        "loads_under_way": "ITEMS * 4 <= 1024"
    }
    assert rules(Shape({"loaded": "4"}, {}), items)[0] == {"loads_under_way": "ITEMS * 4 <= 256"}


def test_each_kernel_of_several_has_the_rules_of_its_own_parameters() -> None:
    params = (Param("LANES_1", (32, 64)), Param("LANES_2_", (32, 64)), Param("VEC_2", (1, 4)))
    default = {param.name: param.values[0] for param in params}
    prefer, answers = usual_rules(Shape({"row": "d"}, {}), params, default, [], ["d"], "2")
    assert {name: e.text for name, e in prefer} == {"no_idle_lanes": "LANES_2_ * VEC_2 < 2 * d"}
    assert {e.text for _, e in answers} == {"LANES_2_ != 32", "LANES_2_ <= 32", "LANES_2_ <= 256"}
    assert usual_rules(Shape({"row": "d"}, {}), params, default, [], ["d"]) == ([], [])


# -- as a template says it

OLD = "// BLOCK = [32, 64, 128, 256]\n// VEC = [1, 2, 4]\n// [default]\n// BLOCK = 64\n// VEC = 1\n"
SHAPED = "// BLOCK = [32, 64, 128, 256]\n// VEC = [1, 2, 4]\n// [shape]\n"


def shaped(more: str, text: str = SAMPLE) -> Template:
    assert OLD in text
    return a_template(a_problem(), text.replace(OLD, SHAPED + more))


def test_a_template_with_a_shape_has_its_defaults_in_the_code() -> None:
    template = shaped("// bytes = { element = 2 }\n")
    assert template.default.as_dict() == {"BLOCK": 64, "VEC": 1}
    answers = {str(remedy): expr.text for remedy, expr in template.answers}
    assert answers["block_size"] == "BLOCK != 64"
    assert answers["wide_access"] == "VEC * 2 >= 16"


def test_what_the_shape_says_can_be_named() -> None:
    plain = a_template(a_problem())
    (launch,) = plain.launches
    name, value = "// grid = [", launch.grid[0].text
    assert f'"{value}"' in SAMPLE
    text = SAMPLE.replace(f'"{value}"', '"shape.blocks"', 1)
    template = shaped(f'// blocks = "{value}"\n', text)
    assert [e.tree for e in template.launches[0].grid] == [e.tree for e in launch.grid], name


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("// rwo = 1\n", "unknown key 'rwo'"),
        ("// bytes = { loded = 2 }\n", "unknown key 'loded'"),
        ('// row = "width"\n', "unknown name 'width'"),
        ("// VEC = 2\n", "unknown key 'VEC'"),  # a parameter has no single value
        ('// kind = "tpu"\n', "kind must be one of gpu, cpu"),
    ],
)
def test_faults_are_named(more: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        shaped(more)
    assert words in str(caught.value)


def test_a_name_that_the_shape_does_not_say_is_a_fault() -> None:
    text = SAMPLE.replace("// [launch]\n", '// [launch]\n// shared = "shape.row * 4"\n', 1)
    with pytest.raises(BadInput) as caught:
        shaped("", text)
    assert "shape.row is not said by [shape]" in str(caught.value)


def test_a_table_for_each_kernel_of_several() -> None:
    numbered = SAMPLE.replace("BLOCK", "BLOCK_1").replace("VEC", "VEC_2")
    old = OLD.replace("BLOCK", "BLOCK_1").replace("VEC", "VEC_2")
    assert old in numbered
    new = "// BLOCK_1 = [32, 64, 128, 256]\n// VEC_2 = [1, 2, 4]\n"
    tables = '// [shape.1]\n// row = "d"\n// [shape.2]\n// row = "rows"\n// bytes = { element = 2 }\n'
    text = numbered.replace(old, new + tables)
    asking = text.replace("// [launch]\n", '// [launch]\n// shared = "shape.2.row * 4"\n', 1)
    template = a_template(a_problem(), asking)
    answers = {str(remedy): expr.text for remedy, expr in template.answers}
    assert answers == {"block_size": "BLOCK_1 != 64", "wide_access": "VEC_2 * 2 >= 16"}
    assert template.launches[0].shared is not None
    assert template.launches[0].shared.text == "(rows) * 4"
    with pytest.raises(BadInput) as caught:
        a_template(a_problem(), asking.replace("shape.2.row * 4", "shape.3.row * 4"))
    assert "shape.3.row is not said by [shape.3]" in str(caught.value)
