"""A kernel's source as the host's compiler takes it: line by line the same, but for what only a GPU has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tunesmith.backends import port
from tunesmith.source.effects import NotAssembly, sections_of
from tunesmith.source.text import blank_elements

# Inline assembly of NVIDIA's, as C++ that does the same on the host; what is not known is named.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPERAND = re.compile(r'(?:\[(\w+)\]\s*)?"([^"]*)"\s*\((.*)\)', re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PLACE = re.compile(r"\[\s*([^\]+]+?)\s*(?:\+\s*(\d+)\s*)?\]")
_PTX_TYPES = {
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
# No other rounding, no .sat, no .NaN.
_PLAIN_INSTRUCTION = re.compile(r"\w+(?:\.rn|\.approx|\.full)?(?:\.ftz)?\.f32")
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
    given = _parse_operands(outputs, inputs)
    if _WAITS.fullmatch(text):
        return f"{given.value('%0')} = __tunesmith_arrived({given.value('%1')}, {given.value('%2')});"
    if waits := _WAITS_IN_A_LOOP.fullmatch(text):
        return f"__tunesmith_arrived({given.value(waits[3])}, {given.value(waits[4])});"
    text = text.removeprefix("{").removesuffix("}") if text.startswith("{") else text
    lines = [line.strip() for line in text.split(";") if line.strip()]
    code: list[str] = []
    for line in lines:
        if declared := _DECLARED.fullmatch(line):
            kind = "bool" if declared[1] == "pred" else _PTX_TYPES.get(declared[1], "")
            names = [name.strip().lstrip("%") for name in declared[2].split(",")]
            if not kind or any(not re.fullmatch(r"[A-Za-z_$][\w$]*", name) for name in names):
                raise UnknownInstruction(line)
            given = replace(given, registers=given.registers | {*names})
            code += [f"{kind} own_{name} = {kind}();" for name in names]
        elif guarded := _GUARDED.fullmatch(line):
            condition = given.value(guarded[2])
            code.append(f"if ({guarded[1]}{condition}) {{ {_translate_instruction(guarded[3], given)}; }}")
        else:
            code.append(f"{_translate_instruction(line, given)};")
    return " ".join(code)


def _parse_operands(outputs: str, inputs: str) -> _AsmOperands:
    found: list[str] = []
    names: dict[str, int] = {}
    for text in (outputs, inputs):
        for part in _split_at_commas(text):
            operand = _OPERAND.fullmatch(part.strip())
            if operand is None:
                raise UnknownInstruction(f"the operand {part.strip()}")
            if operand[1]:
                names[operand[1]] = len(found)
            found.append(operand[3].strip())
    return _AsmOperands(tuple(found), names)


def _split_at_commas(text: str) -> list[str]:
    """At commas outside brackets and strings."""
    parts, depth, start, quoted = list[str](), 0, 0, False
    for at, sign in enumerate(text):
        quoted ^= sign == '"'
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0) if not quoted else 0
        if sign == "," and depth == 0 and not quoted:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in (*parts, text[start:]) if part.strip()]


def _translate_instruction(line: str, given: _AsmOperands) -> str:
    opcode, _, rest = line.partition(" ")
    words, stem = [word.strip() for word in _split_at_commas(rest)], opcode.partition(".")[0]
    for pattern, make in _KNOWN:
        if re.match(pattern, opcode):
            try:
                if isinstance(make, str):
                    needed = 1 + max(map(int, re.findall(r"\{(\d)\}", make)), default=-1)
                    return make.format(*map(given.value, words[:needed]))
                return make(opcode, words, given)
            except (IndexError, KeyError, UnknownInstruction) as error:
                raise UnknownInstruction(line) from error
    plain = _PLAIN_INSTRUCTION.fullmatch(opcode) is not None
    if stem in _ONE and plain and len(words) == 2:
        return f"{given.value(words[0])} = {_ONE[stem].format(given.value(words[1]))}"
    if stem in _TWO and plain and len(words) == 3:
        return f"{given.value(words[0])} = {_TWO[stem].format(*map(given.value, words[1:]))}"
    raise UnknownInstruction(line)


def _address_code(opcode: str, word: str, given: _AsmOperands) -> str:
    place = _PLACE.fullmatch(word)
    if place is None:
        raise UnknownInstruction(word)
    base, by = given.value(place[1]), f" + {place[2]}" if place[2] else ""
    if ".shared" in opcode:
        return f"(__tunesmith_at((unsigned){base}){by})"
    return f"((unsigned char *){base}{by})"


def _parse_access(opcode: str, word: str) -> tuple[str, list[str]]:
    """The type of what is moved, and the registers."""
    parts = opcode.split(".")
    several = next((int(part[1]) for part in parts if re.fullmatch(r"v[248]", part)), 1)
    registers = _split_at_commas(word.strip()[1:-1]) if word.strip().startswith("{") else [word]
    if len(registers) != several:
        raise UnknownInstruction(opcode)
    return f"__tunesmith::Moved<{_PTX_TYPES[parts[-1]]}, {several}>", registers


def _emit_load(opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    kind, registers = _parse_access(opcode, words[0])
    puts = " ".join(f"__tunesmith::put({given.value(r)}, got.item[{i}]);" for i, r in enumerate(registers))
    return f"{{ const {kind} got = *(const {kind} *){_address_code(opcode, words[1], given)}; {puts} }}"


def _emit_store(opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    kind, registers = _parse_access(opcode, words[1])
    puts = " ".join(f"__tunesmith::put(now.item[{i}], {given.value(r)});" for i, r in enumerate(registers))
    return f"{{ {kind} now; {puts} *({kind} *){_address_code(opcode, words[0], given)} = now; }}"


def _emit_copy(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    to, source = (_PLACE.fullmatch(word) for word in words[:2])
    if to is None or source is None or to[2] or source[2]:
        raise UnknownInstruction(words[0])
    nbytes = given.value(words[2])
    zeros = f"{nbytes} - {given.value(words[3])}" if len(words) > 3 else "0"
    target = f"(unsigned){given.value(to[1])}"
    return f"__tunesmith_copy_to({target}, (const void *){given.value(source[1])}, {nbytes}, {zeros})"


def _emit_shuffle(opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    way = _SHUFFLES[opcode.split(".")[2]]
    if given.value(words[3]) not in (("0",) if way == "up" else ("31", "0x1f")):  # else another segment
        raise UnknownInstruction(words[3])
    mask = f"(unsigned){given.value(words[4])}"
    call = f"__shfl{'_' if way else ''}{way}_sync"
    return f"{given.value(words[0])} = {call}({mask}, {given.value(words[1])}, {given.value(words[2])})"


def _emit_bulk_copy(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
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


def _emit_arrive(_opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    """One that keeps no token: waits are by phase."""
    token, place = words
    at = _PLACE.fullmatch(place)
    if token != "_" or at is None or at[2]:
        raise UnknownInstruction(token)
    return f"__tunesmith_expect({given.value(at[1])}, 0)"


def _emit_compare(opcode: str, words: Sequence[str], given: _AsmOperands) -> str:
    _, how, kind = opcode.split(".")
    a, b = (f"({_PTX_TYPES[kind]}){given.value(word)}" for word in words[1:])
    return f"{given.value(words[0])} = {a} {_COMPARED[how]} {b}"


# How each begins -> a function, or the C++ with its operands in the places that have their numbers.
_KNOWN: tuple[tuple[str, Callable[[str, Sequence[str], _AsmOperands], str] | str], ...] = (
    (r"fence\.proxy\.async", "__tunesmith_fence_copies()"),
    # Launches and blocks are run one after the other, and every thread sees at once what another wrote.
    (r"griddepcontrol\.|prefetch|fence\.(?:proxy|mbarrier_init)\b|nanosleep", "(void)0"),
    (r"fence\.|membar\.", "__tunesmith_fence()"),
    (r"mov\.[usbf](?:16|32|64)$", "__tunesmith::put({0}, {1})"),
    (r"ld\.(?:(?:volatile|relaxed|weak)\.)?(?:global|shared)", _emit_load),
    (r"st\.(?:(?:volatile|relaxed|weak)\.)?(?:global|shared)", _emit_store),
    (r"cp\.async\.c[ag]\.shared(?:::cta)?\.global", _emit_copy),
    (r"cp\.async\.commit_group$", "__tunesmith_commit()"),
    (r"cp\.async\.wait_all$", "__tunesmith_finish(-1)"),
    (r"cp\.async\.wait_group$", "__tunesmith_finish({0})"),
    (r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier", _emit_bulk_copy),
    (r"mbarrier\.init\.", _at_barrier("__tunesmith_make_arrival({0}, {1})")),
    (r"mbarrier\.arrive\.expect_tx\.", _at_barrier("__tunesmith_expect({0}, {1})")),
    (r"mbarrier\.arrive\.(?:release\.cta\.)?shared(?:::cta)?\.b64$", _emit_arrive),
    (
        r"bar(?:rier)?(?:\.cta)?\.sync(?:\.aligned)?$",
        lambda _o, w, g: f"__tunesmith_barrier({g.value(w[0])}, {g.value(w[1]) if w[1:] else 0})",
    ),
    (r"bar(?:rier)?(?:\.cta)?\.arrive(?:\.aligned)?$", "__tunesmith_arrive({0}, {1})"),
    (r"bar\.warp\.sync$", "__syncwarp((unsigned){0})"),
    (r"shfl\.sync\.(?:bfly|down|up|idx)\.b32$", _emit_shuffle),
    (r"activemask\.b32$", "{0} = __activemask()"),
    (r"setp\.\w+\.\w+$", _emit_compare),
    (r"selp\.\w+$", "{0} = {3} ? {1} : {2}"),
    (r"trap$", "__trap()"),
    (r"fma\.rn(?:\.ftz)?\.f32$", "{0} = fmaf({1}, {2}, {3})"),
)


# Casts to integers as a GPU makes them: what an integer cannot hold is clamped, what is no number is zero.
#
# Only casts whose operand and type can be read from the text become calls; the compiler knows the operand's
# type, and leaves all but floats as they are.
CAST = "__tunesmith_cast"
_TYPE = (
    r"(?:std::)?(?:"
    r"unsigned\s+long\s+long(?:\s+int)?|long\s+long(?:\s+int)?|unsigned\s+long|unsigned\s+short|unsigned\s+char"
    r"|unsigned\s+int|signed\s+char|signed\s+int|unsigned|signed|int|short|char|long"
    r"|u?int(?:8|16|32|64)_t|size_t|ptrdiff_t|uint|uchar|ushort|ulong)"
)
_STATIC_CAST = re.compile(
    rf"\bstatic_cast(?=\s*<\s*(?:const\s+)?(?:{_TYPE}|(?!void\b|bool\b|auto\b)[A-Za-z_]\w*)\s*>\s*\()"
)
_PLAIN_CAST = re.compile(rf"\(\s*(?:const\s+)?({_TYPE})\s*\)")
_CALLED = re.compile(r"(?<![\w:.>])(int|unsigned|short|char|long|size_t|u?int(?:8|16|32|64)_t|uint)(?=\()")
# Other types, so that one cast before another is seen to be one.
_ALSO = re.compile(rf"\(\s*(?:const\s+)?(?:{_TYPE}|float|double|half|__half|__nv_bfloat16|bool)\s*\)")
_BEFORE = ("return", "case", "else")
_NAME = re.compile(r"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
_NUMBER = re.compile(r"\.?\d(?:[eEpP][+-]|[\w.'])*")
_ARGUMENTS = re.compile(r"<[^<>;(){}]*(?:<[^<>;(){}]*>[^<>;(){}]*)*>\s*(?=\(|::)")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?!\w|\()", re.MULTILINE)
_CLOSING = {"(": ")", "[": "]"}


def clamping_changes(plain: str) -> Iterator[tuple[int, int, str]]:
    """Changes of a source, whose comments and strings are blank in `plain`."""
    macros = frozenset(_DEFINED.findall(plain))
    directives = [found.span() for found in _DIRECTIVE.finditer(plain)]
    for found in _STATIC_CAST.finditer(plain):
        yield found.start(), found.end(), CAST
    for found in _CALLED.finditer(plain):
        if _may_be_called(plain, found.start(), found.end()):
            yield found.start(), found.end(), f"{CAST}<{found[1]}>"
    for found in _PLAIN_CAST.finditer(plain):
        if not _may_be_cast(plain, found.start()):
            continue
        start = _skip_blanks(plain, found.end())
        end = _operand_end(plain, start)
        # A macro or its parameter may stand for more than a cast would take.
        word = _NAME.fullmatch(plain, start, end) if end else None
        is_directive = any(a <= found.start() < b for a, b in directives)
        if not end or (word is not None and (is_directive or word[0] in macros)):
            continue
        if _NUMBER.fullmatch(plain, start, end):
            continue
        yield found.start(), found.end(), f"{CAST}<{found[1]}>("
        yield end, end, ")"


def _skip_blanks(plain: str, at: int) -> int:
    while at < len(plain) and plain[at].isspace():
        at += 1
    return at


def _may_be_cast(plain: str, start: int) -> bool:
    """Whether no name or bracket stands before it that makes it something else."""
    before = plain[:start].rstrip()[-60:]
    if not before:
        return False
    if word := re.search(r"\w+$", before):
        return word[0] in _BEFORE
    if before.endswith(")"):
        last = list(_ALSO.finditer(before))
        return bool(last) and last[-1].end() == len(before) and _may_be_cast(before, last[-1].start())
    return before[-1] not in "]>" or before[-2:] in (">=", ">>")


def _may_be_called(plain: str, start: int, bracket: int) -> bool:
    before, inside = plain[:start].rstrip()[-20:], plain[_skip_blanks(plain, bracket + 1) :][:1]
    after_word = re.search(r"\w+$", before)
    if after_word:
        return after_word[0] in _BEFORE
    return before[-1:] in tuple("=+-*/%?:[(,&|") and inside not in ("*", "&", ")", "")


def _matching_bracket(plain: str, at: int, opens: str = "([{", closes: str = ")]}", ends: str = "") -> int:
    """Behind the bracket that closes the one there; 0 where none does, or one of `ends` comes before it."""
    depth = 0
    for place in range(at, len(plain)):
        depth += (plain[place] in opens) - (plain[place] in closes)
        if depth == 0:
            return place + 1
        if plain[place] in ends:
            return 0
    return 0


def _operand_end(plain: str, at: int) -> int:
    """Behind what a cast there takes; 0 where that cannot be read."""
    while at < len(plain):  # what stands before an operand
        at = _skip_blanks(plain, at)
        cast = _ALSO.match(plain, at)
        if cast is not None:
            at = cast.end()
        elif plain[at : at + 1] in tuple("-+!~*&"):
            at += 1
        else:
            break
    if plain[at : at + 1] == "(":
        at = _matching_bracket(plain, at, ends=";")
        if at and re.match(r"\s*[A-Za-z_0-9({]", plain[at : at + 40]):
            return 0  # it was a type, or what we cannot read
    elif number := _NUMBER.match(plain, at):
        return number.end()
    elif name := _NAME.match(plain, at):
        at = name.end()
    else:
        return 0
    while at:
        after = _skip_blanks(plain, at)
        sign = plain[after : after + 1]
        if sign in _CLOSING and sign:
            at = _matching_bracket(plain, after, ends=";")
        elif arguments := _ARGUMENTS.match(plain, after):
            at = arguments.end()
        elif member := re.compile(r"(?:\.|->|::)\s*(?:template\s+)?[A-Za-z_]\w*").match(plain, after):
            at = member.end()
        elif plain[after : after + 2] in ("++", "--"):
            at = after + 2
        elif sign in ("{", ""):
            return 0
        else:
            return at
    return 0


ELSEWHERE = "write it in C++, or check this kernel where a GPU is"
_ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\b")
_ALIGNED = r"(?:__align__|alignas|__attribute__)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_DYNAMIC = re.compile(
    rf"\bextern\s+(?:{_ALIGNED}\s*)?__shared__\s+((?:{_ALIGNED}|[\w:<>,\s])*?)(\w+)\s*(?:{_ALIGNED}\s*)?"
    r"\[\s*\]((?:\s*\[[^\]]*\])*)\s*;"
)
_ALIGNAS = re.compile(r"(?<=\b__shared__)(\s+)alignas\s*(\((?:[^()]|\([^()]*\))*\))")
_STATIC_SHARED = re.compile(r"\bstatic\s+(?=__shared__\b)")
_DEPENDENT = re.compile(r">\s*::\s*(?=(?!template\b)\w+<[^<>;{}()]*>\s*\()")
# What would be built, and would not mean what it means on a GPU.
_UNKNOWN = {
    r"\bnvcuda\b|\bwmma\s*::": "tensor cores",
    r"\bcudaLaunchKernelEx\b|<<<": "launches from the device",
    r"\bthis_cluster\b|\bcluster_group\b|\bcluster\.sync\b": "clusters",
    r"\btex[123]D\w*\s*[<(]|\bcudaTextureObject_t\b": "textures",
}


def host_text(text: str, path: str) -> str:
    """BuildFailed where it has what is not known here."""
    plain = blank_elements(text, ("comment", "string"))
    for pattern, what in _UNKNOWN.items():
        if found := re.search(pattern, plain):
            raise port.BuildFailed(f"{path}:{_line_number(text, found.start())}: {unknown_message(what)}")
    text = _apply_changes(text, clamping_changes(plain))
    plain = blank_elements(text, ("comment", "string"))
    every = _dynamic_shared_changes(plain), _assembly_changes(text, plain, path), _spelt_otherwise(plain)
    return _apply_changes(text, chain.from_iterable(every))


def _apply_changes(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Line ends of what is replaced stay, so that lines keep their numbers."""
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + "".join(re.findall(r"\\?\n", text[start:end])) + text[end:]
    return text


