"""Reading kernel sources: signatures, element types, launch sites, and text that is no source."""

from __future__ import annotations

import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.csource.nodes import Language
from tunesmith.errors import BadInput
from tunesmith.expert.reading.headers import KernelParameter, KernelSignature, blank_source, elements_of
from tunesmith.expert.reading.source import read_source
from tunesmith.problem.languages import language_of

LANGUAGES: tuple[Language, ...] = ("opencl", "cuda", "hip")


def kernel(text: str, language: Language = "cuda") -> KernelSignature:
    (found,) = read_source(textwrap.dedent(text), language).kernels
    return found


def parameter(text: str, name: str, language: Language = "cuda") -> KernelParameter:
    return next(p for p in kernel(text, language).parameters if p.name == name)


class TestSignature:
    def test_opencl(self) -> None:
        found = kernel(
            """
            // __kernel void not_this(__global float* x) {}
            __kernel __attribute__((reqd_work_group_size(16, TILE, 1)))
            void scale(__global const float* restrict a, __global uchar4 *out, __local float* tile,
                       __constant half* w, const uint n, float alpha) {
                __local float own[16];
                out[get_global_id(0)] = a[n];
            }
            """,
            "opencl",
        )
        assert (found.name, found.line) == ("scale", 3)
        assert found.reqd_work_group_size == ("16", "TILE", "1")
        a, out, tile, w, n, alpha = found.parameters
        assert (a.type, a.element, a.const, a.restrict, a.space) == (
            "const float*",
            "float32",
            True,
            True,
            "global",
        )
        assert (out.element, out.vector, out.space, out.written, out.read) == (
            "uint8",
            4,
            "global",
            True,
            False,
        )
        assert (tile.space, w.space, w.const, w.element) == ("local", "constant", True, "float16")
        assert (n.pointer, n.element, alpha.pointer, alpha.element) == (False, "uint32", False, "float32")

    def test_opencl_words_without_underscores(self) -> None:
        found = kernel("kernel void k(global int* p, local int* t) { p[0] = t[0]; }", "opencl")
        assert [p.space for p in found.parameters] == ["global", "local"]

    def test_cuda_template(self) -> None:
        found = kernel(
            """
            namespace ops { namespace {
            template <typename T, int VEC = 4>
            __global__ void __launch_bounds__(256, 2)
            act(T* __restrict__ out, const T *__restrict__ in, const int64_t d) { out[d] = in[d]; }
            } }
            """
        )
        assert found.qualified_name == "ops::act"
        assert found.template_params == ("T", "VEC")
        assert found.launch_bounds == ("256", "2")
        out, given_in, d = found.parameters
        assert (out.type, out.element, out.written, out.restrict) == ("T*", None, True, True)
        assert (given_in.type, given_in.const, given_in.read) == ("const T*", True, True)
        assert d.element == "int64"

    @pytest.mark.parametrize(
        "text",
        [
            'extern "C" __global__ void k(float* p) {}',
            'extern "C" {\n__global__ void k(float* p) {}\n}',
            "static __global__ __launch_bounds__(128) void k(float* p) {}",
            "__global__ void MY_BOUNDS(128) k(float* p) {}",
            "#define KERNEL __global__\nKERNEL void k(float* p) {}",
            "__global__ void k(float* p);\n__global__ void k(float* p) {}",
            "template __global__ void k<float>(float*);\n__global__ void k(float* p) {}",
            "#if 0\n__global__ void old(int* x) {}\n#endif\n__global__ void k(float* p) {}",
            'const char* s = "__global__ void s(int* x) {}";\n__global__ void k(float* p) {}',
            'auto s = R"x(__global__ void s(int* x) {})x";\n__global__ void k(float* p) {}',
            "#define MAKE(n) __global__ void n(int* x) {}\n__global__ void k(float* p) {}",
            "@@ $ ((( \n; __global__ void k(float* p) { $$ @ }",
            "__global__ void k(float* p) { if (",
        ],
    )
    def test_one_kernel_whatever_stands_around_it(self, text: str) -> None:
        found = kernel(text)
        assert (found.name, [p.type for p in found.parameters]) == ("k", ["float*"])

    def test_kernels_under_conditions_keep_their_own_bodies(self) -> None:
        model = read_source(
            textwrap.dedent(
                """
                #ifdef WIDE
                __global__ void k(double* a) {
                #else
                __global__ void k(float* a) {
                #endif
                  a[0] = 1;
                }
                __global__ void after(int* b) { b[0] = 1; }
                """
            ),
            "cuda",
        )
        first, after = model.kernels
        assert (first.name, first.definitions, first.parameters[0].written) == ("k", 2, True)
        assert (after.name, after.namespace, after.definitions) == ("after", "", 1)

    def test_a_stub_for_old_hardware_is_not_the_kernel(self) -> None:
        found = kernel(
            "#if OLD\n__global__ void k(int* p) {}\n#else\n__global__ void k(int* p) { *p = 1; }\n#endif"
        )
        assert (found.definitions, found.line, found.parameters[0].written) == (2, 4, True)

    def test_a_condition_inside_the_header_is_reported(self) -> None:
        found = kernel("__global__ void k(int* p\n#ifdef BIAS\n, int* b\n#else\n, char* c\n#endif\n) {}")
        assert found.conditional
        assert [p.name for p in found.parameters] == ["p", "b"]

    @pytest.mark.parametrize(
        ("declared", "name", "type_", "element", "pointer"),
        [
            ("float const* const __restrict__ x", "x", "const float*", "float32", True),
            ("const float *x", "x", "const float*", "float32", True),
            ("float x[]", "x", "float*", "float32", True),
            ("unsigned n", "n", "unsigned", "uint32", False),
            ("long unsigned int n", "n", "long unsigned int", "uint64", False),
            ("float** rows", "rows", "float**", None, True),
            ("const at::Half* h", "h", "const at::Half*", "float16", True),
            ("std::array<float*, 2> x", "x", "std::array<float*,2>", None, False),
            ("Params<T, 4> p", "p", "Params<T,4>", None, False),
            ("float* RESTRICT x = nullptr", "x", "float*", "float32", True),
            ("float*", "argument0", "float*", "float32", True),
            ("unsigned int", "argument0", "unsigned int", "uint32", False),
            ("float* local", "local", "float*", "float32", True),
            ("const __grid_constant__ int n", "n", "const int", "int32", False),
        ],
    )
    def test_parameter(
        self, declared: str, name: str, type_: str, element: str | None, pointer: bool
    ) -> None:
        (found,) = kernel(f"__global__ void k({declared}) {{}}").parameters
        assert (found.name, found.type, found.element, found.pointer) == (name, type_, element, pointer)

    def test_a_type_with_two_meanings_has_none(self) -> None:
        twice = "#ifdef D\ntypedef double real;\n#else\ntypedef float real;\n#endif\n"
        text = "__kernel void k(__global real* p) {}"
        assert parameter("typedef float real;\n" + text, "p", "opencl").element == "float32"
        assert parameter("#define real double\n" + text, "p", "opencl").element == "float64"
        assert parameter("using real = __half;\n__global__ void k(real* p) {}", "p").element == "float16"
        assert parameter(twice + text, "p", "opencl").element is None

    def test_a_template_parameter_hides_a_typedef(self) -> None:
        text = "typedef float T;\ntemplate <typename T> __global__ void k(T* p) {}"
        assert parameter(text, "p").element is None

    def test_dynamic_shared_memory(self) -> None:
        body = "extern __shared__ __align__(16) char smem[];"
        assert kernel(f"__global__ void k(int n) {{ {body} }}").dynamic_shared
        assert not kernel("__global__ void k(int n) { __shared__ int s[4]; }").dynamic_shared


