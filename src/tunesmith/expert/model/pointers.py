"""Whether every use of an array can be followed: by indexing, or by what is known to take a pointer to it.

A pointer that is copied into a variable whose type is not written, into an array or a structure, turned into
a number and back, or handed to a function is out of sight: what it reads or writes would be missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, function_effects, is_function
from tunesmith.expert.model.accesses import is_pointer, place_of, pointed_at
from tunesmith.expert.model.kernel import OutOfReach
from tunesmith.expert.model.normal import Normal

_TESTS = ("==", "!=", "<", ">", "<=", ">=", "&&", "||")


def check_pointers(normal: Normal, source: c.Source) -> None:
    """Raises OutOfReach, with the line, at the first use of an array that cannot be followed."""
    work = _Uses(normal, source)
    for stmt in walk.statements_in(normal.body):
        for part in walk.children(stmt):
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
                array = walk.root(operand)[0]
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
                for child in walk.children(expr):
                    if isinstance(child, c.Expr):
                        yield from self.of(child)

    def _is_element(self, expr: c.Expr) -> bool:
        while isinstance(expr, c.Member):
            expr = expr.base
        place = place_of(expr)
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
            is_row = isinstance(base, c.Index) and walk.root(base)[0] in self._all
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