def unknown_message(what: str) -> str:
    """In the words by which others know that the kernel is not to blame."""
    return f"the cpu device does not know {what}: {ELSEWHERE}"


def _line_number(text: str, place: int) -> int:
    """As `#line` counts it."""
    before = text[:place]
    markers = list(re.finditer(r"^[ \t]*#[ \t]*line[ \t]+(\d+)[^\n]*\n", before, re.MULTILINE))
    if not markers:
        return before.count("\n") + 1
    return before.count("\n", markers[-1].end()) + int(markers[-1][1])


def _dynamic_shared_changes(plain: str) -> Iterator[tuple[int, int, str]]:
    for found in _DYNAMIC.finditer(plain):
        kind = re.sub(_ALIGNED, " ", found[1]).strip()
        depth = plain.count("{", 0, found.start()) - plain.count("}", 0, found.start())
        more = found[3].strip()
        pointer = f"{kind} (*{{}}){more}" if more else f"{kind} *{{}}"
        cast = f"({pointer.format('')})__tunesmith_dynamic()"
        name = found[2]
        if depth > 0 and not _in_namespace(plain, found.start()):
            yield found.start(), found.end(), f"{pointer.format(name)} = {cast};"
        else:  # it has its place only when a block runs
            type = f"__tunesmith_type_{name}"
            made = f"static struct {{ operator {type}() const {{ return {cast}; }} }} {name};"
            yield found.start(), found.end(), f"typedef {pointer.format(type)};{made}"


