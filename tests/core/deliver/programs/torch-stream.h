#pragma once
#include <cuda.h>
using cudaStream_t = CUstream;
namespace at { namespace cuda {
struct CUDAStream { cudaStream_t stream() const; };
CUDAStream getCurrentCUDAStream(int device = -1);
} }
