// References, sizes that change, and numbers that a loop moves: what is read must be what C++ does.

// case: a second name is not followed: a reference to an element whose place changes
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int a = i; float &r = out[a]; a += 1; r = x[a]; }
}
// want: not read: line 3: 'r' is another name for what it refers to

// case: a second name is not followed: a reference to an element that memory tells
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { float &r = out[(int)x[i]]; r = 1; }
}
// want: not read: line 3: 'r' is another name for what it refers to

// case: a second name is not followed: a place by an array that is stored to
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int a[2] = {0, 1}; float v[2] = {1, 2}; float &r = v[a[0]]; a[0] = 1; r = x[i]; out[i] = v[0]; }
}
// want: not read: line 3: 'r' is another name for what it refers to

// case: a second name is not followed: a place by an array with two names
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int a[2] = {0, 1}; int *p = a; float v[2] = {1, 2}; float &r = v[a[0]]; p[0] = 1; r = x[i]; out[i] = v[0]; }
}
// want: not read: line 3: 'r' is another name for what it refers to

// case: a second name is not followed: a constant reference by such an array
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int a[2] = {0, 1}; float v[2] = {1, 2}; const float &r = v[a[0]]; a[0] = 1; v[0] = x[i]; out[i] = r; }
}
// want: not read: line 3: 'r' is another name for what it refers to

// case: a second name is not followed: a place by a field that is set
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int2 a; a.x = 0; float v[2] = {1, 2}; float &r = v[a.x]; a.x = 1; r = x[i]; out[i] = v[0]; }
}
// want: not read: line 3: 'r' is another name for what it refers to

// case: a second name is not followed: a reference to a pointer
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { const float *p = x + i; const float *&r = p; r += 1; out[i] = *p; }
}
// want: not read: line 3: 'r' is another name for what it refers to

// case: a second name is not followed: a constant reference to another type
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int s = (int)x[i]; const float &r = s; s = 1; out[i] = r; }
}
// want: not read: line 3: 'r' is another name for what it refers to

// case: a second name is not followed: a store as another type
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { reinterpret_cast<int &>(out[i]) = 3; }
}
// want: not read: line 3: a value is reached as one of another type

// case: a second name is not followed: a store to one of two
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { (d > 3 ? out[i] : out[i + rows]) = x[i]; }
}
// want: not read: line 3: which variable is written depends on a condition

// case: a second name is not followed: a parameter that every element changes
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { d = d * 2; out[i] = x[i] * d; }
}
// want: not read: each element changes the parameter 'd', which others use

