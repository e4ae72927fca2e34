/* Launches as they are told apart: functions, and classes of launches of one that are alike. All of it is done
 * with the lock held. */
#ifndef TUNESMITH_LAUNCHES_H
#define TUNESMITH_LAUNCHES_H

#include "driver.h"
#include "trace.h"

enum { MOST_PARAMS = 1024, MOST_ARGUMENT_BYTES = 32768, MOST_POINTERS = 512, MOST_FUNCTIONS = 1 << 15 };
enum { FLAG_COOPERATIVE = 1, FLAG_GRAPH = 2, FLAG_INCOMPLETE = 4 };
enum { KIND_DEVICE = 1, KIND_MANAGED = 2, KIND_HOST = 3 };
#define NO_CLASS UINT32_MAX
#define IGNORED (UINT32_MAX - 1)

typedef struct {
    RecordHead head;
    uint32_t index, params;
    int32_t registers, shared, local, ptx, binary;
    uint32_t name_length;
    /* `params` pairs of offset and size, then the name */
} FunctionRecord;

typedef struct {
    uint32_t at, kind; /* `at`: byte of all arguments */
    uint64_t base, size, offset, least;
} PointerRecord;

typedef struct {
    RecordHead head;
    uint32_t index, function;
    uint32_t grid[3], block[3], shared, cluster[3], device, flags;
    uint64_t count, timed, ns, least_ns, streams;
    uint32_t argument_bytes, pointers;
    /* pointers, then the arguments' bytes */
} ClassRecord;

typedef struct {
    uint32_t index, params, bytes, words, looks, classes, rest;
    uint32_t cluster[3];
    uint32_t *offsets, *sizes;
    uint16_t *places; /* words in which a pointer may lie */
    uint8_t *known;   /* by word: a pointer was seen there */
} Function;

typedef struct {
    void *function, *stream;
    unsigned grid[3], block[3], shared, cluster[3];
    void **params, **extra;
    const char *symbol;
    uint32_t device, flags;
} Launch;

static struct { uint64_t classes, looks, launches; } limits = {64, 256, 1000000};

/* -- a table from 64 bits to 32, for what never leaves it ------------------------------------------------ */

typedef struct { uint64_t *keys; uint32_t *values; uint32_t room, used; } Table;

static uint64_t mixed(uint64_t value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    return value ^ value >> 32;
}

static uint64_t hashed(uint64_t seed, const void *data, size_t size) {
    const char *from = data;
    uint64_t word, hash = mixed(seed ^ size);
    for (; size >= 8; size -= 8, from += 8) {
        memcpy(&word, from, 8);
        hash = mixed(hash ^ word) + 0x9e3779b97f4a7c15u;
    }
    if (size) {
        word = 0;
        memcpy(&word, from, size);
        hash = mixed(hash ^ word);
    }
    return hash ? hash : 1; /* 0 marks an empty place */
}

static uint32_t *table_at(Table *table, uint64_t key, int add) {
    if (!key) key = 1;
    if (add && 4 * (uint64_t)(table->used + 1) > 3 * (uint64_t)table->room) {
        Table larger = {NULL, NULL, table->room ? 2 * table->room : 256, table->used};
        larger.keys = calloc(larger.room, sizeof *larger.keys);
        larger.values = calloc(larger.room, sizeof *larger.values);
        if (!larger.keys || !larger.values) {
            free(larger.keys);
            free(larger.values);
            return NULL;
        }
        for (uint32_t i = 0; i < table->room; i++)
            if (table->keys[i]) {
                uint32_t at = (uint32_t)mixed(table->keys[i]) & (larger.room - 1);
                while (larger.keys[at]) at = (at + 1) & (larger.room - 1);
                larger.keys[at] = table->keys[i];
                larger.values[at] = table->values[i];
            }
        free(table->keys);
        free(table->values);
        *table = larger;
    }
    if (!table->room) return NULL;
    uint32_t at = (uint32_t)mixed(key) & (table->room - 1);
    while (table->keys[at] && table->keys[at] != key) at = (at + 1) & (table->room - 1);
    if (table->keys[at]) return &table->values[at];
    if (!add) return NULL;
    table->keys[at] = key;
    table->used++;
    table->values[at] = NO_CLASS;
    return &table->values[at];
}

static void table_clear(Table *table) {
    free(table->keys);
    free(table->values);
    *table = (Table){NULL, NULL, 0, 0};
}

