"""Packs of neighbours in CUDA and HIP: their types, where they lie, loads and stores with hints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

from tunesmith.csource.nodes import Binary, Cast, Expr, Index, Name, Type
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import names_in
from tunesmith.expert.model.kernel import Schedule
from tunesmith.expert.writing.bodies import IndexDivision
from tunesmith.expert.writing.naming import CodeLines, Names
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import LoopPlan, WritingPlan

_OWN = ("settle_word", "Pack", "word_of", "two_words", "four_words", "fetch_once", "fetch_shared", "put_once")


def own_names(names: Names) -> dict[str, str]:
    """What `gpu_packs.cuh` defines -> what it is called, should the source use a word of ours."""
    return {word: names.fresh(word) for word in _OWN}


def packs(schedule: Schedule, language: str, called: Mapping[str, str], settles: bool) -> str:
    """The types for packs; hinted ways of moving them where the schedule has hints."""
    hip, at = language == "hip", "reinterpret_cast<{}word *>({})[w]"
    own, source, target = at.format("", "at"), at.format("const ", "from"), at.format("", "to")
    value = at.format("const ", "at")
    loads, stores = {"load": source}, {"store": f"{target} = {value}"}
    before = ""
    if schedule.load_hint is not None:
        hint = schedule.load_hint.name
        both = {"fetch_once": ".nc", "fetch_shared": ""}
        if hip:
            before += "".join(_part("hip load", HINT=hint, NAME=name) for name in both)
        else:
            special = "".join(_part("load past L1", NAME=name, PATH=path) for name, path in both.items())
            before += _part("load hints", HINT=hint) + special.rstrip("\n") + "\n#endif\n\n"
        loads |= {"load_once": f"fetch_once(&{source})", "load_shared": f"fetch_shared(&{source})"}
    if schedule.store_hint is not None:
        store = "__builtin_nontemporal_store(value, to)" if hip else "__stcs(to, value)"
        before += _part("store hint", HINT=schedule.store_hint.name, STORE=store)
        stores["store_once"] = f"put_once(&{target}, {value})"
    methods = [_method(name, "(const T *from)", f"{own} = {text}") for name, text in loads.items()]
    methods += [_method(name, "(T *to) const", text) for name, text in stores.items()]
    if settles:
        before += _part("settle")
        methods.append(_method("settle", "()", f"settle_word({own})"))
    two, four = ("two_words", "four_words") if hip else ("uint2", "uint4")
    words = (_part("hip types") if hip else "") + _part("words", TWO=two, FOUR=four)
    text = f"{words}\n{before}{_part('pack', METHODS=''.join(methods))}"
    return re.sub(r"\b(" + "|".join(called) + r")\b", lambda found: called[found.group()], text)


def _method(name: str, arguments: str, statement: str) -> str:
    return _part("method", NAME=name, ARGUMENTS=arguments, STATEMENT=statement)


@cache
def resource(name: str) -> str:
    return resources.files("tunesmith.expert.writing").joinpath(name).read_text(encoding="utf-8")


def filled(text: str, words: Mapping[str, str]) -> str:
    """With words in the places of @WORD@."""
    return re.sub(r"@([A-Z]+)@", lambda found: words[found.group(1)], text)


def _part(name: str, **words: str) -> str:
    """A part of `gpu_packs.cuh`, with words in their places."""
    parts = dict(part.split("\n", 1) for part in resource("gpu_packs.cuh").split("//= ")[1:])
    return filled(parts[name], words)


# -- packs of neighbours in CUDA and HIP: their types, where they lie, and in which order they are loaded


class GpuPacks:
    """`pack`: the type's name; `here`: the index where a pack starts; `item`: which of a thread's packs."""

    division: IndexDivision

    def __init__(self, plan: WritingPlan, pack: str, here: str, item: str) -> None:
        self._plan, self._pack, self._here, self._item = plan, pack, here, item

    def _type(self, loop: LoopPlan) -> str:
        return self._plan.index_type(loop, "long long")

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
        kept = {kept.name: kept.type for kept in self._plan.kernel.kept}
        return {**self._plan.arrays, **kept}[pack.array].base

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

    def _in_turn(self, loads: Sequence[Pack], out: CodeLines) -> Iterator[list[Pack]]:
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
        known = {p.name for p in plan.kernel.function.parameters if not p.type.is_pointer}
        known |= {task.name for task in plan.kernel.tasks} | {loop.each.index for loop in plan.all_loops}
        names = names_in(pack.index) | (frozenset() if pack.offset is None else names_in(pack.offset))
        return not names <= known

    def _load(self, pack: Pack, loop: LoopPlan, out: CodeLines) -> None:
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
