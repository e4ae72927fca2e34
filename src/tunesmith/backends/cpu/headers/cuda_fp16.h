// Half precision.
#pragma once
#include "tunesmith_small.h"
#define T __half
#define T2 __half2
#define OF half_of
#define TO of_half
#define RAW __half_raw
#define RAW2 __half2_raw
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
static inline float __half2float(__half a) { return (float)a; }
static inline __half __float2half(float a) { return __half(a); }
static inline __half __float2half_rn(float a) { return __half(a); }
static inline __half __double2half(double a) { return __half(a); }
static inline __half2 __float2half2_rn(float a) { return __half2(__half(a), __half(a)); }
static inline __half2 __floats2half2_rn(float a, float b) { return __half2(__half(a), __half(b)); }
static inline __half2 __float22half2_rn(float2 a) { return __half2(__half(a.x), __half(a.y)); }
static inline float2 __half22float2(__half2 a) { return {(float)a.x, (float)a.y}; }
static inline __half2 __half2half2(__half a) { return __half2(a, a); }
static inline __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
static inline __half __low2half(__half2 a) { return a.x; }
static inline __half __high2half(__half2 a) { return a.y; }
static inline __half2 __low2half2(__half2 a) { return __half2(a.x, a.x); }
static inline __half2 __high2half2(__half2 a) { return __half2(a.y, a.y); }
static inline __half2 __lowhigh2highlow(__half2 a) { return __half2(a.y, a.x); }
static inline __half2 make_half2(__half a, __half b) { return __half2(a, b); }
static inline unsigned short __half_as_ushort(__half a) { return a.__x; }
static inline short __half_as_short(__half a) { return (short)a.__x; }
static inline __half __ushort_as_half(unsigned short a) { return __half(__half_raw{a}); }
static inline __half __short_as_half(short a) { return __half(__half_raw{(unsigned short)a}); }
static inline __half __int2half_rn(int a) { return __half((double)a); }
static inline int __half2int_rn(__half a) { return __tunesmith::to_integer<int>(nearbyintf((float)a), INT_MIN, INT_MAX); }
static inline int __half2int_rz(__half a) { return __tunesmith::to_integer<int>(truncf((float)a), INT_MIN, INT_MAX); }
static inline int __half2int_rd(__half a) { return __tunesmith::to_integer<int>(floorf((float)a), INT_MIN, INT_MAX); }
static inline int __half2int_ru(__half a) { return __tunesmith::to_integer<int>(ceilf((float)a), INT_MIN, INT_MAX); }
static inline __half __uint2half_rn(unsigned a) { return __half((double)a); }
static inline unsigned __half2uint_rn(__half a) { return __tunesmith::to_integer<unsigned>(nearbyintf((float)a), 0, UINT_MAX); }
static inline unsigned __half2uint_rz(__half a) { return __tunesmith::to_integer<unsigned>(truncf((float)a), 0, UINT_MAX); }
static inline unsigned __half2uint_rd(__half a) { return __tunesmith::to_integer<unsigned>(floorf((float)a), 0, UINT_MAX); }
static inline unsigned __half2uint_ru(__half a) { return __tunesmith::to_integer<unsigned>(ceilf((float)a), 0, UINT_MAX); }
static inline __half __short2half_rn(short a) { return __half((double)a); }
static inline short __half2short_rn(__half a) { return __tunesmith::to_integer<short>(nearbyintf((float)a), SHRT_MIN, SHRT_MAX); }
static inline short __half2short_rz(__half a) { return __tunesmith::to_integer<short>(truncf((float)a), SHRT_MIN, SHRT_MAX); }
static inline short __half2short_rd(__half a) { return __tunesmith::to_integer<short>(floorf((float)a), SHRT_MIN, SHRT_MAX); }
static inline short __half2short_ru(__half a) { return __tunesmith::to_integer<short>(ceilf((float)a), SHRT_MIN, SHRT_MAX); }
static inline __half __ushort2half_rn(unsigned short a) { return __half((double)a); }
static inline unsigned short __half2ushort_rn(__half a) { return __tunesmith::to_integer<unsigned short>(nearbyintf((float)a), 0, USHRT_MAX); }
static inline unsigned short __half2ushort_rz(__half a) { return __tunesmith::to_integer<unsigned short>(truncf((float)a), 0, USHRT_MAX); }
static inline unsigned short __half2ushort_rd(__half a) { return __tunesmith::to_integer<unsigned short>(floorf((float)a), 0, USHRT_MAX); }
static inline unsigned short __half2ushort_ru(__half a) { return __tunesmith::to_integer<unsigned short>(ceilf((float)a), 0, USHRT_MAX); }
static inline __half __ll2half_rn(long long a) { return __half((double)a); }
static inline long long __half2ll_rn(__half a) { return __tunesmith::to_integer<long long>(nearbyintf((float)a), LLONG_MIN, LLONG_MAX); }
static inline long long __half2ll_rz(__half a) { return __tunesmith::to_integer<long long>(truncf((float)a), LLONG_MIN, LLONG_MAX); }
static inline long long __half2ll_rd(__half a) { return __tunesmith::to_integer<long long>(floorf((float)a), LLONG_MIN, LLONG_MAX); }
static inline long long __half2ll_ru(__half a) { return __tunesmith::to_integer<long long>(ceilf((float)a), LLONG_MIN, LLONG_MAX); }
static inline __half __ull2half_rn(unsigned long long a) { return __half((double)a); }
static inline unsigned long long __half2ull_rn(__half a) { return __tunesmith::to_integer<unsigned long long>(nearbyintf((float)a), 0, ULLONG_MAX); }
static inline unsigned long long __half2ull_rz(__half a) { return __tunesmith::to_integer<unsigned long long>(truncf((float)a), 0, ULLONG_MAX); }
static inline unsigned long long __half2ull_rd(__half a) { return __tunesmith::to_integer<unsigned long long>(floorf((float)a), 0, ULLONG_MAX); }
static inline unsigned long long __half2ull_ru(__half a) { return __tunesmith::to_integer<unsigned long long>(ceilf((float)a), 0, ULLONG_MAX); }
