"""What keeps a kernel from being read: effects out of sight, exchanges between steps, pointers that escape.

In calls that stayed, in methods, lambdas and assembly threads may cooperate or ask for their own number, and
nothing read of the rest would hold. What depends on the time, on the machine, or on the thread other than by
its index cannot be shared out anew; what prints, allocates, launches or is volatile has to happen as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tunesmith.expert.read.accesses import (
    Touch,
    element_type,
    find_touches,
    is_pointer,
    moved_by,
    place_of,
    pointed_at,
    same_place,
    without_members,
)
from tunesmith.expert.read.integers import (
    BUILTINS,
    LaunchTerms,
    expand_terms,
    from_terms,
    head_of,
    number_node,
    same_value,
    simplify_exact,
    simplify_expr,
    split_affine,
)
from tunesmith.expert.read.model import (
    ArrayAccess,
    Each,
    Let,
    NotReadable,
    Once,
    OutOfReach,
    Step,
    When,
    all_steps,
    own_parts,
    parts_of,
)
from tunesmith.expert.read.normal import Normal
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import (
    Effects,
    Program,
    function_effects,
    is_assembly,
    is_function,
    of_assembly,
    of_text,
    variable_effects,
)
from tunesmith.source.inline import Inlined, find_identifiers, in_words_of, inline_calls, side_effect
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.types import byte_size

_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"(?<![\w.>])([A-Za-z_][\w:]*)\s*(?:<[\w\s,:*]*>)?\s*\(")
_METHOD = re.compile(r"(?:\.|->)\s*[A-Za-z_]\w*\s*\(|[)}\]]\s*\(")  # v.go(), R{}(), f()()
_SYNTAX = frozenset({
    "if", "for", "while", "switch", "return", "sizeof", "decltype", "operator", "alignof", "constexpr",
    "static_assert", "__attribute__", "static_cast", "reinterpret_cast", "const_cast", "dynamic_cast",
})  # fmt: skip
_STRUCTURE = re.compile(r"\b(?:struct|class|union)\s+(?:__\w+__\s*(?:\([^)]*\))?\s*)*(\w+)")
_PLAIN_TYPE = re.compile(
    r"(unsigned|signed|u?int|u?char|u?short|u?long|float|double|half|bool|size_t|dim)\d*(_t)?"
)
_NOT_ONE_VALUE = "contains assembly that is not one value computed from numbers in registers"
_NO_TEXT = "whose text is not in the file"


_FIXED: Mapping[Effects, str] = {
    Effects.THREAD: "says which thread asks, other than by threadIdx and blockIdx",
    Effects.SHAPE: "says how the launch is shaped, other than by blockDim and gridDim",
    Effects.TIME: "depends on the time",
    Effects.MACHINE: "depends on where in the machine it runs",
    Effects.VOLATILE: "must happen as written: it is volatile",
    Effects.FENCE: "orders memory for other threads",
    Effects.OUTPUT: "prints, once for each thread that comes to it",
    Effects.ALLOCATES: "allocates memory",
    Effects.LAUNCHES: "launches other kernels",
    Effects.RANDOM: "moves on a state of random numbers",
}
# Fences among the threads of a block: what they order is gone through with all threads of the block.
_WITHIN_BLOCK = frozenset({"__threadfence_block", "mem_fence"})


def check_in_sight(inlined: Inlined, source: c.Source) -> None:
    """Raises Unreadable, with the line, where something hidden or fixed to its thread stands in the way."""
    for line, reason in out_of_sight(inlined, source):
        raise c.Unreadable(f"line {line}: {reason}", line)


def out_of_sight(inlined: Inlined, source: c.Source) -> Iterator[tuple[int, str]]:
    """Everything of that kind, with its line."""
    look = _Look(inlined, source)
    volatile = _Volatile(inlined.function, source)
    for parameter in inlined.function.parameters:
        if parameter.type.volatile and parameter.type.space != "local":
            yield inlined.function.line, f"'{parameter.name}' is volatile: {_AS_WRITTEN}"
    local_names = {*walk.declared_in(inlined.function.body), *BUILTINS}
    hidden = look.of_types(inlined.function)
    if hidden:
        yield inlined.function.line, hidden
    for stmt in walk.statements_in(inlined.function.body):
        reason = look.of_text(stmt.text) if isinstance(stmt, c.Verbatim) else ""
        reason = reason or volatile.of_declaration(stmt)
        parts = (part for part in walk.child_nodes(stmt) if isinstance(part, c.Expr))
        for node in (node for part in parts for node in walk.expressions_in(part)):
            if isinstance(node, c.Name) and variable_effects(node.name) and node.name not in local_names:
                reason = reason or f"'{node.name}' is used other than by its .x, .y and .z"
            reason = reason or look.of_expression(node) or volatile.of_expression(node)
        if reason:
            yield stmt.line, reason


_AS_WRITTEN = "every access has to happen as written"


class _Volatile:
    """Volatile accesses, but for those to shared memory: its values are followed from thread to thread."""

    def __init__(self, function: c.Function, source: c.Source) -> None:
        self._names = Program.of(source).volatile
        self._declared = {n.name: n for n in walk.nodes_in(function.body) if isinstance(n, c.Declare)}
        self._local = {p.name for p in function.parameters if p.type.space == "local"}

    def of_declaration(self, stmt: c.Stmt) -> str:
        if isinstance(stmt, c.Declare) and stmt.storage == "static" and not stmt.type.const:
            return f"'{stmt.name}' is static: it keeps its value from launch to launch"
        if not isinstance(stmt, c.Declare) or not stmt.type.volatile or "shared" in stmt.storage:
            return ""
        if stmt.type.is_pointer and stmt.init is not None and self._is_shared(stmt.init, 0):
            return ""
        return f"'{stmt.name}' is volatile: {_AS_WRITTEN}"

    def of_expression(self, node: c.Expr) -> str:
        match node:
            case c.Name(name=name) if name in self._names and name not in self._declared:
                return f"'{name}' is volatile: {_AS_WRITTEN}"
            case c.Cast(type=type_, value=value) if type_.volatile and not self._is_shared(value, 0):
                return f"memory is used as volatile {type_.base}: {_AS_WRITTEN}"
        return ""

    def _is_shared(self, pointer: c.Expr, depth: int) -> bool:
        name = walk.root_variable(c.Index(pointer, c.Number("0", 0)))[0] or ""
        declare = self._declared.get(name)
        if declare is None:
            return name in self._local
        init = declare.init if declare.type.is_pointer and depth < 20 else None
        return "shared" in declare.storage or (init is not None and self._is_shared(init, depth + 1))


class _Look:
    def __init__(self, inlined: Inlined, source: c.Source) -> None:
        self._source = source
        self._known = Program.of(source)
        self._variables = frozenset(walk.declared_in(inlined.function.body))
        self._notes: dict[str, str] = {}
        for note in inlined.notes:  # "line 5: f stays a call: why"
            said = note.partition(": ")[2]
            self._notes.setdefault(said.split(" ", 1)[0], said)
        self._seen: dict[int, str] = {}
        self._types = {alias for alias, _ in source.aliases}
        self._types |= {p.name for f in source.functions for p in f.template}

    def of_types(self, function: c.Function) -> str:
        """Operators, conversions and constructors are called by signs: those of the types that it uses."""
        used = {parameter.type.base for parameter in function.parameters}
        for node in walk.nodes_in(function.body):
            type_ = getattr(node, "type", None)
            used |= {type_.base.split("<")[0]} if isinstance(type_, c.Type) else set()
        for part in self._source.preamble:
            named = set(_STRUCTURE.findall(part))
            by_sign = "operator" in part if not named else bool(named & used)
            touching = self._first_effect(part) if by_sign else ""
            if touching:
                return f"{'a structure' if named else 'an operator'} of the file {touching}"
        return ""

    def of_expression(self, node: c.Expr) -> str:
        if isinstance(node, c.Call):
            return self.of_call(node)
        return self.of_text(node.text) if isinstance(node, c.Opaque) else ""

    def of_call(self, call: c.Call) -> str:
        plain, made, _ = call.function.partition("#")
        if made:  # a method or a lambda: there is no such function in the text
            return self._notes.get(plain) or f"{plain} stays a call"
        reason = self._of_name(call.function)
        for word in (word for text in call.template_args for word in _WORD.findall(text)):
            reason = reason or next((self._of_function(f) for f in self._functions_named(word)), "")
        return reason

    def _functions_named(self, name: str) -> list[c.Function]:
        return [f for f in self._source.functions if f.name == name and not f.is_kernel]

    def _of_name(self, name: str) -> str:
        functions = self._functions_named(name)
        for function in functions:
            reason = self._of_function(function)
            if reason:
                return reason
        if name in self._variables:
            return f"{name}, a variable, is called"
        if functions or self._is_type(name):
            return ""
        if is_function(name):
            return _why_thread_bound(name)
        unread = next((why for why in self._source.unread if "function" in why), "")
        return f"{name} is called, {_NO_TEXT}" + (f" ({unread})" if unread else "")

    def _of_function(self, function: c.Function) -> str:
        if id(function) not in self._seen:
            self._seen[id(function)] = ""  # functions that call each other
            what = side_effect(function, self._source)
            reason = f"{function.name} stays a call, and it {what}" if what else ""
            if what and function.name in self._notes:
                reason = self._notes[function.name]
            head = self._first_effect(function.text.partition("{")[0])
            if head:  # a default of a parameter
                reason = reason or f"{function.name} stays a call, and its head {head}"
            reason = reason or self.of_types(function)
            for node in walk.expressions_in(function.body):
                reason = reason or self.of_expression(node)
            self._seen[id(function)] = reason
        return self._seen[id(function)]

    def of_text(self, text: str) -> str:
        shown = " ".join(text.split())
        shown = f"'{shown if len(shown) <= 60 else shown[:57] + '...'}' is not understood, and"
        if is_assembly(text):
            does = next((cause.what for cause in of_assembly(text)), _NOT_ONE_VALUE)
            return f"{shown} it {does}"
        touching = self._first_effect(text)
        if touching:
            return f"{shown} it {touching}"
        for name in dict.fromkeys(_CALLED.findall(text)):
            reason = "" if name in _SYNTAX else self._of_name(name.split("::")[-1]) and self._of_name(name)
            if reason:
                return f"{shown} {reason}"
        if _METHOD.search(text):  # its text stands in some structure of the file
            touching = next(
                (said for part in self._source.preamble if (said := self._first_effect(part))), ""
            )
            return f"{shown} a structure of the file {touching}" if touching else ""
        return ""

    def _first_effect(self, text: str) -> str:
        """What in text that is not understood is more than computing, in words."""
        harmless = Effects.STOPS | Effects.READS | Effects.ASSIGNS
        found = of_assembly(text) if re.search(r"\basm\b|\b__asm", text) else ()
        if found:
            return found[0].what
        return next((cause.what for cause in of_text(text, self._known) if cause.effects & ~harmless), "")

    def _is_type(self, name: str) -> bool:
        """Types are called to convert: `T(0)`, `float(x)`, `__half(y)`."""
        base = name.split("<")[0].split("::")[-1]
        if base in self._types or _PLAIN_TYPE.fullmatch(base):
            return True
        named = re.compile(rf"\b(struct|class|union|enum)\b[^;{{]*\b{re.escape(base)}\b")
        return any(named.search(text) for text in self._source.preamble)


def _why_thread_bound(name: str) -> str:
    """Why no other thread could make a call of one of the languages' functions; "" where any could."""
    effects = function_effects(name)
    if name in _WITHIN_BLOCK:
        return ""
    return next((f"{name} is called, which {why}" for flag, why in _FIXED.items() if effects & flag), "")


