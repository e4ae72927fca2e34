"""Rendering: the text that is compiled, how it is launched, where it may run, and what of it is searched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.drafts import a_draft
from tests.samples import DEVICE, KERNEL, TEMPLATE, a_device, a_problem, a_template, config
from tunesmith.base.errors import BadInput
from tunesmith.problem.template import Template, Variant, configs_of, original_variant, plain_name
from tunesmith.problem.template_file import exclude_combinations
from tunesmith.space import configset
from tunesmith.space.configset import Config
from tunesmith.space.expr import Undefined, parse_expr

PROBLEM = a_problem()
BAKED = """\
// /// tunesmith
// [params]
// BLOCK = [64, 128]
// BAKE = [0, 1]
// [default]
// BLOCK = 64
// BAKE = 0
// [require]
// whole = "d % BLOCK == 0"
// wide = "d >= 64"
// small = "BLOCK <= device.max_threads"
// light = "resources.registers <= 64"
// never_mind = "BLOCK > 1"
// [defines]
// D_CONST = "d if BAKE else 0"
// [build]
// flags = ["-DB={BLOCK}", "-D=D_CONST={D_CONST}", "--plain"]
// [workspace]
// partial = { type = "float32*", shape = ["rows", "ceildiv(d, BLOCK)"] }
// [launch]
// grid = ["rows"]
// block = ["BLOCK"]
// shared = "4 * BLOCK"
// args = ["out", "x", "rows", "d", "partial"]
// ///
int use[] = {BLOCK, BAKE, D_CONST};
"""


def baked(block: int, bake: int) -> Config:
    return Config.of({"BLOCK": block, "BAKE": bake})


def defines(source: str) -> list[str]:
    return [line.removeprefix("#define ") for line in source.splitlines() if line.startswith("#define ")]


def domain(variant: Variant) -> list[str]:
    return [condition.text for condition in variant.domain]


def template(text: str = BAKED) -> Template:
    return a_template(PROBLEM, text)


def test_the_source_is_a_header_the_defines_and_the_template() -> None:
    variant = a_template(PROBLEM).render(PROBLEM, config(128, 4))
    assert variant.source == (
        "// scale, tuned by Tunesmith: BLOCK=128 VEC=4\n"
        "// launch scale: grid (ceildiv(rows * d, 512)), block (128); arguments out, x, rows, d\n"
        "#define BLOCK 128\n"
        "#define VEC 4\n"
        '#line 1 "template.cl"\n' + TEMPLATE
    )
    assert variant.config == config(128, 4)
    assert variant.entries == ("scale",)
    assert variant.language == "opencl"


def test_the_header_says_everything_about_a_launch() -> None:
    made = a_template(PROBLEM)
    (launch,) = made.launches
    launch = replace(launch, cluster=(parse_expr("VEC"), parse_expr(1)), cooperative=True, pdl=True)
    source = replace(made, launches=(launch,)).render(PROBLEM, config(128, 4)).source
    assert "block (128), clusters of (4, 1), cooperative, programmatic dependent launch; arguments" in source


def test_counts_of_unroll_pragmas_are_numbers() -> None:
    """nvcc's host compiler leaves macros in a pragma as they are, and the device compiler knows none."""
    loops = "#pragma unroll VEC\nfor (;;) {}\n# pragma unroll (BLOCK / VEC)\n#pragma unroll OTHER\n"
    source = a_template(PROBLEM, TEMPLATE + loops).render(PROBLEM, config(128, 4)).source
    wanted = "#pragma unroll 4\nfor (;;) {}\n# pragma unroll (128 / 4)\n#pragma unroll OTHER\n"
    assert source.endswith(wanted)


def test_every_configuration_is_another_variant() -> None:
    made = a_template(PROBLEM)
    digests = {made.render(PROBLEM, c).digest for c in (config(32), config(64), config(64, 2))}
    assert len(digests) == 3
    assert made.render(PROBLEM, config(64)).digest == made.render(PROBLEM, config(64)).digest


