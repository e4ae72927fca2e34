"""The code of several kernels in one file: names with one meaning, and what is alike once."""

from __future__ import annotations

import pytest

from tunesmith.expert.write.given import Unwritable
from tunesmith.expert.write.several import KernelCode, link_codes, rename_identifiers


def test_other_words_for_names_leave_members_and_strings_alone() -> None:
    text = "x.at = at(at, \"at\"); // at\np->at = 'a'; #if at"
    assert (
        rename_identifiers(text, {"at": "place"})
        == "x.at = place(place, \"at\"); // place\np->at = 'a'; #if place"
    )


def codes(*texts: tuple[str, ...]) -> list[KernelCode]:
    return [KernelCode(str(number), text) for number, text in enumerate(texts, 1)]


def test_pieces_that_are_alike_stand_once() -> None:
    helper = "__device__ float twice(float x) { return 2 * x; }"
    first, second = link_codes(
        codes((helper, "void a() { twice(1); }"), (helper, "void b() { twice(2); }")), ()
    )
    assert first.pieces == (helper, "void a() { twice(1); }")
    assert second.pieces == ("void b() { twice(2); }",)


def test_a_name_with_two_meanings_gets_two_names_and_so_does_what_uses_it() -> None:
    helper = "__device__ float twice(float x) { return EXP(x); }"
    first, second = link_codes(
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
    first, second = link_codes(
        codes(("#define lane 3", "void a() { lane; }"), ("void b() { int lane; }",)), ()
    )
    assert first.pieces == ("#define lane_1 3", "void a() { lane_1; }")
    assert second.pieces == ("void b() { int lane; }",)


def test_text_ahead_stays_as_it_is() -> None:
    ahead = "#define ROWS 4\n__device__ int one() { return 1; }\n__global__ void a() {}"
    (code,) = link_codes(codes(("__device__ int one() { return 2; }", "void a() { one(); }")), (), ahead)
    assert code.pieces == ("__device__ int one_1() { return 2; }", "void a_1() { one_1(); }")
    with pytest.raises(Unwritable, match="means something else by ROWS"):
        link_codes(codes(("void b() { f(ROWS); }",)), (), ahead)


def test_a_library_s_name_is_not_changed() -> None:
    ours = "__device__ float fmaxf(float a, int b) { return a; }"
    with pytest.raises(Unwritable, match="fmaxf"):
        link_codes(codes((ours, "void a() {}"), ("void b() { fmaxf(1.0f, 2.0f); }",)), ())


def test_a_kernel_s_own_name_is_changed_though_a_library_has_it_unless_its_code_calls_that() -> None:
    other = "void b() { norm(1.0f, 2.0f); }"
    first, second = link_codes(codes(("__global__ void norm(float *x) { x[0] = 1; }",), (other,)), ())
    assert first.pieces == ("__global__ void norm_1(float *x) { x[0] = 1; }",)
    assert second.pieces == (other,)
    with pytest.raises(Unwritable, match="norm"):
        link_codes(codes(("__global__ void norm(float *x) { x[0] = norm(1.0f, 2.0f); }",), (other,)), ())