def _spelt_otherwise(plain: str) -> Iterator[tuple[int, int, str]]:
    """What NVIDIA's compilers take and others do not."""
    for found in _STATIC_SHARED.finditer(plain):
        yield found.start(), found.end(), ""
    dynamic = [found.span() for found in _DYNAMIC.finditer(plain)]
    for found in _ALIGNAS.finditer(plain):  # __shared__ stands for words that may not come before it
        if any(start <= found.start() < end for start, end in dynamic):
            continue
        yield found.start(1), found.end(), f" __attribute__((aligned{found[2]}))"
    for found in _DEPENDENT.finditer(plain):
        yield found.end(), found.end(), "template "


def _in_namespace(plain: str, place: int) -> bool:
    """Whether only braces of namespaces are open there."""
    opened: list[bool] = []
    for found in re.finditer(r"(\bnamespace\b[\s\w:]*|\bextern\s*\"\s*\"\s*)?\{|\}", plain[:place]):
        if found[0] == "}":
            if opened:
                opened.pop()
        else:
            opened.append(found[1] is not None)
    return all(opened)


def _assembly_changes(text: str, plain: str, path: str) -> Iterator[tuple[int, int, str]]:
    for found in _ASSEMBLY.finditer(plain):
        opened = plain.find("(", found.end())
        end = _matching_bracket(plain, opened, "(", ")") or len(plain)
        statement = re.sub(r"\\\n", " ", text[found.start() : end])
        try:
            template, outputs, inputs, *_ = (*sections_of(statement), "", "")
            code = as_code(template, outputs, inputs)
        except (NotAssembly, UnknownInstruction) as error:
            words = unknown_message(f"the instruction {str(error)!r}")
            raise port.BuildFailed(f"{path}:{_line_number(text, found.start())}: {words}") from error
        yield found.start(), end, f"do {{ {code} }} while (0)"


