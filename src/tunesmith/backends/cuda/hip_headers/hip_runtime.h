// HIP's device side in CUDA's words: what kernels use that compile for NVIDIA's GPUs through NVRTC.
#pragma once
#define __HIP_PLATFORM_NVIDIA__ 1
#define __HIP__ 1
#define __HIPCC__ 1
#define __HIP_DEVICE_COMPILE__ 1

#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

// Without a mask all lanes of a wave take part; a wave has 32 of them here, and `warpSize` says so.
#define TUNESMITH_LANES 0xffffffffu
#define __shfl(...) __shfl_sync(TUNESMITH_LANES, __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(TUNESMITH_LANES, __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(TUNESMITH_LANES, __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(TUNESMITH_LANES, __VA_ARGS__)
#define __any(...) __any_sync(TUNESMITH_LANES, __VA_ARGS__)
#define __all(...) __all_sync(TUNESMITH_LANES, __VA_ARGS__)
#define __ballot(...) (static_cast<unsigned long long>(__ballot_sync(TUNESMITH_LANES, __VA_ARGS__)))
__device__ __forceinline__ unsigned __lane_id() {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// What is not to stay in caches.
template <typename T>
__device__ __forceinline__ T __builtin_nontemporal_load(const T *from) { return __ldcs(from); }
template <typename T, typename V>
__device__ __forceinline__ void __builtin_nontemporal_store(V value, T *to) { __stcs(to, static_cast<T>(value)); }

template <typename T>
__device__ __forceinline__ T unsafeAtomicAdd(T *to, T value) { return atomicAdd(to, value); }
