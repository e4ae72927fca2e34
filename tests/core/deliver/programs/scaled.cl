
__kernel void scaled(__global float *y, __global const float *x, const int n, const float scale,
                     __global float *partial, __local float *shared)
{
    int i = get_global_id(0);
    shared[get_local_id(0)] = partial[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) y[i] += scale * x[i] + shared[0] + BONUS;
}
