// Launches with far more threads than the kernel uses are told, and no others.
// read: excess blocks

// case: a grid that counts threads
// with: launch = { grid = ["d", "rows"], block = ["64"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y; if (i >= d || r >= rows) return; out[r * d + i] = x[r * d + i];
}
// want: at r64_d16384 the launch has 64 times the threads that the kernel uses (67108864 where 1048576 are enough): grid counts blocks, not threads, so perhaps "d" is meant as "ceildiv(d, 64)"; if production launches it so, all is well

// case: axes that are both too long
// with: launch = { grid = ["d", "rows"], block = ["16", "4"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y; if (i >= d || r >= rows) return; out[r * d + i] = x[r * d + i];
}
// want: at r64_d16384 the launch has 64 times the threads that the kernel uses (67108864 where 1048576 are enough): grid counts blocks, not threads, so perhaps "d" is meant as "ceildiv(d, 16)" and "rows" is meant as "ceildiv(rows, 4)"; if production launches it so, all is well

// case: two factors that are small by themselves
// with: launch = { grid = ["d", "rows"], block = ["4", "4"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y; if (i >= d || r >= rows) return; out[r * d + i] = x[r * d + i];
}
// want: at r64_d16384 the launch has 16 times the threads that the kernel uses (16777216 where 1048576 are enough): grid counts blocks, not threads, so perhaps "d" is meant as "ceildiv(d, 4)" and "rows" is meant as "ceildiv(rows, 4)"; if production launches it so, all is well

// case: two factors that are small by themselves (2)
// with: launch = { grid = ["d", "ceildiv(rows, 4)"], block = ["4", "4"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y; if (i >= d || r >= rows) return; out[r * d + i] = x[r * d + i];
}
// want: no more than it uses

// case: loops over the grid
// with: launch = { grid = ["rows * d"], block = ["128"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x) out[i] = x[i];
}
// want: at r64_d16384 the launch has 128 times the threads that the kernel uses (134217728 where 1048576 are enough): grid counts blocks, not threads, so perhaps "rows * d" is meant as "ceildiv(rows * d, 128)"; if production launches it so, all is well

// case: blocks that each take a row
// with: launch = { grid = ["rows"], block = ["256"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int r = blockIdx.x; if (r >= rows) return; float s = 0.0f; __shared__ float all[256];for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[r * d + i];all[threadIdx.x] = s; __syncthreads();for (int w = 128; w > 0; w >>= 1) { if (threadIdx.x < w) all[threadIdx.x] += all[threadIdx.x + w]; __syncthreads(); }for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = x[r * d + i] / all[0];
}
// want: no more than it uses

// case: blocks that each take a row (2)
// with: launch = { grid = ["rows * 256"], block = ["256"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int r = blockIdx.x; if (r >= rows) return; float s = 0.0f; __shared__ float all[256];for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[r * d + i];all[threadIdx.x] = s; __syncthreads();for (int w = 128; w > 0; w >>= 1) { if (threadIdx.x < w) all[threadIdx.x] += all[threadIdx.x + w]; __syncthreads(); }for (int i = threadIdx.x; i < d; i += blockDim.x) out[r * d + i] = x[r * d + i] / all[0];
}
// want: at r64_d16384 the launch has 256 times the threads that the kernel uses (4194304 where 16384 are enough): grid counts blocks, not threads, so see whether it is too large; if production launches it so, all is well

// case: the part of a kernel that uses most
// with: launch = { grid = ["ceildiv(rows * d, 128)"], block = ["128"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int n = rows * d; int fours = n / 4; int first = blockIdx.x * blockDim.x + threadIdx.x;for (int i = first; i < fours; i += gridDim.x * blockDim.x) ((float4 *)out)[i] = ((const float4 *)x)[i];for (int i = fours * 4 + first; i < n; i += gridDim.x * blockDim.x) out[i] = x[i];
}
// want: no more than it uses

// case: the part of a kernel that uses most (2)
// with: launch = { grid = ["rows * d"], block = ["128"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int n = rows * d; int fours = n / 4; int first = blockIdx.x * blockDim.x + threadIdx.x;for (int i = first; i < fours; i += gridDim.x * blockDim.x) ((float4 *)out)[i] = ((const float4 *)x)[i];for (int i = fours * 4 + first; i < n; i += gridDim.x * blockDim.x) out[i] = x[i];
}
// want: at r64_d16384 the launch has 512 times the threads that the kernel uses (134217728 where 262144 are enough): grid counts blocks, not threads, so see whether it is too large; if production launches it so, all is well

