// Readings in words.

// case: a loop in the body counts alike for neighbours or not
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = 0; k < d; ++k) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: k: independent tasks, one for each block below rows. A block of 256 threads works on each.
// want:   line 2: for each i from 0 to d, shared by the team; inside it a loop whose turns sizes or data decide (line 2)
// want: x: read as float at [k], the same for neighbours
// want: out: written as float at [block * d + i], neighbours side by side

// case: a loop in the body counts alike for neighbours or not (2)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = 0; k < i; ++k) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: k: independent tasks, one for each block below rows. A block of 256 threads works on each.
// want:   line 2: for each i from 0 to d, shared by the team; inside it a loop whose turns sizes or data decide (line 2)
// want: x: read as float at [k], the same for neighbours
// want: out: written as float at [block * d + i], neighbours side by side

// case: a loop in the body counts alike for neighbours or not (3)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = i; k < d; ++k) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: k: independent tasks, one for each block below rows. A block of 256 threads works on each.
// want:   line 2: for each i from 0 to d, shared by the team; inside it a loop whose turns sizes or data decide (line 2)
// want: x: read as float at [k], neighbours at no constant distance
// want: out: written as float at [block * d + i], neighbours side by side

// case: a loop in the body counts alike for neighbours or not (4)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = 2 * i - 1; k < d; ++k) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: k: independent tasks, one for each block below rows. A block of 256 threads works on each.
// want:   line 2: for each i from 0 to d, shared by the team; inside it a loop whose turns sizes or data decide (line 2)
// want: x: read as float at [k], neighbours at no constant distance
// want: out: written as float at [block * d + i], neighbours side by side

// case: a loop in the body counts alike for neighbours or not (5)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = 0; k < d; k += i + 1) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: k: independent tasks, one for each block below rows. A block of 256 threads works on each.
// want:   line 2: for each i from 0 to d, shared by the team; inside it a loop whose turns sizes or data decide (line 2)
// want: x: read as float at [k], neighbours at no constant distance
// want: out: written as float at [block * d + i], neighbours side by side

// case: zoo/gather_rows
// with: folder = "zoo/gather_rows"
// see there
// want: gather_rows_kernel: independent tasks, one for each token below tokens. A block of 128 threads works on each.
// want:   line 8: the whole team knows id = ids[token]
// want:   line 11: if id < 0, the whole team:
// want:     line 12: for each i from 0 to dim, shared by the team
// want:   otherwise:
// want:     line 18: for each i_2 from 0 to dim, shared by the team
// want: out: written as __half at [token * dim + i], neighbours side by side; written as __half at [token * dim + i_2], neighbours side by side
// want: table: read as __half at [id * dim + i_2], neighbours side by side
// want: ids: read as long long at [token], once for a task

// case: ../../examples/cuda/rmsnorm
// with: folder = "../../examples/cuda/rmsnorm"
// see there
// want: rmsnorm: independent tasks, one for each token below tokens. A block of d < 1024 ? d : 1024 threads works on each.
// want:   line 19: for each i from 0 to d, shared by the team; adds up sum (from 0.0f)
// want:   line 38: the whole team knows scale = rsqrtf(sum / d + eps)
// want:   line 42: for each i_2 from 0 to d, shared by the team
// want: out: written as __nv_bfloat16 at [token * d + i_2], neighbours side by side
// want: input: read as __nv_bfloat16 at [token * d + i], neighbours side by side; read as __nv_bfloat16 at [token * d + i_2], neighbours side by side
// want: weight: read as __nv_bfloat16 at [i_2], neighbours side by side
// want: Line 42 reads again what line 19 has read: input.
// want: Its threads meet at 2 barriers for a task; only totals are exchanged there.
// want: It calls __bfloat162float, __float2bfloat16, __hmul, rsqrtf.

// case: ../../examples/cuda/fused_add_rmsnorm
// with: folder = "../../examples/cuda/fused_add_rmsnorm"
// see there
// want: fused_add_rmsnorm: independent tasks, one for each token below tokens. A block of 32 * (((1024 < d / 8 ? 1024 : d / 8) + 31) / 32) threads works on each.
// want:   line 29: for each i from 0 to d / 8, shared by the team; adds up sum (from 0.0f); inside it a loop of 4 turns (line 34)
// want:   line 58: the whole team knows scale = rsqrtf(sum / d + eps)
// want:   line 60: for each i_2 from 0 to d / 8, shared by the team; inside it a loop of 4 turns (line 66)
// want: Shared memory 'shared' keeps 2 float4 of every element for a later loop.
// want: input: read as uint4 at [token * d + i], neighbours side by side; written as uint4 at [token * d + i_2], neighbours side by side
// want: residual: read as uint4 at [token * d + i], neighbours side by side; written as uint4 at [token * d + i], neighbours side by side
// want: weight: read as uint4 at [i_2], neighbours side by side
// want: Its threads meet at 2 barriers for a task; only totals are exchanged there.
// want: It calls __floats2half2_rn, __half22float2, make_float4, rsqrtf.
