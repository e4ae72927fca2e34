from __future__ import annotations

import pytest

from tests.csource.reading import helpers_needed, source_of
from tunesmith.csource.binding import BoundKernel, bind
from tunesmith.csource.inline import Inlined, inline
from tunesmith.csource.printing import print_statements


def _inlined(helpers: str, body: str, parameters: str = "float *p, const float *q, int n") -> Inlined:
    source = source_of(f"{helpers}\n__global__ void k({parameters})\n{{\n{body}\n}}\n")
    bound = bind(source, "k")
    assert isinstance(bound, BoundKernel), bound
    return inline(bound.function, source)


def _text(helpers: str, body: str, parameters: str = "float *p, const float *q, int n") -> str:
    found = _inlined(helpers, body, parameters)
    assert found.notes == ()
    return print_statements(found.function.body)


def test_a_reduction_works_on_the_variable_itself():
    helper = """__device__ float warp_sum(float x) {
        for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
        return x;
    }"""

    assert _text(helper, "float sum = q[0]; sum = warp_sum(sum); p[0] = sum;") == (
        "float sum = q[0];\n"
        "for (int step = 16; step > 0; step /= 2)\n"
        "    sum += __shfl_xor_sync(~0u, sum, step);\n"
        "p[0] = sum;\n"
    )


def test_a_copy_is_made_where_the_argument_is_another():
    helper = "__device__ float add(float x, int n) { x += __shfl_xor_sync(~0u, x, n); return x; }"

    assert _text(helper, "float x = q[0]; p[0] = add(q[1], n) + x;") == (
        "float x = q[0];\nfloat x_2 = q[1];\nx_2 += __shfl_xor_sync(~0u, x_2, n);\np[0] = x_2 + x;\n"
    )


def test_names_of_the_function_do_not_meet_those_of_the_kernel():
    helper = """__device__ void f(float *to, int i) {
        const int n = i * 2;
        for (int j = 0; j < n; j++) to[j] = i;
    }"""

    assert _text(helper, "int i = 3; for (int j = 0; j < n; j++) f(p + j, i);") == (
        "int i = 3;\n"
        "for (int j = 0; j < n; j++) {\n"
        "    float *to = p + j;\n"
        "    const int n_2 = i * 2;\n"
        "    for (int j_2 = 0; j_2 < n_2; j_2++)\n"
        "        to[j_2] = i;\n"
        "}\n"
    )


def test_an_argument_that_changes_meanwhile_is_copied():
    helper = "__device__ void f(float &a, float b) { a = b * 2; a += b; }"

    assert _text(helper, "float x = q[0]; f(x, x); p[0] = x;") == (
        "float x = q[0];\nconst float b = x;\nx = b * 2;\nx += b;\np[0] = x;\n"
    )


def test_a_reference_is_the_place_itself():
    helper = "template <typename T> __device__ void put(T &to, float x) { to = (T)x; }"

    assert _text(helper, "uint4 v; put(((__half *)&v)[3], q[0]);", "const float *q") == (
        "uint4 v;\nconst float x = q[0];\n((__half *)&v)[3] = (__half)x;\n"
    )


def test_a_function_that_is_one_expression_becomes_one():
    helper = (
        "template <typename T> __device__ float load(const T *x, int i) { return static_cast<float>(x[i]); }"
    )

    assert _text(helper, "p[0] = n > 0 ? load(q, n + 1) : 0.0f;") == (
        "p[0] = n > 0 ? (float)q[n + 1] : 0.0f;\n"
    )


def test_static_functions_of_an_operation_are_put_in_place():
    helper = """
    struct Max { static __device__ float apply(float a, float b) { return fmaxf(a, b); } };
    template <typename Op> __device__ float reduce(float x)
    {
        return Op::apply(x, __shfl_xor_sync(~0u, x, 1));
    }
    """

    assert _text(helper, "float m = q[n]; m = reduce<Max>(m); p[n] = m;") == (
        "float m = q[n];\n"
        "const float reduce_result = fmaxf(m, __shfl_xor_sync(~0u, m, 1));\n"
        "m = reduce_result;\n"
        "p[n] = m;\n"
    )


