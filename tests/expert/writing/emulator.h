// Runs a CUDA kernel on the host, for tests: the threads of a block are fibers that take turns between barriers
// and shuffles. A thread that waits where another does not is told.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <ucontext.h>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <vector_types.h>

#undef __shared__
#undef __device__
#undef __global__
#undef __launch_bounds__
#undef __forceinline__
#undef __align__
#define __shared__ static
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))

struct three { unsigned x, y, z; };
static three threadIdx, blockIdx, blockDim, gridDim;
static unsigned char emulated_shared[1 << 20] __attribute__((aligned(16)));

namespace emulated {
enum State { READY, AT_BARRIER, AT_SHUFFLE, DONE };
struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    State state = READY;
    unsigned mask = 0;  // of the shuffle it is at
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int current;
static unsigned char slots[1024][16];
static void (*body)();

static void wait(State state, unsigned mask = 0)
{
    fibers[current].state = state;
    fibers[current].mask = mask;
    swapcontext(&fibers[current].context, &scheduler);
}

static void enter()
{
    body();
    wait(DONE);
}

[[noreturn]] static void fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    fflush(stderr);
    _exit(3);
}

// Lets go on whoever may: a warp's threads once all of a mask have come, a block's once all that live have.
static bool release()
{
    const int threads = (int)fibers.size();
    bool any = false, all = true;
    for (int t = 0; t < threads; t++)
        all = all && (fibers[t].state == AT_BARRIER || fibers[t].state == DONE);
    for (int t = 0; t < threads; t++) {
        if (fibers[t].state == AT_BARRIER && all) {
            fibers[t].state = READY;
            any = true;
        }
    }
    std::vector<int> go;
    for (int t = 0; t < threads; t++) {
        if (fibers[t].state != AT_SHUFFLE)
            continue;
        bool here = true;
        for (int lane = 0; lane < 32 && (t & ~31) + lane < threads; lane++)
            if (fibers[t].mask >> lane & 1)
                here = here && fibers[(t & ~31) + lane].state == AT_SHUFFLE;
        if (here)
            go.push_back(t);
    }
    for (int t : go) {
        fibers[t].state = READY;
        any = true;
    }
    return any;
}

static void run_block()
{
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    fibers.resize(threads);
    for (int t = 0; t < threads; t++) {
        Fiber &fiber = fibers[t];
        fiber.state = READY;
        fiber.stack.resize(64 << 10);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        makecontext(&fiber.context, enter, 0);
    }
    for (;;) {
        bool live = false;
        for (int t = 0; t < threads; t++) {
            if (fibers[t].state == READY) {
                current = t;
                threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
                swapcontext(&scheduler, &fibers[t].context);
            }
            live = live || fibers[t].state != DONE;
        }
        if (!live)
            return;
        if (!release())
            fail("threads wait for each other in different places");
    }
}

static void launch(const unsigned *grid, const unsigned *block, void (*kernel)())
{
    body = kernel;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                memset(emulated_shared, 0xff, sizeof emulated_shared);
                blockIdx = {x, y, z};
                run_block();
            }
}

template <typename T>
static T shuffle(unsigned mask, T value, int other, bool inside)
{
    const int self = current;
    if (!(mask >> (self & 31) & 1))
        fail("a thread takes part in a shuffle that leaves it out");
    memcpy(slots[self], &value, sizeof(T));
    wait(AT_SHUFFLE, mask);
    if (inside && !(mask >> other & 1))
        fail("a shuffle reaches beyond its mask");
    if (inside)
        memcpy(&value, slots[(self & ~31) + other], sizeof(T));
    wait(AT_SHUFFLE, mask);
    return value;
}
}  // namespace emulated

static void __syncthreads() { emulated::wait(emulated::AT_BARRIER); }
static void __syncwarp(unsigned mask = 0xffffffffu) { emulated::wait(emulated::AT_SHUFFLE, mask); }

template <typename T>
static T __shfl_xor_sync(unsigned mask, T value, int step, int width = 32)
{
    return emulated::shuffle(mask, value, (emulated::current & 31) ^ step, true);
}
template <typename T>
static T __shfl_down_sync(unsigned mask, T value, int step, int width = 32)
{
    const int lane = emulated::current & 31, other = lane + step;
    const bool inside = (lane & (width - 1)) + step < width && (mask >> (other & 31) & 1);
    return emulated::shuffle(mask, value, other, inside);
}
template <typename T>
static T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    const int lane = emulated::current & 31;
    return emulated::shuffle(mask, value, (lane & ~(width - 1)) | (from & (width - 1)), true);
}

template <typename T> static T __ldg(const T *from) { return *from; }
template <typename T> static T __ldcs(const T *from) { return *from; }
template <typename T> static void __stcs(T *to, T value) { *to = value; }
static float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static float __fdividef(float x, float y) { return x / y; }
static float emulated_expf(float x) { return expf(x); }
static float emulated_logf(float x) { return logf(x); }
static float emulated_sinf(float x) { return sinf(x); }
static float emulated_cosf(float x) { return cosf(x); }
static float emulated_powf(float x, float y) { return powf(x, y); }
static int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
#define __trap() emulated::fail("a kernel trapped")
#define __expf emulated_expf
#define __logf emulated_logf
#define __sinf emulated_sinf
#define __cosf emulated_cosf
#define __powf emulated_powf
static unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
static float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
static float __int_as_float(int i) { float x; memcpy(&x, &i, 4); return x; }
static int __float_as_int(float x) { int i; memcpy(&i, &x, 4); return i; }
static int __float2int_rn(float x) { return (int)nearbyintf(x); }
template <typename T, typename U> static auto min(T a, U b) -> decltype(a + b) { return a < b ? a : b; }
template <typename T, typename U> static auto max(T a, U b) -> decltype(a + b) { return a > b ? a : b; }
template <typename T> static T atomicAdd(T *to, T value) { const T old = *to; *to = old + value; return old; }
using std::isinf;
using std::isnan;
