#include <cstdlib>
int main(int, char** given) {
    capability = std::atoi(given[1]);
    int errors = 0;
    for (int d = 63; d < 65; ++d)
        errors += silu_and_mul_tuned::launch((__half*)0x10000000, (const __half*)0x20000000, 17, d, nullptr);
    errors += silu_and_mul_tuned::launch_original((__half*)16, (const __half*)32, 17, 64, nullptr);
    if (errors != 0) std::puts("an error");
    std::puts(silu_and_mul_tuned::prepare() ? "ready" : "not ready");
}
