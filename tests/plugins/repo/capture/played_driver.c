/* Plays CUDA's driver and CUPTI, so that the library that watches really runs where there is no GPU. Memory is the
 * host's. Kernels do what their names say:
 *     scale(float *, int n, float factor)   multiplies
 *     count(int *)                          adds one, and a number that differs from launch to launch
 *     plan(struct { float *in; float *out; int n; })   copies
 * An image is a text; it holds each kernel that it names, and "broken" cannot be loaded.
 * Anything else does nothing. A launch takes 1000 ns for each block. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char name[64000]; int params, loaded; size_t offsets[64], sizes[64]; } Function;
typedef struct { uint64_t base; size_t size; } Block;
typedef struct { unsigned grid[3], block[3], shared; void *stream; void *attributes; unsigned count; } Config;
typedef struct { void *function; unsigned grid[3], block[3], shared; void *stream; void **params, **extra; } Plain;
typedef struct { const Config *config; void *function; void **params, **extra; } Ex;
typedef struct {
    int site; const char *function; const void *params; void *result; const char *symbol; void *context;
    uint32_t context_id; uint64_t *data; uint32_t correlation;
} CallbackData;
typedef struct { void *context, *handle, *descriptor; } Resource;
typedef struct { uint32_t module; size_t size; const char *cubin; } Module;
typedef struct { void *graph, *original_graph, *node, *original_node; int type; } Graph;
typedef struct {
    int kind; uint8_t a, b; uint16_t registers; int c[2]; uint64_t start, end, completed; uint32_t device, context,
    stream; int32_t grid[3], block[3], static_shared, shared; uint32_t local, total, correlation; int64_t id;
    const char *name; void *d; uint64_t queued, submitted; uint8_t e[4]; uint32_t f; uint64_t node; char rest[64];
} Kernel;
typedef struct { int kind; uint32_t a; uint64_t bytes, start, end; uint32_t b[3], correlation; } Copy;
typedef void (*Callback)(void *, int, uint32_t, const void *);

static Block blocks[4096];
static int block_count, capturing, node_count, activities[16], refuses;
static Callback callback;
static uint8_t enabled[4][1024];
static uint32_t correlation;
static __thread uint32_t outer; /* what is called within a callback has the number of the call around it */
static uint32_t numbered(void) { return outer ? outer : __atomic_add_fetch(&correlation, 1, __ATOMIC_RELAXED); }
static uint64_t clock_ns = 1000000, runs;
static void (*wanted)(uint8_t **, size_t *, size_t *);
static void (*done)(void *, uint32_t, uint8_t *, size_t, size_t);
static Kernel *kernels;
static int kernel_count, kernel_room;
static struct { Function *function; unsigned grid[3], block[3], shared; void **params; } nodes[256];

/* -- CUPTI ---------------------------------------------------------------------------------------------- */

int cuptiSubscribe(void **handle, Callback given, void *user) {
    (void)user;
    if (getenv("PLAYED_REFUSES") || refuses) return 39;
    callback = given;
    *handle = &callback;
    return 0;
}
int cuptiUnsubscribe(void *handle) { (void)handle; callback = NULL; return 0; }
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id) {
    (void)handle;
    if (domain > 3 || id > 1023) return 1;
    enabled[domain][id] = (uint8_t)on;
    return 0;
}
int cuptiActivityRegisterCallbacks(void (*a)(uint8_t **, size_t *, size_t *),
                                   void (*b)(void *, uint32_t, uint8_t *, size_t, size_t)) {
    wanted = a;
    done = b;
    return 0;
}
int cuptiActivityEnable(int kind) { activities[kind] = 1; return 0; }
int cuptiActivityDisable(int kind) { activities[kind] = 0; return 0; }
int cuptiGetResultString(int result, const char **text) { *text = result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR"; return 0; }
int cuptiGetGraphNodeId(void *node, uint64_t *id) { *id = (uint64_t)(uintptr_t)node; return 0; }
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count) {
    (void)context; (void)stream;
    *count = getenv("PLAYED_DROPS") ? 3 : 0;
    return 0;
}
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record) {
    uint8_t *next = *record ? (uint8_t *)*record + sizeof(Kernel) : buffer;
    if (next + sizeof(Kernel) > buffer + valid) return 12;
    *record = next;
    return 0;
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < kernel_count;) {
        uint8_t *buffer = NULL;
        size_t size = 0, records = 0, filled = 0;
        wanted(&buffer, &size, &records);
        for (; at < kernel_count && filled + sizeof(Kernel) <= size; at++, filled += sizeof(Kernel))
            memcpy(buffer + filled, &kernels[at], sizeof(Kernel));
        done(NULL, 0, buffer, size, filled);
    }
    kernel_count = 0;
    pthread_mutex_unlock(&lock);
    return 0;
}
static void tell(int domain, uint32_t id, const void *data) {
    if (callback && enabled[domain][id]) callback(NULL, domain, id, data);
}
static void record(const Kernel *kernel) {
    if (!activities[kernel->kind]) return;
    pthread_mutex_lock(&lock);
    if (kernel_count == kernel_room) {
        kernel_room = kernel_room ? 2 * kernel_room : 1024;
        kernels = realloc(kernels, (size_t)kernel_room * sizeof *kernels);
    }
    kernels[kernel_count++] = *kernel;
    pthread_mutex_unlock(&lock);
}