def test_launch_workspace_and_flags_take_the_values() -> None:
    variant = template().render(PROBLEM, baked(128, 0))
    (launch,) = variant.launches
    assert [e.text for e in (*launch.grid, *launch.block, launch.shared)] == ["rows", "128", "512"]
    assert launch.args == ("out", "x", "rows", "d", "partial")
    assert [e.text for e in variant.argument("partial").shape] == ["rows", "ceildiv(d, 128)"]
    assert variant.flags == ("-DB=128", "-D=D_CONST=0", "--plain")
    assert "// build with -DB=128 -D=D_CONST=0 --plain\n" in variant.source
    assert "512 bytes of shared memory" in variant.source


def test_the_domain_is_what_must_hold_and_is_not_settled() -> None:
    variant = template().render(PROBLEM, baked(128, 0))
    of_sizes, of_device = ["d % 128 == 0", "d >= 64"], ["128 <= device.max_threads"]
    assert domain(variant) == [*of_sizes, *of_device, "resources.registers <= 64"]
    assert variant.allows({"d": 256, "device.max_threads": 256})  # registers are not known yet
    assert not variant.allows({"d": 256, "device.max_threads": 64})
    assert not variant.allows({"d": 250})
    assert not variant.allows({"d": 256, "resources.registers": 65})


def test_what_is_preferred_limits_nothing() -> None:
    text = TEMPLATE.replace("// [launch]", '// [prefer]\n// big = "BLOCK > 64"\n// [launch]')
    assert domain(a_template(PROBLEM, text).render(PROBLEM, config(32))) == ["d % 8 == 0"]


def test_a_condition_that_cannot_hold_stays() -> None:
    text = TEMPLATE.replace("// [launch]", '// big = "BLOCK > 32"\n// [launch]')
    assert domain(a_template(PROBLEM, text).render(PROBLEM, config(32))) == ["d % 8 == 0", "0"]


def test_a_size_is_baked_in_only_where_the_configuration_says_so() -> None:
    made = template()
    assert [made.bakes_sizes(baked(64, bake)) for bake in (0, 1)] == [False, True]
    free = made.render(PROBLEM, baked(64, 0), {"rows": 4, "d": 2048})
    assert defines(free.source) == ["BLOCK 64", "BAKE 0", "D_CONST 0"]
    assert free == made.render(PROBLEM, baked(64, 0))  # one build serves all sizes
    bound = made.render(PROBLEM, baked(64, 1), {"rows": 4, "d": 2048})
    assert defines(bound.source) == ["BLOCK 64", "BAKE 1", "D_CONST 2048"]
    assert bound.flags[1] == "-D=D_CONST=2048"
    assert domain(bound)[-1] == "(d) == 2048"
    assert bound.allows({"rows": 9, "d": 2048})
    assert not bound.allows({"rows": 9, "d": 1024})
    with pytest.raises(Undefined, match="'d' has no value"):
        made.render(PROBLEM, baked(64, 1))


def test_a_define_without_a_value_makes_a_variant_that_runs_nowhere() -> None:
    text = BAKED.replace("d if BAKE else 0", "d // BAKE")
    variant = a_template(PROBLEM, text).render(PROBLEM, baked(64, 0), {"rows": 4, "d": 2048})
    assert not variant.allows({"rows": 4, "d": 2048})
    assert not variant.allows({"rows": 1, "d": 64})
    fine = a_template(PROBLEM, text).render(PROBLEM, baked(64, 1), {"rows": 4, "d": 2048})
    assert fine.allows({"rows": 4, "d": 2048})


def test_the_problems_own_defines_and_flags_reach_both_sides() -> None:
    problem = a_problem('defines = { KIND = 2, TEXT = "a b" }\nflags = ["-fast"]')
    variant = a_template(problem).render(problem, config(64))
    assert defines(variant.source)[:4] == ["KIND 2", "TEXT a b", "BLOCK 64", "VEC 1"]
    before = original_variant(problem)
    assert before.source == f'#define KIND 2\n#define TEXT a b\n#line 1 "kernel.cl"\n{KERNEL}'
    assert variant.flags == before.flags == ("-fast",)


