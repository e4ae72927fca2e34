"""A stranger's text has no condition left when it is judged: what compilers decide in their own way reaches
none of them. Each attack was read otherwise by a compiler than by us, or delivered as it was written."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.running import EXAMPLES
from tests.samples import a_device
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import vet_source, vetted_text
from tunesmith.problem.vetting.decided import decide_source, settled_text, target_of
from tunesmith.problem.vetting.device_words import Refusal
from tunesmith.session.problems import load_problem
from tunesmith.source.lex import lex
from tunesmith.source.macros import ConditionReader
from tunesmith.source.tree import Unreadable

OPENCL = "__kernel void k(__global float *x, int n) { x[0] = 1.0f; }\n"
CUDA = "__global__ void k(float *x, int n) { x[0] = 1.0f; }\n"
SYSTEM_CALL = '__asm__ volatile("syscall");'
# Where the compiler takes the branch, or may; what we once took it for does not matter any more.
CONDITIONS = [
    "-1 > 0u",
    "(1 ? -1 : 0u) > 0",
    "(0 ? 0u : -1) > 0",
    "1 << 63",
    "(1 << 63) < 0",
    "(1 << 63) >> 63 == -1",
    "~0u > 0xffffffff",
    "-1 / 2u > 5",
    "(-1 >> 1) > 0 || -1u >> 1 > 0",
    "0x8000000000000000 > 0 && -0x8000000000000000 > 0",
    "9223372036854775807 + 1 < 0",
    "-2 % 3u == 2",
    "2u - 3 > 1",
    "(2 || 1/0)",
    "1 ? 1 : 1 / 0",
    "0 && (1 / 0) || 1",
    "-9223372036854775807 - 2 > 0",
    "unix",
    "linux",
    "defined(unix) && defined(linux)",
    "defined POCL_DEVICE_ADDRESS_BITS",
    "__LINE__ > 6",
    "__LINE__ % 2",
    "__COUNTER__ == 0",
    "__INCLUDE_LEVEL__ == 0",
    "__POCL__",
    "__clang_major__ > 3",
    "__GNUC__",
    "__x86_64__ || __aarch64__",
    "__has_builtin(__builtin_trap)",
    "__has_attribute(aligned)",
    "__has_extension(c_thread_local)",
    "__is_identifier(n)",
    "'\\377' < 0",
    "'ab' == 24930",
    "L'a'",
    "__SIZEOF_LONG__ == 8",
    "__OPTIMIZE__",
    "__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__",
    "kernel_exec",
    "INT_MAX > 5",
    "CHAR_BIT == 8",
    "(1, 1)",
    "1 <=> 1",
    "18446744073709551615 > 0",
    "18446744073709551616 == 0",
    "1.0",
    "1 << 64",
    "1 << -1",
    "LLVM_14_0",
]
# Lines of the preprocessor around a word that must not be reached.
WRAPPED = {
    "if": "#if {0}\n{1}\n#endif\n",
    "else": "#if !({0})\n#else\n{1}\n#endif\n",
    "elif": "#if 0\n#elif {0}\n{1}\n#endif\n",
    "by a macro": "#define ASK ({0})\n#if ASK\n{1}\n#endif\n",
    "after #line": "#line 7\n#if {0}\n{1}\n#endif\n",
}
OTHERS = {
    "ifdef unix": "#ifdef unix\n{0}\n#endif",
    "ifndef of a name that is": "#ifndef linux\n#else\n{0}\n#endif",
    "ifdef POCL": "#ifdef POCL_DEVICE_ADDRESS_BITS\n{0}\n#endif",
    "defined made by a macro": "#define D defined(__POCL__)\n#if D\n{0}\n#endif",
    "defined by an argument": "#define D(a) defined(a)\n#if D(linux)\n{0}\n#endif",
    "pasted word": '#define J(a, b) a##b\nJ(__as, m__)("syscall");',
    "pasted through empty": '#define J(a, b, c) a##b##c\nJ(__as, , m__)("syscall");',
    "pasted name in a condition": "#define J(a, b) a##b\n#if J(li, nux)\n{0}\n#endif",
    "stringised": "#define S(a) #a\n__asm__(S(syscall));",
    "macro of a macro": '#define A __asm__\n#define B A\nB("syscall");',
    "call that goes on behind a macro": '#define F G\n#define G(a) __asm__ a\nF(("syscall"));',
    "comment out of two macros": "#define S /\n#define T *\n S T {0} T S",
    "comment by a slash and a pointer": "#define P *x\nfloat y = n /P; {0} /**/",
    "splice in a condition": "#if un\\\nix\n{0}\n#endif",
    "splice with blanks": "#if un\\  \nix\n{0}\n#endif",
    "splice at the end of a comment": "// \\\n#if 0\n{0}\n//\\\n#endif",
    "directive by a macro": "#define H #\nH if 1\n{0}\nH endif",
    "pragma operator": '_Pragma("clang diagnostic push") {0}',
    "pragma with assembler": "#pragma asm\nsyscall\n#pragma endasm",
    "pragma that defines": '#pragma push_macro("n")\n#if 1 > 0\n{0}\n#endif',
    "pragma by a macro": '#define P _Pragma("redefine_extname k system")\nP',
    "__VA_OPT__": "#define V(...) __VA_OPT__({0})\nV(1)",
    "rest of the arguments": '#define V(a, ...) a __VA_ARGS__\nV(__asm__, ("syscall"));',
    "undefined in between": "#undef linux\n#define linux 1\n#if linux\n{0}\n#endif",
    "a name of the compiler's as a value": "if (linux) {{ {0} }}",
    "a line as a value": "if (__LINE__ > 6) {{ {0} }}",
    "a counter as a value": "if (__COUNTER__) {{ {0} }}",
    "asm": 'asm("syscall");',
    "asm goto": 'asm goto("syscall" :::: out); out:;',
    "gnu spelling": '__asm("syscall");',
    "universal character": '\\u005f_asm__("syscall");',
    "label of assembler": 'int y __asm__("system");',
    "unbalanced": "#if 1\n{0}",
    "elif after else": "#if 0\n#else\n{0}\n#elif 1\n#endif",
    "elifdef": "#if 0\n#elifdef unix\n{0}\n#endif",
}
FOR_CUDA = {
    "NVRTC": "#ifdef __CUDACC_RTC__\n{0}\n#endif",
    "not NVRTC": "#ifndef __CUDACC_RTC__\n{0}\n#endif",
    "nvcc": "#ifdef __NVCC__\n{0}\n#endif",
    "architecture below zero": "#if -__CUDA_ARCH__ > 0u\n{0}\n#endif",
    "architecture shifted": "#if (__CUDA_ARCH__ << 54) < 0 || (__CUDA_ARCH__ << 60) == 0\n{0}\n#endif",
    "another architecture": "#if __CUDA_ARCH__ != 900\n{0}\n#endif",
    "host": "#ifndef __CUDA_ARCH__\n{0}\n#endif",
    "GNU": "#if __GNUC__\n{0}\n#endif",
    "EDG": "#ifdef __EDG__\n{0}\n#endif",
    "version": "#if __CUDACC_VER_MAJOR__ > 12\n{0}\n#endif",
    "build": "#if __CUDACC_VER_BUILD__ % 2\n{0}\n#endif",
    "header": "#if CUDART_VERSION > 13000\n{0}\n#endif",
    "built-in": "#if __has_builtin(__builtin_trap)\n{0}\n#endif",
    "feature": "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n{0}\n#endif",
    "sign of a character": "#if '\\377' < 0\n{0}\n#endif",
    "overflow": "#if 0x7fffffffffffffff + 1 < 0\n{0}\n#endif",
    "alternative word": "#if not 0\n{0}\n#endif",
    "digits apart": "#if 1'000 == 1000 && -1 > 0u\n{0}\n#endif",
    "splices": "#if 1 \\\n && -1 > \\\n0u\n{0}\n#endif",
    "__VA_OPT__": "#define V(...) __VA_OPT__({0})\nV(1)",
    "standard": "#if __cplusplus > 201703L\n{0}\n#endif",
    "value": "if (__CUDACC_VER_BUILD__ > 80) {{ {0} }}",
    "value of a header": "if (CUDART_VERSION > 13000) {{ {0} }}",
    "assert": "assert(({0} true));",
    "date": "if (__DATE__[0] == 'N') {{ {0} }}",
    "file": "if (__FILE__[0] == 'k') {{ {0} }}",
}  # fmt: skip


@cache
def problem(language: str) -> Problem:
    folder = EXAMPLES / ("opencl/rmsnorm" if language == "opencl" else "cuda/silu_and_mul")
    return load_problem(folder)[0]


def variant(language: str, text: str, device: Device | None = None) -> Variant:
    """As it is built, judged and delivered."""
    own = problem(language)
    launch = "\n".join(f"// {line}" for line in ('grid = ["rows"]', 'block = ["N"]'))
    if language == "cuda":
        launch = launch.replace("rows", "tokens")
    head = f"// /// tunesmith\n// [params]\n// N = [32, 64]\n// [default]\n// N = 32\n// [launch]\n{launch}"
    text = f"{head}\n// ///\n{text}"
    template = replace(parse_template(text, path="t", problem=own), is_foreign=True)
    template = template.on(device) if device is not None else template
    return template.render(own, template.default, dict(own.workloads[0].sizes))


def is_kept_out(source: str, language: str, word: str) -> bool:
    """Refused, or judged and delivered without that word, with nothing left to decide."""
    original = OPENCL if language == "opencl" else CUDA
    found = vetted_text(source, original, language)
    if isinstance(found, Refusal):
        assert 0 <= found.line <= source.count("\n") + 8
        return True
    assert vetted_text(found, original, language) == found
    left = [token.text.split()[0] for token in lex(found) if token.kind == "directive"]
    return word not in found and not {*left} - {"pragma", "include", "line"}


@pytest.mark.parametrize("language", ["opencl", "cuda"])
@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.few(4)
def test_a_condition_hides_nothing(wrapped: str, language: str) -> None:
    inside, word = (f"void f(void) {{ {SYSTEM_CALL} }}", "asm")
    if language == "cuda":
        inside, word = "__device__ void f(float *x) { x[0] = clock64(); }", "clock"
    for condition in CONDITIONS:
        text = WRAPPED[wrapped].format(condition, inside)
        assert is_kept_out(text + (OPENCL if language == "opencl" else CUDA), language, word), condition


@pytest.mark.parametrize("name", OTHERS)
def test_nor_do_other_lines(name: str) -> None:
    inside = OTHERS[name].format(SYSTEM_CALL)
    assert is_kept_out(OPENCL.replace("{ x", f"{{\n{inside}\nx"), "opencl", "asm")


@pytest.mark.parametrize("name", FOR_CUDA)
def test_nor_in_cuda(name: str) -> None:
    inside = FOR_CUDA[name].format("n = clock64();")
    assert is_kept_out(CUDA.replace("{ x", f"{{\n{inside}\nx"), "cuda", "clock")


KERNEL = """#define WIDE (N / 32)
#if WIDE > 1
// Two at a time.
#define STEP 2
#else
#define STEP 1
#endif
/* Each work-item
   takes one row. */
