"""Assembly of a kernel that only computes becomes a helper; what does more stays where it is."""

from __future__ import annotations

import pytest

from tunesmith.csource.nodes import Assign, Call, Evaluate, Source, Verbatim
from tunesmith.csource.outlined import with_helpers
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.walk import nodes_in


def source(body: str, before: str = "") -> Source:
    head = "__global__ void k(float *o, const float *a, const unsigned *b, const float *p)"
    found = read_source_tree(f"{before}{head}\n{{\nfloat x; unsigned r;\n{body}\n}}\n", "cuda")
    assert not found.unread
    return with_helpers(found)


def calls(found: Source) -> list[str]:
    kernel = next(f for f in found.functions if f.is_kernel)
    made = [n.expr for n in nodes_in(kernel.body) if isinstance(n, Evaluate) and isinstance(n.expr, Assign)]
    return [e.value.function for e in made if isinstance(e, Assign) and isinstance(e.value, Call)]


def stays(found: Source) -> bool:
    kernel = next(f for f in found.functions if f.is_kernel)
    return any(isinstance(node, Verbatim) for node in nodes_in(kernel.body))


def test_it_is_a_helper_of_the_registers_types() -> None:
    body = 'asm("fma.rn.f32 %0, %1, %2, %1;" : "=f"(x) : "f"(a[0]), "f"(a[1] * (x + 2.0f)));\no[0] = x;'
    found = source(body)
    assert calls(found) == ["fma_rn_f32"]
    helper = found.functions[0]
    assert (helper.result.base, [p.type.base for p in helper.parameters]) == ("float", ["float", "float"])
    assert '"fma.rn.f32 %0, %1, %2, %1;"' in helper.text


def test_equal_ones_share_a_helper_and_others_do_not() -> None:
    lines = [
        'asm("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(a[0]));',
        'asm("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(a[1]));',
        'asm volatile("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(a[2]));',
        'asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(b[0]), "n"(4));',
    ]
    found = source("\n".join(lines))
    names = calls(found)
    assert names == ["ex2_approx_f32", "ex2_approx_f32", "ex2_approx_f32_2", "shl_b32"]
    assert [f.name for f in found.functions[:-1]] == list(dict.fromkeys(names))
    assert '"n"(4)' in found.functions[2].text


def test_a_name_of_the_file_is_not_taken_again() -> None:
    before = "__device__ float ex2_approx_f32(float v) { return v; }\n"
    found = source('asm("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(a[0]));', before)
    assert calls(found) == ["ex2_approx_f32_2"]


@pytest.mark.parametrize(
    "statement",
    [
        'asm volatile("bar.sync 0;");',
        'asm volatile("mov.u32 %0, %%laneid;" : "=r"(r));',
        'asm volatile("mov.u32 %0, %%clock;" : "=r"(r));',
        'asm volatile("fence.acq_rel.gpu;" ::: "memory");',
        'asm("add.f32 %0, %0, %1;" : "+f"(x) : "f"(a[0]));',
        'asm("mov.b32 %0, %1;" : "=r"(r) : "r"(b[0]) : "memory");',
        'asm("{ add.f32 %0, %2, %2; mul.f32 %1, %2, %2; }" : "=f"(x), "=r"(r) : "f"(a[0]));',
        'asm("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(b[0]));',
        'asm("mov.f32 %[out], %[in];" : [out] "=f"(x) : [in] "f"(a[0]));',
        'asm("cvta.to.global.u64 %0, %1;" : "=l"(p) : "l"(p));',
        'asm("addc.u32 %0, %1, %1;" : "=r"(r) : "r"(b[0]));',
    ],
)
def test_what_does_more_stays(statement: str) -> None:
    found = source(statement)
    assert calls(found) == []
    assert stays(found)
