// Pointers to a thread's own arrays are the arrays, or keep their thread's work to it.

// case: an array that turns hand on is not shared out
// with: launch = { grid = ["ceildiv(rows, 256)"] }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {

    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float b[4] = {0, 0, 0, 0};
    float *p = b;
    for (int i = 0; i < d; i++) p[i & 3] += x[row * d + i];
    out[row * d] = p[0] + p[3];
    
}
// want: grid: | each 0..rows
// want: each 0..rows:
// want:     float b[4] = {0, 0, 0, 0};
// want:     for (int i = 0; i < d; i++)
// want:         b[i & 3] += x[row * d + i];
// want:     out[row * d] = b[0] + b[3];
// want: load x[row * d + i]: None
// want: store out[row * d]: None
// want: note: each thread walks a row of its own, which cannot be shared out: line 7: the array 'b' is filled before the loop that reads it
// want:   the turns of a loop may come in any order: the kernel's own (line 4)
// want:   x, out do not overlap: the contract's word (no alias)

// case: a pointer that is not followed is refused
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {

    float b[4] = {0, 0, 0, 0};
    int *p = (int *)b;
    for (int i = threadIdx.x; i < d; i += 256) p[i & 3] += (int)x[i];
    out[blockIdx.x * d + threadIdx.x] = p[0];
    
}
// want: not read: line 4: the pointer 'p' to the array 'b' of a thread is not followed
