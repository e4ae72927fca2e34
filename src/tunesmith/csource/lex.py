"""A source as words: comments gone, directives whole, every word with the line it stands on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "number", "string", "mark", "directive"]

_LEX = re.compile(
    r"""
      (?P<space>(?:[ \t\f\v\r\n]|\\\r?\n)+)
    | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)"
                |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
    | (?P<word>[^\W\d]\w*)
    | (?P<number>\.?\d(?:'(?=\w)|[eEpP][+-]|[\w.])*)
    | (?P<mark><<<|<<=|>>=|\.\.\.|->\*?|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#|[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"[ \t]*(?://(?:\\\r?\n|[^\n])*|/\*.*?\*/|\\\r?\n|[^\n])*", re.DOTALL)
_HEX_EXPONENT = re.compile(r"0[xX][^pP]*[eE][+-]")


@dataclass(frozen=True, slots=True)
class Token:
    """`space`: the blanks before it on its line. A directive's text is the whole of it after the #."""

    kind: Kind
    text: str
    line: int
    space: str = ""


def lex(text: str, line: int = 1) -> list[Token]:
    found: list[Token] = []
    position, space, fresh = 0, "", True  # fresh: nothing but blanks on this line so far
    while position < len(text):
        match = _LEX.match(text, position)
        if match is None:  # not possible: the last alternative takes anything
            break
        whole, kind = match.group(), match.lastgroup
        if kind in ("space", "comment"):
            if "\n" in whole:
                fresh, space = True, whole.rpartition("\n")[2] if kind == "space" else ""
            else:
                space += whole if kind == "space" else " "
        elif whole == "#" and fresh:
            directive = _DIRECTIVE.match(text, position + 1)
            whole = text[position : directive.end() if directive else position + 1]
            found.append(Token("directive", _plain_directive(whole[1:]), line, space))
            space = ""
        else:
            if kind == "number" and _HEX_EXPONENT.match(whole):  # 0xe+1 is a sum
                whole = re.split(r"(?<=[eE])(?=[+-])", whole)[0]
            found.append(Token(_KINDS[kind or "mark"], whole, line, space))
            fresh, space = False, ""
        line += whole.count("\n")
        position += len(whole)
    return found


_KINDS: dict[str, Kind] = {
    "string": "string", "delimiter": "string", "word": "word", "number": "number", "mark": "mark",
}  # fmt: skip


def _plain_directive(text: str) -> str:
    text = re.sub(r"\\\r?\n", " ", text)
    return re.sub(r"/\*.*?\*/|//.*", " ", text, flags=re.DOTALL).strip()


def layout(tokens: Iterable[Token], first_line: int | None = None) -> str:
    """The words as text, each on its own line number counted from `first_line` (or the first word's)."""
    pieces: list[str] = []
    line = first_line
    previous: Token | None = None
    for token in tokens:
        line = token.line if line is None else line
        breaks = max(token.line - line, 0)
        if token.kind == "directive":
            pieces.append("\n" * max(breaks, 1 if pieces else 0) + f"#{token.text}\n")
            line = max(token.line, line) + 1
        else:
            space = token.space
            if not breaks and not space and previous is not None and _would_join(previous, token):
                space = " "
            pieces.append("\n" * breaks + space + token.text)
            line = max(token.line, line) + token.text.count("\n")
        previous = token
    return "".join(pieces)


def squeeze(tokens: Sequence[Token]) -> str:
    """One line in the usual spacing: for types and template arguments."""
    text = ""
    for at, token in enumerate(tokens):
        previous = tokens[at - 1] if at else None
        gap = previous is not None and (
            previous.text == ","
            or (_is_wordlike(previous) and (_is_wordlike(token) or token.text in ("*", "&")))
            or (token.space != "" and token.text not in (",", ">", ")") and previous.text not in "<(")
        )
        text += (" " if gap else "") + token.text
    return text


def _is_wordlike(token: Token) -> bool:
    return token.kind in ("word", "number", "string")


def _would_join(left: Token, right: Token) -> bool:
    if _is_wordlike(left) and _is_wordlike(right):
        return True
    if left.kind == "mark" and right.kind == "mark":
        match = _LEX.match(left.text + right.text)
        return match is not None and match.end() > len(left.text)
    return False


_INTEGER_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)")
_FLOAT_LITERAL = re.compile(r"(\d*\.\d+(?:[eE][+-]?\d+)?|\d+\.?(?:[eE][+-]?\d+)?)(f16|bf16|[fFlLhH]?)")
_HEX_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)([fFlLhH]?)")
_CHARACTERS = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34}
_MAX_LITERAL = 400


def read_number(text: str) -> int | float | None:
    """The value of a numeric, character or boolean literal; None where it is none that is known."""
    text = text.replace("'", "") if text[:1].isdigit() else text
    if len(text) > _MAX_LITERAL:
        return None
    if text in ("true", "false"):
        return int(text == "true")
    integer = _INTEGER_LITERAL.fullmatch(text)
    if integer:
        digits = integer[1]
        if digits[:2] in ("0x", "0X", "0b", "0B"):
            return int(digits, 0)
        if digits.startswith("0") and len(digits) > 1:
            return int(digits, 8) if not set(digits) & set("89") else None
        return int(digits)
    real = _FLOAT_LITERAL.fullmatch(text)
    if real:
        return float(real[1])
    hexadecimal = _HEX_LITERAL.fullmatch(text)
    if hexadecimal:
        return float.fromhex(hexadecimal[1])
    if len(text) == 3 and text[0] == text[2] == "'":
        return ord(text[1])
    if len(text) == 4 and text[:2] == "'\\" and text[3] == "'":
        return _CHARACTERS.get(text[2])
    return None


def is_unsigned(text: str) -> bool:
    """Whether a literal is of an unsigned type: by its suffix, or a hexadecimal too large for int."""
    match = _INTEGER_LITERAL.fullmatch(text.replace("'", ""))
    if match is None:
        return False
    value = read_number(text)
    wide = "l" in match[2].lower()
    return "u" in match[2].lower() or (
        isinstance(value, int) and match[1][:2] in ("0x", "0X") and not wide and 2**31 <= value < 2**32
    )
