/* Watches the kernels that a process launches. CUDA's driver loads this library when CUDA_INJECTION64_PATH names
 * it, and calls InitializeInjection; or a process calls tunesmith_watch_start by itself. What it is told stands in
 * variables TUNESMITH_WATCH_*; what it sees goes to a trace in the folder they name, and nowhere else. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "helper.h"

#include <errno.h>

#define EXPORTED __attribute__((visibility("default")))

enum { MOST_ORDER = 200000, MOST_STREAMS = 63 };

typedef struct {
    RecordHead head;
    uint32_t index, sms, major, minor, clock, bus; /* kHz, bits */
    uint64_t memory, llc;
    char name[128];
} DeviceRecord;

typedef struct {
    RecordHead head;
    uint32_t room, count;
    struct { uint32_t class_index, stream; } entries[];
} OrderRecord;

typedef struct {
    RecordHead head;
    int32_t pid, parent;
    int32_t driver, reserved;
    char command[400];
} ProcessRecord;

static void *subscriber;
static volatile int capturing; /* streams that record a graph right now */
static OrderRecord *order;
static Table by_context; /* to devices */
static Table by_stream;  /* to numbers of our own */
static uint32_t stream_count = 1;

static __thread int inside; /* what we do ourselves is not watched */
static __thread uint64_t made_node;
static __thread Keeping *keeping;

/* -- devices, streams ------------------------------------------------------------------------------------ */

static uint32_t device_of(uint32_t context) {
    static uint64_t described[4];
    uint32_t *known = table_at(&by_context, (uint64_t)context + 1, 0);
    if (known) return *known;
    int device = 0;
    if (!cuda.cuCtxGetDevice || cuda.cuCtxGetDevice(&device) || device < 0 || device > 255) return 0;
    if ((known = table_at(&by_context, (uint64_t)context + 1, 1))) *known = (uint32_t)device;
    if (described[device / 64] >> device % 64 & 1) return (uint32_t)device;
    described[device / 64] |= (uint64_t)1 << device % 64;
    DeviceRecord found = {.index = (uint32_t)device}, *record = NULL;
    const int asked[] = {DEVICE_SMS, DEVICE_MAJOR, DEVICE_MINOR, DEVICE_CLOCK, DEVICE_BUS};
    uint32_t *into[] = {&found.sms, &found.major, &found.minor, &found.clock, &found.bus};
    int value = 0;
    for (size_t i = 0; i < 5; i++)
        if (!cuda.cuDeviceGetAttribute(&value, asked[i], device) && value > 0) *into[i] = (uint32_t)value;
    if (!cuda.cuDeviceGetAttribute(&value, DEVICE_L2, device) && value > 0) found.llc = (uint64_t)value;
    size_t memory = 0;
    if (cuda.cuDeviceTotalMem_v2 && !cuda.cuDeviceTotalMem_v2(&memory, device)) found.memory = memory;
    if (cuda.cuDeviceGetName) cuda.cuDeviceGetName(found.name, sizeof found.name - 1, device);
    if (!(record = trace_record(RECORD_DEVICE, sizeof *record))) return (uint32_t)device;
    found.head = record->head;
    *record = found;
    trace_commit(record);
    return (uint32_t)device;
}

static uint32_t stream_of(const void *stream) {
    if ((uintptr_t)stream <= 2) return 0; /* the default one, by its three names */
    uint32_t *known = table_at(&by_stream, (uint64_t)(uintptr_t)stream, 1);
    if (!known) return MOST_STREAMS;
    if (*known == NO_CLASS) *known = stream_count < MOST_STREAMS ? stream_count++ : MOST_STREAMS;
    return *known;
}

/* -- launches -------------------------------------------------------------------------------------------- */

static int is_launch(uint32_t id) {
    return id == CB_LAUNCH || id == CB_LAUNCH_PTSZ || id == CB_LAUNCH_EX || id == CB_LAUNCH_EX_PTSZ ||
           id == CB_COOPERATIVE || id == CB_COOPERATIVE_PTSZ;
}

