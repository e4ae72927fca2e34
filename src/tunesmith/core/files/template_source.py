"""Find the declaration in a template's text, and the macros that its code defines and uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tunesmith.core.errors import BadInput
from tunesmith.csource.lex import blank, directives

_OPEN = re.compile(r"\s*//\s*///\s*tunesmith\s*")
_CLOSE = re.compile(r"\s*//\s*///\s*")
_COMMENT_LINE = re.compile(r"\s*// ?(.*)")
_EXAMPLE = 'open the file with "// /// tunesmith", then e.g. "// [params]", and close with "// ///"'

_DEFINE = re.compile(r"(\w+)(\(?)[ \t]*(.*)")
_INTEGER = re.compile(r"[(\s]*[-+]?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*[)\s]*")
_DEFINED = re.compile(r"\bdefined\s*(?:\w+|\(\s*\w+\s*\))")
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Block:
    toml: str
    line: int  # of the line that opens it


@dataclass(frozen=True)
class Define:
    """One `#define` of a macro without arguments."""

    name: str
    value: str
    line: int
    conditions: tuple[str, ...]  # of the #if, #ifdef and #ifndef around it, outermost first
    follows_ifndef: bool  # stands right under `#ifndef name`

    @property
    def is_guarded(self) -> bool:
        """Whether a definition made before the text can take its place."""
        return any(self.name in WORD.findall(condition) for condition in self.conditions)

    @property
    def is_default(self) -> bool:
        """`#ifndef X` / `#define X 1`; an include guard has no value."""
        return self.follows_ifndef and _INTEGER.fullmatch(self.value) is not None


def find_block(text: str, path: str) -> Block:
    """The TOML text between `// /// tunesmith` and `// ///`, with its comment signs off."""
    lines = text.replace("\r\n", "\n").split("\n")
    opens = [number for number, line in enumerate(lines, 1) if _OPEN.fullmatch(line)]
    if not opens:
        raise BadInput(
            "a template declares its parameters in a comment, there is none", hint=_EXAMPLE, where=path
        )
    if len(opens) > 1:
        raise BadInput(
            f"a template has one declaration, a second opens here and the first at line {opens[0]}",
            hint="join the two",
            where=f"{path}:{opens[1]}",
        )
    start = opens[0]
    inside: list[str] = []
    for line in lines[start:]:
        if _CLOSE.fullmatch(line):
            return Block("\n".join(inside), start)
        comment = _COMMENT_LINE.fullmatch(line)
        if comment is None:
            break
        inside.append(comment[1])
    raise BadInput(
        f"the declaration opened at line {start} is not closed before line {start + len(inside) + 1}",
        hint='end it with a line "// ///"; every line in between starts with //',
        where=f"{path}:{start}",
    )


def defines(code: str) -> Iterator[Define]:
    conditions: list[str] = []
    word, rest, before = "", "", 0  # the directive above, and where it ends
    for directive in directives(code):
        under_ifndef = word == "ifndef" and not code[before : directive.start].strip()
        name, (word, rest) = rest, directive[:2]
        before = directive.end
        if word in ("if", "ifdef", "ifndef"):
            conditions.append(rest)
        elif word == "elif" and conditions:
            conditions[-1] += f" {rest}"
        elif word == "endif" and conditions:
            conditions.pop()
        elif word == "define" and (found := _DEFINE.fullmatch(rest)) and not found[2]:
            under = under_ifndef and name == found[1]
            yield Define(found[1], found[3].strip(), directive.line, tuple(conditions), under)


def used_words(code: str) -> frozenset[str]:
    """Every identifier the code uses; to ask whether a macro is defined, or to define it, is no use of it."""
    words = set(WORD.findall(blank(code, ("directive",))))
    for word, rest, *_ in directives(code):
        if word == "define":
            words.update(WORD.findall(rest)[1:])
        elif word not in ("ifdef", "ifndef", "undef", "error", "warning"):
            words.update(WORD.findall(_DEFINED.sub("", rest)))
    return frozenset(words)
