// Stands between a program and CUDA's driver: LD_PRELOAD loads it first. Whoever asks for a launch function, by the
// linker, by dlsym or by cuGetProcAddress, gets ours. A launch of the kernel is served by a tuned one where
// `at_launch` says so; each other launch goes through as it is. What happened is counted in a file that is mapped,
// so that it is there after a crash.
#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

struct Counts {
    char mark[8];
    uint64_t pid, launches, ours, swapped, recorded, unverified, parameters, attributes, refused, nodes,
        untold;
};

static Counts nowhere;  // where no file can be had
static std::atomic<Counts*> counts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside;  // what we, or the driver itself, call within a call

static void add(uint64_t& count) { __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED); }

static Counts* counts_made() {
    const char* folder = getenv("TUNESMITH_SWAP_FOLDER");
    char path[4200];
    for (int again = 0; folder && strlen(folder) < 4000 && again < 1000; again++) {
        snprintf(path, sizeof path, "%s/%d-%d.counts", folder, static_cast<int>(getpid()), again);
        const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (file < 0 && errno == EEXIST) continue;  // a program that became another one by exec
        if (file < 0) break;
        void* at = MAP_FAILED;
        if (posix_fallocate(file, 0, sizeof(Counts)) == 0)
            at = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
        if (at == MAP_FAILED) break;
        Counts* made = static_cast<Counts*>(at);
        made->pid = static_cast<uint64_t>(getpid());
        memcpy(made->mark, "SWAP0001", 8);
        return made;
    }
    return &nowhere;
}

static Counts& counted() {
    Counts* own = counts.load(std::memory_order_acquire);
    if (!own) {
        pthread_mutex_lock(&lock);
        if (!(own = counts.load(std::memory_order_relaxed))) counts.store(own = counts_made(), std::memory_order_release);
        pthread_mutex_unlock(&lock);
    }
    return *own;
}

// Of a fork: another process, which counts for itself. Whoever held the lock is not there.
static void in_child() {
    lock = PTHREAD_MUTEX_INITIALIZER;
    counts.store(nullptr);
}

// -- the real functions ------------------------------------------------------------------------------------

struct Hook {
    const char* name;
    void* ours;
    std::atomic<void*> real;
};
enum Which { LAUNCH, LAUNCH_PTSZ, LAUNCH_EX, LAUNCH_EX_PTSZ, COOPERATIVE, COOPERATIVE_PTSZ, ADD_NODE, ADD_NODE_2,
             ADD_ANY_NODE, ADD_ANY_NODE_2, MODULE_UNLOAD, LIBRARY_UNLOAD, PROC, PROC_2, HOOKS };
extern Hook hooks[HOOKS];

typedef void* (*Dlsym)(void*, const char*);
static Dlsym real_dlsym;
static std::atomic<void*> library;

static void find_dlsym() {
    static const char* const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27"};
    for (const char* version : versions)
        if (!real_dlsym) real_dlsym = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", version));
}

static Hook* hook_named(const char* name) {
    if (name[0] != 'c' || name[1] != 'u') return nullptr;
    for (Hook& hook : hooks)
        if (strcmp(hook.name, name) == 0) return &hook;
    return nullptr;
}