static Launch launch_in(uint32_t id, const CallbackData *data) {
    Launch launch = {.symbol = data->symbol};
    if (id == CB_LAUNCH_EX || id == CB_LAUNCH_EX_PTSZ) {
        const LaunchExParams *given = data->params;
        const LaunchConfig *config = given->config;
        launch.function = given->function;
        launch.params = given->params;
        launch.extra = given->extra;
        launch.stream = config->stream;
        launch.shared = config->shared;
        memcpy(launch.grid, config->grid, sizeof launch.grid);
        memcpy(launch.block, config->block, sizeof launch.block);
        for (unsigned i = 0; config->attributes && i < config->attribute_count; i++) {
            const LaunchAttribute *attribute = &config->attributes[i];
            if (attribute->id == ATTRIBUTE_CLUSTER) memcpy(launch.cluster, &attribute->value.cluster, 12);
            if (attribute->id == ATTRIBUTE_COOPERATIVE && attribute->value.cooperative)
                launch.flags |= FLAG_COOPERATIVE;
        }
        return launch;
    }
    const LaunchParams *given = data->params;
    int cooperative = id == CB_COOPERATIVE || id == CB_COOPERATIVE_PTSZ;
    launch.function = given->function;
    launch.params = given->params;
    launch.extra = cooperative ? NULL : given->extra;
    launch.stream = given->stream;
    launch.shared = given->shared;
    launch.flags = cooperative ? FLAG_COOPERATIVE : 0;
    memcpy(launch.grid, given->grid, sizeof launch.grid);
    memcpy(launch.block, given->block, sizeof launch.block);
    return launch;
}

static int repeat_plain(const void *params) {
    const LaunchParams *p = params;
    return cuda.cuLaunchKernel(p->function, p->grid[0], p->grid[1], p->grid[2], p->block[0], p->block[1], p->block[2],
                               p->shared, p->stream, p->params, p->extra);
}

static int repeat_ex(const void *params) {
    const LaunchExParams *p = params;
    return cuda.cuLaunchKernelEx(p->config, p->function, p->params, p->extra);
}

static void launch_begins(uint32_t id, const CallbackData *data) {
    made_node = 0;
    if (!wanted.names || capturing || !is_wanted(data->symbol)) return;
    Launch launch = launch_in(id, data);
    pthread_mutex_lock(&lock);
    Keeping *plan = NULL;
    if (trace.header) {
        launch.device = device_of(data->context_id);
        plan = keep_planned(&launch, class_of(&launch, trace.header->launches));
    }
    pthread_mutex_unlock(&lock);
    if (!plan) return;
    inside = 1;
    if (keep_before(plan)) keeping = plan;
    else keep_forgotten(plan);
    inside = 0;
}

static void launch_kept(uint32_t id, const CallbackData *data, int failed) {
    Keeping *plan = keeping;
    keeping = NULL;
    inside = 1;
    int plain = (id == CB_LAUNCH || id == CB_LAUNCH_PTSZ) && cuda.cuLaunchKernel;
    int ex = (id == CB_LAUNCH_EX || id == CB_LAUNCH_EX_PTSZ) && cuda.cuLaunchKernelEx;
    if (!failed) keep_after(plan, plain ? repeat_plain : ex ? repeat_ex : NULL, data->params);
    pthread_mutex_lock(&lock);
    if (trace.header && !failed) keep_recorded(plan);
    pthread_mutex_unlock(&lock);
    keep_forgotten(plan);
    inside = 0;
}

