// Kernels of OpenCL, by name.

// case: opencl kernels are bound by name
// with: entries = ["k"]
#define N 4
__kernel void k(__global float *p) { p[N] = 1; }
// want: __kernel void k(__global float *p)
// want: {
// want:     p[4] = 1;
// want: }
