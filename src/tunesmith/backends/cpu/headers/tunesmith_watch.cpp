// Watches every access of a kernel: whether it lies in an array, whether shared memory was written before it is
// read, and whether two threads touch one place, one of them to write, with nothing between them that orders it.
// A compiler calls us before each access (-fsanitize=thread) and at each fault of arithmetic or alignment
// (-fsanitize=undefined's handlers): no library of theirs is needed.
#include "tunesmith_runtime.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace __tunesmith {
enum { KEPT = 6, MOST_FINDINGS = 32, MOST_STACKS = 1 << 14, MOST_ATOMICS = 1 << 12, WIDEST = 16 };

struct Trail { const void *places[KEPT]; };  // where, and by whom it was called
struct Finding {
    char words[160];
    Trail here, other;
    const char *file;  // where the compiler says so itself
    unsigned line;
};
struct Touch { unsigned block, generation, clock, trail; int thread; };  // thread -1: nobody's
struct Cell { Touch write, read, earlier; };  // of a byte: the last write, and the last reads of two threads
struct Region { unsigned char *start; size_t bytes; Cell *cells; bool *written; const char *what; };
struct Shared { const void *at; unsigned char *blocks; };  // blocks that have met at an atomic
struct Pending {
    unsigned char *at;
    size_t bytes;
    unsigned char before[WIDEST];
    bool disputed[WIDEST];  // another thread has touched the byte
    Touch own, other;
    bool other_writes;
};

static Finding findings[MOST_FINDINGS];
static int finding_count;
static Trail trails[MOST_STACKS];
static unsigned trail_count;
static Region *regions;
static int region_count;
static Region dynamic, fixed;
static unsigned block, generation, block_count, launch_blocks;
// [thread][thread]: up to which moment one has seen what the other wrote, in this generation; and up to which it
// knows that the other has read: a shuffle brings what was read, so the reading is over.
static unsigned *known, *known_read;
static unsigned *moments;
static unsigned char *met;  // [block][block]: met at an atomic
static Shared atomics[MOST_ATOMICS];
static Pending pending;
static unsigned char *module_start, *module_end;
static const Touch NOBODY = {0, 0, 0, 0, -1};

static Trail here(const void *place)
{
    Trail own = {};
    const Thread &thread = threads[current];
    own.places[0] = place;
    for (int i = 1; i < KEPT && i <= thread.depth && i <= DEPTH; i++)
        own.places[i] = thread.calls[(thread.depth - i) % DEPTH];
    return own;
}

static unsigned kept(const void *place)
{
    const Trail own = here(place);
    uintptr_t hash = 0;
    for (const void *one : own.places)
        hash = hash * 31 + (uintptr_t)one;
    for (unsigned i = 0; i < MOST_STACKS; i++) {
        Trail &slot = trails[(hash + i) % MOST_STACKS];
        if (!slot.places[0] && trail_count < MOST_STACKS - 1) {
            slot = own;
            trail_count++;
        }
        if (!memcmp(&slot, &own, sizeof own))
            return (unsigned)((hash + i) % MOST_STACKS);
        if (!slot.places[0])
            break;
    }
    return 0;
}

static Finding *report(const Trail &own, const char *words)
{
    for (int i = 0; i < finding_count; i++)
        if (!memcmp(&findings[i].here, &own, sizeof own) && !strcmp(findings[i].words, words))
            return nullptr;
    if (finding_count == MOST_FINDINGS)
        return nullptr;
    Finding &now = findings[finding_count++];
    memset(&now, 0, sizeof now);
    snprintf(now.words, sizeof now.words, "%s", words);
    now.here = own;
    return &now;
}

// -- what a thread has seen

static bool is_known = true;  // anything, of others in this generation

static void join(unsigned *table, const int *who, int count)
{
    for (int u = 0; u < thread_count; u++) {
        unsigned most = 0;
        for (int i = 0; i < count; i++) {
            const unsigned own = who[i] == u ? moments[u] : table[(size_t)who[i] * MOST_THREADS + u];
            most = own > most ? own : most;
        }
        for (int i = 0; i < count; i++)
            table[(size_t)who[i] * MOST_THREADS + u] = most;
    }
}