// case: a constant reference to what stays is a value
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { const float &r = x[i]; out[i] = r * 2; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     const float &r = x[i];
// want:     out[i] = r * 2;
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of an element is the element
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { float &r = out[i]; r = x[i] * 2; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     out[i] = x[i] * 2;
// want: store out[i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of an element is the element (2)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { auto &r = out[i]; if (x[i] > 0) { r = x[i] * 2; } else { float &r = out[i]; r = x[i] * 2; } }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     if (x[i] > 0)
// want:         out[i] = x[i] * 2;
// want:     else
// want:         out[i] = x[i] * 2;
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of a variable is the variable
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { const float &r = out[i]; out[i] = 1; out[i + 1] = r; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     out[i] = 1;
// want:     out[i + 1] = out[i];
// want: store out[i]: 1
// want: store out[i + 1]: 1
// want: load out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of a variable is the variable (2)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { out[i] = 1; out[i + 1] = out[i]; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     out[i] = 1;
// want:     out[i + 1] = out[i];
// want: store out[i]: 1
// want: store out[i + 1]: 1
// want: load out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of a variable is the variable (3)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int a = i; int &r = a; r = 0; out[i] = x[a]; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     int a = i;
// want:     a = 0;
// want:     out[i] = x[a];
// want: store out[i]: 1
// want: load x[a]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of a variable is the variable (4)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int a = i; a = 0; out[i] = x[a]; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     int a = i;
// want:     a = 0;
// want:     out[i] = x[a];
// want: store out[i]: 1
// want: load x[a]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of a variable is the variable (5)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int at = i; int &r = at; float s = 0; for (int k = 0; k < 4; k++) { s += x[at]; r += d; } out[i] = s; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     float s = 0;
// want:     for (int k = 0; k < 4; k++)
// want:         s += x[at + k * d];
// want:     out[(int)at] = s;
// want: load x[at + k * d]: 1
// want: store out[(int)at]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of a variable is the variable (6)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int at = i; float s = 0; for (int k = 0; k < 4; k++) { s += x[at]; at += d; } out[i] = s; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     float s = 0;
// want:     for (int k = 0; k < 4; k++)
// want:         s += x[at + k * d];
// want:     out[(int)at] = s;
// want: load x[at + k * d]: 1
// want: store out[(int)at]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of a variable is the variable (7)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { float s = x[i]; const float &r = s; s = 1; out[i] = r; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     float s = x[i];
// want:     s = 1;
// want:     out[i] = s;
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a second name of a variable is the variable (8)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { float s = x[i]; s = 1; out[i] = s; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     float s = x[i];
// want:     s = 1;
// want:     out[i] = s;
// want: load x[i]: 1
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a grid is not written in terms of a size that has changed
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
rows *= d;
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x) out[i] = x[i];
}
// want: not read: 'rows' is changed, and says how large the launch is

// case: a number is added up in its own type
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int at = i - 3; float s = 0; for (unsigned k = 0; k < 7u; ++k, ++at) s += x[max(at, 0)]; out[i] = s; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     float s = 0;
// want:     for (unsigned int k = 0; k < 7u; ++k)
// want:         s += x[max(i - 3 + (int)k, 0)];
// want:     out[i] = s;
// want: load x[max(i - 3 + (int)k, 0)]: None
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a number is added up in its own type (2)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { long long at = i; float s = 0; for (int k = 0; k < 4; k++) { s += x[at]; at += d; } out[i] = s; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     float s = 0;
// want:     for (int k = 0; k < 4; k++)
// want:         s += x[at + (long long)k * (long long)d];
// want:     out[(int)at] = s;
// want: load x[at + (long long)k * (long long)d]: 1
// want: store out[(int)at]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is no sum over the turns stays as it is
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { unsigned char at = i; float s = 0; for (int k = 0; k < 4; k++) { s += x[at]; ++at; } out[i] = s; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     unsigned char at = i;
// want:     float s = 0;
// want:     for (int k = 0; k < 4; k++) {
// want:         s += x[at];
// want:         ++at;
// want:     }
// want:     out[i] = s;
// want: load x[at]: None
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is no sum over the turns stays as it is (2)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int at = i; float s = 0; for (int k = 0; k < 4; k++) { int q = (int)x[k]; s += x[at]; at += q; } out[i] = s; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     int at = i;
// want:     float s = 0;
// want:     for (int k = 0; k < 4; k++) {
// want:         int q = (int)x[k];
// want:         s += x[at];
// want:         at += q;
// want:     }
// want:     out[i] = s;
// want: load x[k]: 0
// want: load x[at]: None
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what is no sum over the turns stays as it is (3)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < rows) { int y = i - 5; unsigned b = rows; float s = 0; for (int k = 0; k < 4; k++) if (y < b) { s += x[y]; y += 2; } out[i] = s; }
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     int y = i - 5;
// want:     float s = 0;
// want:     for (int k = 0; k < 4; k++) {
// want:         if (y < (unsigned int)rows) {
// want:             s += x[y];
// want:             y += 2;
// want:         }
// want:     }
// want:     out[i] = s;
// want: load x[y]: None
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what holds of the first blocks must hold of all
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = (unsigned char)blockIdx.x;
for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = x[i];
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     out[(int)(unsigned char)block * d + i] = x[i];
// want: store out[(int)(unsigned char)block * d + i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what holds of the first blocks must hold of all (2)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x & 255;
for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = x[i];
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     out[(int)(block & 255) * d + i] = x[i];
// want: store out[(int)(block & 255) * d + i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what holds of the first blocks must hold of all (3)
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x % 1000;
for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = x[i];
}
// want: block: block<rows | each 0..d
// want: each 0..d:
// want:     out[(int)(block % 1000) * d + i] = x[i];
// want: store out[(int)(block % 1000) * d + i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what holds of the first blocks must hold of all (4)
// with: launch = { grid = ["4 * rows"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x / 4;
for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = x[i];
}
// want: block: block<4 * rows | each 0..d
// want: each 0..d:
// want:     out[(int)(block / 4) * d + i] = x[i];
// want: store out[(int)(block / 4) * d + i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what holds of the first blocks must hold of all (5)
// with: launch = { grid = ["4 * rows"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x >> 2;
for (int i = threadIdx.x; i < d; i += blockDim.x) out[row * d + i] = x[i];
}
// want: block: block<4 * rows | each 0..d
// want: each 0..d:
// want:     out[(int)(block >> 2) * d + i] = x[i];
// want: store out[(int)(block >> 2) * d + i]: 1
// want: load x[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   x, out do not overlap: the contract's word (no alias)

