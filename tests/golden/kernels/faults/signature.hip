// Whether a problem lists the kernel's own arguments, as far as reading the source can tell.

// case: arguments as the kernel takes them
// each line
out: float32* output; x: float32*; n: int32 | __global__ void k(float* out, const float* x, int n) { out[n] = x[n]; }  // want: no fault
