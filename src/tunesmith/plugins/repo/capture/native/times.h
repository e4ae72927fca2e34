/* Times by the device's clock, from CUPTI's activity records, added to the classes of the launches they are of. */
#ifndef TUNESMITH_TIMES_H
#define TUNESMITH_TIMES_H

#include "events.h"

enum { RING = 1 << 18, MOST_PENDING = 1 << 14, BUFFER = 1 << 20 };

static pid_t owner; /* a child of a fork is another process */
/* The last launches. `once`: another of our own has the same number, and comes after it. */
static struct { uint32_t correlation, class_index, once; } ring[RING];
static KernelActivity pending[MOST_PENDING];
static uint32_t pending_count;

static void time_taken(uint32_t number, const KernelActivity *kernel) {
    TraceHeader *header = trace.header;
    if (number == IGNORED) return;
    if (!header->first_ns || kernel->start < header->first_ns) header->first_ns = kernel->start;
    if (kernel->end > header->last_ns) header->last_ns = kernel->end;
    if (number == NO_CLASS) return;
    ClassRecord *record = classes[number];
    uint64_t ns = kernel->end > kernel->start ? kernel->end - kernel->start : 0;
    if (kernel->node) record->count++;
    if (!ns) return; /* the profiler has no time of it */
    record->timed++;
    record->ns += ns;
    if (!record->least_ns || ns < record->least_ns) record->least_ns = ns;
}

/* A kernel whose launch nobody saw: made by another kernel, or by a call that is not watched. */
static uint32_t class_by_name(const KernelActivity *kernel) {
    int32_t attributes[5] = {kernel->registers, kernel->static_shared, (int32_t)kernel->local, -1, -1};
    Function *function = function_of(kernel->name ? kernel->name : "", NULL, NULL, 0, attributes);
    if (!function) return NO_CLASS;
    Launch launch = {.shared = (unsigned)kernel->shared, .device = kernel->device, .flags = kernel->node ? FLAG_GRAPH : 0};
    for (int i = 0; i < 3; i++) {
        launch.grid[i] = (unsigned)kernel->grid[i];
        launch.block[i] = (unsigned)kernel->block[i];
    }
    uint32_t number = rest_class(function, &launch);
    if (number != NO_CLASS && !kernel->node) classes[number]->count++;
    return number;
}

static int is_matched(const KernelActivity *kernel) {
    uint32_t number = NO_CLASS;
    if (kernel->node) {
        uint32_t *known = table_at(&by_node, kernel->node, 0);
        if (!known || *known == NO_CLASS) return 0;
        number = *known;
    } else {
        uint32_t place = kernel->correlation & (RING - 1);
        if (!kernel->correlation || ring[place].correlation != kernel->correlation || ring[place].class_index == NO_CLASS) return 0;
        number = ring[place].class_index;
        if (ring[place].once) ring[place].class_index = IGNORED;
    }
    time_taken(number, kernel);
    return 1;
}

/* A record may come before its launch has returned: those wait for the next buffer. */
static void settle(int last) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < pending_count; i++) {
        if (is_matched(&pending[i])) continue;
        if (last) time_taken(class_by_name(&pending[i]), &pending[i]);
        else pending[left++] = pending[i];
    }
    pending_count = left;
}

static void buffer_wanted(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = malloc(BUFFER);
    *size = *buffer ? BUFFER : 0;
    *records = 0;
}

static void buffer_read(void *context, uint32_t stream, uint8_t *buffer, size_t valid) {
    void *record = NULL;
    if (trace.header && getpid() == owner) {
        settle(pending_count > MOST_PENDING / 2);
        while (valid && !cupti.cuptiActivityGetNextRecord(buffer, valid, &record)) {
            int kind = *(const int *)record;
            if (kind == ACTIVITY_KERNEL) {
                const KernelActivity *kernel = record;
                if (is_matched(kernel)) continue;
                if (pending_count == MOST_PENDING) settle(1);
                pending[pending_count++] = *kernel;
            } else if (kind == ACTIVITY_MEMCPY || kind == ACTIVITY_MEMSET) {
                const CopyActivity *copy = record;
                uint32_t place = copy->correlation & (RING - 1);
                if (copy->correlation && ring[place].correlation == copy->correlation) continue; /* our own */
                trace.header->copies++;
                trace.header->copied_bytes += copy->bytes;
                if (copy->end > copy->start) trace.header->copied_ns += copy->end - copy->start;
            }
        }
        size_t dropped = 0;
        if (cupti.cuptiActivityGetNumDroppedRecords &&
            !cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped))
            trace.header->dropped += dropped;
    }
    free(buffer);
}

static void buffer_done(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)size;
    event_happens((Event){.kind = EVENT_BUFFER, .context = context, .stream = stream, .data = buffer, .size = valid});
}

#endif
