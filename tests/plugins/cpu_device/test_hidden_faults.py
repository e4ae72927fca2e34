"""Faults that a GPU hides, in atomics, groups of threads, barriers of a part of a block and casts; and
kernels beside them in which nothing is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.watched_kernels import watched

pytestmark = needs_cpu
ATOMIC = "one by an atomic operation and one without"

# A body, whose first line is the fourth; the kind of fault; where it is and the other thread is; words of it.
FAULTS = {
    "an atomic beside a plain read": (
        "  if (t == 0)\n"
        "    s[0] = 0;\n"
        "  __syncthreads();\n"
        "  atomicAdd(s, 1.0f);\n"
        "  if (t == 40)\n"
        "    o[0] = s[0];",
        "a race in shared memory",
        9,
        7,
        ATOMIC,
    ),
    "an atomic before it is made": (
        "  if (t == 0)\n    s[0] = 0;\n  if (t == 1)\n    atomicAdd(s, 1.0f);",
        "a race in shared memory",
        7,
        5,
        ATOMIC,
    ),
    "blocks: an atomic beside a plain write": (
        "  if (t == 0 && blockIdx.x == 0)\n    atomicAdd(o, 1.0f);\n"
        "  if (t == 0 && blockIdx.x == 1)\n    o[0] = 7;",
        "a race in global memory",
        7,
        5,
        ATOMIC,
    ),
    "the last of three readers": (
        "  if (t < 64)\n    s[t] = x[t];\n  __syncthreads();\n  float v = 0;\n  if (t == 7)\n    v = s[3];\n"
        "  if (t >= 32 && t < 40)\n    v = s[3];\n  __syncwarp();\n  if (t == 33)\n    s[3] = 5;\n"
        "  if (t < 64)\n    o[t] = v;",
        "a race in shared memory",
        14,
        9,
        "one reads and one writes",
    ),
    "arrives, and reads what nobody promised": (
        '  if (t < 32)\n    s[t] = x[t];\n  if (t >= 32 && t < 64)\n    asm volatile("bar.sync 1, 64;");\n'
        '  if (t < 32)\n    asm volatile("bar.arrive 1, 64;");\n  if (t < 32)\n    s[t] = 2;\n'
        "  if (t >= 32 && t < 64)\n    o[t] = s[t - 32];",
        "a race in shared memory",
        13,
        11,
        "one reads and one writes",
    ),
    "from one shared array into the next": (
        "  __shared__ float z[64];\n"
        "  float *p = s;\n"
        "  if (t < 64)\n"
        "    z[t] = 1;\n"
        "  if (t < 64)\n"
        "    p[t + 1] = x[t];\n"
        "  __syncthreads();\n  if (t < 64)\n    o[t] = z[t] + p[t];",
        "a write of 4 bytes outside its array",
        9,
        0,
        "bytes beyond the end of the shared array s of 256 bytes",
    ),
    "beyond dynamic shared memory": (
        "  extern __shared__ float d[];\n  d[t + 33] = x[t & 31];",
        "a write of 4 bytes outside its array",
        5,
        0,
        "bytes beyond the end of dynamic shared memory of 512 bytes",
    ),
    "dynamic shared memory that nobody wrote": (
        "  extern __shared__ float d[];\n"
        "  if (t < 32)\n"
        "    d[t] = x[t];\n"
        "  __syncthreads();\n"
        "  o[t & 31] = d[t & 63];",
        "a read of shared memory that nobody has written",
        8,
        0,
        "",
    ),
    "a misaligned vector in shared memory": (
        "  extern __shared__ float d[];\n  d[t] = 0;\n  __syncthreads();\n"
        "  if (t < 4)\n    *(float2 *)(d + 2 * t + 1) = make_float2(1, 2);",
        "a misaligned access",
        8,
        0,
        "",
    ),
    "a shuffle from a lane that has left": (
        "  if (t >= 8 && t < 32)\n    return;\n  o[t & 63] = __shfl_xor_sync(0xffffffffu, x[t & 63], 16);",
        "a shuffle that reads a lane which takes no part in it",
        6,
        0,
        "",
    ),
    "a vote of lanes that never come": (
        "  if (t < 16)\n    o[t] = __ballot_sync(0xffffffffu, t & 1);\n  __syncthreads();\n  o[t & 63] = 1;",
        "a barrier that is not reached by all",
        5,
        6,
        "",
    ),
    "a warp's barrier in one branch": (
        "  if (t & 1)\n    __syncwarp();\n  __syncthreads();",
        "a barrier that is not reached by all",
        6,
        5,
        "",
    ),
    "different masks": (
        "  unsigned m = t & 1 ? 0xffffffffu : 0x55555557u;\n  o[t & 63] = __any_sync(m, t);",
        "a warp operation that threads reach with different masks",
        5,
        0,
        "",
    ),
    "different operations": (
        "  if (t & 1)\n    __syncwarp();\n  else\n    o[t & 63] = __shfl_xor_sync(0xffffffffu, t, 1);",
        "threads of a warp that wait for each other in different operations",
        5,
        7,
        "",
    ),
    "a mask without the thread": (
        "  o[t & 63] = __shfl_sync(0x0000ffffu, t, 0);",
        "a warp operation whose mask leaves out a thread that takes part",
        4,
        0,
        "",
    ),
    "a shuffle from a lane that is not there": (
        "  if ((t & 31) < 16)\n    o[t & 63] = __shfl_sync(0x0000ffffu, t, 20);",
        "a shuffle that reads a lane which takes no part in it",
        5,
        0,
        "",
    ),
    "the active lanes are not all": (
        "  if ((t & 31) < 16) {\n"
        "    unsigned m = __activemask();\n"
        "    o[t & 63] = __shfl_sync(m, t, 20);\n"
        "  }",
        "a shuffle that reads a lane which takes no part in it",
        6,
        0,
        "",
    ),
    "a float that no integer holds": (
        "  float big = x[t & 63] * 1e20f;\n  int i;\n  i = big;\n  o[t & 63] = i;",
        "a float beyond the range of the integer that it becomes",
        6,
        0,
        "",
    ),
    "a copy that nobody has waited for": (
        "  extern __shared__ float d[];\n  if (t < 32)\n    __pipeline_memcpy_async(d + t, x + t, 4);\n"
        "  __pipeline_commit();\n  __syncthreads();\n  o[t & 31] = d[t & 31];",
        "a read of shared memory that nobody has written",
        9,
        0,
        "",
    ),
}
BARRIERS = r"""#include <stdint.h>
__device__ void made(unsigned at, int n) { asm("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(n)); }
__device__ void comes(unsigned at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at)); }
__device__ void waits(unsigned at, unsigned phase) {
  asm volatile("{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;"
               " @P1 bra DONE; bra LAB_WAIT; DONE: }" ::"r"(at), "r"(phase) : "memory");
}
"""
# Whole sources.
SOURCES = {
    "in a function that the kernel calls": (
        "__device__ float at(const float *p, int i) {\n  return p[i + 1];\n}\n"
        "__global__ void k(float *o, const float *x, int n) {\n"
        "  o[threadIdx.x & 63] = at(x, threadIdx.x & 63);\n"
        "}\n",
        "a read of 4 bytes outside its array",
        2,
        0,
    ),
    "in a template's shared memory": (
        "template <int N> __device__ float sum(float v) {\n"
        "  __shared__ float part[N];\n"
        "  if (threadIdx.x < N - 1)\n"
        "    part[threadIdx.x] = v;\n  __syncthreads();\n  return part[threadIdx.x % N];\n}\n"
        "__global__ void k(float *o, const float *x, int n) {\n"
        "  o[threadIdx.x & 63] = sum<32>(x[threadIdx.x & 63]);\n"
        "}\n",
        "a read of shared memory that nobody has written",
        6,
        0,
    ),
    "a barrier in a function that not all call": (
        "template <typename T> __device__ void wait(T) {\n  __syncthreads();\n}\n"
        "__global__ void k(float *o, const float *x, int n) {\n  if (threadIdx.x < 40)\n    wait(1);\n"
        "  o[threadIdx.x & 63] = __shfl_xor_sync(0xffffffffu, 1, 1);\n  __syncthreads();\n}\n",
        "a barrier that is not reached by all",
        2,
        7,
    ),
    "an overflow in a template": (
        "template <typename T> __device__ T place(T row, T width) {\n  return row * width;\n}\n"
        "__global__ void k(float *o, const float *x, int n) {\n"
        "  o[place<int>(threadIdx.x + 1, 90000000) & 63] = 1;\n"
        "}\n",
        "an integer that overflows",
        2,
        0,
    ),
    "a misaligned vector in a function": (
        "__device__ float4 four(const float *p) {\n  return *reinterpret_cast<const float4 *>(p);\n}\n"
        "__global__ void k(float *o, const float *x, int n) {\n"
        "  o[threadIdx.x & 63] = four(x + threadIdx.x % 3).x;\n"
        "}\n",
        "a misaligned access",
        2,
        0,
    ),
    "no wait for an arrival": (
        BARRIERS + "__global__ void k(float *o, const float *x, int n) {\n"
        "  __shared__ uint64_t b;\n"
        "  __shared__ float s[32];\n"
        "  const unsigned at = (unsigned)__cvta_generic_to_shared(&b);\n"
        "  int t = threadIdx.x;\n"
        "  if (t == 0)\n"
        "    made(at, 32);\n"
        "  __syncthreads();\n  if (t < 32) {\n    s[t] = x[t];\n    comes(at);\n  } else if (t < 64) {\n"
        "    o[t] = s[t - 32];\n  }\n}\n",
        "a race in shared memory",
        20,
        17,
    ),
    "a barrier in shared memory before others know it": (
        BARRIERS + "__global__ void k(float *o, const float *x, int n) {\n  __shared__ uint64_t b;\n"
        "  const unsigned at = (unsigned)__cvta_generic_to_shared(&b);\n"
        "  int t = threadIdx.x;\n"
        "  if (t == 0)\n"
        "    made(at, 96);\n"
        "  comes(at);\n}\n",
        "a race in shared memory",
        3,
        2,
    ),
}
HONEST = {
    "compare and swap": (
        "  unsigned *p = (unsigned *)o, old = *p, seen;\n  do {\n    seen = old;\n"
        "    old = atomicCAS(p, seen, seen + 1);\n  } while (old != seen);"
    ),
    "an exchange into fresh memory": (
        "  unsigned *p = (unsigned *)s;\n  if (t < 64)\n    atomicExch(p + t, t);\n  __syncthreads();\n"
        "  if (t < 64)\n    o[t] = p[t];"
    ),
    "those who arrive and those who wait": (
        '  if (t < 32) {\n    s[t] = x[t];\n    asm volatile("bar.arrive 1, 64;");\n  } else if (t < 64) {\n'
        '    asm volatile("bar.sync 1, 64;");\n    o[t] = s[t - 32];\n  }'
    ),
    "two that take turns": (
        "  for (int i = 0; i < 4; i++) {\n    if (t < 32) {\n"
        '      asm volatile("bar.sync 2, 64;");\n'
        "      s[t] = x[t] + i;\n"
        '      asm volatile("bar.arrive 1, 64;");\n'
        "    } else if (t < 64) {\n"
        '      asm volatile("bar.arrive 2, 64;");\n'
        '      asm volatile("bar.sync 1, 64;");\n'
        "      o[t - 32 * blockIdx.x] = s[63 - t];\n    }\n  }"
    ),
    "half of a warp, and then all of it": (
        "  if (t & 16)\n    __syncwarp(0xffff0000u);\n  s[t & 63] = 1;\n  __syncwarp();\n  __syncwarp();"
    ),
    "the lanes that are active": (
        "  if (t % 3 == 0) {\n    unsigned m = __activemask();\n    int first = __ffs(m) - 1;\n"
        "    o[t & 63] = __shfl_sync(m, 5, first) + __popc(__ballot_sync(m, 1));\n  }"
    ),
    "a fence and a ticket within a block": (
        "  __shared__ unsigned count;\n"
        "  if (t == 0)\n"
        "    count = 0;\n"
        "  __syncthreads();\n"
        "  if (t < 64) {\n"
        "    s[t] = x[t];\n"
        "    __threadfence_block();\n    if (atomicAdd(&count, 1u) == 63) {\n      float sum = 0;\n"
        "      for (int i = 0; i < 64; i++)\n        sum += s[i];\n      o[blockIdx.x] = sum;\n    }\n  }"
    ),
    "a counter that the last block sets back": (
        "  unsigned *p = (unsigned *)o + 63;\n"
        "  __shared__ bool last;\n"
        "  if (t == 0)\n"
        "    last = atomicInc(p, gridDim.x) == gridDim.x - 1;\n"
        "  __syncthreads();\n  if (last && t == 5)\n    *p = 0;"
    ),
    "casts that clamp": (
        "  const float v = x[t & 15] * 1e20f;\n"
        "  if (t < 16) {\n"
        "    o[t] = (int)v;\n"
        "    o[t + 16] = static_cast<unsigned char>(v);\n"
        "    const long long l = int(-v);\n    o[t + 32] = l;\n  }"
    ),
}
WAVE = """#include <hip/hip_runtime.h>
__device__ float sum(float v) {
  for (int i = 16; i; i /= 2)
    v += __shfl_xor(v, i);
  return v;
}
__global__ void k(float *o, const float *x, int n) {
  __shared__ float part[4];
  int t = threadIdx.x;
  float v = sum(t < 64 ? x[t] : 0);
  if (t % 32 == 0)
    part[t / 32] = v;
  __syncthreads();
  if (t < 32) {
    v = sum(t < 3 ? part[t] : 0);
    if (t == 0)
      o[blockIdx.x] = v;
  }
}
"""
HONEST_SOURCES = {
    "half of a wave without a mask": WAVE,
    "an arrival that is waited for": (
        BARRIERS + "__global__ void k(float *o, const float *x, int n) {\n"
        "  __shared__ uint64_t b[2];\n"
        "  __shared__ float s[32];\n"
        "  const unsigned full = (unsigned)__cvta_generic_to_shared(&b[0]), empty = full + 8;\n"
        "  int t = threadIdx.x;\n"
        "  if (t == 0) {\n    made(full, 32);\n    made(empty, 32);\n  }\n  __syncthreads();\n"
        "  for (int i = 0; i < 4; i++) {\n"
        "    if (t < 32) {\n"
        "      waits(empty, (i & 1) ^ 1);\n"
        "      s[t] = x[t] + i;\n"
        "      comes(full);\n"
        "    } else if (t < 64) {\n"
        "      waits(full, i & 1);\n"
        "      o[t - 32 * blockIdx.x] = s[63 - t];\n"
        "      comes(empty);\n"
        "    }\n  }\n}\n"
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.few(5)
def test_a_hidden_fault_is_found_with_its_line(name: str, tmp_path: Path) -> None:
    body, kind, line, other, words = FAULTS[name]
    found = {finding.kind: finding for finding in watched(body, tmp_path, seeds=2)}
    assert kind in found, found
    own = found[kind]
    places = f"{own.place} {own.words}"
    assert own.kernel == "k"
    assert own.place in {f"kernel.cu:{line}", *([f"kernel.cu:{other}"] if other else [])}, own
    assert all(f"kernel.cu:{one}" in places for one in (line, other) if one), own
    assert words in own.words


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.few(2)
def test_a_fault_in_functions_and_templates_is_found_with_its_line(name: str, tmp_path: Path) -> None:
    source, kind, line, other = SOURCES[name]
    found = {finding.kind: finding for finding in watched("", tmp_path, source, seeds=2)}
    assert kind in found, found
    places = f"{found[kind].place} {found[kind].words}"
    assert all(f"kernel.cu:{one}" in places for one in (line, other) if one), found[kind]


@pytest.mark.parametrize("name", [*HONEST, *HONEST_SOURCES])
@pytest.mark.few(3)
def test_what_is_right_in_these_is_not_accused(name: str, tmp_path: Path) -> None:
    source = HONEST_SOURCES.get(name, "")
    language = "hip" if "hip" in source else "cuda"
    assert watched(HONEST.get(name, ""), tmp_path, source, seeds=6, language=language) == ()