/* -- the driver ----------------------------------------------------------------------------------------- */

int cuInit(unsigned flags) {
    (void)flags;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*start)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    return start ? !start() : 0;
}
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuCtxGetDevice(int *device) { *device = getenv("PLAYED_DEVICE") ? atoi(getenv("PLAYED_DEVICE")) : 0; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, (size_t)size, "Played GPU %d", device); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 16 ? 132 : attribute == 75 ? 9 : attribute == 36 ? 1000000 : attribute == 37 ? 4096 : attribute == 38 ? 50 << 20 : 0;
    return 0;
}
int cuDeviceTotalMem_v2(size_t *size, int device) { (void)device; *size = (size_t)80 << 30; return 0; }
int cuFuncGetName(const char **name, Function *function) { *name = function->name; return 0; }
int cuFuncGetAttribute(int *value, int attribute, Function *function) {
    (void)function;
    *value = attribute == 4 ? 24 : attribute == 5 || attribute == 6 ? 90 : 0;
    return 0;
}
/* A module that is loaded when one of its functions is first looked at, as the driver does it. */
static void load_lazily(Function *function) {
    static const char image[] = "not a cubin, but lazy_scale is in it";
    if (!strstr(function->name, "lazy") || function->loaded++) return;
    Module module = {77, sizeof image, image};
    Resource resource = {NULL, NULL, &module};
    tell(3, 6, &resource);
}
int cuFuncGetParamInfo(Function *function, size_t index, size_t *offset, size_t *size) {
    load_lazily(function);
    if (getenv("PLAYED_OLD") || index >= (size_t)function->params) return 1;
    *offset = function->offsets[index];
    *size = function->sizes[index];
    return 0;
}
static Block *block_at(uint64_t address) {
    for (int i = 0; i < block_count; i++)
        if (address >= blocks[i].base && address < blocks[i].base + blocks[i].size) return &blocks[i];
    return NULL;
}
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static int takes_lock;
int cuPointerGetAttributes(unsigned count, const int *asked, void **into, uint64_t address) {
    if (takes_lock) pthread_mutex_lock(&driver_lock);
    Block *block = block_at(address);
    if (takes_lock) pthread_mutex_unlock(&driver_lock);
    for (unsigned i = 0; i < count; i++) {
        if (asked[i] == 2) *(unsigned *)into[i] = block ? 2 : 0;
        if (asked[i] == 8) *(int *)into[i] = 0;
        if (asked[i] == 11) *(uint64_t *)into[i] = block ? block->base : 0;
        if (asked[i] == 12) *(size_t *)into[i] = block ? block->size : 0;
    }
    return 0;
}
int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address) {
    Block *block = block_at(address);
    if (!block) return 1;
    *base = block->base;
    *size = block->size;
    return 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t size) {
    void *at = NULL;
    if (block_count == 4096 || posix_memalign(&at, 512, size)) return 2;
    memset(at, 0, size);
    *address = (uint64_t)(uintptr_t)at;
    blocks[block_count++] = (Block){*address, size};
    return 0;
}
static void copied(uint32_t id, size_t size) {
    Kernel place = {.kind = 1};
    Copy *copy = (Copy *)&place;
    int result = 0;
    uint64_t data = 0;
    CallbackData told = {0, "copy", NULL, &result, NULL, NULL, 1, &data, numbered()};
    tell(1, id, &told);
    told.site = 1;
    tell(1, id, &told);
    copy->correlation = told.correlation;
    copy->bytes = size;
    copy->start = clock_ns;
    copy->end = clock_ns += 500;
    record(&place);
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { memcpy(to, (void *)(uintptr_t)from, size); copied(278, size); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { memcpy((void *)(uintptr_t)to, from, size); copied(276, size); return 0; }

static char ran[1 << 16]; /* names of what was run, each with its blocks */
static void run(const Function *function, void **params, unsigned blocks) {
    size_t used = strlen(ran);
    runs++;
    if (used + 200 < sizeof ran) snprintf(ran + used, 200, "%.150s/%u ", function->name, blocks);
    if (strstr(function->name, "scale") && params) {
        float *values = *(float **)params[0];
        for (int i = 0; i < *(int *)params[1]; i++) values[i] *= *(float *)params[2];
    } else if (strstr(function->name, "count") && params) {
        **(int **)params[0] += 1 + (int)(runs << 8);
    } else if (strstr(function->name, "plan") && params) {
        struct { float *in, *out; int n; } given;
        memcpy(&given, params[0], sizeof given);
        memcpy(given.out, given.in, (size_t)given.n * sizeof(float));
    }
}
static void timed(const Function *function, const unsigned *grid, const unsigned *block, unsigned shared, uint32_t id,
                  uint64_t node) {
    Kernel kernel = {.kind = 10, .registers = 24, .correlation = id, .name = function->name, .node = node};
    for (int i = 0; i < 3; i++) kernel.grid[i] = (int)grid[i], kernel.block[i] = (int)block[i];
    kernel.shared = (int)shared;
    kernel.start = clock_ns;
    kernel.end = clock_ns += 1000ull * grid[0] * grid[1] * grid[2];
    record(&kernel);
}
static int launched(uint32_t id, const void *given, Function *function, const unsigned *grid, const unsigned *block,
                    unsigned shared, void **params) {
    int result = block[0] * block[1] * block[2] > 1024 ? 1 : 0;
    uint64_t data = 0;
    uint32_t own = numbered(), before = outer;
    CallbackData told = {0, "cuLaunchKernel", given, &result, function->name, NULL, 1, &data, own};
    outer = own;
    tell(1, id, &told);
    if (!result && capturing) {
        nodes[++node_count].function = function;
        memcpy(nodes[node_count].grid, grid, 12);
        memcpy(nodes[node_count].block, block, 12);
        Graph graph = {NULL, NULL, (void *)(uintptr_t)node_count, NULL, 0};
        Resource resource = {NULL, NULL, &graph};
        tell(3, 13, &resource);
    } else if (!result) {
        run(function, params, grid[0]);
        timed(function, grid, block, shared, own, 0);
    }
    told.site = 1;
    tell(1, id, &told);
    outer = before;
    return result;
}
int cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
    Plain given = {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, extra};
    void *unpacked[64];
    for (int i = 0; !params && extra && i < function->params; i++) unpacked[i] = (char *)extra[1] + function->offsets[i];
    return launched(307, &given, function, given.grid, given.block, shared, params || !extra ? params : unpacked);
}
int cuLaunchKernelEx(const Config *config, Function *function, void **params, void **extra) {
    Ex given = {config, function, params, extra};
    return launched(652, &given, function, config->grid, config->block, config->shared, params);
}
int cuLaunchCooperativeKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, void *stream, void **params) {
    Plain given = {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, NULL};
    return launched(477, &given, function, given.grid, given.block, shared, params);
}
static __thread int capture_mode; /* global */
int cuThreadExchangeStreamCaptureMode(int *mode) {
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return 0;
}
int played_mode(void) { return capture_mode; }
int cuLibraryLoadData(void **library, const char *image, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
    (void)a; (void)b; (void)c; (void)d; (void)e; (void)f;
    if (!strncmp(image, "broken", 6)) return 200;
    if (capturing && capture_mode != 2) return 900;
    *library = (void *)image;
    return 0;
}
Function *played_function(const char *name, int params, const size_t *offsets, const size_t *sizes);
int cuLibraryGetKernel(Function **kernel, const char *image, const char *symbol) {
    if (!strstr(image, symbol)) return 500;
    *kernel = played_function(symbol, 0, NULL, NULL);
    return 0;
}
int cuKernelSetAttribute(int attribute, int value, Function *kernel, int device) {
    (void)attribute; (void)kernel; (void)device;
    return value > 232448;
}
int cuStreamIsCapturing(void *stream, int *status) { (void)stream; *status = capturing; return 0; }
int cuModuleUnload(void *module) { (void)module; return 0; }
/* Nodes that a program adds by itself: into the graph that `played_graph` launches. */
typedef struct { Function *function; unsigned grid[3], block[3], shared; void **params, **extra; Function *kernel; } Node;
static int node_added(uint32_t id, const void *given, const Node *params) {
    int result = 0;
    uint64_t data = 0;
    CallbackData told = {0, "cuGraphAddNode", given, &result, NULL, NULL, 1, &data, numbered()};
    tell(1, id, &told);
    nodes[++node_count].function = params->function ? params->function : params->kernel;
    memcpy(nodes[node_count].grid, params->grid, 12);
    memcpy(nodes[node_count].block, params->block, 12);
    Graph graph = {NULL, NULL, (void *)(uintptr_t)node_count, NULL, 0};
    Resource resource = {NULL, NULL, &graph};
    tell(3, 13, &resource);
    told.site = 1;
    tell(1, id, &told);
    return result;
}
int cuGraphAddKernelNode_v2(void **node, void *graph, const void *before, size_t count, const Node *params) {
    const void *given[] = {node, graph, before, (void *)count, params};
    return node_added(689, given, params);
}
/* A kind, which for a kernel is 0, in sixteen bytes, and what it needs. */
int cuGraphAddNode(void **node, void *graph, const void *before, size_t count, const char *params) {
    const void *given[] = {node, graph, before, (void *)count, params};
    return *(const int *)params ? 0 : node_added(712, given, (const Node *)(params + 16));
}
int cuGraphAddNode_v2(void **node, void *graph, const void *before, const void *edges, size_t count, const char *params) {
    const void *given[] = {node, graph, before, edges, (void *)count, params};
    return *(const int *)params ? 0 : node_added(723, given, (const Node *)(params + 16));
}
int cuGetProcAddress_v2(const char *symbol, void **into, int version, uint64_t flags, int *status) {
    (void)flags;
    *into = !strcmp(symbol, "cuLaunchKernel") ? (void *)cuLaunchKernel
            : !strcmp(symbol, "cuLaunchKernelEx") ? (void *)cuLaunchKernelEx
            : !strcmp(symbol, "cuGraphAddNode") ? (version < 12030 ? (void *)cuGraphAddNode : (void *)cuGraphAddNode_v2)
            : !strcmp(symbol, "cuGetProcAddress") ? (void *)cuGetProcAddress_v2 : NULL;
    if (status) *status = 0;
    return *into ? 0 : 500;
}

