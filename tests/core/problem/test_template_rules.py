"""The exact rules of a template's header that authors are told: each holds as it is said."""

from __future__ import annotations

import pytest

from tests.samples import DEVICE, a_problem
from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.reduced import reduce_template
from tunesmith.problem.template import Template, builds_of, configs_of
from tunesmith.problem.template_file import launch_lines, parse_template
from tunesmith.space.configset import Config

PROBLEM = a_problem()
SMALL, WIDE = (w.as_dict() for w in PROBLEM.workloads)
CODE = """\
#ifndef BLOCK
#define BLOCK 64
#endif
__kernel void scale(__global float* out, __global const float* x, int rows, int d) {
    for (int i = get_global_id(0); i < rows * d; i += get_global_size(0)) out[i] = 2.0f * x[i];
}
"""


def template(header: str, code: str = CODE, problem: Problem = PROBLEM) -> Template:
    lines = "".join(f"// {line}\n" for line in header.strip().splitlines())
    params = "// [params]\n// BLOCK = { values = [32, 64], default = 64 }\n"
    text = f"// /// tunesmith\n{params}{lines}// ///\n{code}"
    return parse_template(text, path="t.cl", problem=problem)


def planned(made: Template, config: Config, sizes: dict[str, int]) -> Plan:
    plan = plan_launch(PROBLEM, made.render(PROBLEM, config, sizes), sizes, DEVICE, None)
    assert isinstance(plan, Plan), plan
    return plan


LAUNCH = '[launch]\ngrid = ["ceildiv(rows * d, BLOCK)"]\nblock = ["BLOCK"]'


