"""What a kernel does out of the reader's sight, or in a way that no other thread could do for it: refused.

In calls that stayed, in methods, lambdas and assembly threads may cooperate or ask for their own number, and
nothing read of the rest would hold. What depends on the time, on the machine, or on the thread other than by
its index cannot be shared out anew; what prints, allocates, launches or is volatile has to happen as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.assembly import is_assembly
from tunesmith.csource.effect_words import Effects, function_effects, is_function, variable_effects
from tunesmith.csource.effects import Program, of_assembly, of_text
from tunesmith.csource.inline import Inlined, side_effect
from tunesmith.expert.model.affine import BUILTINS
from tunesmith.expert.model.kernel import OutOfReach
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.translate import LaunchTerms

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
    own = {*walk.declared_in(inlined.function.body), *BUILTINS}
    hidden = look.of_types(inlined.function)
    if hidden:
        yield inlined.function.line, hidden
    for stmt in walk.statements_in(inlined.function.body):
        reason = look.of_text(stmt.text) if isinstance(stmt, c.Verbatim) else ""
        reason = reason or volatile.of_declaration(stmt)
        parts = (part for part in walk.children(stmt) if isinstance(part, c.Expr))
        for node in (node for part in parts for node in walk.expressions_in(part)):
            if isinstance(node, c.Name) and variable_effects(node.name) and node.name not in own:
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
        name = walk.root(c.Index(pointer, c.Number("0", 0)))[0] or ""
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
            touching = self._touching(part) if by_sign else ""
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
            reason = reason or next((self._of_function(f) for f in self._own(word)), "")
        return reason

    def _own(self, name: str) -> list[c.Function]:
        return [f for f in self._source.functions if f.name == name and not f.is_kernel]

    def _of_name(self, name: str) -> str:
        own = self._own(name)
        for function in own:
            reason = self._of_function(function)
            if reason:
                return reason
        if name in self._variables:
            return f"{name}, a variable, is called"
        if own or self._is_type(name):
            return ""
        if is_function(name):
            return _fixed(name)
        unread = next((why for why in self._source.unread if "function" in why), "")
        return f"{name} is called, {_NO_TEXT}" + (f" ({unread})" if unread else "")

    def _of_function(self, function: c.Function) -> str:
        if id(function) not in self._seen:
            self._seen[id(function)] = ""  # functions that call each other
            what = side_effect(function, self._source)
            reason = f"{function.name} stays a call, and it {what}" if what else ""
            if what and function.name in self._notes:
                reason = self._notes[function.name]
            head = self._touching(function.text.partition("{")[0])
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
        touching = self._touching(text)
        if touching:
            return f"{shown} it {touching}"
        for name in dict.fromkeys(_CALLED.findall(text)):
            reason = "" if name in _SYNTAX else self._of_name(name.split("::")[-1]) and self._of_name(name)
            if reason:
                return f"{shown} {reason}"
        if _METHOD.search(text):  # its text stands in some structure of the file
            touching = next((said for part in self._source.preamble if (said := self._touching(part))), "")
            return f"{shown} a structure of the file {touching}" if touching else ""
        return ""

    def _touching(self, text: str) -> str:
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


def _fixed(name: str) -> str:
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
    found = [
        node
        for node in walk.nodes_in(function.body)
        if isinstance(node, c.Declare) and node.storage == "dynamic shared" and node.name in used
    ]
    each = list(dict.fromkeys(found))
    if len(each) < 2:
        return function
    first = each[0]
    for other in each[1:]:
        if other.type != first.type:
            raise OutOfReach.at(other.line, f"'{other.name}' is the same shared memory as '{first.name}'")
    names = {other.name: c.Name(first.name) for other in each}
    declares = (node for node in walk.nodes_in(function.body) if isinstance(node, c.Declare))
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
            root = None if stmt.init is None else walk.root(stmt.init)[0]
            if not stmt.type.const or stmt.type.is_pointer or (root is not None and root in changed):
                raise OutOfReach.at(stmt.line, f"'{stmt.name}' is another name for what it refers to")
        for part in walk.children(stmt):
            for node in walk.nodes_in(part) if isinstance(part, c.Expr) else ():
                if isinstance(node, c.Cast) and node.type.reference and not node.type.const:
                    raise OutOfReach.at(stmt.line, "a value is reached as one of another type")
            for target in walk.writes_in(part) if isinstance(part, c.Expr) else ():
                if isinstance(target, c.Ternary):
                    raise OutOfReach.at(stmt.line, "which variable is written depends on a condition")


def check_own_memory(normal: Normal) -> None:
    """Memory is only followed in what is understood; variables of the file may only be read."""
    own = set(normal.types) | set(normal.arrays) | set(normal.shared) | set(normal.ids)
    own |= set(walk.declared_in(normal.body))
    for stmt in walk.statements_in(normal.body):
        parts: list[c.Expr | c.Stmt] = [part for part in walk.children(stmt) if isinstance(part, c.Expr)]
        parts += [stmt] if isinstance(stmt, c.Verbatim) else []
        for target in (target for part in parts for target in walk.writes_in(part)):
            name = walk.root(target)[0]
            if name is not None and name not in own:
                raise OutOfReach.at(stmt.line, f"'{name}', a variable of the file, is written to")
        for node in (node for part in parts for node in walk.nodes_in(part)):
            if isinstance(node, c.Opaque | c.Verbatim) and node.names & {*normal.arrays, *normal.shared}:
                text = " ".join(node.text.split())
                text = text if len(text) <= 60 else text[:57] + "..."
                raise OutOfReach.at(stmt.line, f"'{text}' is not understood")
