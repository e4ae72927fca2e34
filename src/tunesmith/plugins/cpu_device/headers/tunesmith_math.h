// Arithmetic of device code on the host: C's own functions, C++'s overloads for floats, CUDA's intrinsics.
#pragma once

static inline float __tunesmith_rcp(float x) { return 1.0f / x; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x < 0.0f || x != x ? 0.0f : x > 1.0f ? 1.0f : x; }
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
static inline float sinpif(float x) { return sinf(3.14159265358979f * (x - 2.0f * rintf(0.5f * x))); }
static inline float cospif(float x) { return cosf(3.14159265358979f * (x - 2.0f * rintf(0.5f * x))); }
static inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
static inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }

#define __expf(x) expf(x)
#define __exp10f(x) powf(10.0f, x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __tanhf(x) tanhf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, s, c) (*(s) = sinf(x), *(c) = cosf(x), (void)0)
#define sincosf __sincosf
#define __frsqrt_rn(x) rsqrtf(x)

#define TUNESMITH_ROUNDED(type, prefix, one)                                                     \
    static inline type prefix##add_##one(type a, type b) { return a + b; }                       \
    static inline type prefix##sub_##one(type a, type b) { return a - b; }                       \
    static inline type prefix##mul_##one(type a, type b) { return a * b; }                       \
    static inline type prefix##div_##one(type a, type b) { return a / b; }
TUNESMITH_ROUNDED(float, __f, rn)
TUNESMITH_ROUNDED(double, __d, rn)
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline double __drcp_rn(double x) { return 1.0 / x; }

// -- bits

static inline unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
static inline float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
static inline float __int_as_float(int i) { float x; memcpy(&x, &i, 4); return x; }
static inline int __float_as_int(float x) { int i; memcpy(&i, &x, 4); return i; }
static inline long long __double_as_longlong(double x) { long long i; memcpy(&i, &x, 8); return i; }
static inline double __longlong_as_double(long long i) { double x; memcpy(&x, &i, 8); return x; }
static inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline double __hiloint2double(int high, int low)
{
    return __longlong_as_double((long long)(((unsigned long long)(unsigned)high << 32) | (unsigned)low));
}
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= (x >> i & 1u) << (31 - i);
    return r;
}
static inline int __mul24(int a, int b) { return (int)((unsigned)((int)((unsigned)a << 8) >> 8) * (unsigned)((int)((unsigned)b << 8) >> 8)); }
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
static inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which)
{
    const unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned pick = which >> 4 * i & 0xf;
        unsigned byte = (unsigned)(both >> 8 * (pick & 7) & 0xff);
        if (pick & 8)
            byte = byte & 0x80 ? 0xff : 0;
        r |= byte << 8 * i;
    }
    return r;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) { by &= 31; return by ? high << by | low >> (32 - by) : high; }
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) { by &= 31; return by ? low >> by | high << (32 - by) : low; }
static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++)
        c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
    return c;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 4; i++)
        c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}
