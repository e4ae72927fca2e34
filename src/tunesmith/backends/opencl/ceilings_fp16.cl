// Half precision; by itself, since not every device has it.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define STEP(x) x = x * by + plus
__kernel void fp16(__global float *out, float a, float b, int rounds)
{
    const half8 by = (half8)((half)a), plus = (half8)((half)b), tenth = (half8)((half)0.1f);
    half8 x0 = (half8)((half)(1.0f + 0.01f * get_local_id(0))), x1 = x0 + tenth, x2 = x1 + tenth, x3 = x2 + tenth;
    half8 x4 = x3 + tenth, x5 = x4 + tenth, x6 = x5 + tenth, x7 = x6 + tenth;
    for (int i = 0; i < rounds; i++) {
        STEP(x0), STEP(x1), STEP(x2), STEP(x3), STEP(x4), STEP(x5), STEP(x6), STEP(x7);
    }
    const half8 sum = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
    if (sum.s0 + sum.s1 + sum.s2 + sum.s3 + sum.s4 + sum.s5 + sum.s6 + sum.s7 == (half)-1.0f)
        out[0] = sum.s0;
}
