#define STEP 64
#define TIMES(x) (alpha * (x) + SHIFT)
#ifdef BROKEN
#error broken
#endif
float twice(float x) { return 2 * x; }
__kernel void part(__global float *sum, __global const float *x, float alpha) {
    int i = get_global_id(0);
    sum[i] += TIMES(x[i]) - SHIFT;
}
__kernel void scale(__global float *out, __global const float *sum, __local float *tile) {
    tile[get_local_id(0)] = twice(sum[get_global_id(0)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = tile[get_local_id(0)] / 2 - 1;
}
