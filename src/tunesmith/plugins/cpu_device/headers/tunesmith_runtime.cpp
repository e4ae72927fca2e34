// Runs the blocks of a launch on the host, one after the other. A thread runs until it has to wait for others;
// one that never does leaves its stack to the next, so that a kernel without barriers is a plain loop. The order
// of threads and blocks is drawn from a seed, and warps overtake each other, so that races show. Shared memory is
// poisoned before every block; in some launches, unless somebody watches, it is as the last block left it.
#include "tunesmith_runtime.h"

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

extern "C" void *__tls_get_addr(unsigned long *);  // of a module, and from where on in it
struct __tunesmith_three { unsigned x, y, z; };
__tunesmith_three threadIdx, blockIdx, blockDim, gridDim;

namespace __tunesmith {
struct Arrival { unsigned at, count, left, phase; long long bytes; bool used; };
struct BulkCopy { unsigned char *to; const unsigned char *from; unsigned bytes, at; };

static const size_t PAGE = 64 << 10;
static const int MOST_BULK = 1024;
Thread threads[MOST_THREADS];
State states[MOST_THREADS];
int thread_count, current;
unsigned char *shared, *statics, *stacks;
size_t shared_bytes, statics_bytes;
static size_t stacks_bytes;
static unsigned char seen[MOST_THREADS][WARP][SLOT];
static jmp_buf places[MOST_THREADS];  // where those on each stack go on
static int idle[MOST_THREADS], idle_count, stacks_used, stacks_begun;
static int order[MOST_THREADS], cursor;
static __tunesmith_three indices[MOST_THREADS];  // of the threads in their block
static Lanes lagging;
static int arrived[BARRIERS], arriving[BARRIERS];  // without waiting, and of how many
static Arrival arrivals[MOST_ARRIVALS];
static BulkCopy bulk[MOST_BULK];
static int bulk_count;
static BulkCopy landed[MOST_BULK];  // places that a bulk copy has filled before
static int landed_count;
static jmp_buf scheduler, outside;
static void (*body)(void **);
static void **arguments;
static char *told;
static size_t told_room;
static unsigned long long seed;
static bool keeps_shared;
static bool launched_before;
static unsigned char *guarded;  // up to here stacks end at a page that nobody may touch
static thread_local volatile unsigned char touched;  // makes the system lay out what is thread local

void fail(const char *why, ...)
{
    va_list values;
    va_start(values, why);
    vsnprintf(told, told_room, why, values);
    va_end(values);
    _longjmp(outside, 1);
}

static unsigned drawn(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)((seed >> 11) % below);
}

static void begin(int thread, int stack)
{
    states[thread] = READY;
    threads[thread].stack = stack;
    current = thread;
    threadIdx = indices[thread];
}

static bool is_ready(int thread) { return states[thread] == READY || states[thread] == FRESH; }
static bool is_due(int thread) { return !(lagging >> (thread / WARP) % 64 & 1); }

[[noreturn]] static void go_on(int thread);

// To the next thread of the turn, without a way round by whoever counts turns.
__attribute__((noinline)) static void leave(jmp_buf here)
{
    if (_setjmp(here))
        return;
    while (++cursor < thread_count)
        if (is_ready(order[cursor]) && is_due(order[cursor]))
            go_on(order[cursor]);
    _longjmp(scheduler, 1);
}

static void enter()
{
    int own = threads[current].stack;
    for (;;) {
        body(arguments);
        states[current] = DONE;
        const int next = cursor + 1 < thread_count ? order[cursor + 1] : -1;
        if (next >= 0 && states[next] == FRESH && is_due(next)) {
            cursor++;
            begin(next, own);
            continue;
        }
        idle[idle_count++] = own;
        leave(places[own]);
    }
}

__attribute__((noinline)) static void wait(State state, const void *place)
{
    Thread &own = threads[current];
    states[current] = state;
    own.fenced = false;
    own.place = place;
    watch_wait(place);
    leave(places[own.stack]);
}

[[noreturn]] static void go_on(int thread)
{
    if (states[thread] == FRESH)
        begin(thread, idle_count ? idle[--idle_count] : stacks_used++);
    else
        begin(thread, threads[thread].stack);
    const int stack = threads[thread].stack;
    if (stack < stacks_begun)
        _longjmp(places[stack], 1);
    stacks_begun = stack + 1;
    unsigned char *lowest = stacks + stack * STACK;
    if (lowest >= guarded) {
        mprotect(lowest, PAGE, PROT_NONE);  // one that grows too far meets this
        guarded = lowest + STACK;
    }
    static ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = lowest + PAGE;
    // At one place of its pages each would push the others out of the cache.
    context.uc_stack.ss_size = STACK - PAGE - (size_t)(stack % 56) * 64;
    makecontext(&context, enter, 0);
    setcontext(&context);
    abort();
}

