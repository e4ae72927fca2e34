// Numbers of two bytes and of one: how they are made from wider ones, and what they mean.
#pragma once
#include "tunesmith_cpu.h"
#include <type_traits>

namespace __tunesmith {
// To the nearest, ties to even, of a format with so many bits of mantissa and such a bias. `highest` is the code
// of its largest number; what is beyond becomes `beyond`, what is no number `nan`.
static inline unsigned narrowed(double x, int mantissa, int bias, unsigned highest, unsigned beyond, unsigned nan, int sign_at)
{
    unsigned long long bits;
    memcpy(&bits, &x, 8);
    const unsigned sign = (unsigned)(bits >> 63) << sign_at;
    if (x != x)
        return sign | nan;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    unsigned long long whole = (bits & ((1ull << 52) - 1)) | (bits >> 52 & 0x7ff ? 1ull << 52 : 0);
    int drop = 52 - mantissa;
    int code = exponent + bias;
    if (code < 1) {  // below the least normal number
        drop += 1 - code;
        code = 0;
    }
    if (drop > 63)
        return sign;
    const unsigned long long half = 1ull << (drop - 1), rest = whole & ((1ull << drop) - 1);
    unsigned long long kept = whole >> drop;
    kept += rest > half || (rest == half && (kept & 1));
    const unsigned long long magnitude = code ? ((unsigned long long)(code - 1) << mantissa) + kept : kept;
    return sign | (magnitude > highest ? beyond : (unsigned)magnitude);
}
static inline unsigned short half_of(double x) { return (unsigned short)narrowed(x, 10, 15, 0x7bff, 0x7c00, 0x7fff, 15); }
static inline unsigned short half_of(float x)
{
    unsigned f;
    memcpy(&f, &x, 4);
    const unsigned sign = f >> 16 & 0x8000u, e = f >> 23 & 0xff;
    if (e < 113 || e > 141)
        return half_of((double)x);
    const unsigned kept = (f & 0x7fffffffu) - (112u << 23), up = kept + 0xfff + (kept >> 13 & 1);
    return (unsigned short)(sign | up >> 13);
}
static inline float of_half(unsigned short code)
{
    const unsigned sign = (unsigned)(code & 0x8000u) << 16, e = code >> 10 & 0x1f, m = code & 0x3ffu;
    unsigned bits;
    if (e == 31)
        bits = sign | 0x7f800000u | m << 13;
    else if (e)
        bits = sign | (e + 112) << 23 | m << 13;
    else {
        const float value = (float)m * 5.9604644775390625e-8f;
        return sign ? -value : value;
    }
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static inline unsigned short bfloat_of(float x)
{
    unsigned f;
    memcpy(&f, &x, 4);
    return x != x ? 0x7fff : (unsigned short)((f + 0x7fff + (f >> 16 & 1)) >> 16);
}
static inline unsigned short bfloat_of(double x)
{
    return (unsigned short)narrowed(x, 7, 127, 0x7f7f, 0x7f80, 0x7fff, 15);
}
static inline float of_bfloat(unsigned short code)
{
    const unsigned f = (unsigned)code << 16;
    float x;
    memcpy(&x, &f, 4);
    return x;
}
}  // namespace __tunesmith
