#pragma once

#ifdef USE_ROCM
  #define OWN_LOAD(pointer) *(pointer)
  #define OWN_LANES 64
#else
  #define OWN_LOAD(pointer) __ldg(pointer)
  #define OWN_LANES 32
#endif

#define OWN_INLINE __device__ __forceinline__
#define OWN_SHUFFLE(value, lanes) \
  __shfl_xor_sync(0xffffffffu, value, lanes)
#define OWN_UNUSED_MACRO 7
