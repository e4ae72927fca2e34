/* ---- How a call is served: the same for every operator. ------------------------------------------------ */

typedef long long (*ts_expression)(const long long *size, int *undefined);

enum { TS_BUFFER, TS_GIVEN, TS_COMPUTED, TS_LOCAL, TS_WORKSPACE };
enum { TS_INT8, TS_UINT8, TS_INT16, TS_UINT16, TS_INT32, TS_UINT32, TS_INT64, TS_UINT64, TS_FLOAT, TS_DOUBLE };

struct ts_argument {
    int kind;
    size_t index;              /* of a buffer, a given scalar or a workspace */
    int type;                  /* of a computed scalar */
    ts_expression expression;  /* the value of a computed scalar, the bytes of local memory */
    long long low, high;       /* what the scalar's type holds */
};

struct ts_launch {
    const char *entry;
    ts_expression grid[3], block[3];
    const struct ts_argument *arguments;
    cl_uint count;
    ts_expression when;  /* NULL: always */
};

struct ts_workspace {
    ts_expression bytes;
    size_t filled;  /* bytes of the pattern that it is filled with before each call; 0: it is not */
    unsigned char pattern[8];
};

struct ts_program {
    const char *const *text;
    cl_uint count;
    const char *flags;
};

struct ts_entry {
    const char *file;
    int tuned;
    ts_expression when;
    size_t program;
    const struct ts_launch *launches;
    size_t count;
    size_t first_kernel;
    const struct ts_workspace *workspaces;
    size_t workspace_count;
};

struct ts_device {
    const char *name;  /* NULL: any other device */
    const struct ts_entry *entries;
    size_t count;
};

struct ts_array {
    int written;
    size_t align;
    ts_expression bytes;
};

struct ts_given {
    const void *value;
    size_t bytes;
};

struct ts_kernel {
    cl_kernel kernel;
    char name[TS_LONGEST_NAME];
};

/* What a call asks for. */
struct ts_call {
    cl_command_queue queue;
    const cl_mem *memory;
    const struct ts_given *given;
    const long long *size;
    int as_tuned;  /* whether every given scalar has the value that was tuned with */
};

struct ts_geometry {
    cl_uint dimensions;
    size_t global[3], local[3];
};

/* ---- Arithmetic that rounds down, and that notes where there is no value: after a division by zero, or
   beyond 2**62. ---- */

#define TS_LIMIT 4611686018427387904LL

static long long ts_no_value(int *undefined) { *undefined = 1; return 0; }
static long long ts_add(long long a, long long b, int *undefined) {
    return (b > 0 ? a > TS_LIMIT - b : a < -TS_LIMIT - b) ? ts_no_value(undefined) : a + b;
}
static long long ts_subtract(long long a, long long b, int *undefined) { return ts_add(a, -b, undefined); }
static long long ts_multiply(long long a, long long b, int *undefined) {
    const long long most = b == 0 ? TS_LIMIT : TS_LIMIT / (b < 0 ? -b : b);
    return (a < 0 ? -a : a) > most ? ts_no_value(undefined) : a * b;
}
static long long ts_divide(long long a, long long b, int *undefined) {
    if (b == 0) return ts_no_value(undefined);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static long long ts_remainder(long long a, long long b, int *undefined) {
    if (b == 0) return ts_no_value(undefined);
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
static long long ts_ceildiv(long long a, long long b, int *undefined) { return -ts_divide(-a, b, undefined); }
static long long ts_round_up(long long a, long long b, int *undefined) {
    return ts_multiply(ts_ceildiv(a, b, undefined), b, undefined);
}
static long long ts_min(long long a, long long b) { return b < a ? b : a; }
static long long ts_max(long long a, long long b) { return b > a ? b : a; }
static long long ts_next_pow2(long long a, int *undefined) {
    long long power = 1;
    if (a <= 0) return ts_no_value(undefined);
    while (power < a) power *= 2;
    return power;
}
static int ts_is_pow2(long long a) { return a > 0 && (a & (a - 1)) == 0; }
/* Not every operator needs each of these. */
static void ts_all_of_them(void) {
    (void)ts_subtract; (void)ts_remainder; (void)ts_round_up; (void)ts_min; (void)ts_max;
    (void)ts_next_pow2; (void)ts_is_pow2; (void)ts_ceildiv; (void)ts_multiply; (void)ts_add;
}