static inline unsigned __vadd4(unsigned a, unsigned b) { return ((a & 0x7f7f7f7fu) + (b & 0x7f7f7f7fu)) ^ ((a ^ b) & 0x80808080u); }
static inline int __sad(int a, int b, unsigned c) { return (int)((a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c); }

// -- conversions: to integers they saturate, and what is no number is zero

namespace __tunesmith {
template <typename T, typename F>
static inline T to_integer(F x, T lowest, T highest)
{
    return x != x ? (T)0 : x <= (F)lowest ? lowest : x >= (F)highest ? highest : (T)x;
}
}  // namespace __tunesmith
// Casts in the text of a kernel become these. Narrower integers are what is left of 32 bits.
namespace __tunesmith {
template <typename T> struct Clamped { static constexpr bool holds = false; };
#define TUNESMITH_CLAMPED(type, as, least, most) \
    template <> struct Clamped<type> { static constexpr bool holds = true; typedef as wide; static constexpr as lowest = least, highest = most; };
TUNESMITH_CLAMPED(char, int, INT_MIN, INT_MAX)
TUNESMITH_CLAMPED(signed char, int, INT_MIN, INT_MAX)
TUNESMITH_CLAMPED(short, int, INT_MIN, INT_MAX)
TUNESMITH_CLAMPED(int, int, INT_MIN, INT_MAX)
TUNESMITH_CLAMPED(unsigned char, unsigned, 0, UINT_MAX)
TUNESMITH_CLAMPED(unsigned short, unsigned, 0, UINT_MAX)
TUNESMITH_CLAMPED(unsigned, unsigned, 0, UINT_MAX)
TUNESMITH_CLAMPED(long, long, LONG_MIN, LONG_MAX)
TUNESMITH_CLAMPED(unsigned long, unsigned long, 0, ULONG_MAX)
TUNESMITH_CLAMPED(long long, long long, LLONG_MIN, LLONG_MAX)
TUNESMITH_CLAMPED(unsigned long long, unsigned long long, 0, ULLONG_MAX)
template <typename T> struct Floats { static constexpr bool holds = false; };
template <> struct Floats<float> { static constexpr bool holds = true; };
template <> struct Floats<double> { static constexpr bool holds = true; };
}  // namespace __tunesmith
template <typename T, typename F> constexpr T __tunesmith_cast(F x)
{
    if constexpr (__tunesmith::Clamped<T>::holds && __tunesmith::Floats<F>::holds) {
        typedef __tunesmith::Clamped<T> own;
        return (T)(x != x ? 0 : x <= (F)own::lowest ? own::lowest : x >= (F)own::highest ? own::highest : (typename own::wide)x);
    } else
        return (T)x;
}
// Conversions that a text does not spell become these: where somebody watches, one beyond the range is told.
extern "C" void __tunesmith_beyond();
namespace __tunesmith {
template <typename T> struct Bare { typedef T type; };
template <typename T> struct Bare<T &> : Bare<T> {};
template <typename T> struct Bare<const T> : Bare<T> {};
template <typename T> struct Bare<volatile T> : Bare<T> {};
template <typename T> struct Bare<const volatile T> : Bare<T> {};
template <typename T> using Like = typename Bare<T>::type;
template <typename T> constexpr bool is_beyond(double x)
{
    const double whole = __builtin_trunc(x), end = (double)((T)-1 > (T)0 ? ~0ull >> (64 - 8 * sizeof(T)) : ~0ull >> (65 - 8 * sizeof(T))) + 1;
    return !(whole >= ((T)-1 > (T)0 ? 0 : -end) && whole < end);
}
}  // namespace __tunesmith
template <typename T, typename F> constexpr T __tunesmith_implied(F x)
{
#ifdef TUNESMITH_WATCH
    if constexpr (__tunesmith::Clamped<T>::holds && __tunesmith::Floats<F>::holds)
        if (__tunesmith::is_beyond<T>(x))
            __tunesmith_beyond();
#endif
    return __tunesmith_cast<T>(x);
}
namespace __tunesmith {
template <typename F> struct Implied {
    F x;
    template <typename T> constexpr operator T() const { return __tunesmith_implied<T>(x); }
};
}  // namespace __tunesmith
template <typename F> constexpr __tunesmith::Implied<F> __tunesmith_implied_to(F x) { return {x}; }
#define TUNESMITH_TO(name, type, from, lowest, highest)                                                       \
    static inline type __##from##2##name##_rn(from x) { return __tunesmith::to_integer<type>(nearbyint(x), lowest, highest); } \
    static inline type __##from##2##name##_rz(from x) { return __tunesmith::to_integer<type>(trunc(x), lowest, highest); }     \
    static inline type __##from##2##name##_rd(from x) { return __tunesmith::to_integer<type>(floor(x), lowest, highest); }     \
    static inline type __##from##2##name##_ru(from x) { return __tunesmith::to_integer<type>(ceil(x), lowest, highest); }
TUNESMITH_TO(int, int, float, INT_MIN, INT_MAX)
TUNESMITH_TO(uint, unsigned, float, 0, UINT_MAX)
TUNESMITH_TO(ll, long long, float, LLONG_MIN, LLONG_MAX)
TUNESMITH_TO(ull, unsigned long long, float, 0, ULLONG_MAX)
TUNESMITH_TO(int, int, double, INT_MIN, INT_MAX)
TUNESMITH_TO(uint, unsigned, double, 0, UINT_MAX)
TUNESMITH_TO(ll, long long, double, LLONG_MIN, LLONG_MAX)
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }

