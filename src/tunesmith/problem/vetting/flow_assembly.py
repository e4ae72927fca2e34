"""Where addresses go in PTX: a register file of values, instruction by instruction."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tunesmith.problem.vetting.device_words import Refusal, split_word_set
from tunesmith.problem.vetting.flow_memory import PLAIN, WIDEST_SHARED, FlowValue, combine_values, join_all

if TYPE_CHECKING:
    from tree_sitter import Node

_REGISTER = re.compile(r"%\d+|%?%?[A-Za-z_$][\w$]*")
_INSTRUCTION = re.compile(r"\s*(?:@!?(%?%?[\w$\[\]]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_WRITE = split_word_set("st red atom cp stmatrix multimem")
_ACCESS = _WRITE | split_word_set(
    "ld ldu ldmatrix mbarrier prefetch prefetchu tensormap discard applypriority wgmma mma wmma tcgen05 "
    "fence bar barrier griddepcontrol membar clusterlaunchcontrol"
)
_SAME = frozenset({"mov", "cvta", "cvt", "mapa"})
_ARITHMETIC = {"add": "+", "sub": "-", "and": "&", "shr": ">>", "rem": "%", "div": "/", "shl": "<<"}
ADVICE = "; pass it in brackets, as an address"


class AsmFlow:
    def __init__(
        self,
        texts: Sequence[str],
        outputs: Sequence[FlowValue],
        inputs: Sequence[FlowValue],
        write: Callable[[FlowValue, Node], None],
        touch: Callable[[FlowValue], None],
        is_shared: Callable[[FlowValue], bool],
    ) -> None:
        self.write, self.touch, self.is_shared = write, touch, is_shared
        self.outputs = len(outputs)
        end = next((at for at, text in enumerate(texts) if at > 1 and text in (":", "::")), len(texts))
        code = "".join(text[1:-1] for text in texts[:end] if text.endswith(('"', "'")))
        code = code.replace("\\n", "\n").replace("\\t", " ").replace("\\r", "\n")
        code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL)
        named = re.findall(r"\[ (\w+) \] \"", " ".join(texts[end:]))
        at = {name: f"%{place}" for place, name in enumerate(named)}
        self.code = re.sub(r"%\[(\w+)\]", lambda found: at.get(found[1], found[1]), code)
        self.held = {f"%{place}": value for place, value in enumerate((*outputs, *inputs))}

    def run(self, node: Node, refuse: Callable[[Node, str], Refusal]) -> list[FlowValue]:
        """What it gives out."""
        for line in re.split(r"[;\n]|[{}](?=\s*(?:\.reg|@|[a-z]+[.\s]|$))", self.code):
            found = _INSTRUCTION.fullmatch(line.rstrip())
            if found is not None:
                self._follow_instruction(found, node, refuse)
        return [self.held.get(f"%{at}", PLAIN) for at in range(self.outputs)]

    def _of(self, text: str) -> FlowValue:
        return join_all([self.held.get(name, PLAIN) for name in _REGISTER.findall(text)])

    def _follow_instruction(
        self, found: re.Match[str], node: Node, refuse: Callable[[Node, str], Refusal]
    ) -> None:
        guard, opcode, rest = found.groups()
        stem = opcode.partition(".")[0]
        if guard and self.held.get(guard, PLAIN).arrays:
            raise refuse(node, "decides by an address in assembler")
        places = [self._of(inside) for inside in _BRACKETS.findall(rest)]
        plain = [part.strip() for part in re.sub(r"[{}]", " ", _BRACKETS.sub(" ", rest)).split(",")]
        if stem in _ACCESS:
            others = [value for part in plain if not (value := self._of(part)).is_plain]
            if any(not self.is_shared(value) for value in others):
                raise refuse(node, "uses an address as a value in assembler" + ADVICE)
            for at, place in enumerate(places):
                if place.arrays and at == 0 and stem in _WRITE and ".prefetch" not in opcode:
                    self.write(place, node)
                elif place.shift is not None and not self.is_shared(place):
                    raise refuse(node, "reaches memory by more of an address than steps in assembler")
                self.touch(place)
            for value in others:
                self.touch(value)
            return
        values = [self._of(part) for part in plain]
        if not plain[0] or all(value.is_plain for value in values[1:]):
            for name in _REGISTER.findall(plain[0]):
                self.held.pop(name, None)
            return
        if stem in ("setp", "set", "testp", "isspacep"):
            raise refuse(node, "decides by an address in assembler")
        value = join_all(values[1:])
        if stem in _ARITHMETIC and len(values) == 3:
            by = int(plain[2], 0) if re.fullmatch(r"-?\d+|0[xX][0-9a-fA-F]+", plain[2]) else None
            width = WIDEST_SHARED if self.is_shared(value) else 16
            if (mixed := combine_values(_ARITHMETIC[stem], values[1], values[2], by, width)) is None:
                raise refuse(node, "is the distance between two arrays in assembler")
            value = mixed
        elif stem not in _SAME:
            value = value.mixed(PLAIN)
        for name in _REGISTER.findall(plain[0]):
            self.held[name] = value
