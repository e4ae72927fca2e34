"""A source in a namespace: its own functions, its headers, its macros, and everything else untouched."""

from __future__ import annotations

import pytest

from tunesmith.deliver.cuda.source import Unfit, namespace_source


def body(source: str, **headers: str) -> str:
    text = namespace_source(source, tuple(headers.items()), "a.cu").text
    return text.removeprefix('#line 1 "a.cu"\n')


@pytest.mark.parametrize(
    "source",
    [
        'extern "C" __global__ void f(int a) { }',
        'extern  "C"\n__global__ __launch_bounds__(64, 2) void f(int a = int{3})\n{ }',
        'extern "C" { __global__ void f() { } }',
        'extern "C" __global__ void f(int a);\n__global__ void f(int a) { }',
        'extern "C" __device__ int table[2] = {1, 2};',
        '#define KERNEL extern "C" __global__ void\nKERNEL f() { }',
    ],
)
def test_what_it_defines_is_its_own(source: str) -> None:
    assert body(source) == source.replace('"C"', '"C++"')


@pytest.mark.parametrize(
    "source",
    [
        'extern "C" __device__ int vprintf(const char*, va_list);\n__global__ void f() { vprintf("", a); }',
        'extern "C" { void g(int); }\nvoid h() { if (g(1)) { } }',
        '// extern "C" void f() { }\nconst char* text = "extern \\"C\\" { f() { } }";',
        'int a = 1\'000\'000; // it\'s\nauto b = R"x(\nextern "C" void f() { }\n#define X\n)x";',
    ],
)
def test_what_is_only_declared_or_only_mentioned_stays(source: str) -> None:
    assert body(source) == source
    assert namespace_source(source, (), "a.cu").macros == ()


def test_macros_are_those_that_it_changes() -> None:
    source = "#define A 1\n # undef  B\n#ifndef C\n#define C(x) \\\n  #x\n#endif\n/* \n#define D */\n"
    assert namespace_source(source, (), "a.cu").macros == ("A", "B", "C")


def test_includes_keep_what_decides_on_them_and_leave_nothing_behind() -> None:
    source = (
        "#define A 1 // one\nint x;\n#if A\n#define B\n#include <a.h>\n#pragma unroll\n#else\n#define C\n"
    )
    source += "#endif\n"
    assert namespace_source(source, (), "a.cu").includes.splitlines() == [
        '#pragma push_macro("A")',
        "#define A 1",
        "#if A",
        "#ifndef TUNESMITH_CHANGED_B",
        "#define TUNESMITH_CHANGED_B",
        '#pragma push_macro("B")',
        "#endif",
        "#define B",
        "#include <a.h>",
        "#endif",
        '#pragma pop_macro("A")',
        "#ifdef TUNESMITH_CHANGED_B",
        "#undef TUNESMITH_CHANGED_B",
        '#pragma pop_macro("B")',
        "#endif",
    ]
    assert namespace_source("#define A 1\nint x;\n", (), "a.cu").includes == ""


GUARDED = "#ifndef H\n#define H\nint h;\n#endif\n"


def test_a_header_is_written_once_where_nothing_can_keep_it_out() -> None:
    assert body('#include "h"\n#include <h>\n', h=GUARDED).count("int h;") == 1
    assert body('#if A\n#include "h"\n#endif\n#include <h>\n', h=GUARDED).count("int h;") == 2
    assert (
        body('#if A\n#include "h"\n#include "h"\n#else\n#include "h"\n#endif\n', h=GUARDED).count("int h;")
        == 2
    )
    assert body('#include "h"\n#include "h"\n', h="int h;").count("int h;") == 2  # it may be meant so
    assert body('#include "h"\n', h='#include "h"\nint h;').count("int h;") == 1


def test_lines_are_counted_as_the_user_counts_them() -> None:
    text = body('#line 7 "t.cu"\nint a;\n#include "h" // here\nint b;\n', h="#pragma once\nint h;\n")
    assert text.splitlines() == [
        '#line 7 "t.cu"',
        "int a;",
        "#ifndef TUNESMITH_ONCE_0",
        "#define TUNESMITH_ONCE_0",
        '#line 1 "h"',
        "",
        "int h;",
        "",
        "",
        "#endif",
        '#line 9 "t.cu"',
        "int b;",
    ]


def test_namespaces_of_the_toolkit_cannot_be_reopened() -> None:
    with pytest.raises(Unfit, match="namespace std"):
        namespace_source("namespace std { }", (), "a.cu")
    namespace_source(
        "namespace cg = cooperative_groups; using namespace std; namespace mine::std { }", (), "a.cu"
    )


@pytest.mark.parametrize(
    "declared",
    [
        "__device__ float mine(float x) { return x; }",
        "__device__ float mine(float x);",
        'extern "C" { __device__ float mine(float x) { return x; } }',
        "namespace { template <int N = 2> __device__ float mine(float x) { return x; } }",
        "namespace mine { struct A {}; }",
        "namespace mine = cooperative_groups;",
        "struct __align__(16) mine { float x; };",
        "using mine = float;",
        "typedef float mine;",
        "__constant__ float mine[4], other;",
        "enum Kind { other, mine };",
        "#if A\nvoid f(int a) {\n#else\nvoid f(long a) {\n#endif\n}\nint mine;",
        '#include "h"',
    ],
)
@pytest.mark.parametrize("use", ["return ::mine(x);", "(float)::mine(x)", "A<:: mine>", "f(::mine::a)"])
def test_a_name_of_its_own_that_it_calls_global_would_not_be(declared: str, use: str) -> None:
    source = f"{declared}\nvoid user() {{ {use} }}"
    with pytest.raises(Unfit, match="its own ::mine as global"):
        namespace_source(source, (("h", "int mine;"),), "a.cu")


def test_an_entry_may_name_no_global_either() -> None:
    source = "struct Half {}; template <typename T> __global__ void f() {}"
    namespace_source(source, (), "a.cu", ("f<Half>",))
    with pytest.raises(Unfit, match="its own ::Half as global"):
        namespace_source(source, (), "a.cu", ("f<::Half>",))


def test_what_others_define_may_be_called_global() -> None:
    source = """
    using namespace nvcuda;
    using nvcuda::wmma::fragment;
    struct S { static int max(int); int size; };
    namespace own { int expf(int x) { return x; } enum class E { log }; }
    enum class E { log };
    #define CALL(x) f(x) {
    int user(int min) {
        int size = max(1, 2);  // ::user
        return ::max(min, ::min(1, size)) + ::expf(1) + own::expf(2) + S::max(3) + std::user + A<int>::S
            + ::nvcuda::wmma::x + ::fragment + ::size + ::log(1);
    }
    """
    namespace_source(source, (), "a.cu")
