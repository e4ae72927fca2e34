#ifndef TUNESMITH_STDINT_H
#define TUNESMITH_STDINT_H
#define INT8_MAX 127
#define INT8_MIN (-127 - 1)
#define INT16_MAX 32767
#define INT16_MIN (-32767 - 1)
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
#define INT64_MAX 9223372036854775807LL
#define INT64_MIN (-9223372036854775807LL - 1)
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX 18446744073709551615ULL
typedef signed char int8_t, int_least8_t, int_fast8_t;
typedef unsigned char uint8_t, uint_least8_t, uint_fast8_t;
#define INT8_C(value) value
#define UINT8_C(value) value
typedef signed short int16_t, int_least16_t, int_fast16_t;
typedef unsigned short uint16_t, uint_least16_t, uint_fast16_t;
#define INT16_C(value) value
#define UINT16_C(value) value
typedef signed int int32_t, int_least32_t, int_fast32_t;
typedef unsigned int uint32_t, uint_least32_t, uint_fast32_t;
#define INT32_C(value) value
#define UINT32_C(value) value##U
typedef signed long long int64_t, int_least64_t, int_fast64_t;
typedef unsigned long long uint64_t, uint_least64_t, uint_fast64_t;
#define INT64_C(value) value##LL
#define UINT64_C(value) value##ULL
typedef int64_t intptr_t, intmax_t;
typedef uint64_t uintptr_t, uintmax_t;
#endif
