/* Memory around a launch of a chosen kernel: before, after, and after it was made again from the same contents.
 * The program goes on with what its own launch left. */
#ifndef TUNESMITH_KEEP_H
#define TUNESMITH_KEEP_H

#include "launches.h"

enum { MOST_RANGES = 64 };

typedef struct {
    uint64_t base, start, size; /* `size` 0: nothing was kept of it */
    uint64_t extent;            /* of the allocation from `start` on */
    uint32_t before, after, again, reserved; /* numbers of files; 0: none */
} RangeRecord;

typedef struct {
    RecordHead head;
    uint32_t class_index, ranges, pointers, argument_bytes;
    /* ranges, pointers, the arguments' bytes */
} KeptRecord;

typedef struct {
    uint32_t class_index, ranges, pointers, bytes;
    int whole; /* every range in full, so that the launch can be made again */
    RangeRecord range[MOST_RANGES];
    char *before[MOST_RANGES];
    PointerRecord pointer[MOST_POINTERS];
    char argument[MOST_ARGUMENT_BYTES];
} Keeping;

static struct {
    const char *names; /* separated by newlines; one is in the name of each kernel that is wanted */
    uint64_t bytes, launches, used, kept;
    Table done; /* classes */
} wanted = {NULL, (uint64_t)1 << 30, 8, 0, 0, {NULL, NULL, 0, 0}};

static char file_prefix[4096];
static uint32_t file_count;

/* Its number, or 0. */
static uint32_t write_file(const char *what, const void *data, size_t size) {
    char path[4200];
    snprintf(path, sizeof path, "%s-%s-%u.bin", file_prefix, what, file_count + 1);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0) return 0;
    const char *from = data;
    size_t left = size;
    while (left) {
        ssize_t written = write(file, from, left);
        if (written <= 0) break;
        from += written;
        left -= (size_t)written;
    }
    if (close(file) || left) {
        unlink(path);
        return 0;
    }
    return ++file_count;
}

static int is_wanted(const char *symbol) {
    if (!wanted.names || !symbol) return 0;
    for (const char *from = wanted.names; *from;) {
        size_t length = strcspn(from, "\n");
        if (length) {
            for (const char *at = symbol; *at; at++)
                if (!strncmp(at, from, length)) return 1;
        }
        from += length + (from[length] == '\n');
    }
    return 0;
}

/* With the lock held, right after `class_of` has looked at the launch. NULL: there is nothing to keep of it. */
static Keeping *keep_planned(const Launch *launch, uint32_t class_index) {
    if (class_index >= IGNORED || wanted.kept >= wanted.launches) return NULL;
    if (table_at(&wanted.done, (uint64_t)class_index + 1, 0)) return NULL;
    Function *function = function_at(launch->function, launch->symbol);
    if (!function || !function->params || !gather(launch, function)) return NULL;
    Keeping *plan = calloc(1, sizeof *plan);
    if (!plan) return NULL;
    plan->class_index = class_index;
    plan->bytes = function->bytes;
    plan->whole = 1;
    memcpy(plan->argument, words, function->bytes);
    for (uint32_t i = 0; i < function->words && plan->pointers < MOST_POINTERS; i++) {
        PointerRecord *one = &plan->pointer[plan->pointers];
        uint64_t value = words[function->places[i]];
        if (!is_like_address(value) || !memory_at(value, one)) continue;
        one->at = 8u * function->places[i];
        plan->pointers++;
        uint32_t at = 0;
        while (at < plan->ranges && plan->range[at].base != one->base) at++;
        if (at == MOST_RANGES) {
            plan->whole = 0;
            continue;
        }
        RangeRecord *range = &plan->range[at];
        if (at == plan->ranges) {
            plan->ranges++;
            *range = (RangeRecord){one->base, one->offset, 0, 0, 0, 0, 0, 0};
        }
        if (one->offset < range->start) range->start = one->offset;
        range->extent = one->size - range->start;
    }
    for (uint32_t i = 0; i < plan->ranges; i++) {
        RangeRecord *range = &plan->range[i];
        uint64_t left = wanted.bytes - wanted.used; /* a file before and up to two after */
        range->size = 3 * range->extent <= left ? range->extent : 0;
        plan->whole &= range->size == range->extent;
        wanted.used += 3 * range->size;
    }
    uint32_t *done = table_at(&wanted.done, (uint64_t)class_index + 1, 1);
    if (done) *done = 1;
    wanted.kept++;
    return plan;
}

