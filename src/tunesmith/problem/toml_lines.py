"""Where each key of a TOML text stands, so that a message can name the line."""

from __future__ import annotations

import re
from collections.abc import Sequence

Keys = tuple[str | int, ...]
Token = tuple[str, int]  # the text, and the 1-based line it begins in

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Whole strings, so that nothing inside of one counts. A string that is not closed ends with its line, one of
# several lines with the text; those may end in one or two quotes of their own.
_TOKEN = re.compile(
    r'"""(?:\\.|(?!""")[^\\])*(?:""""*|\\?\Z)|'
    r"'''(?:(?!''').)*(?:''''*|\Z)|"
    r'"(?:\\.|[^"\\\n])*(?:"|\\?\Z|(?=\n))|'
    r"'[^'\n]*(?:'|\Z|(?=\n))|"
    rf"#[^\n]*|[ \t]+|{_BARE.pattern}|.",
    re.DOTALL,
)


class KeyLines:
    """1-based lines of keys, tables and list items. Tolerant: text that is not TOML yields what it can."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Keys, int] = {}
        self._counts: dict[Keys, int] = {}  # tables seen so far in each array of tables
        self._scan(_tokens(text.replace("\r\n", "\n")))

    def of(self, *keys: str | int) -> int | None:
        """The line of the item at `keys`, or else of the nearest thing around it."""
        around = (self._lines.get(keys[:end]) for end in range(len(keys), 0, -1))
        return next((line for line in around if line is not None), None)

    def _scan(self, tokens: Sequence[Token]) -> None:
        table: Keys = ()
        at = 0
        while at < len(tokens):
            text, line = tokens[at]
            if text.isspace() or text[0] == "#":
                at += 1
                continue
            brackets = 0 if text != "[" else 2 if _text(tokens, at + 1) == "[" else 1
            names, at = _key(tokens, at + brackets)
            if names and brackets:
                if brackets == 2:
                    array = (*self._resolve(names[:-1]), names[-1])
                    self._counts[array] = self._counts.get(array, 0) + 1
                table = self._resolve(names)
                self._note(table, line)
            elif names and _text(tokens, at) == "=":
                self._note((*table, *names), line, len(table))
                at = self._value(tokens, at + 1, (*table, *names))
                continue
            while at < len(tokens) and tokens[at][0] != "\n":
                at += 1

    def _resolve(self, names: tuple[str, ...]) -> Keys:
        """A header's names with the index of the latest table put in after each array of tables."""
        keys: Keys = ()
        for name in names:
            keys = (*keys, name)
            if keys in self._counts:
                keys = (*keys, self._counts[keys] - 1)
        return keys

    def _note(self, keys: Keys, line: int, known: int = 0) -> None:
        for end in range(known + 1, len(keys) + 1):
            self._lines.setdefault(keys[:end], line)

    def _value(self, tokens: Sequence[Token], at: int, keys: Keys) -> int:
        """Past one value; the items of a list it is are noted, what is nested deeper is not."""
        is_list = _text(tokens, _past_spaces(tokens, at)) == "["
        depth, index, item_next = 0, 0, False
        # A loop and a depth, not recursion: a text may nest as deep as it likes.
        while at < len(tokens) and (tokens[at][0] != "\n" or depth > 0):
            text, line = tokens[at]
            at += 1
            if text[0] == "#":
                continue
            if item_next and not text.isspace() and text != "]":
                self._note((*keys, index), line, len(keys))
                index, item_next = index + 1, False
            depth += (text in ("[", "{")) - (text in ("]", "}"))
            item_next |= is_list and depth == 1 and text in ("[", ",")
        return at


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    line = 1
    for match in _TOKEN.finditer(text):
        found.append((match[0], line))
        line += match[0].count("\n")
    return found


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at][0] if at < len(tokens) else ""


def _past_spaces(tokens: Sequence[Token], at: int) -> int:
    return at + (_text(tokens, at)[:1] in (" ", "\t"))


def _key(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int]:
    """A key with its dots, and where it and the spaces after it end; () where none stands."""
    names: list[str] = []
    while True:
        at = _past_spaces(tokens, at)
        text = _text(tokens, at)
        if text[:1] in ('"', "'"):
            names.append(re.sub(r'\\(["\\])', r"\1", text[1:-1]))
        elif _BARE.fullmatch(text):
            names.append(text)
        else:
            return (), at
        at = _past_spaces(tokens, at + 1)
        if _text(tokens, at) != ".":
            return tuple(names), at
        at += 1
