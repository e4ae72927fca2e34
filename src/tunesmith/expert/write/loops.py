"""What loops over a task's elements have in common wherever they run: who starts where, and their bodies.

A body is made ready: cheap divisions, fast forms behind macros, packs for accesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tunesmith.expert.read.model import Each, Total
from tunesmith.expert.write.buffers import Buffer, Copy, LoopPlan
from tunesmith.expert.write.fast_math import FastMath, IndexDivision, Inverses, known_types
from tunesmith.expert.write.given import (
    PACK_WORDS,
    VECTOR_WORDS,
    LoopAxis,
    at_line,
    item_axis,
    macro_names,
    nest_loops,
    render_template_part,
    words_in_texts,
)
from tunesmith.expert.write.packs import Pack, pack_replacements, split_final_conversion
from tunesmith.expert.write.plan import WritingPlan
from tunesmith.expert.write.sites import match_counted_loop
from tunesmith.expert.write.totals import CpuTotals, TeamTotals, assign_to_name, combine_totals, start_total
from tunesmith.source import tree as c
from tunesmith.source.snippets import chain_operator, parse_snippet
from tunesmith.source.substitution import substitute
from tunesmith.source.types import byte_size, integer_literal
from tunesmith.source.walk import map_nodes, map_statements, names_in, prepend_comments

_SHORT = 16  # turns


def is_short(loop: c.For) -> bool:
    """Such a loop is unrolled whole, so that arrays stay in registers."""
    count = match_counted_loop(loop)
    return count is not None and count[1] <= _SHORT


def add_unroll_pragmas(body: Iterable[c.Stmt], plan: WritingPlan) -> tuple[c.Stmt, ...]:
    """Short counted loops unrolled whole; others as the schedule says."""
    others = plan.knobs.unroll

    def visit(stmt: c.Stmt) -> c.Stmt:
        if not isinstance(stmt, c.For) or stmt.unroll is not None:
            return stmt
        if is_short(stmt):
            return replace(stmt, unroll=0)
        return replace(stmt, unroll=others.name) if others.is_parameter else stmt

    return map_statements(body, on_stmt=visit)


class ElementLoops:
    """Loops over the elements of a task, which its threads share: the part that GPUs and CPUs have alike."""

    totals: TeamTotals | CpuTotals
    ring: Sequence[object] = ()  # what of shared memory holds chunks under way

    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        self._plan, self._fast = plan, fast
        self.words = plan.words
        # base: where a thread's turn begins; k: which of its packs; here: the index where that one starts.
        self.lane, self._item, self._base = (plan.word(word) for word in ("lane", "k", "base"))
        self._here = c.Name(plan.word("here"))
        self.division = IndexDivision(plan)

    def defines(self) -> tuple[c.Stmt, ...]:
        """What the loops say at the top of the file."""
        team = "group" if self._plan.language == "opencl" else "block"
        about = f"elements of a task that a {team} takes at once"
        return (*self.totals.defines(), self.words.define("CHUNK", "LANES * VEC * ITEMS", about))

    def declare(self) -> tuple[c.Stmt, ...]:
        """What they need at the top of the kernel."""
        return (
            *self.division.declare(),
            *self.totals.declare(),
            *self.words.code("const int lane = threadIdx.x;"),
        )

    def before(self) -> list[str]:
        """What they need at the top of the file."""
        return []

    def functions(self) -> tuple[c.Function, ...]:
        """What they call of their own."""
        return ()

    def _fast_body(self, loop: LoopPlan) -> tuple[tuple[c.Stmt, ...], Inverses]:
        """The loop's body with fast forms behind macros, and what is to be computed before the loop."""
        varying = frozenset((loop.each.index, *(total.name for total in loop.each.totals)))
        return self._fast.statements(loop.each.body, known_types(self._plan.kernel), varying)

    def _end(self, loop: LoopPlan) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        """Where the loop ends: nowhere behind its start, for a thread without a task."""
        stop = loop.each.stop
        if self._plan.guards:
            stop = c.Ternary(self.words.expr("inside"), stop, loop.each.start)
        elif isinstance(stop, c.Name | c.Number) and self._plan.language != "opencl":
            return (), stop
        name = self._plan.names.fresh("end")
        type_ = self._plan.index_type(loop)
        return parse_snippet("const T end = stop;", T=type_, end=name, stop=stop), c.Name(name)

    def _first(self, loop: LoopPlan, place: c.Expr, per_block: c.Expr, type_: str) -> c.Expr:
        """Where a thread starts: its place in the block, behind the blocks before it."""
        start = () if loop.each.start == c.Number("0", 0) else (loop.each.start,)
        return chain_operator("+", *start, *self._blocks_before(per_block, type_), place)

    def _blocks_before(self, per_block: c.Expr, type_: str) -> tuple[c.Expr, ...]:
        before = self.words.expr("(T)PIECE * per_block", T=type_, per_block=per_block)
        return (before,) if self._plan.is_spread else ()

    def _turns(self, type_: str, first: c.Expr, end: c.Expr, per_block: c.Expr, name: str = "") -> LoopAxis:
        """A thread's turns, of which all blocks at a task together take `per_block` each."""
        step = self.words.expr("(T)PIECES * per_block", T=type_, per_block=per_block)
        return LoopAxis(name or self._base, end, first, step if self._plan.is_spread else per_block, type_)

    def _items(self, loop: LoopPlan, end: c.Expr, count: str, base: c.Expr | None = None) -> LoopAxis:
        """A thread's packs of the chunk at hand, or at `base`, as far as they lie in the range."""
        within = self.words.expr("here + (VEC - 1) < end" if loop.tail else "here < end", end=end)
        return self._all_items(self._plan.index_type(loop), count, base, within)

    def _all_items(
        self, type_: str, count: str, base: c.Expr | None = None, within: c.Expr | None = None
    ) -> LoopAxis:
        text, base = "const T here = base + k * (LANES * VEC);", base or c.Name(self._base)
        start = self.words.code(text, T=type_, base=base)
        return item_axis(self._item, self.words.expr(count), start, within)

    def _rest(self, loop: LoopPlan, end: c.Expr, type_: str) -> c.Expr:
        """Where a thread starts on what the whole vectors leave of the range, one element at a time."""
        start, lanes = loop.each.start, self.words.expr("LANES")
        text = "end - end % VEC" if start == c.Number("0", 0) else "end - (end - start) % VEC"
        whole = self.words.expr(text, end=end, start=start)
        return chain_operator("+", whole, *self._blocks_before(lanes, type_), c.Name(self.lane))

    def _place(self, pack: Pack, loop: LoopPlan, here: c.Expr) -> c.Index:
        """The pack's first element, where `here` is the first index of the pack."""
        here = self._index_of(loop, here)
        index = {loop.each.index: here}
        bare = here.value if isinstance(here, c.Cast) else here
        base: c.Expr = c.Name(pack.array)
        if pack.offset is not None:
            base = c.Binary("+", base, self.division.in_expr(substitute(pack.offset, index), bare))
        if pack.element is not None:
            array_type = self._plan.arrays.get(pack.array, c.Type(""))
            base = c.Cast(c.Type(pack.element.base, 1, array_type.const, space=array_type.space), base)
        return c.Index(base, self.division.in_expr(substitute(pack.index, index), bare))

    def _index_of(self, loop: LoopPlan, here: c.Expr) -> c.Expr:
        """An index of the turns as one of the loop."""
        same = loop.each.type == self._plan.index_type(loop)
        return here if same else c.Cast(c.Type(loop.each.type), here)

    def _address(self, pack: Pack, loop: LoopPlan) -> c.Expr:
        return c.Unary("&", self._place(pack, loop, self._here))


