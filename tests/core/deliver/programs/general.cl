#define VEC 4
#define TIMES(x) ((x) * alpha)
typedef struct { float4 value; } item;
__kernel void scale(__global float *out, __global const float *x, float alpha, int rows, int d) {
    int i = get_global_id(0);
    if (i < rows * d / VEC) {
        item it = {((__global const float4 *)x)[i]};
        ((__global float4 *)out)[i] = TIMES(it.value);
    }
}