/* -- for the program that is watched --------------------------------------------------------------------- */

Function *played_function(const char *name, int params, const size_t *offsets, const size_t *sizes) {
    Function *function = calloc(1, sizeof *function);
    strncpy(function->name, name, sizeof function->name - 1);
    function->params = params;
    for (int i = 0; i < params; i++) function->offsets[i] = offsets[i], function->sizes[i] = sizes[i];
    return function;
}
/* As C programs have them. Every kernel takes a pointer and an integer. */
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = (void *)1; return 0; }
int cuCtxSetCurrent(void *context) { (void)context; return 0; }
int cuModuleLoadData(void **module, const void *image) { (void)image; *module = (void *)1; return 0; }
int cuModuleGetFunction(Function **function, void *module, const char *name) {
    (void)module;
    *function = played_function(name, 2, (size_t[]){0, 8}, (size_t[]){8, 4});
    return 0;
}
void played_module(const char *cubin, size_t size) {
    static uint32_t count;
    Module module = {++count, size, cubin};
    Resource resource = {NULL, NULL, &module};
    tell(3, 6, &resource);
}
void played_unload(void) {
    Module module = {1, 0, NULL};
    Resource resource = {NULL, NULL, &module};
    tell(3, 7, &resource);
}
static void bare_call(uint32_t id) {
    int result = 0;
    uint64_t data = 0;
    CallbackData told = {0, "call", NULL, &result, NULL, NULL, 1, &data, ++correlation};
    tell(1, id, &told);
    told.site = 1;
    tell(1, id, &told);
}
void played_begin(void) { bare_call(539); capturing = 1; node_count = 0; }
void played_end(void) { capturing = 0; bare_call(497); }
/* Instantiation clones nodes; node N of the graph becomes N + 100. */
void played_instantiate(void) {
    for (uintptr_t node = 1; node <= (uintptr_t)node_count; node++) {
        Graph graph = {NULL, NULL, (void *)(node + 100), (void *)node, 0};
        Resource resource = {NULL, NULL, &graph};
        tell(3, 20, &resource);
    }
}
void played_graph(void) {
    bare_call(514);
    for (uint64_t node = 1; node <= (uint64_t)node_count; node++)
        timed(nodes[node].function, nodes[node].grid, nodes[node].block, 0, correlation, node + 100);
}
/* A kernel that another kernel launches: it has a time and no call. */
void played_child(Function *function, unsigned grid) {
    unsigned all[3] = {grid, 1, 1}, block[3] = {32, 1, 1};
    timed(function, all, block, 0, 0, 0);
}
/* Loads modules on one thread while the other launches: each may want what the other has. */
static void *loading(void *given) {
    for (int i = 0; i < 300; i++) {
        pthread_mutex_lock(&driver_lock);
        played_module("lazy_scale", 10);
        pthread_mutex_unlock(&driver_lock);
    }
    return given;
}
void played_contention(Function *function, uint64_t address) {
    pthread_t thread;
    takes_lock = 1;
    pthread_create(&thread, NULL, loading, NULL);
    for (int n = 0; n < 2000; n++) {
        float factor = 1.0f;
        int none = 0;
        uint64_t moved = address + 4u * (unsigned)(n % 250);
        void *params[] = {&moved, &none, &factor};
        cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
    }
    pthread_join(thread, NULL);
    takes_lock = 0;
}
const char *played_ran(void) { return ran; }
const char *played_node(int node) { return nodes[node].function->name; }
void played_refuse(void) { refuses = 1; }