def test_early_returns_become_branches():
    helper = """
    __device__ void f(float *to, int i)
    {
        if (i < 0) return;
        to[i] = 1;
        if (i > 5) { to[0] = 2; return; }
        to[1] = 3;
    }
    __device__ float g(const float *from, int i) { if (i < 0) return 0.0f; else { return from[i]; } }
    """

    assert _text(helper, "f(p, n); p[2] = g(q, n);") == (
        "if (!(n < 0)) {\n"
        "    p[n] = 1;\n"
        "    if (n > 5)\n"
        "        p[0] = 2;\n"
        "    else\n"
        "        p[1] = 3;\n"
        "}\n"
        "float g_result;\n"
        "if (n < 0)\n"
        "    g_result = 0.0f;\n"
        "else\n"
        "    g_result = q[n];\n"
        "p[2] = g_result;\n"
    )


def test_shared_memory_of_a_function_exists_once():
    helper = """__device__ float sum(float x) {
        __shared__ float parts[32];
        parts[threadIdx.x] = x;
        __syncthreads();
        return parts[0];
    }"""

    text = _text(helper, "p[0] = sum(q[0]); p[1] = sum(q[1]);")

    assert text.startswith("__shared__ float sum_parts[32];\n")
    assert text.count("__shared__") == 1
    assert text.count("sum_parts[threadIdx.x]") == 2


def test_templates_take_their_types_from_the_arguments():
    helper = """
    template <typename T, int N> struct Other;
    template <int N, typename T> __device__ void fill(T *to, T x)
    {
        for (int i = 0; i < N; i++) to[i] = x;
        T last = x;
    }
    """

    assert "__half last = h;" in _text(
        helper, "__half h = __float2half(q[0]); fill<4>(p, h);", "__half *p, float *q"
    )


def test_overloads_are_distinguished_by_types():
    helper = """
    __device__ void put(float &to, float x) { to = x; }
    __device__ void put(__half &to, float x) { to = __float2half(x); }
    """

    assert "p[0] = __float2half(x);" in _text(helper, "put(p[0], q[0]);", "__half *p, const float *q")


_OTHER = """
__device__ float other(float x, int lane) { return __shfl_xor_sync(~0u, x, lane); }
__device__ __half2 other(__half2 x, int lane) { return __shfl_xor_sync(~0u, x, lane); }
"""


def test_an_overload_that_is_as_good_everywhere_and_better_somewhere():
    assert _text(_OTHER, "unsigned int lane = n; p[0] = other(q[0], lane);").endswith(
        "p[0] = __shfl_xor_sync(~0u, q[0], (int)lane);\n"
    )


@pytest.mark.parametrize(
    "more",
    [
        "__device__ float other(float x, short lane) { return __shfl_xor_sync(~0u, x, 2); }",
        "__device__ float other(float x, unsigned int lane, int k = 0) { return __shfl_sync(~0u, x, k); }",
    ],
)
def test_overloads_that_the_language_would_weigh_are_not_told_apart(more: str):
    found = _inlined(_OTHER + more, "unsigned int lane = n; p[0] = other(q[0], lane);")

    assert "other(q[0], lane)" in print_statements(found.function.body)
    assert "which other is called cannot be told from its arguments" in " ".join(found.notes)


def test_a_template_that_counts_is_put_in_place():
    helper = "template <class A, class B> __device__ A up(const A x, const B y) { return (x + y - 1) / y; }"

    assert _text(helper, "int m = up(n, 8); p[m] = up(q[0], 2.0f);") == (
        "int m = (n + 8 - 1) / 8;\np[m] = up(q[0], 2.0f);\n"
    )


@pytest.mark.parametrize(
    ("type_", "value"),
    [("__half", "__float2half(2.0f)"), ("__nv_bfloat16", "__float2bfloat16(2.0f)"), ("int", "2.0f")],
)
def test_what_is_written_for_one_type_goes_before_the_template(type_: str, value: str):
    helper = """
    template <typename T> __device__ void put(T *to, float x) { to[0] = x; }
    template <> __device__ void put(__half *to, float x) { to[0] = __float2half(x); }
    template <>
    __device__ void put<__nv_bfloat16>(__nv_bfloat16 *to, float x) { to[0] = __float2bfloat16(x); }
    """

    deduced = _text(helper, "put(p, 2.0f);", f"{type_} *p")
    written = _text(helper, f"put<{type_}>(p, 2.0f);", f"{type_} *p")

    assert deduced == written == f"p[0] = {value};\n"