ENTRIES = """
#line 1 "the entries"
namespace __tunesmith {{
struct __Entry {{ const char *__name; int __count; const unsigned *__sizes; void (*__call)(void **); }};
template <size_t... __I> struct __Places {{}};
template <size_t __N, size_t... __I> struct __Counted : __Counted<__N - 1, __N - 1, __I...> {{}};
template <size_t... __I> struct __Counted<0, __I...> {{ typedef __Places<__I...> __type; }};
template <typename __T> struct __Value {{ typedef __T __type; }};
template <typename __T> struct __Value<__T &> {{ typedef __T __type; }};
template <auto __F> struct __Called;
template <typename... __A, void (*__F)(__A...)> struct __Called<__F> {{
    static constexpr int __count = sizeof...(__A);
    static constexpr unsigned __sizes[__count + 1] = {{(unsigned)sizeof(__A)..., 0}};
    template <size_t... __I> TUNESMITH_UNWATCHED static void __go(void **__given, __Places<__I...>)
    {{
        __F(*(typename __Value<__A>::__type *)__given[__I]...);
    }}
    static void __call(void **__given) {{ __go(__given, typename __Counted<sizeof...(__A)>::__type()); }}
}};
}}
extern "C" __attribute__((visibility("default"))) const __tunesmith::__Entry __tunesmith_entries[] = {{
{entries}    {{nullptr, 0, nullptr, nullptr}}
}};
"""


