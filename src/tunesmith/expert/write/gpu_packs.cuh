// What a written CUDA or HIP file defines before its kernel: packs, and loads and stores with hints.
// Parts begin with their names; parts.py puts words in place of @THESE@.
//= settle
// Keeps the compiler from holding on to what it made of these bits, which takes more registers than they do.
template <typename W> __device__ __forceinline__ void settle_word(W &) {}
template <> __device__ __forceinline__ void settle_word(unsigned int &w) { asm volatile("" : "+r"(w)); }
template <> __device__ __forceinline__ void settle_word(uint2 &w) { asm volatile("" : "+r"(w.x), "+r"(w.y)); }
template <> __device__ __forceinline__ void settle_word(uint4 &w)
{
    asm volatile("" : "+r"(w.x), "+r"(w.y), "+r"(w.z), "+r"(w.w));
}

//= hip types
typedef unsigned int two_words __attribute__((ext_vector_type(2)));
typedef unsigned int four_words __attribute__((ext_vector_type(4)));
//= words
// What a thread moves with one instruction: a word of so many bytes.
template <int BYTES> struct word_of;
template <> struct word_of<1> { typedef unsigned char type; };
template <> struct word_of<2> { typedef unsigned short type; };
template <> struct word_of<4> { typedef unsigned int type; };
template <> struct word_of<8> { typedef @TWO@ type; };
template <> struct word_of<16> { typedef @FOUR@ type; };
//= pack
// N values side by side, moved in words as wide as their number and an alignment of ALIGN bytes allow.
template <typename T, int N, int ALIGN>
struct Pack {
    static constexpr int BYTES = N * (int)sizeof(T);
    static constexpr int LEAST = ALIGN > (int)alignof(T) ? ALIGN : (int)alignof(T);
    static constexpr int WIDTH = BYTES % 16 == 0 && LEAST >= 16 ? 16
        : BYTES % 8 == 0 && LEAST >= 8 ? 8
        : BYTES % 4 == 0 && LEAST >= 4 ? 4
        : BYTES % 2 == 0 && LEAST >= 2 ? 2 : 1;
    typedef typename word_of<WIDTH>::type word;
    alignas(WIDTH) alignas(T) T at[N];
@METHODS@};
//= method

    __device__ __forceinline__ void @NAME@@ARGUMENTS@
    {
#pragma unroll
        for (int w = 0; w < BYTES / WIDTH; w++)
            @STATEMENT@;
    }
//= load hints
// Loads from arrays that the kernel only reads: 1: not kept in L1; 2: evicted first.
template <typename W>
__device__ __forceinline__ W fetch_once(const W *from)
{
#if @HINT@ == 1
    return __ldg(from);
#elif @HINT@ == 2
    return __ldcs(from);
#else
    return *from;
#endif
}

// The same for arrays that the kernel writes as well, which may not take the read-only path.
template <typename W>
__device__ __forceinline__ W fetch_shared(const W *from)
{
#if @HINT@ == 2
    return __ldcs(from);
#else
    return *from;
#endif
}

#if @HINT@ == 1
//= load past L1
template <>
__device__ __forceinline__ uint4 @NAME@<uint4>(const uint4 *from)
{
    uint4 v;
    asm volatile("ld.global@PATH@.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

template <>
__device__ __forceinline__ uint2 @NAME@<uint2>(const uint2 *from)
{
    uint2 v;
    asm volatile("ld.global@PATH@.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(from));
    return v;
}

//= hip load
template <typename W>
__device__ __forceinline__ W @NAME@(const W *from)
{
#if @HINT@  // evicted first
    return __builtin_nontemporal_load(from);
#else
    return *from;
#endif
}

//= store hint
// Stores what nobody reads again soon.
template <typename W>
__device__ __forceinline__ void put_once(W *to, W value)
{
#if @HINT@  // evicted first
    @STORE@;
#else
    *to = value;
#endif
}

//= ring
#if @STAGES@
// A copy into shared memory that goes on by itself; past L1 where nobody else wants the bytes.
template <typename W>
__device__ __forceinline__ void copy_word(W *to, const W *from, bool once)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(to);
    static_assert(sizeof(W) == 4 || sizeof(W) == 8 || sizeof(W) == 16, "no copy has this size");
    if (sizeof(W) == 16 && once)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
    else if (sizeof(W) == 16)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
    else if (sizeof(W) == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(at), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(from) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// For the oldest of the chunks under way.
__device__ __forceinline__ void wait_copies()
{
@WAITS@
}
#endif

//= bulk
#if @BULK@
__device__ __forceinline__ void make_barriers(unsigned long long *arrived, unsigned int *come)
{
    for (int s = 0; s < @STAGES@; s++) {
        const unsigned int at = (unsigned int)__cvta_generic_to_shared(arrived + s);
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at) : "memory");
    }
    for (int s = 0; s <= @STAGES@; s++)
        come[s] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Of a team's threads the one that goes on when the last has come: what they have read may be overwritten.
__device__ __forceinline__ bool last_of_team(unsigned int *come)
{
    __syncwarp();
    if (threadIdx.x % 32)
        return false;
#if @LANES@ > 32
    __threadfence_block();
    if (atomicInc(come, @LANES@ / 32 - 1) != @LANES@ / 32 - 1)
        return false;
    __threadfence_block();
#endif
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    return true;
}

__device__ __forceinline__ void expect_bytes(unsigned long long *arrived, int bytes)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(arrived);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory");
}

__device__ __forceinline__ void send_run(void *to, const void *from, int bytes, unsigned long long *arrived)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(to);
    const unsigned int told = (unsigned int)__cvta_generic_to_shared(arrived);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(at), "l"(from), "r"(bytes), "r"(told) : "memory");
}

__device__ __forceinline__ void await_run(unsigned long long *arrived, unsigned int phase)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(arrived);
    unsigned int done;
    do
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(phase) : "memory");
    while (!done);
}
#endif

//= ring methods

#if @STAGES@
    // Its first word in a ring: those of a block's threads lie side by side.
    __device__ __forceinline__ static word *slot(unsigned char *ring, int place)
    {
        const int thread = threadIdx.y * @LANES@ + threadIdx.x;
        return reinterpret_cast<word *>(ring) + place * (BYTES / WIDTH * @THREADS@) + thread;
    }

    __device__ __forceinline__ static void copy(unsigned char *ring, int place, const T *from, bool once)
    {
        const word *words = reinterpret_cast<const word *>(from);
#pragma unroll
        for (int w = 0; w < BYTES / WIDTH; w++)
            copy_word(slot(ring, place) + w * @THREADS@, words + w, once);
    }

    __device__ __forceinline__ void take(unsigned char *ring, int place)
    {
#pragma unroll
        for (int w = 0; w < BYTES / WIDTH; w++)
            reinterpret_cast<word *>(at)[w] = slot(ring, place)[w * @THREADS@];
    }
#endif
