// Loops that no thread goes round again are branches; those that one may go round again stay.
// read: passed tests
// with: launch = { grid = ["ceildiv(d, 256)"] }

// case: a grid as large as the bound takes one turn
// each line
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;  // want: int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < d) out[i] = x[i] * 2.0f;
const int by = gridDim.x * blockDim.x; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += by) out[i] = x[i] * 2.0f;  // want: const int by = gridDim.x * blockDim.x; int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < d) out[i] = x[i] * 2.0f;

// case: what may take another turn stays a loop
// each line
d = d * rows; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;  // want: d = d * rows; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;
d++; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;  // want: d++; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;
if (rows > 2) d = d * 2; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;  // want: if (rows > 2) d = d * 2; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;
int n = d; n = n * rows; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;  // want: int n = d; n = n * rows; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;
for (unsigned char i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;  // want: for (unsigned char i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) out[i] = x[i] * 2.0f;
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x) out[i] = x[i] * 2.0f;  // want: for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x) out[i] = x[i] * 2.0f;
for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) { out[i] = x[i]; d = d + 64; }  // want: for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) { out[i] = x[i]; d = d + 64; }
int by = gridDim.x * blockDim.x; by = by / 2; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += by) out[i] = x[i] * 2.0f;  // want: int by = gridDim.x * blockDim.x; by = by / 2; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += by) out[i] = x[i] * 2.0f;