def with_entries(text: str, entries: Sequence[str]) -> str:
    """A source with a table behind it of the kernels that are launched."""
    called = [(entry, f"__tunesmith::__Called<({entry})>") for entry in entries]
    lines = (f'    {{"{e}", {c}::__count, {c}::__sizes, {c}::__call}},\n' for e, c in called)
    return f"{text}\n{ENTRIES.format(entries=''.join(lines))}"


# Conversions of floats to integers that a text does not spell: the compiler tells where they are, and
# each becomes a call that converts as a GPU does.
#
# All of it is about a preprocessed text, in which macros are gone. In a template, where one conversion may be
# to several types, the call finds out its own.
WARNING = "-Wfloat-conversion"
TOLD = f"[{WARNING}]"
# How a compiler is asked for the whole range of each.
GNU_RANGES, CLANG_RANGES = ("-fdiagnostics-format=json",), ("-fdiagnostics-print-source-range-info",)
CALL, OPEN, LIKE = "__tunesmith_implied", "__tunesmith_implied_to", "__tunesmith::Like"
_MARKER = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*)".*$', re.MULTILINE)
_FROM = ("float", "double")
_TO = frozenset(("const", "volatile", "unsigned", "signed", "char", "short", "int", "long"))
_AKA = r"'([^']*)'(?: [({]aka '([^']*)'[)}])?"
_CONVERSION = re.compile(rf"{_AKA} to {_AKA}")
_CLANG = re.compile(
    r"^[^\n:]*:(\d+):(\d+):\{(\d+):(\d+)-(\d+):(\d+)\}[^ ]*: warning: (implicit conversion turns [^\n]*)",
    re.MULTILINE,
)
_COMPOUND = re.compile(r"(?<![+\-*/%&|^<>=!])([+\-*/])=(?!=)")
_DEPTH = {")": 1, "]": 1, "(": -1, "[": -1}  # read from behind
_FAR = 2000  # characters
# What may stand before a statement without a `;` between them; the group is followed by a condition.
_HEAD = re.compile(r"\s*(?:#[^\n]*\n|(?:else|do|return)\b|(if|for|while)\b\s*(?:constexpr\b\s*)?(?=\())\s*")
_WORD = re.compile(r"[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.'])*")


