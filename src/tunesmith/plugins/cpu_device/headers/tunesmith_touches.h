// Who touched a place, as numbers: equal touches have one number, and so have equal sets of them, whatever the
// number of threads that read a place. Sets are lists that share their ends; what is done to one is remembered,
// since neighbours mostly have the same set.
#pragma once
#include <stdlib.h>
#include <string.h>

namespace __tunesmith {
enum { NOBODY = 0, ANYBODY = -2 };  // the empty set or no touch; a thread of a block, ordered with all of it

struct Touch { unsigned block, generation, moment, epoch, trail; int thread; };
struct Node { unsigned touch, next; };

// Values without padding, each once. Number 0 is nobody's.
template <typename T> struct Interned {
    T *items;
    unsigned *slots, held, room;  // as many slots as room, twice as many as items

    void reset()
    {
        free(items);
        free(slots);
        items = nullptr;
        slots = nullptr;
        held = room = 0;
    }
    static unsigned hashed(const T &value)
    {
        unsigned words[sizeof(T) / 4], hash = 2166136261u;
        memcpy(words, &value, sizeof value);
        for (unsigned word : words)
            hash = (hash ^ word) * 16777619u, hash ^= hash >> 15;
        return hash;
    }
    void grow()
    {
        const unsigned wider = room ? 2 * room : 1 << 12;
        T *more = (T *)realloc((void *)items, wider / 2 * sizeof(T));
        unsigned *wide = (unsigned *)calloc(wider, sizeof *wide);
        if (!more || !wide)
            fail("there is no memory to remember who touched what");
        free(slots);
        items = more;
        slots = wide;
        room = wider;
        for (unsigned i = 1; i < held; i++) {
            unsigned at = hashed(items[i]);
            while (slots[at % room])
                at++;
            slots[at % room] = i;
        }
        held = held ? held : 1;
    }
    unsigned number(const T &value)
    {
        if (held + 1 >= room / 2)
            grow();
        unsigned at = hashed(value);
        for (; slots[at % room]; at++)
            if (!memcmp((const void *)&items[slots[at % room]], (const void *)&value, sizeof value))
                return slots[at % room];
        items[held] = value;
        return slots[at % room] = held++;
    }
};

// What came of a question before; one that falls on another's place is asked again.
struct Memory {
    enum { PLACES = 1 << 14 };
    struct Answer { unsigned a, b, c, d, answer; bool known; } answers[PLACES];
    Answer &of(unsigned a, unsigned b, unsigned c, unsigned d)
    {
        unsigned hash = ((a * 31 + b) * 2654435761u + c) * 40503u + d;
        Answer &own = answers[(hash ^ hash >> 15) % PLACES];
        if (own.a != a || own.b != b || own.c != c || own.d != d)
            own = {a, b, c, d, 0, false};
        return own;
    }
    void forget() { memset((void *)answers, 0, sizeof answers); }
};
}  // namespace __tunesmith
