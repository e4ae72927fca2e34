"""What functions, special registers and instructions do, and what parts of a program do with them."""

from __future__ import annotations

import pytest

from tunesmith.csource.effects import (
    ANYTHING,
    Effects,
    Program,
    effects_of,
    function_effects,
    is_pure,
    joined,
    of_assembly,
)
from tunesmith.csource.parse import read_expression, read_source_tree

E = Effects

FUNCTIONS = {
    E.NONE: "expf __expf sqrt fmaxf max min __fdividef __half2float __float2half_rn __float22half2_rn "
    "__hmul2 hexp h2exp __popc __clz __byte_perm __dp4a __umulhi __fmaf_rn make_float4 "
    "convert_float4_rte as_uint native_exp std::max cuda::std::isnan __nv_cvt_float_to_fp8 __ocml_exp_f32 "
    "__builtin_amdgcn_rcpf "
    "mad24 clamp dot",
    E.READS: "__ldg __ldcs vload4 vload_half tex2D read_imagef",
    E.WRITES: "__stcs vstore4 vstore_half write_imagef",
    E.ASSIGNS: "sincosf modf frexp remquo fract",
    E.THREAD: "get_global_id get_local_id get_sub_group_local_id get_local_linear_id __lane_id __clusterIdx "
    "__builtin_amdgcn_workitem_id_x __builtin_amdgcn_workgroup_id_y __builtin_amdgcn_mbcnt_lo",
    E.SHAPE: "get_local_size get_global_size get_num_groups get_sub_group_size get_work_dim __clusterDim",
    E.TIME: "clock clock64 __clock64 wall_clock64 globaltimer __builtin_readcyclecounter "
    "__builtin_amdgcn_s_memtime __builtin_amdgcn_s_memrealtime __nanosleep",
    E.MACHINE: "__smid __nsmid __warpid __builtin_amdgcn_s_getreg __nvvm_read_ptx_sreg_smid",
    E.MASK: "__activemask __ballot_sync __ballot __any_sync __any __all_sync __shfl_sync __shfl_xor_sync "
    "__shfl_down __match_any_sync __match_all_sync __reduce_add_sync sub_group_reduce_add sub_group_any "
    "work_group_broadcast work_group_all sub_group_shuffle __builtin_amdgcn_ds_bpermute "
    "__builtin_amdgcn_readfirstlane __builtin_amdgcn_ballot_w64 __builtin_amdgcn_mov_dpp",
    E.BARRIER: "__syncthreads barrier work_group_barrier __builtin_amdgcn_s_barrier wait_group_events",
    E.BARRIER | E.MASK: "__syncwarp __syncthreads_or __syncthreads_count sub_group_barrier",
    E.FENCE: "__threadfence __threadfence_block __threadfence_system mem_fence write_mem_fence "
    "atomic_work_item_fence",
    E.READS | E.WRITES | E.ATOMIC: "atomicAdd atomicCAS atomicExch_block atomic_add atom_inc "
    "atomic_fetch_add_explicit __hip_atomic_fetch_add unsafeAtomicAdd",
    E.READS | E.WRITES | E.BARRIER | E.MASK: "async_work_group_copy __pipeline_memcpy_async",
    E.READS | E.VOLATILE: "__ldcv",
    E.OUTPUT: "printf",
    E.STOPS: "assert __trap __assertfail",
    E.ALLOCATES: "malloc free",
    E.LAUNCHES: "enqueue_kernel cudaLaunchDevice",
    E.READS | E.WRITES | E.RANDOM: "curand curand_uniform hiprand_init",
    ANYTHING: "reduce_rows __my_intrinsic cub::BlockReduce get_lane make_it so",
}


@pytest.mark.parametrize(
    ("name", "effects"), [(name, effects) for effects, names in FUNCTIONS.items() for name in names.split()]
)
def test_functions(name: str, effects: Effects) -> None:
    assert function_effects(name) == effects


