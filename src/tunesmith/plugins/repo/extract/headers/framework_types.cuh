// Number types and macros that stand for those of PyTorch and of projects built on it, so that a kernel compiles
// without them. Numbers have the same bits and round alike: arithmetic is done in float and rounded to nearest even.
#pragma once

#if !defined(__CUDACC__)
#include <cstring>
#include <limits>
#endif

namespace c10 { namespace detail {

__host__ __device__ inline unsigned bits_of_float(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  return bits;
#endif
}

__host__ __device__ inline float float_of_bits(unsigned bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
#endif
}

// The nearest number with `mantissa` bits behind the point and exponents from `least` on, ties to even, as an
// integer whose low bits are the mantissa; the sign is left out. Subnormals are counted like the others.
__host__ __device__ inline unsigned rounded_bits(unsigned magnitude, int mantissa, int least) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  unsigned kept = (magnitude & 0x7fffffu) | 0x800000u;
  int drop = 23 - mantissa;
  if (exponent < least) drop += least - exponent;
  if (drop > 25) return 0;
  const unsigned half = 1u << (drop - 1);
  const unsigned odd = (kept >> drop) & 1u;
  kept = (kept + half - 1u + odd) >> drop;
  const int above = exponent < least ? 0 : exponent - least;
  return kept + (static_cast<unsigned>(above) << mantissa);
}

// What a small float of these widths is worth; infinities and NaN are left to the caller.
__host__ __device__ inline float float_of_small(unsigned code, int mantissa, int least) {
  const unsigned exponent = code >> mantissa;
  const unsigned fraction = code & ((1u << mantissa) - 1u);
  const int scale = (exponent ? static_cast<int>(exponent) - 1 : 0) + least - mantissa;
  const unsigned whole = exponent ? fraction | (1u << mantissa) : fraction;
  return static_cast<float>(whole) * float_of_bits(static_cast<unsigned>(scale + 127) << 23);
}

__host__ __device__ inline unsigned char float8_e4m3_of(float value) {
  const unsigned bits = bits_of_float(value);
  const unsigned sign = (bits >> 24) & 0x80u;
  const unsigned magnitude = bits & 0x7fffffffu;
  const unsigned code = magnitude >= 0x43f00000u ? 0x7fu : rounded_bits(magnitude, 3, -6);
  return static_cast<unsigned char>(sign | code);
}

__host__ __device__ inline float float8_e4m3_as_float(unsigned char code) {
  const unsigned sign = static_cast<unsigned>(code & 0x80u) << 24;
  const unsigned magnitude = code & 0x7fu;
  if (magnitude == 0x7fu) return float_of_bits(sign | 0x7fc00000u);
  return float_of_bits(sign | bits_of_float(float_of_small(magnitude, 3, -6)));
}

__host__ __device__ inline unsigned char float8_e5m2_of(float value) {
  const unsigned bits = bits_of_float(value);
  const unsigned sign = (bits >> 24) & 0x80u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<unsigned char>(sign | 0x7fu);
  const unsigned code = magnitude >= 0x47800000u ? 0x7cu : rounded_bits(magnitude, 2, -14);
  return static_cast<unsigned char>(sign | code);
}

__host__ __device__ inline float float8_e5m2_as_float(unsigned char code) {
  const unsigned sign = static_cast<unsigned>(code & 0x80u) << 24;
  const unsigned magnitude = code & 0x7fu;
  if (magnitude >= 0x7cu) return float_of_bits(sign | 0x7f800000u | (magnitude > 0x7cu ? 0x400000u : 0u));
  return float_of_bits(sign | bits_of_float(float_of_small(magnitude, 2, -14)));
}

__host__ __device__ inline unsigned char float8_e4m3fnuz_of(float value) {
  const unsigned bits = bits_of_float(value);
  const unsigned magnitude = bits & 0x7fffffffu;
  const unsigned code = magnitude >= 0x43800000u ? 0x80u : rounded_bits(magnitude, 3, -7);
  return static_cast<unsigned char>(code == 0 || code >= 0x80u ? code & 0x80u : ((bits >> 24) & 0x80u) | code);
}

__host__ __device__ inline float float8_e4m3fnuz_as_float(unsigned char code) {
  if (code == 0x80u) return float_of_bits(0x7fc00000u);
  const unsigned sign = static_cast<unsigned>(code & 0x80u) << 24;
  return float_of_bits(sign | bits_of_float(float_of_small(code & 0x7fu, 3, -7)));
}

__host__ __device__ inline unsigned char float8_e5m2fnuz_of(float value) {
  const unsigned bits = bits_of_float(value);
  const unsigned magnitude = bits & 0x7fffffffu;
  const unsigned code = magnitude >= 0x47800000u ? 0x80u : rounded_bits(magnitude, 2, -15);
  return static_cast<unsigned char>(code == 0 || code >= 0x80u ? code & 0x80u : ((bits >> 24) & 0x80u) | code);
}

__host__ __device__ inline float float8_e5m2fnuz_as_float(unsigned char code) {
  if (code == 0x80u) return float_of_bits(0x7fc00000u);
  const unsigned sign = static_cast<unsigned>(code & 0x80u) << 24;
  return float_of_bits(sign | bits_of_float(float_of_small(code & 0x7fu, 2, -15)));
}

#if !defined(__CUDACC__)
inline unsigned short float16_of(float value) {
  const unsigned bits = bits_of_float(value);
  const unsigned sign = (bits >> 16) & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<unsigned short>(sign | 0x7fffu);
  const unsigned code = magnitude >= 0x47800000u ? 0x7c00u : rounded_bits(magnitude, 10, -14);
  return static_cast<unsigned short>(sign | code);
}

inline float float16_as_float(unsigned short code) {
  const unsigned sign = static_cast<unsigned>(code & 0x8000u) << 16;
  const unsigned magnitude = code & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_of_bits(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  return float_of_bits(sign | bits_of_float(float_of_small(magnitude, 10, -14)));
}

inline unsigned short bfloat16_of(float value) {
  const unsigned bits = bits_of_float(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float bfloat16_as_float(unsigned short code) { return float_of_bits(static_cast<unsigned>(code) << 16); }
#endif

// For operators of one type alone, which nothing is converted for.
template <typename A, typename B>
struct same_type {};

template <typename A>
struct same_type<A, A> {
  using truth = bool;
};

}}  // namespace c10::detail

namespace c10 {

// IEEE half precision, computed with in float.
struct alignas(2) Half {
  unsigned short x;

  struct from_bits_t {};
  static constexpr __host__ __device__ from_bits_t from_bits() { return from_bits_t(); }

  Half() = default;
  constexpr __host__ __device__ Half(unsigned short bits, from_bits_t) : x(bits) {}
#if defined(__CUDA_ARCH__)
  __device__ Half(float value) : x(__half_as_ushort(__float2half(value))) {}
  __device__ operator float() const { return __half2float(__ushort_as_half(x)); }
  __device__ Half(const __half& value) : x(__half_as_ushort(value)) {}
  __device__ operator __half() const { return __ushort_as_half(x); }
#else
  Half(float value) : x(detail::float16_of(value)) {}
  operator float() const { return detail::float16_as_float(x); }
#endif

  friend __host__ __device__ Half operator+(const Half& a, const Half& b) { return Half(float(a) + float(b)); }
  friend __host__ __device__ Half operator-(const Half& a, const Half& b) { return Half(float(a) - float(b)); }
  friend __host__ __device__ Half operator*(const Half& a, const Half& b) { return Half(float(a) * float(b)); }
  friend __host__ __device__ Half operator/(const Half& a, const Half& b) { return Half(float(a) / float(b)); }
  friend __host__ __device__ float operator+(Half a, float b) { return float(a) + b; }
  friend __host__ __device__ float operator+(float a, Half b) { return a + float(b); }
  friend __host__ __device__ double operator+(Half a, double b) { return double(float(a)) + b; }
  friend __host__ __device__ double operator+(double a, Half b) { return a + double(float(b)); }
  friend __host__ __device__ Half operator+(Half a, int b) { return Half(float(a) + float(Half(float(b)))); }
  friend __host__ __device__ Half operator+(int a, Half b) { return Half(float(Half(float(a))) + float(b)); }
  friend __host__ __device__ Half operator+(Half a, long long b) { return Half(float(a) + float(Half(float(b)))); }
  friend __host__ __device__ Half operator+(long long a, Half b) { return Half(float(Half(float(a))) + float(b)); }
  friend __host__ __device__ Half operator+(Half a, long b) { return Half(float(a) + float(Half(float(b)))); }
  friend __host__ __device__ Half operator+(long a, Half b) { return Half(float(Half(float(a))) + float(b)); }
  friend __host__ __device__ Half& operator+=(Half& a, const Half& b) { return a = a + b; }
  friend __host__ __device__ float& operator+=(float& a, const Half& b) { return a = a + float(b); }
  friend __host__ __device__ float operator-(Half a, float b) { return float(a) - b; }
  friend __host__ __device__ float operator-(float a, Half b) { return a - float(b); }
  friend __host__ __device__ double operator-(Half a, double b) { return double(float(a)) - b; }
  friend __host__ __device__ double operator-(double a, Half b) { return a - double(float(b)); }
  friend __host__ __device__ Half operator-(Half a, int b) { return Half(float(a) - float(Half(float(b)))); }
  friend __host__ __device__ Half operator-(int a, Half b) { return Half(float(Half(float(a))) - float(b)); }
  friend __host__ __device__ Half operator-(Half a, long long b) { return Half(float(a) - float(Half(float(b)))); }
  friend __host__ __device__ Half operator-(long long a, Half b) { return Half(float(Half(float(a))) - float(b)); }
  friend __host__ __device__ Half operator-(Half a, long b) { return Half(float(a) - float(Half(float(b)))); }
  friend __host__ __device__ Half operator-(long a, Half b) { return Half(float(Half(float(a))) - float(b)); }
  friend __host__ __device__ Half& operator-=(Half& a, const Half& b) { return a = a - b; }
  friend __host__ __device__ float& operator-=(float& a, const Half& b) { return a = a - float(b); }
  friend __host__ __device__ float operator*(Half a, float b) { return float(a) * b; }
  friend __host__ __device__ float operator*(float a, Half b) { return a * float(b); }
  friend __host__ __device__ double operator*(Half a, double b) { return double(float(a)) * b; }
  friend __host__ __device__ double operator*(double a, Half b) { return a * double(float(b)); }
  friend __host__ __device__ Half operator*(Half a, int b) { return Half(float(a) * float(Half(float(b)))); }
  friend __host__ __device__ Half operator*(int a, Half b) { return Half(float(Half(float(a))) * float(b)); }
  friend __host__ __device__ Half operator*(Half a, long long b) { return Half(float(a) * float(Half(float(b)))); }
  friend __host__ __device__ Half operator*(long long a, Half b) { return Half(float(Half(float(a))) * float(b)); }
  friend __host__ __device__ Half operator*(Half a, long b) { return Half(float(a) * float(Half(float(b)))); }
  friend __host__ __device__ Half operator*(long a, Half b) { return Half(float(Half(float(a))) * float(b)); }
  friend __host__ __device__ Half& operator*=(Half& a, const Half& b) { return a = a * b; }
  friend __host__ __device__ float& operator*=(float& a, const Half& b) { return a = a * float(b); }
  friend __host__ __device__ float operator/(Half a, float b) { return float(a) / b; }
  friend __host__ __device__ float operator/(float a, Half b) { return a / float(b); }
  friend __host__ __device__ double operator/(Half a, double b) { return double(float(a)) / b; }
  friend __host__ __device__ double operator/(double a, Half b) { return a / double(float(b)); }
  friend __host__ __device__ Half operator/(Half a, int b) { return Half(float(a) / float(Half(float(b)))); }
  friend __host__ __device__ Half operator/(int a, Half b) { return Half(float(Half(float(a))) / float(b)); }
  friend __host__ __device__ Half operator/(Half a, long long b) { return Half(float(a) / float(Half(float(b)))); }
  friend __host__ __device__ Half operator/(long long a, Half b) { return Half(float(Half(float(a))) / float(b)); }
  friend __host__ __device__ Half operator/(Half a, long b) { return Half(float(a) / float(Half(float(b)))); }
  friend __host__ __device__ Half operator/(long a, Half b) { return Half(float(Half(float(a))) / float(b)); }
  friend __host__ __device__ Half& operator/=(Half& a, const Half& b) { return a = a / b; }
  friend __host__ __device__ float& operator/=(float& a, const Half& b) { return a = a / float(b); }
#if defined(__CUDA_ARCH__)
  friend __device__ Half __ldg(const Half* p) { return Half(__ldg(reinterpret_cast<const unsigned short*>(p)), from_bits()); }
  friend __device__ Half __shfl_sync(unsigned mask, Half value, int lane, int width = 32) { return Half(static_cast<unsigned short>(__shfl_sync(mask, static_cast<unsigned>(value.x), lane, width)), from_bits()); }
  friend __device__ Half __shfl_xor_sync(unsigned mask, Half value, int lanes, int width = 32) { return Half(static_cast<unsigned short>(__shfl_xor_sync(mask, static_cast<unsigned>(value.x), lanes, width)), from_bits()); }
  friend __device__ Half __shfl_up_sync(unsigned mask, Half value, unsigned delta, int width = 32) { return Half(static_cast<unsigned short>(__shfl_up_sync(mask, static_cast<unsigned>(value.x), delta, width)), from_bits()); }
  friend __device__ Half __shfl_down_sync(unsigned mask, Half value, unsigned delta, int width = 32) { return Half(static_cast<unsigned short>(__shfl_down_sync(mask, static_cast<unsigned>(value.x), delta, width)), from_bits()); }
#endif
  friend __host__ __device__ Half operator-(const Half& a) { return Half(-float(a)); }
  // Beside float there are CUDA's own numbers to convert to, and both can be compared.
  template <typename T>
  __host__ __device__ typename detail::same_type<T, Half>::truth operator<(const T& b) const { return float(*this) < float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, Half>::truth operator>(const T& b) const { return float(*this) > float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, Half>::truth operator<=(const T& b) const { return float(*this) <= float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, Half>::truth operator>=(const T& b) const { return float(*this) >= float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, Half>::truth operator==(const T& b) const { return float(*this) == float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, Half>::truth operator!=(const T& b) const { return float(*this) != float(b); }
};

// The upper half of a float, computed with in float.
struct alignas(2) BFloat16 {
  unsigned short x;

  struct from_bits_t {};
  static constexpr __host__ __device__ from_bits_t from_bits() { return from_bits_t(); }

  BFloat16() = default;
  constexpr __host__ __device__ BFloat16(unsigned short bits, from_bits_t) : x(bits) {}
#if defined(__CUDA_ARCH__)
  __device__ BFloat16(float value) : x(__bfloat16_as_ushort(__float2bfloat16(value))) {}
  __device__ operator float() const { return __bfloat162float(__ushort_as_bfloat16(x)); }
  __device__ BFloat16(const __nv_bfloat16& value) : x(__bfloat16_as_ushort(value)) {}
  __device__ operator __nv_bfloat16() const { return __ushort_as_bfloat16(x); }
#else
  BFloat16(float value) : x(detail::bfloat16_of(value)) {}
  operator float() const { return detail::bfloat16_as_float(x); }
#endif

  friend __host__ __device__ BFloat16 operator+(const BFloat16& a, const BFloat16& b) { return BFloat16(float(a) + float(b)); }
  friend __host__ __device__ BFloat16 operator-(const BFloat16& a, const BFloat16& b) { return BFloat16(float(a) - float(b)); }
  friend __host__ __device__ BFloat16 operator*(const BFloat16& a, const BFloat16& b) { return BFloat16(float(a) * float(b)); }
  friend __host__ __device__ BFloat16 operator/(const BFloat16& a, const BFloat16& b) { return BFloat16(float(a) / float(b)); }
  friend __host__ __device__ float operator+(BFloat16 a, float b) { return float(a) + b; }
  friend __host__ __device__ float operator+(float a, BFloat16 b) { return a + float(b); }
  friend __host__ __device__ double operator+(BFloat16 a, double b) { return double(float(a)) + b; }
  friend __host__ __device__ double operator+(double a, BFloat16 b) { return a + double(float(b)); }
  friend __host__ __device__ BFloat16 operator+(BFloat16 a, int b) { return BFloat16(float(a) + float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator+(int a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) + float(b)); }
  friend __host__ __device__ BFloat16 operator+(BFloat16 a, long long b) { return BFloat16(float(a) + float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator+(long long a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) + float(b)); }
  friend __host__ __device__ BFloat16 operator+(BFloat16 a, long b) { return BFloat16(float(a) + float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator+(long a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) + float(b)); }
  friend __host__ __device__ BFloat16& operator+=(BFloat16& a, const BFloat16& b) { return a = a + b; }
  friend __host__ __device__ float& operator+=(float& a, const BFloat16& b) { return a = a + float(b); }
  friend __host__ __device__ float operator-(BFloat16 a, float b) { return float(a) - b; }
  friend __host__ __device__ float operator-(float a, BFloat16 b) { return a - float(b); }
  friend __host__ __device__ double operator-(BFloat16 a, double b) { return double(float(a)) - b; }
  friend __host__ __device__ double operator-(double a, BFloat16 b) { return a - double(float(b)); }
  friend __host__ __device__ BFloat16 operator-(BFloat16 a, int b) { return BFloat16(float(a) - float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator-(int a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) - float(b)); }
  friend __host__ __device__ BFloat16 operator-(BFloat16 a, long long b) { return BFloat16(float(a) - float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator-(long long a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) - float(b)); }
  friend __host__ __device__ BFloat16 operator-(BFloat16 a, long b) { return BFloat16(float(a) - float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator-(long a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) - float(b)); }
  friend __host__ __device__ BFloat16& operator-=(BFloat16& a, const BFloat16& b) { return a = a - b; }
  friend __host__ __device__ float& operator-=(float& a, const BFloat16& b) { return a = a - float(b); }
  friend __host__ __device__ float operator*(BFloat16 a, float b) { return float(a) * b; }
  friend __host__ __device__ float operator*(float a, BFloat16 b) { return a * float(b); }
  friend __host__ __device__ double operator*(BFloat16 a, double b) { return double(float(a)) * b; }
  friend __host__ __device__ double operator*(double a, BFloat16 b) { return a * double(float(b)); }
  friend __host__ __device__ BFloat16 operator*(BFloat16 a, int b) { return BFloat16(float(a) * float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator*(int a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) * float(b)); }
  friend __host__ __device__ BFloat16 operator*(BFloat16 a, long long b) { return BFloat16(float(a) * float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator*(long long a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) * float(b)); }
  friend __host__ __device__ BFloat16 operator*(BFloat16 a, long b) { return BFloat16(float(a) * float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator*(long a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) * float(b)); }
  friend __host__ __device__ BFloat16& operator*=(BFloat16& a, const BFloat16& b) { return a = a * b; }
  friend __host__ __device__ float& operator*=(float& a, const BFloat16& b) { return a = a * float(b); }
  friend __host__ __device__ float operator/(BFloat16 a, float b) { return float(a) / b; }
  friend __host__ __device__ float operator/(float a, BFloat16 b) { return a / float(b); }
  friend __host__ __device__ double operator/(BFloat16 a, double b) { return double(float(a)) / b; }
  friend __host__ __device__ double operator/(double a, BFloat16 b) { return a / double(float(b)); }
  friend __host__ __device__ BFloat16 operator/(BFloat16 a, int b) { return BFloat16(float(a) / float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator/(int a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) / float(b)); }
  friend __host__ __device__ BFloat16 operator/(BFloat16 a, long long b) { return BFloat16(float(a) / float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator/(long long a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) / float(b)); }
  friend __host__ __device__ BFloat16 operator/(BFloat16 a, long b) { return BFloat16(float(a) / float(BFloat16(float(b)))); }
  friend __host__ __device__ BFloat16 operator/(long a, BFloat16 b) { return BFloat16(float(BFloat16(float(a))) / float(b)); }
  friend __host__ __device__ BFloat16& operator/=(BFloat16& a, const BFloat16& b) { return a = a / b; }
  friend __host__ __device__ float& operator/=(float& a, const BFloat16& b) { return a = a / float(b); }
#if defined(__CUDA_ARCH__)
  friend __device__ BFloat16 __ldg(const BFloat16* p) { return BFloat16(__ldg(reinterpret_cast<const unsigned short*>(p)), from_bits()); }
  friend __device__ BFloat16 __shfl_sync(unsigned mask, BFloat16 value, int lane, int width = 32) { return BFloat16(static_cast<unsigned short>(__shfl_sync(mask, static_cast<unsigned>(value.x), lane, width)), from_bits()); }
  friend __device__ BFloat16 __shfl_xor_sync(unsigned mask, BFloat16 value, int lanes, int width = 32) { return BFloat16(static_cast<unsigned short>(__shfl_xor_sync(mask, static_cast<unsigned>(value.x), lanes, width)), from_bits()); }
  friend __device__ BFloat16 __shfl_up_sync(unsigned mask, BFloat16 value, unsigned delta, int width = 32) { return BFloat16(static_cast<unsigned short>(__shfl_up_sync(mask, static_cast<unsigned>(value.x), delta, width)), from_bits()); }
  friend __device__ BFloat16 __shfl_down_sync(unsigned mask, BFloat16 value, unsigned delta, int width = 32) { return BFloat16(static_cast<unsigned short>(__shfl_down_sync(mask, static_cast<unsigned>(value.x), delta, width)), from_bits()); }
#endif
  friend __host__ __device__ BFloat16 operator-(const BFloat16& a) { return BFloat16(-float(a)); }
  // Beside float there are CUDA's own numbers to convert to, and both can be compared.
  template <typename T>
  __host__ __device__ typename detail::same_type<T, BFloat16>::truth operator<(const T& b) const { return float(*this) < float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, BFloat16>::truth operator>(const T& b) const { return float(*this) > float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, BFloat16>::truth operator<=(const T& b) const { return float(*this) <= float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, BFloat16>::truth operator>=(const T& b) const { return float(*this) >= float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, BFloat16>::truth operator==(const T& b) const { return float(*this) == float(b); }
  template <typename T>
  __host__ __device__ typename detail::same_type<T, BFloat16>::truth operator!=(const T& b) const { return float(*this) != float(b); }
};

// Eight bits, three of them behind the point; no infinities, too large is NaN.
struct alignas(1) Float8_e4m3fn {
  unsigned char x;

  struct from_bits_t {};
  static constexpr __host__ __device__ from_bits_t from_bits() { return from_bits_t(); }

  Float8_e4m3fn() = default;
  constexpr __host__ __device__ Float8_e4m3fn(unsigned char bits, from_bits_t) : x(bits) {}
  __host__ __device__ Float8_e4m3fn(float value) : x(detail::float8_e4m3_of(value)) {}
  __host__ __device__ operator float() const { return detail::float8_e4m3_as_float(x); }

  friend __host__ __device__ Float8_e4m3fn operator+(const Float8_e4m3fn& a, const Float8_e4m3fn& b) { return Float8_e4m3fn(float(a) + float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator-(const Float8_e4m3fn& a, const Float8_e4m3fn& b) { return Float8_e4m3fn(float(a) - float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator*(const Float8_e4m3fn& a, const Float8_e4m3fn& b) { return Float8_e4m3fn(float(a) * float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator/(const Float8_e4m3fn& a, const Float8_e4m3fn& b) { return Float8_e4m3fn(float(a) / float(b)); }
  friend __host__ __device__ float operator+(Float8_e4m3fn a, float b) { return float(a) + b; }
  friend __host__ __device__ float operator+(float a, Float8_e4m3fn b) { return a + float(b); }
  friend __host__ __device__ double operator+(Float8_e4m3fn a, double b) { return double(float(a)) + b; }
  friend __host__ __device__ double operator+(double a, Float8_e4m3fn b) { return a + double(float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator+(Float8_e4m3fn a, int b) { return Float8_e4m3fn(float(a) + float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator+(int a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator+(Float8_e4m3fn a, long long b) { return Float8_e4m3fn(float(a) + float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator+(long long a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator+(Float8_e4m3fn a, long b) { return Float8_e4m3fn(float(a) + float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator+(long a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e4m3fn& operator+=(Float8_e4m3fn& a, const Float8_e4m3fn& b) { return a = a + b; }
  friend __host__ __device__ float& operator+=(float& a, const Float8_e4m3fn& b) { return a = a + float(b); }
  friend __host__ __device__ float operator-(Float8_e4m3fn a, float b) { return float(a) - b; }
  friend __host__ __device__ float operator-(float a, Float8_e4m3fn b) { return a - float(b); }
  friend __host__ __device__ double operator-(Float8_e4m3fn a, double b) { return double(float(a)) - b; }
  friend __host__ __device__ double operator-(double a, Float8_e4m3fn b) { return a - double(float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator-(Float8_e4m3fn a, int b) { return Float8_e4m3fn(float(a) - float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator-(int a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator-(Float8_e4m3fn a, long long b) { return Float8_e4m3fn(float(a) - float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator-(long long a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator-(Float8_e4m3fn a, long b) { return Float8_e4m3fn(float(a) - float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator-(long a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e4m3fn& operator-=(Float8_e4m3fn& a, const Float8_e4m3fn& b) { return a = a - b; }
  friend __host__ __device__ float& operator-=(float& a, const Float8_e4m3fn& b) { return a = a - float(b); }
  friend __host__ __device__ float operator*(Float8_e4m3fn a, float b) { return float(a) * b; }
  friend __host__ __device__ float operator*(float a, Float8_e4m3fn b) { return a * float(b); }
  friend __host__ __device__ double operator*(Float8_e4m3fn a, double b) { return double(float(a)) * b; }
  friend __host__ __device__ double operator*(double a, Float8_e4m3fn b) { return a * double(float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator*(Float8_e4m3fn a, int b) { return Float8_e4m3fn(float(a) * float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator*(int a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator*(Float8_e4m3fn a, long long b) { return Float8_e4m3fn(float(a) * float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator*(long long a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator*(Float8_e4m3fn a, long b) { return Float8_e4m3fn(float(a) * float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator*(long a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e4m3fn& operator*=(Float8_e4m3fn& a, const Float8_e4m3fn& b) { return a = a * b; }
  friend __host__ __device__ float& operator*=(float& a, const Float8_e4m3fn& b) { return a = a * float(b); }
  friend __host__ __device__ float operator/(Float8_e4m3fn a, float b) { return float(a) / b; }
  friend __host__ __device__ float operator/(float a, Float8_e4m3fn b) { return a / float(b); }
  friend __host__ __device__ double operator/(Float8_e4m3fn a, double b) { return double(float(a)) / b; }
  friend __host__ __device__ double operator/(double a, Float8_e4m3fn b) { return a / double(float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator/(Float8_e4m3fn a, int b) { return Float8_e4m3fn(float(a) / float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator/(int a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator/(Float8_e4m3fn a, long long b) { return Float8_e4m3fn(float(a) / float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator/(long long a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e4m3fn operator/(Float8_e4m3fn a, long b) { return Float8_e4m3fn(float(a) / float(Float8_e4m3fn(float(b)))); }
  friend __host__ __device__ Float8_e4m3fn operator/(long a, Float8_e4m3fn b) { return Float8_e4m3fn(float(Float8_e4m3fn(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e4m3fn& operator/=(Float8_e4m3fn& a, const Float8_e4m3fn& b) { return a = a / b; }
  friend __host__ __device__ float& operator/=(float& a, const Float8_e4m3fn& b) { return a = a / float(b); }
#if defined(__CUDA_ARCH__)
  friend __device__ Float8_e4m3fn __ldg(const Float8_e4m3fn* p) { return Float8_e4m3fn(__ldg(reinterpret_cast<const unsigned char*>(p)), from_bits()); }
#endif
  friend __host__ __device__ Float8_e4m3fn operator-(const Float8_e4m3fn& a) { return Float8_e4m3fn(-float(a)); }
};

// Eight bits, two of them behind the point; too large is infinite.
struct alignas(1) Float8_e5m2 {
  unsigned char x;

  struct from_bits_t {};
  static constexpr __host__ __device__ from_bits_t from_bits() { return from_bits_t(); }

  Float8_e5m2() = default;
  constexpr __host__ __device__ Float8_e5m2(unsigned char bits, from_bits_t) : x(bits) {}
  __host__ __device__ Float8_e5m2(float value) : x(detail::float8_e5m2_of(value)) {}
  __host__ __device__ operator float() const { return detail::float8_e5m2_as_float(x); }

  friend __host__ __device__ Float8_e5m2 operator+(const Float8_e5m2& a, const Float8_e5m2& b) { return Float8_e5m2(float(a) + float(b)); }
  friend __host__ __device__ Float8_e5m2 operator-(const Float8_e5m2& a, const Float8_e5m2& b) { return Float8_e5m2(float(a) - float(b)); }
  friend __host__ __device__ Float8_e5m2 operator*(const Float8_e5m2& a, const Float8_e5m2& b) { return Float8_e5m2(float(a) * float(b)); }
  friend __host__ __device__ Float8_e5m2 operator/(const Float8_e5m2& a, const Float8_e5m2& b) { return Float8_e5m2(float(a) / float(b)); }
  friend __host__ __device__ float operator+(Float8_e5m2 a, float b) { return float(a) + b; }
  friend __host__ __device__ float operator+(float a, Float8_e5m2 b) { return a + float(b); }
  friend __host__ __device__ double operator+(Float8_e5m2 a, double b) { return double(float(a)) + b; }
  friend __host__ __device__ double operator+(double a, Float8_e5m2 b) { return a + double(float(b)); }
  friend __host__ __device__ Float8_e5m2 operator+(Float8_e5m2 a, int b) { return Float8_e5m2(float(a) + float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator+(int a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e5m2 operator+(Float8_e5m2 a, long long b) { return Float8_e5m2(float(a) + float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator+(long long a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e5m2 operator+(Float8_e5m2 a, long b) { return Float8_e5m2(float(a) + float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator+(long a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e5m2& operator+=(Float8_e5m2& a, const Float8_e5m2& b) { return a = a + b; }
  friend __host__ __device__ float& operator+=(float& a, const Float8_e5m2& b) { return a = a + float(b); }
  friend __host__ __device__ float operator-(Float8_e5m2 a, float b) { return float(a) - b; }
  friend __host__ __device__ float operator-(float a, Float8_e5m2 b) { return a - float(b); }
  friend __host__ __device__ double operator-(Float8_e5m2 a, double b) { return double(float(a)) - b; }
  friend __host__ __device__ double operator-(double a, Float8_e5m2 b) { return a - double(float(b)); }
  friend __host__ __device__ Float8_e5m2 operator-(Float8_e5m2 a, int b) { return Float8_e5m2(float(a) - float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator-(int a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e5m2 operator-(Float8_e5m2 a, long long b) { return Float8_e5m2(float(a) - float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator-(long long a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e5m2 operator-(Float8_e5m2 a, long b) { return Float8_e5m2(float(a) - float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator-(long a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e5m2& operator-=(Float8_e5m2& a, const Float8_e5m2& b) { return a = a - b; }
  friend __host__ __device__ float& operator-=(float& a, const Float8_e5m2& b) { return a = a - float(b); }
  friend __host__ __device__ float operator*(Float8_e5m2 a, float b) { return float(a) * b; }
  friend __host__ __device__ float operator*(float a, Float8_e5m2 b) { return a * float(b); }
  friend __host__ __device__ double operator*(Float8_e5m2 a, double b) { return double(float(a)) * b; }
  friend __host__ __device__ double operator*(double a, Float8_e5m2 b) { return a * double(float(b)); }
  friend __host__ __device__ Float8_e5m2 operator*(Float8_e5m2 a, int b) { return Float8_e5m2(float(a) * float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator*(int a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e5m2 operator*(Float8_e5m2 a, long long b) { return Float8_e5m2(float(a) * float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator*(long long a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e5m2 operator*(Float8_e5m2 a, long b) { return Float8_e5m2(float(a) * float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator*(long a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e5m2& operator*=(Float8_e5m2& a, const Float8_e5m2& b) { return a = a * b; }
  friend __host__ __device__ float& operator*=(float& a, const Float8_e5m2& b) { return a = a * float(b); }
  friend __host__ __device__ float operator/(Float8_e5m2 a, float b) { return float(a) / b; }
  friend __host__ __device__ float operator/(float a, Float8_e5m2 b) { return a / float(b); }
  friend __host__ __device__ double operator/(Float8_e5m2 a, double b) { return double(float(a)) / b; }
  friend __host__ __device__ double operator/(double a, Float8_e5m2 b) { return a / double(float(b)); }
  friend __host__ __device__ Float8_e5m2 operator/(Float8_e5m2 a, int b) { return Float8_e5m2(float(a) / float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator/(int a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e5m2 operator/(Float8_e5m2 a, long long b) { return Float8_e5m2(float(a) / float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator/(long long a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e5m2 operator/(Float8_e5m2 a, long b) { return Float8_e5m2(float(a) / float(Float8_e5m2(float(b)))); }
  friend __host__ __device__ Float8_e5m2 operator/(long a, Float8_e5m2 b) { return Float8_e5m2(float(Float8_e5m2(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e5m2& operator/=(Float8_e5m2& a, const Float8_e5m2& b) { return a = a / b; }
  friend __host__ __device__ float& operator/=(float& a, const Float8_e5m2& b) { return a = a / float(b); }
#if defined(__CUDA_ARCH__)
  friend __device__ Float8_e5m2 __ldg(const Float8_e5m2* p) { return Float8_e5m2(__ldg(reinterpret_cast<const unsigned char*>(p)), from_bits()); }
#endif
  friend __host__ __device__ Float8_e5m2 operator-(const Float8_e5m2& a) { return Float8_e5m2(-float(a)); }
};

// Eight bits, three of them behind the point; neither infinities nor a negative zero, too large is NaN.
struct alignas(1) Float8_e4m3fnuz {
  unsigned char x;

  struct from_bits_t {};
  static constexpr __host__ __device__ from_bits_t from_bits() { return from_bits_t(); }

  Float8_e4m3fnuz() = default;
  constexpr __host__ __device__ Float8_e4m3fnuz(unsigned char bits, from_bits_t) : x(bits) {}
  __host__ __device__ Float8_e4m3fnuz(float value) : x(detail::float8_e4m3fnuz_of(value)) {}
  __host__ __device__ operator float() const { return detail::float8_e4m3fnuz_as_float(x); }

  friend __host__ __device__ Float8_e4m3fnuz operator+(const Float8_e4m3fnuz& a, const Float8_e4m3fnuz& b) { return Float8_e4m3fnuz(float(a) + float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator-(const Float8_e4m3fnuz& a, const Float8_e4m3fnuz& b) { return Float8_e4m3fnuz(float(a) - float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator*(const Float8_e4m3fnuz& a, const Float8_e4m3fnuz& b) { return Float8_e4m3fnuz(float(a) * float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator/(const Float8_e4m3fnuz& a, const Float8_e4m3fnuz& b) { return Float8_e4m3fnuz(float(a) / float(b)); }
  friend __host__ __device__ float operator+(Float8_e4m3fnuz a, float b) { return float(a) + b; }
  friend __host__ __device__ float operator+(float a, Float8_e4m3fnuz b) { return a + float(b); }
  friend __host__ __device__ double operator+(Float8_e4m3fnuz a, double b) { return double(float(a)) + b; }
  friend __host__ __device__ double operator+(double a, Float8_e4m3fnuz b) { return a + double(float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator+(Float8_e4m3fnuz a, int b) { return Float8_e4m3fnuz(float(a) + float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator+(int a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator+(Float8_e4m3fnuz a, long long b) { return Float8_e4m3fnuz(float(a) + float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator+(long long a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator+(Float8_e4m3fnuz a, long b) { return Float8_e4m3fnuz(float(a) + float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator+(long a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz& operator+=(Float8_e4m3fnuz& a, const Float8_e4m3fnuz& b) { return a = a + b; }
  friend __host__ __device__ float& operator+=(float& a, const Float8_e4m3fnuz& b) { return a = a + float(b); }
  friend __host__ __device__ float operator-(Float8_e4m3fnuz a, float b) { return float(a) - b; }
  friend __host__ __device__ float operator-(float a, Float8_e4m3fnuz b) { return a - float(b); }
  friend __host__ __device__ double operator-(Float8_e4m3fnuz a, double b) { return double(float(a)) - b; }
  friend __host__ __device__ double operator-(double a, Float8_e4m3fnuz b) { return a - double(float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator-(Float8_e4m3fnuz a, int b) { return Float8_e4m3fnuz(float(a) - float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator-(int a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator-(Float8_e4m3fnuz a, long long b) { return Float8_e4m3fnuz(float(a) - float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator-(long long a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator-(Float8_e4m3fnuz a, long b) { return Float8_e4m3fnuz(float(a) - float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator-(long a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz& operator-=(Float8_e4m3fnuz& a, const Float8_e4m3fnuz& b) { return a = a - b; }
  friend __host__ __device__ float& operator-=(float& a, const Float8_e4m3fnuz& b) { return a = a - float(b); }
  friend __host__ __device__ float operator*(Float8_e4m3fnuz a, float b) { return float(a) * b; }
  friend __host__ __device__ float operator*(float a, Float8_e4m3fnuz b) { return a * float(b); }
  friend __host__ __device__ double operator*(Float8_e4m3fnuz a, double b) { return double(float(a)) * b; }
  friend __host__ __device__ double operator*(double a, Float8_e4m3fnuz b) { return a * double(float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator*(Float8_e4m3fnuz a, int b) { return Float8_e4m3fnuz(float(a) * float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator*(int a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator*(Float8_e4m3fnuz a, long long b) { return Float8_e4m3fnuz(float(a) * float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator*(long long a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator*(Float8_e4m3fnuz a, long b) { return Float8_e4m3fnuz(float(a) * float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator*(long a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz& operator*=(Float8_e4m3fnuz& a, const Float8_e4m3fnuz& b) { return a = a * b; }
  friend __host__ __device__ float& operator*=(float& a, const Float8_e4m3fnuz& b) { return a = a * float(b); }
  friend __host__ __device__ float operator/(Float8_e4m3fnuz a, float b) { return float(a) / b; }
  friend __host__ __device__ float operator/(float a, Float8_e4m3fnuz b) { return a / float(b); }
  friend __host__ __device__ double operator/(Float8_e4m3fnuz a, double b) { return double(float(a)) / b; }
  friend __host__ __device__ double operator/(double a, Float8_e4m3fnuz b) { return a / double(float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator/(Float8_e4m3fnuz a, int b) { return Float8_e4m3fnuz(float(a) / float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator/(int a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator/(Float8_e4m3fnuz a, long long b) { return Float8_e4m3fnuz(float(a) / float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator/(long long a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz operator/(Float8_e4m3fnuz a, long b) { return Float8_e4m3fnuz(float(a) / float(Float8_e4m3fnuz(float(b)))); }
  friend __host__ __device__ Float8_e4m3fnuz operator/(long a, Float8_e4m3fnuz b) { return Float8_e4m3fnuz(float(Float8_e4m3fnuz(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e4m3fnuz& operator/=(Float8_e4m3fnuz& a, const Float8_e4m3fnuz& b) { return a = a / b; }
  friend __host__ __device__ float& operator/=(float& a, const Float8_e4m3fnuz& b) { return a = a / float(b); }
#if defined(__CUDA_ARCH__)
  friend __device__ Float8_e4m3fnuz __ldg(const Float8_e4m3fnuz* p) { return Float8_e4m3fnuz(__ldg(reinterpret_cast<const unsigned char*>(p)), from_bits()); }
#endif
  friend __host__ __device__ Float8_e4m3fnuz operator-(const Float8_e4m3fnuz& a) { return Float8_e4m3fnuz(-float(a)); }
};

// Eight bits, two of them behind the point; neither infinities nor a negative zero, too large is NaN.
struct alignas(1) Float8_e5m2fnuz {
  unsigned char x;

  struct from_bits_t {};
  static constexpr __host__ __device__ from_bits_t from_bits() { return from_bits_t(); }

  Float8_e5m2fnuz() = default;
  constexpr __host__ __device__ Float8_e5m2fnuz(unsigned char bits, from_bits_t) : x(bits) {}
  __host__ __device__ Float8_e5m2fnuz(float value) : x(detail::float8_e5m2fnuz_of(value)) {}
  __host__ __device__ operator float() const { return detail::float8_e5m2fnuz_as_float(x); }

  friend __host__ __device__ Float8_e5m2fnuz operator+(const Float8_e5m2fnuz& a, const Float8_e5m2fnuz& b) { return Float8_e5m2fnuz(float(a) + float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator-(const Float8_e5m2fnuz& a, const Float8_e5m2fnuz& b) { return Float8_e5m2fnuz(float(a) - float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator*(const Float8_e5m2fnuz& a, const Float8_e5m2fnuz& b) { return Float8_e5m2fnuz(float(a) * float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator/(const Float8_e5m2fnuz& a, const Float8_e5m2fnuz& b) { return Float8_e5m2fnuz(float(a) / float(b)); }
  friend __host__ __device__ float operator+(Float8_e5m2fnuz a, float b) { return float(a) + b; }
  friend __host__ __device__ float operator+(float a, Float8_e5m2fnuz b) { return a + float(b); }
  friend __host__ __device__ double operator+(Float8_e5m2fnuz a, double b) { return double(float(a)) + b; }
  friend __host__ __device__ double operator+(double a, Float8_e5m2fnuz b) { return a + double(float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator+(Float8_e5m2fnuz a, int b) { return Float8_e5m2fnuz(float(a) + float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator+(int a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator+(Float8_e5m2fnuz a, long long b) { return Float8_e5m2fnuz(float(a) + float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator+(long long a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator+(Float8_e5m2fnuz a, long b) { return Float8_e5m2fnuz(float(a) + float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator+(long a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) + float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz& operator+=(Float8_e5m2fnuz& a, const Float8_e5m2fnuz& b) { return a = a + b; }
  friend __host__ __device__ float& operator+=(float& a, const Float8_e5m2fnuz& b) { return a = a + float(b); }
  friend __host__ __device__ float operator-(Float8_e5m2fnuz a, float b) { return float(a) - b; }
  friend __host__ __device__ float operator-(float a, Float8_e5m2fnuz b) { return a - float(b); }
  friend __host__ __device__ double operator-(Float8_e5m2fnuz a, double b) { return double(float(a)) - b; }
  friend __host__ __device__ double operator-(double a, Float8_e5m2fnuz b) { return a - double(float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator-(Float8_e5m2fnuz a, int b) { return Float8_e5m2fnuz(float(a) - float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator-(int a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator-(Float8_e5m2fnuz a, long long b) { return Float8_e5m2fnuz(float(a) - float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator-(long long a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator-(Float8_e5m2fnuz a, long b) { return Float8_e5m2fnuz(float(a) - float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator-(long a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) - float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz& operator-=(Float8_e5m2fnuz& a, const Float8_e5m2fnuz& b) { return a = a - b; }
  friend __host__ __device__ float& operator-=(float& a, const Float8_e5m2fnuz& b) { return a = a - float(b); }
  friend __host__ __device__ float operator*(Float8_e5m2fnuz a, float b) { return float(a) * b; }
  friend __host__ __device__ float operator*(float a, Float8_e5m2fnuz b) { return a * float(b); }
  friend __host__ __device__ double operator*(Float8_e5m2fnuz a, double b) { return double(float(a)) * b; }
  friend __host__ __device__ double operator*(double a, Float8_e5m2fnuz b) { return a * double(float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator*(Float8_e5m2fnuz a, int b) { return Float8_e5m2fnuz(float(a) * float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator*(int a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator*(Float8_e5m2fnuz a, long long b) { return Float8_e5m2fnuz(float(a) * float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator*(long long a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator*(Float8_e5m2fnuz a, long b) { return Float8_e5m2fnuz(float(a) * float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator*(long a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) * float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz& operator*=(Float8_e5m2fnuz& a, const Float8_e5m2fnuz& b) { return a = a * b; }
  friend __host__ __device__ float& operator*=(float& a, const Float8_e5m2fnuz& b) { return a = a * float(b); }
  friend __host__ __device__ float operator/(Float8_e5m2fnuz a, float b) { return float(a) / b; }
  friend __host__ __device__ float operator/(float a, Float8_e5m2fnuz b) { return a / float(b); }
  friend __host__ __device__ double operator/(Float8_e5m2fnuz a, double b) { return double(float(a)) / b; }
  friend __host__ __device__ double operator/(double a, Float8_e5m2fnuz b) { return a / double(float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator/(Float8_e5m2fnuz a, int b) { return Float8_e5m2fnuz(float(a) / float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator/(int a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator/(Float8_e5m2fnuz a, long long b) { return Float8_e5m2fnuz(float(a) / float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator/(long long a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz operator/(Float8_e5m2fnuz a, long b) { return Float8_e5m2fnuz(float(a) / float(Float8_e5m2fnuz(float(b)))); }
  friend __host__ __device__ Float8_e5m2fnuz operator/(long a, Float8_e5m2fnuz b) { return Float8_e5m2fnuz(float(Float8_e5m2fnuz(float(a))) / float(b)); }
  friend __host__ __device__ Float8_e5m2fnuz& operator/=(Float8_e5m2fnuz& a, const Float8_e5m2fnuz& b) { return a = a / b; }
  friend __host__ __device__ float& operator/=(float& a, const Float8_e5m2fnuz& b) { return a = a / float(b); }
#if defined(__CUDA_ARCH__)
  friend __device__ Float8_e5m2fnuz __ldg(const Float8_e5m2fnuz* p) { return Float8_e5m2fnuz(__ldg(reinterpret_cast<const unsigned char*>(p)), from_bits()); }
#endif
  friend __host__ __device__ Float8_e5m2fnuz operator-(const Float8_e5m2fnuz& a) { return Float8_e5m2fnuz(-float(a)); }
};

}  // namespace c10

namespace std {

template <>
class numeric_limits<c10::Half> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr __device__ c10::Half max() { return c10::Half(0x7bff, c10::Half::from_bits()); }
  static constexpr __device__ c10::Half lowest() { return c10::Half(0xfbff, c10::Half::from_bits()); }
  static constexpr __device__ c10::Half infinity() { return c10::Half(0x7c00, c10::Half::from_bits()); }
};

template <>
class numeric_limits<c10::BFloat16> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr __device__ c10::BFloat16 max() { return c10::BFloat16(0x7f7f, c10::BFloat16::from_bits()); }
  static constexpr __device__ c10::BFloat16 lowest() { return c10::BFloat16(0xff7f, c10::BFloat16::from_bits()); }
  static constexpr __device__ c10::BFloat16 infinity() { return c10::BFloat16(0x7f80, c10::BFloat16::from_bits()); }
};

template <>
class numeric_limits<c10::Float8_e4m3fn> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr __device__ c10::Float8_e4m3fn max() { return c10::Float8_e4m3fn(0x7e, c10::Float8_e4m3fn::from_bits()); }
  static constexpr __device__ c10::Float8_e4m3fn lowest() { return c10::Float8_e4m3fn(0xfe, c10::Float8_e4m3fn::from_bits()); }
};

template <>
class numeric_limits<c10::Float8_e5m2> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr __device__ c10::Float8_e5m2 max() { return c10::Float8_e5m2(0x7b, c10::Float8_e5m2::from_bits()); }
  static constexpr __device__ c10::Float8_e5m2 lowest() { return c10::Float8_e5m2(0xfb, c10::Float8_e5m2::from_bits()); }
  static constexpr __device__ c10::Float8_e5m2 infinity() { return c10::Float8_e5m2(0x7c, c10::Float8_e5m2::from_bits()); }
};

}  // namespace std

namespace at {

using c10::BFloat16;
using c10::Float8_e4m3fn;
using c10::Float8_e4m3fnuz;
using c10::Float8_e5m2;
using c10::Float8_e5m2fnuz;
using c10::Half;

// The type in which numbers of a type are added up on a GPU.
template <typename T, bool is_cuda>
struct AccumulateType {
  using type = long long;
};

template <bool is_cuda>
struct AccumulateType<c10::Half, is_cuda> {
  using type = float;
};

template <bool is_cuda>
struct AccumulateType<c10::BFloat16, is_cuda> {
  using type = float;
};

template <bool is_cuda>
struct AccumulateType<c10::Float8_e4m3fn, is_cuda> {
  using type = float;
};

template <bool is_cuda>
struct AccumulateType<c10::Float8_e5m2, is_cuda> {
  using type = float;
};

template <bool is_cuda>
struct AccumulateType<float, is_cuda> {
  using type = float;
};

template <bool is_cuda>
struct AccumulateType<double, is_cuda> {
  using type = double;
};

template <>
struct AccumulateType<float, false> {
  using type = double;
};

template <typename T, bool is_cuda>
using acc_type = typename AccumulateType<T, is_cuda>::type;

// The type in which single operations are computed.
template <typename T>
struct OpMathType {
  using type = T;
};

template <>
struct OpMathType<c10::Half> {
  using type = float;
};

template <>
struct OpMathType<c10::BFloat16> {
  using type = float;
};

template <>
struct OpMathType<c10::Float8_e4m3fn> {
  using type = float;
};

template <>
struct OpMathType<c10::Float8_e5m2> {
  using type = float;
};

template <typename T>
using opmath_type = typename OpMathType<T>::type;

// The ends of types; of floats the bounds are infinities.
template <typename T>
struct numeric_limits {};

template <>
struct numeric_limits<float> {
  static __device__ float lowest() { return -3.402823466e+38f; }
  static __device__ float max() { return 3.402823466e+38f; }
  static __device__ float lower_bound() { return -__int_as_float(0x7f800000); }
  static __device__ float upper_bound() { return __int_as_float(0x7f800000); }
};

template <>
struct numeric_limits<double> {
  static __device__ double lowest() { return -1.7976931348623157e+308; }
  static __device__ double max() { return 1.7976931348623157e+308; }
  static __device__ double lower_bound() { return -__longlong_as_double(0x7ff0000000000000ll); }
  static __device__ double upper_bound() { return __longlong_as_double(0x7ff0000000000000ll); }
};

template <>
struct numeric_limits<c10::Half> {
  static __device__ c10::Half lowest() { return c10::Half(0xfbff, c10::Half::from_bits()); }
  static __device__ c10::Half max() { return c10::Half(0x7bff, c10::Half::from_bits()); }
  static __device__ c10::Half lower_bound() { return c10::Half(0xfc00, c10::Half::from_bits()); }
  static __device__ c10::Half upper_bound() { return c10::Half(0x7c00, c10::Half::from_bits()); }
};

template <>
struct numeric_limits<c10::BFloat16> {
  static __device__ c10::BFloat16 lowest() { return c10::BFloat16(0xff7f, c10::BFloat16::from_bits()); }
  static __device__ c10::BFloat16 max() { return c10::BFloat16(0x7f7f, c10::BFloat16::from_bits()); }
  static __device__ c10::BFloat16 lower_bound() { return c10::BFloat16(0xff80, c10::BFloat16::from_bits()); }
  static __device__ c10::BFloat16 upper_bound() { return c10::BFloat16(0x7f80, c10::BFloat16::from_bits()); }
};

template <>
struct numeric_limits<unsigned char> {
  static __device__ unsigned char lowest() { return 0; }
  static __device__ unsigned char max() { return 255; }
  static __device__ unsigned char lower_bound() { return 0; }
  static __device__ unsigned char upper_bound() { return 255; }
};

template <>
struct numeric_limits<signed char> {
  static __device__ signed char lowest() { return -128; }
  static __device__ signed char max() { return 127; }
  static __device__ signed char lower_bound() { return -128; }
  static __device__ signed char upper_bound() { return 127; }
};

template <>
struct numeric_limits<short> {
  static __device__ short lowest() { return -32768; }
  static __device__ short max() { return 32767; }
  static __device__ short lower_bound() { return -32768; }
  static __device__ short upper_bound() { return 32767; }
};

template <>
struct numeric_limits<int> {
  static __device__ int lowest() { return -2147483647 - 1; }
  static __device__ int max() { return 2147483647; }
  static __device__ int lower_bound() { return -2147483647 - 1; }
  static __device__ int upper_bound() { return 2147483647; }
};

template <>
struct numeric_limits<long> {
  static __device__ long lowest() { return -9223372036854775807l - 1; }
  static __device__ long max() { return 9223372036854775807l; }
  static __device__ long lower_bound() { return -9223372036854775807l - 1; }
  static __device__ long upper_bound() { return 9223372036854775807l; }
};

// Views of tensors that kernels take by value: where the elements lie, how many there are along each axis, and
// how far apart.
template <typename T>
struct DefaultPtrTraits {
  using PtrType = T*;
};

template <typename T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

template <typename T, unsigned long N, template <typename U> class PtrTraits = DefaultPtrTraits,
          typename index_t = long>
struct TensorAccessor {
  typename PtrTraits<T>::PtrType data_;
  const index_t* sizes_;
  const index_t* strides_;
  __device__ TensorAccessor(typename PtrTraits<T>::PtrType data, const index_t* sizes, const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  __device__ index_t size(index_t axis) const { return sizes_[axis]; }
  __device__ index_t stride(index_t axis) const { return strides_[axis]; }
  __device__ typename PtrTraits<T>::PtrType data() const { return data_; }
  __device__ TensorAccessor<T, N - 1, PtrTraits, index_t> operator[](index_t i) const {
    return TensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
};

template <typename T, template <typename U> class PtrTraits, typename index_t>
struct TensorAccessor<T, 1, PtrTraits, index_t> {
  typename PtrTraits<T>::PtrType data_;
  const index_t* sizes_;
  const index_t* strides_;
  __device__ TensorAccessor(typename PtrTraits<T>::PtrType data, const index_t* sizes, const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  __device__ index_t size(index_t axis) const { return sizes_[axis]; }
  __device__ index_t stride(index_t axis) const { return strides_[axis]; }
  __device__ typename PtrTraits<T>::PtrType data() const { return data_; }
  __device__ T& operator[](index_t i) const { return data_[strides_[0] * i]; }
};

template <typename T, unsigned long N, template <typename U> class PtrTraits = DefaultPtrTraits,
          typename index_t = long>
struct GenericPackedTensorAccessor {
  typename PtrTraits<T>::PtrType data_;
  index_t sizes_[N];
  index_t strides_[N];
  __device__ index_t size(index_t axis) const { return sizes_[axis]; }
  __device__ index_t stride(index_t axis) const { return strides_[axis]; }
  __device__ typename PtrTraits<T>::PtrType data() const { return data_; }
  __device__ TensorAccessor<T, N - 1, PtrTraits, index_t> operator[](index_t i) const {
    return TensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
};

template <typename T, template <typename U> class PtrTraits, typename index_t>
struct GenericPackedTensorAccessor<T, 1, PtrTraits, index_t> {
  typename PtrTraits<T>::PtrType data_;
  index_t sizes_[1];
  index_t strides_[1];
  __device__ index_t size(index_t axis) const { return sizes_[axis]; }
  __device__ index_t stride(index_t axis) const { return strides_[axis]; }
  __device__ typename PtrTraits<T>::PtrType data() const { return data_; }
  __device__ T& operator[](index_t i) const { return data_[strides_[0] * i]; }
};

template <typename T, unsigned long N, template <typename U> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, PtrTraits, int>;

template <typename T, unsigned long N, template <typename U> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, PtrTraits, long>;

template <typename T, unsigned long N, template <typename U> class PtrTraits = DefaultPtrTraits,
          typename index_t = long>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, PtrTraits, index_t>;

}  // namespace at

namespace torch {

using c10::BFloat16;
using c10::Float8_e4m3fn;
using c10::Float8_e4m3fnuz;
using c10::Float8_e5m2;
using c10::Float8_e5m2fnuz;
using c10::Half;

using at::DefaultPtrTraits;
using at::PackedTensorAccessor;
using at::PackedTensorAccessor32;
using at::PackedTensorAccessor64;
using at::RestrictPtrTraits;
using at::TensorAccessor;

namespace headeronly {

using c10::BFloat16;
using c10::Float8_e4m3fn;
using c10::Float8_e4m3fnuz;
using c10::Float8_e5m2;
using c10::Float8_e5m2fnuz;
using c10::Half;

}  // namespace headeronly
}  // namespace torch

namespace c10 { namespace cuda { namespace compat {

__device__ inline float abs(float x) { return ::fabsf(x); }
__device__ inline double abs(double x) { return ::fabs(x); }
__device__ inline float exp(float x) { return ::expf(x); }
__device__ inline double exp(double x) { return ::exp(x); }
__device__ inline float log(float x) { return ::logf(x); }
__device__ inline double log(double x) { return ::log(x); }
__device__ inline float tanh(float x) { return ::tanhf(x); }
__device__ inline double tanh(double x) { return ::tanh(x); }
__device__ inline float sqrt(float x) { return ::sqrtf(x); }
__device__ inline double sqrt(double x) { return ::sqrt(x); }
__device__ inline float rsqrt(float x) { return ::rsqrtf(x); }
__device__ inline double rsqrt(double x) { return ::rsqrt(x); }
__device__ inline float pow(float x, float y) { return ::powf(x, y); }
__device__ inline double pow(double x, double y) { return ::pow(x, y); }
__device__ inline float max(float x, float y) { return ::fmaxf(x, y); }
__device__ inline double max(double x, double y) { return ::fmax(x, y); }
__device__ inline float min(float x, float y) { return ::fminf(x, y); }
__device__ inline double min(double x, double y) { return ::fmin(x, y); }

}}}  // namespace c10::cuda::compat

// As glibc has them, which device code alone does not see.
using uint = unsigned int;
using ushort = unsigned short;

template <typename T>
__device__ inline T WARP_SHFL(T value, int lane, int width = 32, unsigned mask = 0xffffffffu) {
  return __shfl_sync(mask, value, lane, width);
}

template <typename T>
__device__ inline T WARP_SHFL_XOR(T value, int lanes, int width = 32, unsigned mask = 0xffffffffu) {
  return __shfl_xor_sync(mask, value, lanes, width);
}

template <typename T>
__device__ inline T WARP_SHFL_UP(T value, unsigned delta, int width = 32, unsigned mask = 0xffffffffu) {
  return __shfl_up_sync(mask, value, delta, width);
}

template <typename T>
__device__ inline T WARP_SHFL_DOWN(T value, unsigned delta, int width = 32, unsigned mask = 0xffffffffu) {
  return __shfl_down_sync(mask, value, delta, width);
}

__device__ inline unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffffu) {
  return __ballot_sync(mask, predicate);
}

template <typename T>
__device__ inline T gpuAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}

#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_HOST_DEVICE __device__
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_UNUSED __attribute__((__unused__))
#define __ubsan_ignore_float_divide_by_zero__
#define __ubsan_ignore_function__
#define __ubsan_ignore_pointer_overflow__
#define __ubsan_ignore_signed_int_overflow__
#define __ubsan_ignore_undefined__
#define C10_RESTRICT __restrict__
#define C10_LIKELY(condition) (condition)
#define C10_UNLIKELY(condition) (condition)
#define C10_WARP_SIZE 32
#define C10_MAX_THREADS_PER_BLOCK(count) (count)
#define C10_MIN_BLOCKS_PER_SM(threads, blocks) (blocks)
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define TORCH_CHECK(...) ((void)0)
#define STD_TORCH_CHECK(...) ((void)0)
#define TORCH_INTERNAL_ASSERT(...) ((void)0)
#define AT_ASSERT(...) ((void)0)
#define AT_ASSERTM(...) ((void)0)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define CUDA_KERNEL_ASSERT2(condition) assert(condition)
#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                            \
  for (index_type i = static_cast<index_type>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
       i += static_cast<index_type>(blockDim.x) * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_1D_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
