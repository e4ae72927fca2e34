// A total that the reader makes up for an OpenCL kernel is in words that OpenCL has.

// case: a maximum over an element each is joined by a function of opencl
// with: base = "row_max"
__kernel void row_max(__global float *out, __global const float *a, int rows)
{
    __local float partial[64];
    const int lane = get_local_id(0);
    const int row = get_group_id(0);
    partial[lane] = a[(size_t)row * 64 + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 32; s > 0; s >>= 1) {
        if (lane < s)
            partial[lane] = fmax(partial[lane], partial[lane + s]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        out[row] = partial[0];
}
// want: block: row<rows | each 0..64 maxtotal; once 1
// want: each 0..64 maxtotal (total from -as_float(0x7f800000) fmax):
// want:     total = fmax(total, a[(size_t)row * 64 + lane]);
// want: once 1:
// want:     out[row] = total;
// want: load a[(size_t)row * 64 + lane]: 1
// want: store out[row]: None
// want:   the turns of a loop may come in any order: the kernel's own (line 10)
// want:   'total' may be joined in another order: proved (line 10)
// want:   out, a do not overlap: the contract's word (no alias)