def check_sizes_stay(body: tuple[c.Stmt, ...], launch: LaunchTerms) -> None:
    """What the launch is made of is what was passed: the grid is not written in terms of what it became."""
    asked = {name for name in walk.names_in(body) if name.startswith(("gridDim", "blockDim"))}
    sizes = {name for word in asked if word in launch.values for name in walk.names_in(launch.values[word])}
    for name in sorted(sizes & walk.assigned_in(body)):
        raise OutOfReach(f"'{name}' is changed, and says how large the launch is")


def with_one_dynamic_array(function: c.Function) -> c.Function:
    """`extern __shared__` arrays are all one memory, by whatever names: they get one name, or are refused."""
    used = walk.names_in(function.body)
    declares = [node for node in walk.nodes_in(function.body) if isinstance(node, c.Declare)]
    dynamic = (declare for declare in declares if declare.storage == "dynamic shared")
    each = list(dict.fromkeys(declare for declare in dynamic if declare.name in used))
    if len(each) < 2:
        return function
    first = each[0]
    for other in each[1:]:
        if other.type != first.type:
            raise OutOfReach.at(other.line, f"'{other.name}' is the same shared memory as '{first.name}'")
    names = {other.name: c.Name(first.name) for other in each}
    if any(node.name in names and node not in each for node in declares):
        raise OutOfReach.at(first.line, f"'{first.name}' and others are one memory, and have names of others")

    def stmt(one: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
        return () if one in each else one

    def named(node: c.Expr) -> c.Expr:
        return names.get(node.name, node) if isinstance(node, c.Name) else node

    body = walk.map_nodes(walk.map_statements(function.body, on_stmt=stmt), named)
    return replace(function, body=(first, *body))


def check_references(body: tuple[c.Stmt, ...]) -> None:
    """A second name for a variable or an element is not followed: it may be read, where that stays."""
    changed = walk.assigned_in(body) | walk.stored_in(body)
    for stmt in walk.statements_in(body):
        if isinstance(stmt, c.Declare) and stmt.type.reference:
            root = None if stmt.init is None else walk.root_variable(stmt.init)[0]
            if not stmt.type.const or stmt.type.is_pointer or (root is not None and root in changed):
                raise OutOfReach.at(stmt.line, f"'{stmt.name}' is another name for what it refers to")
        for part in walk.child_nodes(stmt):
            for node in walk.nodes_in(part) if isinstance(part, c.Expr) else ():
                if isinstance(node, c.Cast) and node.type.reference and not node.type.const:
                    raise OutOfReach.at(stmt.line, "a value is reached as one of another type")
            for target in walk.writes_in(part) if isinstance(part, c.Expr) else ():
                if isinstance(target, c.Ternary):
                    raise OutOfReach.at(stmt.line, "which variable is written depends on a condition")


def check_own_memory(normal: Normal) -> None:
    """Memory is only followed in what is understood; variables of the file may only be read."""
    known = set(normal.types) | set(normal.arrays) | set(normal.shared) | set(normal.ids)
    known |= set(walk.declared_in(normal.body))
    for stmt in walk.statements_in(normal.body):
        parts: list[c.Expr | c.Stmt] = [part for part in walk.child_nodes(stmt) if isinstance(part, c.Expr)]
        parts += [stmt] if isinstance(stmt, c.Verbatim) else []
        for target in (target for part in parts for target in walk.writes_in(part)):
            name = walk.root_variable(target)[0]
            if name is not None and name not in known:
                raise OutOfReach.at(stmt.line, f"'{name}', a variable of the file, is written to")
        for node in (node for part in parts for node in walk.nodes_in(part)):
            if isinstance(node, c.Opaque | c.Verbatim) and node.names & {*normal.arrays, *normal.shared}:
                text = " ".join(node.text.split())
                text = text if len(text) <= 60 else text[:57] + "..."
                raise OutOfReach.at(stmt.line, f"'{text}' is not understood")


# -- Everything that is found to stand in the way of reading a kernel, not only what was met first.
#
# Each with its line and what would have to change. What comes of an obstacle that was met before (an object
# that could not be taken apart, say) may be among them: the first ones are the surest.


_MAX = 12
_CHANGES = (
    (
        r"\b(?:cooperative_groups|cub|hipcub|rocprim|thrust)::[\w:]* is called",
        "a sum, maximum or minimum of the library, or shuffles written out",
    ),
    (
        r"blocks would do the same work",
        "say its launch, in a problem file: with that it may be read",
    ),
    (r"a barrier where not all threads", "put the barrier outside of what only some threads come to"),
    (r"with no barrier between", "put a barrier between"),
    (r"whose text is not in the file", "put its text into the file"),
    (r"\basm\b|assembly", "use the intrinsic for it, or a helper whose instructions only compute"),
    (r"stays a call", "call it in a statement of its own, with arguments whose types are written"),
    (r"is not understood: |the structure", "a plainer structure: fields, and methods that set or read them"),
    (r"object", "use its fields one by one"),
    (r"volatile|static|prints|allocat", "leave it out"),
    (r"depends on|says which thread", "leave it out, or compute it from threadIdx and blockIdx"),
    (r"a variable, is called|lambda", "call a function by its name"),
    (r"could not be read", "if it compiles, write it in plain C++"),
    (r"is not understood", "write it as plain statements"),
)


def _find_votes(function: c.Function) -> Iterator[tuple[int, str]]:
    """What asks other threads of a warp, but for shuffles, which may be part of a total."""
    for stmt in walk.statements_in(function.body):
        parts = [part for part in walk.child_nodes(stmt) if isinstance(part, c.Expr)]
        for call in (call for part in parts for call in walk.calls_in(part)):
            is_vote = is_function(call.function) and function_effects(call.function) == Effects.MASK
            if is_vote and not call.function.startswith("__shfl"):
                yield stmt.line, f"{call.function} depends on other threads of the warp"


def with_change(reason: str) -> str:
    """The reason, and what would have to change, where that is known."""
    change = next((change for pattern, change in _CHANGES if re.search(pattern, reason)), "")
    return f"{reason} (to change: {change})" if change else reason


def told_in(text: str, found: NotReadable) -> NotReadable:
    """Why it is not read, with the names that the text has in place of those that were made on the way."""
    words = find_identifiers(text)
    others = tuple(in_words_of(words, reason) for reason in found.others)
    return replace(found, reason=in_words_of(words, found.reason), others=others)


def other_obstacles(function: c.Function, source: c.Source, first: str) -> tuple[str, ...]:
    """Besides the first, in the order of the text; `function` has its template's arguments filled in."""
    met: list[tuple[int, str]] = []
    try:
        inlined = inline_calls(function, source, met)
    except c.Unreadable as stop:
        met.append((stop.line, stop.reason))
        inlined = Inlined(function, (), source)
    met += list(_find_obstacles(inlined))
    found: dict[str, None] = {}
    for line, reason in sorted(met, key=lambda pair: pair[0]):
        said = reason if reason.startswith("line ") or not line else f"line {line}: {reason}"
        if reason not in first and first not in said:
            found.setdefault(with_change(said))
    return tuple(found)[:_MAX]


def _find_obstacles(inlined: Inlined) -> Iterator[tuple[int, str]]:
    for reason in (*inlined.source.unread, *inlined.notes):
        number = re.match(r"line (\d+): ", reason)
        yield int(number[1]) if number else 0, reason
    hidden = list(out_of_sight(inlined, inlined.source))
    yield from hidden
    yield from _find_votes(inlined.function)
    lines = {line for line, _ in hidden}
    for stmt in walk.statements_in(inlined.function.body):
        if isinstance(stmt, c.Verbatim) and stmt.line not in lines:
            yield stmt.line, f"'{' '.join(stmt.text.split())[:60]}' is not understood"


# -- How the steps of a kernel touch its arrays: what is stored again, and what is handed over.
#
# An element that a loop stores may be read or stored again by a later loop only where the same turn does it:
# the same range, the same place. Anything else needs a barrier between the loops, and is refused. So is a
# loop
# that writes what says how far it goes.


def collect_accesses(steps: Sequence[Step], arrays: Mapping[str, c.Type]) -> tuple[ArrayAccess, ...]:
    """Each way once, in the order of the steps."""
    found: dict[ArrayAccess, None] = {}
    for step in all_steps(steps):
        index = step.index if isinstance(step, Each) else ""
        body = step.body if isinstance(step, Each | Let | Once) else ()
        computed = _turn_dependent_names(body, index)
        for stmt in body:
            for touch in find_touches((stmt,), arrays):
                found[_array_access(touch, index, computed, arrays, stmt.line or step.line)] = None
    return tuple(found)


def _turn_dependent_names(body: Sequence[c.Stmt], index: str) -> set[str]:
    """Variables of a loop's body that may differ from turn to turn; not the indices of loops in it that count
    alike in every turn."""
    loops = [head for node in walk.nodes_in(body) if isinstance(node, c.For) and (head := head_of(node))]
    heads = {head.index for head in loops}
    found = set(walk.assigned_in(body)) - heads
    declared = [n for n in walk.nodes_in(body) if isinstance(n, c.Declare) and n.name not in heads]
    of = [(d.name, walk.names_in(d)) for d in declared]
    of += [(head.index, walk.names_in(head.start) | walk.names_in(head.step)) for head in loops]
    while True:
        more = {name for name, used in of if used & (found | {index})} - found
        if not more:
            return found
        found |= more


def _array_access(
    touch: Touch, index: str, computed: set[str], arrays: Mapping[str, c.Type], line: int
) -> ArrayAccess:
    """`computed`: what each turn computes for itself, so that nobody knows how far apart neighbours are."""
    place = touch.place
    array_type = arrays[place.array]
    type_ = element_type(place, array_type)
    kind: Literal["load", "store", "update", "atomic"] = "load"
    if touch.atomic:
        kind = "atomic"
    elif touch.writes:
        kind = "update" if touch.reads else "store"
    used = walk.names_in(place.index) | (walk.names_in(place.offset) if place.offset is not None else set())
    moved = moved_by(place, index, array_type) if index and not used & computed else None
    step, within = (None, ()) if moved is None else (moved.step, moved.within)
    return ArrayAccess(place.array, kind, type_, place.index, step, index, within, place.offset, line)


def marked_again(
    steps: Sequence[Step], arrays: Mapping[str, c.Type], multiples: Mapping[str, int]
) -> tuple[Step, ...]:
    """Loops marked whose stores an earlier loop has made already, all of them.

    An earlier loop that stores every place from `low` to `high` in an array covers a later one that stays
    within; of the top level only, where both surely run. `multiples`: what the contract promises of
    parameters."""
    covered: list[_Range] = []
    done: list[Step] = []
    for step in steps:
        if isinstance(step, Each):
            stores = [t for t in find_touches(step.body, arrays) if t.writes]
            read = {t.place.array for t in find_touches(step.body, arrays) if t.reads}
            plain = not step.totals and all(not t.atomic and t.place.array not in read for t in stores)
            ranges = [_stored_range(t, step, arrays) for t in stores]
            inside = [
                r is not None and any(_is_range_superset(one, r, multiples) for one in covered)
                for r in ranges
            ]
            if stores and plain and all(inside):
                step = replace(step, again=True)
            unconditional = {id(t.node) for stmt in step.body for t in find_touches((stmt,), arrays)
                             if not isinstance(stmt, c.If | c.For | c.While)}  # fmt: skip
            covered += [r for t, r in zip(stores, ranges, strict=True) if r and id(t.node) in unconditional]
        done.append(step)
    return tuple(done)


_Range = tuple[str, c.Expr, c.Expr, c.Expr]  # array, base, first, last + 1


def _stored_range(touch: Touch, step: Each, arrays: Mapping[str, c.Type]) -> _Range | None:
    """The places a store covers, from the loop's first to its last turn, in the array's own elements."""
    place = touch.place
    element_bytes = byte_size(arrays[place.array].base)
    wide = byte_size(place.as_type.base) if place.as_type is not None else element_bytes
    if element_bytes is None or wide is None or wide % element_bytes:
        return None
    ratio = number_node(wide // element_bytes)
    whole: c.Expr = c.Binary("*", place.index, ratio)
    if place.offset is not None:
        whole = c.Binary("+", whole, place.offset)
    found = split_affine(simplify_expr(whole), step.index)
    if found is None or found[0] != ratio:
        return None
    base = found[1]
    first = simplify_expr(c.Binary("*", step.start, ratio))
    return place.array, simplify_expr(base), first, c.Binary("*", step.stop, ratio)


def _is_range_superset(outer: _Range, inner: _Range, multiples: Mapping[str, int]) -> bool:
    """Whether the earlier range holds the later one: same array, same base, same end, and starts at 0."""
    array, base, first, end = outer
    if array != inner[0]:
        return False
    apart = simplify_exact(c.Binary("-", end, inner[3]), multiples)
    same = same_value(base, inner[1]) and apart == first == number_node(0)
    return same or _ends_alike(outer, inner, multiples)


def _ends_alike(outer: _Range, inner: _Range, multiples: Mapping[str, int]) -> bool:
    """Whether both end at the same place, and the later starts `n - n % m` behind the earlier."""
    (_, base, first, end), (_, other, start, stop) = outer, inner
    ends = c.Binary("-", c.Binary("+", base, end), c.Binary("+", other, stop))
    if simplify_exact(ends, multiples) != number_node(0):
        return False
    behind = expand_terms(c.Binary("-", c.Binary("+", other, start), c.Binary("+", base, first)))
    rest = [key[0] for key, count in behind.items() if count == -1 and len(key) == 1]
    if len(behind) != 2 or len(rest) != 1 or not isinstance(rest[0], c.Binary) or rest[0].op != "%":
        return False
    return same_value(from_terms(behind), c.Binary("-", rest[0].left, rest[0]))


@dataclass(frozen=True)
class _Seen:
    touch: Touch
    step: Step


def check_exchange(
    steps: Sequence[Step], arrays: Mapping[str, c.Type], aliases: Mapping[str, str], has_barriers: bool
) -> None:
    seen: dict[str, list[_Seen]] = {}
    for step in all_steps(steps):
        if isinstance(step, Each):
            _check_head(step, arrays, aliases)
        # What is in a branch is met on its own.
        parts = own_parts(step) if isinstance(step, When) else parts_of(step)
        found = [touch for part in parts for touch in find_touches(part, arrays)]
        now = [(aliases.get(t.place.array, t.place.array), _Seen(t, step)) for t in found]
        for array, later in now:
            for earlier in seen.get(array, []):
                _check_touch_pair(earlier, later, array, has_barriers)
        for array, later in now:
            seen.setdefault(array, []).append(later)


def _check_head(loop: Each, arrays: Mapping[str, c.Type], aliases: Mapping[str, str]) -> None:
    """What says where a loop starts and ends may not change while it runs."""
    written = {aliases.get(t.place.array, t.place.array) for t in find_touches(loop.body, arrays) if t.writes}
    for part in (loop.start, loop.stop, *(total.start for total in loop.totals)):
        for touch in find_touches(part, arrays):
            if aliases.get(touch.place.array, touch.place.array) in written:
                says = f"'{print_expr(touch.node)}' says how far it goes"
                raise OutOfReach.at(loop.line, f"the loop writes '{touch.place.array}', and {says}")


def _check_touch_pair(earlier: _Seen, later: _Seen, array: str, has_barriers: bool) -> None:
    if not (earlier.touch.writes or later.touch.writes) or (earlier.touch.atomic and later.touch.atomic):
        return
    a, b = earlier.step, later.step
    same_thread = _same_thread(earlier, later)
    if same_thread and isinstance(a, Each) and isinstance(b, Each) and same_value(a.stop, b.stop):
        return  # the same turn
    both_store = earlier.touch.writes and later.touch.writes
    only_store = both_store and not (earlier.touch.reads or later.touch.reads)
    if only_store and not has_barriers and not same_thread:
        return  # the kernel itself leaves the order open
    here, there = print_expr(later.touch.node), f"line {a.line} ('{print_expr(earlier.touch.node)}')"
    passes = f"'{array}' passes values between threads"
    raise OutOfReach.at(b.line, f"'{here}' is touched here by other threads than in {there}: {passes}")


def _same_thread(earlier: _Seen, later: _Seen) -> bool:
    """Whether the same thread of the original comes to an element in both: its order is no accident."""
    a, b = earlier.step, later.step
    if not isinstance(a, Each) or not isinstance(b, Each) or not same_value(a.start, b.start):
        return False
    one, names = earlier.touch.place, {a.index: c.Name(b.index)}
    offset = None if one.offset is None else substitute(one.offset, names)
    return same_place(replace(one, index=substitute(one.index, names), offset=offset), later.touch.place)


# -- Whether every use of an array can be followed: by indexing, or by what is known to take a pointer to
# it.
#
# A pointer that is copied into a variable whose type is not written, into an array or a structure, turned
# into
# a number and back, or handed to a function is out of sight: what it reads or writes would be missed.


_TESTS = ("==", "!=", "<", ">", "<=", ">=", "&&", "||")


def check_pointers(normal: Normal, source: c.Source) -> None:
    """Raises OutOfReach, with the line, at the first use of an array that cannot be followed."""
    work = _Uses(normal, source)
    for stmt in walk.statements_in(normal.body):
        for part in walk.child_nodes(stmt):
            if isinstance(part, c.Expr):
                is_test = isinstance(stmt, c.If | c.While | c.For)
                for reason in work.of(part, is_test):
                    raise OutOfReach.at(stmt.line, reason)


class _Uses:
    def __init__(self, normal: Normal, source: c.Source) -> None:
        self._arrays: Mapping[str, c.Type] = normal.arrays
        staged = {name for name, declare in normal.shared.items() if declare.is_array}
        self._pointers = {name: replace(normal.shared[name].type, pointers=1) for name in staged}
        self._pointers |= normal.arrays
        self._all = set(self._pointers)
        self._own = {*normal.types, *normal.shared, *walk.declared_in(normal.body)}
        self._types: Mapping[str, c.Type] = normal.types
        declared = (n for n in walk.nodes_in(normal.body) if isinstance(n, c.Declare))
        self._local_arrays = {n.name for n in declared if n.dims}
        self._preamble = source.preamble

    def of(self, expr: c.Expr, is_test: bool = False) -> Iterator[str]:
        """Why an expression cannot be followed, in words; `is_test`: only whether it is null is asked."""
        if is_test and is_pointer(expr, self._arrays):
            return
        match expr:
            case c.Name(name=name) if name in self._all:
                if not is_test:
                    yield f"the pointer '{name}' is used in a way that is not followed"
            case c.Index():
                yield from self._indexed(expr)
            case c.Unary(op="&", operand=operand) if self._is_element(operand):
                array = walk.root_variable(operand)[0]
                yield f"the address of an element of '{array}' is used in a way that is not followed"
            case c.Call():
                yield from self._called(expr)
            case c.Cast(type=type_, value=value) if not type_.is_pointer and is_pointer(value, self._arrays):
                return  # its number, to see how it is aligned
            case c.Binary(op=op, left=left, right=right):
                for side in (left, right):
                    yield from self.of(side, op in _TESTS)
            case c.Unary(op="!", operand=operand):
                yield from self.of(operand, True)
            case c.Ternary(condition=condition, yes=yes, no=no):
                yield from self.of(condition, True)
                yield from (reason for side in (yes, no) for reason in self.of(side))
            case _:
                for child in walk.child_nodes(expr):
                    if isinstance(child, c.Expr):
                        yield from self.of(child)

    def _is_element(self, expr: c.Expr) -> bool:
        place = place_of(without_members(expr))
        return place is not None and place.array in self._all

    def _indexed(self, expr: c.Index) -> Iterator[str]:
        place = place_of(expr)
        if place is not None and place.array in self._all:
            parts: tuple[c.Expr | None, ...] = (place.index, place.offset)
        elif place is not None and place.array not in self._own and self._is_file_pointer(place.array):
            yield f"'{place.array}', a pointer of the file, may point anywhere"
            return
        else:
            base: c.Expr = expr.base
            while isinstance(base, c.Cast) and base.type.is_pointer:
                base = base.value
            if base is not expr.base and self._is_number(base):
                yield "memory is reached through a pointer made of a number"
                return
            is_row = isinstance(base, c.Index) and walk.root_variable(base)[0] in self._all
            parts = (base.index if is_row and isinstance(base, c.Index) else base, expr.index)
        for part in parts:
            if part is not None:
                yield from self.of(part)

    def _is_number(self, base: c.Expr) -> bool:
        name = base.name if isinstance(base, c.Name) else ""
        type_ = self._types.get(name)
        if name:
            return type_ is not None and not type_.is_pointer and name not in self._local_arrays
        return not isinstance(base, c.Unary | c.Index | c.Member)

    def _is_file_pointer(self, name: str) -> bool:
        declared = re.compile(rf"\*\s*(?:const\s+|__restrict__\s+)*{re.escape(name)}\b(?!\s*\()")
        return any(declared.search(text) for text in self._preamble)

    def _called(self, call: c.Call) -> Iterator[str]:
        effects = function_effects(call.function) if is_function(call.function) else Effects.NONE
        takes = effects & Effects.ATOMIC or call.function.startswith(("vload", "vstore"))
        for arg in call.args:
            place = pointed_at(arg, self._pointers) if takes else None
            if place is not None:
                parts = (place.index, place.offset)
                yield from (reason for part in parts if part is not None for reason in self.of(part))
                continue
            names = sorted(walk.names_in(arg) & set(self._arrays)) if is_pointer(arg, self._arrays) else ()
            for array in names:
                yield f"'{array}' is handed to {call.function} as a pointer"
            yield from self.of(arg)
