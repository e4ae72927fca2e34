// /// tunesmith
// [params]
// BLOCK = { values = [64, 128, 256, 512], default = 128 }  # threads
// ITEMS = { values = [1, 2, 4], default = 1 }  # elements of a thread
// [require]
// block_fits = "BLOCK <= device.max_threads"
// [prefer]
// not_too_much = "BLOCK * ITEMS <= 1024"
// [launch]
// grid  = ["ceildiv(n, BLOCK * ITEMS)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
__kernel void scale(__global float* out, __global const float* x, int n) {
    int first = get_group_id(0) * BLOCK * ITEMS + get_local_id(0);
    for (int k = 0; k < ITEMS; ++k) {
        int i = first + k * BLOCK;
        if (i < n) {
            out[i] = 2.0f * x[i];
        }
    }
}
