// The value where it lies within these bounds.
inline long long within(long long value, long long low, long long high, bool& undefined) {
    return value < low || value > high ? no_value(undefined) : value;
}

inline bool is_aligned(const void* pointer, uintptr_t bytes) {
    return (reinterpret_cast<uintptr_t>(pointer) & (bytes - 1)) == 0;
}

// Whether two arrays share a byte.
inline bool overlap(const void* a, long long bytes_a, const void* b, long long bytes_b) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
    return bytes_a > 0 && bytes_b > 0 && first < second + bytes_b && second < first + bytes_a;
}