static void launch_ends(uint32_t id, const CallbackData *data) {
    int failed = data->result && *(const int *)data->result;
    Launch launch = launch_in(id, data);
    pthread_mutex_lock(&lock);
    events_settled();
    if (trace.header && failed) {
        trace.header->failed++;
    } else if (trace.header) {
        launch.device = device_of(data->context_id);
        if (made_node) launch.flags |= FLAG_GRAPH;
        uint32_t number = class_of(&launch, trace.header->launches);
        if (made_node) { /* recorded, not run: it is counted when the graph is */
            uint32_t *node = table_at(&by_node, made_node, 1);
            if (node) *node = number;
        } else {
            uint32_t stream = stream_of(launch.stream);
            uint32_t place = data->correlation & (RING - 1);
            trace.header->launches++;
            ring[place].correlation = data->correlation;
            ring[place].class_index = number;
            ring[place].once = keeping != NULL;
            if (number < IGNORED) {
                classes[number]->count++;
                classes[number]->streams |= (uint64_t)1 << stream;
                if (order && order->count < order->room) {
                    order->entries[order->count].class_index = number;
                    order->entries[order->count].stream = stream;
                    order->count++;
                }
            } else {
                trace.header->unseen++;
            }
        }
    }
    made_node = 0;
    pthread_mutex_unlock(&lock);
    if (keeping) launch_kept(id, data, failed);
}

/* A node that the program put into a graph itself. */
static void node_added(uint32_t id, const CallbackData *data) {
    const KernelNodeParams *params = NULL;
    if (id == CB_ADD_KERNEL_NODE || id == CB_ADD_KERNEL_NODE_V2) params = ((void *const *)data->params)[4];
    else if (id == CB_ADD_NODE) params = (const void *)((const char *)((void *const *)data->params)[4] + 16);
    else params = (const void *)((const char *)((void *const *)data->params)[5] + 16);
    int failed = data->result && *(const int *)data->result;
    if (made_node && !failed) {
        Launch launch = {.function = params->function, .params = params->params, .extra = params->extra,
                         .shared = params->shared, .symbol = data->symbol, .flags = FLAG_GRAPH};
        if (!launch.function && id != CB_ADD_KERNEL_NODE) launch.function = params->kernel;
        memcpy(launch.grid, params->grid, sizeof launch.grid);
        memcpy(launch.block, params->block, sizeof launch.block);
        pthread_mutex_lock(&lock);
        if (trace.header && launch.function) {
            launch.device = device_of(data->context_id);
            uint32_t number = class_of(&launch, trace.header->launches), *known = table_at(&by_node, made_node, 1);
            if (known) *known = number;
        }
        pthread_mutex_unlock(&lock);
    }
    made_node = 0;
}

static void on_callback(void *user, int domain, uint32_t id, const void *given) {
    (void)user;
    if (domain == DOMAIN_RESOURCE) {
        const ResourceData *resource = given;
        if (!resource->descriptor) return;
        if (id == RESOURCE_MODULE_LOADED) module_loaded(resource->descriptor);
        if (id == RESOURCE_MODULE_UNLOADING) event_happens((Event){.kind = EVENT_UNLOADED});
        if (id == RESOURCE_NODE_CREATED) made_node = node_of(resource->descriptor);
        if (id == RESOURCE_NODE_CLONED) node_cloned(resource->descriptor);
        return;
    }
    const CallbackData *data = given;
    if (domain != DOMAIN_DRIVER) return;
    if (inside) { /* a launch or copy of our own: its time is nobody's */
        uint32_t place = data->correlation & (RING - 1);
        pthread_mutex_lock(&lock);
        if (ring[place].correlation != data->correlation) { /* else the launch's own number, within which it is */
            ring[place].correlation = data->correlation;
            ring[place].class_index = IGNORED;
            ring[place].once = 0;
        }
        pthread_mutex_unlock(&lock);
        return;
    }
    if (is_launch(id)) {
        if (data->site == SITE_ENTER) launch_begins(id, data);
        else launch_ends(id, data);
    } else if (id == CB_ADD_KERNEL_NODE || id == CB_ADD_KERNEL_NODE_V2 || id == CB_ADD_NODE || id == CB_ADD_NODE_V2) {
        if (data->site == SITE_ENTER) made_node = 0;
        else node_added(id, data);
    } else if (data->site == SITE_EXIT && (id == CB_END || id == CB_END_PTSZ)) {
        if (__atomic_sub_fetch(&capturing, 1, __ATOMIC_RELAXED) < 0) capturing = 0;
    } else if (data->site == SITE_EXIT && (id == CB_GRAPH_LAUNCH || id == CB_GRAPH_LAUNCH_PTSZ)) {
        pthread_mutex_lock(&lock);
        if (trace.header) trace.header->graphs++;
        pthread_mutex_unlock(&lock);
    } else if (id != CB_HTOD && id != CB_DTOH && data->site == SITE_EXIT && data->result &&
               !*(const int *)data->result) {
        __atomic_add_fetch(&capturing, 1, __ATOMIC_RELAXED); /* one of the ways to begin */
    }
}

