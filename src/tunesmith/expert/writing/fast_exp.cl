#if @FAST@
// exp(x) = 2^n * exp(r), with n the integer nearest to x / ln 2 and r what is left.
@VEC@ fast_exp(@VEC@ x)
{
    x = x < -104.0f ? (@VEC@)(-104.0f) : x;  // 0 below, infinity above; NaN passes
    x = x > 89.0f ? (@VEC@)(89.0f) : x;
    @VEC@ shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: n ends up in the lowest bits
    @IVEC@ n = @ASIVEC@(shifted) - 0x4b400000;
    @VEC@ whole = shifted - 12582912.0f;
    @VEC@ r = x - whole * 0.693145751953125f;  // ln 2 in two parts, the first times n is exact
    r = r - whole * 1.42860677e-6f;
    // 1 + r + r^2 * (a polynomial fitted for |r| <= ln(2) / 2, good to 1e-10)
    @VEC@ p = 1.979002700e-4f;
    p = p * r + 1.394497813e-3f;
    p = p * r + 8.333498612e-3f;
    p = p * r + 4.166629165e-2f;
    p = p * r + 1.666666567e-1f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    @IVEC@ half_n = n >> 1;  // two steps, so that neither 2^k overflows
    return p * @ASVEC@((half_n + 127) << 23) * @ASVEC@((n - half_n + 127) << 23);
}
#endif
