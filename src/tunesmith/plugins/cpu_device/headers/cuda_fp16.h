// Half precision.
#pragma once
#include "tunesmith_small.h"
#define __TS_T __half
#define __TS_T2 __half2
#define __TS_OF half_of
#define __TS_TO of_half
#define __TS_RAW __half_raw
#define __TS_RAW2 __half2_raw
#define __TS_NAME half
#include "tunesmith_two_bytes.inc"
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_ZERO_FP16 __ushort_as_half(0)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
static inline __half2 __lowhigh2highlow(__half2 a) { return __half2(a.y, a.x); }
