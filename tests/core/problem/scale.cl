// What this is.
// /// tunesmith
// [params]
// BLOCK  = [64, 128, 256]
// VEC    = [1, 2, 4, 8]
// UNROLL = { values = [1, 2], categorical = true }
// [default]
// BLOCK = 128
// VEC = 1
// UNROLL = 1
// [require]
// whole_vectors = "d % VEC == 0"            # a comment
// fits = "BLOCK <= device.max_threads"
// [prefer]
// no_idle_block = "BLOCK * VEC < 2 * d"
// [launch]
// grid  = ["rows", "ceildiv(d, BLOCK * VEC * UNROLL)"]
// block = ["BLOCK"]
// ///

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef UNROLL
#define UNROLL 1
#endif

__kernel void scale(__global float *out, __global const float *input, int d)
{
    for (int i = get_local_id(0) * VEC; i < d; i += BLOCK * VEC)
        for (int u = 0; u < UNROLL; u++) /* not CACHE */
            out[i] = input[i]; // nor DEPTH
}
