"""Names of namespaces mean what C++ finds, although the file is read without its namespaces."""

from __future__ import annotations

import pytest

from tests.csource.reading import source_of
from tunesmith.csource.binding import BoundKernel, bind
from tunesmith.csource.inline import inline
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.printing import print_statements


def _body(text: str, entry: str = "k") -> str:
    bound = bind(source_of(text), entry)
    assert isinstance(bound, BoundKernel), bound
    return print_statements(inline(bound.function, bound.source).function.body)


def _helpers(text: str) -> dict[str, str]:
    """What the file's functions give back, by the names that they have now."""
    source = source_of(text)
    names = [function.name for function in source.functions]
    assert len(set(names)) == len(names)
    return {f.name: print_statements(f.body).strip() for f in source.functions if not f.is_kernel}


def _kernel(body: str) -> str:
    return f"__global__ void k(float *p, int n) {{ {body} }}"


TWO = """
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
"""


def test_two_helpers_of_one_name():
    assert _helpers(TWO) == {
        "near_scale": "return x * 2.0f;",
        "far_scale": "return x * 3.0f;",
        "both": "return far_scale(x) + near_scale(x);",
    }
    assert _body(TWO + _kernel("p[0] = near::scale(p[1]); p[2] = ::far::scale(p[1]);")) == (
        "p[0] = near_scale(p[1]);\np[2] = far_scale(p[1]);\n"
    )


def test_a_spelling_that_is_taken():
    text = TWO + "__device__ float far_scale(float x) { return x; }"

    assert _helpers(text)["far_scale_"] == "return x * 3.0f;"


def test_an_overload_of_another_namespace_is_not_meant():
    text = """
    __device__ float f(double x) { return 1.0f; }
    namespace own { __device__ float f(float x) { return 2.0f; } }
    """

    assert (
        _body(text + _kernel("p[0] = f(p[1]); p[1] = own::f(p[1]);"))
        == "p[0] = f(p[1]);\np[1] = own_f(p[1]);\n"
    )


def test_a_name_of_the_library_in_a_namespace():
    text = "namespace own { __device__ float max(float a, float b) { return a; } }"

    assert _body(text + _kernel("p[0] = max(p[1], p[2]); p[1] = own::max(p[1], p[2]);")) == (
        "p[0] = max(p[1], p[2]);\np[1] = own_max(p[1], p[2]);\n"
    )


def test_what_is_declared_later_is_not_found():
    text = """
    __device__ float f(float x) { return 1.0f; }
    namespace own { __device__ float g(float x) { return f(x); }
    __device__ float f(float x) { return 2.0f; }
    __device__ float h(float x) { return f(x); } }
    """

    assert _helpers(text) == {
        "f": "return 1.0f;", "g": "return f(x);", "own_f": "return 2.0f;", "h": "return own_f(x);",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "call", "value"),
    [
        ("using namespace far;", "scale(p[1])", "far_scale(p[1])"),
        ("using near::scale;", "scale(p[1])", "near_scale(p[1])"),
        ("namespace f = far; namespace g = f;", "g::scale(p[1])", "far_scale(p[1])"),
    ],
)
def test_using(before: str, call: str, value: str):
    assert _body(TWO + before + _kernel(f"p[0] = {call};")) == f"p[0] = {value};\n"
    assert _body(TWO + _kernel(f"{before} p[0] = {call};")) == f"p[0] = {value};\n"


def test_a_block_sees_only_its_own_using():
    text = (
        "if (n) { using near::scale; p[0] = scale(p[1]); } else { using namespace far; p[0] = scale(p[1]); }"
    )

    assert _body(TWO + _kernel(text)) == (
        "if (n)\n    p[0] = near_scale(p[1]);\nelse\n    p[0] = far_scale(p[1]);\n"
    )


def test_what_several_namespaces_have_is_refused_with_its_line():
    text = TWO + "using namespace near;\nusing namespace far;\n" + _kernel("p[0] = scale(p[1]);")
    source = read_source_tree(text, "cuda")

    assert source.functions == ()
    assert source.unread == (
        "line 7: `scale` may be far::scale or near::scale: name the namespace that is meant",
    )


def test_what_an_argument_leads_to_is_refused_where_another_is_seen():
    text = """
    namespace own { struct V { float x; }; __device__ float f(V v) { return v.x; } }
    __device__ float f(float x) { return x; }
    """

    assert "own::f" in read_source_tree(text + _kernel("p[0] = f(p[1]);"), "cuda").unread[0]
    assert "own::f" not in str(read_source_tree(text + _kernel("p[0] = ::f(p[1]);"), "cuda").unread)


def test_an_argument_leads_to_its_namespace():
    text = "namespace own { struct V { float x; }; __device__ float f(V v) { return v.x; } }"

    assert _body(text + _kernel("own::V v; v.x = p[1]; p[0] = f(v);")).endswith("p[0] = f(v);\n")


def test_what_is_not_seen_is_not_called():
    text = "namespace own { __device__ float f(float x) { return x; } }"

    assert _body(text + _kernel("p[0] = f(p[1]);")) == "p[0] = f(p[1]);\n"  # that of a header
    assert list(_helpers(text + _kernel("p[0] = f(p[1]);"))) == ["own_f"]


