"""Assembly that says what the language says as well, and assembly that only looks like it."""

from __future__ import annotations

import pytest

from tests.csource.reading import statements_of
from tunesmith.csource.nodes import Verbatim
from tunesmith.csource.printing import print_statements


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(y) : "f"(x), "r"(d));',
         "y = __shfl_xor_sync(0xffffffffu, x, d);\n"),
        ('asm("shfl.sync.down.b32 %0, %1, %2, 0x101f, %3;" : "=r"(y) : "r"(x), "r"(1), "r"(m));',
         "y = __shfl_down_sync(m, x, 1, 16);\n"),
        ('asm("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(y) : "l"(p));',
         "y = ((const float *)p)[0];\n"),
        ('uint4 v; asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"'
         ' : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));',
         "uint4 v;\nv = ((const uint4 *)p)[0];\n"),
        ('asm volatile("st.global.v2.f32 [%0], {%1, %2};" :: "l"(p), "f"(a), "f"(b));',
         "((float2 *)p)[0] = make_float2(a, b);\n"),
        ('asm volatile("st.global.wb.v2.u32 [%0], {%1, %2};" :: "l"(p), "r"(a), "r"(b) : "memory");',
         "((uint2 *)p)[0] = make_uint2(a, b);\n"),
        ('unsigned v; asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0;\\n"'
         ' "@p ld.global.u32 %0, [%1]; }" : "=r"(v) : "l"(q), "r"((int)ok));',
         "unsigned int v;\nv = 0;\nif ((int)ok != 0)\n    v = ((const unsigned int *)q)[0];\n"),
        ('asm volatile("{\\n .reg .pred p;\\n setp.ne.b32 p, %2, 0;\\n @p st.global.u32 [%0], %1;\\n}"'
         ' :: "l"(q), "r"(v), "r"(ok) : "memory");',
         "if (ok != 0)\n    ((unsigned int *)q)[0] = v;\n"),
        ('asm volatile("griddepcontrol.wait;" ::: "memory");', "cudaGridDependencySynchronize();\n"),
        ('asm volatile("griddepcontrol.launch_dependents;");',
         "cudaTriggerProgrammaticLaunchCompletion();\n"),
    ],
)  # fmt: skip
def test_assembly_as_code(text: str, code: str):
    assert print_statements(statements_of(text)) == code


@pytest.mark.parametrize(
    "text",
    [
        'asm("shfl.sync.up.b32 %0, %1, %2, 0x1f, %3;" : "=r"(y) : "r"(x), "r"(1), "r"(m));',
        'asm("shfl.sync.bfly.b32 %0|p, %1, %2, 0x1f, %3;" : "=r"(y) : "r"(x), "r"(1), "r"(m));',
        'asm("ld.volatile.global.f32 %0, [%1];" : "=f"(y) : "l"(p));',
        # a load under a predicate that leaves what was there before, or tests something else
        'asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global.u32 %0, [%1]; }"'
        ' : "=r"(y) : "l"(q), "r"(k));',
        'asm("{ .reg .pred p; setp.eq.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.u32 %0, [%1]; }"'
        ' : "=r"(y) : "l"(q), "r"(k));',
        'asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @!p ld.global.u32 %0, [%1]; }"'
        ' : "=r"(y) : "l"(q), "r"(k));',
        'asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 1; @p ld.global.u32 %0, [%1]; }"'
        ' : "=r"(y) : "l"(q), "r"(k));',
        # the predicate would be read after the zero is written
        'asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.u32 %0, [%1]; }"'
        ' : "=r"(y) : "l"(q), "r"(y));',
        'asm("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(y) : "l"(p));',
        'asm("ld.global.s8 %0, [%1];" : "=r"(y) : "l"(p));',  # a narrower load that extends
        'asm("ld.global.f32 %0, [%1+4];" : "=f"(y) : "l"(p));',
        'asm("ld.global.v2.f32 {%1, %0}, [%2];" : "=f"(y), "=f"(z) : "l"(p));',  # the other way round
        'asm("ld.global.f32 %0, [%1];" : "=f"(y) : "l"(p) : "memory");',
        'asm("ld.global.f32 %0, [%1]; add.f32 %0, %0, %0;" : "=f"(y) : "l"(p));',
        'asm("ld.shared.f32 %0, [%1];" : "=f"(y) : "r"(p));',
    ],
)
def test_assembly_that_stays(text: str):
    (stmt,) = statements_of(text)

    assert isinstance(stmt, Verbatim)
