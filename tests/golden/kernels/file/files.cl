// Words of OpenCL that become the same tree.

// case: opencl words become the same tree
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
inline float twice(float x) { return 2 * x; }
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void k(__global const float *restrict in, __local float *scratch, __constant int *table, uint n)
{
    __local float tile[64];
    __local float *p = scratch;
    size_t i = get_global_id(0);
    float4 v = (float4)(1.0f, 2.0f, 3.0f, 4.0f);
    tile[get_local_id(1)] = v.s0;
    barrier(CLK_LOCAL_MEM_FENCE);
    barrier(CLK_GLOBAL_MEM_FENCE);
    i = get_group_id(get_work_dim());
}
// want: line 2: <float> twice(Parameter(<float> x))
// want:   line 2: Return(Binary(* 2 x))
// want: line 4: kernel <void> k(Parameter(<const float *__restrict__> in), Parameter(<float *> scratch), Parameter(<int *> table), Parameter(<unsigned int> n))
// want:   line 6: Declare(<float> tile dims=[64] storage=shared)
// want:   line 7: Declare(<float *> p scratch)
// want:   line 8: Declare(<size_t> i Binary(+ Binary(* blockIdx.x blockDim.x) threadIdx.x))
// want:   line 9: Declare(<float4> v Braces([1.0f=1.0 2.0f=2.0 3.0f=3.0 4.0f=4.0] <float4>))
// want:   line 10: Evaluate(Assign(= Index(tile threadIdx.y) Member(v s0)))
// want:   line 11: Evaluate(Call(__syncthreads))
// want:   line 12: Evaluate(Call(__syncthreads [CLK_GLOBAL_MEM_FENCE]))
// want:   line 13: Evaluate(Assign(= i Call(get_group_id [Call(get_work_dim)])))
// want: preamble: #pragma OPENCL EXTENSION cl_khr_fp16 : enable