_DECLARED = """
enum class Way { PLAIN, TWICE = 4, THRICE };
template <int Bytes, Way way = Way::PLAIN> __device__ void put(void *to, float x);
template <> __device__ void put<4>(void *to, float x) { ((float *)to)[0] = x; }
template <> __device__ void put<8>(void *to, float x) { ((double *)to)[0] = x; }
template <> __device__ void put<4, Way::THRICE>(void *to, float x) { ((float *)to)[0] = 3 * x; }
"""


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("put<4>(p, 2.0f);", "2.0f"),
        ("put<2 * 2>(p, 2.0f);", "2.0f"),
        ("put<4, Way::PLAIN>(p, 2.0f);", "2.0f"),
        ("put<4, Way::THRICE>(p, 2.0f);", "3 * 2.0f"),
    ],
)
def test_what_a_declared_template_is_written_for(call: str, value: str):
    assert _text(_DECLARED, call).endswith(f"((float *)to)[0] = {value};\n")


@pytest.mark.parametrize(
    ("more", "call"),
    [
        ("", "put<16>(p, 2.0f);"),
        ("", "put<4, Way::TWICE>(p, 2.0f);"),
        ("template <int Bytes> __device__ void put(float *to, float x);", "put<4>(p, 2.0f);"),
    ],
)
def test_what_is_written_for_other_arguments_is_not_taken(more: str, call: str):
    found = _inlined(_DECLARED + more, call)

    assert "which put is called cannot be told from its arguments" in " ".join(found.notes)


_SUMS = """
template <int width = 32> __device__ float lanes(float x) { return __shfl_xor_sync(~0u, x, width / 2); }
template <int width = 32> __device__ int lanes(int x) { return __shfl_xor_sync(~0u, x, width / 4); }
"""


def test_templates_are_distinguished_by_types_that_hang_on_no_argument():
    assert _text(_SUMS, "p[0] = lanes<16>(q[0]);") == "p[0] = __shfl_xor_sync(~0u, q[0], 8);\n"
    assert _text(_SUMS, "p[0] = lanes(n);") == "p[0] = __shfl_xor_sync(~0u, n, 8);\n"


@pytest.mark.parametrize(
    ("more", "call"),
    [
        ("", "unsigned int k = n; p[0] = lanes(k);"),
        ("template <typename T> __device__ T lanes(T x) { return __shfl_xor_sync(~0u, x, 1); }",
         "p[0] = lanes(q[0]);"),
    ],
)  # fmt: skip
def test_templates_that_the_language_would_weigh_are_not_told_apart(more: str, call: str):
    found = _inlined(_SUMS + more, call)

    assert "which lanes is called cannot be told from its arguments" in " ".join(found.notes)


def test_a_default_before_an_argument_that_is_deduced():
    helper = """
    template <int way, int width = 2 * way, typename T> __device__ T sum(T x) {
      return __shfl_xor_sync(~0u, x, width);
    }
    """

    assert _text(helper, "p[0] = sum<4>(q[0]);") == "p[0] = __shfl_xor_sync(~0u, q[0], 8);\n"


def test_arguments_that_only_the_declaration_names():
    helper = "__device__ void f(float *p, int a = 1, float b = 2.0f) { p[a] = b; }"

    assert _text(helper, "f(p); f(p, n);") == "p[1] = 2.0f;\np[n] = 2.0f;\n"


def test_objects_are_called_by_their_operator():
    helper = """
    template <typename T> struct Sum { __device__ T operator()(T a, T b) const { return a + b; } };
    template <typename T> struct Most { __device__ T operator()(T a, T b) const { return a < b ? b : a; } };
    template <typename T, template <typename> class Op> __device__ void join(T *at, T x) {
      Op<T> op;
      at[0] = op(at[0], x);
    }
    """

    assert _text(helper, "join<float, Sum>(p, q[0]);").endswith("p[0] = p[0] + x;\n")
    assert "= a < x ? x : a;" in _text(helper, "join<float, Most>(p, q[0]);")


def test_assignments_in_a_row_are_taken_one_by_one():
    assert _text("", "float s; p[n] = s = q[0] * 2.0f;") == "float s;\ns = q[0] * 2.0f;\np[n] = s;\n"
    assert _text("", "p[n] = n = 3;") == "p[n] = n = 3;\n"  # which n is meant?


