// each element times alpha; "quoted", ??/ and \ in a comment, é
#define TIMES(x) (alpha * (x))
float twice(float x) { return x + x; }
typedef struct { float value; } item;
#define KERNEL(name)                                                                            \
    __kernel void name(__global float *out, __global const float *x, float alpha, int rows, int d) { \
        int i = get_global_id(0);                                                               \
        item it = {twice(0.5f) * x[min(i, rows * d - 1)]};                                      \
        if (i < rows * d) out[i] = TIMES(it.value);                                             \
    }
KERNEL(scale)
KERNEL(scale_12)
KERNEL(scale_20)