static void meet(const int *who, int count, bool orders)
{
    is_known = true;
    if (orders)
        join(known, who, count);
    join(known_read, who, count);
    for (int i = 0; i < count; i++)
        moments[who[i]]++;
}

static void forget()
{
    if (!is_known)
        return;
    is_known = false;
    for (int t = 0; t < thread_count; t++) {
        memset(known + (size_t)t * MOST_THREADS, 0, thread_count * sizeof *known);
        memset(known_read + (size_t)t * MOST_THREADS, 0, thread_count * sizeof *known);
        moments[t] = 1;
    }
}

static void settle();

void watch_all()
{
    settle();
    int first = -1;
    for (int t = 0; t < thread_count; t++) {
        if (threads[t].state != AT_BARRIER || threads[t].barrier != 0 || threads[t].depth == 0)
            continue;
        if (first < 0)
            first = t;
        else if (threads[t].depth != threads[first].depth ||
                 threads[t].calls[threads[t].depth - 1] != threads[first].calls[threads[first].depth - 1]) {
            const int own = current;
            current = t;
            const Trail there = here(threads[t].place);
            current = first;
            Finding *now = report(here(threads[first].place), "a barrier that threads reach in different places");
            current = own;
            if (now)
                now->other = there;
            break;
        }
    }
    generation++;
    forget();
}

void watch_barrier(const int *who, int count)
{
    settle();
    meet(who, count, true);
}

void watch_meeting(const int *who, int count, bool orders)
{
    settle();
    meet(who, count, orders);
}

void watch_wait(const void *) { settle(); }

void watch_stuck()
{
    int shown = -1;
    Finding *now = nullptr;
    for (int t = 0; t < thread_count; t++) {
        const Thread &own = threads[t];
        if (own.state == DONE)
            continue;
        current = t;
        if (shown < 0) {
            int waiting = 0;
            for (int u = 0; u < thread_count; u++)
                waiting += threads[u].state == own.state && threads[u].place == own.place;
            char words[160];
            snprintf(words, sizeof words, "a barrier that is not reached by all: %d of %d threads wait there",
                     waiting, thread_count);
            now = report(here(own.place), words);
            shown = t;
        } else if (now && memcmp(own.calls, threads[shown].calls, sizeof own.calls)) {
            now->other = here(own.place);
            break;
        }
    }
}

// -- places

static Region *region_of(const unsigned char *at)
{
    if (at >= dynamic.start && at < dynamic.start + dynamic.bytes)
        return &dynamic;
    if (at >= fixed.start && at < fixed.start + fixed.bytes)
        return &fixed;
    for (int i = 0; i < region_count; i++)
        if (at >= regions[i].start && at < regions[i].start + regions[i].bytes)
            return &regions[i];
    return nullptr;
}

static bool is_own(const unsigned char *at, size_t bytes)
{
    const unsigned char *low = stacks + (size_t)threads[current].stack * (stacks_bytes / thread_count);
    if (at >= low && at + bytes <= low + stacks_bytes / thread_count)
        return true;
    return at >= module_start && at + bytes <= module_end;
}

[[noreturn]] static void stray(const unsigned char *at, size_t bytes, bool writes, const void *place)
{
    const char *nearest = "";
    long long by = 0;
    static char where[80];
    long long closest = 1ll << 40;
    auto look = [&](const Region &region, int number) {
        const long long behind = at + bytes - (region.start + region.bytes), before = region.start - at;
        const long long off = behind > 0 ? behind : before;
        if (region.bytes && off > 0 && off < closest) {
            closest = off;
            by = off;
            if (number >= 0)
                snprintf(where, sizeof where, "argument array %d of %zu bytes", number + 1, region.bytes);
            else
                snprintf(where, sizeof where, "%s of %zu bytes", region.what, region.bytes);
            nearest = behind > 0 ? "beyond the end of" : "before the start of";
        }
    };
    for (int i = 0; i < region_count; i++)
        look(regions[i], i);
    look(dynamic, -1);
    look(fixed, -1);
    char words[160];
    if (closest < 1ll << 32)
        snprintf(words, sizeof words, "a %s of %zu bytes outside its array: %lld bytes %s %s",
                 writes ? "write" : "read", bytes, by, nearest, where);
    else
        snprintf(words, sizeof words, "a %s of %zu bytes outside every array", writes ? "write" : "read", bytes);
    report(here(place), words);
    fail("%s", words);
}