// -- C++'s overloads, which one of its libraries has in its math.h

#ifdef _LIBCPP_VERSION
#include <stdlib.h>
#else
#undef isnan
#undef isinf
#undef isfinite
#undef signbit
#define TUNESMITH_ONE(name) static inline float name(float x) { return name##f(x); }
TUNESMITH_ONE(acos) TUNESMITH_ONE(acosh) TUNESMITH_ONE(asin) TUNESMITH_ONE(asinh) TUNESMITH_ONE(atan)
TUNESMITH_ONE(atanh) TUNESMITH_ONE(cbrt) TUNESMITH_ONE(ceil) TUNESMITH_ONE(cos) TUNESMITH_ONE(cosh)
TUNESMITH_ONE(erf) TUNESMITH_ONE(erfc) TUNESMITH_ONE(exp) TUNESMITH_ONE(exp2) TUNESMITH_ONE(expm1)
TUNESMITH_ONE(fabs) TUNESMITH_ONE(floor) TUNESMITH_ONE(lgamma) TUNESMITH_ONE(log) TUNESMITH_ONE(log10)
TUNESMITH_ONE(log1p) TUNESMITH_ONE(log2) TUNESMITH_ONE(logb) TUNESMITH_ONE(nearbyint) TUNESMITH_ONE(rint)
TUNESMITH_ONE(round) TUNESMITH_ONE(sin) TUNESMITH_ONE(sinh) TUNESMITH_ONE(sqrt) TUNESMITH_ONE(tan)
TUNESMITH_ONE(tanh) TUNESMITH_ONE(tgamma) TUNESMITH_ONE(trunc)
#define TUNESMITH_TWO(name) static inline float name(float x, float y) { return name##f(x, y); }
TUNESMITH_TWO(atan2) TUNESMITH_TWO(copysign) TUNESMITH_TWO(fdim) TUNESMITH_TWO(fmax) TUNESMITH_TWO(fmin)
TUNESMITH_TWO(fmod) TUNESMITH_TWO(hypot) TUNESMITH_TWO(pow) TUNESMITH_TWO(remainder)
static inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
static inline float ldexp(float x, int by) { return ldexpf(x, by); }
static inline float frexp(float x, int *by) { return frexpf(x, by); }
static inline float modf(float x, float *whole) { return modff(x, whole); }
static inline float pow(float x, int y) { return powf(x, (float)y); }
static inline double pow(double x, int y) { return pow(x, (double)y); }
extern "C" int abs(int) noexcept(true);
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
#define _GLIBCXX_BITS_STD_ABS_H 1  // the library's own would have some of these twice
namespace std { using ::abs; }
static inline bool isnan(float x) { return x != x; }
static inline bool isnan(double x) { return x != x; }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline bool isfinite(float x) { return __builtin_isfinite(x); }
static inline bool isfinite(double x) { return __builtin_isfinite(x); }
static inline bool signbit(float x) { return __builtin_signbit(x); }
static inline bool signbit(double x) { return __builtin_signbit(x); }
#endif
template <typename T, typename U> static inline auto min(T a, U b) -> decltype(a + b) { return a < b ? a : b; }
template <typename T, typename U> static inline auto max(T a, U b) -> decltype(a + b) { return a > b ? a : b; }
#define TUNESMITH_LEAST(type)                                              \
    static inline type min(type a, type b) { return a < b ? a : b; }        \
    static inline type max(type a, type b) { return a > b ? a : b; }
TUNESMITH_LEAST(int) TUNESMITH_LEAST(unsigned) TUNESMITH_LEAST(long) TUNESMITH_LEAST(unsigned long)
TUNESMITH_LEAST(long long) TUNESMITH_LEAST(unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
