#define CALL(out, in, tokens, d) \
    silu_and_mul_tuned::launch((__half*)(out), (const __half*)(in), tokens, d, nullptr); std::puts(last)
int main(int count, char**) {
    if (count > 1) capability = 80;
    CALL(0x10000000, 0x20000000, 16, 64);      // its own
    CALL(0x10000000, 0x20000000, 17, 64);      // the general one
    CALL(0x10000000, 0x20000000, 17, 63);      // the original: its condition does not hold
    CALL(0x10000002, 0x20000000, 17, 64);      // misaligned
    CALL(0x20000040, 0x20000000, 17, 64);      // overlapping
    CALL(0x10000000, 0x20000000, 65537, 8);    // outside the contract
    return 0;
}
