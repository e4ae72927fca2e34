"""Flags as nvcc knows them, told to each compiler in its own words; what does not belong is refused."""

from __future__ import annotations

import pytest

from tests.core.backends.cuda.builds import BOTH, HALF, built, refusal
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda.flags import architecture_apart, read_flags
from tunesmith.backends.port import BuildFailed

ALWAYS = {"--gpu-architecture=sm_90", "--std=c++17", "--ptxas-options=-v"}


def nvrtc(*flags: str, capability: int = 90) -> set[str]:
    return set(read_flags(flags, capability).nvrtc)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("-use_fast_math",), {"--use_fast_math"}),
        (("--maxrregcount=32",), {"--maxrregcount=32"}),
        (("-maxrregcount", "32"), {"--maxrregcount=32"}),
        (("-maxrregcount 32",), {"--maxrregcount=32"}),
        (("-lineinfo",), {"--generate-line-info"}),
        (("-Xptxas", "-O2"), {"--ptxas-options=-O2"}),
        (("-Xptxas=-v,-dlcm=cg",), {"--ptxas-options=-dlcm=cg"}),
        (
            ("--ptxas-options=-O1", "-Xptxas -warn-spills"),
            {"--ptxas-options=-O1", "--ptxas-options=-warn-spills"},
        ),
        (
            ("--fmad=false", "-ftz=true", "--prec-div false"),
            {"--fmad=false", "--ftz=true", "--prec-div=false"},
        ),
        (("--expt-relaxed-constexpr",), {"--device-as-default-execution-space"}),
        (("--extended-lambda",), set()),
        (("-O3", "-g", "-Xcompiler", "-fPIC", "-t 4", "-U__CUDA_NO_HALF_OPERATORS__", "-rdc=false"), set()),
    ],
)
def test_nvrtc_gets_flags_as_it_spells_them(flags: tuple[str, ...], expected: set[str]) -> None:
    assert nvrtc(*flags) == expected | ALWAYS


def test_nvcc_gets_flags_as_written() -> None:
    given = read_flags(("--expt-relaxed-constexpr", "-extended-lambda", "-default-device"), 90).nvcc
    assert set(given) == {"--expt-relaxed-constexpr", "--extended-lambda"} | ALWAYS


def test_a_standard_that_is_given_replaces_ours() -> None:
    assert nvrtc("-std=c++20") == ALWAYS - {"--std=c++17"} | {"--std=c++20"}


@pytest.mark.parametrize(
    ("flags", "architecture"),
    [
        ((), "sm_90"),
        (("-arch=sm_90",), "sm_90"),
        (("-arch", "sm_90a"), "sm_90a"),
        (("--gpu-architecture=compute_90a", "--gpu-code=sm_90a"), "sm_90a"),
        (("-arch=native",), "sm_90"),
        (("-gencode arch=compute_90a,code=sm_90a",), "sm_90a"),
        (
            ("-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=[sm_90,compute_90]"),
            "sm_90",
        ),
    ],
)
def test_the_devices_own_architecture_may_be_named(flags: tuple[str, ...], architecture: str) -> None:
    assert read_flags(flags, 90).architecture == architecture


@pytest.mark.parametrize(
    "flags",
    [
        ("-arch=sm_80",),
        ("-arch=compute_80", "-code=sm_90"),
        ("-gencode=arch=compute_80,code=sm_80",),
        ("-gencode=arch=compute_80,code=sm_90",),
        ("-arch=all",),
    ],
)
def test_no_other_architecture_may(flags: tuple[str, ...]) -> None:
    with pytest.raises(BuildFailed, match=r"sm_90 \(or sm_90a\), got .*leave the architecture out"):
        read_flags(flags, 90)


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("-DTILE=4", "write it in `defines`"),
        ("-D TILE", "write it in `defines`"),
        ("-UTILE", "write it in `defines`"),
        ("-I/usr/include", "write it in `include`"),
        ("--include-path=x", "write it in `include`"),
        ("-G", "not a flag that shapes device code"),
        ("-rdc=true", "not a flag that shapes device code"),
        ("--options-file=x", "not a flag that shapes device code"),
        ("-o", "not a flag that shapes device code"),
        ("other.cu", "not a flag that shapes device code"),
        ("-maxrregcount=many", "got 'many'"),
        ("-maxrregcount", "takes a value, got none"),
        ("-fmad=1", "got '1'"),
        ("-Xptxas -o=x", "got '-o=x'"),
        ("-Xptxas '-v", "No closing quotation"),
    ],
)
def test_what_is_no_such_flag_is_refused_in_words(flag: str, words: str) -> None:
    with pytest.raises(BuildFailed) as caught:
        read_flags((flag,), 90)
    assert words in str(caught.value)


@pytest.mark.parametrize("compiler", BOTH)
@pytest.mark.parametrize(
    "flags",
    [
        ("-use_fast_math", "-lineinfo", "-restrict", "-extra-device-vectorization", "-w", "-std=c++20"),
        ("--expt-relaxed-constexpr", "--extended-lambda", "-default-device", "--device-int128", "-O3"),
        ("--ftz=true", "--prec-div=false", "--prec-sqrt=false", "--fmad=false", "-diag-suppress=177,20012"),
        ("-Xptxas=-O2,-dlcm=ca,-warn-spills,-w", "--maxrregcount=64", "-arch=sm_90a"),
    ],
)
@pytest.mark.few(2)
def test_compilers_take_the_flags_they_are_given(compiler: str, flags: tuple[str, ...]) -> None:
    built(HALF, "scale", compiler=compiler, flags=flags)


@needs_nvrtc
def test_flags_reach_the_compiler() -> None:
    source = (
        'extern "C" __global__ void k(float* x) { *x = *x / 3.1f + sinf(x[1]) + __CUDA_ARCH_FEAT_SM90_ALL; }'
    )
    assert "__CUDA_ARCH_FEAT_SM90_ALL" in refusal(source, "k")
    own = built(source, "k", flags=("-arch=sm_90a",))
    fast = built(source, "k", flags=("-arch=sm_90a", "-use_fast_math"))
    assert own.code_digest != fast.code_digest


@needs_nvrtc
def test_unmarked_constexpr_functions_are_for_the_device_where_the_flag_says_so() -> None:
    source = (
        'constexpr int next(int x) { return x + 1; }\nextern "C" __global__ void k(int* x) { *x = next(*x); }'
    )
    assert "host functions" in refusal(source, "k")
    built(source, "k", flags=("--expt-relaxed-constexpr",))


@pytest.mark.parametrize(
    ("flags", "left", "suffix"),
    [
        (("-use_fast_math", "-arch=sm_90a"), ["-use_fast_math"], "a"),
        (("-gencode arch=compute_90a,code=sm_90a", "-maxrregcount 32"), ["-maxrregcount", "32"], "a"),
        (("-gencode", "arch=compute_100a,code=sm_100a", "--gpu-architecture", "sm_90"), [], ""),
        (("--fmad=false",), ["--fmad=false"], ""),
        (("-arch",), [], ""),
    ],
)
def test_the_architecture_stands_apart(flags: tuple[str, ...], left: list[str], suffix: str) -> None:
    assert architecture_apart(flags, 90) == (left, suffix)
