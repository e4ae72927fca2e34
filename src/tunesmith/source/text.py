"""C text in large pieces: code, comments, strings, directives. Lines that go on are known here alone."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

_SPLICE = r"\\[ \t]*\r?\n"
_RAW = r"""(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)"|"""
WORD, NUMBER = r"[^\W\d]\w*", r"\.?\d(?:'(?=\w)|[eEpP][+-]|[\w.])*"


CPP = re.compile(  # what a text is made of, code in long pieces; its matches join: nothing is left out
    rf"""
      (?P<newline>\n)
    | (?P<space>(?:[ \t\f\v\r]|{_SPLICE})+)
    | (?P<comment>//(?:{_SPLICE}|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<string>{_RAW}"(?:\\(?:\r\n|.)|[^"\\\n])*"|'(?:\\(?:\r\n|.)|[^'\\\n])+')
    | (?P<code>(?:(?!(?:u8|[uUL])?R"){WORD}|{NUMBER}|[^\w"'/\#.\\\n]+|\.(?!\d))+|/=?|\#\#?|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_STRING = re.compile(r"(\\\r?\n)|[^\r\n]")
_NO_BREAK = re.compile(r"[^\r\n]")
_SPLICED = re.compile(_SPLICE)
MAX_TEXT = 500_000  # characters of a source


class Directive(NamedTuple):
    """`#word rest`, without comments and as one line; `start` and `end` are places in the text."""

    word: str
    rest: str
    line: int
    start: int
    end: int


_Element = tuple[str, int, int]  # its kind, where it starts and ends
_SHORT = 100_000  # of texts that are no longer, a few are remembered: each is asked several things in turn


def find_elements(text: str) -> Iterable[_Element]:
    """Everything there is, each directive whole."""
    return _scan_elements_cached(text) if len(text) <= _SHORT else _scan_elements(text)


@lru_cache(maxsize=32)
def _scan_elements_cached(text: str) -> tuple[_Element, ...]:
    return tuple(_scan_elements(text))


def _scan_elements(text: str) -> Iterator[_Element]:
    start, fresh = -1, True  # of the directive that is open; whether only blanks stand on this line so far
    for match in CPP.finditer(text):
        kind = match.lastgroup or "code"
        if kind == "newline":
            if start >= 0:
                yield "directive", start, match.start()
            start, fresh = -1, True
        elif start >= 0:
            continue
        elif fresh and kind == "code":
            if match.group() == "#":
                start = match.start()
                continue
            fresh = False
        elif kind == "string":
            fresh = False
        yield kind, match.start(), match.end()
    if start >= 0:
        yield "directive", start, len(text)


def find_directives(text: str) -> Iterator[Directive]:
    line, done = 1, 0
    for kind, start, end in find_elements(text):
        if kind == "directive":
            line, done = line + text.count("\n", done, start), start
            yield Directive(*first_word(join_directive_lines(text[start + 1 : end])), line, start, end)


def join_directive_lines(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match.lastgroup == "comment":
            return " "
        return _SPLICED.sub("", match.group()) if match.lastgroup == "space" else match.group()

    return CPP.sub(plain, text).strip() if "/" in text or "\\" in text else text.strip()


def first_word(text: str) -> tuple[str, str]:
    """Of a directive, and what follows it: `if(X)` is "if" and "(X)"."""
    found = re.match(r"\w*", text)
    end = found.end() if found else 0
    return text[:end], text[end:].strip()


def blank_elements(text: str, kinds: Container[str]) -> str:
    """The text with blanks for comments, directives or what is in strings; every place stays what it is."""
    pieces: list[str] = []
    done = 0
    plain = ((match.lastgroup or "", match.start(), match.end()) for match in CPP.finditer(text))
    for kind, start, end in find_elements(text) if "directive" in kinds else plain:
        if kind in kinds:
            whole = _blank_string(text[start:end]) if kind == "string" else blank_text(text[start:end])
            pieces += (text[done:start], whole)
            done = end
    return "".join([*pieces, text[done:]])


def _blank_string(text: str) -> str:
    """Its quotes stay, and what makes it go on in the next line."""
    first, last = text.index(text[-1]) + 1, len(text) - 1
    if "\n" in text and text[: first - 1].endswith("R"):
        first, last = text.index("(") + 1, text.rindex(")")
        return text[:first] + blank_text(text[first:last]) + text[last:]
    inner = _IN_STRING.sub(lambda found: found[1] or " ", text[first:last])
    return f"{blank_text(text[: first - 1])}{text[-1]}{inner}{text[-1]}"


def blank_text(text: str) -> str:
    return _NO_BREAK.sub(" ", text)


def without_comments(text: str) -> str:
    """The code alone, on the same lines; what stands in quotes is left as it is."""
    return _remembered_code(text) if len(text) <= _SHORT else _blank_comments(text)


@lru_cache(maxsize=32)
def _remembered_code(text: str) -> str:
    return _blank_comments(text)


def _blank_comments(text: str) -> str:
    return blank_elements(text.replace("\r\n", "\n"), ("comment",))


def join_spliced_lines(text: str) -> str:
    """Lines that go on as one. Their newlines stand behind it as vertical tabs, so that lines still count."""
    parts, at, gone = [], 0, 0
    for splice in _SPLICED.finditer(text):
        if gone and (end := text.find("\n", at, splice.start())) >= 0:
            parts += [text[at:end], "\v" * gone]
            at, gone = end, 0
        parts.append(text[at : splice.start()])
        at, gone = splice.end(), gone + 1
    end = text.find("\n", at) if gone else -1
    end = len(text) if end < 0 else end
    return "".join([*parts, text[at:end], "\v" * gone, text[end:]])


_IDENTIFIER = re.compile(rf"({WORD})|{NUMBER}")


def identifiers_in(text: str) -> list[str]:
    """The words of its code, in order; those of comments, strings and directives are none."""
    parts = (element for element in find_elements(text) if element[0] == "code")
    return [
        found[1] for _, start, end in parts for found in _IDENTIFIER.finditer(text, start, end) if found[1]
    ]
