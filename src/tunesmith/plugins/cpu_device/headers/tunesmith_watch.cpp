// Watches every access of a kernel: whether it lies in an array, whether shared memory was written before it is
// read, and whether two threads touch one place, one of them to write, with nothing between them that orders it.
// A compiler calls us before each access (-fsanitize=thread) and at each fault of arithmetic or alignment
// (-fsanitize=undefined's handlers): no library of theirs is needed.
#include "tunesmith_runtime.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tunesmith_order.h"
#include "tunesmith_touches.h"

namespace __tunesmith {
enum { KEPT = 6, MOST_FINDINGS = 32, MOST_STACKS = 1 << 14, MOST_ATOMICS = 1 << 12, WIDEST = 256, MOST_DOUBTS = 32 };
enum How { READS, WRITES, UPDATES };  // plainly, or by an atomic operation

struct Trail { const void *places[KEPT]; };  // where, and by whom it was called
struct Finding {
    char words[200];
    Trail here, other;
    const char *file;  // where the compiler says so itself
    unsigned line;
};
struct Cell { unsigned write, reads, atomics; };  // of a byte: the last plain write, and sets since then
struct Region { unsigned char *start; size_t bytes; Cell *cells; bool *written; const char *what; };
struct Named { size_t start, bytes; const char *name; };  // an array in shared memory of a fixed size
struct Meeting { const void *at; unsigned *blocks; Clock *clock; unsigned stamp; };  // of those who were at an atomic
struct Pending {
    unsigned char *at;
    size_t bytes;
    unsigned char before[WIDEST];
    bool disputed[WIDEST];  // another thread has touched the byte
    unsigned own, other;
    How how;  // the other did
};
struct Doubt { const unsigned char *at; size_t bytes; int thread; unsigned own, other; Region *region; };

static Finding findings[MOST_FINDINGS];
static int finding_count;
static Trail trails[MOST_STACKS];
static unsigned trail_count;
static Region *regions, dynamic, *fixed;
static int region_count, fixed_count;
static const Named *arrays_named;
static int named_count;
static unsigned block, launch_blocks;
static unsigned *met, *epochs;  // [block][block]: up to which epoch one knows the other; a block's own epoch
static Meeting meetings[MOST_ATOMICS];
static Pending pending;
static Doubt doubts[MOST_DOUBTS];
static int doubt_count;
static unsigned char *module_start, *module_end;
static Interned<Touch> touches;
static Interned<Node> sets;
static Memory asked, added;

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

// -- who came before whom

static unsigned touch_of(int thread, unsigned trail)
{
    return touches.number({block, generation, moments[thread], epochs[block], trail, thread});
}

static bool is_ordered(unsigned number, const unsigned *table)
{
    if (number == NOBODY)
        return true;
    const Touch &touch = touches.items[number];
    if (touch.block != block)
        return met && met[(size_t)block * launch_blocks + touch.block] >= touch.epoch;
    if (touch.thread == current || touch.thread == ANYBODY || touch.generation != generation)
        return true;
    return table[(size_t)current * WIDTH + touch.thread] >= touch.moment;
}

// The first of a set that nothing orders before the thread that runs.
static unsigned offender(unsigned set, const unsigned *table)
{
    if (set == NOBODY)
        return NOBODY;
    Memory::Answer &answer = asked.of(set, stamp, current * 2 + (table == known), moments[current]);
    if (!answer.known) {
        answer.known = true;
        answer.answer = NOBODY;
        for (unsigned at = set; at && !answer.answer; at = sets.items[at].next)
            if (!is_ordered(sets.items[at].touch, table))
                answer.answer = sets.items[at].touch;
    }
    return answer.answer;
}

// A set without those that `drops` names.
template <typename F> static unsigned without(unsigned set, F drops)
{
    static unsigned *left;
    static unsigned room;
    unsigned count = 0, rest = set, before = 0;
    for (unsigned at = set; at; at = sets.items[at].next) {
        if (drops(sets.items[at].touch)) {
            rest = sets.items[at].next;
            before = count;
            continue;
        }
        if (count == room && !(left = (unsigned *)realloc(left, (room = room ? 2 * room : 64) * sizeof *left)))
            no_room();
        left[count++] = sets.items[at].touch;
    }
    while (before > 0)  // what stands behind the last that is dropped stays as it is
        rest = sets.number({left[--before], rest});
    return rest;
}

// With the touch of the thread that runs: those that came before it need not be remembered.
static unsigned with(unsigned set, unsigned own, const unsigned *table)
{
    if (set && sets.items[set].touch == own)
        return set;
    Memory::Answer &answer = added.of(set, own, table == known, 0);
    if (!answer.known) {
        unsigned last = block, epoch = 0;  // of another block, which is over, the last is enough
        const unsigned left = without(set, [&](unsigned one) {
            const Touch &touch = touches.items[one];
            if (touch.block != block && touch.block == last && touch.epoch <= epoch)
                return true;
            if (is_ordered(one, table))
                return true;
            last = touch.block;
            epoch = touch.epoch;
            return false;
        });
        answer.answer = sets.number({own, left});
        answer.known = true;
    }
    return answer.answer;
}

// -- compaction: touches of blocks that are over, and of generations that are, need no thread

static unsigned lasting(unsigned number, bool ended, bool is_shared, Interned<Touch> &now)
{
    if (number == NOBODY)
        return NOBODY;
    Touch own = touches.items[number];
    if (own.block == block && (ended || own.generation != generation)) {
        if (is_shared)
            return NOBODY;
        own = {own.block, 0, 0, own.epoch, own.trail, ANYBODY};
    }
    return now.number(own);
}

static void compact(bool ended)
{
    Interned<Touch> lasting_touches = {};
    Interned<Node> lasting_sets = {};
    unsigned *made = (unsigned *)malloc((size_t)(sets.held + 1) * 2 * sizeof *made), *chain = nullptr;
    unsigned chain_room = 0;
    if (!made)
        no_room();
    memset(made, 0xff, (size_t)(sets.held + 1) * 2 * sizeof *made);
    auto moved = [&](unsigned set, bool is_shared) {
        unsigned length = 0, end = NOBODY;
        for (unsigned at = set; at; at = sets.items[at].next) {
            if (made[at * 2 + is_shared] != ~0u) {
                end = made[at * 2 + is_shared];
                break;
            }
            if (length == chain_room &&
                !(chain = (unsigned *)realloc(chain, (chain_room = chain_room ? 2 * chain_room : 64) * sizeof *chain)))
                no_room();
            chain[length++] = at;
        }
        while (length-- > 0) {
            const unsigned one = lasting(sets.items[chain[length]].touch, ended, is_shared, lasting_touches);
            const Touch *own = one ? &lasting_touches.items[one] : nullptr;
            const Touch *last = end ? &lasting_touches.items[lasting_sets.items[end].touch] : nullptr;
            // Of one block the last is enough.
            if (own && own->thread == ANYBODY && last && last->thread == ANYBODY && last->block == own->block)
                end = last->epoch >= own->epoch ? end : lasting_sets.number({one, lasting_sets.items[end].next});
            else if (one)
                end = lasting_sets.number({one, end});
            made[chain[length] * 2 + is_shared] = end;
        }
        return end;
    };
    auto move = [&](Region &region) {
        const bool is_shared = region.written != nullptr;
        for (size_t i = 0; i < region.bytes; i++) {
            Cell &cell = region.cells[i];
            cell = {lasting(cell.write, ended, is_shared, lasting_touches), moved(cell.reads, is_shared),
                    moved(cell.atomics, is_shared)};
        }
    };
    for (int i = 0; i < region_count; i++)
        move(regions[i]);
    for (int i = 0; i < fixed_count; i++)
        move(fixed[i]);
    move(dynamic);
    free(made);
    free(chain);
    touches.reset();
    sets.reset();
    touches = lasting_touches;
    sets = lasting_sets;
    asked.forget();
    added.forget();
}

// -- what the runtime tells of order

static void settle();
static void tell_doubts();

static void settle_all()
{
    settle();
    tell_doubts();
}

void watch_all()
{
    settle_all();
    int first = -1;
    for (int t = 0; t < thread_count; t++) {
        if (states[t] != AT_BARRIER || threads[t].barrier != 0 || threads[t].depth == 0)
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
    forget_order(false);
    if (touches.held > 1 << 19 || sets.held > 1 << 20)
        compact(false);
}

void watch_arrive(int barrier)
{
    settle_all();
    release(named[barrier], current);
}

void watch_barrier(const int *who, int count, int barrier)
{
    settle_all();
    meet(who, count, true);
    for (int i = 0; i < count; i++)
        acquire(named[barrier], who[i]);
    empty(named[barrier]);
}

void watch_meeting(const int *who, int count, bool orders)
{
    settle_all();
    meet(who, count, orders);
}

void watch_comes(int arrival)
{
    settle_all();
    release(coming[arrival], current);
}

void watch_has_come(int arrival)
{
    is_known = true;
    coming[arrival].used = true;
    coming[arrival].seen[MOST_THREADS + arrival] = coming[arrival].read[MOST_THREADS + arrival] =
        moments[MOST_THREADS + arrival]++;
    hand_on(come[arrival], coming[arrival]);
    empty(coming[arrival]);
}

void watch_saw(int arrival, int thread) { acquire(come[arrival], thread); }

void watch_fence()
{
    settle_all();
    empty(fences[current]);
    release(fences[current], current);
}

void watch_wait(const void *) { settle_all(); }

void watch_stuck()
{
    int shown = -1;
    Finding *now = nullptr;
    settle_all();
    for (int t = 0; t < thread_count; t++) {
        const Thread &own = threads[t];
        if (states[t] == DONE)
            continue;
        current = t;
        if (shown < 0) {
            int waiting = 0;
            for (int u = 0; u < thread_count; u++)
                waiting += states[u] == states[t] && threads[u].place == own.place;
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

void watch_mixed(int one, int other, const char *words)
{
    settle_all();
    current = one;
    const Trail there = here(threads[one].place);
    current = other;
    if (Finding *now = report(here(threads[other].place), words))
        now->other = there;
}

void watch_fault(const char *words, const void *place)
{
    settle_all();
    report(here(place), words);
}

// -- places

static Region *region_of(const unsigned char *at)
{
    if (at >= dynamic.start && at < dynamic.start + dynamic.bytes)
        return &dynamic;
    for (int i = 0; i < fixed_count; i++)
        if (at >= fixed[i].start && at < fixed[i].start + fixed[i].bytes)
            return &fixed[i];
    for (int i = 0; i < region_count; i++)
        if (at >= regions[i].start && at < regions[i].start + regions[i].bytes)
            return &regions[i];
    return nullptr;
}

static bool is_on_stack(const unsigned char *at, size_t bytes)
{
    const unsigned char *low = stacks + threads[current].stack * STACK;
    return at >= low && at + bytes <= low + STACK;
}

static bool is_own(const unsigned char *at, size_t bytes)
{
    return is_on_stack(at, bytes) || (at >= module_start && at + bytes <= module_end);
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
    for (int i = 0; i < fixed_count; i++)
        look(fixed[i], -1);
    char words[200];
    if (closest < 1ll << 32)
        snprintf(words, sizeof words, "a %s of %zu bytes outside its array: %lld bytes %s %s",
                 writes ? "write" : "read", bytes, by, nearest, where);
    else
        snprintf(words, sizeof words, "a %s of %zu bytes outside every array", writes ? "write" : "read", bytes);
    report(here(place), words);
    fail("%s", words);
}

static void race(unsigned own, How how, unsigned other, How others, const Region &region)
{
    char words[200];
    const Touch &touch = touches.items[other];
    const char *between = touch.block == touches.items[own].block ? "two threads of a block" : "threads of two blocks";
    snprintf(words, sizeof words, "a race in %s memory: %s touch one place without a barrier between, %s",
             region.written ? "shared" : "global", between,
             how == UPDATES || others == UPDATES ? "one by an atomic operation and one without"
             : how == WRITES && others == WRITES ? "both write"
                                                 : "one reads and one writes");
    Finding *now = report(trails[touches.items[own].trail], words);
    if (now)
        now->other = trails[touch.trail];
}

// What was about to be written has been: writes of what is there already harm nobody.
static void settle()
{
    if (!pending.at)
        return;
    unsigned char *at = pending.at;
    pending.at = nullptr;
    Region *region = region_of(at);
    if (!region)
        return;
    bool harms = false;
    for (size_t i = 0; i < pending.bytes; i++) {
        const bool disputed = pending.disputed[i < WIDEST ? i : WIDEST - 1];
        const bool changed = !disputed || i >= WIDEST || at[i] != pending.before[i];
        harms = harms || (disputed && changed);
        if (changed)
            region->cells[at - region->start + i] = {pending.own, NOBODY, NOBODY};
    }
    if (harms)
        race(pending.own, WRITES, pending.other, pending.how, *region);
}

// Reads beside another's atomic operations, which a loop of compare and swap may begin with: what it swaps tells it.
static void tell_doubts()
{
    for (int i = 0; i < doubt_count; i++)
        race(doubts[i].own, READS, doubts[i].other, UPDATES, *doubts[i].region);
    doubt_count = 0;
}

static Region &found(const unsigned char *at, size_t bytes, bool writes, const void *place)
{
    Region *region = region_of(at);
    if (!region || at + bytes > region->start + region->bytes)
        stray(at, bytes, writes, place);
    return *region;
}

static void touch(const void *address, size_t bytes, bool writes, const void *place)
{
    settle();
    if (doubt_count && doubts[0].thread != current)
        tell_doubts();
    unsigned char *at = (unsigned char *)address;
    if (!bytes || is_own(at, bytes))
        return;
    Region &region = found(at, bytes, writes, place);
    const unsigned own = touch_of(current, kept(place));
    const size_t first = at - region.start;
    unsigned other = NOBODY;
    How how = READS;
    bool fresh = true, disputed[WIDEST] = {};
    for (size_t i = first; i < first + bytes; i++) {
        Cell &cell = region.cells[i];
        unsigned one = NOBODY;
        How ones = WRITES;
        if (!is_ordered(cell.write, known))
            one = cell.write;
        else if ((one = offender(cell.atomics, known)))
            ones = UPDATES;
        else if (writes && (one = offender(cell.reads, known_read)))
            ones = READS;
        if (one && (!other || how == UPDATES)) {
            other = one;
            how = ones;
        }
        if (one)
            disputed[i - first < WIDEST ? i - first : WIDEST - 1] = true;
        if (region.written) {
            fresh = fresh && region.written[i];
            region.written[i] = region.written[i] || writes;
        }
        if (!writes)
            cell.reads = with(cell.reads, own, known_read);
    }
    if (!writes && !fresh)
        report(here(place), "a read of shared memory that nobody has written");
    if (writes) {
        pending = {at, bytes, {}, {}, own, other, how};
        memcpy(pending.disputed, disputed, sizeof disputed);
        memcpy(pending.before, at, bytes < WIDEST ? bytes : (size_t)WIDEST);
    } else if (other && how == UPDATES) {
        if (doubt_count == MOST_DOUBTS)
            tell_doubts();
        doubts[doubt_count++] = {at, bytes, current, own, other, &region};
    } else if (other)
        race(own, READS, other, how, region);
}

// Local arrays of less than 16 bytes lie on a GPU in registers, or are aligned by its compiler; larger ones are here.
static bool is_misaligned(const void *address, size_t bytes)
{
    return (uintptr_t)address % bytes && !(bytes <= 8 && is_on_stack((const unsigned char *)address, 1));
}

static void aligned(const void *address, size_t bytes, const void *place)
{
    if (is_misaligned(address, bytes)) {
        settle();
        report(here(place), "a misaligned access");
        fail("an access of %zu bytes is misaligned", bytes);  // which may end the process
    }
}

// -- what the runtime tells of memory

static void set_written(const void *at, size_t bytes, bool written)
{
    Region *region = region_of((const unsigned char *)at);
    for (size_t i = 0; region && region->written && i < bytes; i++)
        region->written[(const unsigned char *)at - region->start + i] = written;
}

// Written by something that is not seen here: it changes what is there, whatever comes.
static void change(const void *at, size_t bytes, const void *place)
{
    touch(at, bytes, true, place);
    if (!pending.at)
        return;
    pending.at = nullptr;
    Region &region = *region_of((const unsigned char *)at);
    if (pending.other)
        race(pending.own, WRITES, pending.other, pending.how, region);
    for (size_t i = 0; i < bytes; i++)
        region.cells[(const unsigned char *)at - region.start + i] = {pending.own, NOBODY, NOBODY};
}

void watch_made(int arrival, const void *at, const void *place)
{
    change(at, 8, place);
    arrivals_used = arrivals_used > arrival ? arrivals_used : arrival + 1;
    empty(coming[arrival]);
    empty(come[arrival]);
}

void watch_copy(const void *to, const void *from, size_t bytes, size_t zeros, const void *place)
{
    touch(from, bytes - zeros, false, place);
    change(to, bytes, place);
    set_written(to, bytes, false);  // until somebody waits for it
}

void watch_use(const void *at, size_t bytes, const void *place) { touch(at, bytes, false, place); }

void watch_landed(const void *to, size_t bytes, int arrival)
{
    settle();
    Region *region = region_of((const unsigned char *)to);
    if (!region)
        return;
    const size_t first = (const unsigned char *)to - region->start;
    // Where it was written is where the copy began.
    const unsigned before = region->cells[first].write;
    const unsigned own = touch_of(arrival < 0 ? current : MOST_THREADS + arrival,
                                  before ? touches.items[before].trail : 0);
    for (size_t i = first; i < first + bytes && i < region->bytes; i++)
        region->cells[i] = {own, NOBODY, NOBODY};
    set_written(to, bytes, true);
}

// An atomic orders what the blocks that meet there did before, and what threads did before a fence.
static void meet_at(const void *at)
{
    for (unsigned i = 0; i < MOST_ATOMICS; i++) {
        Meeting &slot = meetings[((uintptr_t)at / 4 + i) % MOST_ATOMICS];
        if (slot.at && slot.at != at)
            continue;
        if (!slot.at)
            slot = {at, met ? (unsigned *)calloc(launch_blocks, sizeof *slot.blocks) : nullptr, nullptr, 0};
        unsigned *own = slot.blocks ? met + (size_t)block * launch_blocks : nullptr;
        for (unsigned b = 0; own && b < launch_blocks; b++)
            own[b] = slot.blocks[b] > own[b] ? slot.blocks[b] : own[b];
        for (unsigned b = 0; own && b < launch_blocks; b++)
            slot.blocks[b] = b == block ? epochs[block] : own[b] > slot.blocks[b] ? own[b] : slot.blocks[b];
        if (slot.clock && slot.stamp == stamp)
            acquire(*slot.clock, current);
        if (fences[current].used) {
            if (!slot.clock && !(slot.clock = (Clock *)calloc(1, sizeof *slot.clock)))
                no_room();
            if (slot.stamp != stamp)
                empty(*slot.clock);
            slot.stamp = stamp;
            hand_on(*slot.clock, fences[current]);
        }
        break;
    }
    epochs[block]++;
    moments[current]++;
    is_known = true;
}

void watch_atomic(const void *at, size_t bytes, bool reads, const void *place)
{
    settle();
    const unsigned char *own = (const unsigned char *)at;
    if (doubt_count && doubts[0].thread != current)
        tell_doubts();
    if (is_own(own, bytes))
        return;
    Region &region = found(own, bytes, true, place);
    if ((uintptr_t)at % bytes)
        report(here(place), "a misaligned atomic operation");
    int left = 0;
    for (int i = 0; i < doubt_count; i++)
        if (doubts[i].at + doubts[i].bytes <= own || own + bytes <= doubts[i].at)
            doubts[left++] = doubts[i];
    doubt_count = left;
    const size_t first = own - region.start;
    bool fresh = true;
    const unsigned now = touch_of(current, kept(place));
    unsigned other = NOBODY;
    How how = WRITES;
    for (size_t i = first; i < first + bytes; i++) {
        Cell &cell = region.cells[i];
        cell.reads = without(cell.reads, [](unsigned one) {
            return touches.items[one].block == block && touches.items[one].thread == current;
        });
        if (!is_ordered(cell.write, known))
            other = cell.write, how = WRITES;
        else if (unsigned one = other ? 0u : offender(cell.reads, known_read))
            other = one, how = READS;
        cell.atomics = with(cell.atomics, now, known);
        fresh = fresh && (!region.written || region.written[i]);
    }
    if (!fresh && reads)
        report(here(place), "a read of shared memory that nobody has written");
    if (other)
        race(now, UPDATES, other, how, region);
    set_written(at, bytes, true);
    meet_at(at);
}

// -- launches and blocks

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
    memset(region.cells, 0, region.bytes * sizeof(Cell));
    if (region.written)
        memset(region.written, 0, region.bytes);
}

static void make(Region &region, unsigned char *start, size_t bytes, bool is_shared, const char *what)
{
    free(region.cells);
    free(region.written);
    region = {start, bytes, (Cell *)calloc(bytes + 1, sizeof(Cell)),
              is_shared ? (bool *)calloc(bytes + 1, 1) : nullptr, what};
    if (!region.cells)
        fail("there is no memory to watch %zu bytes", bytes);
}

static Region *room_for(Region *old, int before, int count)
{
    for (int i = 0; i < before; i++) {
        free(old[i].cells);
        free(old[i].written);
    }
    free(old);
    Region *made = (Region *)calloc(count + 1, sizeof *made);
    if (!made)
        no_room();
    return made;
}

void watch_launch(const Array *arrays, int count, unsigned blocks)
{
    dl_iterate_phdr(find_module, nullptr);
    free(met);
    free(epochs);
    for (Meeting &one : meetings) {
        free(one.blocks);
        free(one.clock);
        one = {};
    }
    touches.reset();
    sets.reset();
    asked.forget();
    added.forget();
    doubt_count = 0;
    pending.at = nullptr;
    regions = room_for(regions, region_count, count);
    region_count = count;
    for (int i = 0; i < count; i++)
        make(regions[i], arrays[i].start, arrays[i].bytes, false, "an array");
    make(dynamic, shared, shared_bytes, true, "dynamic shared memory");
    fixed = room_for(fixed, fixed_count, named_count + 1);
    fixed_count = named_count;
    for (int i = 0; i < named_count; i++)
        make(fixed[i], statics + arrays_named[i].start, arrays_named[i].bytes, true, arrays_named[i].name);
    launch_blocks = blocks;
    met = blocks <= 4096 ? (unsigned *)calloc((size_t)blocks * blocks, sizeof *met) : nullptr;
    epochs = (unsigned *)malloc(blocks * sizeof *epochs);
    if (!epochs)
        no_room();
    for (unsigned b = 0; b < blocks; b++)
        epochs[b] = 1;
    arrivals_used = 0;
    block = 0;
    forget_order(true);
}

void watch_block(unsigned number)
{
    settle_all();
    for (int i = 0; i < fixed_count; i++)
        clear(fixed[i]);
    clear(dynamic);
    if (touches.held > 1 << 17 || sets.held > 1 << 18)
        compact(true);
    block = number;
    generation = 0;
    arrivals_used = 0;
    forget_order(false);
}

extern "C" __attribute__((visibility("default"))) int __tunesmith_findings(Finding **told, unsigned char **start)
{
    settle_all();
    const int count = finding_count;
    finding_count = 0;
    *told = findings;
    *start = module_start;
    return count;
}

// The arrays of fixed sizes in shared memory: between them is nothing.
extern "C" __attribute__((visibility("default"))) void __tunesmith_name(const Named *arrays, int count)
{
    arrays_named = arrays;
    named_count = count;
}
}  // namespace __tunesmith

#include "tunesmith_handlers.h"
