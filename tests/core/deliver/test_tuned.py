"""What is delivered: every file as it was timed, and a dispatch that serves each size with the right one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.deliver.deliveries import BAKED, PROBLEM, A, B, C, choice, delivered, with_headers
from tests.samples import KERNEL, TEMPLATE, a_device, a_template
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.problem import Contract, SizeRule
from tunesmith.problem.template import Template, original_variant
from tunesmith.run.delivery import assemble_delivery, general_condition
from tunesmith.run.race import Winners
from tunesmith.space.configset import Config
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import Constraint


def served(entries: list[dict[str, Any]], **sizes: int) -> dict[str, Any]:
    return next(entry for entry in entries if parse_expr(entry["when"]).holds(sizes))


configs = st.sampled_from([None, A, B, C])


@given(configs, configs, configs, st.booleans(), st.integers(1, 5000), st.integers(1, 5000))
def test_every_size_is_served_and_legally(
    general: Config | None, small: Config | None, wide: Config | None, bake: bool, rows: int, d: int
) -> None:
    template = a_template(PROBLEM, BAKED if bake else TEMPLATE)
    chosen = choice(general, small=small, wide=wide)
    files, entries = delivered(chosen, template=template)
    assert entries[-1]["when"] == "1"
    assert entries[-1]["file"] == "original.cl"
    assert {entry["file"] for entry in entries} | {"dispatch.json"} == set(files)
    for name, pick in (("small", small), ("wide", wide)):
        entry = served(entries, **PROBLEM.workload(name).as_dict())
        assert entry["config"] == (pick.as_dict() if pick else None)
    entry = served(entries, rows=rows, d=d)
    if entry["config"] is not None:
        assert not PROBLEM.contract.violations({"rows": rows, "d": d})
        assert d % (8 * entry["config"]["VEC"]) == 0
        if bake and entry["config"]["VEC"] == 4:
            assert f"#define D {d}\n" in files[entry["file"]].decode()


def test_the_contract_and_the_requirements_make_the_condition() -> None:
    contract = Contract(
        (SizeRule("rows", 2, 100, 1), SizeRule("d", 64, 256, 1, (64, 128, 256))),
        (Constraint("r", parse_expr("rows % 2 == 0 or d == 64")),),
    )
    text = TEMPLATE.replace("// [launch]", '// fits = "BLOCK <= device.max_threads"\n// [launch]').replace(
        "// [launch]",
        '// light = "resources.registers < 99"\n// rich = "rows * 8 >= device.sms"\n// [launch]',
    )
    template = a_template(PROBLEM, text)
    problem = replace(PROBLEM, contract=contract)
    _, entries = delivered(choice(A, small=A, wide=A), problem, template, sms=32)
    when = parse_expr(entries[0]["when"])
    assert when.names == {"rows", "d"}  # nothing of the device or a build is left to ask

    def right(rows: int, d: int) -> bool:
        return not contract.violations({"rows": rows, "d": d}) and d % 8 == 0 and rows * 8 >= 32

    for rows in range(120):
        for d in (0, 63, 64, 65, 128, 256, 512):
            assert when.holds({"rows": rows, "d": d}) == right(rows, d)


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ("rows % 1 == 0", ""),
        ("rows // 2048 % 1 == 0", ""),
        ("rows % VEC == 0", ""),
        ("d % 32 == 0 and rows % 2 == 0", " and rows % 2 == 0"),
        ("d % 64 == 0", " and d % 64 == 0"),
        ("rows % 5 == 1 or rows % 2 == 0", " and (rows % 5 == 1 or rows % 2 == 0)"),
        ("rows % 3 == 1", " and rows % 3 == 1"),
        ("d % 64 == 0 or rows % 1 == 0", " and (d % 64 == 0 or rows % 1 == 0)"),
        ("(32 // rows) % 1 == 0", " and 32 // rows % 1 == 0"),
    ],
)
def test_what_the_contract_promises_is_not_asked_again(rule: str, left: str) -> None:
    contract = Contract((SizeRule("rows", 0, 100, 5), SizeRule("d", 32, 96, 1, (32, 96))), ())
    text = TEMPLATE.replace("// [launch]", f'// own = "{rule}"\n// [launch]')
    problem = replace(PROBLEM, contract=contract)
    _, entries = delivered(choice(A), problem, a_template(PROBLEM, text))
    assert entries[0]["when"] == f"0 <= rows <= 100 and rows % 5 == 0 and d in (32, 96){left}"


def test_files_are_to_the_byte_what_was_compiled() -> None:
    template = a_template(PROBLEM)
    files, entries = delivered(choice(B, small=A, wide=B))
    variants = {
        "scale-small.cl": template.render(PROBLEM, A),
        "scale-general.cl": template.render(PROBLEM, B),
    }
    for name, variant in variants.items():
        assert files[name] == variant.source.encode()
        assert next(e for e in entries if e["file"] == name)["digest"] == variant.digest
    assert files["original.cl"] == KERNEL.encode()
    assert entries[-1]["digest"] == original_variant(PROBLEM).digest


@pytest.mark.parametrize("headers", [(("one.h", "template"),), (("cuda_fp16.h", "template"),)])
def test_headers_of_the_template_stay_apart_from_those_of_the_original(
    headers: tuple[tuple[str, str], ...],
) -> None:
    problem = with_headers(PROBLEM, ("one.h", "original"))
    template = replace(a_template(problem), headers=headers)
    files, entries = delivered(choice(B, small=None, wide=B), problem, template)
    folders = [entry["headers"]["folder"] for entry in entries]
    assert folders == ["include", "include-tuned", "include"]
    assert files["include/one.h"] == b"original"
    assert files[f"include-tuned/{headers[0][0]}"] == b"template"
    assert f"include/{headers[0][0]}" not in files or headers[0][0] == "one.h"


@pytest.mark.parametrize(
    "spelling",
    [
        "../up.h",
        "a/../../up.h",
        "/etc/up.h",
        "..",
        ".",
        "a\\up.h",
        "a\0.h",
        "\udc80.h",
        "x" * 300,
        "a/b",
        "a.h/c",
    ],
)
def test_a_spelling_that_cannot_be_a_file_there_is_reported_and_not_written(spelling: str) -> None:
    problem = with_headers(PROBLEM, ("a/b/c.h", "1"), ("a.h", "2"), (spelling, "3"), ("./a.h", "4"))
    files, entries = delivered(choice(B, small=B, wide=B), problem)
    assert sorted(name for name in files if "/" in name) == ["include/a.h", "include/a/b/c.h"]
    assert files["include/a.h"] == b"2"
    assert len(entries[0]["headers"]["left_out"]) == 2
    assert entries[0]["headers"]["left_out"][1] == "./a.h"


def dispatch_of(chosen: Winners, template: Template | None = None) -> Dispatch:
    own, device = template or a_template(PROBLEM), a_device()
    return assemble_delivery(PROBLEM, lambda _config: own, device, chosen).dispatch


def test_what_is_counted_are_kernels_and_neither_entries_nor_configurations() -> None:
    shared = dispatch_of(choice(B, small=A, wide=A))
    assert (len(shared.tuned), shared.winners) == (3, 2)
    baked = dispatch_of(choice(B, small=B, wide=B), a_template(PROBLEM, BAKED))
    assert baked.tuned_files == ("scale-small.cl", "scale-wide.cl")
    assert baked.winners == 2


@pytest.mark.parametrize(
    ("where", "left"),
    [((), ""), (("rows <= 64", "(d >= 9 or rows <= 2)"), "rows <= 64 and (d >= 9 or rows <= 2)")],
)
def test_the_condition_of_the_general_entry_is_told_without_the_contract(
    where: tuple[str, ...], left: str
) -> None:
    own = replace(choice(A, small=A, wide=B), where=where)
    assert general_condition(PROBLEM, dispatch_of(own)) == left
    assert general_condition(PROBLEM, dispatch_of(choice(None, small=A, wide=A))) is None
