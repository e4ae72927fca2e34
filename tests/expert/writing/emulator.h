// Runs a CUDA kernel on the host, for tests: the threads of a block are fibers that take turns between barriers
// and warp operations, in an order drawn from a seed, and warps overtake each other, so that races show. A thread that waits where another does
// not is told; shared memory is poisoned before every block.
#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <ucontext.h>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <vector_functions.h>
#include <vector_types.h>

#undef __shared__
#undef __device__
#undef __global__
#undef __constant__
#undef __launch_bounds__
#undef __forceinline__
#undef __align__
#define __shared__ static thread_local  // what is thread local lies together, and can be poisoned at once
#define __device__
#define __global__
#define __constant__ static
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))

struct three { unsigned x, y, z; };
static three threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;
static unsigned char emulated_dynamic[1 << 20] __attribute__((aligned(256)));
static unsigned char *emulated_shared = emulated_dynamic;  // or where whoever launches put it

namespace emulated {
enum State { READY, AT_BARRIER, AT_WARP, AT_ARRIVAL, DONE };
struct Copy { void *to; const void *from; size_t bytes, zeros; };
struct Fiber {
    ucontext_t context;
    jmp_buf jump;
    bool started = false;
    State state = READY;
    unsigned mask = 0;  // of the warp operation it is at
    int leader = 0;     // whose copy of the warp's values it reads afterwards
    unsigned at = 0, phase = 0;  // of the arrival it waits for
    bool fenced = false;         // since it last met others: bulk copies may overwrite what was read
    unsigned char slot[16];
    std::vector<std::vector<Copy>> groups;  // of asynchronous copies, the last one open
};
struct Arrival { unsigned count, left, phase; long long bytes; std::vector<Copy> copies; };
static std::map<unsigned, Arrival> arrivals;  // by their place in shared memory
static const int MOST = 1024;
static const size_t STACK = 64 << 10;
static std::vector<Fiber> fibers;
static jmp_buf scheduler;
static int current;
static unsigned char seen[MOST][32][16];
static void (*body)();
static unsigned long long seed, ticks;
static size_t shared_bytes = sizeof emulated_dynamic;
static void (*report)(const char *why);

static unsigned drawn(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)((seed >> 11) % below);
}

[[noreturn]] static void fail(const char *why)
{
    if (report)
        report(why);
    fprintf(stderr, "%s\n", why);
    fflush(stderr);
    _exit(3);
}

__attribute__((noinline)) static void wait(State state, unsigned mask = 0)
{
    fibers[current].state = state;
    fibers[current].mask = mask;
    fibers[current].fenced = false;
    if (!_setjmp(fibers[current].jump))
        _longjmp(scheduler, 1);
}

static void enter()
{
    for (;;) {  // a fiber serves one block after the other
        body();
        wait(DONE);
    }
}

__attribute__((noinline)) static void resume(int thread)
{
    if (_setjmp(scheduler))
        return;
    Fiber &fiber = fibers[thread];
    current = thread;
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / (blockDim.x * blockDim.y)};
    if (fiber.started)
        _longjmp(fiber.jump, 1);
    fiber.started = true;
    setcontext(&fiber.context);
}

static bool release_warp(int first, int threads)
{
    const int count = std::min(32, threads - first);
    bool any = false, go[32] = {};
    for (int t = 0; t < count; t++) {
        if (fibers[first + t].state != AT_WARP)
            continue;
        const unsigned mask = fibers[first + t].mask;
        int leader = -1;
        bool here = true;
        for (int lane = 0; lane < count; lane++) {
            if (!(mask >> lane & 1))
                continue;
            leader = leader < 0 ? lane : leader;
            here = here && fibers[first + lane].state == AT_WARP;
            if (fibers[first + lane].state == AT_WARP && fibers[first + lane].mask != mask)
                fail("threads of a warp meet with different masks");
        }
        go[t] = here;
        fibers[first + t].leader = first + leader;
        if (here)
            memcpy(seen[first + leader][t], fibers[first + t].slot, 16);
    }
    for (int t = 0; t < count; t++)
        if (go[t]) {
            fibers[first + t].state = READY;
            any = true;
        }
    return any;
}

// Bulk copies land when nobody can go on without them.
static bool release_arrivals(int threads)
{
    bool any = false;
    for (int t = 0; t < threads; t++) {
        if (fibers[t].state != AT_ARRIVAL)
            continue;
        Arrival &own = arrivals.at(fibers[t].at);
        if (own.phase == fibers[t].phase && own.left == 0) {
            for (const Copy &copy : own.copies) {
                memcpy(copy.to, copy.from, copy.bytes);
                own.bytes -= copy.bytes;
            }
            own.copies.clear();
            if (own.bytes)
                fail("a barrier was told of other bytes than come");
            own.phase ^= 1;
            own.left = own.count;
        }
        if (own.phase != fibers[t].phase) {
            fibers[t].state = READY;
            any = true;
        }
    }
    return any;
}

