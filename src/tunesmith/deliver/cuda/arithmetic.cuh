// Arithmetic that rounds down, and that notes in `undefined` where there is no value: after a division by
// zero, or beyond 2**62.
constexpr long long limit = 4611686018427387904LL;
inline long long no_value(bool& undefined) { undefined = true; return 0; }
inline long long add(long long a, long long b, bool& undefined) {
    return (b > 0 ? a > limit - b : a < -limit - b) ? no_value(undefined) : a + b;
}
inline long long subtract(long long a, long long b, bool& undefined) { return add(a, -b, undefined); }
inline long long multiply(long long a, long long b, bool& undefined) {
    const long long most = b == 0 ? limit : limit / (b < 0 ? -b : b);
    return (a < 0 ? -a : a) > most ? no_value(undefined) : a * b;
}
inline long long divide(long long a, long long b, bool& undefined) {
    if (b == 0) return no_value(undefined);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
inline long long remainder_of(long long a, long long b, bool& undefined) {
    if (b == 0) return no_value(undefined);
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
inline long long ceildiv(long long a, long long b, bool& undefined) { return -divide(-a, b, undefined); }
inline long long round_up(long long a, long long b, bool& undefined) {
    return multiply(ceildiv(a, b, undefined), b, undefined);
}
inline long long smaller(long long a, long long b) { return b < a ? b : a; }
inline long long larger(long long a, long long b) { return b > a ? b : a; }
inline long long next_pow2(long long a, bool& undefined) {
    if (a <= 0) return no_value(undefined);
    long long power = 1;
    while (power < a) power *= 2;
    return power;
}
inline bool is_pow2(long long a) { return a > 0 && (a & (a - 1)) == 0; }
template <int count>
inline bool is_in(long long item, const long long (&options)[count]) {
    for (long long option : options) {
        if (item == option) return true;
    }
    return false;
}