_gpu_part, _cpu_part = (partial(render_template_part, file) for file in ("gpu_packs.cuh", "cpu_vectors.cl"))


def pack_types_text(plan: WritingPlan, copies: tuple[str, str]) -> str:
    """The types for packs; hinted ways of moving them where the schedule has hints.

    `copies`: further ways, as what comes before the type and its methods."""
    knobs, hip = plan.knobs, plan.language == "hip"
    at = "reinterpret_cast<{}word *>({})[w]"
    word, source, target = at.format("", "at"), at.format("const ", "from"), at.format("", "to")
    value = at.format("const ", "at")
    loads, stores = {"load": source}, {"store": f"{target} = {value}"}
    before = ""
    if knobs.load_hint.is_parameter:
        hint = knobs.load_hint.name
        both = {"fetch_once": ".nc", "fetch_shared": ""}
        if hip:
            before += "".join(_gpu_part("hip load", HINT=hint, NAME=name) for name in both)
        else:
            special = "".join(_gpu_part("load past L1", NAME=name, PATH=path) for name, path in both.items())
            before += _gpu_part("load hints", HINT=hint) + special.rstrip("\n") + "\n#endif\n\n"
        loads |= {"load_once": f"fetch_once(&{source})", "load_shared": f"fetch_shared(&{source})"}
    if knobs.store_hint.is_parameter:
        store = "__builtin_nontemporal_store(value, to)" if hip else "__stcs(to, value)"
        before += _gpu_part("store hint", HINT=knobs.store_hint.name, STORE=store)
        stores["store_once"] = f"put_once(&{target}, {value})"
    methods = [_pack_method_text(name, "(const T *from)", f"{word} = {text}") for name, text in loads.items()]
    methods += [_pack_method_text(name, "(T *to) const", text) for name, text in stores.items()]
    if plan.settles:
        before += _gpu_part("settle")
        methods.append(_pack_method_text("settle", "()", f"settle_word({word})"))
    two, four = ("two_words", "four_words") if hip else ("uint2", "uint4")
    words = (_gpu_part("hip types") if hip else "") + _gpu_part("words", TWO=two, FOUR=four)
    pack = _gpu_part("pack", METHODS="".join((*methods, copies[1])))
    text = f"{words}\n{before}{copies[0]}{pack}"
    return _rename_text_words(text, PACK_WORDS, plan)