// case: what holds of the first rows must hold of all
// with: launch = { grid = ["ceildiv(rows, 256)"] }
// with: workloads = { many = { rows = 14, d = 5 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x;
if (row >= rows) return;
float s = 0;
for (int i = 0; i < d; i++) { const int v = row % 5; s += v * x[row * d + i]; }
for (int i = 0; i < d; i++) out[row * d + i] = s * x[row * d + i];
}
// want: thread: row<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += row % 5 * x[row * d + i];
// want: each 0..d:
// want:     out[row * d + i_2] = s * x[row * d + i_2];
// want: load x[row * d + i]: 1
// want: store out[row * d + i_2]: 1
// want: load x[row * d + i_2]: 1
// want:   the turns of a loop may come in any order: proved (line 5, line 6)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: what holds of the first rows must hold of all (2)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
// with: workloads = { many = { rows = 14, d = 5 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x;
if (row >= rows) return;
float s = 0;
for (int i = 0; i < d; i++) { const int v = (signed char)row; s += v * x[row * d + i]; }
for (int i = 0; i < d; i++) out[row * d + i] = s * x[row * d + i];
}
// want: thread: row<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += (int)(signed char)row * x[row * d + i];
// want: each 0..d:
// want:     out[row * d + i_2] = s * x[row * d + i_2];
// want: load x[row * d + i]: 1
// want: store out[row * d + i_2]: 1
// want: load x[row * d + i_2]: 1
// want:   the turns of a loop may come in any order: proved (line 5, line 6)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)

// case: what holds of the first rows must hold of all (3)
// with: launch = { grid = ["ceildiv(rows, 256)"] }
// with: workloads = { many = { rows = 14, d = 5 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int row = blockIdx.x * blockDim.x + threadIdx.x;
if (row >= rows) return;
float s = 0;
for (int i = 0; i < d; i++) { const int v = row & 3; s += v * x[row * d + i]; }
for (int i = 0; i < d; i++) out[row * d + i] = s * x[row * d + i];
}
// want: thread: row<rows | each 0..d +s; each 0..d
// want: each 0..d +s (s from 0.0f):
// want:     s += (row & 3) * x[row * d + i];
// want: each 0..d:
// want:     out[row * d + i_2] = s * x[row * d + i_2];
// want: load x[row * d + i]: 1
// want: store out[row * d + i_2]: 1
// want: load x[row * d + i_2]: 1
// want:   the turns of a loop may come in any order: proved (line 5, line 6)
// want:   's' may be joined in another order: the contract's word ([accuracy])
// want:   x, out do not overlap: the contract's word (no alias)