// case: the workloads where it is so
// with: launch = { grid = ["rows * d if rows > 8 else ceildiv(rows * d, 64)"], block = ["64"] }
// with: workloads = { r8_d4096 = { rows = 8, d = 4096 }, r16_d4096 = { rows = 16, d = 4096 }, r32_d1024 = { rows = 32, d = 1024 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * 2.0f;
}
// want: at r16_d4096 the launch has 64 times the threads that the kernel uses (4194304 where 65536 are enough; similarly at r32_d1024): grid counts blocks, not threads, so perhaps "rows * d if rows > 8 else ceildiv(rows * d, 64)" is meant as "ceildiv(rows * d if rows > 8 else ceildiv(rows * d, 64), 64)"; if production launches it so, all is well

// case: launches that fit
// with: launch = { grid = ["ceildiv(rows * d, 1024)"], block = ["1024"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * 2.0f;
}
// want: no more than it uses

// case: launches that fit (2)
// with: launch = { grid = ["ceildiv(d, 32)", "ceildiv(rows, 32)"], block = ["32", "32"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y; if (i >= d || r >= rows) return; out[r * d + i] = x[r * d + i];
}
// want: no more than it uses

// case: launches that fit (3)
// with: launch = { grid = ["ceildiv(rows * d, 1024)"], block = ["1024"] }
// with: workloads = { r1_d1 = { rows = 1, d = 1 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * 2.0f;
}
// want: no more than it uses

// case: launches that fit (4)
// with: launch = { grid = ["ceildiv(d, 32)", "ceildiv(rows, 32)"], block = ["32", "32"] }
// with: workloads = { r1_d1 = { rows = 1, d = 1 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y; if (i >= d || r >= rows) return; out[r * d + i] = x[r * d + i];
}
// want: no more than it uses

// case: launches that fit (5)
// with: launch = { grid = ["ceildiv(rows * d, 1024)"], block = ["1024"] }
// with: workloads = { r3_d5 = { rows = 3, d = 5 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * 2.0f;
}
// want: no more than it uses

// case: launches that fit (6)
// with: launch = { grid = ["ceildiv(d, 32)", "ceildiv(rows, 32)"], block = ["32", "32"] }
// with: workloads = { r3_d5 = { rows = 3, d = 5 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y; if (i >= d || r >= rows) return; out[r * d + i] = x[r * d + i];
}
// want: no more than it uses

// case: a few idle blocks
// with: launch = { grid = ["round_up(ceildiv(rows * d, 256), 16)"], block = ["256"] }
// with: workloads = { r1_d1 = { rows = 1, d = 1 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * 2.0f;
}
// want: no more than it uses

// case: loops with as many blocks as the device wants
// with: launch = { grid = ["device.sms * 8"], block = ["256"] }
// with: workloads = { r1_d64 = { rows = 1, d = 64 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x) out[i] = x[i];
}
// want: no more than it uses

// case: what nothing bounds
// with: launch = { grid = ["rows * d // 64"], block = ["64"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = x[i];
}
// want: no more than it uses

// case: what cannot be read
// with: launch = { grid = ["rows * d"], block = ["64"] }
// with: workloads = { r64_d16384 = { rows = 64, d = 16384 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = i ? out[i - 1] : x[i];
}
// want: no more than it uses

// case: of a grid with no likely meaning and of many workloads
// with: launch = { grid = ["rows * d * 3"], block = ["32"] }
// with: workloads = { r16_d4096 = { rows = 16, d = 4096 }, r17_d4096 = { rows = 17, d = 4096 }, r18_d4096 = { rows = 18, d = 4096 }, r19_d4096 = { rows = 19, d = 4096 }, r20_d4096 = { rows = 20, d = 4096 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * 2.0f;
}
// want: at r16_d4096 the launch has 96 times the threads that the kernel uses (6291456 where 65536 are enough; similarly at 4 other workloads): grid counts blocks, not threads, so see whether it is too large; if production launches it so, all is well
