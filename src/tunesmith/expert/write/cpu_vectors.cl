// What a written OpenCL file defines before its kernel: vectors of so many floats, and a fast exp of them.
// Parts begin with their names; parts.py puts words in place of @THESE@.
//= kind
#@IF@ @KNOB@ == @NUMBER@
typedef float@DIGITS@ vec;
typedef int@DIGITS@ ivec;
#define AS_VEC as_float@DIGITS@
#define AS_IVEC as_int@DIGITS@
//= narrow
typedef @WORD@@DIGITS@ @WORD@_vec;
//= moves
#endif

// A row may start at any float. A packed struct says so, and unlike vloadN it is never a call.
typedef struct __attribute__((packed)) { vec v; } unaligned;
#define LOAD(from) ((__global const unaligned *)(from))->v
#define STORE(x, to) (((__global unaligned *)(to))->v = (x))

//= int moves
typedef struct __attribute__((packed)) { ivec v; } unaligned_int;
#define @LOAD@(from) ((__global const unaligned_int *)(from))->v
#define @STORE@(x, to) (((__global unaligned_int *)(to))->v = (x))

//= narrow moves
// Computed with as ints, as C does; stored as the low bits of them.
typedef struct __attribute__((packed)) { @WORD@_vec v; } unaligned_@WORD@;
#define @LOAD@(from) @WIDE@(((__global const unaligned_@WORD@ *)(from))->v)
#define @STORE@(x, to) (((__global unaligned_@WORD@ *)(to))->v = @NARROW@(x))

//= fast exp
#if @FAST@
// exp(x) = 2^n * exp(r), with n the integer nearest to x / ln 2 and r what is left.
vec fast_exp(vec x)
{
    x = x < -104.0f ? (vec)(-104.0f) : x;  // 0 below, infinity above; NaN passes
    x = x > 89.0f ? (vec)(89.0f) : x;
    vec shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: n ends up in the lowest bits
    ivec n = AS_IVEC(shifted) - 0x4b400000;
    vec whole = shifted - 12582912.0f;
    vec r = x - whole * 0.693145751953125f;  // ln 2 in two parts, the first times n is exact
    r = r - whole * 1.42860677e-6f;
    // 1 + r + r^2 * (a polynomial fitted for |r| <= ln(2) / 2, good to 1e-10)
    vec p = 1.979002700e-4f;
    p = p * r + 1.394497813e-3f;
    p = p * r + 8.333498612e-3f;
    p = p * r + 4.166629165e-2f;
    p = p * r + 1.666666567e-1f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    ivec half_n = n >> 1;  // two steps, so that neither 2^k overflows
    return p * AS_VEC((half_n + 127) << 23) * AS_VEC((n - half_n + 127) << 23);
}
#endif