// Lets go on whoever may: a warp's threads once all of a mask have come, a block's once all that live have.
static bool release()
{
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    bool any = false, all = true, ready = false;
    for (int t = 0; t < threads; t++) {
        ready = ready || fibers[t].state == READY;
        all = all && (fibers[t].state == AT_BARRIER || fibers[t].state == DONE);
    }
    for (int t = 0; t < threads; t++)
        if (fibers[t].state == AT_BARRIER && all) {
            fibers[t].state = READY;
            any = true;
        }
    for (int first = 0; first < threads; first += 32)
        any = release_warp(first, threads) || any;
    return any || ready || release_arrivals(threads);
}

static void run_block()
{
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    std::vector<int> order(threads);
    arrivals.clear();
    for (int t = 0; t < threads; t++) {
        fibers[t].state = READY;
        fibers[t].groups.assign(1, {});
        order[t] = t;
    }
    for (;;) {
        for (int t = threads - 1; seed && t > 0; t--)
            std::swap(order[t], order[drawn(t + 1)]);
        bool live = false;
        const unsigned lag = seed ? drawn(1u << 31) & drawn(1u << 31) : 0;  // warps that others overtake
        for (int t : order) {
            if (fibers[t].state == READY && !(lag >> t / 32 & 1))
                resume(t);
            live = live || fibers[t].state != DONE;
        }
        if (!live)
            return;
        if (!release())
            fail("threads wait for each other in different places");
    }
}

static int poison_statics(dl_phdr_info *info, size_t, void *)
{
    bool own = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const char *start = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        own = own || (info->dlpi_phdr[i].p_type == PT_LOAD && start <= (char *)&enter &&
                      (char *)&enter < start + info->dlpi_phdr[i].p_memsz);
    }
    for (int i = 0; own && info->dlpi_tls_data && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            memset(info->dlpi_tls_data, 0xff, info->dlpi_phdr[i].p_memsz);
    return own;
}

static void launch(const unsigned *grid, const unsigned *block, void (*kernel)())
{
    body = kernel;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    const size_t threads = (size_t)block[0] * block[1] * block[2], blocks = (size_t)grid[0] * grid[1] * grid[2];
    if (threads > MOST)
        fail("a block has too many threads");
    char *stacks = (char *)mmap(nullptr, threads * STACK, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    fibers = std::vector<Fiber>(threads);
    for (size_t t = 0; t < threads; t++) {
        getcontext(&fibers[t].context);
        fibers[t].context.uc_stack.ss_sp = stacks + t * STACK;
        fibers[t].context.uc_stack.ss_size = STACK;
        makecontext(&fibers[t].context, enter, 0);
    }
    std::vector<unsigned> order(blocks);
    for (size_t b = 0; b < blocks; b++)
        order[b] = b;
    for (size_t b = blocks; seed && b-- > 1;)
        std::swap(order[b], order[drawn(b + 1)]);
    for (unsigned b : order) {
        memset(emulated_shared, 0xff, shared_bytes);
        dl_iterate_phdr(poison_statics, nullptr);
        blockIdx = {b % grid[0], b / grid[0] % grid[1], b / (grid[0] * grid[1])};
        run_block();
    }
    munmap(stacks, threads * STACK);
}

// -- what a warp does together

template <typename T>
static void meet(unsigned mask, T value)
{
    static_assert(sizeof(T) <= 16, "too wide for a shuffle");
    if (!(mask >> (current & 31) & 1))
        fail("a thread takes part in a warp operation that leaves it out");
    memcpy(fibers[current].slot, &value, sizeof(T));
    wait(AT_WARP, mask);
}

template <typename T>
static T of_lane(int lane)
{
    T value;
    memcpy(&value, seen[fibers[current].leader][lane], sizeof(T));
    return value;
}

template <typename T>
static T shuffle(unsigned mask, T value, int other, bool inside)
{
    meet(mask, value);
    if (inside && (!(mask >> other & 1) || (current & ~31) + other >= (int)fibers.size()))
        fail("a shuffle reaches beyond its mask");
    return inside ? of_lane<T>(other) : value;
}

template <typename T, typename F>
static T together(unsigned mask, T value, F joined)
{
    meet(mask, value);
    bool first = true;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1 && (current & ~31) + lane < (int)fibers.size()) {
            value = first ? of_lane<T>(lane) : joined(value, of_lane<T>(lane));
            first = false;
        }
    return value;
}