static void keep_forgotten(Keeping *plan) {
    for (uint32_t i = 0; plan && i < plan->ranges; i++) free(plan->before[i]);
    free(plan);
}

/* Without the lock: what the driver does here may need threads that want it. */
static int keep_before(Keeping *plan) {
    if (!cuda.cuCtxSynchronize || !cuda.cuMemcpyDtoH_v2 || cuda.cuCtxSynchronize()) return 0;
    for (uint32_t i = 0; i < plan->ranges; i++) {
        RangeRecord *range = &plan->range[i];
        if (!range->size) continue;
        if (!(plan->before[i] = malloc(range->size))) return 0;
        if (cuda.cuMemcpyDtoH_v2(plan->before[i], range->base + range->start, range->size)) return 0;
    }
    return 1;
}

static void keep_files(Keeping *plan, int again, char **contents) {
    for (uint32_t i = 0; i < plan->ranges; i++) {
        RangeRecord *range = &plan->range[i];
        if (!range->size || !contents[i]) continue;
        if (!again) range->before = write_file("kept", plan->before[i], range->size);
        *(again ? &range->again : &range->after) = write_file("kept", contents[i], range->size);
    }
}

static int keep_read(const Keeping *plan, char **contents) {
    if (cuda.cuCtxSynchronize()) return 0;
    for (uint32_t i = 0; i < plan->ranges; i++) {
        const RangeRecord *range = &plan->range[i];
        if (!range->size) continue;
        if (!contents[i] && !(contents[i] = malloc(range->size))) return 0;
        if (cuda.cuMemcpyDtoH_v2(contents[i], range->base + range->start, range->size)) return 0;
    }
    return 1;
}

static int keep_restored(const Keeping *plan, char *const *contents) {
    for (uint32_t i = 0; i < plan->ranges; i++) {
        const RangeRecord *range = &plan->range[i];
        if (range->size && cuda.cuMemcpyHtoD_v2(range->base + range->start, contents[i], range->size)) return 0;
    }
    return 1;
}

/* The launch has been made. `repeat` makes it again, and is NULL where that cannot be done. */
static void keep_after(Keeping *plan, int (*repeat)(const void *), const void *call) {
    char *after[MOST_RANGES] = {NULL}, *again[MOST_RANGES] = {NULL};
    if (keep_read(plan, after)) {
        keep_files(plan, 0, after);
        if (repeat && plan->whole && cuda.cuMemcpyHtoD_v2 && keep_restored(plan, plan->before)) {
            if (!repeat(call) && keep_read(plan, again)) keep_files(plan, 1, again);
            keep_restored(plan, after);
        }
    }
    for (uint32_t i = 0; i < plan->ranges; i++) {
        free(after[i]);
        free(again[i]);
    }
}

/* With the lock held. */
static void keep_recorded(const Keeping *plan) {
    size_t ranges = plan->ranges * sizeof(RangeRecord), listed = plan->pointers * sizeof(PointerRecord);
    KeptRecord *record = trace_record(RECORD_KEPT, sizeof *record + ranges + listed + plan->bytes);
    if (!record) return;
    record->class_index = plan->class_index;
    record->ranges = plan->ranges;
    record->pointers = plan->pointers;
    record->argument_bytes = plan->bytes;
    char *at = (char *)(record + 1);
    memcpy(at, plan->range, ranges);
    memcpy(at + ranges, plan->pointer, listed);
    memcpy(at + ranges + listed, plan->argument, plan->bytes);
    trace_commit(record);
}

#endif
