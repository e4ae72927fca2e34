// /// tunesmith
// [launch]
// grid  = ["ceildiv(n, 512)"]
// block = ["256"]
// ///
#define BLOCK 256
#define ITEMS 2
__kernel void scale(__global float* out, __global const float* x, int n) {
    int first = get_group_id(0) * BLOCK * ITEMS + get_local_id(0);
    for (int k = 0; k < ITEMS; ++k) {
        int i = first + k * BLOCK;
        if (i < n) {
            out[i] = 2.0f * x[i];
        }
    }
}