def vector_macros_text(
    plan: WritingPlan,
    fast: str,
    conversions: Mapping[tuple[str, str], str],
    narrow: Mapping[str, tuple[str, str]],
    lane_words: Mapping[str, str],
) -> str:
    """OpenCL's vectors by the number of their elements, and how they are moved; `fast`: a switch.

    `conversions`: a function's word and ending -> its macro; `narrow`: integers -> what moves them."""
    knob, kinds = plan.knobs.vector, list[str]()
    for value in knob.values:
        digits, test = "" if value == 1 else str(value), "elif" if kinds else "if"
        kinds.append(_cpu_part("kind", IF=test, KNOB=knob.name, NUMBER=str(value), DIGITS=digits))
        for (word, ending), name in conversions.items():
            kinds.append(f"#define {name} {word}{digits}{ending}\n")
        backwards = "".join(f"{lane:x}" for lane in reversed(range(value)))
        of_lanes = {"ALL": "all(x)", "ANY": "any(x)", "REVERSED": f"(x).s{backwards}"}
        for word, name in lane_words.items():
            kinds.append(f"#define {name}(x) {'(x)' if value == 1 else of_lanes[word]}\n")
        kinds += [_cpu_part("narrow", WORD=word, DIGITS=digits) for word in narrow if word != "int"]
    moves = [_cpu_part("moves")]
    for word, (load, store) in narrow.items():
        if word == "int":
            moves.append(_cpu_part("int moves", LOAD=load, STORE=store))
            continue
        wide, back = conversions["convert_int", ""], conversions[f"convert_{word}", ""]
        moves.append(_cpu_part("narrow moves", WORD=word, LOAD=load, STORE=store, WIDE=wide, NARROW=back))
    exp = _cpu_part("fast exp", FAST=fast) if fast else ""
    return _rename_text_words("".join((*kinds, *moves, exp)), VECTOR_WORDS, plan)


def _rename_text_words(text: str, words: Sequence[str], plan: WritingPlan) -> str:
    """With what its words are called in this kernel; none is a macro of the problem."""
    macros = macro_names(plan.problem) & words_in_texts([text])
    called = {word: plan.word(word) for word in words}
    called.update((word, plan.names.fresh(word)) for word in sorted(macros - called.keys()))
    return re.sub(rf"\b({'|'.join(called)})\b", lambda found: called[found.group()], text)


def _pack_method_text(name: str, arguments: str, statement: str) -> str:
    return _gpu_part("method", NAME=name, ARGUMENTS=arguments, STATEMENT=statement)


@dataclass(frozen=True)
class Body:
    """A loop's body made ready: fast forms behind macros, packs for accesses, partial totals."""

    plain: tuple[c.Stmt, ...]  # for one index, as in the source
    packed: tuple[c.Stmt, ...]  # for one lane of a pack
    inverses: Inverses  # reciprocals to compute before the loop


