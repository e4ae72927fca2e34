"""What reaches for the host from a kernel on the cpu device: refused before anything of it is loaded."""

from __future__ import annotations

import pytest

from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.test_kernels import device
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed
from tunesmith.plugins.cpu_device import build
from tunesmith.plugins.cpu_device.build import check_object
from tunesmith.problem.vet import vet_source

pytestmark = needs_cpu
ORIGINAL = 'extern "C" __global__ void k(float *y, int n) { if (n > 0) y[threadIdx.x] = 2.0f; }\n'
KERNEL = 'extern "C" __global__ void k(float *y, int n) {{\n  {}\n  y[threadIdx.x] = 2.0f;\n}}\n'
VARIABLE = "static volatile int a;\n"
TYPE = "typedef int F(const char *);\n"
# What it is, and the words of the build that refuses it.
ESCAPES = {
    "a function of the system": (
        TYPE + KERNEL.format('extern F system; system("id");'),
        "may not call system",
    ),
    "by a local declaration": (KERNEL.format(TYPE + 'F system; system("id");'), "may not call system"),
    "by a builtin": (KERNEL.format('__builtin_printf("%d", n);'), "may not call printf"),
    "its address alone": (
        'extern "C" int system(const char *);\n' + KERNEL.format("y[1] = (float)(long)&system;"),
        "may not call system",
    ),
    "a constructor": (
        VARIABLE + "__attribute__((constructor)) static void first() { a = 1; }\n" + KERNEL.format(""),
        "runs before it is launched",
    ),
    "a destructor": (
        VARIABLE + "__attribute__((destructor)) static void last() { a = 1; }\n" + KERNEL.format(""),
        "runs before it is launched",
    ),
    "an initialiser": (
        "struct S { volatile int a; S() { a = 1; } };\nS s;\n" + KERNEL.format("y[1] = s.a;"),
        "runs before it is launched",
    ),
    "the name of the first function": (
        'extern "C" void _init() {}\n' + KERNEL.format(""),
        "may not define _init",
    ),
    "a function that is chosen when it is loaded": (
        'extern "C" void *chosen() { return 0; }\n'
        'extern "C" int own(int) __attribute__((ifunc("chosen")));\n' + KERNEL.format("y[1] = own(n);"),
        "may not define own",
    ),
    "pasted assembly": (
        "#define QQ as##m\n" + KERNEL.format('long p; QQ("mov %%rsp, %0" : "=r"(p)); y[1] = p;'),
        "poisoned",
    ),
    "assembly pasted of arguments": (
        "#define CAT(a, b) a##b\n" + KERNEL.format('CAT(__as, m__)("nop");'),
        "poisoned",
    ),
}


def built(text: str, watched: bool = False, vetted: str = "yes") -> bytes:
    unit = Unit("k.cu", text, "cuda", (), ("k",), vetted=vetted)
    return build.build_host_library(unit, device(), watched).data


@pytest.mark.parametrize("name", ESCAPES)
def test_it_is_not_built(name: str) -> None:
    text, words = ESCAPES[name]
    with pytest.raises(BuildFailed, match=words):
        built(text)


@pytest.mark.parametrize("name", ["a function of the system", "a constructor"])
def test_nor_where_it_is_watched(name: str) -> None:
    text, words = ESCAPES[name]
    with pytest.raises(BuildFailed, match=words):
        built(text, watched=True)


def test_arithmetic_and_memory_are_built() -> None:
    body = "float a[64]; memset(a, n, sizeof a); y[1] = erff(y[2]) + powf(a[n], y[3]) + (__int128)n / 3;"
    for watched in (False, True):
        assert built(KERNEL.format(body), watched)


def test_the_users_own_may_print() -> None:
    text = "#include <stdio.h>\n" + KERNEL.format('printf("%d\\n", n);')
    assert built(text, vetted="")
    with pytest.raises(BuildFailed, match="may not call printf"):
        built(text)


def test_what_is_no_object_is_refused() -> None:
    for data in (b"", b"\x7fELF\x02\x01", b"\x7fELF\x02\x02" + bytes(100), b"\x7fELF\x02\x01" + bytes(100)):
        with pytest.raises(BuildFailed, match="no object that can be read"):
            check_object(data, watched=False)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (TYPE + KERNEL.format('extern F system; system("id");'), "declaration"),
        (KERNEL.format(TYPE + 'F system; system("id");'), "declaration"),
        ("using F = int(const char *);\n" + KERNEL.format('F system; system("id");'), "declaration"),
        ("typedef int (F)(const char *);\n" + KERNEL.format('F system; system("id");'), "declaration"),
        (KERNEL.format("extern int other; y[1] = other;"), "declaration"),
        (KERNEL.format("y[1] = *(float *)__builtin_frame_address(0);"), "name"),
        (KERNEL.format("y[1] = *(float *)__builtin_return_address(0);"), "name"),
        *(
            (f"__attribute__(({word})) __device__ void f() {{}}\n" + ORIGINAL, "attribute")
            for word in ("constructor", "destructor", 'section(".x")', 'alias("k")', 'ifunc("k")', "weak")
        ),
        ("#include <unistd.h>\n" + ORIGINAL, "include"),
    ],
)
def test_vetting_turns_it_away(text: str, rule: str) -> None:
    found = vet_source(text, ORIGINAL, "cuda")
    assert (found.rule if found else "") == rule, found


def test_vetting_takes_what_kernels_have() -> None:
    text = """
typedef float Four[4];
typedef float (*Rows)[4];
using Word = decltype(threadIdx.x);
template <int N> struct Some { typedef Four type; using Own = Some<(N > 1) ? 1 : 0>; };
typedef struct __align__(16) { float x, y; } Pair;
extern __shared__ __align__(16) float dynamic[];
""" + KERNEL.format("extern __shared__ float more[]; more[0] = 1;")
    assert vet_source(text, ORIGINAL, "cuda") is None