// Every thread that can run does, in this turn's order.
__attribute__((noinline)) static void take_turns()
{
    cursor = -1;
    leave(scheduler);
}

// -- who may go on

// Whether they wait for one another: what differs in mask or operation never meets.
static bool is_with(int one, int other)
{
    return states[other] == AT_WARP && threads[one].mask == threads[other].mask &&
           threads[one].operation == threads[other].operation;
}

static bool release_warp(int first)
{
    const int count = thread_count - first < WARP ? thread_count - first : WARP;
    bool waiting = false;
    for (int t = first; t < first + count; t++)
        waiting = waiting || states[t] == AT_WARP;
    if (!waiting)
        return false;
    bool any = false, go[WARP] = {};
    int same = 0;
    Lanes live = 0;  // nobody waits for a lane that has left the kernel
    const Lanes all = count == 64 ? ~(Lanes)0 : ((Lanes)1 << count) - 1;
    for (int t = 0; t < count; t++) {
        live |= (Lanes)(states[first + t] != DONE) << t;
        same += is_with(first, first + t) && threads[first + t].mask == all;
    }
    if (same == count) {  // what most do
        int who[WARP];
        for (int t = 0; t < count; t++) {
            Thread &own = threads[first + t];
            memcpy(seen[first][t], own.slot, SLOT);
            own.leader = first;
            states[first + t] = READY;
            who[t] = first + t;
        }
        watch_meeting(who, count, threads[first].operation == ORDERS);
        return true;
    }
    for (int t = 0; t < count; t++) {
        Thread &own = threads[first + t];
        if (states[first + t] != AT_WARP)
            continue;
        int leader = -1;
        bool here = true;
        for (int lane = 0; lane < count; lane++) {
            if (!((own.mask & live) >> lane & 1))
                continue;
            leader = leader < 0 ? lane : leader;
            here = here && is_with(first + t, first + lane);
        }
        go[t] = here;
        own.leader = first + leader;
        if (here)
            memcpy(seen[first + leader][t], own.slot, SLOT);
    }
    for (int t = 0; t < count; t++) {
        if (!go[t])
            continue;
        Thread &own = threads[first + t];
        if (own.leader == first + t) {
            int who[WARP], met = 0;
            for (int lane = 0; lane < count; lane++)
                if ((own.mask & live) >> lane & 1)
                    who[met++] = first + lane;
            watch_meeting(who, met, own.operation == ORDERS);
        }
        own.mask &= live;
        states[first + t] = READY;
        any = true;
    }
    return any;
}

// By the line, since compilers may double a call in two branches, and the depth of calls, where somebody watches.
static bool is_same_place(const Thread &one, const Thread &other)
{
    return one.line == other.line && one.depth == other.depth;
}

// Who asks which lanes are active is told when no other of its warp can go on: those in one place are together.
static bool release_active(int first)
{
    const int count = thread_count - first < WARP ? thread_count - first : WARP;
    Lanes asking = 0;
    for (int t = 0; t < count; t++) {
        const State state = states[first + t];
        if (state == READY || state == FRESH)
            return false;
        asking |= (Lanes)(state == AT_ACTIVE) << t;
    }
    for (int t = 0; t < count; t++) {
        if (states[first + t] != AT_ACTIVE)
            continue;
        Lanes together = 0;
        for (int lane = t; lane < count; lane++)
            if (states[first + lane] == AT_ACTIVE && is_same_place(threads[first + t], threads[first + lane]))
                together |= (Lanes)1 << lane;
        for (int lane = t; lane < count; lane++)
            if (together >> lane & 1) {
                threads[first + lane].mask = together;
                states[first + lane] = READY;
            }
    }
    return asking != 0;
}

