"""The code of several kernels in one file: names with one meaning, and what is alike once."""

from __future__ import annotations

import pytest

from tunesmith.expert.writing.joining import KernelCode, defined_names, linked, renamed
from tunesmith.expert.writing.naming import Unwritable
from tunesmith.expert.writing.together import apart


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("#define CHUNK (LANES * 4)\n#define OVER(x, y) ((x) / (y))", ["CHUNK", "OVER"]),
        ("__device__ __forceinline__ float twice(float x) { return 2 * x; }", ["twice"]),
        ("template <typename W>\n__device__ W fetch(const W *from) { return *from; }", ["fetch"]),
        ("template <>\n__device__ uint4 fetch<uint4>(const uint4 *from) { return *from; }", ["fetch"]),
        (
            "template <int N> struct word_of;\ntemplate <> struct word_of<4> { typedef int type; };",
            ["word_of"] * 2,
        ),
        (
            "typedef float8 vec;\ntypedef struct __attribute__((packed)) { vec v; } unaligned;",
            ["vec", "unaligned"],
        ),
        ("struct __align__(16) Pair { float a, b; };", ["Pair"]),
        ("static constexpr int kRows = 4;\n__constant__ float table[3] = {1, 2, 3};", ["kRows", "table"]),
        ('extern "C" __global__ void __launch_bounds__(LANES * 2) scale(float *x) { x[0] = 1; }', ["scale"]),
        ("using word = unsigned int;\nusing namespace cub;", ["word"]),
        ("namespace own { __device__ int one() { return 1; } }", ["one"]),
        ('extern "C" { __device__ int one() { return 1; } }', ["one"]),
        (
            "float sum_of(vec x)\n{\n#if VEC > 1\n    return x.lo + x.hi;\n#else\n    return x;\n#endif\n}",
            ["sum_of"],
        ),
        ("__device__ float Pair::length() const { return a; }", []),
    ],
)
def test_what_a_text_defines(text: str, names: list[str]) -> None:
    assert list(defined_names(text)) == names


def test_other_words_for_names_leave_members_and_strings_alone() -> None:
    text = "x.at = at(at, \"at\"); // at\np->at = 'a'; #if at"
    assert renamed(text, {"at": "place"}) == "x.at = place(place, \"at\"); // place\np->at = 'a'; #if place"


def codes(*texts: tuple[str, ...]) -> list[KernelCode]:
    return [KernelCode(str(number), text) for number, text in enumerate(texts, 1)]


def test_pieces_that_are_alike_stand_once() -> None:
    helper = "__device__ float twice(float x) { return 2 * x; }"
    first, second = linked(codes((helper, "void a() { twice(1); }"), (helper, "void b() { twice(2); }")), ())
    assert first.pieces == (helper, "void a() { twice(1); }")
    assert second.pieces == ("void b() { twice(2); }",)


def test_a_name_with_two_meanings_gets_two_names_and_so_does_what_uses_it() -> None:
    helper = "__device__ float twice(float x) { return EXP(x); }"
    first, second = linked(
        codes(
            ("#define EXP(x) expf(x)", helper, "void a() { twice(1); }"),
            ("#define EXP(x) __expf(x)", helper, "void b() { twice(2); }"),
        ),
        ("EXP_2",),
    )
    assert first.pieces[0] == "#define EXP_1(x) expf(x)"
    assert second.pieces[0] == "#define EXP_2_2(x) __expf(x)"
    assert "twice_1(1)" in first.pieces[2]
    assert "EXP_2_2(x)" in second.pieces[1]
    assert second.name("twice") == "twice_2"


def test_a_name_that_another_kernel_uses_otherwise_is_no_longer_its_own() -> None:
    first, second = linked(codes(("#define lane 3", "void a() { lane; }"), ("void b() { int lane; }",)), ())
    assert first.pieces == ("#define lane_1 3", "void a() { lane_1; }")
    assert second.pieces == ("void b() { int lane; }",)


def test_text_ahead_stays_as_it_is() -> None:
    ahead = "#define ROWS 4\n__device__ int one() { return 1; }\n__global__ void a() {}"
    (code,) = linked(codes(("__device__ int one() { return 2; }", "void a() { one(); }")), (), ahead)
    assert code.pieces == ("__device__ int one_1() { return 2; }", "void a_1() { one_1(); }")
    with pytest.raises(Unwritable, match="means something else by ROWS"):
        linked(codes(("void b() { f(ROWS); }",)), (), ahead)


def test_a_library_s_name_is_not_changed() -> None:
    ours = "__device__ float fmaxf(float a, int b) { return a; }"
    with pytest.raises(Unwritable, match="fmaxf"):
        linked(codes((ours, "void a() {}"), ("void b() { fmaxf(1.0f, 2.0f); }",)), ())


def test_a_kernel_s_own_name_is_changed_though_a_library_has_it_unless_its_code_calls_that() -> None:
    other = "void b() { norm(1.0f, 2.0f); }"
    first, second = linked(codes(("__global__ void norm(float *x) { x[0] = 1; }",), (other,)), ())
    assert first.pieces == ("__global__ void norm_1(float *x) { x[0] = 1; }",)
    assert second.pieces == (other,)
    with pytest.raises(Unwritable, match="norm"):
        linked(codes(("__global__ void norm(float *x) { x[0] = norm(1.0f, 2.0f); }",), (other,)), ())


def test_pieces_are_parted_where_nothing_is_open() -> None:
    text = "int a;\n\n#if X\nint b;\n\nint c;\n#endif\n\nvoid f()\n{\n    one();\n\n    two();\n}\n"
    assert list(apart(text)) == [
        "int a;",
        "#if X\nint b;\n\nint c;\n#endif",
        "void f()\n{\n    one();\n\n    two();\n}",
    ]
