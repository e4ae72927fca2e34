"""Inline assembly taken apart: `asm volatile("template" : outputs : inputs : clobbers)`.

Only what is needed to say what it does: every instruction with its opcode, the special registers it reads,
and operands that are neither registers of its own, nor operands of the statement, nor numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(r"\s*(?:asm|__asm|__asm__)\s*((?:(?:volatile|__volatile__|__volatile|inline)\s*)*)\(")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PREDICATE = re.compile(r"@!?%?[\w$]+\s+")
_DECLARES = re.compile(r"\.reg\s*(?:\.\w+\s*)+([^;]*)$")
_WORD = re.compile(r"%%?[A-Za-z_$][\w$.]*|[A-Za-z_$][\w$]*|%\d+|%\[\w+\]|%\w\d+")
_NUMBER = re.compile(r"(?<![\w$%.])(?:0[fFdD][0-9a-fA-F]+|0[xX][0-9a-fA-F]+[uU]?|\d[\w.]*)")
_AXES = (".x", ".y", ".z", ".w")


class NotAssembly(Exception):
    """Why the text cannot be taken apart, in words."""


@dataclass(frozen=True)
class AsmInstruction:
    opcode: str  # with all its parts: cvt.rni.sat.s8.f32
    registers: tuple[str, ...] = ()  # special ones, without the sign: laneid, tid
    unknown_operand: str = ""
    needs_carry: bool = False  # it goes on from a carry that no earlier instruction here has set

    @property
    def stem(self) -> str:
        return self.opcode.partition(".")[0]


@dataclass(frozen=True)
class Assembly:
    instructions: tuple[AsmInstruction, ...]
    volatile: bool = False
    clobbers_memory: bool = False
    outputs: str = ""  # the text of what it sets, with constraints
    in_memory: bool = False  # operands that are places in memory

    @property
    def only_stores(self) -> bool:
        """One store to global memory, and what it depends on."""
        stores = [one for one in self.instructions if one.opcode.startswith("st.global")]
        others = {one.stem for one in self.instructions} - {"st"}
        return len(stores) == 1 and others <= {"setp"} and not self.in_memory


def is_assembly(text: str) -> bool:
    return _HEAD.match(text) is not None


def read_assembly(text: str) -> Assembly:
    """Raises NotAssembly."""
    head, sections = _HEAD.match(text), sections_of(text)
    template = sections[0]
    if _STRING.sub("", template).strip():
        raise NotAssembly("its template is no plain string")
    code = _unescaped("".join(_STRING.findall(template)))
    constraints = tuple(word for part in sections[1:3] for word in _STRING.findall(part))
    clobbers = tuple(word for part in sections[3:] for word in _STRING.findall(part))
    extended = len(sections) > 1
    in_memory = any(set("mo") & set(word) for word in constraints)
    memory = "memory" in clobbers or in_memory
    outputs = sections[1].strip() if extended else ""
    volatile = head is not None and "volatile" in head[1]
    return Assembly(_instructions(code, extended), volatile, memory, outputs, in_memory)


def sections_of(text: str) -> list[str]:
    """Its template, outputs, inputs and clobbers as they are written. Raises NotAssembly."""
    head = _HEAD.match(text)
    if head is None:
        raise NotAssembly("it has another form")
    return _sections(text[head.end() :])


def instruction_lines(text: str) -> list[str]:
    """Its instructions as they are written. Raises NotAssembly.

    A store has to say that it writes memory, which is no more than a plain one does; of a load that says so,
    and of places in memory as operands, nothing is known."""
    read = read_assembly(text)
    if read.clobbers_memory and not read.only_stores:
        raise NotAssembly("it orders memory")
    code = _unescaped("".join(_STRING.findall(sections_of(text)[0])))
    return _lines(re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL))


def _sections(text: str) -> list[str]:
    """What stands between the colons of the statement, outside strings and parentheses."""
    found, depth, start, at = list[str](), 0, 0, 0
    while at < len(text):
        string = _STRING.match(text, at)
        if string is not None:
            at = string.end()
            continue
        sign = text[at]
        if sign == ")" and depth == 0:
            found.append(text[start:at])
            return found
        if text.startswith("::", at) and depth == 0 and _is_name(text, at):
            at += 2  # std::max
            continue
        if sign == ":" and depth == 0:
            found.append(text[start:at])
            start = at + 1
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0)
        at += 1
    raise NotAssembly("it does not end")


def _is_name(text: str, at: int) -> bool:
    return at > 0 and text[at - 1].isalnum() and text[at + 2 : at + 3].isalpha()


def _unescaped(text: str) -> str:
    if re.search(r"\\[^nt\\\"']", text):
        raise NotAssembly("its template has an escape that is not followed")
    return text.replace("\\n", "\n").replace("\\t", " ").replace("\\\\", "\\").replace('\\"', '"')


def _instructions(code: str, extended: bool) -> tuple[AsmInstruction, ...]:
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL)
    own: set[str] = set()
    carry = False
    found: list[AsmInstruction] = []
    for line in _lines(code):
        declared = _DECLARES.match(line)
        if declared is not None:
            for name in re.findall(r"%?%?([A-Za-z_$][\w$]*)(?:<\d+>)?", declared[1]):
                own.add(name)
            continue
        line = _PREDICATE.sub("", line, count=1) if line.startswith("@") else line
        if re.match(r"[\w$]+\s*:", line):
            raise NotAssembly("it has labels")
        opcode, _, operands = line.partition(" ")
        if not re.fullmatch(r"[a-z][\w.:]*", opcode):
            raise NotAssembly(f"'{line[:40]}' is no instruction")
        stem = opcode.partition(".")[0]
        needs = stem in ("addc", "subc", "madc") and not carry
        carry = carry or ".cc" in opcode
        registers, odd = _operands(operands, own, extended)
        found.append(AsmInstruction(opcode, registers, odd, needs))
    return tuple(found)


def _lines(code: str) -> list[str]:
    """Instructions one by one; braces around a block of them go, those of vectors stay."""
    parts = re.split(r"[;\n]", code)
    done: list[str] = []
    pending = ""
    for part in parts:
        part = " ".join(part.split())
        while part.startswith(("{", "}")):
            part = part[1:].lstrip()
        if part.endswith("}") and part.count("{") < part.count("}"):
            part = part[:-1].rstrip()
        if pending:
            part, pending = f"{pending} {part}", ""
        if part.endswith(","):
            pending = part  # it goes on in the next line
        elif part:
            done.append(part)
    return [*done, pending] if pending else done


def _operands(text: str, own: set[str], extended: bool) -> tuple[tuple[str, ...], str]:
    """Special registers among the operands, and the first word that is not known for what it is."""
    registers: list[str] = []
    odd = ""
    for word in _WORD.findall(_NUMBER.sub(" ", text)):
        if re.fullmatch(r"%\d+|%\[\w+\]", word):
            if not extended:
                raise NotAssembly(f"'{word}' stands in a statement without operands")
            continue
        name = word.lstrip("%")
        for axis in _AXES:
            name = name.removesuffix(axis)
        if name in own or name == "_":
            continue
        if word.startswith("%%") or (word.startswith("%") and not extended):
            registers.append(name)
        elif word.startswith("%") or not odd:
            odd = odd or word
    return tuple(registers), odd
