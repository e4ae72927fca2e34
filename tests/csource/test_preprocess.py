from __future__ import annotations

import pytest

from tunesmith.csource.lex import layout
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.preprocess import preprocess


def _expanded(text: str, defines: tuple[tuple[str, str], ...] = (), language: str = "cuda") -> str:
    done = preprocess(text, language, defines)
    assert done.problems == ()
    return layout(done.tokens, 1)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("#define N 4\nint a[N];", "\nint a[4];"),
        ("#define N (M + 1)\n#define M 2\nN", "\n\n(2 + 1)"),
        (
            "#define MAX(a, b) ((a) > (b) ? (a) : (b))\nMAX(x, f(y, z))",
            "\n((x) > (f(y, z)) ? (x) : (f(y, z)))",
        ),
        ("#include <climits>\nINT_MAX", "\n2147483647"),
        ("#include <cfloat>\n-FLT_MAX", "\n-3.402823466e+38F"),
        ("#include <cstdint>\nUINT32_C(7) << 20 | INT64_C(1)", "\n7U << 20 | 1LL"),
        ("#include <math.h>\nM_PI + INFINITY", "\n3.14159265358979323846 + INFINITY"),
        ("INT_MAX", "INT_MAX"),
        ("#define FLT_MAX 1\n#include <float.h>\nFLT_MAX", "\n\n1"),
        ("#define F(x) x\nF", "\nF"),
        ("#define F() 7\nF()", "\n7"),
        ("#define X X + 1\nX", "\nX + 1"),
        ("#define F(x) F(x + 1)\nF(2)", "\nF(2 + 1)"),
        ("#define CAT(a, b) a##b\nCAT(x, 1)", "\nx1"),
        ("#define STR(a) #a\nSTR(x + 1)", '\n"x + 1"'),
        ("#define V(f, ...) f(__VA_ARGS__)\nV(g, 1, 2)", "\ng(1, 2)"),
        ("#define N 4\n#undef N\nN", "\n\nN"),
        ("#define A \\\n 1 + \\\n 2\nA", "\n\n\n1 + 2"),
        ('#define N 4\n"N" // N', '\n"N"'),
    ],
)
def test_macros_are_expanded_in_place(text: str, result: str):
    assert _expanded(text) == result


@pytest.mark.parametrize(
    ("condition", "is_on"),
    [
        ("#if 1", True),
        ("#if 0", False),
        ("#ifdef N", True),
        ("#ifndef N", False),
        ("#if defined(N) && N == 4", True),
        ("#if defined N && !defined(M)", True),
        ("#if N > 2 ? 0 : 1", False),
        ("#if UNKNOWN", False),
        ("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800", True),
        ("#if (N << 1) == 8 && -7 / 2 == -3", True),
        ("#if GIVEN == 7", True),
        ("#if 0\n#elif N == 4", True),
        ("#if 1\n#elif 1", False),
        ("#if 0\n#if 1\n#else", False),
    ],
)
def test_conditions_are_decided(condition: str, is_on: bool):
    ends = "\n#endif" * condition.count("#if")

    text = _expanded(f"#define N 4\n{condition}\nyes{ends}", (("GIVEN", "7"),))

    assert ("yes" in text) == is_on


def test_lines_stay_where_they_were():
    done = preprocess("#define F(x) (x)\n\na = F(1 +\n  2);\nb;\n", "cuda")

    assert [(token.text, token.line) for token in done.tokens if token.text in ("a", "2", ";", "b")] == [
        ("a", 3), ("2", 3), (";", 4), ("b", 5), (";", 5),
    ]  # fmt: skip


def test_includes_of_what_is_compiled_are_collected():
    text = '#include <a.h>\n#ifdef __HIPCC__\n#include "b.h"\n#else\n#include<c.h>\n#endif\n'
    text += "#pragma once\n#pragma unroll\n"

    assert preprocess(text, "cuda").includes == ("<a.h>", "<c.h>")
    assert preprocess(text, "hip").includes == ("<a.h>", '"b.h"')
    assert [token.text for token in preprocess(text, "cuda").tokens] == ["pragma unroll"]