def test_definitions_outside_of_their_namespace():
    text = """
    namespace own { __device__ float f(float x); __device__ float g(float x) { return 1.0f; } }
    __device__ float g(float x) { return 2.0f; }
    __device__ float own::f(float x) { return g(x); }
    """

    assert _helpers(text)["f"] == "return own_g(x);"
    assert _body(text + _kernel("p[0] = own::f(p[1]) + g(p[1]);")) == "p[0] = f(p[1]) + g(p[1]);\n"


def test_nested_inline_and_unnamed_namespaces():
    text = """
    namespace a::b { inline namespace v1 { __device__ float f(float x) { return 1.0f; } } }
    namespace a { namespace { __device__ float f(float x) { return 2.0f; } }
    __device__ float g(float x) { return f(x) + b::f(x) + a::b::v1::f(x); } }
    """

    assert _helpers(text) == {
        "a_b_f": "return 1.0f;", "a_f": "return 2.0f;", "g": "return a_f(x) + a_b_f(x) + a_b_f(x);",
    }  # fmt: skip


def test_records_and_members_of_one_name():
    text = """
    namespace a { struct V { float sum; __device__ float half_sum() { return sum * 0.5f; } };
    __device__ float sum(float x) { return x; } }
    namespace b { struct V { int sum; }; __device__ float sum(float x) { return -x; } }
    """
    body = _body(text + _kernel("a::V v; v.sum = p[1]; p[0] = v.half_sum() + b::sum(p[2]);"))

    assert body.endswith("p[0] = (float)(v * 0.5f) + b_sum(p[2]);\n")


def test_kernels_of_one_name():
    text = """
    namespace a { __global__ void k(float *p) { p[0] = 1.0f; } }
    namespace b { __global__ void k(float *p) { p[0] = 2.0f; } }
    """

    assert _body(text, "a::k") == "p[0] = 1.0f;\n"
    assert _body(text, "::b::k") == "p[0] = 2.0f;\n"


def test_template_arguments_of_one_name():
    text = """
    namespace a { struct Op { static __device__ float of(float x) { return x; } }; }
    namespace b { struct Op { static __device__ float of(float x) { return -x; } }; }
    template <typename T> __global__ void k(float *p) { p[0] = T::of(p[1]); }
    """

    assert _body(text, "k<a::Op>") == "p[0] = p[1];\n"
    assert _body(text, "k<b::Op>") == "p[0] = -p[1];\n"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "namespace cub { __device__ float mine(float x) { return x; } }",
        "namespace own { namespace cub = ::cub; }",
    ],
)
def test_names_of_a_library_stay_those_of_the_library(before: str):
    text = before + _kernel("typedef cub::BlockReduce<float, 256> Sum; p[0] = cub::Max()(p[1], p[2]);")

    assert "cub::BlockReduce<float, 256>" in source_of(text).functions[-1].text
    assert "cub::Max" in source_of(text).functions[-1].text


def test_an_alias_of_a_library():
    text = "namespace own { namespace cub = hipcub; " + _kernel("p[0] = cub::Max()(p[1], p[2]);") + " }"

    assert "hipcub::Max" in source_of(text).functions[-1].text


def test_own_names_in_a_namespace_of_a_library():
    text = "namespace cub { __device__ float mine(float x) { return -x; } }"

    assert _body(text + _kernel("p[0] = cub::mine(p[1]);")) == "p[0] = mine(p[1]);\n"


def test_counts_of_pragmas():
    text = """
    namespace a { constexpr int N = 4; }
    namespace b { constexpr int N = 8; __global__ void k(float *p) {
    #pragma unroll N
    for (int i = 0; i < N; ++i) p[i] = 0.0f; } }
    """

    assert "unroll b_N" in source_of(text).functions[-1].text


def test_an_overload_of_the_library_for_own_records():
    text = """
    namespace own { struct V { float x; }; __device__ V __ldg(const V *p) { return *p; } }
    __global__ void k(float *p, const own::V *q) { own::V v = __ldg(q); p[0] = v.x + __ldg(p + 1); }
    """

    assert [function.name for function in source_of(text).functions] == ["__ldg", "k"]
    assert "__ldg(p + 1)" in _body(text)


@pytest.mark.parametrize("how", ["using namespace own;", "using own::max;"])
def test_a_namespace_beside_the_library(how: str):
    text = "namespace own { __device__ float max(float a, float b) { return a; } }\n"
    kernel = _kernel("p[0] = max(n, 3);")

    assert "`max` may be max or own::max" in read_source_tree(text + how + kernel, "cuda").unread[0]


def test_a_name_that_only_opencl_has():
    text = "namespace own { __device__ float clamp(float a) { return a; } }\nusing namespace own;\n"

    assert _body(text + _kernel("p[0] = clamp(p[1]);")) == "p[0] = own_clamp(p[1]);\n"


def test_a_using_in_a_block_hides_the_library():
    text = "namespace own { __device__ float max(float a, float b) { return a; } }\n"

    assert _body(text + _kernel("using own::max; p[0] = max(n, 3);")) == "p[0] = own_max(n, 3);\n"
