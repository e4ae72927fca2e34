// Assembly of a kernel that only computes becomes a helper; what does more stays where it is.

// case: it is a helper of the registers types
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("fma.rn.f32 %0, %1, %2, %1;" : "=f"(x) : "f"(a[0]), "f"(a[1] * (x + 2.0f)));
    o[0] = x;
}
// want: __device__ __forceinline__ float fma_rn_f32(float in_0, float in_1)
// want: {
// want:     float out;
// want:     asm ("fma.rn.f32 %0, %1, %2, %1;" : "=f"(out) : "f"(in_0), "f"(in_1));
// want:     return out;
// want: }
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     x = fma_rn_f32(a[0], a[1] * (x + 2.0f));
// want:     o[0] = x;
// want: }

// case: equal ones share a helper and others do not
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(a[0]));
    asm("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(a[1]));
    asm volatile("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(a[2]));
    asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(b[0]), "n"(4));
}
// want: __device__ __forceinline__ float ex2_approx_f32(float in_0)
// want: {
// want:     float out;
// want:     asm ("ex2.approx.f32 %0, %1;" : "=f"(out) : "f"(in_0));
// want:     return out;
// want: }
// want: __device__ __forceinline__ float ex2_approx_f32_2(float in_0)
// want: {
// want:     float out;
// want:     asm volatile("ex2.approx.f32 %0, %1;" : "=f"(out) : "f"(in_0));
// want:     return out;
// want: }
// want: __device__ __forceinline__ unsigned int shl_b32(unsigned int in_0)
// want: {
// want:     unsigned int out;
// want:     asm ("shl.b32 %0, %1, %2;" : "=r"(out) : "r"(in_0), "n"(4));
// want:     return out;
// want: }
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     x = ex2_approx_f32(a[0]);
// want:     x = ex2_approx_f32(a[1]);
// want:     x = ex2_approx_f32_2(a[2]);
// want:     r = shl_b32(b[0]);
// want: }

// case: a name of the file is not taken again
__device__ float ex2_approx_f32(float v) { return v; }
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("ex2.approx.f32 %0, %1;" : "=f"(x) : "f"(a[0]));
}
// want: __device__ __forceinline__ float ex2_approx_f32_2(float in_0)
// want: {
// want:     float out;
// want:     asm ("ex2.approx.f32 %0, %1;" : "=f"(out) : "f"(in_0));
// want:     return out;
// want: }
// want: __device__ float ex2_approx_f32(float v) { return v; }
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     x = ex2_approx_f32_2(a[0]);
// want: }

// case: what does more stays
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm volatile("bar.sync 0;");
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm volatile("bar.sync 0;");
// want: }

// case: what does more stays (2)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(r));
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm volatile("mov.u32 %0, %%laneid;" : "=r"(r));
// want: }

// case: what does more stays (3)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(r));
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm volatile("mov.u32 %0, %%clock;" : "=r"(r));
// want: }

// case: what does more stays (4)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm volatile("fence.acq_rel.gpu;" ::: "memory");
// want: }

// case: what does more stays (5)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("add.f32 %0, %0, %1;" : "+f"(x) : "f"(a[0]));
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm("add.f32 %0, %0, %1;" : "+f"(x) : "f"(a[0]));
// want: }

// case: what does more stays (6)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("mov.b32 %0, %1;" : "=r"(r) : "r"(b[0]) : "memory");
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm("mov.b32 %0, %1;" : "=r"(r) : "r"(b[0]) : "memory");
// want: }

// case: what does more stays (7)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("{ add.f32 %0, %2, %2; mul.f32 %1, %2, %2; }" : "=f"(x), "=r"(r) : "f"(a[0]));
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm("{ add.f32 %0, %2, %2; mul.f32 %1, %2, %2; }" : "=f"(x), "=r"(r) : "f"(a[0]));
// want: }

// case: what does more stays (8)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(b[0]));
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(b[0]));
// want: }

// case: what does more stays (9)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("mov.f32 %[out], %[in];" : [out] "=f"(x) : [in] "f"(a[0]));
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm("mov.f32 %[out], %[in];" : [out] "=f"(x) : [in] "f"(a[0]));
// want: }

// case: what does more stays (10)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("cvta.to.global.u64 %0, %1;" : "=l"(p) : "l"(p));
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm("cvta.to.global.u64 %0, %1;" : "=l"(p) : "l"(p));
// want: }

// case: what does more stays (11)
__global__ void k(float *o, const float *a, const unsigned *b, const float *p)
{
    float x; unsigned r;
    asm("addc.u32 %0, %1, %1;" : "=r"(r) : "r"(b[0]));
}
// want: __global__ void k(float *o, const float *a, const unsigned int *b, const float *p)
// want: {
// want:     float x;
// want:     unsigned int r;
// want:     asm("addc.u32 %0, %1, %1;" : "=r"(r) : "r"(b[0]));
// want: }
