// What a thread of a block has seen of the others: clocks by barriers, warp operations, arrivals and fences.
#pragma once
#include "tunesmith_runtime.h"

namespace __tunesmith {
// Behind the threads stand the copies of each barrier in shared memory: they are nobody's.
enum { WIDTH = MOST_THREADS + MOST_ARRIVALS };
struct Clock { unsigned seen[WIDTH], read[WIDTH]; bool used; };

// [thread][thread]: up to which moment one has seen what the other wrote, in this generation; and up to which it
// knows that the other has read: a shuffle brings what was read, so the reading is over.
static unsigned *known, *known_read;
static unsigned moments[WIDTH];
static unsigned generation;  // of the block: how often all have met
static unsigned stamp;       // of all generations of all blocks
static Clock named[BARRIERS], coming[MOST_ARRIVALS], come[MOST_ARRIVALS];
static Clock *fences;        // of each thread, what it had seen at its last fence
static int arrivals_used;
static bool is_known = true;  // anything, of others in this generation

static void no_room() { fail("there is no memory to watch %d threads", thread_count); }

template <typename F> static void of_all(F f)
{
    for (int u = 0; u < thread_count; u++)
        f(u);
    for (int u = MOST_THREADS; u < MOST_THREADS + arrivals_used; u++)
        f(u);
}

static bool far[MOST_THREADS];  // it has seen something of other warps, in this generation

static void join(unsigned *table, const int *who, int count, bool is_near)
{
    auto one = [&](int u) {
        unsigned most = 0;
        for (int i = 0; i < count; i++) {
            const unsigned own = who[i] == u ? moments[u] : table[(size_t)who[i] * WIDTH + u];
            most = own > most ? own : most;
        }
        for (int i = 0; i < count; i++)
            table[(size_t)who[i] * WIDTH + u] = most;
    };
    const int first = who[0] / WARP * WARP;
    if (!is_near)
        of_all(one);
    for (int u = first; is_near && u < first + WARP && u < thread_count; u++)
        one(u);
}

static void meet(const int *who, int count, bool orders)
{
    is_known = true;
    bool is_near = true;  // all of one warp, that knows of no other
    for (int i = 0; i < count; i++)
        is_near = is_near && who[i] / WARP == who[0] / WARP && !far[who[i]];
    if (orders)
        join(known, who, count, is_near);
    join(known_read, who, count, is_near);
    for (int i = 0; i < count; i++) {
        moments[who[i]]++;
        far[who[i]] = !is_near;
    }
}

static void raise(unsigned *to, const unsigned *from)
{
    of_all([&](int u) { to[u] = from[u] > to[u] ? from[u] : to[u]; });
}

// What a thread did until now, for those who come later.
static void release(Clock &clock, int thread)
{
    is_known = clock.used = true;
    raise(clock.seen, known + (size_t)thread * WIDTH);
    raise(clock.read, known_read + (size_t)thread * WIDTH);
    clock.seen[thread] = clock.read[thread] = moments[thread];
    moments[thread]++;
}

static void acquire(const Clock &clock, int thread)
{
    if (!clock.used)
        return;
    is_known = far[thread] = true;
    raise(known + (size_t)thread * WIDTH, clock.seen);
    raise(known_read + (size_t)thread * WIDTH, clock.read);
    moments[thread]++;
}

static void hand_on(Clock &to, Clock &from)
{
    if (!from.used)
        return;
    to.used = true;
    raise(to.seen, from.seen);
    raise(to.read, from.read);
}

static void empty(Clock &clock)
{
    if (clock.used)
        memset(&clock, 0, sizeof clock);
}

// All threads have met: what was before is known to each. `everybody`: also those of larger blocks before.
static void forget_order(bool everybody)
{
    stamp++;
    if (!known) {
        known = (unsigned *)calloc((size_t)MOST_THREADS * WIDTH, sizeof *known);
        known_read = (unsigned *)calloc((size_t)MOST_THREADS * WIDTH, sizeof *known);
        fences = (Clock *)calloc(MOST_THREADS, sizeof *fences);
        if (!known || !known_read || !fences)
            no_room();
    }
    if (!is_known && !everybody)
        return;
    is_known = false;
    for (int t = 0; t < (everybody ? (int)MOST_THREADS : thread_count); t++) {
        memset(known + (size_t)t * WIDTH, 0, WIDTH * sizeof *known);
        memset(known_read + (size_t)t * WIDTH, 0, WIDTH * sizeof *known);
        empty(fences[t]);
        far[t] = false;
    }
    for (unsigned &moment : moments)
        moment = 1;
    for (Clock &clock : named)
        empty(clock);
    for (int i = 0; i < MOST_ARRIVALS; i++) {
        empty(coming[i]);
        empty(come[i]);
    }
}
}  // namespace __tunesmith
