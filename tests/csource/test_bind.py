from __future__ import annotations

import pytest

from tests.csource.reading import source_of
from tunesmith.csource.binding import BoundKernel, bind
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.printing import print_function, print_statements
from tunesmith.csource.specialise import split_entry

_TEMPLATE = """
#define WARP 32
constexpr int ROWS = 2;
constexpr int ITEMS = ROWS * WARP;
typedef float real;
using Vec = float4;
template <typename T, unsigned THREADS, int PER = 16 / sizeof(T), bool CHECK = false>
__global__ void kernel(const T *in, real *out, int n)
{
    using Local = Vec;
    constexpr int PACK = sizeof(Local) / sizeof(T);
    __shared__ T tile[ITEMS][PACK + 1];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int STEP = PER * 2;
    if constexpr (CHECK)
        if (i >= n) return;
    Local v = reinterpret_cast<const Local *>(in)[i];
    float w[STEP];
    for (int k = 0; k < PACK; k++)
        out[i * PACK + k] = static_cast<T>(helper<T, PACK>(v.x, sizeof(v))) + ROWS;
}
"""


def _bound(text: str, entry: str) -> str:
    found = bind(source_of(text), entry)
    assert isinstance(found, BoundKernel), found
    return print_function(found.function)


def test_template_arguments_constants_and_types_are_filled_in():
    assert (
        _bound(_TEMPLATE, "kernel<__half, 128>")
        == """\
__global__ void kernel(const __half *in, float *out, int n)
{
    __shared__ __half tile[64][9];
    const int i = blockIdx.x * 128u + threadIdx.x;
    float4 v = ((const float4 *)in)[i];
    float w[16];
    for (int k = 0; k < 8; k++)
        out[i * 8 + k] = (__half)helper<__half, 8>(v.x, 16) + 2;
}
"""
    )


def test_given_arguments_win_over_defaults():
    found = bind(source_of(_TEMPLATE), "ns::kernel<float, 2 * 32, 3, true>")

    assert isinstance(found, BoundKernel)
    assert found.arguments == (("T", "float"), ("THREADS", "2 * 32"), ("PER", "3"), ("CHECK", "true"))
    text = print_function(found.function)
    assert "if (i >= n)\n        return;" in text
    assert "blockIdx.x * 64u" in text
    assert "float w[6];" in text


@pytest.mark.parametrize(
    ("entry", "name", "texts"),
    [
        ("k", "k", ()),
        ("a::b::k< float >", "k", ("float",)),
        ("k<Pair<int, 2>, unsigned int, (1, 2)>", "k", ("Pair<int, 2>", "unsigned int", "(1, 2)")),
    ],
)
def test_an_entry_is_taken_apart(entry: str, name: str, texts: tuple[str, ...]):
    assert split_entry(entry) == (name, texts)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("other", "the source has no kernel other; it has kernel"),
        ("kernel", "the kernel kernel takes 4 template arguments, and the entry kernel gives 0"),
        ("kernel<a, b, c, d, e>", "gives 5"),
        ("kernel<float, {d} / 2>", "computes with a size"),
        ("kernel<float, ]>", "could not be bound"),
    ],
)
def test_an_entry_that_cannot_be_followed_is_explained(entry: str, reason: str):
    found = bind(source_of(_TEMPLATE), entry)

    assert isinstance(found, str)
    assert reason in found


def test_the_reason_why_a_kernel_was_not_read_is_passed_on():
    source = read_source_tree("__global__ void k()\n{\n    int x = ;\n}\n", "cuda")

    assert bind(source, "k") == source.unread[0]


def test_overloads_with_different_templates_are_distinguished():
    text = """
    template <typename T> __global__ void k(T *p) { p[0] = 1; }
    template <typename T, int N> __global__ void k(T *p) { p[0] = N; }
    """

    assert "p[0] = 1;" in _bound(text, "k<float>")
    assert "p[0] = 7;" in _bound(text, "k<float, 7>")