static void* driver_library() {
    void* found = library.load();
    if (!found) library.store(found = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
    return found;
}

static void* real(Which which) {
    void* found = hooks[which].real.load(std::memory_order_acquire);
    if (found) return found;
    if (!real_dlsym) find_dlsym();
    void* from = driver_library();
    found = real_dlsym(from ? from : RTLD_NEXT, hooks[which].name);
    if (found == hooks[which].ours) found = nullptr;
    hooks[which].real.store(found, std::memory_order_release);
    return found;
}

static void* hooked(Hook* hook, void* found) {
    if (found && found != hook->ours) hook->real.store(found, std::memory_order_release);
    return found ? hook->ours : nullptr;
}

// The driver's functions that we call ourselves; whether it has them.
static bool has_driver() {
    static std::atomic<int> state;
    int known = state.load(std::memory_order_acquire);
    if (known) return known > 0;
    pthread_mutex_lock(&lock);
    if (!(known = state.load(std::memory_order_relaxed))) {
        if (!real_dlsym) find_dlsym();
        void* from = driver_library();
#define FIND(name) *reinterpret_cast<void**>(&driver.name) = from ? real_dlsym(from, #name) : nullptr
        FIND(cuCtxGetDevice);
        FIND(cuDeviceGetAttribute);
        FIND(cuLibraryLoadData);
        FIND(cuLibraryGetKernel);
        FIND(cuKernelGetFunction);
        FIND(cuKernelSetAttribute);
        FIND(cuLaunchKernelEx);
        FIND(cuThreadExchangeStreamCaptureMode);
        FIND(cuStreamIsCapturing);
        FIND(cuFuncLoad);
        FIND(cuFuncGetName);
        FIND(cuKernelGetName);
        FIND(cuFuncGetParamInfo);
        FIND(cuKernelGetParamInfo);
#undef FIND
        driver.is_whole = driver.cuCtxGetDevice && driver.cuDeviceGetAttribute && driver.cuLibraryLoadData &&
                          driver.cuLibraryGetKernel && driver.cuKernelSetAttribute && driver.cuLaunchKernelEx &&
                          driver.cuThreadExchangeStreamCaptureMode && driver.cuFuncGetName;
        state.store(known = driver.is_whole ? 1 : -1, std::memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return known > 0;
}

// -- which kernel it is ------------------------------------------------------------------------------------

enum Kind { UNKNOWN, OTHER, OURS, DIFFERENT };  // the last: of this name, with other parameters
enum { KNOWN = 8192 };
static struct { void* function; Kind kind; } known[KNOWN];
static int known_count;

static bool param_info(void* function, size_t index, size_t* size) {
    size_t offset = 0;
    if (driver.cuFuncGetParamInfo && driver.cuFuncGetParamInfo(function, index, &offset, size) == 0) return true;
    return driver.cuKernelGetParamInfo && driver.cuKernelGetParamInfo(function, index, &offset, size) == 0;
}

static Kind kind_asked(void* function) {
    const Relaxed relaxed;
    const char* name = nullptr;
    if (driver.cuFuncGetName(&name, function) != 0) name = nullptr;
    if (!name && driver.cuKernelGetName && driver.cuKernelGetName(&name, function) != 0) name = nullptr;
    if (!name || strcmp(name, wanted_name) != 0) return OTHER;
    size_t size = 0;
    if (wanted_count && !param_info(function, 0, &size) && driver.cuFuncLoad) driver.cuFuncLoad(function);
    for (size_t i = 0; i < wanted_count; i++)
        if (!param_info(function, i, &size) || size != wanted_bytes[i]) return DIFFERENT;
    return param_info(function, wanted_count, &size) ? DIFFERENT : OURS;
}

static Kind kind_of(void* function) {
    const size_t first = (reinterpret_cast<uintptr_t>(function) >> 4) * 0x9e3779b97f4a7c15u >> 51;
    pthread_mutex_lock(&lock);
    size_t at = first;
    while (known[at].function && known[at].function != function) at = (at + 1) % KNOWN;
    Kind kind = known[at].function ? known[at].kind : UNKNOWN;
    pthread_mutex_unlock(&lock);
    if (kind != UNKNOWN) return kind;
    kind = kind_asked(function);  // without the lock: the driver has locks of its own
    pthread_mutex_lock(&lock);
    if (known_count >= KNOWN / 2) {
        memset(known, 0, sizeof known);
        known_count = 0;
    }
    at = first;
    while (known[at].function && known[at].function != function) at = (at + 1) % KNOWN;
    known_count += known[at].function == nullptr;
    known[at] = {function, kind};
    pthread_mutex_unlock(&lock);
    return kind;
}

static void forget() {  // of what is unloaded, the addresses may come again
    pthread_mutex_lock(&lock);
    memset(known, 0, sizeof known);
    known_count = 0;
    pthread_mutex_unlock(&lock);
}

// -- launches ----------------------------------------------------------------------------------------------

// Where each argument lies in a buffer that has all of them, as `extra` names it.
static bool unpacked(void** extra, void** into) {
    char* from = nullptr;
    size_t size = 0, at = 0;
    for (void** given = extra; given && *given; given += 2) {
        if (*given == reinterpret_cast<void*>(1)) from = static_cast<char*>(given[1]);
        if (*given == reinterpret_cast<void*>(2)) size = *static_cast<const size_t*>(given[1]);
    }
    for (size_t i = 0; i < wanted_count; i++) {
        at = (at + wanted_bytes[i] - 1) / wanted_bytes[i] * wanted_bytes[i];
        into[i] = from + at;
        at += wanted_bytes[i];
    }
    return from && size >= at;
}

static bool are_usual(const LaunchAttribute* attributes, unsigned count) {
    for (unsigned i = 0; attributes && i < count; i++) {
        const int id = attributes[i].id;
        if (id != ATTRIBUTE_IGNORE && id != ATTRIBUTE_COOPERATIVE && id != ATTRIBUTE_CLUSTER &&
            id != ATTRIBUTE_CLUSTER_POLICY && id != ATTRIBUTE_PDL)
            return false;
    }
    return true;
}

// Whether a tuned kernel took the launch.
static bool taken(void* function, const LaunchConfig& config, bool per_thread, void** params, void** extra) {
    Counts& own = counted();
    add(own.launches);
    if (!has_driver()) {
        add(own.untold);
        return false;
    }
    const Kind kind = kind_of(function);
    if (kind == OTHER) return false;
    add(own.ours);
    void* values[wanted_count + 1];
    if (kind == DIFFERENT || (!params && !unpacked(extra, values))) {
        add(own.parameters);
        return false;
    }
    if (!are_usual(config.attributes, config.count)) {
        add(own.attributes);
        return false;
    }
    void* stream = config.stream;
    if (per_thread && !stream) stream = reinterpret_cast<void*>(2);  // CU_STREAM_PER_THREAD
    driver_refused = false;
    const dim3 grid(config.grid[0], config.grid[1], config.grid[2]);
    const dim3 block(config.block[0], config.block[1], config.block[2]);
    if (!at_launch(params ? params : values, grid, block, stream)) {
        add(driver_refused ? own.refused : own.unverified);
        return false;
    }
    add(own.swapped);
    int recording = 0;
    if (reinterpret_cast<uintptr_t>(stream) > 2 && driver.cuStreamIsCapturing &&
        driver.cuStreamIsCapturing(stream, &recording) == 0 && recording)
        add(own.recorded);
    return true;
}

static bool serves(void* function, const LaunchConfig& config, bool per_thread, void** params, void** extra) {
    if (inside) return false;
    inside = true;
    const bool done = taken(function, config, per_thread, params, extra);
    inside = false;
    return done;
}

typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
typedef int (*LaunchEx)(const LaunchConfig*, void*, void**, void**);
typedef int (*Together)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**);
typedef int (*AddNode)(void**, void*, const void*, size_t, void* const*);
typedef int (*AddAnyNode)(void**, void*, const void*, size_t, void*);
typedef int (*AddAnyNode2)(void**, void*, const void*, const void*, size_t, void*);
typedef int (*Unload)(void*);
typedef int (*Proc)(const char*, void**, int, uint64_t);
typedef int (*Proc2)(const char*, void**, int, uint64_t, int*);
enum { NOT_INITIALIZED = 3 };

#define GEOMETRY unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream
#define CONFIG LaunchConfig{{gx, gy, gz}, {bx, by, bz}, shared, stream, nullptr, 0}

static int launched(Which which, void* function, GEOMETRY, void** params, void** extra) {
    if (serves(function, CONFIG, which == LAUNCH_PTSZ, params, extra)) return 0;
    void* own = real(which);
    if (!own) return NOT_INITIALIZED;
    return reinterpret_cast<Launch>(own)(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

static int launched_ex(Which which, const LaunchConfig* config, void* function, void** params, void** extra) {
    if (config && serves(function, *config, which == LAUNCH_EX_PTSZ, params, extra)) return 0;
    void* own = real(which);
    return own ? reinterpret_cast<LaunchEx>(own)(config, function, params, extra) : NOT_INITIALIZED;
}

static int launched_together(Which which, void* function, GEOMETRY, void** params) {
    if (serves(function, CONFIG, which == COOPERATIVE_PTSZ, params, nullptr)) return 0;
    void* own = real(which);
    if (!own) return NOT_INITIALIZED;
    return reinterpret_cast<Together>(own)(function, gx, gy, gz, bx, by, bz, shared, stream, params);
}

// A node that the program puts into a graph itself stays what it is. `params`: of eight bytes each: function, geometry
// in four, arguments in two, and where `has_kernel` the kernel.
static void node_seen(void* const* params, bool has_kernel) {
    enum { KERNEL = 7 };
    if (inside || !params) return;
    Counts& own = counted();
    void* function = params[0] ? params[0] : has_kernel ? params[KERNEL] : nullptr;
    if (function && has_driver() && kind_of(function) != OTHER) add(own.nodes);
}

static int node_added(Which which, void** node, void* graph, const void* before, size_t count, void* const* params) {
    node_seen(params, which == ADD_NODE_2);
    void* own = real(which);
    return own ? reinterpret_cast<AddNode>(own)(node, graph, before, count, params) : NOT_INITIALIZED;
}

// A node of any kind: its kind, which for a kernel is 0, in sixteen bytes, and what that kind needs.
static void any_node_seen(const void* params) {
    if (params && *static_cast<const int*>(params) == 0) node_seen(static_cast<void* const*>(params) + 2, true);
}

static int unloaded(Which which, void* what) {
    void* own = real(which);
    forget();  // before: as soon as it is gone, another thread may load something to its address
    const int result = own ? reinterpret_cast<Unload>(own)(what) : NOT_INITIALIZED;
    forget();  // what was launched meanwhile
    return result;
}

static void answered(const char* symbol, void** into, int version, uint64_t flags) {
    char name[64];
    if (!symbol || !into || !*into || strlen(symbol) > 40) return;
    snprintf(name, sizeof name, "%s%s", symbol, flags & 2 ? "_ptsz" : "");
    Hook* hook = flags & 2 ? hook_named(name) : nullptr;
    const int second = strcmp(symbol, "cuGraphAddNode") == 0 ? 12030 : 12000;  // the version that brought its _v2
    if (!hook && version >= second) {
        snprintf(name, sizeof name, "%s_v2", symbol);
        hook = hook_named(name);
    }
    if (!hook) hook = hook_named(symbol);
    if (hook) *into = hooked(hook, *into);
}

}  // namespace

EXPORTED int cuLaunchKernel(void* f, GEOMETRY, void** params, void** extra) {
    return launched(LAUNCH, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
EXPORTED int cuLaunchKernel_ptsz(void* f, GEOMETRY, void** params, void** extra) {
    return launched(LAUNCH_PTSZ, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
EXPORTED int cuLaunchKernelEx(const LaunchConfig* config, void* f, void** params, void** extra) {
    return launched_ex(LAUNCH_EX, config, f, params, extra);
}
EXPORTED int cuLaunchKernelEx_ptsz(const LaunchConfig* config, void* f, void** params, void** extra) {
    return launched_ex(LAUNCH_EX_PTSZ, config, f, params, extra);
}
EXPORTED int cuLaunchCooperativeKernel(void* f, GEOMETRY, void** params) {
    return launched_together(COOPERATIVE, f, gx, gy, gz, bx, by, bz, shared, stream, params);
}
EXPORTED int cuLaunchCooperativeKernel_ptsz(void* f, GEOMETRY, void** params) {
    return launched_together(COOPERATIVE_PTSZ, f, gx, gy, gz, bx, by, bz, shared, stream, params);
}
EXPORTED int cuGraphAddKernelNode(void** node, void* graph, const void* before, size_t count, void* const* params) {
    return node_added(ADD_NODE, node, graph, before, count, params);
}
EXPORTED int cuGraphAddKernelNode_v2(void** node, void* graph, const void* before, size_t count, void* const* params) {
    return node_added(ADD_NODE_2, node, graph, before, count, params);
}
EXPORTED int cuGraphAddNode(void** node, void* graph, const void* before, size_t count, void* params) {
    any_node_seen(params);
    void* own = real(ADD_ANY_NODE);
    return own ? reinterpret_cast<AddAnyNode>(own)(node, graph, before, count, params) : NOT_INITIALIZED;
}
EXPORTED int cuGraphAddNode_v2(void** node, void* graph, const void* before, const void* edges, size_t count,
                               void* params) {
    any_node_seen(params);
    void* own = real(ADD_ANY_NODE_2);
    return own ? reinterpret_cast<AddAnyNode2>(own)(node, graph, before, edges, count, params) : NOT_INITIALIZED;
}
EXPORTED int cuModuleUnload(void* module) { return unloaded(MODULE_UNLOAD, module); }
EXPORTED int cuLibraryUnload(void* given) { return unloaded(LIBRARY_UNLOAD, given); }
EXPORTED int cuGetProcAddress(const char* symbol, void** into, int version, uint64_t flags) {
    void* own = real(PROC);
    const int result = own ? reinterpret_cast<Proc>(own)(symbol, into, version, flags) : NOT_INITIALIZED;
    if (result == 0) answered(symbol, into, version, flags);
    return result;
}
EXPORTED int cuGetProcAddress_v2(const char* symbol, void** into, int version, uint64_t flags, int* status) {
    void* own = real(PROC_2);
    const int result = own ? reinterpret_cast<Proc2>(own)(symbol, into, version, flags, status) : NOT_INITIALIZED;
    if (result == 0) answered(symbol, into, version, flags);
    return result;
}

namespace {
#define HOOK(name) {#name, reinterpret_cast<void*>(&::name), {nullptr}}
Hook hooks[HOOKS] = {HOOK(cuLaunchKernel), HOOK(cuLaunchKernel_ptsz), HOOK(cuLaunchKernelEx),
                     HOOK(cuLaunchKernelEx_ptsz), HOOK(cuLaunchCooperativeKernel),
                     HOOK(cuLaunchCooperativeKernel_ptsz), HOOK(cuGraphAddKernelNode), HOOK(cuGraphAddKernelNode_v2),
                     HOOK(cuGraphAddNode), HOOK(cuGraphAddNode_v2), HOOK(cuModuleUnload), HOOK(cuLibraryUnload),
                     HOOK(cuGetProcAddress), HOOK(cuGetProcAddress_v2)};

__attribute__((constructor)) void begun() {
    if (!real_dlsym) find_dlsym();
    pthread_atfork(nullptr, nullptr, in_child);
}
}  // namespace

static void* hooked_in(Hook* hook, void* handle, const char* name) {
    void* found = real_dlsym(handle, name);
    if (found && handle != RTLD_DEFAULT && handle != RTLD_NEXT) library.store(handle);
    if (found) counted();  // somebody has the driver
    return hooked(hook, found);
}

// Any other name goes through, as a jump: glibc looks at who calls.
EXPORTED void* dlsym(void* handle, const char* name) noexcept {
    if (!real_dlsym) find_dlsym();
    Hook* hook = name ? hook_named(name) : nullptr;
    if (hook) return hooked_in(hook, handle, name);
    return real_dlsym(handle, name);
}
