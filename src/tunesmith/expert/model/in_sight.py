"""What a kernel does where the reader cannot see it: in calls that stayed, in methods, lambdas and assembly.

Threads may cooperate there, or ask for their own number. Then nothing that is read of the rest holds.
"""

from __future__ import annotations

import re

from tunesmith.csource.inline import COLLECTIVE, Inlined, touches
from tunesmith.csource.nodes import Call, Expr, Function, Opaque, Source, Unreadable, Verbatim
from tunesmith.csource.types import is_known
from tunesmith.csource.walk import calls_in, children, declared_in, expressions_in, nodes_in, statements_in

_THREADS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "cooperative_groups", "asm", "__asm__"})
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"(?<![\w.>])([A-Za-z_][\w:]*)\s*(?:<[\w\s,:*]*>)?\s*\(")
_METHOD = re.compile(r"(?:\.|->)\s*[A-Za-z_]\w*\s*\(|[)}\]]\s*\(")  # v.go(), R{}(), f()()
_SYNTAX = frozenset({
    "if", "for", "while", "switch", "return", "sizeof", "decltype", "operator", "alignof", "constexpr",
    "static_assert", "__attribute__", "static_cast", "reinterpret_cast", "const_cast", "dynamic_cast",
})  # fmt: skip
_PLAIN_TYPE = re.compile(
    r"(unsigned|signed|u?int|u?char|u?short|u?long|float|double|half|bool|size_t|dim)\d*(_t)?"
)
_NO_TEXT = "whose text is not in the file"


def check_in_sight(inlined: Inlined, source: Source) -> None:
    """Raises Unreadable, with the line, where something hidden may depend on threads."""
    look = _Look(inlined, source)
    for stmt in statements_in(inlined.function.body):
        reason = look.of_text(stmt.text) if isinstance(stmt, Verbatim) else ""
        for part in children(stmt):
            for node in expressions_in(part) if isinstance(part, Expr) else ():
                if isinstance(node, Call):
                    reason = reason or look.of_call(node)
                elif isinstance(node, Opaque):
                    reason = reason or look.of_text(node.text)
        if reason:
            raise Unreadable(f"line {stmt.line}: {reason}", stmt.line)


class _Look:
    def __init__(self, inlined: Inlined, source: Source) -> None:
        self._source = source
        self._variables = frozenset(declared_in(inlined.function.body))
        self._notes: dict[str, str] = {}
        for note in inlined.notes:  # "line 5: f stays a call: why"
            said = note.partition(": ")[2]
            self._notes.setdefault(said.split(" ", 1)[0], said)
        self._seen: dict[int, str] = {}
        self._types = {alias for alias, _ in source.aliases}
        self._types |= {p.name for f in source.functions for p in f.template}

    def of_call(self, call: Call) -> str:
        reason = self._of_name(call.function)
        for word in (word for text in call.template_args for word in _WORD.findall(text)):
            reason = reason or next((self._of_function(f) for f in self._own(word)), "")
        return reason

    def _own(self, name: str) -> list[Function]:
        return [f for f in self._source.functions if f.name == name and not f.is_kernel]

    def _of_name(self, name: str) -> str:
        own = self._own(name)
        for function in own:
            reason = self._of_function(function)
            if reason:
                return reason
        if name in self._variables:
            return f"{name}, a variable, is called"
        if own or is_known(name) or self._is_type(name):
            return ""
        unread = next((why for why in self._source.unread if "function" in why), "")
        return f"{name} is called, {_NO_TEXT}" + (f" ({unread})" if unread else "")

    def _of_function(self, function: Function) -> str:
        if id(function) not in self._seen:
            self._seen[id(function)] = ""  # functions that call each other
            what = touches(function, self._source)
            reason = f"{function.name} stays a call, and it {what}" if what else ""
            if what and function.name in self._notes:
                reason = self._notes[function.name]
            for node in nodes_in(function.body):
                if isinstance(node, Opaque):
                    reason = reason or self.of_text(node.text)
            for call in calls_in(function.body):
                reason = reason or self.of_call(call)
            self._seen[id(function)] = reason
        return self._seen[id(function)]

    def of_text(self, text: str) -> str:
        shown = " ".join(text.split())
        shown = f"'{shown if len(shown) <= 60 else shown[:57] + '...'}' is not understood, and"
        touching = _touching(text)
        if touching:
            return f"{shown} it uses {touching}"
        for name in dict.fromkeys(_CALLED.findall(text)):
            reason = "" if name in _SYNTAX else self._of_name(name.split("::")[-1]) and self._of_name(name)
            if reason:
                return f"{shown} {reason}"
        if _METHOD.search(text):  # its text stands in some structure of the file
            touching = next((word for part in self._source.preamble if (word := _touching(part))), "")
            return f"{shown} a structure of the file uses {touching}" if touching else ""
        return ""

    def _is_type(self, name: str) -> bool:
        """Types are called to convert: `T(0)`, `float(x)`, `__half(y)`."""
        base = name.split("<")[0].split("::")[-1]
        if base in self._types or _PLAIN_TYPE.fullmatch(base):
            return True
        named = re.compile(rf"\b(struct|class|union|enum)\b[^;{{]*\b{re.escape(base)}\b")
        return any(named.search(text) for text in self._source.preamble)


def _touching(text: str) -> str:
    words = _WORD.findall(text)
    return next((word for word in words if word in _THREADS or word.startswith(COLLECTIVE)), "")