static bool release_barriers()
{
    static int who[MOST_THREADS];
    bool any = false;
    unsigned used = 0;
    for (int t = 0; t < thread_count; t++)
        if (states[t] == AT_BARRIER)
            used |= 1u << threads[t].barrier;
    for (int id = 0; used >> id; id++) {
        if (!(used >> id & 1))
            continue;
        int waiting = 0, live = 0, expected = -1;
        for (int t = 0; t < thread_count; t++) {
            const Thread &own = threads[t];
            live += states[t] != DONE;
            if (states[t] != AT_BARRIER || own.barrier != id)
                continue;
            if (expected >= 0 && own.count != expected)
                fail("threads wait at barrier %d for %d and for %d others", id, expected, own.count);
            expected = own.count;
            who[waiting++] = t;
        }
        if (arrived[id] && expected != arriving[id])
            fail("threads wait at barrier %d for %d others and arrive at it for %d", id, expected, arriving[id]);
        if (!waiting || waiting + arrived[id] < (expected ? expected : live))
            continue;
        if (waiting == live && !arrived[id])
            watch_all();
        else
            watch_barrier(who, waiting, id);
        arrived[id] = 0;
        for (int i = 0; i < waiting; i++)
            states[who[i]] = READY;
        any = true;
    }
    return any;
}

static void complete(Arrival &own)
{
    const int number = (int)(&own - arrivals);
    int kept = 0;
    for (int i = 0; i < bulk_count; i++) {
        if (bulk[i].at != own.at) {
            bulk[kept++] = bulk[i];
            continue;
        }
        memcpy(bulk[i].to, bulk[i].from, bulk[i].bytes);
        watch_landed(bulk[i].to, bulk[i].bytes, number);
        own.bytes -= bulk[i].bytes;
        if (landed_count < MOST_BULK)
            landed[landed_count++] = bulk[i];
    }
    bulk_count = kept;
    if (own.bytes)
        fail("a barrier was told of %lld bytes more than come", own.bytes);
    watch_has_come(number);
    own.phase ^= 1;
    own.left = own.count;
}

// Bulk copies land when nobody can go on without them.
static bool release_arrivals()
{
    bool any = false;
    for (int t = 0; t < thread_count; t++) {
        if (states[t] != AT_ARRIVAL)
            continue;
        Arrival *own = nullptr;
        for (Arrival &one : arrivals)
            own = one.used && one.at == threads[t].at ? &one : own;
        if (own && own->phase == threads[t].phase && own->left == 0)
            complete(*own);
        if (own && own->phase != threads[t].phase) {
            states[t] = READY;
            any = true;
        }
    }
    return any;
}

static bool release()
{
    bool any = false, ready = false;
    for (int t = 0; t < thread_count; t++)
        ready = ready || states[t] == READY || states[t] == FRESH;
    any = release_barriers();
    for (int first = 0; first < thread_count; first += WARP)
        any = release_warp(first) || any;
    for (int first = 0; first < thread_count; first += WARP)
        any = release_active(first) || any;
    return any || ready || release_arrivals();
}

// Nobody can go on: where two of a warp wait for each other in vain that is said, and else where threads wait.
[[noreturn]] static void stuck()
{
    for (int t = 0; t < thread_count; t++)
        for (int u = t + 1; u < thread_count && u / WARP == t / WARP; u++) {
            const Thread &one = threads[t], &other = threads[u];
            const bool together = states[t] == AT_WARP && states[u] == AT_WARP &&
                                  (one.mask >> u % WARP & 1 || other.mask >> t % WARP & 1);
            if (!together || is_with(t, u))
                continue;
            const bool by_mask = one.mask != other.mask;
            watch_mixed(t, u, by_mask ? "a warp operation that threads reach with different masks"
                                      : "threads of a warp that wait for each other in different operations");
            if (by_mask)
                fail("threads of a warp meet with different masks: %#llx and %#llx", one.mask, other.mask);
            fail("threads of a warp wait for each other in different operations");
        }
    watch_stuck();
    fail("threads wait for each other in different places: a barrier, or a warp operation, is not "
         "reached by all");
}

static void run_block(unsigned number)
{
    if (!keeps_shared) {
        memset(shared, 0xff, shared_bytes);
        memset(statics, 0xff, statics_bytes);
    }
    memset(arrivals, 0, sizeof arrivals);
    memset(arrived, 0, sizeof arrived);
    bulk_count = landed_count = 0;
    for (int t = 0; t < thread_count; t++) {
        Thread &own = threads[t];
        states[t] = FRESH;
        own.copies_held = own.group = own.depth = 0;
        order[t] = t;
    }
    watch_block(number);
    for (int turn = 0;; turn++) {
        for (int t = thread_count - 1; seed && turn % 16 == 0 && t > 0; t--) {
            const int other = drawn(t + 1), kept = order[t];
            order[t] = order[other];
            order[other] = kept;
        }
        lagging = seed ? (Lanes)drawn(1u << 31) & drawn(1u << 31) : 0;  // warps that others overtake
        take_turns();
        bool live = false;
        for (int t = 0; t < thread_count; t++)
            live = live || states[t] != DONE;
        if (!live)
            return;
        if (!release())
            stuck();
    }
}

