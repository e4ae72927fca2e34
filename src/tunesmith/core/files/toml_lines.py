"""Where each key of a TOML text stands, so that a message can name the line."""

from __future__ import annotations

import re

Keys = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TRIPLE = ('"""', "'''")


class Lines:
    """1-based lines of keys, tables and list items. Tolerant: text that is not TOML yields what it can."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0
        self._line = 1
        self._lines: dict[Keys, int] = {}
        self._counts: dict[Keys, int] = {}  # tables seen so far in each array of tables
        self._scan()

    def of(self, *keys: str | int) -> int | None:
        """The line of the item at `keys`, or else of the nearest thing around it."""
        for end in range(len(keys), 0, -1):
            line = self._lines.get(keys[:end])
            if line is not None:
                return line
        return None

    def _scan(self) -> None:
        table: Keys = ()
        while self._skip_blank():
            line = self._line
            if self._peek(2) == "[[":
                self._advance(2)
                names = self._key()
                if names:
                    table = self._array_table(names, line)
                self._to_line_end()
            elif self._peek() == "[":
                self._advance(1)
                names = self._key()
                if names:
                    table = self._resolve(names)
                    self._note_all((), table, line)
                self._to_line_end()
            else:
                names = self._key()
                if not names or self._peek() != "=":
                    self._to_line_end()
                    continue
                self._advance(1)
                self._note_all(table, (*table, *names), line)
                self._value((*table, *names))

    def _array_table(self, names: tuple[str, ...], line: int) -> Keys:
        array = (*self._resolve(names[:-1]), names[-1])
        index = self._counts.get(array, 0)
        self._counts[array] = index + 1
        table = (*array, index)
        self._note_all((), table, line)
        return table

    def _resolve(self, names: tuple[str, ...]) -> Keys:
        """A header's names with the index of the latest table put in after each array of tables."""
        keys: Keys = ()
        for name in names:
            keys = (*keys, name)
            if keys in self._counts:
                keys = (*keys, self._counts[keys] - 1)
        return keys

    def _note_all(self, base: Keys, keys: Keys, line: int) -> None:
        for end in range(len(base) + 1, len(keys) + 1):
            self._lines.setdefault(keys[:end], line)

    # -- characters -------------------------------------------------------------------------------------

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _advance(self, count: int) -> None:
        self._line += self._text.count("\n", self._at, self._at + count)
        self._at += count

    def _to_line_end(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _skip_blank(self) -> bool:
        """Past spaces, newlines and comments; False at the end of the text."""
        while char := self._peek():
            if char == "#":
                self._to_line_end()
            elif char.isspace():
                self._advance(1)
            else:
                return True
        return False

    def _skip_spaces(self) -> None:
        while self._peek() in (" ", "\t"):
            self._at += 1

    def _key(self) -> tuple[str, ...]:
        """A key with its dots, and the spaces after it; () where none stands."""
        names: list[str] = []
        while True:
            self._skip_spaces()
            if self._peek() in ('"', "'"):
                start = self._at
                self._string()
                names.append(_unescape(self._text[start + 1 : self._at - 1]))
            elif match := _BARE.match(self._text, self._at):
                names.append(match.group())
                self._at = match.end()
            else:
                return ()
            self._skip_spaces()
            if self._peek() != ".":
                return tuple(names)
            self._at += 1

    def _string(self) -> None:
        quote = self._peek(3) if self._peek(3) in _TRIPLE else self._peek()
        self._advance(len(quote))
        while char := self._peek():
            if char == "\\" and quote[0] == '"':
                self._advance(2)
            elif self._text.startswith(quote, self._at):
                self._advance(len(quote))
                if len(quote) == 3:  # a multi-line string may end in one or two quotes of its own
                    while self._peek() == quote[0]:
                        self._at += 1
                return
            elif char == "\n" and len(quote) == 1:
                return  # an unclosed string ends with its line
            else:
                self._advance(1)

    def _value(self, keys: Keys) -> None:
        """Past one value; the items of a list it is are noted, what is nested deeper is not."""
        self._skip_spaces()
        is_list = self._peek() == "["
        depth, index, item_next = 0, 0, False
        # A loop and a depth, not recursion: a text may nest as deep as it likes.
        while char := self._peek():
            if char == "#":
                self._to_line_end()
                continue
            if char == "\n" and depth <= 0:
                return
            if item_next and not char.isspace() and char != "]":
                self._note_all(keys, (*keys, index), self._line)
                index, item_next = index + 1, False
            if char in "\"'":
                self._string()
                continue
            if char in "[{":
                depth += 1
            elif char in "]}":
                depth -= 1
            if is_list and depth == 1 and char in "[,":
                item_next = True
            self._advance(1)


def _unescape(text: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", text)