def test_an_enumerator_keeps_its_enumeration():
    helper = """
    enum Way { PLAIN, TWICE };
    template <Way way> __device__ float moved(float x) { return way == TWICE ? 2 * x : x; }
    template <Way way> __device__ void put(float *to, float x) { to[0] = moved<way>(x); }
    """

    assert "moved<Way::TWICE>(" in _text(helper, "put<Way::TWICE>(p, q[0]);")


def test_assertions_that_hold_are_gone():
    helper = "template <int N> __device__ void f(float *p) { assert(N <= 64 && N % 2 == 0); p[N] = 1; }"

    assert _text(helper, "f<8>(p);") == "p[8] = 1;\n"
    assert "assert(" in _text(helper, "f<7>(p);")


def test_a_cast_tells_what_auto_points_to():
    assert "const float4 *v = (const float4 *)q;" in _text("", "auto v = (const float4 *)q; p[0] = v[0].x;")


def test_block_loads_and_stores_are_each_threads_own():
    body = """
    typedef cub::BlockLoad<float, 64, 2 * 2, cub::BLOCK_LOAD_WARP_TRANSPOSE> Load;
    typedef cub::BlockStore<float, 64, 4, cub::BLOCK_STORE_VECTORIZE> Store;
    __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; } room;
    float own[4];
    Load(room.load).Load(&(q[n]), own, n + 1, 0.5f);
    Store(room.store).Store(p, own);
    """

    assert _text("", body) == (
        "float own[4];\nconst int valid_1 = n + 1;\n"
        "#pragma unroll\nfor (int item_1 = 0; item_1 < 4; ++item_1)\n"
        "    own[item_1] = threadIdx.x * 4 + item_1 < valid_1 ? q[n + (threadIdx.x * 4 + item_1)] : 0.5f;\n"
        "#pragma unroll\nfor (int item_2 = 0; item_2 < 4; ++item_2)\n"
        "    p[threadIdx.x * 4 + item_2] = own[item_2];\n"
    )


@pytest.mark.parametrize("more", ["cub::BLOCK_LOAD_STRIPED", "cub::BLOCK_LOAD_DIRECT, 2"])
def test_block_loads_that_lie_otherwise_are_not_understood(more: str):
    body = f"typedef cub::BlockLoad<float, 64, 4, {more}> Load;\n"
    body += (
        "__shared__ typename Load::TempStorage room; float own[4]; Load(room).Load(q, own); p[0] = own[0];"
    )

    assert "Load(" in _text("", body)


def test_a_call_of_nothing_is_gone():
    helper = "__device__ void marker(int n) {\n#if 0\n__syncthreads();\n#endif\n}"

    assert _text(helper, "marker(n); p[0] = 1;") == "p[0] = 1;\n"


def test_what_is_written_for_a_result_is_told_by_it():
    helper = """
    template <typename To, typename From> __device__ To to(From x) { return To(x); }
    template <> __device__ __half to(float x) { return __float2half(x); }
    template <> __device__ __nv_bfloat16 to(float x) { return __float2bfloat16(x); }
    template <typename T> __device__ void put(T *at, float x) { at[0] = to<T>(x); }
    """

    assert "to<__half>" in _text(helper, "put(p, q[0]);", "__half *p, const float *q")


def test_constants_of_one_name_in_several_namespaces():
    helper = """
    namespace rows { constexpr int width = 8; __device__ int wide(int i) { return i * width; } }
    namespace tiles { constexpr int width = 4; __device__ int wide_tile(int i) { return i * width; } }
    """

    assert _text(helper, "p[rows::wide(n)] = rows::width; p[tiles::wide_tile(n)] = tiles::width;") == (
        "p[n * 8] = 8;\np[n * 4] = 4;\n"
    )


def test_a_copy_that_is_handed_on_by_reference_is_a_copy():
    helper = """__device__ void twice(float &a) { a = a * 2.0f; }
    __device__ float of(float a) { twice(a); return a; }"""

    assert _text(helper, "float v = q[0]; p[0] = of(v) + v;") == (
        "float v = q[0];\nfloat a = v;\na = a * 2.0f;\np[0] = a + v;\n"
    )
    assert _text(helper, "p[0] = of(q[0]);") == "float a = q[0];\na = a * 2.0f;\np[0] = a;\n"
    assert _text(helper, "float v = q[0]; v = of(v); p[0] = v;") == (
        "float v = q[0];\nv = v * 2.0f;\np[0] = v;\n"
    )