/* -- beginning and end ----------------------------------------------------------------------------------- */

static uint64_t number_in(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    return text && *text && end && !*end ? value : otherwise;
}

static void say(const char *what, int result) {
    const char *why = NULL;
    char text[600];
    if (cupti.cuptiGetResultString && cupti.cuptiGetResultString(result, &why)) why = NULL;
    snprintf(text, sizeof text, "%s: %s (%d)", what, why ? why : "no reason given", result);
    trace_note(text);
}

static void in_child(void) { /* of a fork: the trace is the parent's, and so is the device */
    if (trace.header) munmap(trace.header, TRACE_MOST);
    if (trace.file >= 0) close(trace.file);
    trace.header = NULL;
    trace.file = -1;
    subscriber = NULL;
    helper_lost();
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

static void in_parent(void) {
    if (trace.header) __atomic_add_fetch(&trace.header->forks, 1, __ATOMIC_RELAXED);
}

static void describe_process(void) {
    ProcessRecord *record = trace_record(RECORD_PROCESS, sizeof *record);
    if (!record) return;
    int version = 0;
    record->pid = (int32_t)getpid();
    record->parent = (int32_t)getppid();
    if (cuda.cuDriverGetVersion && !cuda.cuDriverGetVersion(&version)) record->driver = version;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, record->command, sizeof record->command - 1);
    if (file >= 0) close(file);
    for (ssize_t i = 0; i + 1 < got; i++)
        if (!record->command[i]) record->command[i] = ' ';
    trace_commit(record);
}

static int begin_trace(void) {
    const char *folder = getenv("TUNESMITH_WATCH_FOLDER");
    char path[4200];
    if (!folder || strlen(folder) > 3500) return 0;
    for (int again = 0; again < 1000; again++) { /* a program that is another one after exec has the same number */
        if (again) snprintf(file_prefix, sizeof file_prefix, "%s/%d-%d", folder, (int)getpid(), again);
        else snprintf(file_prefix, sizeof file_prefix, "%s/%d", folder, (int)getpid());
        snprintf(path, sizeof path, "%s.trace", file_prefix);
        if (trace_open(path)) return 1;
        if (errno != EEXIST) return 0;
    }
    return 0;
}