def test_names_of_the_function_hide_the_file():
    text = """
    constexpr int N = 4;
    __global__ void k(float *p, int M) { for (int N = 0; N < M; N++) p[N] = 1; p[N] = 2; }
    """

    assert "for (int N = 0; N < M; N++)" in _bound(text, "k")
    assert "p[4] = 2;" in _bound(text, "k")


def test_shared_memory_of_the_file_is_declared_in_the_kernel_that_uses_it():
    text = "extern __shared__ float pool[];\n__global__ void k(float *p) { p[0] = pool[0]; }"

    assert "    extern __shared__ float pool[];\n    p[0] = pool[0];" in _bound(text, "k")


def test_a_type_may_be_asked_for():
    text = """
    template <typename T> __global__ void k(T *p)
    {
        if constexpr (std::is_same<T, float>::value) p[0] = 1; else p[0] = 2;
        if constexpr (std::is_same_v<T, __half>) p[1] = 1; else p[1] = 2;
    }
    """

    assert _bound(text, "k<float>").count("p[0] = 1;") == 1
    assert "p[1] = 2;" in _bound(text, "k<float>")
    assert "p[1] = 1;" in _bound(text, "k<half>")


def test_opencl_kernels_are_bound_by_name():
    source = source_of("#define N 4\n__kernel void k(__global float *p) { p[N] = 1; }", "opencl")

    found = bind(source, "k")

    assert isinstance(found, BoundKernel)
    assert "p[4] = 1;" in print_function(found.function, "opencl")


def test_a_template_argument_may_be_a_function():
    text = """
    template <typename T> __device__ T twice(const T &x) { return x + x; }
    template <typename T, T (*F)(const T &)> __device__ T both(T x, T y) { return F(x) * F(y); }
    template <typename T, T (*F)(const T &)>
    __global__ void k(T *p) { p[0] = F(p[1]) + both<T, F>(p[2], p[3]); }
    """

    assert "p[0] = twice<float>(p[1]) + both<float, twice<float>>(p[2], p[3]);" in _bound(
        text, "k<float, twice<float>>"
    )


def test_a_local_type_of_a_library_is_written_out():
    text = """
    template <int N> __global__ void k(float *p)
    {
        typedef cub::BlockReduce<float, N> BlockReduce;
        __shared__ typename BlockReduce::TempStorage temp;
        p[0] = BlockReduce(temp).Sum(p[1]);
        float x[N];
        int count = sizeof(x) / sizeof(x[0]);
    }
    """

    bound = _bound(text, "k<8>")

    assert "typename cub::BlockReduce<float, 8>::TempStorage temp;" in bound
    assert "p[0] = cub::BlockReduce<float, 8>(temp).Sum(p[1]);" in bound
    assert "int count = 8;" in bound


@pytest.mark.parametrize(
    ("enum", "entry"),
    [
        ("enum Mode { SLOW, FAST = 3 };", "k<FAST>"),
        ("typedef enum Mode { SLOW = 1, MEDIUM, FAST } Mode;", "k<FAST>"),
        ("namespace of { enum class Mode : int { SLOW = 1 << 1, FAST }; } using of::Mode;",
         "k<of::Mode::FAST>"),
    ],
)  # fmt: skip
def test_enumerators_as_template_arguments(enum: str, entry: str):
    text = f"{enum}\ntemplate <Mode mode> __global__ void k(int *p) {{ if (mode > 2) p[0] = (int)mode; }}"
    found = bind(read_source_tree(text, "cuda"), entry)
    assert isinstance(found, BoundKernel), found
    assert "if" not in print_statements(found.function.body)


_WRITTEN = """
template <typename T, int N = 4> __global__ void k(T *p) { p[0] = N; }
template <> __global__ void k<float>(float *p) { p[0] = 1.0f; }
template <> __global__ void k<__half, 2 + 6>(__half *p) { p[0] = 2.0f; }
"""


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("k<int>", "4"), ("k<float>", "1.0f"), ("k<float, 4>", "1.0f"), ("k<float, 8>", "8"),
        ("k<__half>", "4"), ("k<__half, 8>", "2.0f"),
    ],
)  # fmt: skip
def test_what_is_written_for_some_arguments_goes_before_the_template(entry: str, value: str):
    found = bind(read_source_tree(_WRITTEN, "cuda"), entry)
    assert isinstance(found, BoundKernel)
    assert print_statements(found.function.body) == f"p[0] = {value};\n"