class GpuLoops(ElementLoops):
    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        super().__init__(plan, fast)
        self.totals: TeamTotals = TeamTotals(plan)
        self._of_pack = plan.word("v")
        self._blocking = plan.blocking

    def defines(self) -> tuple[c.Stmt, ...]:
        w = self.words
        chains = w.define("CHAINS", "VEC > 1 ? 2 : 1", "totals that do not wait for each other")
        count = w.define("COUNT", "KEEP ? KEEP : ITEMS", "packs a thread has under way")
        return (*super().defines(), chains, count)

    def copies(self) -> tuple[str, str]:
        """Further ways of moving packs: what is defined before their type, and in it."""
        return "", ""

    def before(self) -> list[str]:
        used = any(loop.packs for loop in self._plan.all_loops) or "tile" in self._plan.draft.schedule
        return [pack_types_text(self._plan, self.copies())] if used else []

    def write(self, loop: LoopPlan, scope: set[str]) -> tuple[c.Stmt, ...]:
        each, packed = loop.each, loop.is_packed
        before, end = self._end(loop)
        done, parts = list(before), dict[str, str]()
        for total in each.totals:
            if packed:
                parts[total.name] = self._plan.names.fresh(f"{total.name}_parts")
            stmts = self._started(total, parts.get(total.name, ""), scope)
            done += at_line(stmts, self._plan.lines.get(total.name, 0))
            scope.add(total.name)
        if not packed:
            loop = LoopPlan(each)
        body = self._prepared(loop, parts)
        done += self._inverses(body)
        done += at_line((self._packed if packed else self._plain)(loop, body, end), each.line)
        for total in each.totals if packed else ():
            first, second = (c.Index(c.Name(parts[total.name]), integer_literal(at)) for at in range(2))
            both = combine_totals(total, first, second)
            text = "own = CHAINS > 1 ? both : first;"
            joined = self.words.code(text, own=total.name, both=both, first=first)
            done += self._blocking.over(joined, guarded=False)
        done += self._before_totals(each)
        done += self.totals.reduce(each.totals)
        return prepend_comments(done, (c.BLANK,) if each.line else ())

    def _started(self, total: Total, parts: str, scope: Container[str]) -> tuple[c.Stmt, ...]:
        """What a thread's share begins with, `parts` or the total itself: for each of several tasks."""
        type_, blocking = total.type.base, self._blocking
        if blocking.task is None:
            if not parts:
                return start_total(total, scope)
            stmts = parse_snippet("T a[2] = {start, start};", T=type_, a=parts, start=total.start)
            return (
                stmts if total.name in scope else (*stmts, *parse_snippet("T own;", T=type_, own=total.name))
            )
        done = [] if total.name in scope else [c.Declare(c.Type(type_), total.name, dims=blocking.dims())]
        begins: tuple[c.Stmt, ...] = (assign_to_name(total.name, total.start),)
        if parts:
            done.append(c.Declare(c.Type(type_), parts, dims=blocking.dims(integer_literal(2))))
            blocking.add(parts)
            begins = parse_snippet("a[0] = start; a[1] = start;", a=parts, start=total.start)
        return (*done, *blocking.over(begins, guarded=bool(names_in(total.start) & blocking.names.keys())))

    def _before_totals(self, each: Each) -> tuple[c.Stmt, ...]:
        """What need not wait until the threads have joined the loop's totals."""
        return ()

    def _prepared(self, loop: LoopPlan, parts: Mapping[str, str] | None = None) -> Body:
        """`parts`: a total -> the array of its partial values, of which a lane takes one."""
        body, inverses = self._fast_body(loop)
        body = add_unroll_pragmas(body, self._plan)
        packs = {pack.key: self._at_hand(loop, pack) for pack in loop.packs}
        elements = pack_replacements(loop.packs, packs, c.Name(self._of_pack))
        elements |= self._find_nearby_loads(loop, body, elements)
        packed = map_nodes(body, lambda node: elements.get(node, node))
        if parts:
            mine = self.words.expr("v % CHAINS")
            body = substitute(body, {name: c.Index(c.Name(a), c.Number("0", 0)) for name, a in parts.items()})
            packed = substitute(packed, {name: c.Index(c.Name(a), mine) for name, a in parts.items()})
        return Body(body, packed, inverses)

    def _inverses(self, body: Body) -> list[c.Stmt]:
        done = list[c.Stmt]()
        for name, divisor in body.inverses:
            declare = c.Declare(c.Type("float", const=True), name, c.Call(self._fast.near, (divisor,)))
            if names_in(divisor) & self._blocking.names.keys():
                self._blocking.add(name)
            done += self._blocking.team_values([declare])
        return done

    def _plain(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        stmts = self._blocking.over(self._statements(each, body.plain))
        if self._plan.knobs.items.most > 1:
            index = self.words.code("const T i = (T)(base + k * LANES);", T=each.type, i=each.index)
            within = self.words.expr("i < end", i=each.index, end=end)
            axes = (
                self._turns_of_lanes(loop, end),
                item_axis(self._item, self.words.expr("ITEMS"), index, within),
            )
            return nest_loops(axes, stmts)
        if type_ == each.type:
            return self._turns_of_lanes(loop, end, each.index).over(stmts)
        index = self.words.code("const T i = (T)base;", T=each.type, i=each.index)
        return self._turns_of_lanes(loop, end).over((*index, *stmts))

    def _turns_of_lanes(self, loop: LoopPlan, end: c.Expr, name: str = "", type_: str = "") -> LoopAxis:
        """One element after the other."""
        type_ = type_ or self._plan.index_type(loop)
        per_block = self.words.expr("LANES * ITEMS" if self._plan.knobs.items.most > 1 else "LANES")
        first = self._first(loop, c.Name(self.lane), per_block, type_)
        return self._turns(type_, first, end, per_block, name)

    def _chunks(self, loop: LoopPlan, type_: str, end: c.Expr, body: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        """A loop over chunks, with buffers that live longer than a turn.

        There is no loop where a split task has a block for every chunk, or a thread keeps its whole row."""
        w, chunk = self.words, self.words.expr("CHUNK")
        first = self._first(loop, w.expr("lane * VEC"), chunk, type_)
        turns = self._turns(type_, first, end, chunk)
        if self._is_keeping_buffers(loop):
            buffers = self._declare([pack for pack in loop.packs if pack.key in loop.kept], "ITEMS", loop)
            whole = (*self._declare(loop.opens, "KEEP", loop), *turns.at_start())
            said = (c.Comment("the whole row at once", behind=True),)
            head = (self._head(loop, turns, buffers),)
            return (c.Alternative(w.expr("KEEP"), whole, head, tuple(body), comments=said),)
        one = self._head(loop, turns, ())
        if self._plan.knobs.split.most > 0 and not self._plan.is_flat:
            return (c.Alternative(w.expr("SPLIT"), turns.at_start(), (one,), tuple(body)),)
        return (replace(one, inside=tuple(body)),) if isinstance(one, c.Alternative) else turns.over(body)

    def _head(self, loop: LoopPlan, turns: LoopAxis, buffers: Sequence[c.Stmt]) -> c.Stmt:
        """The loop over a task's chunks, with the first of its body; or two such loops to choose from."""
        (head,) = turns.over(buffers)
        return head

    def _is_keeping_buffers(self, loop: LoopPlan) -> bool:
        return loop.in_row and self._plan.keeps

    def _count(self, loop: LoopPlan) -> str:
        """How many packs a thread has under way."""
        return "COUNT" if self._is_keeping_buffers(loop) else "ITEMS"

    def _packed(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        kept = [pack for pack in loop.packs if self._is_keeping_buffers(loop) and pack.key in loop.kept]
        fleeting = [pack for pack in loop.packs if pack not in kept]
        inner = (
            *self._declare(fleeting, self._count(loop), loop),
            *self._loads(loop, loop.loads, end),
            *self._lanes(loop, body, end),
            *(self._settle(loop) if self._plan.settles and kept else ()),
        )
        chunks = self._chunks(loop, self._plan.index_type(loop), end, inner)
        return (*chunks, *self._build_tail_loop(loop, body, end)) if loop.tail else chunks

    def _declare(self, packs: Sequence[Pack], count: str, loop: LoopPlan) -> tuple[c.Stmt, ...]:
        size, done = self.words.expr(count), list[c.Stmt]()
        for pack in packs:
            buffer = loop.buffers[pack.key]
            if self._is_shared(buffer) or buffer.table == buffer.name:  # else a row of another's table
                dims = (size,) if self._is_shared(buffer) else self._blocking.dims(size, span=buffer.span)
                done.append(c.Declare(c.Type(self._pack_type(pack)), buffer.name, dims=dims))
        return tuple(done)

    def _is_shared(self, buffer: Buffer) -> bool:
        """By all tasks that are taken at once."""
        return self._blocking.task is None or not buffer.table

    def _at_hand(self, loop: LoopPlan, pack: Pack) -> c.Index:
        """Of the packs in a buffer the one of this item, and of this task."""
        buffer = loop.buffers[pack.key]
        shared = self._is_shared(buffer)
        row = c.Name(buffer.name) if shared else self._blocking.row(buffer.table, buffer.row)
        return c.Index(row, c.Name(self._item))

    def _for_each_task(
        self, loop: LoopPlan, copies: Sequence[Copy], made: Callable[[Sequence[Copy]], Sequence[c.Stmt]]
    ) -> tuple[c.Stmt, ...]:
        """What is made of packs: once of those that all tasks of a team share, of others for each task."""
        held = [(copy, loop.buffers[copy.pack.key]) for copy in copies]
        done = [*made([copy for copy, buffer in held if self._is_shared(buffer)])]
        apart = [(copy, b.span) for copy, b in held if not self._is_shared(b) and b.table == b.name]
        for span in sorted({span for _, span in apart}):
            done += self._blocking.over(made([copy for copy, rows in apart if rows == span]), span)
        return tuple(done)

    def _find_nearby_loads(
        self, loop: LoopPlan, body: tuple[c.Stmt, ...], known: Mapping[c.Expr, c.Expr]
    ) -> dict[c.Expr, c.Expr]:
        """Loads that some turns alone make, of what is in registers already."""
        if self._blocking.task is None:
            return {}
        tables = [(table, loop.name(table.first)) for table in loop.tables if table.first.loads]
        item, lane = c.Name(self._item), c.Name(self._of_pack)
        return self._blocking.nearby(body, tables, known, item, lane, self._plan.knobs.vector.name)

    def _loads(self, loop: LoopPlan, copies: Sequence[Copy], end: c.Expr) -> tuple[c.Stmt, ...]:
        def loaded(some: Sequence[Copy]) -> tuple[c.Stmt, ...]:
            new, old = (
                [self._copy_statement(loop, copy) for copy in some if copy.needless is kept]
                for kept in (False, True)
            )
            inner = (*new, *self.words.when("!KEEP" if old and new else "", old))
            over = self._items(loop, end, self._count(loop)).over(inner) if inner else ()
            return self.words.when("!KEEP" if old and not new else "", over)

        by_task = partial(self._for_each_task, loop, made=loaded)
        return by_task(copies) if self._is_keeping_buffers(loop) else self._in_turn(copies, by_task)

    def _lanes(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        inner = [*self._elements(loop.each, body, self._here, self._plan.index_type(loop))]
        for copy in loop.stores:
            inner += self.words.when("!KEEP" if copy.needless else "", [self._copy_statement(loop, copy)])
        # Inside the condition: what the first task loads on the way is there for the others.
        by_task = self._blocking.over(inner)
        return self._items(loop, end, self._count(loop)).over(by_task)

    def _copy_statement(self, loop: LoopPlan, copy: Copy) -> c.Stmt:
        return self._pack_method(loop, copy.pack, copy.way, self._address(copy.pack, loop))

    def _pack_method(self, loop: LoopPlan, pack: Pack, name: str, *args: c.Expr) -> c.Stmt:
        """Of the pack at hand."""
        return c.Evaluate(c.Call(name, args, of=self._at_hand(loop, pack)))

    def _elements(self, each: Each, body: Body, here: c.Expr, type_: str) -> tuple[c.Stmt, ...]:
        """The body for every element of a pack; `here` is the index of the first."""
        found, convert = None, self._plan.knobs.convert
        stored = [pack.array for loop in self._plan.all_loops for pack in loop.packs if pack.stores]
        in_words = all(self._plan.element_align.get(array, 16) >= 2 for array in stored)
        if convert.is_parameter and self._plan.knobs.vector.most > 1 and in_words:
            found = split_final_conversion(body.packed, self._of_pack, dict(self._plan.draft.in_pairs))
        plain = self._element(each, body.packed, here, type_)
        if found is None:
            return plain
        kept = self.words.code("values[v] = value;", value=found.value)
        values = self._plan.word("values")
        both = found.form.format(a=f"{values}[{self._of_pack}]", b=f"{values}[{self._of_pack} + 1]")
        text = """float values[VEC];
            single;
            #pragma unroll
            for (int v = 0; v < VEC; v += 2)
                ((unsigned short *)into)[v / 2] = both;"""
        single = self._element(each, (*found.before, *kept), here, type_)
        pairs = self.words.code(text, single=single, into=found.into, both=c.Opaque(both))
        return self.words.when(f"{convert.name} && VEC > 1", pairs, plain, "two at a time")

    def _element(self, each: Each, body: tuple[c.Stmt, ...], here: c.Expr, type_: str) -> tuple[c.Stmt, ...]:
        index, declared = self.words.expr("here + v", here=here), list[c.Stmt]()
        if each.index in names_in(body):
            value = index if type_ == each.type else c.Cast(c.Type(each.type), index)
            declared.append(c.Declare(c.Type(each.type, const=True), each.index, value))
        return item_axis(self._of_pack, self.words.expr("VEC"), declared).over(self._statements(each, body))

    def _settle(self, loop: LoopPlan) -> tuple[c.Stmt, ...]:
        """What a later loop reads again stays as it came."""
        wanted = {key for key, buffer in loop.buffers.items() if buffer.wanted and buffer.home == "global"}

        def settle_packs(some: Sequence[Copy]) -> tuple[c.Stmt, ...]:
            stmts = [self._pack_method(loop, copy.pack, copy.way) for copy in some]
            return item_axis(self._item, self.words.expr("KEEP")).over(stmts) if stmts else ()

        copies = [Copy(pack, "settle") for pack in loop.packs if pack.key in wanted]
        return self.words.when("KEEP", self._for_each_task(loop, copies, settle_packs)) if copies else ()

    def _build_tail_loop(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        index = self.words.code("const T i = (T)base;", T=each.type, i=each.index)
        stmts = (*index, *self._blocking.over(self._statements(each, body.plain)))
        turns = self._turns(type_, self._rest(loop, end, type_), end, self.words.expr("LANES"))
        return self.words.when("VEC > 1", turns.over(stmts), said="what is left of the range")

    def _statements(self, each: Each, body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        return map_statements(body, lambda part: self.division.in_expr(part, c.Name(each.index)))

    def _pack_type(self, pack: Pack) -> str:
        vec, align = self._plan.knobs.vector.name, self._plan.element_align.get(pack.array, 16)
        if pack.element is not None:
            base = pack.element.base
            align = byte_size(base) or 1
        else:
            staged = {staged.name: staged.type for staged in self._plan.kernel.staged}
            base = {**self._plan.arrays, **staged}[pack.array].base
        number = {0: "1", 1: vec}.get(pack.width, f"{pack.width} * {vec}")
        limit = str(align)
        size = byte_size(base)
        if pack.width == 0:
            limit = str(min(align, size or 1))
        elif pack.unit != pack.width:
            limit = f"{vec} * {size or 1} < {align} ? {vec} * {size or 1} : {align}"
        return f"{self._plan.word('Pack')}<{base}, {number}, {f'({limit})' if '<' in limit else limit}>"

    def _in_turn(
        self, loads: Sequence[Copy], loaded: Callable[[Sequence[Copy]], tuple[c.Stmt, ...]]
    ) -> tuple[c.Stmt, ...]:
        """Loads that wait for nothing, then the others, with a branch in between where there is no loop."""
        plan = self._plan
        at_once, later = ([copy for copy in loads if copy.waits is waits] for waits in (False, True))
        once = plan.language == "cuda" and plan.knobs.split.most > 0 and not plan.is_flat
        if not (at_once and later and once and later[0].pack.array in plan.arrays):
            return loaded(loads)
        about = "never so; but the compiler puts no load off beyond a branch"
        branch = parse_snippet(f"if (!p)  // {about}\n__trap();", p=later[0].pack.array)
        return (*loaded(at_once), *self.words.when("SPLIT", branch), *loaded(later))