/* -- functions ------------------------------------------------------------------------------------------ */

static Function *functions[MOST_FUNCTIONS];
static uint32_t function_count;
static Table by_handle, by_identity; /* to a function's number */

static int param_info(void *handle, size_t index, size_t *offset, size_t *size) {
    if (cuda.cuFuncGetParamInfo && !cuda.cuFuncGetParamInfo(handle, index, offset, size)) return 1;
    return cuda.cuKernelGetParamInfo && !cuda.cuKernelGetParamInfo(handle, index, offset, size);
}

static int32_t function_attribute(void *handle, int attribute) {
    int value = -1;
    if (!handle || !cuda.cuFuncGetAttribute || cuda.cuFuncGetAttribute(&value, attribute, handle)) return -1;
    return value;
}

/* A function by its name and what it takes; `attributes` are registers, shared, local, PTX and binary version. */
static Function *function_of(const char *name, const size_t *offsets, const size_t *sizes, uint32_t params,
                             const int32_t attributes[5]) {
    size_t length = strlen(name);
    uint64_t identity = hashed(hashed(params, attributes, 5 * sizeof *attributes), name, length);
    if (params) identity = hashed(hashed(identity, offsets, params * sizeof *offsets), sizes, params * sizeof *sizes);
    uint32_t *known = table_at(&by_identity, identity, 1);
    if (!known) return NULL;
    if (*known != NO_CLASS) return functions[*known];
    if (function_count >= MOST_FUNCTIONS) return NULL;
    Function *made = calloc(1, sizeof *made);
    FunctionRecord *record =
        trace_record(RECORD_FUNCTION, sizeof *record + params * 2 * sizeof(uint32_t) + length + 1);
    if (!made || !record) {
        free(made);
        return NULL;
    }
    made->index = record->index = function_count;
    made->params = record->params = params;
    record->registers = attributes[0];
    record->shared = attributes[1];
    record->local = attributes[2];
    record->ptx = attributes[3];
    record->binary = attributes[4];
    record->name_length = (uint32_t)length;
    uint32_t *pairs = (uint32_t *)(record + 1);
    made->offsets = calloc(params + 1, sizeof *made->offsets);
    made->sizes = calloc(params + 1, sizeof *made->sizes);
    made->places = calloc(MOST_ARGUMENT_BYTES / 8, sizeof *made->places);
    made->known = calloc(MOST_ARGUMENT_BYTES / 8, 1);
    if (!made->offsets || !made->sizes || !made->places || !made->known) return NULL;
    for (uint32_t i = 0; i < params; i++) {
        made->offsets[i] = pairs[2 * i] = (uint32_t)offsets[i];
        made->sizes[i] = pairs[2 * i + 1] = (uint32_t)sizes[i];
        if (made->bytes < offsets[i] + sizes[i]) made->bytes = (uint32_t)(offsets[i] + sizes[i]);
        for (size_t at = (offsets[i] + 7) / 8 * 8; at + 8 <= offsets[i] + sizes[i]; at += 8)
            made->places[made->words++] = (uint16_t)(at / 8);
    }
    memcpy(pairs + 2 * params, name, length);
    trace_commit(record);
    functions[function_count] = made;
    *known = function_count++;
    return made;
}

/* By its handle, which is a CUfunction or a CUkernel. */
static Function *function_at(void *handle, const char *symbol) {
    uint32_t *known = table_at(&by_handle, (uint64_t)(uintptr_t)handle, 0);
    if (known) return functions[*known];
    static size_t offsets[MOST_PARAMS], sizes[MOST_PARAMS];
    void *function = handle;
    const char *name = symbol;
    if (!name && cuda.cuFuncGetName && cuda.cuFuncGetName(&name, handle)) name = NULL;
    if (!name && cuda.cuKernelGetName && cuda.cuKernelGetName(&name, handle)) name = NULL;
    uint32_t params = 0;
    if (!param_info(handle, 0, &offsets[0], &sizes[0]) && cuda.cuFuncLoad) cuda.cuFuncLoad(handle);
    while (params < MOST_PARAMS && param_info(handle, params, &offsets[params], &sizes[params])) {
        if (offsets[params] + sizes[params] > MOST_ARGUMENT_BYTES) break;
        params++;
    }
    int32_t attributes[5] = {function_attribute(function, FUNCTION_REGISTERS), -1, -1, -1, -1};
    if (attributes[0] < 0 && cuda.cuKernelGetFunction && !cuda.cuKernelGetFunction(&function, handle))
        attributes[0] = function_attribute(function, FUNCTION_REGISTERS);
    attributes[1] = function_attribute(function, FUNCTION_SHARED);
    attributes[2] = function_attribute(function, FUNCTION_LOCAL);
    attributes[3] = function_attribute(function, FUNCTION_PTX);
    attributes[4] = function_attribute(function, FUNCTION_BINARY);
    Function *found = function_of(name ? name : "", offsets, sizes, params, attributes);
    if (!found) return NULL;
    for (int i = 0; i < 3; i++) { /* of __cluster_dims__ */
        int32_t required = function_attribute(function, 11 + i);
        found->cluster[i] = required > 0 ? (uint32_t)required : 0;
    }
    if ((known = table_at(&by_handle, (uint64_t)(uintptr_t)handle, 1))) *known = found->index;
    return found;
}

