// bfloat16.
#pragma once
#include "tunesmith_small.h"
#define T __nv_bfloat16
#define T2 __nv_bfloat162
#define OF bfloat_of
#define TO of_bfloat
#define RAW __nv_bfloat16_raw
#define RAW2 __nv_bfloat162_raw
#include "tunesmith_two_bytes.inc"
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
static inline float __bfloat162float(__nv_bfloat16 a) { return (float)a; }
static inline __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
static inline __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
static inline __nv_bfloat16 __double2bfloat16(double a) { return __nv_bfloat16(a); }
static inline __nv_bfloat162 __float2bfloat162_rn(float a) { return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(a)); }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b)); }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 a) { return __nv_bfloat162(__nv_bfloat16(a.x), __nv_bfloat16(a.y)); }
static inline float2 __bfloat1622float2(__nv_bfloat162 a) { return {(float)a.x, (float)a.y}; }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
static inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.x, a.x); }
static inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.y); }
static inline __nv_bfloat162 __lowhigh2highlow_bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.x); }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.__x; }
static inline short __bfloat16_as_short(__nv_bfloat16 a) { return (short)a.__x; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return __nv_bfloat16(__nv_bfloat16_raw{a}); }
static inline __nv_bfloat16 __short_as_bfloat16(short a) { return __nv_bfloat16(__nv_bfloat16_raw{(unsigned short)a}); }
static inline __nv_bfloat16 __int2bfloat16_rn(int a) { return __nv_bfloat16((double)a); }
static inline int __bfloat162int_rn(__nv_bfloat16 a) { return __tunesmith::to_integer<int>(nearbyintf((float)a), INT_MIN, INT_MAX); }
static inline int __bfloat162int_rz(__nv_bfloat16 a) { return __tunesmith::to_integer<int>(truncf((float)a), INT_MIN, INT_MAX); }
static inline int __bfloat162int_rd(__nv_bfloat16 a) { return __tunesmith::to_integer<int>(floorf((float)a), INT_MIN, INT_MAX); }
static inline int __bfloat162int_ru(__nv_bfloat16 a) { return __tunesmith::to_integer<int>(ceilf((float)a), INT_MIN, INT_MAX); }
static inline __nv_bfloat16 __uint2bfloat16_rn(unsigned a) { return __nv_bfloat16((double)a); }
static inline unsigned __bfloat162uint_rn(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned>(nearbyintf((float)a), 0, UINT_MAX); }
static inline unsigned __bfloat162uint_rz(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned>(truncf((float)a), 0, UINT_MAX); }
static inline unsigned __bfloat162uint_rd(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned>(floorf((float)a), 0, UINT_MAX); }
static inline unsigned __bfloat162uint_ru(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned>(ceilf((float)a), 0, UINT_MAX); }
static inline __nv_bfloat16 __short2bfloat16_rn(short a) { return __nv_bfloat16((double)a); }
static inline short __bfloat162short_rn(__nv_bfloat16 a) { return __tunesmith::to_integer<short>(nearbyintf((float)a), SHRT_MIN, SHRT_MAX); }
static inline short __bfloat162short_rz(__nv_bfloat16 a) { return __tunesmith::to_integer<short>(truncf((float)a), SHRT_MIN, SHRT_MAX); }
static inline short __bfloat162short_rd(__nv_bfloat16 a) { return __tunesmith::to_integer<short>(floorf((float)a), SHRT_MIN, SHRT_MAX); }
static inline short __bfloat162short_ru(__nv_bfloat16 a) { return __tunesmith::to_integer<short>(ceilf((float)a), SHRT_MIN, SHRT_MAX); }
static inline __nv_bfloat16 __ushort2bfloat16_rn(unsigned short a) { return __nv_bfloat16((double)a); }
static inline unsigned short __bfloat162ushort_rn(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned short>(nearbyintf((float)a), 0, USHRT_MAX); }
static inline unsigned short __bfloat162ushort_rz(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned short>(truncf((float)a), 0, USHRT_MAX); }
static inline unsigned short __bfloat162ushort_rd(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned short>(floorf((float)a), 0, USHRT_MAX); }
static inline unsigned short __bfloat162ushort_ru(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned short>(ceilf((float)a), 0, USHRT_MAX); }
static inline __nv_bfloat16 __ll2bfloat16_rn(long long a) { return __nv_bfloat16((double)a); }
static inline long long __bfloat162ll_rn(__nv_bfloat16 a) { return __tunesmith::to_integer<long long>(nearbyintf((float)a), LLONG_MIN, LLONG_MAX); }
static inline long long __bfloat162ll_rz(__nv_bfloat16 a) { return __tunesmith::to_integer<long long>(truncf((float)a), LLONG_MIN, LLONG_MAX); }
static inline long long __bfloat162ll_rd(__nv_bfloat16 a) { return __tunesmith::to_integer<long long>(floorf((float)a), LLONG_MIN, LLONG_MAX); }
static inline long long __bfloat162ll_ru(__nv_bfloat16 a) { return __tunesmith::to_integer<long long>(ceilf((float)a), LLONG_MIN, LLONG_MAX); }
static inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long a) { return __nv_bfloat16((double)a); }
static inline unsigned long long __bfloat162ull_rn(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned long long>(nearbyintf((float)a), 0, ULLONG_MAX); }
static inline unsigned long long __bfloat162ull_rz(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned long long>(truncf((float)a), 0, ULLONG_MAX); }
static inline unsigned long long __bfloat162ull_rd(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned long long>(floorf((float)a), 0, ULLONG_MAX); }
static inline unsigned long long __bfloat162ull_ru(__nv_bfloat16 a) { return __tunesmith::to_integer<unsigned long long>(ceilf((float)a), 0, ULLONG_MAX); }
