"""Conversions of floats to integers that no text spells: found by the compiler, made as a GPU makes them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.test_kernels import device, outputs
from tunesmith.backends.messages import Unit
from tunesmith.base.text import digest_of
from tunesmith.plugins.cpu_device import build
from tunesmith.plugins.cpu_device.source import read_conversions, strip_markers, wrap_conversions

_CALL = "__tunesmith_implied"
_LIKE = "__tunesmith::Like"


def _gnu(text: str, what: str, caret: str = "", types: str = "'float' to 'int'") -> str:
    """As g++ tells of `what`, which it points into at `caret`; without one it gives no range."""
    start = text.rindex(what)
    at = start + what.index(caret) if caret else start
    place = {"caret": _place(text, at)}
    if caret:
        place |= {"start": _place(text, start), "finish": _place(text, start + len(what) - 1)}
    told = {"option": "-Wfloat-conversion", "message": f"conversion from {types} may change value"}
    return json.dumps([{**told, "locations": [place]}])


def _place(text: str, at: int) -> dict[str, int]:
    return {"line": text.count("\n", 0, at) + 1, "byte-column": at - text.rfind("\n", 0, at)}


def _mended(text: str, *logs: str) -> str:
    whole = f'# 1 "k.cu"\n{text}'
    assert strip_markers(whole) == f"\n{strip_markers(text)}"
    told = [json.loads(log) for log in logs]
    for one in told:
        for place in one[0]["locations"][0].values():
            place["line"] += 1
    return wrap_conversions(whole, read_conversions(whole, "\n".join(map(json.dumps, told)))).partition("\n")[
        2
    ]


@pytest.mark.parametrize(
    ("text", "what", "caret", "made"),
    [
        ("int a = x[1] * 2;", "x[1] * 2", "*", f"int a = {_CALL}<int>((float)(x[1] * 2));"),
        ("f(i, x);", "x", "", f"f(i, {_CALL}<int>((float)(x)));"),
        ("a = x\n  + 1;", "x\n  + 1", "+", f"a = {_CALL}<int>((float)(x\n  + 1));"),
        ("o[i] += x;", "o[i] += x", "+=", f"o[i] = {_CALL}<{_LIKE}<decltype(o[i])>>(o[i] + ( x));"),
        # Of a call, g++ points to what stands last.
        ("n -= g(x);", ")", "", f"n = {_CALL}<{_LIKE}<decltype(n)>>(n - ( g(x)));"),
        *(
            (f"{head} n += x;", "n += x", "+=", f"{head} n = {_CALL}<{_LIKE}<decltype(n)>>(n + ( x));")
            for head in (
                "if (f(a, b[0]) && c)",
                "if (c) g(); else",
                "if (c) g(); else if (d)",
                "#pragma unroll\nfor (int i = 0; i < 4; ++i)",
                "for (;;) while (c)",
                "do",
                "return",
                "if constexpr (c)",
            )
        ),
        ("if (c) *p += x;", "*p += x", "+=", f"if (c) *p = {_CALL}<{_LIKE}<decltype(*p)>>(*p + ( x));"),
        ("else (n) += x;", "(n) += x", "+=", "else (n) += x;"),
        # To name it twice would do it twice.
        ("if (c) *next() += x;", "*next() += x", "+=", "if (c) *next() += x;"),
        ("o[i++] += x;", "o[i++] += x", "+=", "o[i++] += x;"),
        ("*next() += x;", "*next() += x", "+=", "*next() += x;"),
        (
            "template <typename T> T f(float x) { T y; y = x; return x; }",
            "x",
            "",
            f"template <typename T> T f(float x) {{ T y; y = x; return {_CALL}_to(x); }}",
        ),
        (
            "template <typename T> void f(T y) { y = x[0]; }",
            "x[0]",
            "]",
            f"template <typename T> void f(T y) {{ y = {_CALL}<{_LIKE}<decltype(y)>>(x[0]); }}",
        ),
    ],
)
def test_each_becomes_a_call(text: str, what: str, caret: str, made: str) -> None:
    assert _mended(text, _gnu(text, what, caret)) == made


def test_one_within_another() -> None:
    text = "int a = f(x) * y;"
    logs = _gnu(text, "x"), _gnu(text, "f(x) * y", "*", "'const float' to 'uint8_t' {aka 'unsigned char'}")
    made = f"int a = {_CALL}<unsigned char>((float)(f({_CALL}<int>((float)(x))) * y));"
    assert _mended(text, *logs) == made


def test_what_clang_tells() -> None:
    text = '# 7 "k.cu"\nint a = g(x);\n# 1 "headers/cmath"\nint b = g(y);\n'
    words = (
        "warning: implicit conversion turns floating-point number into integer: 'const float' to 'int' [-W]"
    )
    log = f"k.ii:2:9:{{2:9-2:13}}{{2:5-2:6}}: {words}\nk.ii:4:9:{{4:9-4:13}}: {words}\n"
    made = text.replace("g(x)", f"{_CALL}<int>((float)(g(x)))")
    assert wrap_conversions(text, read_conversions(text, log)) == made, "a header's own is left alone"


@pytest.mark.parametrize(
    "log", ["[{", "[3]", "", "[]", "k.ii:9999:1:{9999:1-9999:2}: warning: implicit conversion turns 'a'"]
)
def test_what_cannot_be_read_changes_nothing(log: str) -> None:
    assert wrap_conversions("int a = x;", read_conversions("int a = x;", log)) == "int a = x;"


@needs_cpu
def test_what_a_model_wrote_is_mended_too() -> None:
    """Its text is read with the word for assembly forbidden."""
    text = "__global__ void k(float *o) { unsigned char c = o[0] * 1e9f - 2e9f; o[0] = c; }"
    unit = Unit("k.cu", text, "cuda", (), ("k",), vetted=digest_of(text))
    log = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            build.implied, "wrap_conversions", lambda *given: log.append(wrap_conversions(*given)) or log[-1]
        )
        build.build_host_library(unit, device())
    assert [_CALL in one for one in log] == [True], "once, and it compiled"


@needs_cpu
def test_what_an_integer_cannot_hold_is_clamped_wherever_it_becomes_one() -> None:
    head = """
        #define TWICE(v) ((v) * 2.0f)
        #define PUT(to, v) to = v
        __device__ int taken(unsigned char a) { return a + 1; }
        __device__ float same(float x) { return x; }
        __device__ int given(float x) { return x; }
       template <typename T> __device__ T any(float x) { T y = x; y += x; T z; z = x; return z == y ? x : y; }
        template <typename T> struct Box { T v; __device__ void set(float x) { v = x; } };
    """
    body = """
        const float big = 1e20f * (threadIdx.x + 1), low = -3.0f * (threadIdx.x + 1);
        int a = big; unsigned u = low; unsigned char c; c = low; int n = 5; n += big;
        int m = 5; m -= same(big);
        int p; PUT(p, TWICE(big)); Box<unsigned> b; b.set(low); Box<float> f; f.set(low);
        int w[2] = {7, 7}; w[threadIdx.x + 1] += big; auto l = [](auto v) -> int { return v; };
        o[0] = a; o[1] = u; o[2] = c; o[3] = n; o[4] = m; o[5] = taken(low); o[6] = given(big); o[7] = p;
        o[8] = b.v; o[9] = f.v; o[10] = any<int>(big); o[11] = any<float>(2.5f); o[12] = w[1];
        o[13] = l(-big);
        int q = 5; if (threadIdx.x < 9) q += big; else q += low; int r = 5;
        #pragma unroll
        for (int z = 0; z < 2; ++z) r += big;
        o[16] = q; o[17] = r;
        o[14] = make_uchar4(low, 1, 2, 3).x; o[15] = any<unsigned char>(low);
    """
    most, least = 2147483648.0, -2147483648.0
    expected = [most, 0, 0, most, least, 1, most, most, 0, -3, most, 5, most, least, 0, 0, most, most]
    np.testing.assert_array_equal(outputs(body, 18, threads=1, head=head), np.array(expected, np.float32))