static unsigned live()
{
    unsigned mask = 0;
    for (int lane = 0; lane < 32 && (current & ~31) + lane < (int)fibers.size(); lane++)
        mask |= (unsigned)(fibers[(current & ~31) + lane].state != DONE) << lane;
    return mask;
}

static void finish_copies(size_t left)
{
    auto &groups = fibers[current].groups;
    while (groups.size() > left + 1) {
        for (const Copy &copy : groups.front()) {
            memcpy(copy.to, copy.from, copy.bytes - copy.zeros);
            memset((char *)copy.to + copy.bytes - copy.zeros, 0, copy.zeros);
        }
        groups.erase(groups.begin());
    }
}
}  // namespace emulated

static void __syncthreads() { emulated::wait(emulated::AT_BARRIER); }
static int __syncthreads_count(int holds)
{
    memcpy(emulated::fibers[emulated::current].slot, &holds, sizeof holds);
    __syncthreads();
    int count = 0;
    for (const auto &fiber : emulated::fibers) {
        int other;
        memcpy(&other, fiber.slot, sizeof other);
        count += other != 0;
    }
    __syncthreads();
    return count;
}
static int __syncthreads_or(int holds) { return __syncthreads_count(holds) > 0; }
static int __syncthreads_and(int holds) { return __syncthreads_count(!holds) == 0; }
static void __syncwarp(unsigned mask = 0xffffffffu) { emulated::meet(mask, 0); }

template <typename T>
static T __shfl_xor_sync(unsigned mask, T value, int step, int width = 32)
{
    const int lane = emulated::current & 31, other = lane ^ step;
    return emulated::shuffle(mask, value, other & 31, other < (lane & ~(width - 1)) + width);
}
template <typename T>
static T __shfl_down_sync(unsigned mask, T value, int step, int width = 32)
{
    const int lane = emulated::current & 31, other = lane + step;
    const bool inside = (lane & (width - 1)) + step < width && (mask >> (other & 31) & 1);
    return emulated::shuffle(mask, value, other & 31, inside);
}
template <typename T>
static T __shfl_up_sync(unsigned mask, T value, int step, int width = 32)
{
    const int lane = emulated::current & 31;
    return emulated::shuffle(mask, value, (lane - step) & 31, (lane & (width - 1)) >= step);
}
template <typename T>
static T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    const int lane = emulated::current & 31;
    return emulated::shuffle(mask, value, (lane & ~(width - 1)) | (from & (width - 1)), true);
}

static unsigned __ballot_sync(unsigned mask, int holds)
{
    const unsigned own = (unsigned)(holds != 0) << (emulated::current & 31);
    return emulated::together(mask, own, [](unsigned a, unsigned b) { return a | b; });
}
static int __any_sync(unsigned mask, int holds) { return __ballot_sync(mask, holds) != 0; }
static int __all_sync(unsigned mask, int holds) { return __ballot_sync(mask, !holds) == 0; }
static unsigned __activemask() { return emulated::live(); }
template <typename T>
static unsigned __match_any_sync(unsigned mask, T value)
{
    emulated::meet(mask, value);
    unsigned same = 0;
    for (int lane = 0; lane < 32; lane++)
        same |= (unsigned)(mask >> lane & 1 && emulated::of_lane<T>(lane) == value) << lane;
    return same;
}
#define EMULATED_REDUCE(name, type, expression)                                     \
    static type name(unsigned mask, type value)                                     \
    {                                                                               \
        return emulated::together(mask, value, [](type a, type b) { return expression; }); \
    }
EMULATED_REDUCE(__reduce_add_sync, unsigned, a + b)
EMULATED_REDUCE(__reduce_add_sync, int, a + b)
EMULATED_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
EMULATED_REDUCE(__reduce_min_sync, int, a < b ? a : b)
EMULATED_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
EMULATED_REDUCE(__reduce_max_sync, int, a > b ? a : b)
EMULATED_REDUCE(__reduce_and_sync, unsigned, a & b)
EMULATED_REDUCE(__reduce_or_sync, unsigned, a | b)
EMULATED_REDUCE(__reduce_xor_sync, unsigned, a ^ b)

// -- special registers, clocks, asynchronous copies

