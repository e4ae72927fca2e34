// bfloat16.
#pragma once
#include "tunesmith_small.h"
#define __TS_T __nv_bfloat16
#define __TS_T2 __nv_bfloat162
#define __TS_OF bfloat_of
#define __TS_TO of_bfloat
#define __TS_RAW __nv_bfloat16_raw
#define __TS_RAW2 __nv_bfloat162_raw
#define __TS_NAME bfloat16
#include "tunesmith_two_bytes.inc"
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
static inline __nv_bfloat162 __lowhigh2highlow_bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.x); }
