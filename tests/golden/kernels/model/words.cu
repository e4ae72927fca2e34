// Readings in words.

// case: a loop in the body counts alike for neighbours or not
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = 0; k < d; ++k) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     float s = 0.0f;
// want:     for (int k = 0; k < d; ++k)
// want:         s += x[k];
// want:     out[block * d + i] = s;
// want: load x[k]: 0
// want: store out[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a loop in the body counts alike for neighbours or not (2)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = 0; k < i; ++k) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     float s = 0.0f;
// want:     for (int k = 0; k < i; ++k)
// want:         s += x[k];
// want:     out[block * d + i] = s;
// want: load x[k]: 0
// want: store out[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a loop in the body counts alike for neighbours or not (3)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = i; k < d; ++k) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     float s = 0.0f;
// want:     for (int k = i; k < d; ++k)
// want:         s += x[k];
// want:     out[block * d + i] = s;
// want: load x[k]: None
// want: store out[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a loop in the body counts alike for neighbours or not (4)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = 2 * i - 1; k < d; ++k) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     float s = 0.0f;
// want:     for (int k = 2 * i - 1; k < d; ++k)
// want:         s += x[k];
// want:     out[block * d + i] = s;
// want: load x[k]: None
// want: store out[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a loop in the body counts alike for neighbours or not (5)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; for (int k = 0; k < d; k += i + 1) s += x[k]; out[blockIdx.x * d + i] = s; }
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     float s = 0.0f;
// want:     for (int k = 0; k < d; k += i + 1)
// want:         s += x[k];
// want:     out[block * d + i] = s;
// want: load x[k]: None
// want: store out[block * d + i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 2)
// want:   x, out do not overlap: the contract's word (no alias)
