#include <chrono>
int main() {
    const int calls = 200000;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i)
            silu_and_mul_tuned::launch((__half*)0x10000000, (const __half*)0x20000000, 17 + i % 9, 64, 0);
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        best = took.count() / calls < best ? took.count() / calls : best;
    }
    std::printf("%f\n", best);
}
