"""Where a kernel is tested: sizes, distributions, and the constants that a size may be compared with."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import DEVICE, LIMITS, a_problem, a_template
from tests.thoroughness import examples
from tunesmith.problem import problem as p
from tunesmith.problem.cases import (
    CONSTANT,
    FULL_BYTES,
    LARGE_BYTES,
    SMOKE_BYTES,
    Case,
    broad_sizes,
    case_misfit,
    case_reach,
    collect_constants,
    extra_cases,
    fold_constants,
    full_cases,
    smoke_cases,
    threshold_sizes,
    verify_cases,
)
from tunesmith.problem.domain import domain_of
from tunesmith.problem.inputs import DISTRIBUTIONS, ODD
from tunesmith.problem.plan import ExtraCase
from tunesmith.problem.problem import Argument, Problem, Role, SizeRule, Workload
from tunesmith.problem.template import Variant, original_variant
from tunesmith.space.configset import Config
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import Constraint


def array(name: str, type: str, *shape: str, role: Role = "input") -> Argument:
    return Argument(name, type, role, tuple(parse_expr(text) for text in shape))


def problem(
    arguments: Sequence[Argument],
    sizes: Sequence[SizeRule],
    workloads: Sequence[dict[str, int]],
    require: Sequence[str] = (),
    grid: str = "1",
) -> Problem:
    return Problem(
        name="some",
        kernel=p.Kernel("kernel.cl", "", "some", "opencl"),
        arguments=tuple(arguments),
        launches=(p.Launch("some", (parse_expr(grid),), (parse_expr("64"),), ()),),
        contract=p.Contract(tuple(sizes), tuple(Constraint(text, parse_expr(text)) for text in require)),
        workloads=tuple(Workload(f"w{i}", tuple(sizes.items())) for i, sizes in enumerate(workloads)),
        accuracy=p.Accuracy(1e-3, 1e-3),
    )


SILU = problem(
    [array("out", "float16", "tokens", "d", role="output"), array("input", "float16", "tokens", "2 * d")],
    [SizeRule("tokens", 1, 1 << 20), SizeRule("d", 8, 65536, 8)],
    [{"tokens": 16, "d": 4096}, {"d": 14336, "tokens": 4096}],
)
NORM = problem(
    [array("out", "float32", "rows", "d", role="output"), array("input", "float32", "rows", "d"),
     array("weight", "float32", "d")],
    [SizeRule("rows", 1, 1 << 20), SizeRule("d", 1, 16384)],
    [{"rows": 64, "d": 4096}, {"rows": 1024, "d": 2048}, {"rows": 256, "d": 8192}],
)  # fmt: skip
FLAT = problem(
    [array("out", "float32", "n", role="output"), array("input", "float32", "n")],
    [SizeRule("n", 1, 1 << 28)],
    [{"n": 1 << 24}],
)
MATMUL = problem(
    [array("c", "float32", "m", "n", role="output"), array("a", "float32", "m", "k"),
     array("b", "float32", "k", "n")],
    [SizeRule(name, 1, 8192) for name in "mnk"],
    [{"m": 1024, "n": 1024, "k": 1024}],
)  # fmt: skip
ATTENTION = problem(
    [array("o", "float16", *"bhsw", role="output"), array("q", "float16", *"bhsw"),
     array("k", "float16", *"bgsw")],
    [SizeRule("b", 1, 64), SizeRule("h", 1, 128), SizeRule("g", 1, 128), SizeRule("s", 1, 131072),
     SizeRule("w", 64, 256, 1, (64, 128, 256))],
    [{"b": 1, "h": 32, "g": 8, "s": 4096, "w": 128}],
    require=["h % g == 0"],
)  # fmt: skip
PROBLEMS = {"silu": SILU, "norm": NORM, "flat": FLAT, "matmul": MATMUL, "attention": ATTENTION}


def variant(problem: Problem, *domain: str) -> Variant:
    return replace(original_variant(problem), domain=tuple(parse_expr(text) for text in domain))


def nbytes(problem: Problem, case: Case) -> int:
    """The memory that the arrays of a case take; strides reach from the first element to the last."""
    sizes, total = dict(case.sizes), 0
    for a in problem.arguments:
        shape, strides = ([e.evaluate(sizes) for e in each] for each in (a.shape, a.strides))
        reach = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=False))
        total += a.element.nbytes(reach if strides else math.prod(shape))
    return total


def values(cases: Sequence[Case], name: str) -> list[int]:
    return [dict(case.sizes)[name] for case in cases]


def every_level(problem: Problem, variant: Variant, seed: int) -> tuple[Case, ...]:
    used = [case.sizes for case in full_cases(problem, variant, DEVICE, seed)]
    return (
        *smoke_cases(problem, variant, DEVICE, seed),
        *full_cases(problem, variant, DEVICE, seed),
        *verify_cases(problem, variant, DEVICE, seed, used),
    )


def assert_inside(problem: Problem, variant: Variant, cases: Sequence[Case]) -> None:
    for case in cases:
        sizes = dict(case.sizes)
        assert tuple(sizes) == problem.size_names
        assert problem.contract.violations(sizes) == ()
        assert variant.allows({**sizes, **LIMITS.names()})


CONDITIONS = st.one_of(
    st.integers(1, 300).map(lambda n: f"d % {n} == 0"),
    st.integers(1, 20000).map(lambda n: f"d <= {n}"),
    st.integers(1, 20000).map(lambda n: f"d >= {n}"),
    st.integers(1, 64).map(lambda n: f"rows * d % {n} == 0"),
    st.integers(1, 5).map(lambda n: f"rows < {n} * d"),
    st.sampled_from(["d == 4096", "device.sms * d >= 4096", "resources.registers < 1", "is_pow2(d)"]),
)


@examples()
@given(st.lists(CONDITIONS, max_size=3), st.integers(0, 2**60))
def test_every_case_lies_in_the_contract_and_the_domain(domain: list[str], seed: int) -> None:
    narrow = variant(NORM, *domain)
    cases = every_level(NORM, narrow, seed)
    assert_inside(NORM, narrow, cases)
    assert cases == every_level(NORM, narrow, seed)


@st.composite
def contracts(draw: st.DrawFn) -> Problem:
    rules = []
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        step = draw(st.sampled_from([1, 1, 2, 8, 48]))
        low = draw(st.integers(1, 100))
        high = draw(st.integers(low + step, low + step + 10 ** draw(st.integers(0, 6))))
        if listed := draw(st.lists(st.integers(low, high), unique=True, max_size=4)):
            rules.append(SizeRule(name, min(listed), max(listed), 1, tuple(listed)))
        else:
            rules.append(SizeRule(name, low, high, step))
    names = [rule.name for rule in rules]
    strided = replace(array("y", "float16", *names), strides=tuple(parse_expr(f"{n} + 3") for n in names))
    return problem([array("x", "float32", *names, role="output"), strided], rules, [least(rules)])


def least(rules: Sequence[SizeRule]) -> dict[str, int]:
    return {
        rule.name: rule.min if rule.one_of else -(-rule.min // rule.multiple_of) * rule.multiple_of
        for rule in rules
    }


@examples()
@given(contracts(), st.integers(0, 2**60))
def test_any_contract_gets_small_legal_smoke_cases(problem: Problem, seed: int) -> None:
    plain = original_variant(problem)
    smoke = smoke_cases(problem, plain, DEVICE, seed)
    normal = [case for case in smoke if not case.is_odd]
    assert 1 <= len(normal) <= 5
    assert len({case.sizes for case in normal}) == len(normal)
    assert [case.distribution for case in smoke if case.is_odd] in ([], ["special"])
    assert {case.sizes for case in smoke} == {case.sizes for case in normal}
    assert dict(smoke[0].sizes) == least(problem.contract.sizes)
    small = [case for case in normal if nbytes(problem, case) <= SMOKE_BYTES]
    assert len(small) in (0, 1, 2, len(normal))  # others only where hardly anything is small
    assert_inside(problem, plain, every_level(problem, plain, seed))


@pytest.mark.parametrize("name", PROBLEMS)
def test_smoke_cases_are_few_small_and_normal_but_for_one_of_special_numbers(name: str) -> None:
    cases = smoke_cases(PROBLEMS[name], original_variant(PROBLEMS[name]), DEVICE, 1)
    assert 3 <= sum(case.distribution == "normal" for case in cases) <= 5
    assert [case.distribution for case in cases if case.distribution != "normal"] == ["special"]
    for case in cases:
        assert nbytes(PROBLEMS[name], case) <= SMOKE_BYTES
        assert case.level == "smoke"


@pytest.mark.parametrize(
    ("problem", "rows", "d", "domain"),
    [
        (NORM, "rows", "d", ()),
        (NORM, "rows", "d", ("d % 4 == 0",)),
        (NORM, "rows", "d", ("d % 256 == 0",)),
        (SILU, "tokens", "d", ()),
        (SILU, "tokens", "d", ("d % 48 == 0",)),
        (SILU, "tokens", "d", ("d % 16 == 0",)),
    ],
)
def test_smoke_cases_show_what_kernels_usually_get_wrong(
    problem: Problem, rows: str, d: str, domain: tuple[str, ...]
) -> None:
    cases = smoke_cases(problem, variant(problem, *domain), DEVICE, 1)
    points = [(dict(case.sizes)[rows], dict(case.sizes)[d]) for case in cases]
    least = min(b for _, b in points)
    tail = 2 * math.gcd(*(b for _, b in points))
    assert any(a == 1 for a, _ in points)  # a single row
    assert any(b == least for _, b in points)  # as little as there can be
    assert any(a >= 33 and b >= 1025 and b % tail for a, b in points)  # rows and blocks, with a tail
    assert any(a >= 1000 and a % 2 for a, _ in points)  # many rows
    assert any(b > 8192 for _, b in points)  # more than a block can hold


def test_a_flat_kernel_is_smoke_tested_over_several_large_blocks() -> None:
    lengths = values(smoke_cases(FLAT, original_variant(FLAT), DEVICE, 1), "n")
    assert max(n for n in lengths if n % 2) > 2 * 1024 * 8 * 4
    assert any(1 < n < 64 and n % 2 for n in lengths)
    assert any(256 < n < 2048 and n % 2 for n in lengths)


def test_related_sizes_are_smoke_tested_where_they_differ() -> None:
    cases = smoke_cases(ATTENTION, original_variant(ATTENTION), DEVICE, 1)
    assert any(dict(case.sizes)["h"] > dict(case.sizes)["g"] > 1 for case in cases)


@pytest.mark.parametrize("name", PROBLEMS)
def test_full_cases_hold_the_ends_the_workloads_and_all_distributions(name: str) -> None:
    problem = PROBLEMS[name]
    cases = full_cases(problem, original_variant(problem), DEVICE, 1)
    assert len(cases) <= 35 + len(ODD) + 6
    sizes = [dict(case.sizes) for case in cases]
    smallest = {rule.name: rule.min for rule in problem.contract.sizes}
    assert smallest in sizes
    for workload in problem.workloads:
        assert {c.distribution for c in cases if dict(c.sizes) == workload.as_dict()} >= {"normal", "wide"}
    assert {case.distribution for case in cases} == {*DISTRIBUTIONS, *ODD} - {"halves"}
    for case in smoke_cases(problem, original_variant(problem), DEVICE, 1):
        assert replace(case, level="full") in cases  # the same arrays: their reference is known already
    budget = max(FULL_BYTES, *(nbytes(problem, Case(w.sizes, "", 0, "full")) for w in problem.workloads))
    assert max(nbytes(problem, case) for case in cases) <= budget
    for rule in problem.contract.sizes:
        alone = {**smallest, rule.name: rule.max}
        fits = nbytes(problem, Case(tuple(alone.items()), "", 0, "full")) <= FULL_BYTES
        if fits and not problem.contract.violations(alone):
            assert alone in sizes


def test_full_cases_reach_the_neighbours_of_powers_of_two() -> None:
    lengths = set(values(full_cases(NORM, original_variant(NORM), DEVICE, 1), "d"))
    assert {1, 5, 7, 33, 129, 257, 1023, 1024, 1025, 2048, 4096, 8192, 16384} <= lengths


def test_arrays_the_user_describes_do_not_multiply_the_cases() -> None:
    described = replace(NORM, arguments=tuple(replace(a, values="uniform") for a in NORM.arguments))
    cases = full_cases(described, original_variant(described), DEVICE, 1)
    assert {case.distribution for case in cases} == {"normal"}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.few(2)
def test_verification_uses_sizes_and_seeds_never_used_before(name: str) -> None:
    problem = PROBLEMS[name]
    before = full_cases(problem, original_variant(problem), DEVICE, 1)
    cases = verify_cases(problem, original_variant(problem), DEVICE, 1, {case.sizes for case in before})
    workloads = [workload.as_dict() for workload in problem.workloads]
    fresh = [case for case in cases if dict(case.sizes) not in workloads][:8]
    assert len({case.sizes for case in fresh}) >= 6
    assert not {case.sizes for case in fresh} & {case.sizes for case in before}
    assert not {case.seed for case in cases} & {case.seed for case in before}
    assert {case.distribution for case in fresh} == set(DISTRIBUTIONS)
    assert {case.distribution for case in cases} == {*DISTRIBUTIONS, *ODD} - {"halves"}
    for workload in workloads:
        assert workload in [dict(case.sizes) for case in cases]
    again = verify_cases(problem, original_variant(problem), DEVICE, 2, {case.sizes for case in before})
    assert {case.sizes for case in again} != {case.sizes for case in cases}


@pytest.mark.parametrize("name", ["silu", "norm", "flat"])
def test_verification_reaches_every_end_of_the_contract_and_goes_beyond_the_workloads(name: str) -> None:
    problem = PROBLEMS[name]
    cases = verify_cases(problem, original_variant(problem), replace(DEVICE, kind="cpu"), 3, ())
    far = dict(case_reach(problem, cases))
    for rule in problem.contract.sizes:
        alone = {**least(problem.contract.sizes), rule.name: rule.max}
        affordable = nbytes(problem, Case(tuple(alone.items()), "", 0, "full"))
        assert far[rule.name] == rule.max or affordable > LARGE_BYTES / 4
    largest = max(nbytes(problem, case) for case in cases)
    usual = max(nbytes(problem, Case(w.sizes, "", 0, "full")) for w in problem.workloads)
    assert largest > LARGE_BYTES / 2 or largest >= usual > LARGE_BYTES
    assert largest <= max(LARGE_BYTES, usual)


def test_on_a_gpu_one_array_is_beyond_what_32_bits_count() -> None:
    large = replace(DEVICE, inspects=True, limits=replace(LIMITS, memory=140 << 30, max_allocation=140 << 30))
    cases = verify_cases(NORM, original_variant(NORM), large, 3, ())
    assert max(dict(c.sizes)["rows"] * dict(c.sizes)["d"] for c in cases) > 1 << 31
    small = replace(large, limits=replace(LIMITS, memory=8 << 30, max_allocation=8 << 30))
    assert max(nbytes(NORM, c) for c in verify_cases(NORM, original_variant(NORM), small, 3, ())) < 2 << 30


def test_how_far_cases_go_is_told_by_size_and_by_array() -> None:
    cases = [Case((("rows", r), ("d", d)), "normal", 1, "verify") for r, d in ((7, 100), (50, 3))]
    far = dict(case_reach(NORM, cases))
    assert (far["rows"], far["d"]) == (50, 100)
    assert 700 in far.values()
    assert case_reach(NORM, []) == ()


@given(st.sets(st.sampled_from(range(1, 21))))
def test_verification_prefers_unused_sizes_and_else_takes_fresh_seeds(used: set[int]) -> None:
    tiny = problem([array("x", "float32", "n", role="inout")], [SizeRule("n", 1, 20)], [{"n": 7}])
    before = [(("n", n),) for n in used]
    cases = verify_cases(tiny, original_variant(tiny), DEVICE, 1, before)
    fresh = values(cases, "n")[:8]
    assert len(set(fresh)) == 8
    assert len(set(fresh) - used) == min(8, 20 - len(used))


def test_one_legal_size_is_enough() -> None:
    fixed = problem([array("x", "float32", "n", role="inout")], [SizeRule("n", 5, 5)], [{"n": 5}])
    for cases in (
        smoke_cases(fixed, original_variant(fixed), DEVICE, 1),
        full_cases(fixed, original_variant(fixed), DEVICE, 1),
        verify_cases(fixed, original_variant(fixed), DEVICE, 1, [(("n", 5),)]),
    ):
        assert set(values(cases, "n")) == {5}


@pytest.mark.parametrize("domain", [("d == 4096",), ("d % 48 == 0",), ("d > 5000", "d % 1000 == 0")])
def test_a_narrow_domain_is_found_and_covered(domain: tuple[str, ...]) -> None:
    narrow = variant(NORM, *domain)
    assert len(smoke_cases(NORM, narrow, DEVICE, 1)) >= 3
    cases = every_level(NORM, narrow, 1)
    assert len(set(values(cases, "rows"))) > 10
    assert_inside(NORM, narrow, cases)


def test_a_domain_only_the_workloads_hit_falls_back_to_them() -> None:
    related = replace(NORM, workloads=(Workload("odd", (("rows", 12345), ("d", 777))),))
    narrow = variant(related, "rows * 1000 + d == 12345777")
    assert {c.sizes for c in every_level(related, narrow, 1)} == {(("rows", 12345), ("d", 777))}


@pytest.mark.parametrize("domain", ["d == 0", "device.sms > 1000", "rows * d < 0"])
def test_an_empty_domain_gives_no_cases(domain: str) -> None:
    assert every_level(NORM, variant(NORM, domain), 1) == ()


def test_what_only_a_build_can_tell_is_ignored() -> None:
    later = variant(NORM, "resources.registers * d < 0")
    assert smoke_cases(NORM, later, DEVICE, 1) == smoke_cases(NORM, original_variant(NORM), DEVICE, 1)


def test_variants_with_the_same_sizes_share_seeds() -> None:
    cases = {(c.sizes, c.distribution): c for c in smoke_cases(NORM, original_variant(NORM), DEVICE, 1)}
    others = smoke_cases(NORM, variant(NORM, "d <= 16384"), DEVICE, 1)
    assert all(cases[case.sizes, case.distribution] == case for case in others)
    assert len({case.seed for case in others}) == len(others)


def test_where_everything_is_large_the_smallest_are_taken() -> None:
    large = problem(
        [array("x", "float32", "n", role="inout")], [SizeRule("n", 1 << 26, 1 << 28)], [{"n": 1 << 27}]
    )
    assert 1 << 26 in values(smoke_cases(large, original_variant(large), DEVICE, 1), "n")


def test_a_size_of_zero_is_tested_only_where_something_is_launched() -> None:
    sizes = [SizeRule("n", 0, 4096)]
    x = array("x", "float32", "n", role="inout")
    empty = problem([x], sizes, [{"n": 64}], grid="ceildiv(n, 64)")
    assert min(values(every_level(empty, original_variant(empty), 1), "n")) == 1
    full = problem([x], sizes, [{"n": 64}], grid="16")
    assert min(values(smoke_cases(full, original_variant(full), DEVICE, 1), "n")) == 0


def test_the_gaps_between_strides_count_as_bytes() -> None:
    strided = replace(array("x", "float32", "n", role="inout"), strides=(parse_expr("1000"),))
    sparse = problem([strided], [SizeRule("n", 1, 1 << 20)], [{"n": 64}])
    lengths = values(smoke_cases(sparse, original_variant(sparse), DEVICE, 1), "n")
    assert 500 < max(lengths) <= SMOKE_BYTES // 4000 + 1


def test_sizes_at_which_an_array_has_no_shape_are_left_out() -> None:
    odd = problem([array("x", "float32", "8 // (n - 1)", role="inout")], [SizeRule("n", 1, 64)], [{"n": 2}])
    assert 1 not in values(smoke_cases(odd, original_variant(odd), DEVICE, 1), "n")


def test_cases_are_chosen_fast_enough_for_every_candidate() -> None:
    smoke_cases(MATMUL, original_variant(MATMUL), DEVICE, 1)
    started = time.process_time()
    for _ in range(20):
        smoke_cases(MATMUL, original_variant(MATMUL), DEVICE, 1)
    assert time.process_time() - started < 0.2  # found once
    started = time.process_time()
    for step in range(2, 12):
        smoke_cases(NORM, variant(NORM, f"d % {step} == 0"), DEVICE, 1)
    assert time.process_time() - started < 1.0


def test_few_independent_items_excuse_from_comparing_errors_only_where_a_twin_is_not() -> None:
    rows = replace(NORM, accuracy=replace(NORM.accuracy, independent="rows"))
    cases = full_cases(rows, original_variant(rows), DEVICE, 0)
    excused = [c for c in cases if not c.compares_errors and c.distribution not in CONSTANT + ODD]
    assert excused
    many = [c for c in cases if c.compares_errors and dict(c.sizes)["rows"] >= 16]
    compared = {(dict(c.sizes)["d"], c.distribution) for c in many}
    for case in excused:
        assert dict(case.sizes)["rows"] < 16
        assert (dict(case.sizes)["d"], case.distribution) in compared
    narrow = full_cases(rows, variant(rows, "rows <= 8"), DEVICE, 0)  # no twin is legal
    varied = [c for c in narrow if c.distribution not in CONSTANT + ODD]
    assert varied
    assert all(c.compares_errors for c in varied)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("if (d >= 528) return;", 528),
        ("if (528 < d) return;", 528),
        ("#define LIMIT (4 * 131)\nif (d > LIMIT) return;", 524),
        ("int far = d < 4 * 1024 + 3 ? 1 : 2;", 4099),
        ("if (d * 3 > 1584) return;", 528),
        ("if ((d >> 4) == 33) return;", 528),
        ("if (d - 500 > 28) return;", 528),
        ("if (d % 777 == 5) return;", 782),
        ("if (d % 97 == 0 && d > 200) return;", 291),
        ("if (d > 200) if (5 == d % 97) return;", 296),
        ("for (int i = 0; i < (int)1000; i++) ;", 1000),
        ("if (d * d > 278784) return;", 528),
        ("if ((int)sqrt((float)d) > 23) return;", 529),
        ("const int limit = 528; if (d >= limit) return;", 528),
        ("if (rows * d > 3 * (1 << 20)) return;", 3 << 20),
    ],
)
def test_a_constant_of_the_text_is_found(text: str, value: int) -> None:
    assert value in collect_constants(replace(original_variant(NORM), source=text, language="opencl")).values


def test_constants_of_conditions_are_found_and_those_in_comparisons_come_first() -> None:
    assert 777 in collect_constants(variant(NORM, "d < 777 or d % 8 == 0")).values
    found = collect_constants(replace(original_variant(NORM), source="float x[731]; if (d < 529) x[0] = 1;"))
    assert found.values.index(529) < found.values.index(731)
    assert found.telling == 1


@pytest.mark.parametrize("decoys", [0, 14, 40])
@pytest.mark.few(1)
def test_one_constant_among_many_is_tried_all_the_same(decoys: int) -> None:
    """However many there are to draw the cases away from it."""
    others = "".join(f"if (d == {33 + 2 * n}) sum += 0.0f;\n" for n in range(decoys))
    wrong = "if (d >= 437 && d <= 445) sum = 0.0f;" + " sum = d == 437 ? sum : sum;" * 3
    cheat = replace(original_variant(NORM), source=others + wrong)
    for seed in range(4):
        sizes = [dict(case.sizes)["d"] for case in verify_cases(NORM, cheat, DEVICE, seed, ())]
        assert any(437 <= d <= 445 for d in sizes), seed


def test_sums_products_and_shifts_come_to_one_number_as_c_would_have_it() -> None:
    assert fold_constants(["(", 4, "*", 1024, ")"]) == [4096]
    assert fold_constants(["x", "*", 4, "+", 1]) == ["x", "*", 4, "+", 1]
    assert fold_constants([1, "+", 2, "*", 3]) == [7]
    assert fold_constants(["f", "(", 7, ")"]) == ["f", "(", 7, ")"]
    assert fold_constants([1, "/", 0]) == [1, "/", 0]


def test_sizes_lie_at_below_and_above_a_constant() -> None:
    domain = domain_of(NORM, original_variant(NORM), DEVICE)
    points = threshold_sizes(domain, [529], np.random.default_rng(0), 1 << 24, 16)
    for name in ("rows", "d"):
        assert {528, 529, 530} <= {dict(sizes)[name] for sizes in points}
    assert len(points) <= 16


def test_arrays_come_to_have_about_so_many_elements() -> None:
    domain = domain_of(NORM, original_variant(NORM), DEVICE)
    points = threshold_sizes(domain, [3_000_001], np.random.default_rng(0), 1 << 27, 16)
    lengths = [dict(sizes)["rows"] * dict(sizes)["d"] for sizes in points]
    assert any(2_900_000 < n < 3_000_001 for n in lengths)
    assert any(3_000_001 <= n < 3_100_000 for n in lengths)


def test_full_checks_and_verification_go_there() -> None:
    chosen = replace(original_variant(NORM), source="if (d >= 529) return;", language="opencl")
    for cases in (full_cases(NORM, chosen, DEVICE, 1), verify_cases(NORM, chosen, DEVICE, 5, ())):
        assert {528, 529, 530} <= {dict(case.sizes)["d"] for case in cases}


@pytest.mark.parametrize("seed", range(5))
def test_each_size_meets_the_most_telling_constant_where_the_others_are_not_small(seed: int) -> None:
    domain = domain_of(NORM, original_variant(NORM), DEVICE)
    points = broad_sizes(domain, [529, 777, 16], np.random.default_rng(seed), 1 << 24)
    for name in NORM.size_names:
        at = [sizes for sizes in map(dict, points) if sizes[name] == 529]
        assert any(value > 64 for sizes in at for other, value in sizes.items() if other != name)
    assert broad_sizes(domain, [3, 16], np.random.default_rng(seed), 1 << 24) == ()


PROBLEM = a_problem()


def case(rows: int, d: int) -> ExtraCase:
    return ExtraCase((("rows", rows), ("d", d)), "uniform", "a test")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (case(0, 8), "rows = 0, the contract allows 1 to 4096"),
        (case(1, 12), "d = 12, the contract allows 8 to 4096 in steps of 8"),
        (ExtraCase((("rows", 1),), "normal"), "it must give every size, rows, d, and no other"),
        (ExtraCase((("rows", 1), ("d", 8), ("e", 1)), "normal"), "and no other"),
    ],
)
def test_what_is_no_case(wanted: ExtraCase, words: str) -> None:
    assert words in (case_misfit(PROBLEM, wanted) or "")


def test_what_is_one() -> None:
    assert case_misfit(PROBLEM, case(1, 24)) is None


def test_a_variant_is_tested_where_it_may_run() -> None:
    wanted = [case(3, 24), case(3, 64)]
    found = extra_cases(PROBLEM, original_variant(PROBLEM), DEVICE, 0, wanted)
    assert [(c.sizes, c.distribution, c.level) for c in found] == [
        (one.sizes, "uniform", "full") for one in wanted
    ]
    narrow = a_template(PROBLEM).render(PROBLEM, Config.of({"BLOCK": 64, "VEC": 4}))
    assert [c.sizes for c in extra_cases(PROBLEM, narrow, DEVICE, 0, wanted)] == [wanted[1].sizes]
    assert extra_cases(PROBLEM, narrow, DEVICE, 0, []) == ()


def test_verification_draws_other_values() -> None:
    (known,) = extra_cases(PROBLEM, original_variant(PROBLEM), DEVICE, 0, [case(30, 24)])
    (fresh,) = extra_cases(PROBLEM, original_variant(PROBLEM), DEVICE, 0, [case(30, 24)], "verify")
    assert (fresh.sizes, fresh.level) == (known.sizes, "verify")
    assert fresh.seed != known.seed
