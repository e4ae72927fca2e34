
static void call(long long work, long long more) {
    const int error = sum_tuned::launch((float*)0x10000, (const unsigned char*)0x20000, (int*)0x30000,
                                        (long long*)work, 2.0f, 0, 4, 4, 0, (float*)more, nullptr);
    std::printf("%s\n", error != 0 ? "an error" : last);
}
int main() {
    call(0x40000, 0x50000);  // as it was verified
    call(0x40000, 0);        // none
    call(0x40000, 0x50002);  // misaligned
    call(0x40000, 0x10008);  // in an output
    call(0x40000, 0x20008);  // in an input, which it would write to
    call(0x40000, 0x40018);  // in a workspace of the original's
    call(0x40000, 0x40020);  // right behind it
}