static bool is_ordered(const Touch &touch, const unsigned *table)
{
    if (touch.thread < 0)
        return true;
    if (touch.block != block)
        return met && met[(size_t)block * launch_blocks + touch.block];
    if (touch.thread == current || touch.generation != generation)
        return true;
    return table[(size_t)current * MOST_THREADS + touch.thread] >= touch.clock;
}

static void race(const Trail &own, bool writes, const Touch &other, bool other_writes, const Region &region)
{
    char words[160];
    const char *between = other.block == block ? "two threads of a block" : "threads of two blocks";
    snprintf(words, sizeof words, "a race in %s memory: %s %s one place without a barrier between, %s",
             region.cells == nullptr || &region == &dynamic || &region == &fixed ? "shared" : "global", between,
             "touch", writes && other_writes ? "both write" : "one reads and one writes");
    Finding *now = report(own, words);
    if (now)
        now->other = trails[other.trail];
}

// What was about to be written has been: writes of what is there already harm nobody.
static void settle()
{
    if (!pending.at)
        return;
    const Pending last = pending;
    pending.at = nullptr;
    Region *region = region_of(last.at);
    if (!region)
        return;
    bool harms = false;
    for (size_t i = 0; i < last.bytes; i++) {
        const bool disputed = i < WIDEST && last.disputed[i], changed = !disputed || last.at[i] != last.before[i];
        harms = harms || (disputed && changed);
        if (changed)
            region->cells[last.at - region->start + i].write = last.own;
    }
    if (harms)
        race(trails[last.own.trail], true, last.other, last.other_writes, *region);
}

static void touch(const void *address, size_t bytes, bool writes, const void *place)
{
    settle();
    unsigned char *at = (unsigned char *)address;
    if (!bytes || is_own(at, bytes))
        return;
    Region *region = region_of(at);
    if (!region || at + bytes > region->start + region->bytes)
        stray(at, bytes, writes, place);
    const unsigned trail = kept(place);
    const size_t first = at - region->start;
    Touch other = NOBODY;
    bool other_writes = false, fresh = true, disputed[WIDEST] = {};
    for (size_t i = first; i < first + bytes; i++) {
        Cell &cell = region->cells[i];
        const Touch *one = !is_ordered(cell.write, known)                   ? &cell.write
                           : writes && !is_ordered(cell.read, known_read)    ? &cell.read
                           : writes && !is_ordered(cell.earlier, known_read) ? &cell.earlier
                                                                             : nullptr;
        if (one) {
            other = *one;
            other_writes = one == &cell.write;
            disputed[(i - first) % WIDEST] = true;
        }
        if (region->written) {
            fresh = fresh && region->written[i];
            region->written[i] = region->written[i] || writes;
        }
        if (!writes && (cell.read.thread != current || cell.read.block != block)) {
            cell.earlier = cell.read;
            cell.read = {block, generation, moments[current], trail, current};
        } else if (!writes)
            cell.read = {block, generation, moments[current], trail, current};
    }
    if (!writes && !fresh)
        report(here(place), "a read of shared memory that nobody has written");
    if (!writes) {
        if (other.thread >= 0)
            race(here(place), false, other, other_writes, *region);
        return;
    }
    pending = {at, bytes, {}, {}, {block, generation, moments[current], trail, current}, other, other_writes};
    memcpy(pending.disputed, disputed, sizeof disputed);
    memcpy(pending.before, at, bytes < WIDEST ? bytes : (size_t)WIDEST);
}

static void aligned(const void *address, size_t bytes, const void *place)
{
    if ((uintptr_t)address % bytes) {
        settle();
        report(here(place), "a misaligned access");
        fail("an access of %zu bytes is misaligned", bytes);  // which may end the process
    }
}

// -- what the runtime tells