static int find_statics(dl_phdr_info *info, size_t, void *)
{
    bool own = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const char *start = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        own = own || (info->dlpi_phdr[i].p_type == PT_LOAD && start <= (char *)&enter &&
                      (char *)&enter < start + info->dlpi_phdr[i].p_memsz);
    }
    for (int i = 0; own && info->dlpi_tls_modid && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            // Not dlpi_tls_data: where little is thread local, some systems know its place before that does.
            unsigned long first[] = {info->dlpi_tls_modid, 0};
            statics = (unsigned char *)__tls_get_addr(first);
            statics_bytes = info->dlpi_phdr[i].p_memsz;
        }
    return own;
}

static void run_blocks(const unsigned *grid, unsigned *blocks, size_t count)
{
    for (size_t b = 0; b < count; b++)
        blocks[b] = (unsigned)b;
    for (size_t b = count; seed && b-- > 1;) {
        const unsigned other = drawn((unsigned)b + 1), kept = blocks[b];
        blocks[b] = blocks[other];
        blocks[other] = kept;
    }
    for (size_t i = 0; i < count; i++) {
        const unsigned b = blocks[i];
        blockIdx = {b % grid[0], b / grid[0] % grid[1], b / (grid[0] * grid[1])};
        run_block(b);
    }
}

