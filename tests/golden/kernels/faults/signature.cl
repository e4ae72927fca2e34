// Whether a problem lists the kernel's own arguments, as far as reading the source can tell.

// case: a null pointer is an integer of its size
// each line
out: float32* output; x: uint64; n: int32 | __kernel void k(__global float* out, __global const float* x, int n) { out[n] = x[n]; }  // want: argument 2 of k: x is an array in the kernel, x is a scalar in problem.toml (kernel.cu:1)

// case: local memory is another kind of array
// each line
out: float32* output; tile: float32* local | __kernel void k(__global float* out, __local float* tile) { tile[0] = out[0]; }  // want: no fault
out: float32* output; tile: float32* | __kernel void k(__global float* out, __local float* tile) { tile[0] = out[0]; }  // want: argument 2 of k: tile is local memory in the kernel, tile has role input in problem.toml (kernel.cu:1)
out: float32* local; tile: float32* local | __kernel void k(__global float* out, __local float* tile) { tile[0] = out[0]; }  // want: argument 1 of k: out is global memory in the kernel, out has role local in problem.toml (kernel.cu:1)

// case: arguments as the kernel takes them
// each line
out: float32* output; x: float32*; n: int32 | __kernel void k(__global float* out, __global const float* x, int n) { out[n] = x[n]; }  // want: no fault
