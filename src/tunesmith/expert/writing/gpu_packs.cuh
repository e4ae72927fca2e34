// What a written CUDA or HIP file defines before its kernel: packs, and loads and stores with hints.
// Parts begin with their names; gpu_packs.py puts words in place of @THESE@.
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

