// A simulated libamdhip64 and libhiprtc in one file: what `hip-python` itself calls, with C's own types.
// Memory is the host's; a kernel is `out[i] = FACTOR * x[i]`, the factor stands at the code object's byte 64.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double clock_ms;
static int is_capturing, recorded;
static struct { int64_t factor; float *out; const float *x; int64_t count; } launches[4096];

static char *whole(const char *variable, size_t *size) {
    FILE *file = fopen(getenv(variable), "rb");
    if (!file) abort();
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    char *data = malloc(*size);
    if (fread(data, 1, *size, file) != *size) abort();
    fclose(file);
    return data;
}

static void play(int number) {
    for (int64_t i = 0; i < launches[number].count; i++)
        launches[number].out[i] = launches[number].factor * launches[number].x[i];
    clock_ms += 1e-3 + launches[number].count * 1e-6;
}

int hipGetDeviceCount(int *count) { *count = 1; return 0; }
int hipRuntimeGetVersion(int *version) { *version = 70226015; return 0; }
const char *hipGetErrorName(int status) { return status == 2 ? "hipErrorOutOfMemory" : "hipErrorInvalidValue"; }
const char *hipGetErrorString(int status) { return status == 2 ? "out of memory" : "invalid argument"; }
int hipGetDevicePropertiesR0600(void *into, int device) {
    size_t size;
    char *data = whole("SIMULATED_PROPERTIES", &size);
    memcpy(into, data, size);
    free(data);
    return device ? 101 : 0;
}
int hipSetDevice(int device) { return device ? 101 : 0; }
int hipStreamCreateWithFlags(void **stream, unsigned flags) { *stream = (void *)(uintptr_t)(0x5000 + flags); return 0; }
int hipStreamSynchronize(void *stream) { return stream != (void *)0x5001 || is_capturing; }
int hipEventCreate(void **event) { *event = calloc(1, sizeof(double)); return 0; }
int hipEventRecord(void *event, void *stream) { *(double *)event = clock_ms; return stream != (void *)0x5001; }
int hipEventSynchronize(void *event) { return !event; }
int hipEventElapsedTime(float *ms, void *begin, void *end) { *ms = *(double *)end - *(double *)begin; return 0; }
int hipMalloc(void **address, size_t size) { *address = aligned_alloc(256, (size + 255) / 256 * 256); return 0; }
int hipFree(void *address) { free(address); return 0; }
static int copy(void *to, const void *from, size_t size, void *stream) {
    memcpy(to, from, size);
    return stream != (void *)0x5001;
}
int hipMemcpyHtoDAsync(void *to, void *from, size_t size, void *stream) { return copy(to, from, size, stream); }
int hipMemcpyDtoHAsync(void *to, void *from, size_t size, void *stream) { return copy(to, from, size, stream); }
int hipMemcpyDtoDAsync(void *to, void *from, size_t size, void *stream) { return copy(to, from, size, stream); }
int hipModuleLoadData(void **module, const void *image) {
    *module = malloc(72);
    memcpy(*module, image, 72);
    return memcmp(image, "\x7f" "ELF", 4) != 0;
}
int hipModuleGetFunction(void **function, void *module, const char *name) {
    *function = module;
    return strcmp(name, "scale") != 0;
}
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *stream, void **given, void **extra) {
    if (shared || extra || stream != (void *)0x5001 || gy * gz * by * bz != 1) return 1;
    const int64_t all = (int64_t)*(int *)given[2] * *(int *)given[3], most = (int64_t)gx * bx;
    const int number = is_capturing ? recorded++ : 4095;
    launches[number].factor = *(int64_t *)((char *)function + 64);
    launches[number].out = *(float **)given[0];
    launches[number].x = *(const float **)given[1];
    launches[number].count = all < most ? all : most;
    if (!is_capturing) play(number);
    return 0;
}
int hipStreamBeginCapture(void *stream, int mode) { is_capturing = 1; return mode != 1 || stream != (void *)0x5001; }
static int begun;
int hipStreamEndCapture(void *stream, void **graph) {
    int *own = malloc(2 * sizeof(int));
    own[0] = begun, own[1] = begun = recorded;
    *graph = own, is_capturing = 0;
    return stream != (void *)0x5001;
}
int hipGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
    *executable = graph;
    return flags != 0;
}
int hipGraphLaunch(void *executable, void *stream) {
    for (int number = ((int *)executable)[0]; number < ((int *)executable)[1]; number++) play(number);
    return stream != (void *)0x5001;
}
int hipGraphExecDestroy(void *executable) { return !executable; }
int hipGraphDestroy(void *graph) { free(graph); return 0; }

typedef struct { char *source, *name, log[200]; char *code; size_t size; } Program;
int hiprtcVersion(int *major, int *minor) { *major = 7, *minor = 2; return 0; }
int hiprtcCreateProgram(void **into, const char *source, const char *name, int count, const char **headers,
                        const char **names) {
    Program *own = calloc(1, sizeof(Program));
    own->source = strdup(source), own->name = strdup(name), *into = own;
    return count != 0;
}
int hiprtcAddNameExpression(void *program, const char *name) { return !program || !name; }
int hiprtcCompileProgram(void *program, int count, const char **options) {
    Program *own = program;
    if (count < 1 || strcmp(options[0], "--offload-arch=gfx942")) return 3;
    const char *factor = strstr(own->source, "out[i] = ");
    if (!factor) {
        snprintf(own->log, sizeof own->log, "%s:2:12: error: use of undeclared identifier 'nonsense'\n", own->name);
        return 6;
    }
    own->code = whole("SIMULATED_CODE", &own->size);
    *(int64_t *)(own->code + 64) = atoi(factor + 9);
    return 0;
}
int hiprtcGetProgramLogSize(void *program, size_t *size) { *size = strlen(((Program *)program)->log) + 1; return 0; }
int hiprtcGetProgramLog(void *program, char *log) { strcpy(log, ((Program *)program)->log); return 0; }
int hiprtcGetLoweredName(void *program, const char *name, const char **lowered) { *lowered = name; return 0; }
int hiprtcGetCodeSize(void *program, size_t *size) { *size = ((Program *)program)->size; return 0; }
int hiprtcGetCode(void *program, char *code) {
    memcpy(code, ((Program *)program)->code, ((Program *)program)->size);
    return 0;
}
int hiprtcDestroyProgram(void **program) { *program = 0; return 0; }
