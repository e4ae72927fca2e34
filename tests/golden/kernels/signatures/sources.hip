// Kernels, their parameters and launches, as the source has them.

// case: hip
__global__ void k(float* p, int n) {}
void run() { hipLaunchKernelGGL(k, dim3(n / 64), dim3(64), 0, 0, p, n); }
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False
// want:   n: name 'n', type 'int', base 'int', element 'int32', vector 1, pointer False, const False, space None, restrict False, written False, read True
// want: launch, line 2: kernel 'k', template_args None, grid ('n / 64',), block ('64',), shared '0', arguments ('p', 'n'), settled (), local [], changed [], function 'run'

// case: hip (2)
__global__ void k(float* p, int n) {}
void run() { hipLaunchKernelGGL((k<float, 2>), dim3(n / 64), dim3(64), 0, 0, p, n); }
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False
// want:   n: name 'n', type 'int', base 'int', element 'int32', vector 1, pointer False, const False, space None, restrict False, written False, read True
// want: launch, line 2: kernel 'k', template_args 'float, 2', grid ('n / 64',), block ('64',), shared '0', arguments ('p', 'n'), settled (), local [], changed [], function 'run'

// case: hip (3)
__global__ void k(float* p, int n) {}
void run() { hipLaunchKernelGGL(HIP_KERNEL_NAME(k<float, 2>), dim3(n / 64), dim3(64), 0, 0, p, n); }
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False
// want:   n: name 'n', type 'int', base 'int', element 'int32', vector 1, pointer False, const False, space None, restrict False, written False, read True
// want: launch, line 2: kernel 'k', template_args 'float, 2', grid ('n / 64',), block ('64',), shared '0', arguments ('p', 'n'), settled (), local [], changed [], function 'run'

// case: hip (4)
__global__ void k(float* p, int n) {}
void run() { hipLaunchKernelGGL(ns::k, dim3(n / 64), dim3(64), 0, 0, p, n); }
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space None, restrict False, written False, read False
// want:   n: name 'n', type 'int', base 'int', element 'int32', vector 1, pointer False, const False, space None, restrict False, written False, read True
// want: launch, line 2: kernel 'k', template_args None, grid ('n / 64',), block ('64',), shared '0', arguments ('p', 'n'), settled (), local [], changed [], function 'run'

// case: no kernel
void host() {}
// want: refused: kernel.cu: a kernel source must define a function marked __global__; it has none
// want: hint: give the file with the kernel's body; kernels that a macro writes are not seen: write them out, or give the preprocessed source

// case: no kernel (2)
// __global__ void k() {}
/* __kernel void k() {} */
// want: refused: kernel.cu: a kernel source must define a function marked __global__; it has none
// want: hint: give the file with the kernel's body; kernels that a macro writes are not seen: write them out, or give the preprocessed source