def test_a_launch_a_condition_and_a_workspace_may_use_defines() -> None:
    made = template(
        '[defines]\nPER = "BLOCK * 4"\nTILES = "ceildiv(rows * d, PER)"\n'
        '[require]\nenough = "TILES >= 1"\n[prefer]\nseveral = "PER <= 256"\n'
        '[workspace]\nsums = { type = "float32*", shape = ["TILES"] }\n'
        '[launch]\ngrid = ["TILES"]\nblock = ["BLOCK"]\nargs = ["out", "x", "rows", "d", "sums"]'
    )
    launch = made.render(PROBLEM, made.default, SMALL).launches[0]
    assert launch.grid[0].evaluate(SMALL) == -(-SMALL["rows"] * SMALL["d"] // 256)
    assert made.workspace[0].shape[0].evaluate({**SMALL, "BLOCK": 64}) == launch.grid[0].evaluate(SMALL)
    assert {c.name for c in made.space.constraints} == {"enough", "several"}
    assert all("TILES" not in c.expr.names for c in made.space.constraints)


def test_a_define_that_only_the_launch_names_bakes_nothing_into_builds() -> None:
    tiles = '[defines]\nTILES = "ceildiv(rows * d, BLOCK)"'
    made = template(f'{tiles}\n[launch]\ngrid = ["TILES"]\nblock = ["BLOCK"]')
    assert made.defines == ()
    assert not made.bakes_sizes(made.default)
    assert len(builds_of(PROBLEM, made, made.default)) == 1


def test_a_define_that_nothing_names_is_left_out() -> None:
    made = template(f'[defines]\nHALF = "d // 2"\n{LAUNCH}')
    assert made.defines == ()
    assert not made.bakes_sizes(made.default)


def test_a_define_needs_no_default_in_the_code_and_may_have_one() -> None:
    header = f'[defines]\nD_CONST = "d"\n{LAUNCH}'
    bare = CODE.replace("rows * d", "rows * D_CONST")
    rendered = template(header, bare).render(PROBLEM, Config.of({"BLOCK": 64}), {"d": 512})
    assert "#define D_CONST 512\n" in rendered.source
    template(header, f"#ifndef D_CONST\n#define D_CONST 8\n#endif\n{bare}")
    with pytest.raises(BadInput) as told:
        template(header, f"#define D_CONST 8\n{bare}")
    assert "put #ifndef D_CONST" in str(told.value.hint)


def test_a_define_may_ask_for_the_device() -> None:
    made = template(f'[defines]\nSMS = "device.sms"\n{LAUNCH}', CODE.replace("2.0f", "(float)SMS")).on(DEVICE)
    assert f"#define SMS {DEVICE.limits.sms}\n" in made.render(PROBLEM, made.default, SMALL).source


def test_a_define_may_use_those_before_it_alone() -> None:
    code = CODE.replace("2.0f", "FIRST * LATER")
    with pytest.raises(BadInput, match="LATER"):
        template(f'[defines]\nFIRST = "LATER + 1"\nLATER = "d"\n{LAUNCH}', code)


def test_a_preference_need_hold_at_one_workload_only() -> None:
    """And where it holds nowhere the configuration is left out."""
    somewhere = template(f'[prefer]\nwide = "BLOCK == 64 or d == {WIDE["d"]}"\n{LAUNCH}')
    assert len(configs_of(PROBLEM, somewhere, DEVICE)) == 2
    nowhere = template(f'[prefer]\nnever = "BLOCK == 64 or d == 7"\n{LAUNCH}')
    assert [c["BLOCK"] for c in configs_of(PROBLEM, nowhere, DEVICE)] == [64]


def test_a_cluster_may_be_a_parameter() -> None:
    header = f'C = {{ values = [1, 2], default = 1 }}\n{LAUNCH}\ncluster = ["C"]'
    made = template(header)
    assert made.render(PROBLEM, made.default.replace("C", 2), SMALL).launches[0].cluster[0].evaluate({}) == 2


PDL = f'PDL = {{ values = [0, 1], default = 0 }}\n{LAUNCH}\npdl = "PDL == 1"'
WAITS = CODE.replace("{\n", "{\n    cudaGridDependencySynchronize();\n", 1)


def test_overlap_may_be_a_parameter() -> None:
    made = template(PDL, WAITS)
    on, off = (made.render(PROBLEM, made.default.replace("PDL", v), SMALL).launches[0].pdl for v in (1, 0))
    assert (on, off) == (True, False)
    assert made.render(PROBLEM, made.default.replace("PDL", 1), SMALL).overlapping == ("scale",)
    assert 'pdl = "PDL == 1"' in launch_lines(made.launches, "scale", [a.name for a in PROBLEM.arguments])


def test_overlap_by_a_parameter_needs_the_wait_as_any_other() -> None:
    with pytest.raises(BadInput, match="never waits"):
        template(PDL)


def test_overlap_depends_on_parameters_alone() -> None:
    with pytest.raises(BadInput, match="rows"):
        template(PDL.replace("PDL == 1", "PDL == rows"), WAITS)


def test_a_template_reduced_to_what_won_keeps_the_choice_that_stays_open() -> None:
    made = template(PDL, WAITS)
    found = reduce_template(made, PROBLEM, [made.default.replace("PDL", 1)], ["PDL"])
    assert str(found.launches[0].pdl) == "PDL == 1"
    settled = reduce_template(made, PROBLEM, [made.default.replace("PDL", 1)], ["BLOCK"])
    assert settled.launches[0].pdl is True


def test_the_list_of_launches_may_vary_by_size() -> None:
    header = "\n".join(
        f'[[launch]]\nentry = "scale"\nargs = ["out", "x", "rows", "d"]\nblock = ["BLOCK"]\n'
        f'grid = ["{grid}"]\nwhen = "{when}"'
        for grid, when in (("1", "rows < 4"), ("2", "rows >= 4"), ("3", "rows >= 4 and BLOCK == 32"))
    )

    def grids(rows: int, block: int) -> list[int]:
        plan = planned(template(header), Config.of({"BLOCK": block}), {"rows": rows, "d": 64})
        return [launch.grid[0] for launch in plan.launches]

    assert (grids(2, 64), grids(8, 64), grids(8, 32)) == ([1], [2], [2, 3])


def test_an_entry_may_insert_a_size_whatever_the_problems_entry_is() -> None:
    made = template(LAUNCH.replace("[launch]", '[launch]\nentry = "scale<{d}, {BLOCK}>"'))
    variant = made.render(PROBLEM, made.default, SMALL)
    assert variant.launches[0].entry == f"scale<{SMALL['d']}, 64>"
    assert [str(c) for c in variant.domain] == [f"d == {SMALL['d']}"]


def test_a_name_that_an_entry_cannot_insert_is_told_once_with_what_can() -> None:
    with pytest.raises(BadInput) as told:
        template(LAUNCH.replace("[launch]", '[launch]\nentry = "scale<{K}, {K}>"'))
    assert "faults" not in str(told.value)
    says(told.value, "inserts {K}, which is not there: known are BLOCK, d, rows")


def test_sizes_outside_of_the_requirement_keep_the_original() -> None:
    made = template(f'[require]\nwhole = "d % 128 == 0"\n{LAUNCH}')
    variant = made.render(PROBLEM, made.default)
    assert not variant.allows({"rows": 1, "d": 64})
    assert variant.allows({"rows": 1, "d": 128})


def test_workspaces_are_scratch_with_whatever_is_there_unless_init_fills_them() -> None:
    arguments = '["out", "x", "rows", "d", "sums"]'
    sums = '[workspace]\nsums = { type = "float32*", shape = ["rows"], init = 0 }'
    header = f"{sums}\n{LAUNCH}\nargs = {arguments}"

    def is_filled(text: str) -> bool:
        made = template(text)
        buffers = planned(made, made.default, SMALL).buffers
        return next(b for b in buffers if b.name == "sums").is_filled_by_launch

    assert is_filled(header)
    assert not is_filled(header.replace(", init = 0", ""))


def test_a_requirement_may_ask_what_the_compiler_tells() -> None:
    made = template(f'[require]\nfew = "resources.registers <= 64"\n{LAUNCH}')
    assert made.render(PROBLEM, made.default).allows({**SMALL, "resources.registers": 64})
    assert not made.render(PROBLEM, made.default).allows({**SMALL, "resources.registers": 65})
