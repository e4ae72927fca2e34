// ==== in a function that the kernel calls
// fault: a read of 4 bytes outside its array
__device__ float at(const float *p, int i) {
  return p[i + 1];  // here
}
__global__ void k(float *o, const float *x, int n) {
  o[threadIdx.x & 63] = at(x, threadIdx.x & 63);
}

// ==== in a template's shared memory
// fault: a read of shared memory that nobody has written
template <int N> __device__ float sum(float v) {
  __shared__ float part[N];
  if (threadIdx.x < N - 1)
    part[threadIdx.x] = v;
  __syncthreads();
  return part[threadIdx.x % N];  // here
}
__global__ void k(float *o, const float *x, int n) {
  o[threadIdx.x & 63] = sum<32>(x[threadIdx.x & 63]);
}

// ==== a barrier in a function that not all call
// fault: a barrier that is not reached by all
template <typename T> __device__ void wait(T) {
  __syncthreads();  // here
}
__global__ void k(float *o, const float *x, int n) {
  if (threadIdx.x < 40)
    wait(1);
  o[threadIdx.x & 63] = __shfl_xor_sync(0xffffffffu, 1, 1);  // other
  __syncthreads();
}

// ==== an overflow in a template
// fault: an integer that overflows
template <typename T> __device__ T place(T row, T width) {
  return row * width;  // here
}
__global__ void k(float *o, const float *x, int n) {
  o[place<int>(threadIdx.x + 1, 90000000) & 63] = 1;
}

// ==== a misaligned vector in a function
// fault: a misaligned access
__device__ float4 four(const float *p) {
  return *reinterpret_cast<const float4 *>(p);  // here
}
__global__ void k(float *o, const float *x, int n) {
  o[threadIdx.x & 63] = four(x + threadIdx.x % 3).x;
}

// ==== no wait for an arrival
// fault: a race in shared memory
#include <stdint.h>
__device__ void made(unsigned at, int n) { asm("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(n)); }
__device__ void comes(unsigned at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at)); }
__device__ void waits(unsigned at, unsigned phase) {
  asm volatile("{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;"
               " @P1 bra DONE; bra LAB_WAIT; DONE: }" ::"r"(at), "r"(phase) : "memory");
}
__global__ void k(float *o, const float *x, int n) {
  __shared__ uint64_t b;
  __shared__ float s[32];
  const unsigned at = (unsigned)__cvta_generic_to_shared(&b);
  int t = threadIdx.x;
  if (t == 0)
    made(at, 32);
  __syncthreads();
  if (t < 32) {
    s[t] = x[t];  // other
    comes(at);
  } else if (t < 64) {
    o[t] = s[t - 32];  // here
  }
}

// ==== a barrier in shared memory before others know it
// fault: a race in shared memory
#include <stdint.h>
__device__ void made(unsigned at, int n) { asm("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(n)); }  // other
__device__ void comes(unsigned at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at)); }  // here
__device__ void waits(unsigned at, unsigned phase) {
  asm volatile("{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;"
               " @P1 bra DONE; bra LAB_WAIT; DONE: }" ::"r"(at), "r"(phase) : "memory");
}
__global__ void k(float *o, const float *x, int n) {
  __shared__ uint64_t b;
  const unsigned at = (unsigned)__cvta_generic_to_shared(&b);
  int t = threadIdx.x;
  if (t == 0)
    made(at, 96);
  comes(at);
}

// ==== half of a wave without a mask
#include <hip/hip_runtime.h>
__device__ float sum(float v) {
  for (int i = 16; i; i /= 2)
    v += __shfl_xor(v, i);
  return v;
}
__global__ void k(float *o, const float *x, int n) {
  __shared__ float part[4];
  int t = threadIdx.x;
  float v = sum(t < 64 ? x[t] : 0);
  if (t % 32 == 0)
    part[t / 32] = v;
  __syncthreads();
  if (t < 32) {
    v = sum(t < 3 ? part[t] : 0);
    if (t == 0)
      o[blockIdx.x] = v;
  }
}

// ==== an arrival that is waited for
#include <stdint.h>
__device__ void made(unsigned at, int n) { asm("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(n)); }
__device__ void comes(unsigned at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at)); }
__device__ void waits(unsigned at, unsigned phase) {
  asm volatile("{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;"
               " @P1 bra DONE; bra LAB_WAIT; DONE: }" ::"r"(at), "r"(phase) : "memory");
}
__global__ void k(float *o, const float *x, int n) {
  __shared__ uint64_t b[2];
  __shared__ float s[32];
  const unsigned full = (unsigned)__cvta_generic_to_shared(&b[0]), empty = full + 8;
  int t = threadIdx.x;
  if (t == 0) {
    made(full, 32);
    made(empty, 32);
  }
  __syncthreads();
  for (int i = 0; i < 4; i++) {
    if (t < 32) {
      waits(empty, (i & 1) ^ 1);
      s[t] = x[t] + i;
      comes(full);
    } else if (t < 64) {
      waits(full, i & 1);
      o[t - 32 * blockIdx.x] = s[63 - t];
      comes(empty);
    }
  }
}
