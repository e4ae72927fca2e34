#include <cstdlib>
int main(int, char** given) {
    capability = std::atoi(given[1]);
    std::puts(silu_and_mul_tuned::prepare() ? "ready" : "not ready");
}
