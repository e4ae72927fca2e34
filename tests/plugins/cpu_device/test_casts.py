"""Casts of floats to integers on the cpu device: as a GPU makes them, whatever the host's processor does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.test_kernels import outputs
from tunesmith.plugins.cpu_device.source import host_text


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("i = (int)x * 3;", "i = __tunesmith_cast<int>(x) * 3;"),
        ("f = (float)(int)x[3].y;", "f = (float)__tunesmith_cast<int>(x[3].y);"),
        ("f((int)a->b(c)[2], (int)-x);", "f(__tunesmith_cast<int>(a->b(c)[2]), __tunesmith_cast<int>(-x));"),
        ("a = static_cast<T>(x) + int(y);", "a = __tunesmith_cast<T>(x) + __tunesmith_cast<int>(y);"),
        ("a = (uint8_t)(v + 0.5f);", "a = __tunesmith_cast<uint8_t>((v + 0.5f));"),
    ],
)
def test_casts_become_calls(text: str, made: str) -> None:
    assert host_text(text, "k.cu") == made


@pytest.mark.parametrize(
    "text",
    [
        "void f(int);",
        "n = sizeof(int) + 1;",
        "auto l = [](int) {};",
        "p = static_cast<float *>(q);",
        "static_cast<void>(q);",
        "void f(int(*p)(int));",
        "#define N a + b\ni = (int)N;",
        "#define I(x) = (int)x\n",
        "i = (int)T{3};",
    ],
)
def test_what_is_no_cast_of_a_number_or_cannot_be_read_stays(text: str) -> None:
    assert host_text(text, "k.cu") == text


@needs_cpu
def test_what_an_integer_cannot_hold_is_clamped() -> None:
    body = """
        const float big = 1e20f * (threadIdx.x + 1), none = big * 1e30f - big * 1e30f;
        o[0] = (int)big; o[1] = (int)-big; o[2] = (int)none; o[3] = static_cast<unsigned>(-3.5f * big);
        o[4] = (unsigned char)(300.0f + 0 * big); o[5] = (signed char)(-200.0f + 0 * big);
        o[6] = (long long)big == LLONG_MAX; o[7] = (int)(2.75f + 0 * big);
    """
    expected = [2147483648.0, -2147483648.0, 0, 0, 44, 56, 1, 2]
    np.testing.assert_array_equal(outputs(body, 8, threads=1), np.array(expected, np.float32))