class TestElementTypes:
    @pytest.mark.parametrize(
        ("name", "element", "vector"),
        [
            ("half", "float16", 1), ("__half", "float16", 1), ("__nv_bfloat16", "bfloat16", 1),
            ("hip_bfloat16", "bfloat16", 1), ("float", "float32", 1), ("double", "float64", 1),
            ("char", "int8", 1), ("signed char", "int8", 1), ("unsigned char", "uint8", 1),
            ("short", "int16", 1), ("unsigned short int", "uint16", 1), ("unsigned", "uint32", 1),
            ("long", "int64", 1),
            ("unsigned long long", "uint64", 1), ("size_t", "uint64", 1), ("bool", "uint8", 1),
            ("__nv_fp8_e4m3", "float8_e4m3", 1), ("__nv_fp8_e5m2", "float8_e5m2", 1),
            ("float4", "float32", 4), ("__half2", "float16", 2), ("nv_bfloat162", "bfloat16", 2),
            ("uchar3", "uint8", 3), ("longlong2", "int64", 2), ("MyStruct", None, 1),
            ("void", None, 1), ("", None, 1),
        ],
    )  # fmt: skip
    def test_cuda(self, name: str, element: str | None, vector: int) -> None:
        assert elements_of(name, "cuda") == (element, vector)

    def test_opencl_has_its_own_words(self) -> None:
        assert elements_of("ulong", "opencl") == ("uint64", 1)
        assert elements_of("half16", "opencl") == ("float16", 16)
        assert elements_of("__half", "opencl") == (None, 1)