// 0: it ran to its end; else `message` says why not.
extern "C" __attribute__((visibility("default"))) int __tunesmith_launch(
    void (*call)(void **), const unsigned *grid, const unsigned *block, size_t dynamic, void **given,
    const Array *arrays, int array_count, unsigned long long order_seed, char *message, size_t room)
{
    told = message;
    told_room = room;
    body = call;
    arguments = given;
    seed = order_seed;
    keeps_shared = IS_PLAIN && launched_before && (order_seed >> 40) % 2;
    launched_before = true;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    thread_count = block[0] * block[1] * block[2];
    const size_t count = (size_t)grid[0] * grid[1] * grid[2];
    touched = 1;
    dl_iterate_phdr(find_statics, nullptr);
    static unsigned char *room_for_shared;
    static size_t shared_room;
    const size_t whole = (dynamic + 15) / 16 * 16, wanted = (whole + PAGE - 1) / PAGE * PAGE;
    if (shared_room != wanted || !room_for_shared) {
        if (room_for_shared)
            munmap(room_for_shared, shared_room + PAGE);
        void *mapped = mmap(nullptr, wanted + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        room_for_shared = mapped == MAP_FAILED ? nullptr : (unsigned char *)mapped;
        shared_room = wanted;
        if (!room_for_shared) {
            snprintf(message, room, "there is no memory for %zu bytes of shared memory", dynamic);
            return 1;
        }
        mprotect(room_for_shared + wanted, PAGE, PROT_NONE);  // who goes beyond the end meets this
    }
    shared = room_for_shared + wanted - whole;
    shared_bytes = dynamic;
    if (stacks_bytes < (size_t)thread_count * STACK) {
        if (stacks_bytes)
            munmap(stacks, stacks_bytes);
        stacks_bytes = (size_t)thread_count * STACK;
        stacks = guarded = (unsigned char *)mmap(nullptr, stacks_bytes, PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    unsigned *blocks = (unsigned *)malloc(count * sizeof *blocks);
    if (stacks == MAP_FAILED || !blocks) {
        stacks_bytes = stacks == MAP_FAILED ? 0 : stacks_bytes;
        free(blocks);
        snprintf(message, room, "there is no memory for %d threads of %zu blocks", thread_count, count);
        return 1;
    }
    stacks_used = stacks_begun = idle_count = 0;
    for (unsigned t = 0; t < (unsigned)thread_count; t++)
        indices[t] = {t % block[0], t / block[0] % block[1], t / (block[0] * block[1])};
    const int failed = _setjmp(outside);
    if (!failed) {
        watch_launch(arrays, array_count, (unsigned)count);
        run_blocks(grid, blocks, count);
    }
    madvise(stacks, stacks_bytes, MADV_DONTNEED);  // zeros again for the next launch
    free(blocks);
    return failed;
}
}  // namespace __tunesmith

// -- what kernels call

using namespace __tunesmith;
#define HERE __builtin_return_address(0)

extern "C" {
int __tunesmith_current() { return current; }
unsigned char *__tunesmith_slot() { return threads[current].slot; }
unsigned char *__tunesmith_dynamic() { return shared; }
unsigned long long __tunesmith_ticks()
{
    static unsigned long long ticks;
    return ticks += 7;
}

void __tunesmith_refuse(const char *why) { fail("%s", why); }

void __tunesmith_barrier(int id, int count)
{
    if (id < 0 || id >= BARRIERS)
        fail("barriers have numbers from 0 to %d, got %d", BARRIERS - 1, id);
    threads[current].barrier = id;
    threads[current].count = count;
    wait(AT_BARRIER, HERE);
}

void __tunesmith_arrive(int id, int count)
{
    if (id < 0 || id >= BARRIERS || count < 1)
        fail("a thread arrives at barrier %d of %d threads", id, count);
    if (arrived[id] && arriving[id] != count)
        fail("threads arrive at barrier %d for %d and for %d others", id, arriving[id], count);
    arriving[id] = count;
    arrived[id]++;
    watch_arrive(id);
    release_barriers();
    if (arrived[id] == count)  // nobody waited
        arrived[id] = 0;
}

int __tunesmith_count(int holds)
{
    memcpy(threads[current].slot, &holds, sizeof holds);
    __tunesmith_barrier(0, 0);
    int count = 0, other;
    for (int t = 0; t < thread_count; t++) {
        memcpy(&other, threads[t].slot, sizeof other);
        count += other != 0 && states[t] != DONE;
    }
    __tunesmith_barrier(0, 0);
    return count;
}

// The lanes of the warp that are here together.
unsigned long long __tunesmith_active(unsigned line)
{
    threads[current].line = line;
    wait(AT_ACTIVE, HERE);
    return threads[current].mask;
}

// Waits for all threads of the mask that are at the same operation; ORDERS: what they wrote before they see after.
void __tunesmith_meet(unsigned long long mask, int operation)
{
    const int lane = current % WARP, held = thread_count - current / WARP * WARP;
    const int lanes = held < WARP ? held : (int)WARP;
    if (lanes < 64)
        mask &= ((Lanes)1 << lanes) - 1;
    if (!(mask >> lane & 1)) {
        watch_fault("a warp operation whose mask leaves out a thread that takes part", HERE);
        fail("lane %d takes part in a warp operation whose mask %#llx leaves it out", lane, mask);
    }
    threads[current].mask = mask;
    threads[current].operation = operation;
    wait(AT_WARP, HERE);
}

// What a lane gave; nothing where it took no part.
const unsigned char *__tunesmith_seen(int lane)
{
    const Thread &own = threads[current];
    return lane >= 0 && lane < WARP && own.mask >> lane & 1 ? seen[own.leader][lane] : nullptr;
}

void __tunesmith_unseen()
{
    watch_fault("a shuffle that reads a lane which takes no part in it", HERE);
    fail("a shuffle reads a lane that takes no part in it");
}

void __tunesmith_beyond() { watch_fault(TUNESMITH_BEYOND, HERE); }
void __tunesmith_fence() { watch_fence(); }
void __tunesmith_atomic(const void *at, size_t bytes, int reads) { watch_atomic(at, bytes, reads != 0, HERE); }

void __tunesmith_copy(void *to, const void *from, size_t bytes, size_t zeros)
{
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
        fail("an asynchronous copy has 4, 8 or 16 bytes, got %zu", bytes);
    if ((uintptr_t)to % bytes || ((uintptr_t)from % bytes && zeros < bytes))
        fail("an asynchronous copy of %zu bytes is misaligned", bytes);
    watch_copy(to, from, bytes, zeros, HERE);
    Thread &own = threads[current];
    if (own.copies_held == own.copies_room) {
        own.copies_room = own.copies_room ? 2 * own.copies_room : 16;
        own.copies = (Copy *)realloc(own.copies, own.copies_room * sizeof(Copy));
    }
    memset(to, 0xff, bytes);  // until somebody waits for it nothing can be said of what is there
    own.copies[own.copies_held++] = {(unsigned char *)to, (const unsigned char *)from, (unsigned)bytes,
                                     (unsigned)zeros, own.group};
}

void __tunesmith_commit() { threads[current].group++; }

void __tunesmith_finish(int left)
{
    Thread &own = threads[current];
    int kept = 0;
    for (int i = 0; i < own.copies_held; i++) {
        const Copy &copy = own.copies[i];
        if ((int)(own.group - copy.group) <= left && left >= 0) {
            own.copies[kept++] = copy;
            continue;
        }
        memcpy(copy.to, copy.from, copy.bytes - copy.zeros);
        memset(copy.to + copy.bytes - copy.zeros, 0, copy.zeros);
        watch_landed(copy.to, copy.bytes, -1);
    }
    own.copies_held = kept;
}

// Places in shared memory as numbers: those of fixed sizes lie behind the dynamic ones.
unsigned __tunesmith_place(const void *at)
{
    const unsigned char *own = (const unsigned char *)at;
    if (own >= shared && own < shared + shared_bytes + 1)
        return (unsigned)(own - shared);
    if (own >= statics && own < statics + statics_bytes + 1)
        return (unsigned)(own - statics) + (1u << 30);
    fail("an address that is not in shared memory is used as one");
}

unsigned char *__tunesmith_at(unsigned place)
{
    return place >= 1u << 30 ? statics + (place - (1u << 30)) : shared + place;
}

static void within(unsigned place, size_t bytes)
{
    const bool fixed = place >= 1u << 30;
    const size_t start = fixed ? place - (1u << 30) : place, whole = fixed ? statics_bytes : shared_bytes;
    if (start + bytes > whole)
        fail("a copy reaches beyond shared memory: %zu bytes from byte %zu of %zu", bytes, start, whole);
}

void __tunesmith_copy_to(unsigned place, const void *from, size_t bytes, size_t zeros)
{
    within(place, bytes);
    __tunesmith_copy(__tunesmith_at(place), from, bytes, zeros);
}

static Arrival &arrival(unsigned at)
{
    for (Arrival &one : arrivals)
        if (one.used && one.at == at)
            return one;
    fail("a barrier in shared memory is used that nobody has made");
}

void __tunesmith_make_arrival(unsigned at, unsigned count)
{
    within(at, 8);
    for (Arrival &one : arrivals)
        if (!one.used || one.at == at) {
            one = {at, count, count, 0, 0, true};
            watch_made((int)(&one - arrivals), __tunesmith_at(at), HERE);
            return;
        }
    fail("a block has at most %d barriers in shared memory", MOST_ARRIVALS);
}

void __tunesmith_fence_copies() { threads[current].fenced = true; }

void __tunesmith_expect(unsigned at, int bytes)
{
    Arrival &own = arrival(at);
    if (own.left == 0)
        fail("a barrier is told of bytes before those of its last turn have come");
    watch_use(__tunesmith_at(at), 8, HERE);
    watch_comes((int)(&own - arrivals));
    own.left--;
    own.bytes += bytes;
    bool coming = own.bytes != 0;
    for (int i = 0; i < bulk_count; i++)
        coming = coming || bulk[i].at == at;
    if (own.left == 0 && !coming)
        complete(own);
}

void __tunesmith_bulk_copy(unsigned to, const void *from, int bytes, unsigned at)
{
    if ((uintptr_t)from % 16 || to % 16 || bytes % 16 || bytes <= 0)
        fail("a bulk copy of %d bytes is misaligned, or of no length", bytes);
    within(to, bytes);
    for (int i = 0; i < landed_count && !threads[current].fenced; i++)
        if (landed[i].to < __tunesmith_at(to) + bytes && __tunesmith_at(to) < landed[i].to + landed[i].bytes)
            fail("a bulk copy may overtake what was read before it");
    arrival(at);
    watch_use(__tunesmith_at(at), 8, HERE);
    if (bulk_count == MOST_BULK)
        fail("more than %d bulk copies are under way", MOST_BULK);
    watch_copy(__tunesmith_at(to), from, bytes, 0, HERE);
    memset(__tunesmith_at(to), 0xff, bytes);
    bulk[bulk_count++] = {__tunesmith_at(to), (const unsigned char *)from, (unsigned)bytes, at};
}

unsigned __tunesmith_arrived(unsigned at, unsigned phase)
{
    watch_use(__tunesmith_at(at), 8, HERE);
    if (arrival(at).phase == phase) {
        threads[current].at = at;
        threads[current].phase = phase;
        wait(AT_ARRIVAL, HERE);
    }
    watch_saw((int)(&arrival(at) - arrivals), current);
    return 1;
}
}
