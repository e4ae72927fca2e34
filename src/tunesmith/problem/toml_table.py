"""Typed reading of TOML tables that notes every fault with its line and raises them all at once."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tunesmith.errors import BadInput
from tunesmith.space.expr import LIMIT, Expr, parse
from tunesmith.space.grammar import shorten, suggestion
from tunesmith.space.real import RealExpr, parse_real

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


T = TypeVar("T")
Word = TypeVar("Word", bound=str)

MOST_SHOWN = 20
_BREAKS = re.compile(r"[\n\0]")
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class FileFault:
    line: int | None
    message: str
    hint: str | None


class Faults:
    """What is wrong with one file. Reading goes on after a fault, so that the user mends a file once."""

    def __init__(self, path: str, lines: KeyLines, *, offset: int = 0) -> None:
        self.path = path
        self._lines = lines
        self._offset = offset  # lines of the file above the TOML text
        self._found: list[FileFault] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def line(self, keys: Keys) -> int | None:
        line = self._lines.of(*keys)
        return None if line is None else line + self._offset

    def where(self, keys: Keys) -> str:
        return self._at(self.line(keys))

    def add(self, keys: Keys, message: str, hint: str | None = None) -> None:
        self.add_at(self.line(keys), message, hint)

    def add_at(self, line: int | None, message: str, hint: str | None = None) -> None:
        fault = FileFault(line, message, hint)
        if fault not in self._found:
            self._found.append(fault)

    def raise_any(self) -> None:
        if not self._found:
            return
        faults = sorted(self._found, key=lambda fault: fault.line or 0)
        if len(faults) == 1:
            (fault,) = faults
            raise BadInput(fault.message, hint=fault.hint, where=self._at(fault.line))
        listed = [
            f"{self._at(fault.line)}: {fault.message}" + (f" ({fault.hint})" if fault.hint else "")
            for fault in faults[:MOST_SHOWN]
        ]
        if len(faults) > MOST_SHOWN:
            listed.append(f"and {len(faults) - MOST_SHOWN} more")
        message = "\n".join([f"{len(faults)} faults", *listed])
        raise BadInput(message, hint="mend these lines and run the same command again", where=self.path)

    def _at(self, line: int | None) -> str:
        return self.path if line is None else f"{self.path}:{line}"


def load_toml(text: str, *, path: str, offset: int = 0) -> Table:
    """The root table of a TOML text, or BadInput at the line where it stops being TOML."""
    try:
        data: dict[str, object] = tomllib.loads(text)
    except RecursionError as error:
        raise BadInput("not readable as TOML: nested too deeply", hint="flatten it", where=path) from error
    except ValueError as error:  # tomllib's own error, and integers too long for Python to convert
        message = str(error)
        place = _TOML_PLACE.search(message)
        message = message[: place.start()] if place else message
        line = int(place[1]) if place and place[1] else text.count("\n") + 1 if place else None
        hint = "text values need quotes; see https://toml.io for the format"
        where = path if line is None else f"{path}:{line + offset}"
        raise BadInput(f"not readable as TOML: {message}", hint=hint, where=where) from error
    return Table(data, (), "", Faults(path, KeyLines(text), offset=offset))


class Table:
    """One table. A getter gives nothing for what is absent, and for what is wrong, which it notes."""

    def __init__(self, data: dict[str, object], keys: Keys, label: str, faults: Faults) -> None:
        self.data = data
        self.keys = keys
        self.label = label  # how messages call it: "argument 'out'"
        self.faults = faults

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def fault(self, key: str | None, message: str, hint: str | None = None) -> None:
        keys = self.keys if key is None else (*self.keys, key)
        self.faults.add(keys, f"{self.label}: {message}" if self.label else message, hint)

    def refuse(self, key: str | None, message: str, hint: str | None = None) -> T | None:
        """Nothing, and why."""
        self.fault(key, message, hint)
        return None

    def only(self, known: Sequence[str]) -> None:
        for key in self.data:
            if key not in known:
                hint = suggestion(key, known) or "remove it"
                self.fault(key, f"unknown key {show(key)}, known are {', '.join(known)}", hint)

    def needs(self, *keys: str, hint: str | None = None) -> bool:
        missing = [key for key in keys if key not in self.data]
        for key in missing:
            self.fault(None, f"{key} is missing", hint or f"add {key} = ...")
        return not missing

    def names(self, key: str) -> tuple[str, ...]:
        """The keys of an inner table, sound or not; () where there is none."""
        value = self.data.get(key)
        return tuple(value) if isinstance(value, dict) else ()

    # -- single values ----------------------------------------------------------------------------------

    def text(self, key: str) -> str | None:
        value = self.data.get(key)
        if value is None or (isinstance(value, str) and value.strip() and not _BREAKS.search(value)):
            return value
        is_text = isinstance(value, str)
        return self._wrong(key, "one line of text, not empty" if is_text else "a text in quotes", value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.data.get(key, default)
        if isinstance(value, bool):
            return value
        self._wrong(key, "true or false", value)
        return default

    def integer(self, key: str, *, low: int, high: int = LIMIT) -> int | None:
        value = self.data.get(key)
        if value is None or (type(value) is int and low <= value <= high):
            return value
        return self._wrong(key, f"an integer from {low} to {'2**62' if high == LIMIT else high}", value)

    def number(self, key: str, *, low: float | None = None) -> float | None:
        value = self.data.get(key)
        found = finite(value)
        if value is None or (found is not None and (low is None or found >= low)):
            return found
        return self._wrong(key, "a finite number" + ("" if low is None else f" of at least {low:g}"), value)

    def choice(self, key: str, options: Sequence[Word]) -> Word | None:
        value = self.data.get(key)
        found = next((option for option in options if option == value), None)
        if value is None or found is not None:
            return found
        hint = suggestion(value, options) if isinstance(value, str) else None
        return self._wrong(key, f"one of {', '.join(options)}", value, hint)

    def expr(self, key: str, names: Collection[str] | None) -> Expr | None:
        return self._expr(key, (key,), self.data[key], names) if key in self.data else None

    def real(self, key: str, names: Collection[str] | None) -> RealExpr | None:
        """The value of a float, of which sizes decide."""
        text = self.text(key)
        if text is None:
            return None
        try:
            return parse_real(text, names=names)
        except BadInput as error:
            prefix = f"{self.label}: {key}" if self.label else key
            self.faults.add((*self.keys, key), f"{prefix}: {error}", error.hint)
            return None

    # -- lists and tables -------------------------------------------------------------------------------

    def items(self, key: str, of: str) -> list[object]:
        """The items of a list; [] also where the value is no list, which is noted."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self._wrong(key, f"a list of {of} in [ ]", value)
            return []
        return value

    def integers(self, key: str, *, low: int, hint: str | None = None) -> tuple[int, ...]:
        """The different integers of a list, which must have some."""
        items = self.items(key, "integers")
        values: list[int] = []
        for item in items:
            if type(item) is not int or not low <= item <= LIMIT:
                allowed = "from 0 to 2**62" if low == 0 else "up to 2**62"
                self.fault(key, f"{key} must list integers {allowed}, got {show(item)}", hint)
            elif item in values:
                self.fault(key, f"{key} lists {item} more than once", "list every value once")
            else:
                values.append(item)
        if not items and isinstance(self.data[key], list):
            self.fault(key, f"{key} has no values", "list at least one")
        return tuple(values)

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.items(key, "texts")
        for item in found:
            if not isinstance(item, str) or not item or _BREAKS.search(item):
                self._wrong(key, "a list of texts of one line each", item)
                return ()
        return tuple(item for item in found if isinstance(item, str))

    def exprs(self, key: str, names: Collection[str] | None, *, most: int) -> tuple[Expr, ...]:
        """A list of one to `most` expressions."""
        if key not in self.data:
            return ()
        items = self.items(key, "expressions")
        if isinstance(self.data[key], list) and not 1 <= len(items) <= most:
            self.fault(key, f"{key} must have 1 to {most} entries, got {len(items)}")
        found = [self._expr(key, (key, i), item, names) for i, item in enumerate(items)]
        return tuple(expr for expr in found if expr is not None)

    def table(self, key: str, label: str) -> Table | None:
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            return self._wrong(key, "a table", value)
        return Table(value, (*self.keys, key), label, self.faults)

    def needed_table(self, key: str, label: str, hint: str) -> Table | None:
        return self.table(key, label) if self.needs(key, hint=hint) else None

    def table_or_empty(self, key: str, label: str) -> Table:
        return self.table(key, label) or Table({}, (*self.keys, key), label, self.faults)

    def tables(self, key: str, label: str) -> list[Table]:
        """The tables of `[[key]]`, labelled by their number; a lone `[key]` counts as one."""
        value = self.data.get(key, [])
        if isinstance(value, dict):
            return [Table(value, (*self.keys, key), label, self.faults)]
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self._wrong(key, f"tables under [[{key}]] headers", value)
            return []
        return [
            Table(item, (*self.keys, key, i), f"{label} {i + 1}", self.faults) for i, item in enumerate(value)
        ]

    def attempt(self, key: str | None, action: Callable[[], T]) -> T | None:
        """What the action gives; None where it refuses its input, which is noted."""
        try:
            return action()
        except BadInput as error:
            return self.refuse(key, str(error), error.hint)

    def _expr(self, key: str, keys: Keys, value: object, names: Collection[str] | None) -> Expr | None:
        if not isinstance(value, str) and (type(value) is not int or abs(value) > LIMIT):
            return self._wrong(key, "an integer or an expression in quotes", value)
        try:
            # Lines of a text in three quotes are one expression.
            return parse(" ".join(value.split()) if isinstance(value, str) else value, names=names)
        except BadInput as error:
            prefix = f"{self.label}: {key}" if self.label else key
            self.faults.add((*self.keys, *keys), f"{prefix}: {error.message}", error.hint)
            return None

    def _wrong(self, key: str, allowed: str, value: object, hint: str | None = None) -> T | None:
        return self.refuse(key, f"{key} must be {allowed}, got {show(value)}", hint)


