// Numbers of one byte: e4m3 without infinities, e5m2.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace __tunesmith {
static inline unsigned char byte_of(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind)
{
    if (kind == __NV_E4M3)
        return (unsigned char)narrowed(x, 3, 7, 0x7e, saturate == __NV_SATFINITE ? 0x7e : 0x7f, 0x7f, 7);
    return (unsigned char)narrowed(x, 2, 15, 0x7b, saturate == __NV_SATFINITE ? 0x7b : 0x7c, 0x7f, 7);
}
static inline float of_byte(unsigned char code, __nv_fp8_interpretation_t kind)
{
    if (kind == __NV_E5M2)
        return of_half((unsigned short)(code << 8));
    if ((code & 0x7f) == 0x7f)
        return __int_as_float(0x7fffffff);
    const int e = code >> 3 & 0xf, m = code & 7;
    const float value = e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
    return code & 0x80 ? -value : value;
}
}  // namespace __tunesmith

static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __tunesmith::byte_of(x, s, k); }
static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __tunesmith::byte_of(x, s, k); }
static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __tunesmith::byte_of((float)__half(x), s, k); }
static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __tunesmith::byte_of((float)__nv_bfloat16(x), s, k); }
static inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return (__nv_fp8x2_storage_t)(__tunesmith::byte_of(v.x, s, k) | __tunesmith::byte_of(v.y, s, k) << 8); }
static inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __nv_cvt_float2_to_fp8x2({__tunesmith::of_half(v.x), __tunesmith::of_half(v.y)}, s, k); }
static inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __nv_cvt_float2_to_fp8x2({__tunesmith::of_bfloat(v.x), __tunesmith::of_bfloat(v.y)}, s, k); }
static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t k) { return {__tunesmith::half_of(__tunesmith::of_byte(x, k))}; }
static inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t k) { return {__tunesmith::half_of(__tunesmith::of_byte((unsigned char)x, k)), __tunesmith::half_of(__tunesmith::of_byte((unsigned char)(x >> 8), k))}; }

#define TUNESMITH_FP8(name, kind)                                                                         \
    struct name {                                                                                         \
        __nv_fp8_storage_t __x;                                                                           \
        name() = default;                                                                                 \
        explicit name(float v) : __x(__tunesmith::byte_of(v, __NV_SATFINITE, kind)) {}                    \
        explicit name(double v) : __x(__tunesmith::byte_of(v, __NV_SATFINITE, kind)) {}                   \
        explicit name(__half v) : name((float)v) {}                                                       \
        explicit name(__nv_bfloat16 v) : name((float)v) {}                                                \
        explicit name(int v) : name((double)v) {}                                                         \
        explicit name(unsigned v) : name((double)v) {}                                                    \
        explicit operator float() const { return __tunesmith::of_byte(__x, kind); }                       \
        explicit operator double() const { return __tunesmith::of_byte(__x, kind); }                      \
        explicit operator __half() const { return __half((float)*this); }                                 \
        explicit operator __nv_bfloat16() const { return __nv_bfloat16((float)*this); }                   \
        explicit operator bool() const { return (__x & 0x7f) != 0; }                                      \
    };
TUNESMITH_FP8(__nv_fp8_e4m3, __NV_E4M3)
TUNESMITH_FP8(__nv_fp8_e5m2, __NV_E5M2)
#define TUNESMITH_FP8X(two, four, kind)                                                                   \
    struct two {                                                                                          \
        __nv_fp8x2_storage_t __x;                                                                         \
        two() = default;                                                                                  \
        explicit two(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, kind)) {}                \
        explicit two(__half2 v) : two(__half22float2(v)) {}                                               \
        explicit two(__nv_bfloat162 v) : two(__bfloat1622float2(v)) {}                                    \
        explicit operator float2() const { return {__tunesmith::of_byte((unsigned char)__x, kind), __tunesmith::of_byte((unsigned char)(__x >> 8), kind)}; } \
        explicit operator __half2() const { return __float22half2_rn((float2)*this); }                    \
    };                                                                                                    \
    struct four {                                                                                         \
        __nv_fp8x4_storage_t __x;                                                                         \
        four() = default;                                                                                 \
        explicit four(float4 v) : __x(__nv_cvt_float2_to_fp8x2({v.x, v.y}, __NV_SATFINITE, kind) | (unsigned)__nv_cvt_float2_to_fp8x2({v.z, v.w}, __NV_SATFINITE, kind) << 16) {} \
        explicit operator float4() const                                                                  \
        {                                                                                                 \
            return {__tunesmith::of_byte((unsigned char)__x, kind), __tunesmith::of_byte((unsigned char)(__x >> 8), kind), \
                    __tunesmith::of_byte((unsigned char)(__x >> 16), kind), __tunesmith::of_byte((unsigned char)(__x >> 24), kind)}; \
        }                                                                                                 \
    };
TUNESMITH_FP8X(__nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
TUNESMITH_FP8X(__nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
