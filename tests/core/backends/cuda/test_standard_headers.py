"""Headers of the standard under NVRTC: sources that include them build, and say what the standard says."""

from __future__ import annotations

import pytest

from tests.core.backends.cuda.builds import built, refusal, unit
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda.compile import needs_host_headers
from tunesmith.backends.cuda.toolkit import pre_included, standard_headers
from tunesmith.source.preprocess import BY_HEADER

PLAIN = 'extern "C" __global__ void k(float* x) { *x = 1; }'
NAMES = (
    *(
        "stdint.h",
        "cstdint",
        "limits.h",
        "climits",
        "float.h",
        "cfloat",
        "stddef.h",
        "cstddef",
        "math.h",
        "cmath",
    ),
    *("stdbool.h", "assert.h", "cassert", "stdio.h", "cstdio", "stdlib.h", "cstdlib"),
    *("algorithm", "utility", "type_traits", "limits"),
)
FACTS = """
static_assert(sizeof(int8_t) == 1 && sizeof(uint16_t) == 2 && sizeof(std::int32_t) == 4, "");
static_assert(sizeof(uint64_t) == 8, "");
static_assert((int8_t)-1 < 0 && (uint64_t)-1 > 0 && sizeof(intptr_t) == sizeof(void *), "");
static_assert(INT8_MIN == -128 && UINT16_MAX == 65535 && INT32_MIN + 1 == -INT32_MAX, "");
static_assert(INT64_MAX == 0x7fffffffffffffffLL && UINT64_MAX == ~0ULL && INT64_C(1) << 40 > 0, "");
static_assert(INT_MAX == 0x7fffffff && INT_MIN == -INT_MAX - 1 && UINT_MAX == ~0U && CHAR_BIT == 8, "");
static_assert(LLONG_MIN < LONG_MIN + 1 && USHRT_MAX == 65535, "");
static_assert(FLT_MAX > 3.4e38f && FLT_MIN < 1.2e-38f && 1.0f + FLT_EPSILON != 1.0f, "");
static_assert(DBL_MAX > 1.7e308 && 1.0 + DBL_EPSILON != 1.0 && M_PI > 3.14159265 && M_SQRT1_2 < 0.7072, "");
static_assert(std::numeric_limits<float>::infinity() > FLT_MAX, "");
static_assert(std::numeric_limits<float>::lowest() == -FLT_MAX, "");
static_assert(std::numeric_limits<double>::quiet_NaN() != std::numeric_limits<double>::quiet_NaN(), "");
static_assert(std::numeric_limits<unsigned short>::max() == 65535, "");
static_assert(std::numeric_limits<int>::min() == INT_MIN, "");
static_assert(std::numeric_limits<long long>::digits == 63 && !std::numeric_limits<uint8_t>::is_signed, "");
static_assert(std::is_same_v<std::decay_t<const float &>, float> && !std::is_integral_v<float>, "");
static_assert(std::is_same<std::conditional_t<true, int, float>, int>::value, "");
static_assert(std::is_unsigned_v<size_t> && std::is_convertible_v<int, float>, "");
static_assert(std::max(1, 2) == 2 && std::min(1.5f, 0.5f) == 0.5f && std::clamp(5, 0, 3) == 3, "");
"""


@needs_nvrtc
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(6)
def test_each_is_found_and_may_come_twice(name: str) -> None:
    assert built(f"#include <{name}>\n#include <{name}>\n{PLAIN}", "k").data


@needs_nvrtc
def test_they_say_what_the_standard_says() -> None:
    head = "".join(f"#include <{name}>\n" for name in NAMES)
    built(f"{head}#include <cuda_fp16.h>\n{FACTS}\n{PLAIN}", "k")


@needs_nvrtc
def test_functions_of_cmath_are_cuda_s_own() -> None:
    with_std = """#include <cmath>
extern "C" __global__ void k(float* x) {
    *x = std::sqrt(std::fabs(*x)) + (std::isnan(*x) ? 1.0f : std::exp(*x)); }"""
    without = with_std.replace("std::", "").replace("#include <cmath>", "")
    assert built(with_std, "k").code_digest == built(without, "k").code_digest


