"""Values that belong to one thread, one moment or one place: no kernel that uses them is shared out anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem, summary
from tunesmith.problem.problem import Problem

_REGISTERS = (
    "laneid", "lanemask_lt", "lanemask_eq", "tid.x", "ctaid.x", "ntid.x", "nctaid.x", "warpid", "nwarpid",
    "smid", "nsmid", "gridid", "clock", "clock64", "clock_hi", "globaltimer", "globaltimer_lo", "envreg1",
    "pm0", "cluster_ctarank", "clusterid.x", "dynamic_smem_size",
)  # fmt: skip
_INSTRUCTIONS = {
    "a vote": 'asm("{.reg .pred p; vote.sync.any.pred p, 1, -1; selp.u32 %0, 1, 0, p;}" : "=r"(l));',
    "a ballot": 'asm("vote.sync.ballot.b32 %0, 1, -1;" : "=r"(l));',
    "a shuffle": 'asm("shfl.sync.idx.b32 %0, 1, 0, 31, -1;" : "=r"(l));',
    "the mask": 'asm("activemask.b32 %0;" : "=r"(l));',
    "a match": 'asm("match.any.sync.b32 %0, 1, -1;" : "=r"(l));',
    "a reduction": 'asm("redux.sync.add.u32 %0, 1, -1;" : "=r"(l));',
    "an election": 'asm("{.reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p;}" : "=r"(l));',
    "a barrier": 'l = 1; asm volatile("bar.sync 0;");',
    "a fence": 'l = 1; asm volatile("fence.acq_rel.gpu;");',
    "a clobber": 'l = 1; asm volatile("" ::: "memory");',
    "a load": 'asm volatile("ld.volatile.shared.u32 %0, [0];" : "=r"(l));',
    "an atomic": 'asm volatile("atom.shared.add.u32 %0, [0], 1;" : "=r"(l));',
    "what nobody knows": 'asm("frobnicate.u32 %0;" : "=r"(l));',
}
_CALLS = (
    "__lane_id()", "clock()", "clock64()", "wall_clock64()", "globaltimer()", "__smid()",
    "__clusterIdx().x", "__activemask()", "__any_sync(~0u, threadIdx.x)", "__all_sync(~0u, threadIdx.x)",
    "__ballot_sync(~0u, threadIdx.x)", "__ballot(threadIdx.x)", "__shfl_sync(~0u, threadIdx.x, 0)",
    "__shfl(threadIdx.x, 0)", "__match_any_sync(~0u, threadIdx.x)", "__reduce_add_sync(~0u, threadIdx.x)",
    "__syncthreads_count(1)", "__builtin_amdgcn_workitem_id_x()", "__builtin_amdgcn_s_memtime()",
    "__builtin_amdgcn_readfirstlane(1)", "__builtin_amdgcn_mbcnt_lo(~0u, 0)",
    "__builtin_amdgcn_ballot_w64(1)", "__builtin_amdgcn_s_getreg(2)", "__ldcv(&x[0])", "curand(&state)",
    "__unheard_of(1)",
)  # fmt: skip
_CL_CALLS = (
    "get_sub_group_local_id()", "get_sub_group_id()", "get_local_linear_id()", "get_global_linear_id()",
    "get_global_id(d)", "get_local_size(d)", "get_sub_group_size()", "sub_group_any(1)",
    "sub_group_reduce_add(1)", "work_group_all(1)", "work_group_broadcast(1, 0)", "get_work_dim()",
)  # fmt: skip
_FLAT = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * {value};"
_ROW = (
    "const int r = blockIdx.x * d; float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[r + i];\n"
    "for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);\n"
    "for (int i = threadIdx.x; i < d; i += 32) out[r + i] = s * {value};"
)
_ONCE = _ROW.rpartition("\n")[0] + "\nif (threadIdx.x == 0) out[r] = s * {value};"
_SHAPES = {
    "flat": (_FLAT, ("ceildiv(rows * d, 32)",)),
    "a loop over elements": (_ROW, ("rows",)),
    "one thread stores": (_ONCE, ("rows",)),
}
every_shape = pytest.mark.parametrize("shape", _SHAPES)


def _refused(shape: str, value: str, before: str = "", language: str = "cuda") -> str:
    body, grid = _SHAPES[shape]
    return refusal(
        _in(language, row_problem(body.format(value=value), grid=grid, block=("32",), before=before))
    )


def _in(language: str, problem: Problem) -> Problem:
    return replace(problem, kernel=replace(problem.kernel, language=language))


@every_shape
@pytest.mark.parametrize("register", _REGISTERS)
@pytest.mark.few(6)
def test_a_helper_that_reads_a_special_register(register: str, shape: str) -> None:
    before = f'__device__ float h() {{ unsigned l; asm("mov.u32 %0, %%{register};" : "=r"(l)); return l; }}'
    assert "'asm" in _refused(shape, "h()", before)


@every_shape
@pytest.mark.parametrize("case", _INSTRUCTIONS)
@pytest.mark.few(10)
def test_a_helper_with_an_instruction_that_does_more_than_compute(case: str, shape: str) -> None:
    before = f"__device__ float h() {{ unsigned l; {_INSTRUCTIONS[case]} return l; }}"
    assert "asm" in _refused(shape, "h()", before)


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize(
    ("shape", "language"), [("flat", "hip"), ("flat", "cuda"), ("one thread stores", "cuda")]
)
@pytest.mark.few(13)
def test_a_call_of_the_languages(call: str, shape: str, language: str) -> None:
    assert _refused(shape, call, "__device__ int state;", language)
    helper = f"__device__ int state; __device__ float h() {{ return {call.replace('&x[0]', '&state')}; }}"
    assert _refused(shape, "h()", helper, language)


@pytest.mark.parametrize("call", _CL_CALLS)
def test_a_call_of_opencl(call: str) -> None:
    assert "line 3" in refusal(_opencl(f"x[i] * {call}"))


def _opencl(value: str) -> Problem:
    problem = row_problem("", grid=("ceildiv(rows * d, 64)",), block=("64",))
    text = (
        "__kernel void k(__global const float *x, __global float *out, int rows, int d) {\n"
        f"const int i = get_global_id(0);\nif (i < rows * d) out[i] = {value}; }}"
    )
    return replace(problem, kernel=replace(problem.kernel, language="opencl", text=text))


_VOLATILE = {
    "a cast": ("", "*(volatile const float *)(x + i)", "used as volatile float"),
    "a cast of an element's address": ("", "*(const volatile float *)&x[i]", "used as volatile float"),
    "a variable": ("volatile float v = x[i];", "v", "'v' is volatile"),
    "a pointer": ("const volatile float *p = x;", "p[i]", "'p' is volatile"),
    "a variable of the file": ("", "x[i] + flag", "'flag' is volatile"),
    "a static variable": ("static int n; n++;", "x[i] + n", "'n' is static"),
}


@pytest.mark.parametrize("case", _VOLATILE)
def test_volatile_accesses_stay(case: str) -> None:
    before, value, reason = _VOLATILE[case]
    body = f"const int i = blockIdx.x * 256 + threadIdx.x; if (i < rows * d) {{ {before} out[i] = {value}; }}"
    problem = row_problem(body, grid=("ceildiv(rows * d, 256)",), before="__device__ volatile int flag;")
    assert reason in refusal(problem)


def test_volatile_shared_memory_is_followed() -> None:
    body = (
        "__shared__ float buffer[32]; volatile float *b = buffer; \n"
        "const int r = blockIdx.x * d, t = threadIdx.x;\n"
        "float s = 0; for (int i = t; i < d; i += 32) s += x[r + i];\nb[t] = s; __syncthreads();\n"
        "for (int o = 16; o > 0; o /= 2) { if (t < o) b[t] += b[t + o]; __syncthreads(); }\n"
        "if (t == 0) out[r] = b[0];"
    )
    assert summary(lifted(row_problem(body, block=("32",)))) == "block<rows | each 0..d +s; once 1"
