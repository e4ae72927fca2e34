// Kernels, their parameters and launches, as the source has them.

// case: a type with two meanings has none
typedef float real;
__kernel void k(__global real* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'real*', base 'real', element 'float32', vector 1, pointer True, const False, space 'global', restrict False, written False, read False

// case: a type with two meanings has none (2)
#define real double
__kernel void k(__global real* p) {}
// want: line 2: k: name 'k', template_params ()
// want:   p: name 'p', type 'double*', base 'double', element 'float64', vector 1, pointer True, const False, space 'global', restrict False, written False, read False

// case: a type with two meanings has none (3)
#ifdef D
typedef double real;
#else
typedef float real;
#endif
__kernel void k(__global real* p) {}
// want: line 6: k: name 'k', template_params ()
// want:   p: name 'p', type 'real*', base 'real', element None, vector 1, pointer True, const False, space 'global', restrict False, written False, read False

// case: opencl
// __kernel void not_this(__global float* x) {}
__kernel __attribute__((reqd_work_group_size(16, TILE, 1)))
void scale(__global const float* restrict a, __global uchar4 *out, __local float* tile,
           __constant half* w, const uint n, float alpha) {
    __local float own[16];
    out[get_global_id(0)] = a[n];
}
// want: line 2: scale: name 'scale', template_params (), reqd_work_group_size ('16', 'TILE', '1')
// want:   a: name 'a', type 'const float*', base 'float', element 'float32', vector 1, pointer True, const True, space 'global', restrict True, written False, read True
// want:   out: name 'out', type 'uchar4*', base 'uchar4', element 'uint8', vector 4, pointer True, const False, space 'global', restrict False, written True, read False
// want:   tile: name 'tile', type 'float*', base 'float', element 'float32', vector 1, pointer True, const False, space 'local', restrict False, written False, read False
// want:   w: name 'w', type 'half*', base 'half', element 'float16', vector 1, pointer True, const True, space 'constant', restrict False, written False, read False
// want:   n: name 'n', type 'const uint', base 'uint', element 'uint32', vector 1, pointer False, const True, space None, restrict False, written False, read True
// want:   alpha: name 'alpha', type 'float', base 'float', element 'float32', vector 1, pointer False, const False, space None, restrict False, written False, read True

// case: opencl words without underscores
kernel void k(global int* p, local int* t) { p[0] = t[0]; }
// want: line 1: k: name 'k', template_params ()
// want:   p: name 'p', type 'int*', base 'int', element 'int32', vector 1, pointer True, const False, space 'global', restrict False, written True, read False
// want:   t: name 't', type 'int*', base 'int', element 'int32', vector 1, pointer True, const False, space 'local', restrict False, written False, read True

// case: no kernel
void host() {}
// want: refused: kernel.cu: a kernel source must define a function marked __kernel; it has none
// want: hint: give the file with the kernel's body; kernels that a macro writes are not seen: write them out, or give the preprocessed source

// case: no kernel (2)
// __global__ void k() {}
/* __kernel void k() {} */
// want: refused: kernel.cu: a kernel source must define a function marked __kernel; it has none
// want: hint: give the file with the kernel's body; kernels that a macro writes are not seen: write them out, or give the preprocessed source
