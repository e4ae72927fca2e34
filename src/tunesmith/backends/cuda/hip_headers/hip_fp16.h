// Half precision has the same names in both.
#pragma once
#include <hip/hip_runtime.h>
#include <cuda_fp16.h>