/* -- arguments ------------------------------------------------------------------------------------------ */

static uint64_t words[MOST_ARGUMENT_BYTES / 8];  /* the arguments of the launch that is looked at */
static uint64_t blurred[MOST_ARGUMENT_BYTES / 8]; /* the same without addresses */
static PointerRecord pointers[MOST_POINTERS];

static int gather(const Launch *launch, const Function *function) {
    memset(words, 0, (function->bytes + 7) / 8 * 8);
    if (!function->params) return 0;
    if (launch->params) {
        for (uint32_t i = 0; i < function->params; i++) {
            if (!launch->params[i]) return 0;
            memcpy((char *)words + function->offsets[i], launch->params[i], function->sizes[i]);
        }
        return 1;
    }
    const void *from = NULL;
    size_t size = 0;
    for (void **at = launch->extra; at && *at; at += 2) { /* CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE */
        if (*at == (void *)1) from = at[1];
        if (*at == (void *)2) size = *(const size_t *)at[1];
    }
    if (!from) return 0;
    memcpy(words, from, size < function->bytes ? size : function->bytes);
    return 1;
}

static int is_like_address(uint64_t value) { return value >= (uint64_t)1 << 32 && value < (uint64_t)1 << 56; }

static int memory_at(uint64_t value, PointerRecord *found) {
    unsigned type = 0;
    int managed = 0;
    Address base = 0;
    size_t size = 0;
    static const int wanted[] = {POINTER_MEMORY_TYPE, POINTER_MANAGED, POINTER_RANGE_START, POINTER_RANGE_SIZE};
    void *into[] = {&type, &managed, &base, &size};
    if (!cuda.cuPointerGetAttributes || cuda.cuPointerGetAttributes(4, wanted, into, value)) type = 0, size = 0;
    if (!size && (!cuda.cuMemGetAddressRange_v2 || cuda.cuMemGetAddressRange_v2(&base, &size, value))) return 0;
    if (!size || value < base || value - base >= size) return 0;
    found->kind = managed ? KIND_MANAGED : type == 1 ? KIND_HOST : KIND_DEVICE;
    found->base = base;
    found->size = size;
    found->offset = value - base;
    found->least = size - found->offset;
    return 1;
}

/* Which words are pointers: `*count` of them, and whether the driver was asked for all. */
static int look(Function *function, uint32_t *count) {
    int asks = function->looks < limits.looks;
    if (asks) function->looks++;
    memcpy(blurred, words, (function->bytes + 7) / 8 * 8);
    *count = 0;
    for (uint32_t i = 0; i < function->words; i++) {
        uint16_t place = function->places[i];
        uint64_t value = words[place];
        if (!is_like_address(value)) continue;
        if (asks && *count < MOST_POINTERS && memory_at(value, &pointers[*count])) {
            pointers[(*count)++].at = 8u * place;
            function->known[place] = 1;
        } else if (!function->known[place]) {
            continue;
        }
        uint64_t alignment = value & -value;
        blurred[place] = (uint64_t)0xADD2E55 << 32 | (alignment < 256 ? alignment : 256);
    }
    return asks;
}

/* -- classes -------------------------------------------------------------------------------------------- */

static ClassRecord **classes;
static uint32_t class_count, class_room;
static Table by_likeness; /* to a class's number */

