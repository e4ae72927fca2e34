/* What happens on threads that may hold locks of the driver's or of CUPTI's: modules that are loaded, nodes that are
 * cloned, buffers that are full. Whoever holds our lock may be asking the driver, so nobody there may wait for it: where
 * it is taken, what happened is put on a list, for the one who has the lock next. */
#ifndef TUNESMITH_EVENTS_H
#define TUNESMITH_EVENTS_H

#include "keep.h"

#include <pthread.h>

enum { EVENT_LOADED = 1, EVENT_UNLOADED, EVENT_CLONED, EVENT_BUFFER };

typedef struct Event {
    struct Event *next;
    int kind;
    uint32_t module, stream;
    uint64_t node, original;
    void *context;
    const void *data;
    size_t size;
} Event;

typedef struct {
    RecordHead head;
    uint32_t module, file; /* `file` 0: it was not stored */
    uint64_t size;
} ImageRecord;

/* Recursive: what we ask the driver may load a module, and we are told of that on the same thread. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static Event *waiting;
static Table by_node; /* nodes of graphs, to classes */
static uint64_t image_bytes = (uint64_t)16 << 20, images_bytes = (uint64_t)256 << 20, images_used;

static void buffer_read(void *context, uint32_t stream, uint8_t *buffer, size_t valid);

static void image_stored(uint32_t module, const void *data, size_t size) {
    uint32_t file = 0;
    if (!trace.header) return;
    if (data && size && size <= image_bytes && images_used + size <= images_bytes) {
        file = write_file("image", data, size);
        if (file) images_used += size;
    }
    if (!file) trace.header->images_left++;
    ImageRecord *record = trace_record(RECORD_IMAGE, sizeof *record);
    if (!record) return;
    record->module = module;
    record->file = file;
    record->size = size;
    trace_commit(record);
}

static void event_handled(const Event *event) {
    if (event->kind == EVENT_LOADED) image_stored(event->module, event->data, event->size);
    if (event->kind == EVENT_UNLOADED) table_clear(&by_handle); /* its functions' addresses may come again */
    if (event->kind == EVENT_BUFFER) buffer_read(event->context, event->stream, (uint8_t *)event->data, event->size);
    if (event->kind == EVENT_CLONED) {
        uint32_t *from = table_at(&by_node, event->original, 0);
        uint32_t number = from ? *from : NO_CLASS;
        uint32_t *to = from ? table_at(&by_node, event->node, 1) : NULL;
        if (to) *to = number;
    }
}

/* With the lock held: what was put on the list, in its order. */
static void events_settled(void) {
    Event *newest = __atomic_exchange_n(&waiting, NULL, __ATOMIC_ACQUIRE), *oldest = NULL;
    while (newest) {
        Event *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        Event *next = oldest->next;
        event_handled(oldest);
        if (oldest->kind == EVENT_LOADED) free((void *)oldest->data);
        free(oldest);
        oldest = next;
    }
}

static void event_happens(Event event) {
    if (!pthread_mutex_trylock(&lock)) {
        events_settled();
        event_handled(&event);
        pthread_mutex_unlock(&lock);
        return;
    }
    Event *kept = malloc(sizeof *kept);
    if (kept) *kept = event;
    if (kept && event.kind == EVENT_LOADED) { /* the image is the driver's, and may go */
        void *copy = event.size <= image_bytes ? malloc(event.size + 1) : NULL;
        if (copy) memcpy(copy, event.data, event.size);
        kept->data = copy;
    }
    if (!kept) {
        if (event.kind == EVENT_BUFFER) free((void *)event.data);
        return;
    }
    kept->next = __atomic_load_n(&waiting, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&waiting, &kept->next, kept, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

static void module_loaded(const ModuleData *data) {
    event_happens((Event){.kind = EVENT_LOADED, .module = data->module, .data = data->cubin, .size = data->size});
}

/* The number of a kernel's node; 0 where it is another kind of node, or CUPTI does not say. */
static uint64_t node_of(const GraphData *data) {
    uint64_t node = 0;
    if (data->node_type != NODE_KERNEL || !cupti.cuptiGetGraphNodeId) return 0;
    return cupti.cuptiGetGraphNodeId(data->node, &node) ? 0 : node;
}

static void node_cloned(const GraphData *data) {
    uint64_t node = node_of(data), original = 0;
    if (!node || cupti.cuptiGetGraphNodeId(data->original_node, &original)) return;
    event_happens((Event){.kind = EVENT_CLONED, .node = node, .original = original});
}

#endif
