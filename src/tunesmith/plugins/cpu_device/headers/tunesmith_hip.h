// HIP's words beside CUDA's: warp operations without masks take the threads of the wave that are there.
#pragma once
template <typename T> static inline T __shfl(T v, int from, int width = TUNESMITH_WARP, unsigned line = __builtin_LINE()) { return __shfl_sync(__tunesmith_active(line), v, from, width); }
template <typename T> static inline T __shfl_xor(T v, int step, int width = TUNESMITH_WARP, unsigned line = __builtin_LINE()) { return __shfl_xor_sync(__tunesmith_active(line), v, step, width); }
template <typename T> static inline T __shfl_down(T v, unsigned step, int width = TUNESMITH_WARP, unsigned line = __builtin_LINE()) { return __shfl_down_sync(__tunesmith_active(line), v, step, width); }
template <typename T> static inline T __shfl_up(T v, unsigned step, int width = TUNESMITH_WARP, unsigned line = __builtin_LINE()) { return __shfl_up_sync(__tunesmith_active(line), v, step, width); }
static inline unsigned long long __ballot(int holds, unsigned line = __builtin_LINE()) { return __ballot_sync(__tunesmith_active(line), holds); }
static inline int __any(int holds, unsigned line = __builtin_LINE()) { return __any_sync(__tunesmith_active(line), holds); }
static inline int __all(int holds, unsigned line = __builtin_LINE()) { return __all_sync(__tunesmith_active(line), holds); }
static inline unsigned __lane_id() { return __tunesmith_laneid(); }
#define HIP_DYNAMIC_SHARED(type, name) type *name = (type *)__tunesmith_dynamic();
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
#if !defined(__clang__)
template <typename T> static inline T __builtin_nontemporal_load(const T *from) { return *from; }
template <typename T, typename U> static inline void __builtin_nontemporal_store(U value, T *to) { *to = (T)value; }
#endif
static inline void __builtin_amdgcn_s_barrier() { __syncthreads(); }
static inline void __builtin_amdgcn_wave_barrier(unsigned line = __builtin_LINE()) { __syncwarp(__tunesmith_active(line)); }