static ClassRecord *class_made(const Function *function, const Launch *launch, uint32_t pointer_count, int complete) {
    if (class_count == class_room) {
        uint32_t larger = class_room ? 2 * class_room : 256;
        ClassRecord **moved = realloc(classes, larger * sizeof *moved);
        if (!moved) return NULL;
        classes = moved;
        class_room = larger;
    }
    size_t bytes = complete ? function->bytes : 0, listed = complete ? pointer_count * sizeof(PointerRecord) : 0;
    ClassRecord *record = trace_record(RECORD_CLASS, sizeof *record + listed + bytes);
    if (!record) return NULL;
    record->index = class_count;
    record->function = function->index;
    memcpy(record->grid, launch->grid, sizeof record->grid);
    memcpy(record->block, launch->block, sizeof record->block);
    memcpy(record->cluster, launch->cluster[0] ? launch->cluster : function->cluster, sizeof record->cluster);
    record->shared = launch->shared;
    record->device = launch->device;
    record->flags = launch->flags | (complete ? 0 : FLAG_INCOMPLETE);
    record->argument_bytes = (uint32_t)bytes;
    record->pointers = complete ? pointer_count : 0;
    memcpy(record + 1, pointers, listed);
    memcpy((char *)(record + 1) + listed, words, bytes);
    trace_commit(record);
    classes[class_count++] = record;
    return record;
}

static uint64_t geometry(const Function *function, const Launch *launch) {
    uint32_t all[] = {function->index,  launch->grid[0],   launch->grid[1],  launch->grid[2],    launch->block[0],
                      launch->block[1], launch->block[2],  launch->shared,   launch->cluster[0], launch->cluster[1],
                      launch->cluster[2], launch->device, launch->flags, 0};
    return hashed(7, all, sizeof all);
}

/* Of launches whose arguments are not told apart. */
static uint32_t rest_class(Function *function, const Launch *launch) {
    int told = function->rest < limits.classes;
    uint64_t key = mixed((told ? geometry(function, launch) : function->index) ^ 0x5e57);
    uint32_t *number = table_at(&by_likeness, key, 1);
    if (!number) return NO_CLASS;
    if (*number == NO_CLASS) {
        ClassRecord *made = class_made(function, launch, 0, 0);
        if (!made) return NO_CLASS;
        function->rest++;
        *number = made->index;
    }
    return *number;
}

static void lessen(ClassRecord *record, uint32_t count) {
    PointerRecord *known = (PointerRecord *)(record + 1);
    for (uint32_t i = 0, j = 0; i < record->pointers && j < count;) {
        if (known[i].at == pointers[j].at) {
            if (pointers[j].least < known[i].least) known[i].least = pointers[j].least;
            i++;
            j++;
        } else if (known[i].at < pointers[j].at) {
            i++;
        } else {
            j++;
        }
    }
}

/* The class of a launch. Where the arguments are those of an earlier one bit for bit, nobody is asked. */
static uint32_t class_of(const Launch *launch, uint64_t seen_before) {
    static Table exact;
    static uint32_t exact_used;
    Function *function = function_at(launch->function, launch->symbol);
    if (!function) return NO_CLASS;
    int gathered = gather(launch, function);
    if ((!gathered && function->params) || seen_before > limits.launches) return rest_class(function, launch);
    uint64_t key = geometry(function, launch);
    uint64_t raw = hashed(key, words, (function->bytes + 7) / 8 * 8);
    uint32_t *number = table_at(&exact, raw, 0);
    if (number) return *number;
    uint32_t count = 0;
    int asked = look(function, &count);
    uint64_t likeness = hashed(key ^ 1, blurred, (function->bytes + 7) / 8 * 8);
    number = table_at(&by_likeness, likeness, 0);
    uint32_t found = number ? *number : NO_CLASS;
    if (found != NO_CLASS) {
        if (asked) lessen(classes[found], count);
    } else if (!asked || function->classes >= limits.classes) {
        return rest_class(function, launch);
    } else {
        ClassRecord *made = class_made(function, launch, count, function->params > 0);
        if (!made || !(number = table_at(&by_likeness, likeness, 1))) return NO_CLASS;
        function->classes++;
        found = *number = made->index;
    }
    if (++exact_used > 1 << 16) { /* addresses that never come again must not pile up */
        table_clear(&exact);
        exact_used = 1;
    }
    if ((number = table_at(&exact, raw, 1))) *number = found;
    return found;
}

#endif
