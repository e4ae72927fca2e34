/* The few things of CUDA's driver and of CUPTI that are used, declared by ourselves, so that no toolkit is needed
 * to compile this. Layouts are those of CUDA 11.7 to 13, whose structs only grow at their ends. */
#ifndef TUNESMITH_DRIVER_H
#define TUNESMITH_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t Address;

/* -- CUDA ----------------------------------------------------------------------------------------------- */

typedef struct {
    int id;
    char pad[4];
    union {
        char room[64];
        int cooperative;
        struct { unsigned x, y, z; } cluster;
    } value;
} LaunchAttribute;

typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream;
    LaunchAttribute *attributes;
    unsigned attribute_count;
} LaunchConfig;

typedef struct {
    void *function;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    void *kernel, *context;
} KernelNodeParams;

enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4 };
enum { FUNCTION_SHARED = 1, FUNCTION_LOCAL = 3, FUNCTION_REGISTERS = 4, FUNCTION_PTX = 5, FUNCTION_BINARY = 6 };
enum { POINTER_MEMORY_TYPE = 2, POINTER_MANAGED = 8, POINTER_RANGE_START = 11, POINTER_RANGE_SIZE = 12 };
enum { DEVICE_SMS = 16, DEVICE_CLOCK = 36, DEVICE_BUS = 37, DEVICE_L2 = 38, DEVICE_MAJOR = 75, DEVICE_MINOR = 76 };

static struct {
    int (*cuDriverGetVersion)(int *);
    int (*cuCtxGetDevice)(int *);
    int (*cuCtxSynchronize)(void);
    int (*cuDeviceGetName)(char *, int, int);
    int (*cuDeviceGetAttribute)(int *, int, int);
    int (*cuDeviceTotalMem_v2)(size_t *, int);
    int (*cuFuncGetName)(const char **, void *);
    int (*cuFuncGetAttribute)(int *, int, void *);
    int (*cuFuncGetParamInfo)(void *, size_t, size_t *, size_t *);
    int (*cuFuncLoad)(void *);
    int (*cuKernelGetName)(const char **, void *);
    int (*cuKernelGetFunction)(void **, void *);
    int (*cuKernelGetParamInfo)(void *, size_t, size_t *, size_t *);
    int (*cuPointerGetAttributes)(unsigned, const int *, void **, Address);
    int (*cuMemGetAddressRange_v2)(Address *, size_t *, Address);
    int (*cuMemcpyDtoH_v2)(void *, Address, size_t);
    int (*cuMemcpyHtoD_v2)(Address, const void *, size_t);
    int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
    int (*cuLaunchKernelEx)(const LaunchConfig *, void *, void **, void **);
} cuda;

static int find_cuda(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) return 0;
#define FIND(name) *(void **)&cuda.name = dlsym(library, #name)
    FIND(cuDriverGetVersion);
    FIND(cuCtxGetDevice);
    FIND(cuCtxSynchronize);
    FIND(cuDeviceGetName);
    FIND(cuDeviceGetAttribute);
    FIND(cuDeviceTotalMem_v2);
    FIND(cuFuncGetName);
    FIND(cuFuncGetAttribute);
    FIND(cuFuncGetParamInfo);
    FIND(cuFuncLoad);
    FIND(cuKernelGetName);
    FIND(cuKernelGetFunction);
    FIND(cuKernelGetParamInfo);
    FIND(cuPointerGetAttributes);
    FIND(cuMemGetAddressRange_v2);
    FIND(cuMemcpyDtoH_v2);
    FIND(cuMemcpyHtoD_v2);
    FIND(cuLaunchKernel);
    FIND(cuLaunchKernelEx);
#undef FIND
    return 1;
}

/* -- CUPTI ---------------------------------------------------------------------------------------------- */

enum { DOMAIN_DRIVER = 1, DOMAIN_RESOURCE = 3 };
enum { SITE_ENTER = 0, SITE_EXIT = 1 };
enum {
    CB_LAUNCH = 307,
    CB_LAUNCH_PTSZ = 442,
    CB_COOPERATIVE = 477,
    CB_COOPERATIVE_PTSZ = 478,
    CB_LAUNCH_EX = 652,
    CB_LAUNCH_EX_PTSZ = 653,
    CB_GRAPH_LAUNCH = 514,
    CB_GRAPH_LAUNCH_PTSZ = 515,
    CB_BEGIN = 495,
    CB_BEGIN_PTSZ = 496,
    CB_BEGIN_V2 = 539,
    CB_BEGIN_V2_PTSZ = 540,
    CB_BEGIN_TO_GRAPH = 720,
    CB_BEGIN_TO_GRAPH_PTSZ = 721,
    CB_END = 497,
    CB_HTOD = 276,
    CB_DTOH = 278,
    CB_END_PTSZ = 498,
    CB_ADD_KERNEL_NODE = 502,
    CB_ADD_KERNEL_NODE_V2 = 689,
    CB_ADD_NODE = 712,
    CB_ADD_NODE_V2 = 723,
};
enum { RESOURCE_MODULE_LOADED = 6, RESOURCE_MODULE_UNLOADING = 7, RESOURCE_NODE_CREATED = 13, RESOURCE_NODE_CLONED = 20 };
enum { ACTIVITY_MEMCPY = 1, ACTIVITY_MEMSET = 2, ACTIVITY_KERNEL = 10 };
enum { NODE_KERNEL = 0 };

