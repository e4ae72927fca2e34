"""What a written CUDA or HIP file defines before its kernel: packs, and loads and stores with hints."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunesmith.expert.model.kernel import Schedule
from tunesmith.expert.writing.naming import Names

_TOUCH = """\
// Keeps the compiler from holding on to what it made of these bits, which takes more registers than they do.
template <typename W> __device__ __forceinline__ void settle_word(W &) {}
template <> __device__ __forceinline__ void settle_word(unsigned int &w) { asm volatile("" : "+r"(w)); }
template <> __device__ __forceinline__ void settle_word(uint2 &w) { asm volatile("" : "+r"(w.x), "+r"(w.y)); }
template <> __device__ __forceinline__ void settle_word(uint4 &w)
{
    asm volatile("" : "+r"(w.x), "+r"(w.y), "+r"(w.z), "+r"(w.w));
}

"""

_OWN = ("settle_word", "Pack", "word_of", "two_words", "four_words", "fetch_once", "fetch_shared", "put_once")


def own_names(names: Names) -> dict[str, str]:
    """What is defined here -> what it is called, should the source use a word of ours."""
    return {word: names.fresh(word) for word in _OWN}


_WORDS = """\
template <int BYTES> struct word_of;
template <> struct word_of<1> { typedef unsigned char type; };
template <> struct word_of<2> { typedef unsigned short type; };
template <> struct word_of<4> { typedef unsigned int type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<16> { typedef uint4 type; };
"""

_HIP_WORDS = """\
typedef unsigned int two_words __attribute__((ext_vector_type(2)));
typedef unsigned int four_words __attribute__((ext_vector_type(4)));
template <int BYTES> struct word_of;
template <> struct word_of<1> { typedef unsigned char type; };
template <> struct word_of<2> { typedef unsigned short type; };
template <> struct word_of<4> { typedef unsigned int type; };
template <> struct word_of<8> { typedef two_words type; };
template <> struct word_of<16> { typedef four_words type; };
"""

_PACK = """\
// N values side by side, moved in words as wide as their number and an alignment of ALIGN bytes allow.
template <typename T, int N, int ALIGN>
struct Pack {{
    static constexpr int BYTES = N * (int)sizeof(T);
    static constexpr int LEAST = ALIGN > (int)alignof(T) ? ALIGN : (int)alignof(T);
    static constexpr int WIDTH = BYTES % 16 == 0 && LEAST >= 16 ? 16
        : BYTES % 8 == 0 && LEAST >= 8 ? 8
        : BYTES % 4 == 0 && LEAST >= 4 ? 4
        : BYTES % 2 == 0 && LEAST >= 2 ? 2 : 1;
    typedef typename word_of<WIDTH>::type word;
    alignas(WIDTH) alignas(T) T at[N];
{methods}}};
"""

_METHOD = """\

    __device__ __forceinline__ void {name}({argument})
    {{
#pragma unroll
        for (int w = 0; w < BYTES / WIDTH; w++)
            {statement};
    }}
"""


def packs(schedule: Schedule, language: str, called: Mapping[str, str], settles: bool) -> str:
    """The types for packs; hinted ways of moving them where the schedule has hints."""
    hip = language == "hip"
    moves = [_load("load", "{from_}")]
    before = ""
    if schedule.load_hint is not None:
        before += _hip_load(schedule.load_hint.name) if hip else _load_hints(schedule.load_hint.name)
        moves += [_load("load_once", "fetch_once(&{from_})"), _load("load_shared", "fetch_shared(&{from_})")]
    moves.append(_store("store", "{to} = {value}"))
    if schedule.store_hint is not None:
        before += _hip_store(schedule.store_hint.name) if hip else _store_hint(schedule.store_hint.name)
        moves.append(_store("store_once", "put_once(&{to}, {value})"))
    if settles:
        before += _TOUCH
        moves.append(
            _METHOD.format(
                name="settle", argument="", statement="settle_word(reinterpret_cast<word *>(at)[w])"
            )
        )
    words = _HIP_WORDS if hip else _WORDS
    text = f"{words}\n{before}{_PACK.format(methods=''.join(moves))}"
    return re.sub(r"\b(" + "|".join(called) + r")\b", lambda found: called[found.group()], text)


def _load(name: str, value: str) -> str:
    source = value.format(from_="reinterpret_cast<const word *>(from)[w]")
    statement = f"reinterpret_cast<word *>(at)[w] = {source}"
    return _METHOD.format(name=name, argument="const T *from", statement=statement)


def _store(name: str, statement: str) -> str:
    text = statement.format(
        to="reinterpret_cast<word *>(to)[w]", value="reinterpret_cast<const word *>(at)[w]"
    )
    method = _METHOD.format(name=name, argument="T *to", statement=text)
    return method.replace("(T *to)", "(T *to) const")


def _load_hints(hint: str) -> str:
    text = f"""\
// Arrays that the kernel only reads: 1: not kept in L1; 2: evicted first.
template <typename W>
__device__ __forceinline__ W fetch_once(const W *from)
{{
#if {hint} == 1
    return __ldg(from);
#elif {hint} == 2
    return __ldcs(from);
#else
    return *from;
#endif
}}

// The same for arrays that the kernel writes as well, which may not take the read-only path.
template <typename W>
__device__ __forceinline__ W fetch_shared(const W *from)
{{
#if {hint} == 2
    return __ldcs(from);
#else
    return *from;
#endif
}}

#if {hint} == 1
"""
    for name, path in (("fetch_once", ".nc"), ("fetch_shared", "")):
        text += f"""\
template <>
__device__ __forceinline__ uint4 {name}<uint4>(const uint4 *from)
{{
    uint4 v;
    asm volatile("ld.global{path}.L1::no_allocate.v4.u32 {{%0, %1, %2, %3}}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}}

template <>
__device__ __forceinline__ uint2 {name}<uint2>(const uint2 *from)
{{
    uint2 v;
    asm volatile("ld.global{path}.L1::no_allocate.v2.u32 {{%0, %1}}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(from));
    return v;
}}

"""
    return text.rstrip("\n") + "\n#endif\n\n"


def _store_hint(hint: str) -> str:
    return f"""\
template <typename W>
__device__ __forceinline__ void put_once(W *to, W value)
{{
#if {hint}  // evicted first
    __stcs(to, value);
#else
    *to = value;
#endif
}}

"""


def _hip_load(hint: str) -> str:
    text = ""
    for name in ("fetch_once", "fetch_shared"):
        text += f"""\
template <typename W>
__device__ __forceinline__ W {name}(const W *from)
{{
#if {hint}  // evicted first
    return __builtin_nontemporal_load(from);
#else
    return *from;
#endif
}}

"""
    return text


def _hip_store(hint: str) -> str:
    return f"""\
template <typename W>
__device__ __forceinline__ void put_once(W *to, W value)
{{
#if {hint}  // evicted first
    __builtin_nontemporal_store(value, to);
#else
    *to = value;
#endif
}}

"""
