"""<type_traits>, <limits>, <algorithm> and <utility> in small: what kernels use of them, for NVRTC.

CUDA's own C++ core libraries have all of it, and take seconds of every build.
"""

from __future__ import annotations

TYPE_TRAITS = """namespace std {
template <class T, T v> struct integral_constant {
    static constexpr T value = v;
    typedef T value_type;
    typedef integral_constant type;
    __host__ __device__ constexpr operator T() const noexcept { return v; }
};
template <bool b> using bool_constant = integral_constant<bool, b>;
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <class...> using void_t = void;

template <bool b, class T, class U> struct conditional { typedef T type; };
template <class T, class U> struct conditional<false, T, U> { typedef U type; };
template <bool b, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_const<const T> { typedef T type; };
template <class T> struct remove_volatile { typedef T type; };
template <class T> struct remove_volatile<volatile T> { typedef T type; };
template <class T> struct remove_cv
{ typedef typename remove_const<typename remove_volatile<T>::type>::type type; };
template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T &> { typedef T type; };
template <class T> struct remove_reference<T &&> { typedef T type; };
template <class T> struct remove_pointer { typedef T type; };
template <class T> struct remove_pointer<T *> { typedef T type; };
template <class T> struct decay
{ typedef typename remove_cv<typename remove_reference<T>::type>::type type; };

template <class T, class U> struct is_same : false_type {};
template <class T> struct is_same<T, T> : true_type {};
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> struct is_pointer : false_type {};
template <class T> struct is_pointer<T *> : true_type {};
template <class T> struct is_reference : false_type {};
template <class T> struct is_reference<T &> : true_type {};
template <class T> struct is_reference<T &&> : true_type {};
template <class T> struct is_void : is_same<void, typename remove_cv<T>::type> {};
template <class T, class... U> struct is_any_of : bool_constant<(is_same<T, U>::value || ...)> {};
template <class T> struct is_floating_point : is_any_of<typename remove_cv<T>::type, float, double> {};
template <class T> struct is_integral
    : is_any_of<typename remove_cv<T>::type, bool, char, signed char, unsigned char, short, unsigned short,
                int, unsigned int, long, unsigned long, long long, unsigned long long> {};
template <class T> struct is_arithmetic
    : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T, bool = is_arithmetic<T>::value> struct is_signed : bool_constant<T(-1) < T(0)> {};
template <class T> struct is_signed<T, false> : false_type {};
template <class T> struct is_unsigned : bool_constant<is_arithmetic<T>::value && !is_signed<T>::value> {};
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> struct is_class : bool_constant<__is_class(T)> {};
template <class T> struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class B, class D> struct is_base_of : bool_constant<__is_base_of(B, D)> {};
template <class T, class U> struct is_convertible : bool_constant<__is_convertible_to(T, U)> {};

template <bool b, class T, class U> using conditional_t = typename conditional<b, T, U>::type;
template <bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> using decay_t = typename decay<T>::type;
template <class T, class U> inline constexpr bool is_same_v = is_same<T, U>::value;
template <class T> inline constexpr bool is_const_v = is_const<T>::value;
template <class T> inline constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T> inline constexpr bool is_void_v = is_void<T>::value;
template <class T> inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T> inline constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T> inline constexpr bool is_signed_v = is_signed<T>::value;
template <class T> inline constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T> inline constexpr bool is_trivially_copyable_v = is_trivially_copyable<T>::value;
template <class T, class U> inline constexpr bool is_convertible_v = is_convertible<T, U>::value;
}"""

ALGORITHM = """namespace std {
template <class T> __host__ __device__ constexpr const T &max(const T &a, const T &b)
{ return a < b ? b : a; }
template <class T> __host__ __device__ constexpr const T &min(const T &a, const T &b)
{ return b < a ? b : a; }
template <class T> __host__ __device__ constexpr const T &clamp(const T &v, const T &low, const T &high)
{ return v < low ? low : high < v ? high : v; }
}"""

SWAP = """namespace std {
template <class T> __host__ __device__ constexpr void swap(T &a, T &b) { T c = a; a = b; b = c; }
}"""

_FUNCTION = "    __host__ __device__ static constexpr {type} {name}() noexcept {{ return {value}; }}"
_FLAG = "    static constexpr {type} {name} = {value};"
_INTEGERS = {
    "char": ("CHAR_MIN", "CHAR_MAX"),
    "signed char": ("SCHAR_MIN", "SCHAR_MAX"),
    "unsigned char": ("0", "UCHAR_MAX"),
    "short": ("SHRT_MIN", "SHRT_MAX"),
    "unsigned short": ("0", "USHRT_MAX"),
    "int": ("INT_MIN", "INT_MAX"),
    "unsigned int": ("0", "UINT_MAX"),
    "long": ("LONG_MIN", "LONG_MAX"),
    "unsigned long": ("0", "ULONG_MAX"),
    "long long": ("LLONG_MIN", "LLONG_MAX"),
    "unsigned long long": ("0", "ULLONG_MAX"),
}
_FLOATS = {
    "float": ("FLT", "__builtin_bit_cast(float, 0x7f800000)", "__builtin_bit_cast(float, 0x7fc00000)"),
    "double": (
        "DBL",
        "__builtin_bit_cast(double, 0x7ff0000000000000LL)",
        "__builtin_bit_cast(double, 0x7ff8000000000000LL)",
    ),
}


def _limits_of(type_: str, functions: dict[str, str], flags: dict[str, tuple[str, str]]) -> list[str]:
    lines = [f"template <> struct numeric_limits<{type_}> {{"]
    lines += [_FLAG.format(type=kind, name=name, value=value) for name, (kind, value) in flags.items()]
    lines += [_FUNCTION.format(type=type_, name=name, value=value) for name, value in functions.items()]
    return [*lines, "};"]


def _limits() -> str:
    lines = ["#include <limits.h>", "#include <float.h>", "namespace std {"]
    lines.append(
        "template <class T> struct numeric_limits { static constexpr bool is_specialized = false; };"
    )
    yes, no = ("bool", "true"), ("bool", "false")
    for type_, (least, most) in _INTEGERS.items():
        signed = no if least == "0" else yes
        digits = ("int", f"(int)sizeof({type_}) * 8 - {0 if least == '0' else 1}")
        flags = {"is_specialized": yes, "is_integer": yes, "is_signed": signed, "has_infinity": no}
        lines += _limits_of(type_, {"min": least, "lowest": least, "max": most}, {**flags, "digits": digits})
    for type_, (stem, infinity, nan) in _FLOATS.items():
        flags = {"is_specialized": yes, "is_integer": no, "is_signed": yes, "has_infinity": yes}
        functions = {
            "min": f"{stem}_MIN",
            "lowest": f"-{stem}_MAX",
            "max": f"{stem}_MAX",
            "epsilon": f"{stem}_EPSILON",
            "infinity": infinity,
            "quiet_NaN": nan,
        }
        lines += _limits_of(type_, functions, {**flags, "digits": ("int", f"{stem}_MANT_DIG")})
    return "\n".join([*lines, "}"])


NUMERIC_LIMITS = _limits()
