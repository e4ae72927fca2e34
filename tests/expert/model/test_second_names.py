"""References, sizes that change, and numbers that a loop moves: what is read must be what C++ does."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem
from tunesmith.csource.printing import print_expr, print_statements
from tunesmith.expert.model.kernel import Each, KernelModel
from tunesmith.expert.model.lift import lift

FLAT = "const int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < rows) {{ {} }}"
GRID = ("ceildiv(rows, 256)",)
REFUSED = {
    "a reference to an element whose place changes": "int a = i; float &r = out[a]; a += 1; r = x[a];",
    "a reference to an element that memory tells": "float &r = out[(int)x[i]]; r = 1;",
    "a place by an array that is stored to": "int a[2] = {0, 1}; float v[2] = {1, 2}; float &r = v[a[0]];"
    " a[0] = 1; r = x[i]; out[i] = v[0];",
    "a place by an array with two names": "int a[2] = {0, 1}; int *p = a; float v[2] = {1, 2};"
    " float &r = v[a[0]]; p[0] = 1; r = x[i]; out[i] = v[0];",
    "a constant reference by such an array": "int a[2] = {0, 1}; float v[2] = {1, 2};"
    " const float &r = v[a[0]]; a[0] = 1; v[0] = x[i]; out[i] = r;",
    "a place by a field that is set": "int2 a; a.x = 0; float v[2] = {1, 2}; float &r = v[a.x];"
    " a.x = 1; r = x[i]; out[i] = v[0];",
    "a reference to a pointer": "const float *p = x + i; const float *&r = p; r += 1; out[i] = *p;",
    "a constant reference to another type": "int s = (int)x[i]; const float &r = s; s = 1; out[i] = r;",
    "a store as another type": "reinterpret_cast<int &>(out[i]) = 3;",
    "a store to one of two": "(d > 3 ? out[i] : out[i + rows]) = x[i];",
    "a parameter that every element changes": "d = d * 2; out[i] = x[i] * d;",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_second_name_is_not_followed(name: str) -> None:
    refusal(row_problem(FLAT.format(REFUSED[name]), grid=GRID))


def test_a_constant_reference_to_what_stays_is_a_value() -> None:
    kernel = lifted(row_problem(FLAT.format("const float &r = x[i]; out[i] = r * 2;"), grid=GRID))
    assert {(a.array, a.kind) for a in kernel.accesses} == {("x", "load"), ("out", "store")}


@pytest.mark.parametrize(
    "text",
    [
        "float &r = out[i]; r = x[i] * 2;",
        "auto &r = out[i]; if (x[i] > 0) { r = x[i] * 2; } else { float &r = out[i]; r = x[i] * 2; }",
    ],
)
def test_a_second_name_of_an_element_is_the_element(text: str) -> None:
    assert "out[i] = x[i] * 2;" in body_of(text)
    assert "r = " not in body_of(text)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("const float &r = out[i]; out[i] = 1; out[i + 1] = r;", "out[i] = 1; out[i + 1] = out[i];"),
        ("int a = i; int &r = a; r = 0; out[i] = x[a];", "int a = i; a = 0; out[i] = x[a];"),
        (
            "int at = i; int &r = at; float s = 0; for (int k = 0; k < 4; k++) { s += x[at]; r += d; } "
            "out[i] = s;",
            "int at = i; float s = 0; for (int k = 0; k < 4; k++) { s += x[at]; at += d; } out[i] = s;",
        ),
        ("float s = x[i]; const float &r = s; s = 1; out[i] = r;", "float s = x[i]; s = 1; out[i] = s;"),
    ],
)
def test_a_second_name_of_a_variable_is_the_variable(text: str, same: str) -> None:
    assert body_of(text) == body_of(same)


def test_a_grid_is_not_written_in_terms_of_a_size_that_has_changed() -> None:
    head = "int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x"
    refusal(row_problem(f"rows *= d;\nfor ({head}) out[i] = x[i];", grid=GRID))


def body_of(text: str) -> str:
    kernel = lifted(row_problem(FLAT.format(text), grid=GRID))
    (each,) = (step for step in kernel.steps if isinstance(step, Each))
    return " ".join(print_statements(each.body).split())


def test_a_number_is_added_up_in_its_own_type() -> None:
    signed = (
        "int at = i - 3; float s = 0; for (unsigned k = 0; k < 7u; ++k, ++at) s += x[max(at, 0)]; out[i] = s;"
    )
    assert "(int)k" in body_of(signed)
    wide = "long long at = i; float s = 0; for (int k = 0; k < 4; k++) { s += x[at]; at += d; } out[i] = s;"
    assert "(long long)k * (long long)d" in body_of(wide)


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("unsigned char at = i; float s = 0; for (int k = 0; k < 4; k++) { s += x[at]; ++at; }", "at"),
        (
            "int at = i; float s = 0;"
            " for (int k = 0; k < 4; k++) { int q = (int)x[k]; s += x[at]; at += q; }",
            "at",
        ),
        (
            "int y = i - 5; unsigned b = rows; float s = 0;"
            " for (int k = 0; k < 4; k++) if (y < b) { s += x[y]; y += 2; }",
            "y",
        ),
    ],
)
def test_what_is_no_sum_over_the_turns_stays_as_it_is(text: str, stays: str) -> None:
    found = lift(row_problem(FLAT.format(f"{text} out[i] = s;"), grid=GRID))
    if isinstance(found, KernelModel):
        loads = {print_expr(a.index) for a in found.accesses if a.array == "x"}
        assert stays in loads
        assert not any("k" in index and stays in index for index in loads)


@pytest.mark.parametrize(
    ("row", "grid"),
    [
        ("(unsigned char)blockIdx.x", "rows"),
        ("blockIdx.x & 255", "rows"),
        ("blockIdx.x % 1000", "rows"),
        ("blockIdx.x / 4", "4 * rows"),
        ("blockIdx.x >> 2", "4 * rows"),
    ],
)
def test_what_holds_of_the_first_blocks_must_hold_of_all(row: str, grid: str) -> None:
    body = (
        f"const int row = {row};\nfor (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = x[i];"
    )
    kernel = lifted(row_problem(body, grid=(grid,)))
    assert [task.name for task in kernel.tasks] == ["block"]  # not row: that does not count all of them
    (store,) = (a for a in kernel.accesses if a.kind == "store")
    assert "block" in print_expr(store.index)


@pytest.mark.parametrize("other", ["row % 5", "(signed char)row", "row & 3"])
def test_what_holds_of_the_first_rows_must_hold_of_all(other: str) -> None:
    """Each thread has a row; at the sizes that are played through one block has all of them."""
    body = (
        "const int row = blockIdx.x * blockDim.x + threadIdx.x;\nif (row >= rows) return;\nfloat s = 0;\n"
        f"for (int i = 0; i < d; i++) {{ const int v = {other}; s += v * x[row * d + i]; }}\n"
        "for (int i = 0; i < d; i++) out[row * d + i] = s * x[row * d + i];"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows, 256)",), many=(14, 5)))
    assert [task.name for task in kernel.tasks] == ["row"]
    assert other in print_statements(next(s.body for s in kernel.steps if isinstance(s, Each)))