class TestLaunches:
    def test_triple_chevron(self) -> None:
        model = read_source(
            textwrap.dedent(
                """
                constexpr int kThreads = 256;
                template <typename T> __global__ void k(T* p, int n) { p[n] = 1; }
                void run(float* p, int rows, cudaStream_t stream) {
                  dim3 grid((rows + kThreads - 1) / kThreads, 2);
                  const dim3 block = dim3(kThreads);
                  int calls = 0; calls++;
                  k<float><<<grid, block, 64 * sizeof(float), stream>>>(p, rows);
                }
                """
            ),
            "cuda",
        )
        (site,) = model.launches
        assert (site.kernel, site.template_args, site.line) == ("k", "float", 8)
        assert site.grid == ("(rows + kThreads - 1) / kThreads", "2")
        assert (site.block, site.shared, site.arguments) == (
            ("kThreads",),
            "64 * sizeof(float)",
            ("p", "rows"),
        )
        assert ("kThreads", "256") in model.constants
        assert "calls" in site.changed
        assert "calls" not in dict(site.settled)

    @pytest.mark.parametrize("name", ["k", "(k<float, 2>)", "HIP_KERNEL_NAME(k<float, 2>)", "ns::k"])
    def test_hip(self, name: str) -> None:
        text = (
            "__global__ void k(float* p, int n) {}\n"
            f"void run() {{ hipLaunchKernelGGL({name}, dim3(n / 64), dim3(64), 0, 0, p, n); }}"
        )
        (site,) = read_source(text, "hip").launches
        assert (site.kernel, site.grid, site.block, site.arguments) == ("k", ("n / 64",), ("64",), ("p", "n"))

    def test_the_innermost_declaration_counts(self) -> None:
        text = textwrap.dedent(
            """
            __global__ void k(int n) {}
            void run(int n) {
              int threads = 32;
              if (n > 8) { int threads = 64; k<<<n, threads>>>(n); }
              k<<<dim3(n), dim3(threads)>>>(n);
            }
            """
        )
        assert [site.block for site in read_source(text, "cuda").launches] == [("64",), ("32",)]

    def test_lines_far_down(self) -> None:
        text = "\n" * 5000 + "__global__ void k(int n) {}\nvoid run() { k<<<1, 2>>>(3); }"
        model = read_source(text, "cuda")
        assert (model.kernels[0].line, model.launches[0].line) == (5001, 5002)


class TestRefusals:
    @pytest.mark.parametrize("language", LANGUAGES)
    @pytest.mark.parametrize(
        "text", ["", "void host() {}", "// __global__ void k() {}\n/* __kernel void k() {} */"]
    )
    def test_no_kernel(self, text: str, language: Language) -> None:
        with pytest.raises(BadInput, match="must define a function marked __") as caught:
            read_source(text, language, where="a.cu")
        assert caught.value.where == "a.cu"
        assert caught.value.hint

    def test_only_a_declaration(self) -> None:
        with pytest.raises(BadInput, match="only declares k"):
            read_source("__global__ void k(int* p);", "cuda")

    def test_language_of(self) -> None:
        assert [language_of(f"a/b.{e}") for e in ("cl", "cu", "cuh", "hip", "CU")] == [
            "opencl", "cuda", "cuda", "hip", "cuda",
        ]  # fmt: skip
        for name in ("kernel.py", "kernel", ""):
            with pytest.raises(BadInput, match=r"must end in \.cl"):
                language_of(name)


