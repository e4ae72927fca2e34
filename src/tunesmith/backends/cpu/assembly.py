"""Inline assembly of NVIDIA's, as C++ that does the same on the host; what is not known is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPERAND = re.compile(r'(?:\[(\w+)\]\s*)?"([^"]*)"\s*\((.*)\)', re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PLACE = re.compile(r"\[\s*([^\]+]+?)\s*(?:\+\s*(\d+)\s*)?\]")
_TYPES = {
    "u8": "unsigned char", "s8": "signed char", "b8": "unsigned char",
    "u16": "unsigned short", "s16": "short", "b16": "unsigned short", "f16": "unsigned short",
    "u32": "unsigned", "s32": "int", "b32": "unsigned", "f32": "float",
    "u64": "unsigned long long", "s64": "long long", "b64": "unsigned long long", "f64": "double",
}  # fmt: skip
_REGISTERS = {
    **{f"{own}.{axis}": f"{name}.{axis}" for own, name in (
        ("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"),
    ) for axis in "xyz"},
    "laneid": "__tunesmith_laneid()", "warpid": "__tunesmith_warpid()", "smid": "__tunesmith_smid()",
    "clock": "__tunesmith_clock()", "clock64": "__tunesmith_ticks()",
    "lanemask_lt": "__tunesmith_lanemask_lt()", "lanemask_le": "__tunesmith_lanemask_le()",
    "lanemask_eq": "__tunesmith_lanemask_eq()", "lanemask_gt": "__tunesmith_lanemask_gt()",
    "lanemask_ge": "__tunesmith_lanemask_ge()",
}  # fmt: skip
_ONE = {
    "ex2": "exp2f({})", "lg2": "log2f({})", "rcp": "(1.0f / {})", "rsqrt": "rsqrtf({})", "sqrt": "sqrtf({})",
    "tanh": "tanhf({})", "sin": "sinf({})", "cos": "cosf({})", "neg": "(-{})", "abs": "fabsf({})",
}  # fmt: skip
_TWO = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "div": "({} / {})",
    "max": "fmaxf({}, {})", "min": "fminf({}, {})",
}  # fmt: skip
_DECLARED = re.compile(r"\.reg\s+\.(\w+)\s+(.*)")
_GUARDED = re.compile(r"@(!?)(%?\w+)\s+(.*)")
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
_PLAIN = re.compile(r"\w+(?:\.rn|\.approx|\.full)?(?:\.ftz)?\.f32")  # no other rounding, no .sat, no .NaN
_SHUFFLES = {"bfly": "xor", "down": "down", "up": "up", "idx": ""}
_WAITS = re.compile(
    r"\{\s*\.reg \.pred (\w+); mbarrier\.try_wait\.parity\S* \1, \[%1\], %2; selp\.\w+ %0, 1, 0, \1; \}"
)
_WAITS_IN_A_LOOP = re.compile(
    r"\{\s*\.reg \.pred (\w+); (\w+): mbarrier\.(?:try|test)_wait\.parity\S* \1,"
    r" \[(%\w+|%\[\w+\])\], (%\w+|%\[\w+\]);"
    r" @\1 bra(?:\.uni)? (\w+); bra(?:\.uni)? \2; \5: \}"
)


class UnknownInstruction(Exception):
    """An instruction that nobody here can follow."""


@dataclass(frozen=True)
class _AsmOperands:
    """What the operands of a statement are in C++, by number and by name."""

    operands: tuple[str, ...]
    names: dict[str, int]
    registers: frozenset[str] = frozenset()  # of its own

    def value(self, word: str) -> str:
        """An operand, a special register or a number."""
        word = word.strip()
        if found := re.fullmatch(r"%(\d+)|%\[(\w+)\]", word):
            number = int(found[1]) if found[1] else self.names.get(found[2], -1)
            if 0 <= number < len(self.operands):
                return f"({self.operands[number]})"
        if word.lstrip("%") in self.registers:
            return f"own_{word.lstrip('%')}"
        if word.startswith("%%") and word[2:] in _REGISTERS:
            return _REGISTERS[word[2:]]
        if re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|\d+)[uU]?", word):
            return word
        if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", word):
            return f"__uint_as_float(0x{found[1]}u)"
        raise UnknownInstruction(word)


def as_code(template: str, outputs: str, inputs: str) -> str:
    """Statements of C++ that do what the assembly does. Raises UnknownInstruction with what it met."""
    if _STRING.sub("", template).strip():
        raise UnknownInstruction("a template that is no plain string")
    text = "".join(_STRING.findall(template)).replace("\\n", " ").replace("\\t", " ")
    text = " ".join(_COMMENT.sub(" ", text).split())
    given = _operands(outputs, inputs)
    if _WAITS.fullmatch(text):
        return f"{given.value('%0')} = __tunesmith_arrived({given.value('%1')}, {given.value('%2')});"
    if waits := _WAITS_IN_A_LOOP.fullmatch(text):
        return f"__tunesmith_arrived({given.value(waits[3])}, {given.value(waits[4])});"
    text = text.removeprefix("{").removesuffix("}") if text.startswith("{") else text
    lines = [line.strip() for line in text.split(";") if line.strip()]
    code: list[str] = []
    for line in lines:
        if declared := _DECLARED.fullmatch(line):
            kind = "bool" if declared[1] == "pred" else _TYPES.get(declared[1], "")
            names = [name.strip().lstrip("%") for name in declared[2].split(",")]
            if not kind or any(not re.fullmatch(r"[A-Za-z_$][\w$]*", name) for name in names):
                raise UnknownInstruction(line)
            given = replace(given, registers=given.registers | {*names})
            code += [f"{kind} own_{name} = {kind}();" for name in names]
        elif guarded := _GUARDED.fullmatch(line):
            condition = given.value(guarded[2])
            code.append(f"if ({guarded[1]}{condition}) {{ {_instruction(guarded[3], given)}; }}")
        else:
            code.append(f"{_instruction(line, given)};")
    return " ".join(code)


def _operands(outputs: str, inputs: str) -> _AsmOperands:
    found: list[str] = []
    names: dict[str, int] = {}
    for text in (outputs, inputs):
        for part in _split(text):
            operand = _OPERAND.fullmatch(part.strip())
            if operand is None:
                raise UnknownInstruction(f"the operand {part.strip()}")
            if operand[1]:
                names[operand[1]] = len(found)
            found.append(operand[3].strip())
    return _AsmOperands(tuple(found), names)


def _split(text: str) -> list[str]:
    """At commas outside brackets and strings."""
    parts, depth, start, quoted = list[str](), 0, 0, False
    for at, sign in enumerate(text):
        quoted ^= sign == '"'
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0) if not quoted else 0
        if sign == "," and depth == 0 and not quoted:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in (*parts, text[start:]) if part.strip()]


def _instruction(line: str, given: _AsmOperands) -> str:
    opcode, _, rest = line.partition(" ")
    words, stem = [word.strip() for word in _split(rest)], opcode.partition(".")[0]
    for pattern, make in _KNOWN:
        if pattern.match(opcode):
            try:
                return make(opcode, words, given)
            except (IndexError, KeyError, UnknownInstruction) as error:
                raise UnknownInstruction(line) from error
    plain = _PLAIN.fullmatch(opcode) is not None
    if stem in _ONE and plain and len(words) == 2:
        return f"{given.value(words[0])} = {_ONE[stem].format(given.value(words[1]))}"
    if stem in _TWO and plain and len(words) == 3:
        return f"{given.value(words[0])} = {_TWO[stem].format(*map(given.value, words[1:]))}"
    raise UnknownInstruction(line)


def _nothing(_opcode: str, _words: Sequence[str], _given: _AsmOperands) -> str:
    return "(void)0"


def _move(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    return f"__tunesmith::put({given.value(words[0])}, {given.value(words[1])})"


def _address(opcode: str, word: str, given: _AsmOperands) -> str:
    place = _PLACE.fullmatch(word)
    if place is None:
        raise UnknownInstruction(word)
    base, by = given.value(place[1]), f" + {place[2]}" if place[2] else ""
    if ".shared" in opcode:
        return f"(__tunesmith_at((unsigned){base}){by})"
    return f"((unsigned char *){base}{by})"


def _access(opcode: str, word: str) -> tuple[str, list[str]]:
    """The type of what is moved, and the registers."""
    parts = opcode.split(".")
    several = next((int(part[1]) for part in parts if re.fullmatch(r"v[248]", part)), 1)
    registers = _split(word.strip()[1:-1]) if word.strip().startswith("{") else [word]
    if len(registers) != several:
        raise UnknownInstruction(opcode)
    return f"__tunesmith::Moved<{_TYPES[parts[-1]]}, {several}>", registers


def _load(opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    kind, registers = _access(opcode, words[0])
    puts = " ".join(f"__tunesmith::put({given.value(r)}, got.item[{i}]);" for i, r in enumerate(registers))
    return f"{{ const {kind} got = *(const {kind} *){_address(opcode, words[1], given)}; {puts} }}"


def _store(opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    kind, registers = _access(opcode, words[1])
    puts = " ".join(f"__tunesmith::put(now.item[{i}], {given.value(r)});" for i, r in enumerate(registers))
    return f"{{ {kind} now; {puts} *({kind} *){_address(opcode, words[0], given)} = now; }}"


def _copy(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    to, source = (_PLACE.fullmatch(word) for word in words[:2])
    if to is None or source is None or to[2] or source[2]:
        raise UnknownInstruction(words[0])
    nbytes = given.value(words[2])
    zeros = f"{nbytes} - {given.value(words[3])}" if len(words) > 3 else "0"
    target = f"(unsigned){given.value(to[1])}"
    return f"__tunesmith_copy_to({target}, (const void *){given.value(source[1])}, {nbytes}, {zeros})"


def _shuffle(opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    way = _SHUFFLES[opcode.split(".")[2]]
    if given.value(words[3]) not in (("0",) if way == "up" else ("31", "0x1f")):  # else another segment
        raise UnknownInstruction(words[3])
    mask = f"(unsigned){given.value(words[4])}"
    call = f"__shfl{'_' if way else ''}{way}_sync"
    return f"{given.value(words[0])} = {call}({mask}, {given.value(words[1])}, {given.value(words[2])})"


def _bulk(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    to, source, nbytes, at = words
    places = [_PLACE.fullmatch(word) for word in (to, source, at)]
    to, source, at = (given.value(place[1]) for place in places if place is not None)
    return f"__tunesmith_bulk_copy({to}, (const void *){source}, {given.value(nbytes)}, {at})"


def _at_barrier(call: str) -> Callable[[str, Sequence[str], _AsmOperands], str]:
    def made(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
        place = _PLACE.fullmatch(words[0] if words[0] != "_" else words[1])
        if place is None:
            raise UnknownInstruction(words[0])
        last = given.value(words[-1])
        return call.format(given.value(place[1]), last)

    return made


def _arrive(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    """One that keeps no token: waits are by phase."""
    token, place = words
    at = _PLACE.fullmatch(place)
    if token != "_" or at is None or at[2]:
        raise UnknownInstruction(token)
    return f"__tunesmith_expect({given.value(at[1])}, 0)"


def _compare(opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    _, how, kind = opcode.split(".")
    a, b = (f"({_TYPES[kind]}){given.value(word)}" for word in words[1:])
    return f"{given.value(words[0])} = {a} {_COMPARED[how]} {b}"


def _select(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    to, a, b, which = map(given.value, words)
    return f"{to} = {which} ? {a} : {b}"


def _barrier(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    return f"__tunesmith_barrier({given.value(words[0])}, {given.value(words[1]) if words[1:] else 0})"


_KNOWN: tuple[tuple[re.Pattern[str], Callable[[str, Sequence[str], _AsmOperands], str]], ...] = (
    (re.compile(r"fence\.proxy\.async"), lambda _o, _w, _g: "__tunesmith_fence_copies()"),
    # Launches and blocks are run one after the other, and every thread sees at once what another wrote.
    (re.compile(r"griddepcontrol\.|prefetch|fence\.(?:proxy|mbarrier_init)\b|nanosleep"), _nothing),
    (re.compile(r"fence\.|membar\."), lambda _o, _w, _g: "__tunesmith_fence()"),
    (re.compile(r"mov\.[usbf](?:16|32|64)$"), _move),
    (re.compile(r"ld\.(?:(?:volatile|relaxed|weak)\.)?(?:global|shared)"), _load),
    (re.compile(r"st\.(?:(?:volatile|relaxed|weak)\.)?(?:global|shared)"), _store),
    (re.compile(r"cp\.async\.c[ag]\.shared(?:::cta)?\.global"), _copy),
    (re.compile(r"cp\.async\.commit_group$"), lambda _o, _w, _g: "__tunesmith_commit()"),
    (re.compile(r"cp\.async\.wait_all$"), lambda _o, _w, _g: "__tunesmith_finish(-1)"),
    (re.compile(r"cp\.async\.wait_group$"), lambda _o, w, g: f"__tunesmith_finish({g.value(w[0])})"),
    (re.compile(r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier"), _bulk),
    (re.compile(r"mbarrier\.init\."), _at_barrier("__tunesmith_make_arrival({0}, {1})")),
    (re.compile(r"mbarrier\.arrive\.expect_tx\."), _at_barrier("__tunesmith_expect({0}, {1})")),
    (re.compile(r"mbarrier\.arrive\.(?:release\.cta\.)?shared(?:::cta)?\.b64$"), _arrive),
    (re.compile(r"bar(?:rier)?(?:\.cta)?\.sync(?:\.aligned)?$"), _barrier),
    (
        re.compile(r"bar(?:rier)?(?:\.cta)?\.arrive(?:\.aligned)?$"),
        lambda _o, w, g: f"__tunesmith_arrive({g.value(w[0])}, {g.value(w[1])})",
    ),
    (re.compile(r"bar\.warp\.sync$"), lambda _o, w, g: f"__syncwarp((unsigned){g.value(w[0])})"),
    (re.compile(r"shfl\.sync\.(?:bfly|down|up|idx)\.b32$"), _shuffle),
    (re.compile(r"activemask\.b32$"), lambda _o, w, g: f"{g.value(w[0])} = __activemask()"),
    (re.compile(r"setp\.\w+\.\w+$"), _compare),
    (re.compile(r"selp\.\w+$"), _select),
    (re.compile(r"trap$"), lambda _o, _w, _g: "__trap()"),
    (
        re.compile(r"fma\.rn(?:\.ftz)?\.f32$"),
        lambda _o, w, g: f"{g.value(w[0])} = fmaf({', '.join(map(g.value, w[1:]))})",
    ),
)