REGISTERS = {
    E.THREAD: "laneid tid.x ctaid.y clusterid.x cluster_ctaid.x cluster_ctarank lanemask_lt "
    "lanemask_eq lanemask_ge",
    E.SHAPE: "ntid.x nctaid.z nclusterid.x cluster_nctaid.x cluster_nctarank",
    E.TIME: "clock clock64 clock_hi globaltimer globaltimer_lo globaltimer_hi",
    E.MACHINE: "smid nsmid warpid nwarpid gridid envreg3 pm0 pm7_64 dynamic_smem_size total_smem_size",
    ANYTHING: "no_such_register",
}


@pytest.mark.parametrize(
    ("name", "effects"), [(name, effects) for effects, names in REGISTERS.items() for name in names.split()]
)
def test_special_registers(name: str, effects: Effects) -> None:
    assert joined(of_assembly(f'asm("mov.u32 %0, %%{name};" : "=r"(a));')) == effects
    assert joined(of_assembly(f'asm volatile("{{ .reg .u32 t; mov.u32 t, %{name}; }}");')) == effects


INSTRUCTIONS = {
    'asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(a) : "r"(b), "r"(c), "r"(d));': E.NONE,
    'asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(p) : "f"(a), "f"(b));': E.NONE,
    '__asm__ __volatile__("prmt.b32 %[r], %[x], 0, 0x1010;" : [r] "=r"(a) : [x] "r"(b));': E.NONE,
    'asm("mov.b32 {%0, %1}, %2;" : "=h"(a), "=h"(b) : "r"(c));': E.NONE,
    'asm("{ .reg .pred p;\\n\\tsetp.ne.b32 p, %1, 0; //\\n@p mov.u32 %0, 7; }" : "+r"(a) : "r"(b));': E.NONE,
    'asm("fma.rn.f32 %0, %1, 0f3F800000, %0;" : "+f"(a) : "f"(std::max(b, c)));': E.NONE,
    'asm("add.cc.u32 %0, %2, %3;" "addc.u32 %1, %4, %5;" : "=r"(a), "=r"(b) : "r"(c));': E.NONE,
    'asm("addc.u32 %0, %1, %2;" : "=r"(a) : "r"(b), "r"(c));': ANYTHING,
    'asm("ld.global.nc.f32 %0, [%1];" : "=f"(a) : "l"(p));': E.READS,
    'asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(a) : "l"(p));': E.READS | E.VOLATILE,
    'asm volatile("st.global.cs.f32 [%0], %1;" :: "l"(p), "f"(a));': E.WRITES,
    'asm volatile("red.global.add.f32 [%0], %1;" :: "l"(p), "f"(a));': E.READS | E.WRITES | E.ATOMIC,
    'asm volatile("bar.sync 0;");': E.BARRIER,
    'asm volatile("membar.gl;");': E.FENCE,
    'asm volatile("" ::: "memory");': E.FENCE,
    'asm("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(a) : "r"(b));': E.MASK,
    'asm("activemask.b32 %0;" : "=r"(a));': E.MASK,
    'asm("{ .reg .pred p; vote.sync.any.pred p, %1, -1; selp.u32 %0, 1, 0, p; }" : "=r"(a) : "r"(b));':
        E.MASK,
    'asm("match.any.sync.b32 %0, %1, -1;" : "=r"(a) : "r"(b));': E.MASK,
    'asm("redux.sync.add.s32 %0, %1, -1;" : "=r"(a) : "r"(b));': E.MASK,
    'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(s), "l"(g));':
        E.READS | E.WRITES | E.FENCE,
    'asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(s));': E.BARRIER,
    'asm volatile("trap;");': E.STOPS,
    'asm volatile("exit;");': ANYTHING,
    'asm volatile("bra L;");': ANYTHING,
    'asm("L: add.u32 %0, %0, 1;" : "+r"(a));': ANYTHING,
    'asm("frobnicate.u32 %0, 1;" : "=r"(a));': ANYTHING,
    'asm("mov.u64 %0, table;" : "=l"(a));': ANYTHING,
    'asm(CODE : "=r"(a));': ANYTHING,
    'asm("v_mbcnt_lo_u32_b32 %0, -1, 0" : "=v"(a));': E.MASK,
    'asm volatile("s_memtime %0" : "=s"(a));': E.TIME,
    'asm("v_fma_f32 %0, %1, %2, %3" : "=v"(a) : "v"(b), "v"(c), "v"(d));': E.NONE,
}  # fmt: skip