__kernel void rmsnorm(__global float *out, __global const float *input, __global const float *weight,
                      float eps, int rows, int d)
{
    int row = get_global_id(0) * STEP;  // of the input
#pragma unroll STEP
    for (int i = 0; i < d; i++)
        out[row * d + i] = input[row * d + i] * weight[i] /WIDE;
}
"""


def test_what_is_delivered_reads_as_it_was_written_and_has_nothing_to_decide() -> None:
    found = variant("opencl", KERNEL)
    assert not found.refused
    assert (
        found.source
        == """// rmsnorm, tuned by Tunesmith: N=32
// launch rmsnorm: grid (rows), block (N); arguments out, input, weight, eps, rows, d
#line 1 "t"

#line 17
// Each work-item
// takes one row.
__kernel void rmsnorm(__global float *out, __global const float *input, __global const float *weight,
                      float eps, int rows, int d)
{
    int row = get_global_id(0) * 1;  // of the input
#pragma unroll 1
    for (int i = 0; i < d; i++)
        out[row * d + i] = input[row * d + i] * weight[i] /(32 / 32);
}
""".replace("block (N)", "block (32)")
    )
    assert vetted_text(found.source, *found.made_from[:1], "opencl") == found.source


@pytest.mark.parametrize(("condition", "holds"), [
    ("-1 > 0u", True), ("(1 ? -1 : 0u) > 0", True), ("1 << 63", True), ("(1 << 63) < 0", True),
    ("-1 / 2u > 5", True), ("-7 / 2 == -3 && -7 % 2 == -1", True), ("-1 >> 1 == -1", True),
    ("~0u == 0xffffffffffffffff", True), ("0 && 1 / 0", False), ("1 ? 2 : 1 / 0", True),
    ("0xffffffffffffffff == -1u", True), ("9223372036854775807 + 1 < 0", True), ("!1u - 1 < 0", True),
    ("(0u < -1) - 2 < 0", True), ("-1 << 1 == -2", True), ("1u << 63 > 0", True),
])  # fmt: skip
def test_numbers_have_the_width_and_sign_of_c(condition: str, holds: bool) -> None:
    assert (ConditionReader(lex(condition)).value() != 0) is holds


@pytest.mark.parametrize("condition", [
    "1 / 0", "1 % 0", "1 << 64", "1 >> -1", "1 || (1, 2)", "18446744073709551616", "9223372036854775808",
    "1.5", "'ab'", "(1 << 63) / -1", "x(1)", "1 2", "",
])  # fmt: skip
def test_what_compilers_may_read_otherwise_has_no_value(condition: str) -> None:
    with pytest.raises(Unreadable):
        ConditionReader(lex(condition)).value()


@pytest.mark.parametrize(("capability", "path"), [(75, "old"), (80, "new"), (90, "new")])
def test_an_architecture_decides_what_asks_for_it(capability: int, path: str) -> None:
    branches = "\nint path_new;\n#else\nint path_old;\n#endif\n"
    condition = f"#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800{branches}"
    device = a_device(capability=capability)
    found = variant("cuda", condition + problem("cuda").kernel.text, device)
    assert not found.refused
    assert f"path_{path}" in found.source
    assert "#if" not in found.source


@pytest.mark.parametrize("extensions", [(), ("cl_khr_fp16",)])
def test_an_extension_decides_what_asks_for_it(extensions: tuple[str, ...]) -> None:
    pragma = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable"
    device = replace(a_device(), extensions=extensions)
    found = variant("opencl", f"#ifdef cl_khr_fp16\n{pragma}\n#endif\n{KERNEL}", device)
    assert (pragma in found.source) is bool(extensions)


def test_what_pocl_tells_of_itself_is_told_for_it() -> None:
    text = "#if defined(__has_builtin) && __has_builtin(__builtin_nontemporal_store)\nint told;\n#endif\n"
    targets = [
        target_of("opencl", replace(a_device(), driver=driver))
        for driver in ("OpenCL 3.0 PoCL 5", "OpenCL 3.0 other")
    ]
    found = [decide_source(text, "", "opencl", target=one) for one in targets]
    assert ["told" in str(one) for one in found] == [True, False]


def test_a_template_that_leaves_asks_for_its_own_parameters_alone() -> None:
    text = """#if N > 2 && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
