// /// tunesmith
// [params]
// LOCAL  = [1, 16]              # a group is LOCAL x LOCAL work-items
// ROWS   = [1, 16, 64, 256]     # rows and
// COLS   = [1, 16, 64]          # columns of the tile that one work-item moves
// BLOCK  = [1, 8, 16]           # rows turned at once in registers; 1: element by element
// ORDER  = [0, 1]               # 0: down the tile's columns first, writes in sequence; 1: along its rows
// STREAM = [0, 1]               # 1: results go past the cache, where they are whole aligned vectors
// [default]
// LOCAL  = 16
// ROWS   = 1
// COLS   = 1
// BLOCK  = 1
// ORDER  = 0
// STREAM = 0
// [require]
// group_fits = "LOCAL * LOCAL <= device.max_threads"
// [prefer]
// tile_holds_block = "BLOCK <= min(ROWS, COLS)"
// enough_work = "LOCAL * ROWS * COLS >= 16"
// group_not_huge = "LOCAL == 1 or ROWS * COLS <= 256"
// order_matters = "ORDER == 0 or min(ROWS, COLS) > 1"
// stream_vectors = "STREAM == 0 or (BLOCK > 1 and rows % BLOCK == 0)"
// [answers]                  # what a diagnosis may ask for, and which configurations have it
// coalesce    = "BLOCK > 1"                     # a square of elements is turned in registers
// wide_access = "BLOCK > 1"
// more_blocks = "LOCAL * LOCAL * ROWS * COLS <= 256"
// block_size  = "LOCAL != 16"
// cache_hints = "STREAM == 1"
// [launch]
// grid  = ["ceildiv(cols, LOCAL * COLS)", "ceildiv(rows, LOCAL * ROWS)"]
// block = ["LOCAL", "LOCAL"]
// ///
//
// out[c, r] = input[r, c]
// A work-item moves a tile, so that the cache lines it touches are used up before they leave. Inside,
// blocks of BLOCK x 8 elements are read along rows, turned in registers and written along columns.

#ifndef LOCAL
#define LOCAL 16
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef COLS
#define COLS 1
#endif
#ifndef BLOCK
#define BLOCK 1
#endif
#ifndef ORDER
#define ORDER 0
#endif
#ifndef STREAM
#define STREAM 0
#endif

#if BLOCK == 1
typedef float vec;
#define WIDE 1
#elif BLOCK == 8
typedef float8 vec;
#define WIDE 8
#elif BLOCK == 16
typedef float16 vec;
#define WIDE 8
#endif

// A row may start at any float. A packed struct says so, and unlike vloadN it is never a call.
typedef struct __attribute__((packed)) { float8 v; } unaligned8;
typedef struct __attribute__((packed)) { vec v; } unaligned;
#define LOAD8(p) (((__global const unaligned8 *)(p))->v)
#define STORE(x, p) (((__global unaligned *)(p))->v = (x))

#if STREAM && defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM_STORE(x, p) __builtin_nontemporal_store(x, (__global vec *)(p))
#endif
#endif
#ifndef STREAM_STORE
#define STREAM_STORE(x, p) STORE(x, p)
#endif
#define PUT(x, p) do { if (aligned) STREAM_STORE(x, p); else STORE(x, p); } while (0)

#if BLOCK == 1
void move_block(__global float *to, __global const float *from, size_t rows, size_t cols, int aligned)
{
    *to = *from;
}
#else
// Eight rows of eight become eight columns in three rounds: singles, pairs, then quads change places.
typedef struct { float8 c0, c1, c2, c3, c4, c5, c6, c7; } columns;
#define SINGLES_LO(a, b) ((float8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5))
#define SINGLES_HI(a, b) ((float8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7))
#define PAIRS_LO(a, b) ((float8)(a.s01, b.s01, a.s45, b.s45))
#define PAIRS_HI(a, b) ((float8)(a.s23, b.s23, a.s67, b.s67))
#define QUADS_LO(a, b) ((float8)(a.lo, b.lo))
#define QUADS_HI(a, b) ((float8)(a.hi, b.hi))