@needs_nvrtc
@pytest.mark.long
def test_they_get_along_with_cuda_s_own() -> None:
    head = "#include <cuda/std/cstdint>\n#include <cuda_runtime.h>\n#include <cooperative_groups.h>\n"
    built(
        f"{head}#include <cstdint>\n#include <cmath>\n__global__ void k(int64_t* x) {{ *x = INT64_MAX; }}",
        "k",
    )


@needs_nvrtc
def test_what_nvcc_has_without_asking_is_there() -> None:
    built('extern "C" __global__ void k(float* x) { *x = fmaxf(-INFINITY, NAN) + M_PI; }', "k")


@needs_nvrtc
def test_assertions_stop_a_kernel_unless_switched_off() -> None:
    source = '#include <cassert>\nextern "C" __global__ void k(int* x) { assert(*x > 0); *x = 1; }'
    off = built(f"#define NDEBUG\n{source}", "k").code_digest
    assert off != built(source, "k").code_digest
    assert off == built('extern "C" __global__ void k(int* x) { *x = 1; }', "k").code_digest


@needs_nvrtc
def test_lines_of_faults_stay_the_author_s() -> None:
    text = refusal("#include <cfloat>\n__global__ void k(float* x) { *x = INFINITY; oops; }", "k")
    assert "kernel.cu(2)" in text


@needs_nvrtc
def test_the_author_s_own_header_comes_first() -> None:
    mine = (("cstdint", "typedef unsigned char uint32_t;"),)
    source = '#include <cstdint>\nstatic_assert(sizeof(uint32_t) == 1, "");\n' + PLAIN
    built(source, "k", headers=mine)


@needs_nvrtc
def test_what_is_not_in_them_is_nvccs() -> None:
    text = refusal(f"#include <type_traits>\ntypedef std::common_type<int, float> both;\n{PLAIN}", "k")
    assert needs_host_headers(text)


@needs_nvrtc
@pytest.mark.parametrize("first", ["", "#include <cuda_device_runtime_api.h>\n"])
def test_launches_that_overlap_build_as_with_nvcc(first: str) -> None:
    wait = "cudaGridDependencySynchronize(); cudaTriggerProgrammaticLaunchCompletion(); *x = INFINITY;"
    built(first + PLAIN.replace("*x = 1;", wait), "k", flags=("-arch=sm_90",))


def test_only_what_is_included_is_given() -> None:
    assert standard_headers(PLAIN, ()) == ()
    assert [name for name, _ in standard_headers("#include <cfloat>", ())] == ["cfloat", "float.h"]
    by_header = standard_headers('#include "mine.h"', (("mine.h", "#include <cstdint>"),))
    assert {name for name, _ in by_header} == {"cstdint", "stdint.h"}
    assert not standard_headers("// #include <cfloat>", ())


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ("x = INFINITY;", ("math.h",)),
        ("#define NAN 0\nx = NAN;", ()),
        ("x = INFINITYS;", ()),
        ("y = M_PI_2;", ("math.h",)),
        ("cudaGridDependencySynchronize(); x = NAN;", ("math.h", "cuda_device_runtime_api.h")),
    ],
)
def test_a_header_comes_first_where_its_words_are_used(source: str, first: tuple[str, ...]) -> None:
    assert pre_included(source, ()) == first
    assert unit(source, "k").headers == ()


@pytest.mark.parametrize("name", ["stdint.h", "limits.h", "float.h", "math.h"])
def test_constants_are_those_that_a_reader_of_sources_knows(name: str) -> None:
    (_, text), *_ = (one for one in standard_headers(f"#include <{name}>", ()) if one[0] == name)
    for constant, value in BY_HEADER[name].items():
        assert f"#define {constant} {value}\n" in text
