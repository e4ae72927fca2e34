// Conversions are known by what they give; what rounds otherwise or cannot be run is none.
// read: conversion

// case: float8
__device__ unsigned char to_e4m3(float value)
{
    const unsigned bits = __float_as_uint(value);
    const unsigned sign = bits >> 24 & 0x80;
    const unsigned magnitude = bits & 0x7fffffff;
    unsigned code;
    if (magnitude < 121u << 23) {
        code = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - __float_as_uint(16384.0f);
    } else {
        const unsigned is_odd = magnitude >> 20 & 1;
        code = (magnitude - (120u << 23) + 0x7ffff + is_odd) >> 20;
    }
    return static_cast<unsigned char>(sign | code);
}
// want: float8_e4m3

// case: bfloat16
__device__ unsigned short to_bf16(float v)
{
    unsigned u = __float_as_uint(v);
    u += 0x7fff + ((u >> 16) & 1);
    return u >> 16;
}
// want: bfloat16

// case: bits that are cut off
__device__ unsigned short to_bf16(float v)
{
    unsigned u = __float_as_uint(v);
    return u >> 16;
}
// want: none

// case: ties away from zero
__device__ unsigned short to_bf16(float v)
{
    unsigned u = __float_as_uint(v);
    u += 0x8000;
    return u >> 16;
}
// want: none

// case: a sign that is lost
__device__ unsigned char to_e4m3(float value)
{
    const unsigned bits = __float_as_uint(value);
    const unsigned sign = bits >> 24 & 0x80;
    const unsigned magnitude = bits & 0x7fffffff;
    unsigned code;
    if (magnitude < 121u << 23) {
        code = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - __float_as_uint(16384.0f);
    } else {
        const unsigned is_odd = magnitude >> 20 & 1;
        code = (magnitude - (120u << 23) + 0x7ffff + is_odd) >> 20;
    }
    return static_cast<unsigned char>(code);
}
// want: none

// case: a value behind a pointer
__device__ unsigned short to_bf16(float *v)
{
    unsigned u = __float_as_uint(*v);
    u += 0x7fff + ((u >> 16) & 1);
    return u >> 16;
}
// want: none

// case: no end
__device__ unsigned short f(float v) { for (;;) {} return 0; }
// want: none

// case: a call of what is not there
__device__ unsigned short f(float v) { return unheard_of(v); }
// want: none
