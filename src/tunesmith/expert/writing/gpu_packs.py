"""Packs of neighbours in CUDA and HIP: their types, where they lie, loads and stores with hints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tunesmith.expert.c.nodes import Binary, Cast, Expr, Index, Name, Number, Type
from tunesmith.expert.c.printing import print_expr
from tunesmith.expert.c.substitution import substitute
from tunesmith.expert.c.walk import names_in
from tunesmith.expert.model.affine import byte_size
from tunesmith.expert.model.kernel import Schedule
from tunesmith.expert.writing.bodies import IndexDivision
from tunesmith.expert.writing.naming import Lines, Names
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import LoopPlan, Plan

# -- what a written CUDA or HIP file defines before its kernel: packs, and loads and stores with hints


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


# -- packs of neighbours in CUDA and HIP: their types, where they lie, and in which order they are loaded


class GpuPacks:
    """`pack`: the type's name; `here`: the index where a pack starts; `item`: which of a thread's packs."""

    division: IndexDivision

    def __init__(self, plan: Plan, pack: str, here: str, item: str) -> None:
        self._plan, self._pack, self._here, self._item = plan, pack, here, item

    def _type(self, loop: LoopPlan) -> str:
        """An int, unless a step beyond the end could overflow it."""
        reach = [loop.each.stop, Number("2", 2)] if self._is_spread else [loop.each.stop]
        return "int" if self._plan.sizes.fits_int(*reach) else "long long"

    @property
    def _is_spread(self) -> bool:
        return self._plan.is_flat or self._plan.knobs.split.most > 0

    def _pack_type(self, pack: Pack) -> str:
        base, vec = self._element(pack), self._plan.knobs.vector.name
        align = 16 if pack.array not in self._plan.arrays else self._plan.element_align[pack.array]
        if pack.element is not None:
            align = byte_size(base) or 1
        number = {0: "1", 1: vec}.get(pack.width, f"{pack.width} * {vec}")
        limit = str(align)
        size = byte_size(base)
        if pack.width == 0:
            limit = str(min(align, size or 1))
        elif pack.unit != pack.width:
            limit = f"{vec} * {size or 1} < {align} ? {vec} * {size or 1} : {align}"
        return f"{self._pack}<{base}, {number}, {f'({limit})' if '<' in limit else limit}>"

    def _element(self, pack: Pack) -> str:
        if pack.element is not None:
            return pack.element.base
        kept = {kept.name: kept.type.base for kept in self._plan.kernel.kept}
        return kept[pack.array] if pack.array in kept else self._plan.arrays[pack.array].base

    def _address(self, pack: Pack, loop: LoopPlan) -> str:
        return f"&{print_expr(self._place(pack, loop, Name(self._here)))}"

    def _place(self, pack: Pack, loop: LoopPlan, here: Expr) -> Index:
        """The pack's first element, where `here` is the first index of the pack."""
        if loop.each.type != self._type(loop):
            here = Cast(Type(loop.each.type), here)
        index = self.division.in_expr(substitute(pack.index, {loop.each.index: here}), _bare(here))
        base: Expr = Name(pack.array)
        if pack.offset is not None:
            offset = self.division.in_expr(substitute(pack.offset, {loop.each.index: here}), _bare(here))
            base = Binary("+", base, offset)
        if pack.element is not None:
            const = pack.array in self._plan.arrays and self._plan.arrays[pack.array].const
            base = Cast(Type(pack.element.base, 1, const), base)
        return Index(base, index)

    def _in_turn(self, loads: Sequence[Pack], out: Lines) -> Iterator[list[Pack]]:
        """Loads that wait for nothing, then the others, with a branch in between where there is no loop."""
        plan = self._plan
        at_once = [pack for pack in loads if not self._waits(pack)]
        later = [pack for pack in loads if self._waits(pack)]
        once = plan.language == "cuda" and plan.knobs.split.most > 0 and not plan.is_flat
        if not (at_once and later and once and later[0].array in plan.arrays):
            yield [*at_once, *later]
            return
        yield at_once
        out.add(f"#if {plan.knobs.split.name}")
        out.add(f"if (!{later[0].array})  // never so; but the compiler puts no load off beyond a branch")
        out.add("    __trap();", "#endif")
        yield later

    def _waits(self, pack: Pack) -> bool:
        """Whether its place depends on more than parameters, the task and the index."""
        plan = self._plan
        told = {p.name for p in plan.kernel.function.parameters if not p.type.is_pointer}
        told |= {task.name for task in plan.kernel.tasks} | {loop.each.index for loop in plan.all_loops}
        names = names_in(pack.index) | (frozenset() if pack.offset is None else names_in(pack.offset))
        return not names <= told

    def _load(self, pack: Pack, loop: LoopPlan, out: Lines) -> None:
        address = self._address(pack, loop)
        out.add(f"{loop.names[pack.key]}[{self._item}].{self._way_in(pack)}({address});")

    def _way_in(self, pack: Pack) -> str:
        hinted = self._plan.draft.schedule.load_hint is not None and pack.width > 0
        if hinted and pack.array in self._plan.arrays and self._plan.is_touched_once(pack):
            return "load_shared" if pack.array in self._plan.written else "load_once"
        return "load"

    def _way_out(self, pack: Pack) -> str:
        hinted = self._plan.draft.schedule.store_hint is not None and pack.array in self._plan.arrays
        return "store_once" if hinted else "store"


def _bare(expr: Expr) -> Expr:
    """Without the conversion to a loop's own type."""
    return expr.value if isinstance(expr, Cast) else expr