void watch_copy(const void *to, const void *from, size_t bytes, const void *place)
{
    touch(from, bytes, false, place);
    touch(to, bytes, true, place);
    pending.at = nullptr;
    Region *region = region_of((const unsigned char *)to);
    for (size_t i = 0; region && region->written && i < bytes; i++)
        region->written[(const unsigned char *)to - region->start + i] = false;
}

void watch_landed(const void *to, size_t bytes)
{
    Region *region = region_of((const unsigned char *)to);
    if (!region)
        return;
    const size_t first = (const unsigned char *)to - region->start;
    for (size_t i = first; i < first + bytes && i < region->bytes; i++) {
        if (region->written)
            region->written[i] = true;
        region->cells[i].write = {block, generation, moments[current], 0, current};
    }
}

void watch_atomic(const void *at, size_t bytes, const void *place)
{
    settle();
    const unsigned char *own = (const unsigned char *)at;
    if (is_own(own, bytes))
        return;
    Region *region = region_of(own);
    if (!region || own + bytes > region->start + region->bytes)
        stray(own, bytes, true, place);
    if ((uintptr_t)at % bytes)
        report(here(place), "a misaligned atomic operation");
    for (size_t i = own - region->start; region->written && i < own - region->start + bytes; i++)
        if (!region->written[i]) {
            report(here(place), "a read of shared memory that nobody has written");
            break;
        }
    // An atomic orders what the blocks that meet there did before.
    for (unsigned i = 0; met && region->written == nullptr && i < MOST_ATOMICS; i++) {
        Shared &slot = atomics[((uintptr_t)at / 4 + i) % MOST_ATOMICS];
        if (slot.at && slot.at != at)
            continue;
        if (!slot.at) {
            slot.at = at;
            slot.blocks = (unsigned char *)calloc(launch_blocks, 1);
        }
        for (unsigned b = 0; b < launch_blocks; b++)
            met[(size_t)block * launch_blocks + b] |= slot.blocks[b];
        for (unsigned b = 0; b < launch_blocks; b++)
            slot.blocks[b] |= b == block || met[(size_t)block * launch_blocks + b];
        break;
    }
}

static int find_module(dl_phdr_info *info, size_t, void *)
{
    bool own = false;
    unsigned char *low = nullptr, *high = nullptr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        unsigned char *start = (unsigned char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        unsigned char *end = start + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        own = own || (start <= (unsigned char *)&find_module && (unsigned char *)&find_module < end);
        low = low && low < start ? low : start;
        high = high > end ? high : end;
    }
    if (own) {
        module_start = low;
        module_end = high;
    }
    return own;
}

static void clear(Region &region)
{
    for (size_t i = 0; i < region.bytes; i++)
        region.cells[i] = {NOBODY, NOBODY, NOBODY};
    if (region.written)
        memset(region.written, 0, region.bytes);
}

static void make(Region &region, unsigned char *start, size_t bytes, bool is_shared, const char *what)
{
    free(region.cells);
    free(region.written);
    region = {start, bytes, (Cell *)malloc((bytes + 1) * sizeof(Cell)),
              is_shared ? (bool *)calloc(bytes + 1, 1) : nullptr, what};
    if (!region.cells)
        fail("there is no memory to watch %zu bytes", bytes);
    clear(region);
}

void watch_launch(const Array *arrays, int count, unsigned blocks)
{
    dl_iterate_phdr(find_module, nullptr);
    for (int i = 0; i < region_count; i++) {
        free(regions[i].cells);
        free(regions[i].written);
    }
    free(regions);
    free(met);
    for (Shared &one : atomics) {
        free(one.blocks);
        one = {};
    }
    regions = (Region *)calloc(count + 1, sizeof *regions);
    region_count = count;
    for (int i = 0; i < count; i++)
        make(regions[i], arrays[i].start, arrays[i].bytes, false, "an array");
    make(dynamic, shared, shared_bytes, true, "dynamic shared memory");
    make(fixed, statics, statics_bytes > 0 ? statics_bytes - 1 : 0, true, "static shared memory");
    launch_blocks = blocks;
    met = blocks <= 4096 ? (unsigned char *)calloc(blocks, blocks) : nullptr;
    pending.at = nullptr;
    if (!known) {
        known = (unsigned *)calloc((size_t)MOST_THREADS * MOST_THREADS, sizeof *known);
        known_read = (unsigned *)calloc((size_t)MOST_THREADS * MOST_THREADS, sizeof *known);
        moments = (unsigned *)calloc(MOST_THREADS, sizeof *moments);
    }
}

