"""Templates reduced to what won: what is settled, what stays open, what is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.samples import a_problem
from tunesmith.base.errors import BadInput
from tunesmith.problem.problem import Problem
from tunesmith.problem.reduced import as_reduced, reduce_template, without_unused
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.space.configset import Config

TEXT = """\
// /// tunesmith
// [params]
// BLOCK = [64, 128, 256]  # threads
// VEC   = [1, 4]
// MODE  = { values = [0, 1, 2], categorical = true }
// [default]
// BLOCK = 64
// VEC   = 1
// MODE  = 0
// [require]
// whole = "n % VEC == 0"
// fits  = "MODE == 0 or BLOCK * VEC <= 512"
// [prefer]
// wide  = "MODE == 0 or VEC == 4"
// [answers]
// wide_access = "VEC >= 4"
// block_size  = "BLOCK != 64"
// [defines]
// SPAN = "BLOCK * VEC"
// [build]
// flags = ["-DMODE_TOLD={MODE}"]
// [launch]
// grid  = ["ceildiv(n, SPAN_OF)"]
// block = ["BLOCK"]
// ///
// Scales.

#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef VEC
#define VEC 1  // elements at once
#endif
#ifndef MODE
#define MODE 0
#endif
#ifndef SPAN
#define SPAN 64
#endif
#define HALF (BLOCK / 2)

// Only for the second mode.
float doubled(float x) { return x + x; }

// One by one.
float once(float x)
{
    return x;
}

#if MODE == 2
#define ACT(x) doubled(x)
#elif MODE == 1 && VEC == 4
#define ACT(x) once(x)
#else
#define ACT(x) (x)
#endif

kernel void scale(global float *out, global const float *x, int n)
{
    for (int v = 0; v < VEC; v++)  // each
        out[v * SPAN] = ACT(x[v]);
}
"""


@pytest.fixture
def problem() -> Problem:
    return a_problem()


def template(problem: Problem, text: str = TEXT) -> Template:
    text = text.replace("SPAN_OF", "BLOCK * VEC")
    text = text.replace('"n % VEC', f'"{problem.size_names[0]} % VEC').replace(
        "ceildiv(n,", f"ceildiv({problem.size_names[0]},"
    )
    return parse_template(text, path="template.cl", problem=problem)


def config(block: int, vec: int, mode: int) -> Config:
    return Config.of({"BLOCK": block, "VEC": vec, "MODE": mode})


def test_choices_that_all_winners_share_are_settled_and_the_others_keep_their_domains(
    problem: Problem,
) -> None:
    found = reduce_template(template(problem), problem, [config(128, 4, 1), config(256, 4, 1)])
    assert [(p.name, p.values) for p in found.space.params] == [("BLOCK", (64, 128, 256))]
    assert found.default == Config.of({"BLOCK": 128})
    assert [(c.name, c.expr.text) for c in found.space.constraints][1:] == [("fits", "BLOCK * 4 <= 512")]
    assert [(str(r), e.text) for r, e in found.answers] == [("block_size", "BLOCK != 64")]
    assert [(n, e.text) for n, e in found.defines] == [("SPAN", "BLOCK * 4")]
    assert found.flags == ("-DMODE_TOLD=1",)
    assert "default = 128 }  # threads" in found.source
    for gone in ("doubled", "MODE ", "HALF", "#if ", "#elif", "[default]", "prefer"):
        assert gone not in found.source
    for kept in ("#define VEC 4  // elements at once", "#define ACT(x) once(x)", "// One by one.", "// each"):
        assert kept in found.source
    assert "#ifndef BLOCK\n#define BLOCK 128\n#endif" in found.source


def test_a_single_winner_is_a_kernel_as_it_stands_unless_something_is_left_open(problem: Problem) -> None:
    whole = template(problem)
    found = reduce_template(whole, problem, [config(128, 1, 0)])
    assert found.is_concrete
    assert "#define SPAN 128" in found.source
    assert "[params]" not in found.source
    left = reduce_template(whole, problem, [config(128, 1, 0)], still_open=["BLOCK"])
    assert [p.name for p in left.space.params] == ["BLOCK"]
    assert as_reduced(config(128, 1, 0), left) == left.default
    with pytest.raises(BadInput, match="no parameter 'LANES'; it has BLOCK, VEC, MODE"):
        reduce_template(whole, problem, [config(128, 1, 0)], still_open=["LANES"])


def test_a_choice_that_nothing_depends_on_any_more_is_settled_too(problem: Problem) -> None:
    text = TEXT.replace('// flags = ["-DMODE_TOLD={MODE}"]\n', "").replace("// [build]\n", "")
    text = text.replace("#if MODE == 2", "#if MODE == 2 && VEC == 1").replace(
        "#elif MODE == 1 && VEC == 4", "#elif 0"
    )
    found = reduce_template(template(problem, text), problem, [config(64, 4, 1), config(64, 4, 2)])
    assert found.is_concrete


def test_a_macro_that_production_sets_takes_the_winning_value(problem: Problem) -> None:
    set_too = replace(problem, kernel=replace(problem.kernel, defines=(("VEC", "1"),)))
    found = reduce_template(template(set_too), set_too, [config(128, 4, 1)])
    assert "#undef VEC\n#define VEC 4" in found.source


class TestUnused:
    def test_helpers_methods_and_macros_that_nobody_reaches_are_gone(self) -> None:
        text = """\
#include <a.h>
#define A 1
#define B (A + 1)
#define _TOLD 1

template <int N> struct word;
template <> struct word<4> { typedef int type; };

// Loads.
template <typename T>
struct Pack {
    T at[4];

    // Unused.
    __device__ void store(T *to) const { put(to, at); }

    __device__ void load(const T *from)
    {
#if LOAD
        at[0] = from[0];
#endif
    }
};

template <typename T>
__device__ void put(T *to, const T *v) { *to = *v; }

struct Lonely { int x; };
typedef int never;
typedef int index_t;

__device__ __forceinline__ int helper(int x) { return x + B; }
__device__ int used(int x) { return x; }

extern "C" __global__ void __launch_bounds__(64)
k(int *x) { Pack<int> p; p.load(x); x[0] = used((index_t)1); }
"""
        found = without_unused(text, ())
        for gone in ("store", "Unused", "put", "Lonely", "helper", "define A", "define B", "word", "never"):
            assert gone not in found
        for kept in (
            "#define _TOLD 1",
            "// Loads.",
            "void load(",
            "#if LOAD",
            "int used(",
            "typedef int index_t;",
            "#include <a.h>",
        ):
            assert kept in found
        assert "\n\n\n" not in found

    def test_names_that_are_put_together_keep_everything(self) -> None:
        text = "#define CALL(x) f_##x()\nint f_a() { return 1; }\n__kernel void k() { CALL(a); }\n"
        assert without_unused(text, ()) == text

    def test_brackets_that_cross_conditions_keep_the_functions(self) -> None:
        text = "#if A\nint f(int x) {\n#else\nint f(long x) {\n#endif\n return 1; }\n__kernel void k() { }\n"
        assert "int f(long x)" in without_unused(text, ())

    def test_two_on_one_line_stay(self) -> None:
        text = "int f() { return 1; } int g() { return 2; }\n__kernel void k(int *x) { *x = g(); }\n"
        assert "int f()" in without_unused(text, ())