static int subscribe(void) {
    static const uint32_t calls[] = {
        CB_LAUNCH,    CB_LAUNCH_PTSZ,   CB_LAUNCH_EX,      CB_LAUNCH_EX_PTSZ,      CB_COOPERATIVE,  CB_COOPERATIVE_PTSZ,
        CB_GRAPH_LAUNCH, CB_GRAPH_LAUNCH_PTSZ, CB_BEGIN,   CB_BEGIN_PTSZ,          CB_BEGIN_V2,     CB_BEGIN_V2_PTSZ,
        CB_BEGIN_TO_GRAPH, CB_BEGIN_TO_GRAPH_PTSZ, CB_END, CB_END_PTSZ,            CB_ADD_KERNEL_NODE, CB_ADD_KERNEL_NODE_V2,
        CB_ADD_NODE,  CB_ADD_NODE_V2};
    static const uint32_t resources[] = {RESOURCE_MODULE_LOADED, RESOURCE_MODULE_UNLOADING, RESOURCE_NODE_CREATED,
                                         RESOURCE_NODE_CLONED};
    static const int kinds[] = {ACTIVITY_KERNEL, ACTIVITY_MEMCPY, ACTIVITY_MEMSET};
    int result = cupti.cuptiSubscribe(&subscriber, on_callback, NULL);
    if (result) {
        say("CUPTI does not let us watch; another profiler may be at work in this process", result);
        subscriber = NULL;
        return 0;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) /* those that this CUPTI does not know, it refuses */
        cupti.cuptiEnableCallback(1, subscriber, DOMAIN_DRIVER, calls[i]);
    if (wanted.names) { /* copies of our own must be told from the program's */
        cupti.cuptiEnableCallback(1, subscriber, DOMAIN_DRIVER, CB_HTOD);
        cupti.cuptiEnableCallback(1, subscriber, DOMAIN_DRIVER, CB_DTOH);
    }
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
        cupti.cuptiEnableCallback(1, subscriber, DOMAIN_RESOURCE, resources[i]);
    if ((result = cupti.cuptiActivityRegisterCallbacks(buffer_wanted, buffer_done)))
        say("CUPTI takes no buffers for times", result);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((result = cupti.cuptiActivityEnable(kinds[i]))) say("CUPTI does not time", result);
    return 1;
}

EXPORTED void tunesmith_watch_stop(void) {
    if (!trace.header || getpid() != owner) return;
    helper_ended();
    if (subscriber) {
        cupti.cuptiActivityFlushAll(1);
        if (cupti.cuptiActivityDisable) {
            cupti.cuptiActivityDisable(ACTIVITY_KERNEL);
            cupti.cuptiActivityDisable(ACTIVITY_MEMCPY);
            cupti.cuptiActivityDisable(ACTIVITY_MEMSET);
        }
        if (cupti.cuptiUnsubscribe) cupti.cuptiUnsubscribe(subscriber);
        subscriber = NULL;
    }
    pthread_mutex_lock(&lock);
    events_settled();
    if (trace.header) {
        settle(1);
        trace.header->ended = 1;
        trace_close();
    }
    pthread_mutex_unlock(&lock);
}

/* 1: it watches; 0: it does not, and says why in the trace where there is one. */
EXPORTED int tunesmith_watch_start(void) {
    if (trace.header || !begin_trace()) return 0;
    owner = getpid();
    limits.classes = number_in("TUNESMITH_WATCH_CLASSES", limits.classes);
    limits.looks = number_in("TUNESMITH_WATCH_LOOKS", limits.looks);
    limits.launches = number_in("TUNESMITH_WATCH_LAUNCHES", limits.launches);
    image_bytes = number_in("TUNESMITH_WATCH_IMAGE_BYTES", image_bytes);
    images_bytes = number_in("TUNESMITH_WATCH_IMAGES_BYTES", images_bytes);
    wanted.bytes = number_in("TUNESMITH_WATCH_KEEP_BYTES", wanted.bytes);
    wanted.launches = number_in("TUNESMITH_WATCH_KEEP_LAUNCHES", wanted.launches);
    const char *names = getenv("TUNESMITH_WATCH_KEEP");
    if (names && *names) wanted.names = strdup(names);
    int has_cuda = find_cuda();
    describe_process();
    if (!has_cuda) {
        trace_note("libcuda.so.1 was not to be loaded");
        return 0;
    }
    if (!find_cupti(getenv("TUNESMITH_WATCH_CUPTI"))) {
        trace_note("libcupti was not found");
        return 0;
    }
    size_t room = sizeof(OrderRecord) + MOST_ORDER * sizeof order->entries[0];
    if ((order = trace_record(RECORD_ORDER, room))) {
        order->room = MOST_ORDER;
        trace_commit(order);
    }
    pthread_atfork(NULL, in_parent, in_child);
    if (!subscribe()) return 0;
    helper_started();
    return 1;
}

/* The driver calls it in cuInit. */
EXPORTED int InitializeInjection(void) {
    if (tunesmith_watch_start()) atexit(tunesmith_watch_stop);
    return 1;
}