void watch_block(unsigned number)
{
    settle();
    block = number;
    block_count++;
    generation = 0;
    clear(dynamic);
    clear(fixed);
    forget();
}

extern "C" __attribute__((visibility("default"))) int __tunesmith_findings(Finding **found, unsigned char **start)
{
    settle();
    const int count = finding_count;
    finding_count = 0;
    *found = findings;
    *start = module_start;
    return count;
}
}  // namespace __tunesmith

// -- what compilers call

using namespace __tunesmith;
#define HERE __builtin_return_address(0)
#define ACCESS(bytes)                                                                      \
    void __tsan_read##bytes(void *at) { aligned(at, bytes, HERE), touch(at, bytes, false, HERE); }  \
    void __tsan_write##bytes(void *at) { aligned(at, bytes, HERE), touch(at, bytes, true, HERE); }  \
    void __tsan_unaligned_read##bytes(void *at) { touch(at, bytes, false, HERE); }         \
    void __tsan_unaligned_write##bytes(void *at) { touch(at, bytes, true, HERE); }         \
    void __tsan_read_write##bytes(void *at) { touch(at, bytes, false, HERE), touch(at, bytes, true, HERE); }

struct Source { const char *file; unsigned line, column; };
static void fault(const Source &where, const char *words, const void *place)
{
    settle();
    Finding *now = report(here(place), words);
    if (now) {
        now->file = where.file;
        now->line = where.line;
    }
}
#define OVERFLOW_OF(name, words)                                                                  \
    void __ubsan_handle_##name(Source *where, void *, void *) { fault(*where, words, HERE); }     \
    void __ubsan_handle_##name##_abort(Source *where, void *, void *) { fault(*where, words, HERE); }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void *caller)
{
    Thread &own = threads[current];
    own.calls[own.depth % DEPTH] = caller;
    own.depth++;
}
void __tsan_func_exit() { threads[current].depth--; }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *at, size_t bytes) { touch(at, bytes, false, HERE); }
void __tsan_write_range(void *at, size_t bytes) { touch(at, bytes, true, HERE); }
void __tsan_vptr_update(void **at, void *) { touch(at, sizeof at, true, HERE); }
void __tsan_vptr_read(void **at) { touch(at, sizeof at, false, HERE); }
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    touch(from, bytes, false, HERE);
    touch(to, bytes, true, HERE);
    return memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    touch(from, bytes, false, HERE);
    touch(to, bytes, true, HERE);
    return memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int value, size_t bytes)
{
    touch(to, bytes, true, HERE);
    return memset(to, value, bytes);
}
OVERFLOW_OF(add_overflow, "an integer that overflows: a sum")
OVERFLOW_OF(sub_overflow, "an integer that overflows: a difference")
OVERFLOW_OF(mul_overflow, "an integer that overflows: a product")
void __ubsan_handle_negate_overflow_abort(Source *where, void *) { fault(*where, "an integer that overflows: negated", HERE); }
void __ubsan_handle_negate_overflow(Source *where, void *) { fault(*where, "an integer that overflows: negated", HERE); }
OVERFLOW_OF(divrem_overflow, "an integer divided by zero, or that overflows")
void __ubsan_handle_out_of_bounds(Source *where, void *)
{
    fault(*where, "an index outside an array of a fixed size", HERE);
    fail("an index lies outside an array of a fixed size");
}
void __ubsan_handle_type_mismatch_v1(Source *where, void *)
{
    fault(*where, "a misaligned access", HERE);
    fail("an access is misaligned");  // which may end the process
}
void __ubsan_handle_pointer_overflow(Source *where, void *, void *) { fault(*where, "a pointer that overflows", HERE); }
}
