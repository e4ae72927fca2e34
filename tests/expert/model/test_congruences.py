"""Tests of alignment and remainders: what the contract decides, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.model.kernels import lifted, row_problem
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.congruences import with_promised
from tunesmith.problem.problem import Problem

_AT = "uintptr_t at = (uintptr_t)(x + blockIdx.x * d); "


def problem_with(multiple: int = 8) -> Problem:
    found = row_problem(
        "", d=f"{{ min = {multiple}, max = 65536, multiple_of = {multiple} }}", many=(512, 96)
    )
    arguments = tuple(replace(a, align=16) if a.is_array else a for a in found.arguments)
    return replace(found, arguments=arguments)


def decided(body: str, multiple: int = 8) -> str:
    source = read_source_tree(
        f"__global__ void k(const float *x, float *out, int rows, int d) {{ {body} }}", "cuda"
    )
    (function,) = source.functions
    done, facts = with_promised(function, source, problem_with(multiple))
    assert (done == function) == (not facts)
    text = " ".join(print_statements(done.body).split())
    return "fast" if "out[0]" in text and "out[1]" not in text else "slow" if "out[0]" not in text else "both"


@pytest.mark.parametrize(
    ("way", "body"),
    [
        ("fast", "if (d % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("fast", "if ((d & 3) == 0 && (uintptr_t)x % 16 == 0) out[0] = 1; else out[1] = 1;"),
        ("slow", "if (d % 4 != 0) out[0] = 1; else out[1] = 1;"),
        ("fast", _AT + "if ((at & 15) == 0) out[0] = 1; else out[1] = 1;"),
        ("fast", _AT + "bool wide = at % 16 == 0 && d / 2 % 4 == 0; if (wide) out[0] = 1; else out[1] = 1;"),
        ("fast", "auto *p = x; p += 4 * rows; if ((uintptr_t)p % 16 == 0) out[0] = 1; else out[1] = 1;"),
        ("slow", "const float *p = x + 1 + 2 * d; if (((uintptr_t)p & 7) == 0) out[0] = 1; else out[1] = 1;"),
        ("fast", "int n = d; n -= 8; n = d - 16; if (n % 8 == 0) out[0] = 1; else out[1] = 1;"),
        # More than is promised, or not of what was promised any more.
        ("both", "if (d % 16 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "if (rows % 2 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", _AT + "if ((at & 31) == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "if ((uintptr_t)(x + rows) % 16 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "d += rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "if (rows > 3) d = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "for (int i = 0; i < 9; i++) { if (d % 8 == 0) out[0] = 1; else out[1] = 1; d++; }"),
        ("both", "int &n = d; n = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "int *n = &d; *n = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "change(d); if (d % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "{ int d = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1; }"),
        ("both", "bool n = d; if ((int)n % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "float n = d; if ((int)n % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("both", "if ((int)(unsigned char)(d / 3) % 8 == 0) out[0] = 1; else out[1] = 1;"),
        ("fast", "if ((uintptr_t)x % 16 == 0 || d++ > 3) out[0] = 1; else out[1] = 1;"),
        ("both", "if (d++ > 3 || (uintptr_t)x % 16 == 0) out[0] = 1; else out[1] = 1;"),
        # A remainder of a negative number may have another sign than that of its residue.
        ("both", "int n = d - 65537; if (n % 4 == 3) out[0] = 1; else out[1] = 1;"),
    ],
)  # fmt: skip
def test_what_the_contract_decides(way: str, body: str) -> None:
    assert decided(body) == way


def test_what_is_no_power_of_two_is_not_counted() -> None:
    assert decided("if (d % 96 == 0) out[0] = 1; else out[1] = 1;", 96) == "both"
    assert decided("if (d % 32 == 0) out[0] = 1; else out[1] = 1;", 96) == "fast"


def test_a_reading_says_what_it_rests_on() -> None:
    body = "const int i = blockIdx.x * d + threadIdx.x;\nif (d % 4 == 0) out[i] = x[i]; else out[i] = 0;"
    kernel = lifted(row_problem(body, d="{ min = 4, max = 256, multiple_of = 4 }", block=("d",)))
    (fact,) = (fact for fact in kernel.facts if "multiple_of" in fact.where)
    assert (fact.what, fact.ground) == ("'d % 4 == 0' holds", "the contract's word")