@dataclass(frozen=True)
class Conversion:
    """Of what stands in [start, end) of a text; `caret` is where the compiler points."""

    start: int
    end: int
    caret: int
    source: str
    target: str
    is_generic: bool  # in a template


def users_lines(text: str) -> list[bool]:
    """Of a preprocessed text, by line: whether it is the kernel's own, and not of a header of ours."""
    found, own = [], False
    for line in text.split("\n"):
        if marker := _MARKER.match(line):
            file = marker[1]
            own = not file.startswith(("/", "<", "headers/")) and "tunesmith_" not in file
            found.append(False)
        else:
            found.append(own)
    return found


def strip_markers(text: str) -> str:
    """With places that compilers count as we do: nothing is said of other files, a character is a column."""
    plain = re.sub(r"[^\x00-\x7f]", "_", text.replace("\t", " "))
    return _MARKER.sub("", plain)


def read_conversions(text: str, log: str) -> tuple[Conversion, ...]:
    """What a compiler told of a text that was `unmarked`."""
    lines, starts = users_lines(text), [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    generic = _template_spans(_plain_code(text))
    found = dict[tuple[int, int], Conversion]()
    for caret, start, finish, words in (*_read_gnu_log(log), *_read_clang_log(log)):
        types, places = _CONVERSION.search(words), (caret, start, finish)
        if types is None or not all(0 < place[0] <= len(lines) for place in places):
            continue
        source, target = (types[2] or types[1]).removeprefix("const "), types[4] or types[3]
        if source not in _FROM or not set(target.split()) <= _TO or not lines[start[0] - 1]:
            continue
        at, first, last = (starts[line - 1] + column - 1 for line, column in places)
        word = _WORD.match(text, last) if last == at else None  # the caret alone: it points to a whole word
        is_generic = any(begin < first < end for begin, end in generic)
        one = Conversion(first, word.end() if word else last + 1, at, source, target, is_generic)
        found[one.start, one.end] = one
    return tuple(found.values())


_Place = tuple[int, int]


def _read_gnu_log(log: str) -> Iterator[tuple[_Place, _Place, _Place, str]]:
    """A line of JSON; what is none is somebody else's."""
    for line in log.splitlines():
        try:
            told = json.loads(line) if line.startswith("[") else []
            wanted = [one for one in told if one.get("option") == WARNING]
            for message, where in ((one["message"], where) for one in wanted for where in one["locations"]):
                ends = (where.get(name, where["caret"]) for name in ("caret", "start", "finish"))
                caret, start, finish = ((int(end["line"]), int(end["byte-column"])) for end in ends)
                yield caret, start, finish, str(message)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _read_clang_log(log: str) -> Iterator[tuple[_Place, _Place, _Place, str]]:
    for found in _CLANG.finditer(log):
        at = [int(found[number]) for number in range(1, 7)]
        yield (at[0], at[1]), (at[2], at[3]), (at[4], at[5] - 1), found[7]


def wrap_conversions(text: str, told: Sequence[Conversion]) -> str:
    """The text with a call at each; those that cannot be read stay as they are."""
    plain = _plain_code(text)
    changes = [change for one in told for change in _conversion_changes(plain, one)]
    for place, _, end, new in sorted(changes, reverse=True):
        text = text[:place] + new + text[end:]
    return text


def _plain_code(text: str) -> str:
    """The code alone; every place stays what it is."""
    return _MARKER.sub(lambda found: " " * len(found[0]), blank_elements(text, ("comment", "string")))


_Change = tuple[int, int, int, str]  # where, which comes first there, up to where, what
_CLOSES = -(1 << 40)  # what closes stands before what opens at the same place


def _conversion_changes(plain: str, one: Conversion) -> Iterator[_Change]:
    """Of those that begin at one place the longest comes first, and of those that end at one the shortest."""
    sign = _sign_of(plain, one)
    is_bare = one.caret == one.start == one.end - 1 and not _WORD.match(plain, one.start)
    left = _left_of(plain, sign.start() if sign else _find_assignment(plain, one.start))
    if (is_bare and sign is None) or (sign is not None and not left):
        return
    if one.is_generic and not left:
        call, closed = f"{OPEN}(", ")"
    elif one.is_generic or sign is not None:
        call, closed = f"{CALL}<{LIKE}<decltype({left})>>(", ")"
    else:
        call, closed = f"{CALL}<{one.target}>(({one.source})(", "))"
    if sign is None:
        yield one.start, -one.end, one.start, call
        yield one.end, _CLOSES - one.start, one.end, closed
    else:
        yield sign.start(), -one.end, sign.end(), f"= {call}{left} {sign[1]} ("
        yield one.end, _CLOSES - sign.end(), one.end, f"){closed}"


def _sign_of(plain: str, one: Conversion) -> re.Match[str] | None:
    """The `+=` or its like, where its result is converted. Some compilers point to what stands last in it."""
    if (at := _COMPOUND.match(plain, one.caret)) or one.caret != one.start:
        return at
    depth = 0
    for place in range(one.end - 1, max(-1, one.end - _FAR), -1):
        depth += _DEPTH.get(plain[place], 0)
        if depth < 0 or (depth == 0 and plain[place] in ";{}?:,"):
            return None
        if depth == 0 and plain[place] == "=":
            return _COMPOUND.match(plain, place - 1)
    return None


def _find_assignment(plain: str, start: int) -> int:
    """Where the sign of the assignment stands whose right side begins there; -1: it is none."""
    before = plain[max(0, start - _FAR) : start].rstrip()
    is_sign = before.endswith("=") and before[-2:-1] not in tuple("=!<>+-*/%&|^")
    return start - len(plain[max(0, start - _FAR) : start]) + len(before) - 1 if is_sign else -1


def _left_of(plain: str, sign: int) -> str:
    """What is assigned to, where naming it twice does no harm; empty where it is declared there."""
    depth = 0
    place = sign
    while place > max(0, sign - _FAR):
        depth += _DEPTH.get(plain[place - 1], 0)
        if depth < 0 or (depth == 0 and plain[place - 1] in ";{},?:=&|!"):
            break
        place -= 1
    left = _without_heads(plain[place:sign]) if sign >= 0 else ""
    inside = left
    while inside != (inside := re.sub(r"\[[^\[\]]*\]", "", inside)):
        pass
    is_plain = re.fullmatch(r"\**[A-Za-z_]\w*(?:\s*(?:\.|->)\s*\w+)*\s*", inside) is not None
    return left if is_plain and not re.search(r"\+\+|--|=|\w\s*\(|[{};]", left) else ""


def _without_heads(text: str) -> str:
    """What stands behind `if (…)`, `for (…)`, `while (…)`, `else`, `do`, `return` and a pragma."""
    while head := _HEAD.match(text):
        text = text[head.end() :]
        depth = end = 0
        while head[1] and end < len(text) and (depth or not end):
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        text = text[end:]
    return text.strip()


def _template_spans(plain: str) -> list[tuple[int, int]]:
    """Where types may be those of a template, or of a lambda that takes anything."""
    found, open_ones, last = list[tuple[int, int]](), list[tuple[int, bool]](), 0
    for sign in re.finditer(r"[{};]", plain):
        if sign[0] == "{":
            head = plain[last : sign.start()]
            is_one = "template" in head or "auto" in head
            is_one = is_one and re.search(r"\btemplate\b|\bauto\b(?=[^()]*[,)&])", head) is not None
            open_ones.append((sign.start(), is_one))
        elif sign[0] == "}" and open_ones:
            start, is_one = open_ones.pop()
            if is_one:
                found.append((start, sign.end()))
        last = sign.end()
    return found