def test_trouble_is_said_with_its_line():
    done = preprocess("\n#if 1 / 0\n#endif\n#else\n#error no\n#if 1\n", "cuda")

    assert [problem.split(":")[0] for problem in done.problems] == ["line 2", "line 4", "line 5", "line 6"]


@pytest.mark.parametrize(
    "text",
    [
        "#define A0 x x\n" + "".join(f"#define A{n} A{n - 1} A{n - 1}\n" for n in range(1, 50)) + "A49",
        "#define F(x) x x\n" + "F(" * 40 + "1" + ")" * 40,
        "".join(f"#define A{n} A{n - 1}\n" for n in range(1, 500)) + "A499",
        "#define F(a, b) a\nF(1)",
        "#define F(a) a\nF(1",
        "#define CAT(a, b) a##b\nCAT(+, x)",
    ],
)
def test_what_cannot_be_expanded_is_refused(text: str):
    with pytest.raises(Unreadable):
        preprocess(text, "cuda")


def test_the_compilers_version_is_what_every_supported_one_says():
    text = "#if __CUDACC_VER_MAJOR__ >= 12 && defined(__CUDACC_VER_MINOR__)\nnew\n#else\nold\n#endif"

    assert _expanded(text).split() == ["new"]
    assert _expanded("#if __OPENCL_VERSION__ >= 120\nnew\n#endif", language="opencl").split() == ["new"]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("#if __CUDACC_VER_MAJOR__ >= 13", "depends on which version of the compiler"),
        ("#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205", "depends on which version"),
        ("#if CUDART_VERSION >= 12000", "depends on what a header defines"),
        ("#ifdef CUDA_VERSION", "depends on what a header defines"),
    ],
)
def test_what_versions_do_not_agree_on_is_never_taken_as_false(condition: str, reason: str):
    with pytest.raises(Unreadable, match=reason):
        preprocess(f"{condition}\na\n#endif", "cuda")


def test_a_version_that_is_given_decides():
    text = "#if __CUDACC_VER_MAJOR__ >= 13\nnew\n#endif"

    assert _expanded(text, (("__CUDACC_VER_MAJOR__", "13"),)).split() == ["new"]


def _texts(text: str, headers: dict[str, str]) -> str:
    return " ".join(token.text for token in preprocess(text, "cuda", headers=headers.items()).tokens)


def test_the_users_own_headers_are_put_in_place():
    headers = {
        "a.cuh": '#pragma once\n#include "deep/b.cuh"\n#define TWICE(x) (2 * x)\nint a;\n',
        "deep/b.cuh": "#ifndef B\n#define B\n#include <cuda_fp16.h>\n\n\nint b;\n#endif\n",
        "../a.cuh": "#include <a.cuh>\n",
    }
    text = '#include "a.cuh"\n#include "../a.cuh"\n#include <deep/b.cuh>\nint c = TWICE(3);\n'
    done = preprocess(text, "cuda", headers=headers.items())

    assert _texts(text, headers) == "int b ; int a ; int c = ( 2 * 3 ) ;"
    assert done.includes == ("<cuda_fp16.h>",)
    assert [token.line for token in done.tokens if token.text in ("a", "b", "c")] == [1, 1, 4]


def test_a_header_under_a_condition_is_read_where_it_holds():
    headers = {"a.cuh": "int a;", "b.cuh": "int b;"}

    assert _texts('#if 0\n#include "a.cuh"\n#else\n#include "b.cuh"\n#endif\n', headers) == "int b ;"


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ('#include "a.cuh"\n', "included by what it includes"),
        ("#if 1\nint a;\n", "does not end there"),
        ("#endif\n#if 1\n", "does not end there"),
        ("#if CUDART_VERSION >= 12000\n#endif\n", "depends on what a header defines"),
    ],
)
def test_headers_that_cannot_be_followed_are_refused(header: str, reason: str):
    with pytest.raises(Unreadable, match=reason):
        preprocess('#if 1\n#include "a.cuh"\n#endif\n', "cuda", headers=[("a.cuh", header)])