def test_what_is_written_for_arguments_of_a_declared_template():
    text = _WRITTEN.replace("{ p[0] = N; }", ";")
    found = bind(read_source_tree(text, "cuda"), "k<float>")
    assert isinstance(found, BoundKernel)
    assert print_statements(found.function.body) == "p[0] = 1.0f;\n"
    assert isinstance(bind(read_source_tree(text, "cuda"), "k<int>"), str)


_SWITCH = """
template <int MODE> __global__ void k(int *p) {
  switch (MODE) {
    case 1:
    case 2: p[0] = 12; break;
    case 3: { p[0] = 3; if (p[1]) return; for (int i = 0; i < 2; ++i) { if (p[i]) break; } break; }
    default: p[0] = 0;
  }
}
"""


@pytest.mark.parametrize(("mode", "value"), [("1", "12"), ("2", "12"), ("3", "3"), ("7", "0")])
def test_a_switch_that_a_template_argument_decides(mode: str, value: str):
    found = bind(read_source_tree(_SWITCH, "cuda"), f"k<{mode}>")
    assert isinstance(found, BoundKernel)
    text = print_statements(found.function.body)
    assert text.strip(" {\n").startswith(f"p[0] = {value};")
    assert "switch" not in text


@pytest.mark.parametrize(
    "other",
    [
        ("p[0] = 12; break;", "p[0] = 12;"),  # goes on into the next case
        ("p[0] = 12; break;", "if (p[1]) break; p[0] = 12; break;"),
        ("switch (MODE)", "switch (p[0])"),
        ("default: p[0] = 0;", "default: p[0] = 0; case 4: p[0] = 4;"),
    ],
)
def test_a_switch_that_stays_text(other: tuple[str, str]):
    found = bind(read_source_tree(_SWITCH.replace(*other), "cuda"), "k<3>")
    assert isinstance(found, BoundKernel)
    assert "switch" in print_statements(found.function.body)


@pytest.mark.parametrize(("type_", "value"), [("float", "1"), ("int", "1"), ("double", "2")])
def test_a_constant_that_asks_for_one_of_several_types(type_: str, value: str):
    text = """
    template <typename T, typename... Ts> inline constexpr bool is_any = (std::is_same_v<T, Ts> || ...);
    template <typename T> __global__ void k(T *p) {
      if constexpr (is_any<T, float, int>) { p[0] = 1; } else { p[0] = 2; }
    }
    """
    found = bind(read_source_tree(text, "cuda"), f"k<{type_}>")
    assert isinstance(found, BoundKernel)
    assert print_statements(found.function.body).strip(" {}\n") == f"p[0] = {value};"


def test_a_constant_that_asks_for_something_else_is_not_understood():
    text = """
    template <typename T, typename... Ts> inline constexpr bool is_any = (std::is_same_v<T, Ts> && ...);
    template <typename T> __global__ void k(T *p) { if constexpr (is_any<T, float, int>) { p[0] = 1; } }
    """
    found = bind(read_source_tree(text, "cuda"), "k<float>")
    assert isinstance(found, BoundKernel)
    assert "is_any" in print_statements(found.function.body)


def test_types_with_products_in_their_arguments_and_members_behind_them():
    text = """
    template <typename T, int N> struct Wide { using one = T; T all[N]; };
    template <typename T, int N> __global__ void k(T *p) {
      using Pack = Wide<T, 2 * N>;
      typedef typename Wide<T, N * N>::one One;
      p[0] = (One)sizeof(Pack);
    }
    """
    found = bind(read_source_tree(text, "cuda"), "k<float, 2>")
    assert isinstance(found, BoundKernel)
    assert "Wide<float, 2*2>::one" in print_statements(found.function.body).replace(" * ", "*")
