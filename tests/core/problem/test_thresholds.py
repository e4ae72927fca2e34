"""Constants that a size may be compared with: found in conditions, launches and text, and tested around."""

from dataclasses import replace

import numpy as np
import pytest

from tests.core.problem.test_cases import DEVICE, NORM, variant
from tunesmith.problem.cases import (
    broad_sizes,
    collect_constants,
    fold_constants,
    full_cases,
    threshold_sizes,
    verify_cases,
)
from tunesmith.problem.domain import domain_of
from tunesmith.problem.template import original_variant


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