def finite(value: object) -> float | None:
    """A TOML number as a float; None for anything else, infinities and NaN among it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e308:
        return None
    return None if math.isnan(value) else float(value)


def show(value: object) -> str:
    """A TOML value in words, short and on one line."""
    match value:
        case bool():
            return str(value).lower()
        case int() if abs(value) > LIMIT:
            return f"an integer of {value.bit_length()} bits"
        case int() | float():
            return str(value)
        case str():
            return shorten(repr(value))
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "a table"
    return f"the {type(value).__name__} {value}"


def texts(value: object) -> Iterator[tuple[Keys, str]]:
    """Every text inside a TOML value, with its place."""
    stack: list[tuple[Keys, object]] = [((), value)]
    while stack:
        keys, item = stack.pop()
        if isinstance(item, str):
            yield keys, item
        elif isinstance(item, dict):
            stack += [((*keys, key), inner) for key, inner in item.items()]
        elif isinstance(item, list):
            stack += [((*keys, i), inner) for i, inner in enumerate(item)]


def names_apart(root: Table, title: str) -> None:
    """Entries that are alike, `"A, B" = 1`, as one of each name."""
    table = root.data.get(title)
    if not isinstance(table, dict):
        return
    done: dict[str, object] = {}
    for key, value in table.items():
        for name in [part.strip() for part in key.split(",")] if "," in key else [key]:
            if name in done:
                root.faults.add((title, key), f"[{title}]: {name} is there twice", "say it once")
            done[name] = value
    root.data[title] = done
