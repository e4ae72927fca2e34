// What kernels for the host and those who run them share: threads of a block, what they wait for, who watches.
#pragma once
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TUNESMITH_WARP
#define TUNESMITH_WARP 32
#endif

#define TUNESMITH_BEYOND "a float beyond the range of the integer that it becomes: a GPU clamps it, C++ leaves it open"

namespace __tunesmith {
typedef unsigned long long Lanes;
enum State : unsigned char { FRESH, READY, AT_BARRIER, AT_WARP, AT_ARRIVAL, AT_ACTIVE, DONE };
enum { WARP = TUNESMITH_WARP, MOST_THREADS = 1024, BARRIERS = 16, SLOT = 32, DEPTH = 96, MOST_ARRIVALS = 64 };
enum { ORDERS = 1 };  // of the operations of a warp the one that orders memory: __syncwarp

struct Copy { unsigned char *to; const unsigned char *from; unsigned bytes, zeros, group; };
struct Thread {
    bool fenced;         // since it last met others: bulk copies may overwrite what was read
    int stack;           // on which it runs
    Lanes mask;          // of the warp operation it is at
    int leader;          // whose copy of the warp's values it reads afterwards
    unsigned at, phase;  // of the arrival it waits for
    int barrier, count;  // the barrier it waits at, and how many must come; 0: all that live
    int operation;       // of the warp, that it is at
    unsigned line;       // where it asks which lanes are active
    unsigned char slot[SLOT];
    Copy *copies;        // asynchronous ones that have not landed
    int copies_held, copies_room;
    unsigned group;      // of copies, the open one
    int depth;           // of calls, where somebody watches
    const void *place;   // where it waits, where somebody watches
#ifdef TUNESMITH_WATCH
    const void *calls[DEPTH];
#endif
};
struct Array { unsigned char *start; size_t bytes; int writes; };  // of a launch; `writes`: it may be written
struct Entry { const char *name; int count; const unsigned *sizes; void (*call)(void **arguments); };

extern Thread threads[MOST_THREADS];
extern State states[MOST_THREADS];  // of the threads: lies together, since all of it is looked through often
extern int thread_count, current;
extern unsigned char *shared;       // dynamic
extern size_t shared_bytes;
extern unsigned char *statics;      // shared memory of fixed sizes
extern size_t statics_bytes;
static const size_t STACK = 640 << 10;  // a GPU allows 512 KiB of local memory
extern unsigned char *stacks;
[[noreturn]] void fail(const char *why, ...) __attribute__((format(printf, 1, 2)));

// What a watching build is told; nothing in others.
#ifdef TUNESMITH_WATCH
enum { IS_PLAIN = 0 };
void watch_launch(const Array *arrays, int count, unsigned blocks);
void watch_block(unsigned block);
void watch_arrive(int barrier);  // what a thread did before is seen by those who wait there
void watch_barrier(const int *who, int count, int barrier);  // all before it is seen by all after it
void watch_all();                                            // the same of all threads
void watch_meeting(const int *who, int count, bool orders);
void watch_made(int arrival, const void *at, const void *place);  // a barrier in shared memory: it is made, a thread arrives, all have arrived,
void watch_comes(int arrival);
void watch_has_come(int arrival);
void watch_saw(int arrival, int thread);  // and a thread has seen that
void watch_fence();
void watch_atomic(const void *at, size_t bytes, bool reads, const void *place);
void watch_copy(const void *to, const void *from, size_t bytes, size_t zeros, const void *place);
void watch_landed(const void *to, size_t bytes, int arrival);  // -1: the thread has waited for it
void watch_use(const void *at, size_t bytes, const void *place);  // of a barrier in shared memory
void watch_wait(const void *place);
void watch_stuck();
void watch_mixed(int one, int other, const char *words);  // two threads, in places that do not go together
void watch_fault(const char *words, const void *place);
#else
enum { IS_PLAIN = 1 };
static inline void watch_launch(const Array *, int, unsigned) {}
static inline void watch_block(unsigned) {}
static inline void watch_arrive(int) {}
static inline void watch_barrier(const int *, int, int) {}
static inline void watch_all() {}
static inline void watch_meeting(const int *, int, bool) {}
static inline void watch_made(int, const void *, const void *) {}
static inline void watch_comes(int) {}
static inline void watch_has_come(int) {}
static inline void watch_saw(int, int) {}
static inline void watch_fence() {}
static inline void watch_atomic(const void *, size_t, bool, const void *) {}
static inline void watch_copy(const void *, const void *, size_t, size_t, const void *) {}
static inline void watch_landed(const void *, size_t, int) {}
static inline void watch_use(const void *, size_t, const void *) {}
static inline void watch_wait(const void *) {}
static inline void watch_stuck() {}
static inline void watch_mixed(int, int, const char *) {}
static inline void watch_fault(const char *, const void *) {}
#endif
}  // namespace __tunesmith
