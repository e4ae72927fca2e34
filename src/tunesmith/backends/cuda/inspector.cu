// What the lab does to memory on the device: fill it, lay out drawn blocks, find differences, compare numbers.
// No header is included, so that this builds fast; every scalar parameter is 8 bytes wide.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

__device__ u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ u64 threads() { return (u64)gridDim.x * blockDim.x; }

// Byte i of a pattern of four that repeats from wherever the array begins.
__device__ u8 pattern_byte(u32 pattern, u64 i) { return (u8)(pattern >> (8 * (i & 3))); }

__device__ u32 turned(u32 pattern, u64 by)
{
    u32 bits = 8 * (by & 3);
    return bits ? (pattern >> bits) | (pattern << (32 - bits)) : pattern;
}

extern "C" __global__ void fill(u8 *to, u64 n, u64 pattern)
{
    u64 head = (16 - (u64)to % 16) % 16;
    head = head < n ? head : n;
    u64 whole = (n - head) / 16;
    u32 word = turned((u32)pattern, head);
    uint4 words = make_uint4(word, word, word, word);
    for (u64 i = thread_number(); i < whole; i += threads())
        ((uint4 *)(to + head))[i] = words;
    for (u64 i = thread_number(); i < head; i += threads())
        to[i] = pattern_byte((u32)pattern, i);
    for (u64 i = head + whole * 16 + thread_number(); i < n; i += threads())
        to[i] = pattern_byte((u32)pattern, i);
}

#ifdef __CUDA_ARCH__ // a GPU's alone: tests build the rest for the host
// What an earlier launch has left in shared memory is gone after this one. With is_shared 0 it fills memory of its
// own instead, so that caches are used alike.
extern "C" __global__ void scramble(u32 *other, u64 words, u64 seed, u64 is_shared)
{
    extern __shared__ u32 mine[];
    u32 *its = other + blockIdx.x * words;
    for (u64 i = threadIdx.x; i < words; i += blockDim.x)
        if (is_shared)
            mine[i] = (u32)(seed ^ (i * 2654435761u));
        else
            its[i] = (u32)(seed ^ (i * 2654435761u));
    __syncthreads();
    if (is_shared && mine[seed % words] == 0x5eedu)  // so that no compiler leaves it out
        its[0] = (u32)seed;
}
#endif

__device__ u64 mixed(u64 x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Adds to 16 bytes at a few places of every slot, so that no result that lies there is right any more.
extern "C" __global__ void disturb(u8 *to, u64 nbytes, u64 stride, u64 slots, u64 places, u64 seed)
{
    for (u64 slot = thread_number(); slot < slots; slot += threads())
        for (u64 place = 0; place < places; place++) {
            u64 drawn = mixed(seed + (slot * places + place) * 0x9e3779b97f4a7c15ull);
            u64 start = drawn % nbytes / 16 * 16;
            u8 added = (u8)(64 + (drawn >> 57));
            for (u64 k = start; k < start + 16 && k < nbytes; k++)
                to[slot * stride + k] += added;
        }
}

// Lets the next kernel begin, if that one may, and copies a while later.
extern "C" __global__ void copy_late(u8 *to, const u8 *from, u64 n, u64 delay)
{
#if __CUDA_ARCH__ >= 900 // no kernel begins early on others
    u64 start, now;
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < delay);
#endif
    for (u64 i = thread_number(); i < n; i += threads())
        to[i] = from[i];
}

