// Kernels before there is a problem, in words: read or not and why, and what a draft would say.

// case: opencl
// with: defines = { T = "float" }
    __kernel void add(__global const T *a, __global T *out, int n) {
        int i = get_global_id(0);
        if (i < n) out[i] += a[i];
    }
    
// want: add: read
// want: add: one loop over all elements. Its elements are independent: any thread may take any of them.
// want:   line 3: for each i from 0 to n, over all threads
// want: a: read as float at [i], neighbours side by side
// want: out: updated as float at [i], neighbours side by side
// want: It rests on:
// want:   the turns of a loop may come in any order: the kernel's own (line 3)
// want:   a, out do not overlap: the contract's word (no alias)
// want: Read with blocks of 256 threads, a usual number: the file says none; every integer argument is taken for a size.
// want: filled in: a: float32*, input, shape [n]
// want: filled in: out: float32*, inout, shape [n]
// want: filled in: n: int32, value n
// want: filled in: launch: grid [ceildiv(n, 256)], block [256]
// want: filled in: sizes: n
// want: left: sizes: the largest of each that callers send, and workloads, where it must be fast
// want: left: reference: the expected result in NumPy, or none, to compare with the original
