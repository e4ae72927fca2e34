"""Which accesses are packed, and what must divide for it."""

from __future__ import annotations

import pytest

from tests.expert.writing.models import each, rmsnorm
from tunesmith.csource.nodes import Type
from tunesmith.csource.printing import print_expr
from tunesmith.expert.writing.packs import Pack, pack_accesses
from tunesmith.expert.writing.sizes import Sizes

ARRAYS = {name: Type("__half", 1) for name in ("a", "b", "out")}


def packed(body: str, most: int = 8, stop: str = "d") -> tuple[Pack, ...]:
    kernel, problem = rmsnorm()
    return pack_accesses(each(stop, body), ARRAYS, (), Sizes.of(kernel, problem), most, True)


def described(body: str, most: int = 8) -> list[str]:
    return [
        f"{p.array} x{p.width} {'load' if p.loads else ''}{'store' if p.stores else ''}"
        f" needs {sorted(print_expr(n) for n in p.needs)}"
        for p in packed(body, most)
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("out[i] = a[i];", ["a x1 load needs []", "out x1 store needs []"]),
        ("out[token * d + i] = a[i];", ["a x1 load needs []", "out x1 store needs ['d']"]),
        (
            "out[token * d + i] += a[token * 2 * d + d + i];",
            ["a x1 load needs ['2 * d', 'd']", "out x1 loadstore needs ['d']"],
        ),
        (
            "const int at = token * d + i; out[at] = a[at];",
            ["a x1 load needs ['d']", "out x1 store needs ['d']"],
        ),
        # Neighbours share an element.
        ("out[i] = a[i / 64];", ["a x0 load needs []", "out x1 store needs []"]),
        ("out[i] = a[i / d];", ["a x0 load needs ['d']", "out x1 store needs []"]),
        # Pairs, and inner loops, are one pack if they cover it.
        (
            "out[2 * i] = a[i]; out[2 * i + 1] = b[i];",
            ["a x1 load needs []", "b x1 load needs []", "out x2 store needs []"],
        ),
        (
            "for (int j = 0; j < 4; j++) out[4 * i + j] = a[i];",
            ["a x1 load needs []", "out x4 store needs []"],
        ),
        ("out[2 * i] = a[i];", ["a x1 load needs []"]),
        # Not every turn comes here, or not at a place that a pack could be.
        ("if (i > 3) out[i] = a[i];", []),
        ("out[i] = i > 3 ? a[i] : b[i];", ["out x1 store needs []"]),
        ("out[i] = a[i + 1];", ["out x1 store needs []"]),
        ("out[i] = a[(long long)b[i]];", ["b x1 load needs []", "out x1 store needs []"]),
        ("out[i] = f(&a[i]);", ["out x1 store needs []"]),
        # Both branches store, and nothing of it is read before.
        ("if (b[0] > 0) out[i] = b[1]; else { if (b[2] > 0) { out[i] = a[i]; } else out[i] = b[3]; }",
         ["out x1 store needs []"]),
        ("if (b[0] > 0) out[i] = b[1]; else { out[i] = out[i] + b[3]; }", ["out x1 loadstore needs []"]),
        ("if (b[0] > 0) out[i] = b[1]; else { if (b[2] > 0) out[i] = b[3]; }", []),
        ("if (b[0] > 0) out[i] = b[1]; else out[i + 8] = b[3];", []),
        ("if (b[0] > 0) out[i] = b[1]; else { if (b[2] > 0) continue; out[i] = b[3]; }", []),
        ("if (a[i] == b[i]) continue; out[i] = a[i];", ["a x1 load needs []", "b x1 load needs []"]),
    ],
)  # fmt: skip
def test_packs(body: str, expected: list[str]) -> None:
    assert sorted(described(body)) == expected


def test_what_is_written_is_not_read_first() -> None:
    assert described("out[i] = a[i]; out[i] = out[i] * b[i];") == [
        "a x1 load needs []", "out x1 store needs []", "b x1 load needs []",
    ]  # fmt: skip


def test_an_array_with_stores_in_two_places_is_read_in_order() -> None:
    assert [p.array for p in packed("out[i] = a[i]; out[i + 16] = out[i + 8];")] == ["a"]


def test_a_conditional_store_beside_a_sure_one_lands_in_the_pack() -> None:
    (first, second) = packed("out[i] = a[i]; if (a[i] == b[0]) out[i] = b[1];")
    assert {first.array, second.array} == {"a", "out"}
    assert len({node for node, _ in second.sites}) == 1


def test_a_place_that_the_turn_itself_computes_is_no_pack() -> None:
    body = "float at = a[i]; if (i > 3) at = 2.0f; out[i] = b[token * (int)at];"
    assert described(body) == ["a x1 load needs []", "out x1 store needs []"]
    body = "int at = token; if (i > 3) at = 2; out[i] = b[at * d + i];"
    assert described(body) == ["out x1 store needs []"]