typedef struct {
    int site;
    const char *function;
    const void *params;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_id;
    uint64_t *correlation_data;
    uint32_t correlation;
} CallbackData;

typedef struct { void *context, *handle, *descriptor; } ResourceData;
typedef struct { uint32_t module; size_t size; const char *cubin; } ModuleData;
typedef struct { void *graph, *original_graph, *node, *original_node; int node_type; } GraphData;

typedef struct {
    void *function;
    unsigned grid[3], block[3], shared;
    void *stream;
    void **params, **extra;
} LaunchParams; /* of cuLaunchKernel; cuLaunchCooperativeKernel's has no `extra` */

typedef struct {
    const LaunchConfig *config;
    void *function;
    void **params, **extra;
} LaunchExParams;

typedef struct {
    int kind;
    uint8_t cache, shared_config;
    uint16_t registers;
    int partitioned[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared, shared;
    uint32_t local, local_total, correlation;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, carveout_requested, carveout, padding;
    uint32_t shared_executed;
    uint64_t node;
} KernelActivity;

typedef struct {
    int kind;
    uint32_t various;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
} CopyActivity;

_Static_assert(offsetof(KernelActivity, correlation) == 92 && offsetof(KernelActivity, node) == 144, "CUPTI's layout");
_Static_assert(offsetof(CallbackData, correlation) == 64 && sizeof(LaunchAttribute) == 72, "CUPTI's layout");

typedef void (*Callback)(void *, int, uint32_t, const void *);

static struct {
    int (*cuptiSubscribe)(void **, Callback, void *);
    int (*cuptiUnsubscribe)(void *);
    int (*cuptiEnableCallback)(uint32_t, void *, int, uint32_t);
    int (*cuptiActivityRegisterCallbacks)(void (*)(uint8_t **, size_t *, size_t *),
                                          void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
    int (*cuptiActivityEnable)(int);
    int (*cuptiActivityDisable)(int);
    int (*cuptiActivityFlushAll)(uint32_t);
    int (*cuptiActivityGetNextRecord)(uint8_t *, size_t, void **);
    int (*cuptiActivityGetNumDroppedRecords)(void *, uint32_t, size_t *);
    int (*cuptiGetGraphNodeId)(void *, uint64_t *);
    int (*cuptiGetResultString)(int, const char **);
} cupti;

static int take_cupti(void *library) {
    if (!library) return 0;
#define FIND(name) *(void **)&cupti.name = dlsym(library, #name)
    FIND(cuptiSubscribe);
    FIND(cuptiUnsubscribe);
    FIND(cuptiEnableCallback);
    FIND(cuptiActivityRegisterCallbacks);
    FIND(cuptiActivityEnable);
    FIND(cuptiActivityDisable);
    FIND(cuptiActivityFlushAll);
    FIND(cuptiActivityGetNextRecord);
    FIND(cuptiActivityGetNumDroppedRecords);
    FIND(cuptiGetGraphNodeId);
    FIND(cuptiGetResultString);
#undef FIND
    return cupti.cuptiSubscribe && cupti.cuptiEnableCallback && cupti.cuptiActivityRegisterCallbacks &&
           cupti.cuptiActivityEnable && cupti.cuptiActivityFlushAll && cupti.cuptiActivityGetNextRecord;
}

/* One that the program has loaded by now serves first: two in a process get in each other's way. `paths` are
 * others, separated by colons. */
static int find_cupti(const char *paths) {
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (take_cupti(dlopen(names[i], RTLD_NOW | RTLD_NOLOAD))) return 1;
    for (const char *from = paths ? paths : ""; *from;) {
        const char *to = strchr(from, ':');
        size_t length = to ? (size_t)(to - from) : strlen(from);
        char path[4096];
        if (length && length < sizeof path) {
            memcpy(path, from, length);
            path[length] = 0;
            if (take_cupti(dlopen(path, RTLD_NOW))) return 1;
        }
        from += length + (to != NULL);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (take_cupti(dlopen(names[i], RTLD_NOW))) return 1;
    return 0;
}

#endif
