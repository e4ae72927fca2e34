// Kernels without a constant to open: caps of blocks, grids that show the block in a factor or a number.

// case: a kernel whose name is put together has its launch opened
// with: base = "work_cl"
// with: kernel = { entry = "twice_float", defines = { TYPE = "float" } }
#define OTHER 16
#define JOIN(A, B) A##_##B
#define NAME(A, B) JOIN(A, B)
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void NAME(twice, TYPE)(__global float *out, __global const float *x, int n)
{ int i = get_global_id(0); if (i < n) out[i] = x[i]; }
__kernel void NAME(thrice, TYPE)(__global float *p)
{ int k[OTHER]; p[get_global_id(0) * OTHER] = 0; }
// want: KNOB_BLOCK_X = 64 of 16, 32, 48, 64
// want: launch twice_float: (ceildiv(n, KNOB_BLOCK_X)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 64
// want: changed: // The original, kernel.cl, with its own text and a few choices left open.
// want: changed: __kernel __attribute__((reqd_work_group_size(KNOB_BLOCK_X, 1, 1))) void NAME(twice, TYPE)(__global float *out, __global const float *x, int n)
// want: note: kernel.cl keeps its own text, with its own choices open

// case: a macro that chooses the kernels name stays
// with: base = "work_cl"
// with: kernel = { entry = "twice4", defines = { WIDTH = "4" } }
#if WIDTH == 4
#define TWICE twice4
#elif WIDTH == 1
#define TWICE twice1
#endif
__kernel void TWICE(__global float *out, __global const float *x, int n)
{ float unused[WIDTH]; int i = get_global_id(0); if (i < n) out[i] = x[i]; }
// want: KNOB_BLOCK_X = 64 of 16, 32, 48, 64, 96, 128, 256
// want: launch twice4: (ceildiv(n, KNOB_BLOCK_X)) blocks of (KNOB_BLOCK_X)
// want: answers block_size: KNOB_BLOCK_X != 64
// want: changed: // The original, kernel.cl, with its own text and a few choices left open.
// want: note: kernel.cl keeps its own text, with its own choices open
// want: note: knobs: WIDTH stays as it is: an #if chooses the kernel's name by it