@pytest.mark.parametrize("text", INSTRUCTIONS)
def test_assembly(text: str) -> None:
    assert joined(of_assembly(text)) == INSTRUCTIONS[text]


def test_what_may_be_done_with_effects() -> None:
    assert _allowed(E.NONE) == "drop repeat any"
    assert _allowed(E.STOPS) == "drop repeat any", "a kernel that keeps its contract does not stop itself"
    assert _allowed(E.READS) == "drop repeat any"
    assert _allowed(E.THREAD) == _allowed(E.MACHINE) == _allowed(E.SHAPE) == "drop repeat"
    assert _allowed(E.TIME) == "drop"
    for kind in (E.WRITES, E.ATOMIC, E.MASK, E.BARRIER, E.FENCE, E.VOLATILE, E.OUTPUT, E.ASSIGNS, E.UNKNOWN):
        assert _allowed(kind) == ""


def _allowed(effects: Effects) -> str:
    answers = {"drop": effects.may_drop, "repeat": effects.may_repeat, "any": effects.any_thread}
    return " ".join(word for word, holds in answers.items() if holds)


@pytest.mark.parametrize(
    "text", ["a + b * 2", "expf(a)", "float2{a, b}", "(int)a", "a ? b : -c", "threadIdx.x"]
)
def test_pure(text: str) -> None:
    assert is_pure(read_expression(text))


@pytest.mark.parametrize(
    "text", ["a = 1", "a++", "p[i]", "*p", "p->x", "f(a)", "clock()", "atomicAdd(p, 1)", "s.f()"]
)
def test_not_pure(text: str) -> None:
    assert not is_pure(read_expression(text))


_FILE = """
__device__ int seen; __device__ volatile int flag; __constant__ float table[4];
__device__ float plain(float a) { float s, c; sincosf(a, &s, &c); float t[2]; t[0] = s;
    return t[0] + table[1]; }
__device__ float stops(float a) { assert(a > 0); return a; }
__device__ float counts(float a) { seen++; return a; }
__device__ float sets(float a) { asm("mov.u32 %0, 1;" : "=r"(seen)); return a; }
__device__ float keeps(float a) { static int n; n++; return a + n; }
__device__ float waits(float a) { return a + flag; }
__device__ float lane(float a) { unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); return a * l; }
__device__ float through(float a) { return lane(a); }
__device__ float even(int n); __device__ float odd(int n) { return n == 0 ? 0 : even(n - 1); }
__device__ float even(int n) { return n == 0 ? clock() : odd(n - 1); }
__device__ float local(float a) { volatile float v = a; return v; }
"""
HELPERS = {
    "plain": E.NONE, "stops": E.STOPS, "counts": E.WRITES, "sets": E.WRITES, "keeps": E.READS | E.WRITES,
    "waits": E.VOLATILE, "lane": E.THREAD, "through": E.THREAD, "odd": E.TIME, "even": E.TIME,
    "local": E.VOLATILE,
}  # fmt: skip


@pytest.mark.parametrize("name", HELPERS)
def test_helpers_do_what_they_call_does(name: str) -> None:
    known = Program.of(read_source_tree(_FILE, "cuda"))
    assert effects_of(read_expression(f"{name}(a)"), known) == HELPERS[name]
