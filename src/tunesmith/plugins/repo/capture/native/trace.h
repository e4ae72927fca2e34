/* The file of one process: records that are appended to a shared mapping, so that whatever was written is there
 * when the process is killed. A record is whole before the header's length takes it in. Counters are changed in
 * place. Everything is little-endian, 8 bytes aligned; capture/trace.py reads it. */
#ifndef TUNESMITH_TRACE_H
#define TUNESMITH_TRACE_H

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRACE_MAGIC "TSWATCH1"
enum { TRACE_MOST = 64 << 20, TRACE_STEP = 1 << 20 };

enum {
    RECORD_PROCESS = 1,
    RECORD_DEVICE = 2,
    RECORD_FUNCTION = 3,
    RECORD_CLASS = 4,
    RECORD_IMAGE = 5,
    RECORD_KEPT = 6,
    RECORD_NOTE = 7,
    RECORD_ORDER = 8,
};

/* Beside the length: what is counted over all launches. */
typedef struct {
    char magic[8];
    uint64_t length; /* of the header and the records that are whole */
    uint64_t launches, failed, graphs, dropped, forks, unseen, copies, copied_bytes, copied_ns;
    uint64_t first_ns, last_ns; /* of kernels, by the device's clock */
    uint64_t ended;             /* 1: the process came to its end */
    uint64_t full;              /* 1: there was no room for a record; 2: the disk is full */
    uint64_t images_left;       /* modules that were not stored */
} TraceHeader;

typedef struct { uint32_t type, size; } RecordHead; /* `size`: of all of it */

static struct {
    int file;
    uint64_t room; /* bytes that the file has */
    TraceHeader *header;
} trace = {-1, 0, NULL};

static int trace_grow(uint64_t least) {
    uint64_t wanted = (least + TRACE_STEP - 1) / TRACE_STEP * TRACE_STEP;
    if (wanted > TRACE_MOST) {
        trace.header->full = 1;
        return 0;
    }
    /* Not ftruncate: a page for which the disk has no room would kill the program when it is touched. */
    if (posix_fallocate(trace.file, 0, (off_t)wanted)) {
        if (trace.header) trace.header->full = 2;
        return 0;
    }
    trace.room = wanted;
    return 1;
}

static int trace_open(const char *path) {
    trace.file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (trace.file < 0 || !trace_grow(sizeof(TraceHeader))) return 0;
    void *at = mmap(NULL, TRACE_MOST, PROT_READ | PROT_WRITE, MAP_SHARED, trace.file, 0);
    if (at == MAP_FAILED) return 0;
    trace.header = at;
    trace.header->length = sizeof(TraceHeader);
    memcpy(trace.header->magic, TRACE_MAGIC, 8);
    return 1;
}

/* Zeroed room for a record, which is not there until `trace_commit`; NULL where there is none. */
static void *trace_record(uint32_t type, size_t size) {
    size = (size + 7) & ~(size_t)7;
    uint64_t at = trace.header->length;
    if (trace.header->full) return NULL;
    if (at + size > trace.room && !trace_grow(at + size)) return NULL;
    RecordHead *record = (RecordHead *)((char *)trace.header + at);
    memset(record, 0, size);
    record->type = type;
    record->size = (uint32_t)size;
    return record;
}

static void trace_commit(const void *record) {
    __atomic_store_n(&trace.header->length, trace.header->length + ((const RecordHead *)record)->size, __ATOMIC_RELEASE);
}

static void trace_note(const char *text) {
    size_t length = strlen(text);
    char *record = trace_record(RECORD_NOTE, sizeof(RecordHead) + length + 1);
    if (!record) return;
    memcpy(record + sizeof(RecordHead), text, length);
    trace_commit(record);
}

/* Nothing is written after that; what the file has too much goes. */
static void trace_close(void) {
    if (!trace.header) return;
    uint64_t length = trace.header->length;
    munmap(trace.header, TRACE_MOST);
    trace.header = NULL;
    if (ftruncate(trace.file, (off_t)length)) trace.room = length;
    close(trace.file);
    trace.file = -1;
}

#endif
