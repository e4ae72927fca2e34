"""What is delivered: every file as it was timed, and a dispatch that serves each size with the right one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import DEVICE, KERNEL, TEMPLATE, WORKLOADS, a_device, a_problem, a_template, config
from tests.wording import says
from tunesmith.deliver.tuned import tuned_files
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.problem import Contract, Problem, SizeRule
from tunesmith.problem.template import Template, original
from tunesmith.run.delivery import delivery, general_condition
from tunesmith.run.outcome import Interval
from tunesmith.run.racing import Pick, Winners
from tunesmith.space.expr import parse
from tunesmith.space.params import Config
from tunesmith.space.space import Constraint

PROBLEM = a_problem()
A, B, C = config(64), config(128, 4), config(256, 2)
BAKED = TEMPLATE.replace("// [launch]", '// [defines]\n// D = "d if VEC == 4 else 0"\n// [launch]').replace(
    "int k =", "int k = D +"
)


def no_store(digest: str) -> bytes:
    raise AssertionError(f"nothing is stored, asked for {digest}")


def choice(general: Config | None, /, **picks: Config | None) -> Winners:
    gain = Interval(2.0, 1.9, 2.1)
    return Winners(general, tuple(Pick(name, config, gain) for name, config in picks.items()))


def delivered(
    chosen: Winners, problem: Problem = PROBLEM, template: Template | None = None, **limits: Any
) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    own = template or a_template(problem)
    device = a_device(**limits)
    files = tuned_files(problem, device, delivery(problem, lambda _config: own, device, chosen), no_store)
    return files, json.loads(files["dispatch.json"])["entries"]


def served(entries: list[dict[str, Any]], **sizes: int) -> dict[str, Any]:
    return next(entry for entry in entries if parse(entry["when"]).holds(sizes))


# -- who serves whom --------------------------------------------------------------------------------------


def test_a_general_configuration_and_the_original_behind_it() -> None:
    files, entries = delivered(choice(B, small=B, wide=B))
    assert [entry["file"] for entry in entries] == ["scale-general.cl", "original.cl"]
    assert sorted(files) == ["dispatch.json", "original.cl", "scale-general.cl"]
    assert served(entries, rows=16, d=256)["config"] == {"BLOCK": 128, "VEC": 4}
    assert served(entries, rows=1, d=64)["file"] == "scale-general.cl"
    assert served(entries, rows=1, d=40)["file"] == "original.cl"  # 40 is no multiple of 8 * VEC


def test_beyond_what_was_verified_the_original_serves() -> None:
    far = replace(choice(B, small=B, wide=B), where=("rows <= 20", "(rows) * (d) <= 4096"))
    _, entries = delivered(far)
    assert served(entries, rows=16, d=256)["file"] == "scale-general.cl"
    assert served(entries, rows=16, d=288)["file"] == "original.cl"
    assert served(entries, rows=21, d=64)["file"] == "original.cl"


def test_a_workload_with_its_own_configuration_comes_first() -> None:
    files, entries = delivered(choice(B, small=A, wide=B))
    assert [entry["file"] for entry in entries] == ["scale-small.cl", "scale-general.cl", "original.cl"]
    assert entries[0]["when"] == "rows == 16 and d == 256"
    assert served(entries, rows=16, d=256)["config"] == {"BLOCK": 64, "VEC": 1}
    assert served(entries, rows=17, d=256)["file"] == "scale-general.cl"
    assert served(entries, rows=4, d=2048)["file"] == "scale-general.cl"
    assert len(files) == 4


def test_where_the_original_stays_it_does_so_before_the_general_one() -> None:
    files, entries = delivered(choice(B, small=None, wide=B))
    assert [entry["file"] for entry in entries] == ["original.cl", "scale-general.cl", "original.cl"]
    assert served(entries, rows=16, d=256)["file"] == "original.cl"
    assert served(entries, rows=16, d=256)["config"] is None
    assert served(entries, rows=4, d=2048)["file"] == "scale-general.cl"
    assert len(files) == 3


def test_without_a_general_one_only_the_workloads_are_served() -> None:
    _, entries = delivered(choice(None, small=A, wide=None))
    assert [entry["file"] for entry in entries] == ["scale-small.cl", "original.cl"]
    assert served(entries, rows=16, d=256)["file"] == "scale-small.cl"
    assert served(entries, rows=16, d=264)["file"] == "original.cl"


def test_without_a_gain_the_original_serves_all() -> None:
    files, entries = delivered(choice(None, small=None, wide=None))
    assert sorted(files) == ["dispatch.json", "original.cl"]
    assert [(entry["when"], entry["file"]) for entry in entries] == [("1", "original.cl")]


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
        (Constraint("r", parse("rows % 2 == 0 or d == 64")),),
    )
    text = TEMPLATE.replace("// [launch]", '// fits = "BLOCK <= device.max_threads"\n// [launch]').replace(
        "// [launch]",
        '// light = "resources.registers < 99"\n// rich = "rows * 8 >= device.sms"\n// [launch]',
    )
    template = a_template(PROBLEM, text)
    problem = replace(PROBLEM, contract=contract)
    _, entries = delivered(choice(A, small=A, wide=A), problem, template, sms=32)
    when = parse(entries[0]["when"])
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


def _requiring(rules: int) -> Template:
    """Conditions none of which is long, and all together are."""
    odd = [f'// r{n} = "{" or ".join(f"rows % {n + 7} == {k}" for k in range(1, 60))}"' for n in range(rules)]
    return a_template(PROBLEM, TEMPLATE.replace("// [launch]", "\n".join([*odd, "// [launch]"])))


def test_a_long_condition_is_one_condition() -> None:
    _, entries = delivered(choice(A, small=A, wide=A), template=_requiring(5))
    assert [entry["file"] for entry in entries] == ["scale-general.cl", "original.cl"]
    assert served(entries, rows=7, d=64)["file"] == "original.cl"
    assert served(entries, rows=1, d=64)["file"] == "scale-general.cl"


def test_one_that_is_too_long_serves_the_workloads_alone() -> None:
    own, device = _requiring(30), a_device()
    made = delivery(PROBLEM, lambda _config: own, device, choice(A, small=A, wide=A))
    files = [entry.file for entry in made.dispatch.entries]
    assert files == ["scale-general.cl", "scale-general.cl", "original.cl"]
    says(made.dispatch.left_out, "the condition under which it serves is too long")


def test_a_configuration_that_the_device_forbids_serves_nobody() -> None:
    text = TEMPLATE.replace("// [launch]", '// fits = "BLOCK <= device.max_threads"\n// [launch]')
    _, entries = delivered(choice(A, small=A, wide=A), template=a_template(PROBLEM, text), max_threads=32)
    assert served(entries, rows=16, d=256)["file"] == "original.cl"


def test_a_size_that_is_baked_in_serves_that_size_alone() -> None:
    template = a_template(PROBLEM, BAKED)
    files, entries = delivered(choice(B, small=B, wide=B), template=template)
    assert [entry["file"] for entry in entries] == ["scale-small.cl", "scale-wide.cl", "original.cl"]
    assert b"#define D 256\n" in files["scale-small.cl"]
    assert b"#define D 2048\n" in files["scale-wide.cl"]
    assert served(entries, rows=16, d=2048)["file"] == "original.cl"


# -- what the files hold ----------------------------------------------------------------------------------


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
    assert entries[-1]["digest"] == original(PROBLEM).digest


def test_the_original_is_delivered_with_its_defines() -> None:
    problem = a_problem('defines = { KIND = 2 }\nflags = ["-fast"]')
    files, entries = delivered(choice(None, small=None, wide=None), problem)
    assert files["original.cl"] == original(problem).source.encode()
    assert files["original.cl"].startswith(b"#define KIND 2\n")
    assert entries[-1]["flags"] == ["-fast"]


def test_entries_say_how_to_launch() -> None:
    _, entries = delivered(choice(B, small=B, wide=B))
    (launch,) = entries[0]["launches"]
    assert launch == {
        "entry": "scale",
        "grid": ["ceildiv(rows * d, 512)"],
        "block": ["128"],
        "shared": None,
        "args": ["out", "x", "rows", "d"],
        "cluster": None,
        "cooperative": False,
        "pdl": False,
        "when": None,
    }
    assert parse(launch["grid"][0]).evaluate({"rows": 16, "d": 256}) == 8
    assert entries[1]["launches"][0]["grid"] == ["rows"]


def test_entries_say_everything_about_a_launch() -> None:
    template = a_template(PROBLEM)
    (launch,) = template.launches
    launch = replace(launch, cluster=(parse("VEC"), parse(1)), cooperative=True, pdl=True)
    _, entries = delivered(choice(B, small=B, wide=B), template=replace(template, launches=(launch,)))
    (described,) = entries[0]["launches"]
    assert (described["cluster"], described["cooperative"], described["pdl"]) == (["4", "1"], True, True)


def with_headers(problem: Problem, *headers: tuple[str, str]) -> Problem:
    return replace(problem, kernel=replace(problem.kernel, headers=headers))


def test_the_users_headers_are_delivered_under_their_spelling() -> None:
    problem = with_headers(PROBLEM, ("math/all.h", '#include "one.h"\n'), ("one.h", "é"))
    files, entries = delivered(choice(B, small=A, wide=B), problem)
    assert files["include/math/all.h"] == b'#include "one.h"\n'
    assert files["include/one.h"] == "é".encode()
    described = {"folder": "include", "files": ["include/math/all.h", "include/one.h"], "left_out": []}
    assert [entry["headers"] for entry in entries] == [described, described, described]
    assert delivered(choice(B, small=A, wide=B))[1][0]["headers"] is None


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


def test_entries_say_what_else_the_caller_provides() -> None:
    text = TEMPLATE.replace(
        "// [launch]",
        '// [workspace]\n// part = { type = "float32*", shape = ["rows", "BLOCK"], init = 0.5, align = 16 }\n'
        '// [launch]\n// args = ["out", "x", "rows", "d", "part"]',
    )
    _, entries = delivered(choice(B, small=B, wide=B), template=a_template(PROBLEM, text))
    assert entries[0]["workspace"] == [
        {
            "name": "part",
            "type": "float32",
            "role": "workspace",
            "shape": ["rows", "128"],
            "strides": [],
            "align": 16,
            "alias": None,
            "init": 0.5,
            "value": None,
        }
    ]
    assert entries[-1]["workspace"] == []


def test_the_dispatch_says_what_it_is_for() -> None:
    files, _ = delivered(choice(None, small=None, wide=None))
    table = json.loads(files["dispatch.json"])
    assert (table["problem"], table["language"], table["device"]) == ("scale", "opencl", DEVICE.name)
    assert files["dispatch.json"].endswith(b"}\n")


@pytest.mark.parametrize("name", ["general", "a.b", "a-b"])
def test_file_names_are_distinct_whatever_workloads_are_called(name: str) -> None:
    problem = a_problem(workloads=f'"{name}" = {{ rows = 1, d = 64 }}\n{WORKLOADS}')
    chosen = choice(B, **{name: A, "small": C, "wide": B})
    files, entries = delivered(chosen, problem)
    assert len(files) == 5
    for this, sizes in ((A, {"rows": 1, "d": 64}), (C, {"rows": 16, "d": 256}), (B, {"rows": 4, "d": 2048})):
        entry = served(entries, **sizes)
        assert entry["config"] == this.as_dict()
        assert files[entry["file"]] == a_template(problem).render(problem, this).source.encode()


def test_one_configuration_for_two_workloads_is_one_file() -> None:
    files, entries = delivered(choice(B, small=A, wide=A))
    assert [entry["file"] for entry in entries] == [
        "scale-small.cl",
        "scale-small.cl",
        "scale-general.cl",
        "original.cl",
    ]
    assert len(files) == 4


def dispatch_of(chosen: Winners, template: Template | None = None) -> Dispatch:
    own, device = template or a_template(PROBLEM), a_device()
    return delivery(PROBLEM, lambda _config: own, device, chosen).dispatch


def test_what_is_counted_are_kernels_and_neither_entries_nor_configurations() -> None:
    shared = dispatch_of(choice(B, small=A, wide=A))
    assert (len(shared.tuned), shared.winners) == (3, 2)
    baked = dispatch_of(choice(B, small=B, wide=B), a_template(PROBLEM, BAKED))
    assert baked.tuned_files == ("scale-small.cl", "scale-wide.cl")
    assert baked.winners == 2


def test_each_kernel_that_cannot_be_delivered_is_named() -> None:
    asking = BAKED.replace('grid = ["', 'grid = ["max(1, resources.blocks_per_sm) * ')
    assert asking != BAKED
    found = dispatch_of(choice(B, small=B, wide=B), a_template(PROBLEM, asking))
    assert (found.tuned, found.winners) == ((), 2)
    assert [text.partition(": ")[0].split(" at ")[1] for text in found.left_out] == ["small", "wide"]


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