columns turn(__global const float *from, size_t cols)
{
    float8 r0 = LOAD8(from), r1 = LOAD8(from + cols);
    float8 r2 = LOAD8(from + 2 * cols), r3 = LOAD8(from + 3 * cols);
    float8 r4 = LOAD8(from + 4 * cols), r5 = LOAD8(from + 5 * cols);
    float8 r6 = LOAD8(from + 6 * cols), r7 = LOAD8(from + 7 * cols);

    float8 s0 = SINGLES_LO(r0, r1), s1 = SINGLES_HI(r0, r1);
    float8 s2 = SINGLES_LO(r2, r3), s3 = SINGLES_HI(r2, r3);
    float8 s4 = SINGLES_LO(r4, r5), s5 = SINGLES_HI(r4, r5);
    float8 s6 = SINGLES_LO(r6, r7), s7 = SINGLES_HI(r6, r7);

    float8 p0 = PAIRS_LO(s0, s2), p1 = PAIRS_HI(s0, s2);
    float8 p2 = PAIRS_LO(s1, s3), p3 = PAIRS_HI(s1, s3);
    float8 p4 = PAIRS_LO(s4, s6), p5 = PAIRS_HI(s4, s6);
    float8 p6 = PAIRS_LO(s5, s7), p7 = PAIRS_HI(s5, s7);

    columns t;
    t.c0 = QUADS_LO(p0, p4);
    t.c1 = QUADS_LO(p1, p5);
    t.c2 = QUADS_LO(p2, p6);
    t.c3 = QUADS_LO(p3, p7);
    t.c4 = QUADS_HI(p0, p4);
    t.c5 = QUADS_HI(p1, p5);
    t.c6 = QUADS_HI(p2, p6);
    t.c7 = QUADS_HI(p3, p7);
    return t;
}

void move_block(__global float *to, __global const float *from, size_t rows, size_t cols, int aligned)
{
    columns t = turn(from, cols);
#if BLOCK == 8
#define COLUMN(k) t.k
#else
    columns u = turn(from + 8 * cols, cols);
#define COLUMN(k) ((float16)(t.k, u.k))
#endif
    PUT(COLUMN(c0), to);
    PUT(COLUMN(c1), to + rows);
    PUT(COLUMN(c2), to + 2 * rows);
    PUT(COLUMN(c3), to + 3 * rows);
    PUT(COLUMN(c4), to + 4 * rows);
    PUT(COLUMN(c5), to + 5 * rows);
    PUT(COLUMN(c6), to + 6 * rows);
    PUT(COLUMN(c7), to + 7 * rows);
}
#endif

#define FROM(r, c) (input + (size_t)(r) * cols + (c))
#define TO(r, c) (out + (size_t)(c) * rows + (r))

__kernel __attribute__((reqd_work_group_size(LOCAL, LOCAL, 1)))
void transpose(__global float *out,
               __global const float *input,
               int rows, int cols)
{
    int left = get_global_id(0) * COLS, right = min(cols, left + COLS);
    int top = get_global_id(1) * ROWS, bottom = min(rows, top + ROWS);
    if (left >= right || top >= bottom)
        return;
    int blocks_right = right - (right - left) % WIDE;
    int blocks_bottom = bottom - (bottom - top) % BLOCK;
    int aligned = STREAM && rows % BLOCK == 0 && (size_t)TO(top, left) % sizeof(vec) == 0;

#if ORDER == 0
    for (int c = left; c < blocks_right; c += WIDE)
        for (int r = top; r < blocks_bottom; r += BLOCK)
#else
    for (int r = top; r < blocks_bottom; r += BLOCK)
        for (int c = left; c < blocks_right; c += WIDE)
#endif
            move_block(TO(r, c), FROM(r, c), rows, cols, aligned);

    // What is too narrow for a block: the columns at the right, then the rows at the bottom.
    for (int c = blocks_right; c < right; c++)
        for (int r = top; r < blocks_bottom; r++)
            *TO(r, c) = *FROM(r, c);
    for (int r = blocks_bottom; r < bottom; r++)
        for (int c = left; c < right; c++)
            *TO(r, c) = *FROM(r, c);
}