def test_a_value_nobody_takes_is_left_out():
    helper = "__device__ int f(float *to) { to[0] = 1; return 0; }"

    assert _text(helper, "f(p);") == "p[0] = 1;\n"


def test_functions_may_call_functions():
    helper = """
    __device__ void inner(float *to, float x) { to[0] = x; }
    __device__ void outer(float *to, int i) { inner(to + i, i * 2.0f); }
    """

    assert _text(helper, "outer(p, n);") == "float *to = p + n;\nconst float x = n * 2.0f;\nto[0] = x;\n"


def test_pure_functions_stay_calls_and_are_listed_in_order():
    helpers = """
    __device__ float square(float x) { return x * x; }
    __device__ float unused(float x) { return x; }
    template <typename T> __device__ float norm(T x) { return sqrtf(square(x)); }
    """
    source = source_of(f"{helpers}\n__global__ void k(float *p) {{ p[0] = norm(p[1]); }}")
    bound = bind(source, "k")
    assert isinstance(bound, BoundKernel)

    found = inline(bound.function, source)

    assert found.function.body == bound.function.body
    assert [helper.name for helper in helpers_needed(found.function, source)] == ["square", "norm"]


@pytest.mark.parametrize(
    ("helper", "body", "reason"),
    [
        ("__device__ void f(float *p) { f(p); }", "f(p);", "line 1: f stays a call: it calls itself"),
        (
            "__device__ float f(float *p) { for (;;) { if (p[0]) return 1; } return 2; }",
            "p[0] = f(p);",
            "it returns from inside a loop",
        ),
        ("__device__ int f(float *p) { p[0]++; return 1; }", "while (f(p)) p++;", "in the head of a loop"),
        ("__device__ int f(float *p) { p[0]++; return 1; }", "n = n && f(p);", "under a condition"),
        (
            "template <typename T> __device__ void f(float *p) { T x = p[0]; }",
            "f(p);",
            "its template parameter T cannot be told",
        ),
        (
            "__device__ void f(float *p, int a) { p[a] = 1; }\n"
            "__device__ void f(float *p, char a) { p[a] = 2; }",
            "f(p, unknown());",
            "which f is called cannot be told",
        ),
        ("__device__ void f(float *p, int b, int a = 1) { p[a] = b; }", "f(p);", "takes 1 arguments"),
        (
            "__device__ void f(float *p, int a = 1) { p[a] = 1; }\n"
            "__device__ void f(float *p, float a = 1) { p[0] = a; }",
            "f(p);",
            "takes 1 arguments",
        ),
        (
            "__device__ void f(float *p) { switch (n) { case 1: return; } }",
            "f(p);",
            "text that is not understood",
        ),
    ],
)
def test_what_has_to_stay_a_call_is_said(helper: str, body: str, reason: str):
    found = _inlined(helper, body)

    assert len(found.notes) == 1
    assert reason in found.notes[0]


@pytest.mark.long
def test_calls_that_double_with_each_other_end():
    helpers = "__device__ void f0(float *p) { p[0] = 1; }\n" + "\n".join(
        f"__device__ void f{n}(float *p) {{ f{n - 1}(p); f{n - 1}(p); }}" for n in range(1, 40)
    )

    assert _inlined(helpers, "f39(p);").notes != ()


def test_opencl_helpers_are_put_in_place():
    source = source_of(
        "inline float group(float x, __local float *s)"
        " { s[get_local_id(0)] = x; barrier(CLK_LOCAL_MEM_FENCE); return s[0]; }\n"
        "__kernel void k(__global float *p, __local float *s) { p[0] = group(p[1], s); }",
        "opencl",
    )
    bound = bind(source, "k")
    assert isinstance(bound, BoundKernel)

    text = print_statements(inline(bound.function, source).function.body, 0, "opencl")

    assert text == (
        "const float x = p[1];\n"
        "s[get_local_id(0)] = x;\n"
        "barrier(CLK_LOCAL_MEM_FENCE);\n"
        "const float group_result = s[0];\n"
        "p[0] = group_result;\n"
    )
