inline bool same_bits(const void* value, unsigned long long bits, size_t bytes) {
    return memcmp(value, &bits, bytes) == 0;
}
inline void* pointer(void* const* values, int number) { return *static_cast<void* const*>(values[number]); }
