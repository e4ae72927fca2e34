"""Pointers to a thread's own arrays are the arrays, or keep their thread's work to it."""

from __future__ import annotations

import pytest

from tests.csource.reading import statements_of
from tests.expert.model.kernels import refusal, row_problem
from tests.wording import says
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.lift import lift
from tunesmith.expert.model.local_pointers import with_arrays_for_pointers
from tunesmith.expert.model.words import explain_lines


@pytest.mark.parametrize(
    ("pointer", "use", "followed"),
    [
        ("float *p = b;", "p[k] = 1;", "b[k] = 1;"),
        ("float *p = b + n;", "p[k] = 1;", "b[n + k] = 1;"),
        ("const float *p = &b[2];", "x = *p;", "x = b[2];"),
        ("float *q = b + 1; float *p = q + 1;", "p[k] = 1;", "b[1 + 1 + k] = 1;"),
        ("float *p = (float *)b;", "f(p);", "f(b);"),
    ],
)
def test_a_pointer_that_stays_is_its_array(pointer: str, use: str, followed: str) -> None:
    done = with_arrays_for_pointers(statements_of(f"float b[8]; {pointer} {use}"))
    assert print_statements(done[1:]).strip() == followed


@pytest.mark.parametrize(
    "text",
    [
        "float b[8]; float *p = b; p++; p[k] = 1;",
        "float b[8]; float *p = b + n; n = 0; p[k] = 1;",
        "float b[8]; int *p = (int *)b; p[k] = 1;",
        "float b[8]; float *p = b; float **q = &p; p[k] = 1;",
        "float b[2][4]; float *p = b[1]; p[k] = 1;",
        "__shared__ float b[8]; float *p = b; p[k] = 1;",
    ],
)
def test_any_other_stays_a_pointer(text: str) -> None:
    assert with_arrays_for_pointers(statements_of(text)) == statements_of(text)


def test_an_array_that_turns_hand_on_is_not_shared_out() -> None:
    body = """
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float b[4] = {0, 0, 0, 0};
    float *p = b;
    for (int i = 0; i < d; i++) p[i & 3] += x[row * d + i];
    out[row * d] = p[0] + p[3];
    """
    lines = explain_lines(lift(row_problem(body, grid=("ceildiv(rows, 256)",))))
    says(lines, "cannot be shared out", "the array 'b' is filled before the loop")


def test_a_pointer_that_is_not_followed_is_refused() -> None:
    body = """
    float b[4] = {0, 0, 0, 0};
    int *p = (int *)b;
    for (int i = threadIdx.x; i < d; i += 256) p[i & 3] += (int)x[i];
    out[blockIdx.x * d + threadIdx.x] = p[0];
    """
    assert "the pointer 'p' to the array 'b' of a thread is not followed" in refusal(row_problem(body))