static unsigned emulated_laneid() { return emulated::current & 31; }
static unsigned emulated_warpid() { return emulated::current >> 5; }
static unsigned emulated_smid() { return blockIdx.x % 132; }
static unsigned emulated_clock() { return (unsigned)(emulated::ticks += 7); }
static unsigned emulated_lanemask_lt() { return (1u << (emulated::current & 31)) - 1; }
static long long clock64() { return emulated::ticks += 7; }
#define clock() ((int)clock64())
static void __threadfence() {}
static void __threadfence_block() {}
static void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros = 0)
{
    memset(to, 0xff, bytes);  // until somebody waits for it nothing can be said of what is there
    emulated::fibers[emulated::current].groups.back().push_back({to, from, bytes, zeros});
}
static unsigned __cvta_generic_to_shared(const void *at)
{
    return (unsigned)((const unsigned char *)at - emulated_shared);
}
static void emulated_copy(unsigned at, const void *from, size_t bytes)
{
    if ((size_t)from % bytes || at % bytes || at + bytes > emulated::shared_bytes)
        emulated::fail("an asynchronous copy is misaligned, or reaches beyond shared memory");
    __pipeline_memcpy_async(emulated_shared + at, from, bytes);
}
static emulated::Arrival &emulated_arrival(unsigned at)
{
    if (!emulated::arrivals.count(at))
        emulated::fail("a barrier is used that nobody has made");
    return emulated::arrivals.at(at);
}
static void emulated_make_arrival(unsigned at, unsigned count) { emulated::arrivals[at] = {count, count, 0, 0, {}}; }
static void emulated_fence_copies() { emulated::fibers[emulated::current].fenced = true; }
static void emulated_expect(unsigned at, int bytes)
{
    emulated::Arrival &own = emulated_arrival(at);
    if (own.left == 0)
        emulated::fail("a barrier is told of bytes before those of its last turn have come");
    own.left--;
    own.bytes += bytes;
}
static void emulated_bulk_copy(unsigned to, const void *from, int bytes, unsigned at)
{
    if ((size_t)from % 16 || to % 16 || bytes % 16 || bytes <= 0 || to + bytes > emulated::shared_bytes)
        emulated::fail("a bulk copy is misaligned, of no length, or reaches beyond shared memory");
    if (!emulated::fibers[emulated::current].fenced)
        emulated::fail("a bulk copy may overtake what was read before it");
    memset(emulated_shared + to, 0xff, bytes);
    emulated_arrival(at).copies.push_back({emulated_shared + to, from, (size_t)bytes, 0});
}
static unsigned emulated_arrived(unsigned at, unsigned phase)
{
    if (emulated_arrival(at).phase == phase) {
        emulated::fibers[emulated::current].at = at;
        emulated::fibers[emulated::current].phase = phase;
        emulated::wait(emulated::AT_ARRIVAL);
    }
    return 1;
}
static void __pipeline_commit() { emulated::fibers[emulated::current].groups.emplace_back(); }
static void __pipeline_wait_prior(int left) { emulated::finish_copies(left); }

// -- memory and arithmetic

template <typename T> static T __ldg(const T *from) { return *from; }
template <typename T> static T __ldcs(const T *from) { return *from; }
template <typename T> static T __ldcg(const T *from) { return *from; }
template <typename T> static void __stcs(T *to, T value) { *to = value; }
static float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static float __fdividef(float x, float y) { return x / y; }
static float __saturatef(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }
static float emulated_expf(float x) { return expf(x); }
static float emulated_logf(float x) { return logf(x); }
static float emulated_sinf(float x) { return sinf(x); }
static float emulated_cosf(float x) { return cosf(x); }
static float emulated_powf(float x, float y) { return powf(x, y); }
static int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __ffs(int x) { return __builtin_ffs(x); }
static int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
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
template <typename T, typename F>
static T emulated_update(T *to, F changed)
{
    const T old = *to;
    *to = changed(old);
    return old;
}
#define EMULATED_ATOMIC(name, expression)                             \
    template <typename T, typename U> static T name(T *to, U given)   \
    {                                                                 \
        const T value = (T)given;                                     \
        return emulated_update(to, [value](T old) { return expression; }); \
    }
EMULATED_ATOMIC(atomicAdd, (T)(old + value))
EMULATED_ATOMIC(atomicSub, (T)(old - value))
EMULATED_ATOMIC(atomicMax, old > value ? old : value)
EMULATED_ATOMIC(atomicMin, old < value ? old : value)
EMULATED_ATOMIC(atomicAnd, (T)(old & value))
EMULATED_ATOMIC(atomicOr, (T)(old | value))
EMULATED_ATOMIC(atomicXor, (T)(old ^ value))
EMULATED_ATOMIC(atomicExch, value)
EMULATED_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
template <typename T> static T atomicCAS(T *to, T expected, T value)
{
    return emulated_update(to, [=](T old) { return old == expected ? value : old; });
}
using std::isinf;
using std::isnan;