def test_a_macro_of_the_problem_that_is_a_parameter_is_defined_once() -> None:
    problem = a_problem("defines = { BLOCK = 512, KIND = 2 }")
    source = a_template(problem).render(problem, config(64)).source
    head = source.partition("#line")[0]
    assert sorted(defines(head)) == ["BLOCK 64", "KIND 2", "VEC 1"]
    assert defines(original_variant(problem).source) == ["BLOCK 512", "KIND 2"]


def test_the_original_is_the_text_itself() -> None:
    variant = original_variant(PROBLEM)
    assert variant.source == KERNEL
    assert variant.config is None
    assert variant.domain == ()
    assert variant.launches == PROBLEM.launches
    assert variant.arguments == PROBLEM.arguments


def test_sizes_and_parameters_are_inserted_into_entries() -> None:
    launches = tuple(replace(launch, entry="scale<{d}, Kind{0}>") for launch in PROBLEM.launches)
    problem = replace(PROBLEM, launches=launches)
    assert original_variant(problem, {"d": 8, "rows": 1}).entries == ("scale<8, Kind{0}>",)
    text = BAKED.replace("// grid = ", '// entry = "scale<{BLOCK}, {D_CONST}>"\n// grid = ')
    assert template(text).render(PROBLEM, baked(64, 1), {"d": 256}).entries == ("scale<64, 256>",)


def test_a_size_in_an_entry_is_one_build_for_each_of_its_values() -> None:
    made = template(BAKED.replace("// grid = ", '// entry = "scale<{BLOCK}, {d}>"\n// grid = '))
    assert made.entry_sizes == ("d",)
    assert made.bakes_sizes(baked(64, 0))
    assert made.baking == ("d if BAKE else 0", "d")
    variant = made.render(PROBLEM, baked(64, 0), {"rows": 4, "d": 256})
    assert variant.entries == ("scale<64, 256>",)
    assert "d == 256" in domain(variant)
    assert not variant.allows({"d": 512})
    with pytest.raises(Undefined):
        made.render(PROBLEM, baked(64, 0))


def test_a_define_may_be_a_number_of_the_device() -> None:
    made = template(BAKED.replace("d if BAKE else 0", "4 * device.sms if BAKE else 0"))
    assert not made.bakes_sizes(baked(64, 1))
    assert made.baking == ()
    on_it = made.on(replace(DEVICE, limits=replace(DEVICE.limits, sms=132)))
    assert "D_CONST 528" in defines(on_it.render(PROBLEM, baked(64, 1)).source)
    assert on_it.defines == made.defines  # as it was written
    with pytest.raises(Undefined):
        made.render(PROBLEM, baked(64, 1))


@pytest.mark.parametrize("flag", ["-DX=\\", "-DX=\\ ", "-DX=\\\t\\", "-a\nreturn;", "-a\r#error"])
def test_nothing_in_a_flag_leaves_the_comment_it_stands_in(flag: str) -> None:
    source = replace(template(), flags=(flag,)).render(PROBLEM, baked(64, 0)).source
    head = source.partition("#define")[0]
    assert head
    for line in head.splitlines():
        assert line.startswith("// ")
        assert not line.rstrip().endswith("\\")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kernel.cl", "kernel.cl"),
        ("/home/me/src/k.cu", "k.cu"),
        ("..\\src\\my kernel.cu", "my_kernel.cu"),
        ('a"\n#b.cl', "a___b.cl"),
    ],
)
def test_a_plain_name_may_stand_in_a_source(path: str, name: str) -> None:
    assert plain_name(path) == name


def test_what_no_build_could_make_fit_is_not_searched() -> None:
    template = a_template(PROBLEM)
    every = configs_of(PROBLEM, template, DEVICE)
    small = configs_of(PROBLEM, template, a_device(max_threads=64))
    assert {config["BLOCK"] for config in every} == {32, 64, 128, 256}
    assert {config["BLOCK"] for config in small} == {32, 64}
    assert all(config in every for config in small)