# Joined at random: everything the readers give a meaning to, and what could throw them off.
SOUP = st.lists(
    st.sampled_from(
        [
            *(
                "__global__",
                "__kernel",
                "__global",
                "void",
                "template",
                "typename",
                "T",
                "k",
                "p",
                "n",
                "float",
            ),
            *(
                "int",
                "const",
                "dim3",
                "extern",
                "namespace",
                "__launch_bounds__",
                "__attribute__",
                "((",
                "))",
            ),
            *(
                "reqd_work_group_size",
                "hipLaunchKernelGGL",
                "reinterpret_cast",
                "<<<",
                ">>>",
                "<",
                ">",
                "(",
                ")",
            ),
            *(
                "{",
                "}",
                "[",
                "]",
                ";",
                ",",
                ":",
                "::",
                "*",
                "&",
                "=",
                "+",
                "->",
                ".",
                "@",
                "$",
                "é",
                "1",
                "0x",
            ),
            *('"', "'", 'R"(', ')"', '"C"', "//", "/*", "*/", "#", "\\", "\n", "\n#if X\n", "\n#else\n"),
            *("\n#endif\n", "\n#if 0\n", "\n#define T float\n", "\n#define k(p) __global__ p\n", "p[n] = 1;"),
            *("__global__ void k(float* p, int n) {", "__kernel void k(global float* p) {", "{ p[0] = n; }"),
        ]
    ),
    max_size=60,
).map(" ".join)


@examples(300)
@given(text=st.one_of(st.text(), SOUP), language=st.sampled_from(LANGUAGES))
def test_any_text_is_read_or_refused(text: str, language: Language) -> None:
    try:
        model = read_source(text, language)
    except BadInput:
        return
    assert all(kernel.name and kernel.line >= 1 for kernel in model.kernels)


@examples(300)
@given(text=st.one_of(st.text(), SOUP), language=st.sampled_from(LANGUAGES))
def test_blanking_keeps_length_and_line_breaks(text: str, language: Language) -> None:
    blanked = blank_source(text, language)
    for result in (blanked.plain, blanked.code):
        assert len(result) == len(text)
        for before, after in zip(text, result, strict=True):
            assert after in (before, " ")
            assert before not in "\r\n" or after == before


@pytest.mark.few(1)
def test_conditions_nest_without_limit() -> None:
    opened = "#if X\n" * 5_000
    text = f"__global__ void k(float* p) {{ {opened} p = 1; }}"
    assert kernel(text).name == "k"


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("{" * 40_000, "nested more than 256"),
        ("(" * 40_000, "nested more than 256"),
        ("p[" * 20_000, "nested more than 256"),
        ("[" * 300 + "]" * 300, "nested more than 256"),
        ("]" * 200 + "[" * 300, "nested more than 256"),
        ("[]" * 20_000, "one after the other"),
        ("p " + "+=" * 20_000, "one after the other"),
        ("'" * 40_000, "no other half"),
        ("a<b<" * 40_000, "at most 50,000"),
        ("a" * 600_000, "longer than 500,000"),
    ],
)
@pytest.mark.few(2)
def test_what_a_grammar_takes_long_over_is_refused_before_it_is_shown(inside: str, words: str) -> None:
    text = f"__global__ void k(float* p) {{\n{inside}\n p = 1; }}"
    began = time.process_time()
    with pytest.raises(BadInput, match=words) as caught:
        read_source(text, "cuda", where="kernel.cu")
    assert caught.value.hint
    assert time.process_time() - began < 10.0


def test_brackets_as_deep_as_compilers_take_them() -> None:
    assert kernel(f"__global__ void k(float* p) {{ p[0] = {'(' * 200}1{')' * 200}; }}").name == "k"


def test_text_that_is_off_stays_off_however_deep_and_takes_no_longer() -> None:
    inside = "#if 1\n" * 20_000 + "hidden\n#else\nhidden\n" + "#endif\n" * 20_000
    text = f"#if 0\n{inside}#else\nshown\n#endif\nafter\n"
    began = time.perf_counter()
    found = blank_source(text, "opencl")
    assert found.plain.split() == ["shown", "after"]
    assert time.perf_counter() - began < 10.0