#ifdef __CUDA_ARCH__
// Reads beside another kernel, until `words[0]` says stop or the time is up: `found` is one more than the number of a
// pair of which the first was not what the second is. Pairs: two addresses, and how many bytes.
extern "C" __global__ void oversee(const u64 *pairs, u64 count, volatile u32 *words, u64 nanoseconds, u64 *found)
{
    u64 start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    if (threadIdx.x == 0 && blockIdx.x == 0)
        words[1] = words[2];  // it has begun
    do {
        for (u64 p = blockIdx.x; p < count; p += gridDim.x) {
            u64 a = pairs[3 * p], b = pairs[3 * p + 1], n = pairs[3 * p + 2];
            u64 size = (a | b) % 4 ? 1 : 4;
            for (u64 i = threadIdx.x * size; i + size <= n; i += blockDim.x * size)
                if (size == 4 ? *(const volatile u32 *)(a + i) != *(const u32 *)(b + i)
                              : *(const volatile u8 *)(a + i) != *(const u8 *)(b + i))
                    *found = p + 1;
        }
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (words[0] != words[2] && now - start < nanoseconds);
}
#endif

template <typename T>
__device__ void spread_as(T *to, const T *block, u64 n, u64 size, u64 roll, u64 negate, u64 first)
{
    const T sign = (T)1 << (8 * sizeof(T) - 1);
    for (u64 i = thread_number(); i < n; i += threads()) {
        u64 turn = (first + i) / size;
        u64 from = (first + i - turn * size + turn * roll % size) % size;
        T value = block[from];
        to[i] = negate && (turn & 1) ? value ^ sign : value;
    }
}

extern "C" __global__ void spread(void *to, const void *block, u64 n, u64 size, u64 roll, u64 negate,
                                  u64 itemsize, u64 first)
{
    if (itemsize == 1)
        spread_as((u8 *)to, (const u8 *)block, n, size, roll, negate, first);
    else if (itemsize == 2)
        spread_as((u16 *)to, (const u16 *)block, n, size, roll, negate, first);
    else if (itemsize == 4)
        spread_as((u32 *)to, (const u32 *)block, n, size, roll, negate, first);
    else
        spread_as((u64 *)to, (const u64 *)block, n, size, roll, negate, first);
}

// What a thread has found, kept to itself until the end: many bytes may differ.
struct Different {
    u64 count, first, last;
};

__device__ void note(Different &mine, u64 place)
{
    mine.count += 1;
    mine.first = mine.first < place ? mine.first : place;
    mine.last = mine.last > place ? mine.last : place;
}

// found: how many bytes differ, the first, the last. With b null, from a pattern instead of another array.
extern "C" __global__ void differences(const u8 *a, const u8 *b, u64 n, u64 pattern, u64 *found)
{
    u64 head = (16 - (u64)a % 16) % 16;
    head = head < n ? head : n;
    bool alike = !b || (u64)a % 16 == (u64)b % 16;
    u64 whole = alike ? (n - head) / 16 : 0;
    u32 word = turned((u32)pattern, head);
    Different mine = {0, ~0ull, 0};
    for (u64 i = thread_number(); i < whole; i += threads()) {
        uint4 x = ((const uint4 *)(a + head))[i];
        uint4 y = b ? ((const uint4 *)(b + head))[i] : make_uint4(word, word, word, word);
        if (x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w)
            continue;
        for (u64 k = head + 16 * i; k < head + 16 * i + 16; k++)
            if (a[k] != (b ? b[k] : pattern_byte((u32)pattern, k)))
                note(mine, k);
    }
    for (u64 i = thread_number(); i < head; i += threads())
        if (a[i] != (b ? b[i] : pattern_byte((u32)pattern, i)))
            note(mine, i);
    for (u64 i = head + whole * 16 + thread_number(); i < n; i += threads())
        if (a[i] != (b ? b[i] : pattern_byte((u32)pattern, i)))
            note(mine, i);
    if (mine.count) {
        atomicAdd(found, mine.count);
        atomicMin(found + 1, mine.first);
        atomicMax(found + 2, mine.last);
    }
}

enum { FLOAT = 0, INT = 1, UINT = 2 };

struct Type {
    u64 kind, bytes, mantissa;
    i64 min_exponent;
    u64 no_infinity;  // the largest exponent holds numbers too, all but the last of which is NaN
};

__device__ u64 bits_of(const void *values, u64 bytes, u64 i)
{
    if (bytes == 1)
        return ((const u8 *)values)[i];
    if (bytes == 2)
        return ((const u16 *)values)[i];
    return bytes == 4 ? ((const u32 *)values)[i] : ((const u64 *)values)[i];
}

__device__ i64 signed_of(u64 bits, u64 bytes)
{
    u64 shift = 64 - 8 * bytes;
    return (i64)(bits << shift) >> shift;
}

__device__ double number(const Type &type, const void *values, u64 i)
{
    u64 bits = bits_of(values, type.bytes, i);
    if (type.kind == INT)
        return (double)signed_of(bits, type.bytes);
    if (type.kind == UINT)
        return (double)bits;
    if (type.bytes == 8)
        return __longlong_as_double((i64)bits);
    if (type.bytes == 4)
        return (double)__uint_as_float((u32)bits);
    u64 exponent_bits = 8 * type.bytes - 1 - type.mantissa;
    u64 fraction = bits & ((1ull << type.mantissa) - 1);
    u64 exponent = bits >> type.mantissa & ((1ull << exponent_bits) - 1);
    double sign = bits >> (8 * type.bytes - 1) ? -1.0 : 1.0;
    bool last = exponent == (1ull << exponent_bits) - 1;
    bool full = fraction == (1ull << type.mantissa) - 1;
    if (last && (type.no_infinity ? full : fraction != 0))
        return __longlong_as_double(0x7ff8000000000000ll);
    if (last && !type.no_infinity)
        return sign * __longlong_as_double(0x7ff0000000000000ll);
    if (exponent == 0)
        return sign * ldexp((double)fraction, (int)type.min_exponent - (int)type.mantissa);
    double whole = (double)(fraction + (1ull << type.mantissa));
    return sign * ldexp(whole, (int)type.min_exponent + (int)exponent - 1 - (int)type.mantissa);
}

__device__ double ulp_at(const Type &type, double value)
{
    if (type.kind != FLOAT)
        return 1.0;
    int exponent = value == 0 ? (int)type.min_exponent : max(ilogb(value), (int)type.min_exponent);
    return ldexp(1.0, exponent - (int)type.mantissa);
}

struct Found {
    u64 wrong;
    double max_error, squared_error, squared_ulp;
    u64 count;
};

// One Found for each block. Expected: 0 doubles, 1 the same type as got, 2 int64, 3 uint64 (then compared as
// integers). Below `finite` what is expected is a number of the type, above `infinite` none. Between them,
// where that is not sure, an element counts as wrong: the host, which decides, looks again. Codes are first
// clipped to `low` and `high`.
extern "C" __global__ void compare(const void *got, const void *expected, u64 n, u64 expected_kind, u64 kind,
                                   u64 bytes, u64 mantissa, i64 min_exponent, u64 no_infinity,
                                   double finite, double infinite, double low, double high, double rtol,
                                   double atol, double ulps, double cap, u64 add_ulps, Found *found)
{
    Type type = {kind, bytes, mantissa, min_exponent, no_infinity};
    Found mine = {0, 0.0, 0.0, 0.0, 0};
    for (u64 i = thread_number(); i < n; i += threads()) {
        if (expected_kind >= 2) {
            u64 bits = bits_of(got, bytes, i);
            u64 value = kind == INT ? (u64)signed_of(bits, bytes) : bits;
            u64 wanted = ((const u64 *)expected)[i];
            // As 64-bit patterns; a sign that only one of the two has makes them differ.
            bool crossed = (kind == INT) != (expected_kind == 2) && (i64)(value | wanted) < 0;
            mine.wrong += value != wanted || crossed;
            mine.count += 1;
            continue;
        }
        double g = number(type, got, i);
        double e = expected_kind == 1 ? number(type, expected, i) : ((const double *)expected)[i];
        if (add_ulps)
            e = e > high ? high : e < low ? low : e;
        double size = fabs(e);
        if (!(size < finite)) {
            bool both_nan = g != g && (e != e || (no_infinity && size > infinite));
            bool same_infinity = !no_infinity && isinf(g) && size > infinite && (g > 0) == (e > 0);
            mine.wrong += !(both_nan || same_infinity);
            continue;
        }
        double error = fabs(g - e), ulp = ulp_at(type, e);
        double tolerance = __dadd_rn(atol, __dmul_rn(rtol, size));
        double bound = add_ulps ? __dadd_rn(__dmul_rn(ulps, ulp), tolerance)
                                : fmax(tolerance, __dmul_rn(ulps, ulp));
        bool is_number = error < __longlong_as_double(0x7ff0000000000000ll);
        bool wrong = !is_number || !(error <= bound);
        if (cap >= 0)
            wrong |= !(error <= __dadd_rn(cap, ulp));
        if (add_ulps && kind != FLOAT)
            wrong |= !(fabs(g - rint(e)) <= 1.0);
        mine.wrong += wrong;
        if (!is_number)
            continue;
        mine.max_error = fmax(mine.max_error, error);
        mine.squared_error += error * error;
        mine.squared_ulp += ulp * ulp;
        mine.count += 1;
    }
    __shared__ Found all[256];
    all[threadIdx.x] = mine;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            Found &a = all[threadIdx.x];
            const Found &b = all[threadIdx.x + half];
            a.wrong += b.wrong;
            a.max_error = fmax(a.max_error, b.max_error);
            a.squared_error += b.squared_error;
            a.squared_ulp += b.squared_ulp;
            a.count += b.count;
        }
    }
    if (threadIdx.x == 0)
        found[blockIdx.x] = all[0];
}
