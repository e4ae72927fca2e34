"""A source with comments, string contents, directives and foreign qualifiers turned into spaces.

Every blanked text has the length and the line breaks of the original, so positions and line numbers agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tunesmith.csource.nodes import Language

_LEX = re.compile(
    r"""
      (?P<directive>^[ \t]*\#(?://(?:\\\r?\n|[^\n])*|/\*.*?\*/|\\\r?\n|[^\n])*)
    | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)")
    | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
    | (?P<word>[^\W\d]\w*|\.?\d(?:'(?=\w)|[eEpP][+-]|[\w.])*)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)", re.DOTALL)
_DEFINE = re.compile(r"([^\W\d]\w*)(?:\(([^)]*)\))?\s*(.*)", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w*")

# tree-sitter's C grammar knows none of the OpenCL words; its CUDA grammar only some of the CUDA ones.
_OPENCL_WORDS = frozenset({
    "__kernel", "kernel", "__global", "global", "__local", "local", "__constant", "constant",
    "__private", "private", "__generic", "__read_only", "read_only", "__write_only", "write_only",
    "__read_write", "read_write",
})  # fmt: skip
_CUDA_WORDS = frozenset({
    "__global__", "__device__", "__host__", "__shared__", "__constant__", "__managed__",
    "__forceinline__", "__noinline__", "__inline__", "__grid_constant__",
})  # fmt: skip
ATTRIBUTES = frozenset({
    "__attribute__", "__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__block_size__",
    "__declspec",
})  # fmt: skip


@dataclass(frozen=True)
class Macro:
    name: str
    parameters: tuple[str, ...] | None  # None: an object-like macro
    body: str


@dataclass(frozen=True)
class Mark:
    """A place where conditional compilation opens, turns to another branch, or closes."""

    offset: int
    kind: Literal["#if", "#else", "#endif"]


@dataclass(frozen=True)
class Blanked:
    plain: str  # without comments, string contents, directives and `#if 0` text
    code: str  # additionally without the qualifiers a grammar would trip over
    macros: tuple[Macro, ...]
    marks: tuple[Mark, ...]

    def plain_macros(self) -> dict[str, str]:
        """Object-like macros with one meaning in the whole file."""
        return _single_meanings(self.macros)


def blank(text: str, language: Language) -> Blanked:
    pieces: list[str] = []
    conditions = _Conditions()
    macros: list[Macro] = []
    done = 0
    for match in _LEX.finditer(text):
        kind = match.lastgroup if match.lastgroup != "delimiter" else "raw"
        if kind == "word":
            continue
        between = text[done : match.start()]
        pieces.append(_spaces(between) if conditions.off else between)
        found = match.group()
        done = match.end()
        if kind == "string" and not conditions.off:
            pieces.append(found[0] + _spaces(found[1:-1]) + found[-1])
            continue
        pieces.append(_spaces(found))
        if kind == "directive":
            macro = _read_directive(found, match.start(), conditions)
            if macro is not None:
                macros.append(macro)
    pieces.append(_spaces(text[done:]) if conditions.off else text[done:])
    plain = "".join(pieces)
    code = _without_qualifiers(plain, _single_meanings(macros), language)
    return Blanked(plain, code, tuple(macros), tuple(conditions.marks))


def _single_meanings(macros: Iterable[Macro]) -> dict[str, str]:
    bodies: dict[str, set[str | None]] = {}
    for macro in macros:
        bodies.setdefault(macro.name, set()).add(None if macro.parameters is not None else macro.body)
    unique = {name: next(iter(found)) for name, found in bodies.items() if len(found) == 1}
    return {name: body for name, body in unique.items() if body is not None}


class _Conditions:
    """Follows #if ... #endif: text under a literal 0 is off, other branches leave marks."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self._frames: list[Literal["zero", "one", "maybe", "off"]] = []

    @property
    def off(self) -> bool:
        """What is opened inside of text that is off is off itself, and stays so: the last frame tells."""
        return bool(self._frames) and self._frames[-1] in ("zero", "off")

    def read(self, word: str, rest: str, offset: int) -> None:
        if word in ("if", "ifdef", "ifndef"):
            if self.off:
                self._frames.append("off")
            elif word == "if" and rest in ("0", "1"):
                self._frames.append("zero" if rest == "0" else "one")
            else:
                self._frames.append("maybe")
                self.marks.append(Mark(offset, "#if"))
        elif word in ("else", "elif", "elifdef", "elifndef") and self._frames:
            frame = self._frames[-1]
            if frame == "maybe":
                self.marks.append(Mark(offset, "#else"))
            elif frame == "one":
                self._frames[-1] = "off"
            elif frame == "zero":
                self._frames[-1] = "one" if word == "else" else "maybe"
                if word != "else":
                    self.marks.append(Mark(offset, "#if"))
        elif word == "endif" and self._frames and self._frames.pop() == "maybe":
            self.marks.append(Mark(offset, "#endif"))


def _read_directive(found: str, offset: int, conditions: _Conditions) -> Macro | None:
    joined = re.sub(r"\\\r?\n", " ", found)
    joined = re.sub(r"/\*.*?\*/", " ", joined, flags=re.DOTALL)
    match = _DIRECTIVE.match(joined.split("//")[0])
    if match is None:
        return None
    word, rest = match[1], match[2].strip()
    if word != "define":
        conditions.read(word, rest, offset)
        return None
    define = _DEFINE.match(rest)
    if define is None or conditions.off:
        return None
    # "#define F (x)" is object-like: only a parenthesis that touches the name opens parameters.
    parameters = None if define[2] is None else tuple(p.strip() for p in define[2].split(","))
    return Macro(define[1], parameters, define[3].strip())


def _without_qualifiers(plain: str, macros: dict[str, str], language: Language) -> str:
    words = _OPENCL_WORDS if language == "opencl" else _CUDA_WORDS
    words |= {
        name
        for name, body in macros.items()
        if body and all(word in words for word in body.split()) and _WORD.fullmatch(name)
    }
    pieces: list[str] = []
    done = 0
    for match in _WORD.finditer(plain):
        if match.start() < done:
            continue
        if match.group() in words:
            end = match.end()
        elif match.group() in ATTRIBUTES:
            end = _group_end(plain, match.end())
        else:
            continue
        pieces += (plain[done : match.start()], _spaces(plain[match.start() : end]))
        done = end
    pieces.append(plain[done:])
    return "".join(pieces)


def _group_end(text: str, start: int) -> int:
    """The end of the parenthesised group that begins at `start`, or `start` when there is none."""
    position = start
    while position < len(text) and text[position].isspace():
        position += 1
    depth = 0
    for end in range(position, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return end + 1 if end > position else start
    return start


def _spaces(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)