int a = __CUDA_ARCH__;  // __CUDA_ARCH__
#elif defined(USE_ROCM)
#endif
#pragma unroll
"""
    device = a_device(capability=80)
    found = settled_text(text, target_of("cuda", device))
    assert (
        found
        == """#define TARGET_CUDA_ARCH 800
#if N > 2 && defined(TARGET_CUDA_ARCH) && TARGET_CUDA_ARCH >= 800
int a = TARGET_CUDA_ARCH;  // __CUDA_ARCH__
#elif defined(TARGET_USE_ROCM)
#endif
#pragma unroll
"""
    )
    before = decide_source(f"#define N 4\n{text}", "", "cuda", target=target_of("cuda", device))
    assert str(decide_source(f"#define N 4\n{found}", "", "cuda")).split() == str(before).split()


HEADER = """#ifndef OWN_H
#define OWN_H
#include "more.h"
#define TWICE(a) ((a) + (a))
#define JOIN(a, b) a##b
#define SELF(a) SELF((a) + 1)
#endif
"""


@pytest.mark.parametrize(("code", "expected"), [
    ("x[0] = TWICE(2);", "x[0] = ((2) + (2));"),
    ("x[0] = MORE;", "x[0] = 7;"),
    ("#if MORE == 7\nx[0] = 8;\n#endif", "x[0] = 8;"),
    ("JOIN(as, m)(\"trap;\");", "asm(\"trap;\");"),
    ("x[0] = TWICE;", "x[0] = TWICE;"),
])  # fmt: skip
def test_macros_of_the_users_headers_are_put_in_place(code: str, expected: str) -> None:
    own = f'#include "own.h"\n{CUDA}'
    headers = (("own.h", HEADER), ("more.h", "#define MORE 7\n"))
    text = decide_source(own.replace("{ x", f"{{\n{code}\nx"), own, "cuda", headers)
    assert expected in str(text)
    assert '#include "own.h"' in str(text)


def test_what_the_users_headers_ask_for_stays_defined_and_writes_nothing_there() -> None:
    header = "__device__ float f(float a) { if (a > DIM) return T(a); return a * OTHER; }\n"
    own = f'#define T (float)\n#include "own.h"\n{CUDA}'
    defines = (
        '#define DIM 4\n#define T (float)\n#define OTHER 1; asm("trap;")\n#define UNUSED 7\n#define if asm\n'
    )
    text = decide_source(f'{defines}#include "own.h"\n{CUDA}', own, "cuda", (("own.h", header),))
    lines = [line for line in str(text).splitlines() if line.startswith("#")]
    assert lines == ["#define DIM 4", "#define T (float)", '#include "own.h"']
    assert vetted_text(str(text), own, "cuda", (header,), (), (), (("own.h", header),)) == text


@pytest.mark.parametrize("code", ["x[0] = SELF(2);", 'JOIN(as, m)("trap;");', "x[0] = MORE;"])
def test_none_is_left_that_a_compiler_would_expand_again(code: str) -> None:
    own = f'#include "own.h"\n{CUDA}'
    found = vetted_text(own.replace("{ x", f"{{\n{code}\nx"), own, "cuda", (HEADER, "#define MORE 7\n"))
    assert isinstance(found, Refusal)
    assert (found.rule, found.line) in (("name", 3), ("call", 3))


def test_a_line_that_counts_too_far_is_refused_and_raises_nothing() -> None:
    found = vet_source(f"#line {'7' * 5000}\n{OPENCL}", OPENCL, "opencl")
    assert found is not None
    assert (found.rule, found.line) == ("directive", 1)