def test_a_device_on_which_nothing_fits() -> None:
    with pytest.raises(
        BadInput, match=r"fits a device, which demands: threads per block, 1 <= BLOCK <= 16$"
    ) as caught:
        configs_of(PROBLEM, a_template(PROBLEM), a_device(max_threads=16))
    assert "smaller values, or name another device" in (caught.value.hint or "")


def test_limits_that_leave_nothing_only_together() -> None:
    text = TEMPLATE.replace('block = ["BLOCK"]', 'block = ["BLOCK"]\n// shared = "4096 // BLOCK"')
    with pytest.raises(BadInput, match=r"1 <= BLOCK <= 64; shared memory per block, 0 <= .* <= 32$"):
        configs_of(PROBLEM, a_template(PROBLEM, text), a_device(max_threads=64, shared=32))


def test_constraints_that_leave_nothing_anywhere() -> None:
    text = TEMPLATE.replace("// [require]", '// [require]\n// never = "device.sms > 9999"')
    with pytest.raises(BadInput, match="the template's constraints leave no configuration") as caught:
        configs_of(PROBLEM, a_template(PROBLEM, text), a_device(max_threads=16))
    assert caught.value.hint == "widen a parameter or loosen a constraint"


def test_limits_that_tie_too_much_together_are_left_to_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    tied = a_template(PROBLEM, TEMPLATE.replace('block = ["BLOCK"]', 'block = ["BLOCK", "VEC"]'))
    small = a_device(max_threads=128)
    apart = len(configs_of(PROBLEM, tied, DEVICE))
    assert len(configs_of(PROBLEM, tied, small)) < apart
    monkeypatch.setattr(configset, "MAX_ROWS", 5)
    assert len(configs_of(PROBLEM, tied, small)) == apart


def test_a_space_that_cannot_be_listed_is_still_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    template = a_template(PROBLEM)
    own = replace(template, space=replace(template.space))
    monkeypatch.setattr(configset, "MAX_ROWS", 1)
    with pytest.raises(BadInput, match="legal combinations"):
        configs_of(PROBLEM, own, DEVICE)


PARAMS = {"A": [1, 2, 4], "B": [0, 1]}
PAIR, ALONE = (("A", 4), ("B", 1)), (("A", 2),)


def values(text: str) -> set[tuple[int, ...]]:
    found = configs_of(PROBLEM, a_template(PROBLEM, text), DEVICE)
    return {tuple(config.as_dict().values()) for config in found}


@pytest.mark.parametrize("require", ["", "A < 9"])
def test_what_is_forbidden_is_gone_and_nothing_else(require: str) -> None:
    text = a_draft(PARAMS, require)
    assert values(exclude_combinations(text, [PAIR], "t")) == values(text) - {(4, 1)}
    assert values(exclude_combinations(text, [PAIR, ALONE], "t")) == values(text) - {(4, 1), (2, 0), (2, 1)}


def test_a_second_time_adds_to_the_first() -> None:
    text = a_draft(PARAMS)
    twice = exclude_combinations(exclude_combinations(text, [PAIR], "t"), [ALONE], "t")
    assert values(twice) == {(1, 0), (1, 1), (4, 0)}
    assert twice.count("[require]") == 1


def test_the_code_is_left_as_it_is() -> None:
    text = a_draft(PARAMS)
    changed = exclude_combinations(text, [PAIR], "t").splitlines()
    assert [line for line in changed if line not in text.splitlines()] == [
        "// [require]",
        '// not_right_1 = "not (A == 4 and B == 1)"',
    ]
    assert changed[-1] == text.splitlines()[-1]


def test_line_ends_and_comments_of_a_heading() -> None:
    text = a_draft(PARAMS, "A < 9").replace("// [require]", "//  [ require ]  # what must hold")
    assert values(exclude_combinations(text.replace("\n", "\r\n"), [PAIR], "t")) == values(text) - {(4, 1)}


def test_what_is_no_template_has_no_place_for_rules() -> None:
    with pytest.raises(BadInput, match="declares its parameters in a comment"):
        exclude_combinations("int x;", [PAIR], "t")
