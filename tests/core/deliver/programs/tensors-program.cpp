
#include "sum_tensors.h"
#include <cstdio>
using namespace sum_tensors;
static void* at(long long place) { return reinterpret_cast<void*>(place); }
static void call(bool original, int64_t rows, double by) {
    const int64_t lengths[] = {rows, 5}, one[] = {1, 1}, dense[] = {5, 1};
    const View out = {"class", "", at(1 << 20), lengths, one, 1};
    const View x = {"x", "", at(2 << 20), lengths, dense, 2}, seen = {"seen", "", at(3 << 20), one, one, 1};
    try {
        const CurrentDevice current(3);
        const CurrentDevice again(3);
        const Sizes sizes = sizes_of_all(out, x, seen, 5);
        check_all(out, x, seen, sizes);
        std::printf("scratch of %lld and %lld bytes\n", bytes_arg_work(sizes), bytes_work_more(sizes));
        void* more = bytes_work_more(sizes) > 0 ? at(5 << 20) : nullptr;
        run(original, out, x, seen, by, 0, sizes, at(4 << 20), more, static_cast<CUstream>(at(77)));
    } catch (const Refused& refused) {
        std::puts(refused.what());
    }
}
int main() {
    call(false, 4, 2.0);
    call(false, 4, 3.0);
    call(true, 4, 2.0);
    call(false, 100, 2.0);
    const CurrentDevice current(3);
    std::puts(sum_tuned::prepare() ? "prepared" : "not prepared");
}
