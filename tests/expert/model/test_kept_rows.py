"""Rows that threads keep in arrays of their own between totals: values of elements, or refused."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem, summary

_BASE = "const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;\n"
_TURNS = "for (int k = 0; blockDim.x * k + threadIdx.x < d; k++) "
_PLACE = "{ const int i = blockDim.x * k + threadIdx.x; "
_TREE = (
    "__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();\n"
    "for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];\n"
    "__syncthreads(); }\n"
)
_LOAD = "float v[16]; float s = 0.0f;\n" + _TURNS + _PLACE + "v[k] = r[i] * 2.0f; s += v[k]; }\n"
_PUT = _TURNS + "o[blockDim.x * k + threadIdx.x] = v[k] / part[0];"
_EIGHT = "for (int k = 0; k < 8; k++) "
_WARP = (
    "const int row = blockIdx.x * 4 + threadIdx.y; if (row >= rows) return; float v[8];\n"
    + _EIGHT
    + "{ const int i = k * 32 + threadIdx.x; if (i < d) v[k] = x[row * d + i]; else v[k] = -1e30f; }\n"
    "float m = v[0]; for (int k = 1; k < 8; k++) m = fmaxf(m, v[k]);\n"
    "for (int b = 16; b > 0; b /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, b));\n" + _EIGHT
    + "{ const int i = k * 32 + threadIdx.x; if (i < d) out[row * d + i] = v[k] - m; else break; }"
)  # fmt: skip


def test_a_row_kept_turn_by_turn_is_a_value_of_every_element() -> None:
    model = lifted(row_problem(_BASE + _LOAD + _TREE + _PUT, d="{ min = 1, max = 4096 }"))
    assert [(one.name, one.type.base, one.width) for one in model.staged] == [("v", "float", 1)]
    assert summary(model) == "block<rows | each 0..d +s; each 0..d"
    assert any("'v'" in fact.what and fact.ground == "proved" for fact in model.facts)


def test_turns_beyond_the_row_are_elements_too() -> None:
    small = row_problem(
        _WARP, grid=("ceildiv(rows, 4)",), block=("32", "4"), d="{ min = 1, max = 256 }", many=(512, 256)
    )
    model = lifted(small)
    assert [one.name for one in model.staged] == ["v"]
    assert summary(model) == "row<rows | each 0..256; each 0..256 maxm; each 0..256"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v[k] / part[0]", "v[k] / part[0] + k"),
        ("v[k] / part[0]", "v[15 - k] / part[0]"),
        ("v[k] / part[0]", "v[0] / part[0]"),
        ("v[k] = r[i] * 2.0f;", "if (r[i] > 0.0f) v[k] = r[i];"),
        ("v[k] = r[i] * 2.0f;", "v[k] += r[i];"),
        (_PUT, _PUT.replace("< d;", "< d - 1;")),
        (_PUT, _PUT.replace("blockDim.x * k + threadIdx.x]", "threadIdx.x * 16 + k]")),
        ("s += v[k]; }", "s += v[k]; v[0] += 1.0f; }"),
        ("s += v[k]; }", "s += v[k]; v[k + 1] = 1.0f; }"),
    ],
)
def test_what_only_looks_like_it_is_refused(before: str, after: str) -> None:
    body = _BASE + _LOAD + _TREE + _PUT
    assert before in body
    assert refusal(row_problem(body.replace(before, after), d="{ min = 1, max = 4096 }"))
