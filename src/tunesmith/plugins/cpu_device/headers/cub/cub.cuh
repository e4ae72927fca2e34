// CUB's reductions and scans of a block and of a warp, as models: the same results, in an order of their own.
#pragma once
#include "../tunesmith_cpu.h"
namespace cub {
struct Sum { template <typename T, typename U> auto operator()(const T &a, const U &b) const { return a + b; } };
struct Max { template <typename T, typename U> auto operator()(const T &a, const U &b) const { return b > a ? b : a; } };
struct Min { template <typename T, typename U> auto operator()(const T &a, const U &b) const { return b < a ? b : a; } };
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE };
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE };

template <typename T, int X, int ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
struct BlockReduce {
    enum { THREADS = X * Y * Z };
    struct TempStorage { alignas(T) unsigned char held[THREADS * sizeof(T)]; };
    TempStorage &own;
    explicit BlockReduce(TempStorage &given) : own(given) {}
    // Only the first thread has the result; the others keep what they gave.
    template <typename F> T Reduce(T value, F joined, int valid)
    {
        T *held = (T *)own.held;
        const int rank = __tunesmith_current();
        held[rank] = value;
        __syncthreads();
        if (rank == 0)
            for (int i = 1; i < valid; i++)
                value = joined(value, held[i]);
        return value;
    }
    template <typename F> T Reduce(T value, F joined) { return Reduce(value, joined, (int)THREADS); }
    template <int N, typename F> T Reduce(T (&values)[N], F joined)
    {
        T value = values[0];
        for (int i = 1; i < N; i++)
            value = joined(value, values[i]);
        return Reduce(value, joined);
    }
    T Sum(T value) { return Reduce(value, cub::Sum()); }
    T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
    template <int N> T Sum(T (&values)[N]) { return Reduce(values, cub::Sum()); }
};

template <typename T, int N = TUNESMITH_WARP, int = 0>
struct WarpReduce {
    struct TempStorage { unsigned char unused; };
    explicit WarpReduce(TempStorage &) {}
    template <typename F> T Reduce(T value, F joined, int valid)
    {
        const int rank = __tunesmith::lane() % N, first = __tunesmith::lane() / N * N;
        __tunesmith::meet((N >= 64 ? ~0ull : (1ull << (N & 63)) - 1) << first, value, __tunesmith::SHUFFLE);
        for (int i = 1; rank == 0 && i < valid; i++)
            if (__tunesmith_seen(first + i))
                value = joined(value, __tunesmith::of_lane<T>(first + i));
        return value;
    }
    template <typename F> T Reduce(T value, F joined) { return Reduce(value, joined, N); }
    T Sum(T value) { return Reduce(value, cub::Sum()); }
    T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
};

template <typename T, int X, int ALGORITHM = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
struct BlockScan {
    enum { THREADS = X * Y * Z };
    struct TempStorage { alignas(T) unsigned char held[THREADS * sizeof(T)]; };
    TempStorage &own;
    explicit BlockScan(TempStorage &given) : own(given) {}
    template <typename F> void InclusiveScan(T value, T &out, F joined, T &all)
    {
        T *held = (T *)own.held;
        const int rank = __tunesmith_current();
        held[rank] = value;
        __syncthreads();
        T sum = held[0];
        out = sum;
        for (int i = 1; i < THREADS; i++) {
            sum = joined(sum, held[i]);
            if (i == rank)
                out = sum;
        }
        all = sum;
    }
    template <typename F> void InclusiveScan(T value, T &out, F joined) { T all; InclusiveScan(value, out, joined, all); }
    template <typename F> void ExclusiveScan(T value, T &out, T first, F joined, T &all)
    {
        T *held = (T *)own.held;
        const int rank = __tunesmith_current();
        held[rank] = value;
        __syncthreads();
        T sum = first;
        for (int i = 0; i < THREADS; i++) {
            if (i == rank)
                out = sum;
            sum = joined(sum, held[i]);
        }
        all = sum;
    }
    template <typename F> void ExclusiveScan(T value, T &out, T first, F joined) { T all; ExclusiveScan(value, out, first, joined, all); }
    void InclusiveSum(T value, T &out) { InclusiveScan(value, out, cub::Sum()); }
    void InclusiveSum(T value, T &out, T &all) { InclusiveScan(value, out, cub::Sum(), all); }
    void ExclusiveSum(T value, T &out) { ExclusiveScan(value, out, T(0), cub::Sum()); }
    void ExclusiveSum(T value, T &out, T &all) { ExclusiveScan(value, out, T(0), cub::Sum(), all); }
};

template <typename T, int X, int ITEMS, int ALGORITHM = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int = 0>
struct BlockLoad {
    struct TempStorage { unsigned char unused; };
    BlockLoad() {}
    explicit BlockLoad(TempStorage &) {}
    static int place(int i)
    {
        const int rank = __tunesmith_current();
        return ALGORITHM == BLOCK_LOAD_STRIPED ? rank + i * X * Y * Z : rank * ITEMS + i;
    }
    template <typename P> void Load(P from, T (&items)[ITEMS]) { for (int i = 0; i < ITEMS; i++) items[i] = from[place(i)]; }
    template <typename P> void Load(P from, T (&items)[ITEMS], int valid) { for (int i = 0; i < ITEMS; i++) if (place(i) < valid) items[i] = from[place(i)]; }
    template <typename P, typename D> void Load(P from, T (&items)[ITEMS], int valid, D other) { for (int i = 0; i < ITEMS; i++) items[i] = place(i) < valid ? (T)from[place(i)] : (T)other; }
};
template <typename T, int X, int ITEMS, int ALGORITHM = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int = 0>
struct BlockStore {
    struct TempStorage { unsigned char unused; };
    BlockStore() {}
    explicit BlockStore(TempStorage &) {}
    static int place(int i)
    {
        const int rank = __tunesmith_current();
        return ALGORITHM == BLOCK_STORE_STRIPED ? rank + i * X * Y * Z : rank * ITEMS + i;
    }
    template <typename P> void Store(P to, T (&items)[ITEMS]) { for (int i = 0; i < ITEMS; i++) to[place(i)] = items[i]; }
    template <typename P> void Store(P to, T (&items)[ITEMS], int valid) { for (int i = 0; i < ITEMS; i++) if (place(i) < valid) to[place(i)] = items[i]; }
};
}  // namespace cub
