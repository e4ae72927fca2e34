
#include "@_tensors.h"
#include <cstdio>
using namespace @_tensors;
template <class Call> static void told(Call call) {
    try { call(); std::puts("fine"); } catch (const Refused& refused) { std::puts(refused.what()); }
}
int main() {
    const int64_t out[] = {16, 64}, in[] = {16, 128}, odd[] = {16, 127}, flat[] = {64, 1}, wide[] = {128, 1},
                  gaps[] = {256, 1};
    const View fine = {"out", "[tokens, d]", nullptr, out, flat, 2};
    const auto call = [&](const View& input) {
        const Sizes sizes = sizes_of_all(fine, input);
        std::printf("%lld %lld: ", sizes.size_tokens, sizes.size_d);
        check_all(fine, input, sizes);
    };
    told([&] { call({"input", "[tokens, 2 * d]", nullptr, in, wide, 2}); });
    told([&] { call({"input", "[tokens, 2 * d]", nullptr, odd, wide, 2}); });
    told([&] { call({"input", "[tokens, 2 * d]", nullptr, in, gaps, 2}); });
    told([&] { call({"input", "[tokens, 2 * d]", nullptr, in, wide, 1}); });
    std::printf("%lld\n", sizes_given({"input", "", nullptr, in, wide, 2}).size_d);
    told([&] { CurrentDevice(0); });
    told([&] { check_status(CUDA_ERROR_NO_BINARY_FOR_GPU); });
    told([&] { as_scalar<int>("n", 1LL << 40); });
}
