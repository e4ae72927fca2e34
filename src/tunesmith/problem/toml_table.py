"""Typed reading of TOML tables that notes every fault with its line and raises them all at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, inspect

from tunesmith.base.errors import BadInput
from tunesmith.space.expr import LIMIT, Expr, RealExpr, parse_expr, parse_real, shorten_text, suggest_name

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
        counts: dict[Keys, int] = {}  # tables seen so far in each array of tables
        tokens = _lex_toml(text.replace("\r\n", "\n"))
        table: Keys = ()
        at = 0
        while at < len(tokens):
            line = tokens[at][1]
            brackets = 0 if tokens[at][0] != "[" else 2 if tokens[at + 1][0] == "[" else 1
            names, at = _read_dotted_key(tokens, at + brackets)
            if names and brackets:
                table = ()
                for place, name in enumerate(names, 1):
                    table = (*table, name)
                    if brackets == 2 and place == len(names):
                        counts[table] = counts.get(table, 0) + 1
                    if table in counts:
                        table = (*table, counts[table] - 1)
                self._note(table, line)
            elif names and tokens[at][0] == "=":
                self._note((*table, *names), line, len(table))
                at = self._value(tokens, at + 1, (*table, *names))
            while at < len(tokens) and tokens[at][0] != "\n":
                at += 1
            at += 1

    def of(self, *keys: str | int) -> int | None:
        """The line of the item at `keys`, or else of the nearest thing around it."""
        around = (self._lines.get(keys[:end]) for end in range(len(keys), 0, -1))
        return next((line for line in around if line is not None), None)

    def _note(self, keys: Keys, line: int, known: int = 0) -> None:
        for end in range(known + 1, len(keys) + 1):
            self._lines.setdefault(keys[:end], line)

    def _value(self, tokens: Sequence[Token], at: int, keys: Keys) -> int:
        """Past one value; the items of a list it is are noted, what is nested deeper is not."""
        is_list = tokens[at][0] == "["
        depth, index, item_next = 0, 0, False
        # A loop and a depth, not recursion: a text may nest as deep as it likes.
        while at < len(tokens) and (tokens[at][0] != "\n" or depth > 0):
            text, line = tokens[at]
            at += 1
            if item_next and text not in ("\n", "]"):
                self._note((*keys, index), line, len(keys))
                index, item_next = index + 1, False
            depth += (text in ("[", "{")) - (text in ("]", "}"))
            item_next |= is_list and depth == 1 and text in ("[", ",")
        return at


def _lex_toml(text: str) -> list[Token]:
    """Without spaces and comments; two line ends follow the last, for whoever looks ahead."""
    found: list[Token] = []
    line = 1
    for match in _TOKEN.finditer(text):
        if match[0][0] not in " \t#":
            found.append((match[0], line))
        line += match[0].count("\n")
    return [*found, ("\n", line), ("\n", line)]


def _read_dotted_key(tokens: Sequence[Token], at: int) -> tuple[list[str], int]:
    """A key with its dots, and where it ends; [] where none stands."""
    names: list[str] = []
    while True:
        text = tokens[at][0]
        if text[0] in ('"', "'"):
            names.append(re.sub(r'\\(["\\])', r"\1", text[1:-1]))
        elif _BARE.fullmatch(text):
            names.append(text)
        else:
            return [], at
        if tokens[at + 1][0] != ".":
            return names, at + 1
        at += 2


T = TypeVar("T")
Word = TypeVar("Word", bound=str)
Names = Collection[str] | None  # that an expression may have; None where unknown

LARGEST = 1e308  # of numbers: infinities are beyond it
NUMBER = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
MAX_SHOWN = 20
# What an annotation means where it says no more.
_CONSTRAINED: dict[object, Any] = {
    str: Annotated[str, Meta(pattern=r"\A(?=[^\n\0]*\Z)\s*\S")],
    tuple[str, ...]: tuple[Annotated[str, Meta(pattern=r"\A[^\n\0]+\Z")], ...],
}
_ITEM = re.compile(r"\$\[(\d+)\]")  # where msgspec found the fault of a list
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
            raise BadInput(faults[0].message, hint=faults[0].hint, where=self._at(faults[0].line))
        shown = [(self._at(fault.line), fault) for fault in faults[:MAX_SHOWN]]
        listed = [f"{at}: {one.message}" + (f" ({one.hint})" if one.hint else "") for at, one in shown]
        if len(faults) > MAX_SHOWN:
            listed.append(f"and {len(faults) - MAX_SHOWN} more")
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

    def must(self, key: str, rule: str, hint: str | None = None) -> T | None:
        """Nothing, as the entry is not what it must be."""
        return self._refuse_value(key, rule, self.data[key], hint)

    def _refuse_value(self, key: str, rule: str, value: object, hint: str | None = None) -> T | None:
        return self.refuse(key, f"{key} must {rule}, got {show_value(value)}", hint)

    def only(self, known: Sequence[str]) -> None:
        for key in self.data:
            if key not in known:
                hint = suggest_name(key, known) or "remove it"
                self.fault(key, f"unknown key {show_value(key)}, known are {', '.join(known)}", hint)

    def needs(self, *keys: str, hint: str | None = None) -> bool:
        missing = [key for key in keys if key not in self.data]
        for key in missing:
            self.fault(None, f"{key} is missing", hint or f"add {key} = ...")
        return not missing

    def names(self, key: str) -> tuple[str, ...]:
        """The keys of an inner table, sound or not; () where there is none."""
        value = self.data.get(key)
        return tuple(value) if isinstance(value, dict) else ()

    def read(self, schema: type[T], keys: Collection[str], names: Names = None, **known: object) -> T:
        """A value of a class: its fields are `known` already, or entries of their names, those among `keys`,
        each converted as its annotation says."""
        kinds = _field_kinds(cast(Hashable, schema))
        found = {key: self._entry(key, kinds[key], names) for key in keys if key in self.data}
        return schema(**{key: value for key, value in found.items() if value is not None}, **known)

    def text(self, key: str) -> str | None:
        found: str | None = self._entry(key, str)
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        found: tuple[str, ...] | None = self._entry(key, tuple[str, ...])
        return found or ()

    def flag(self, key: str) -> bool:
        return bool(self._entry(key, bool))

    def integer(self, key: str, *, low: int, high: int = LIMIT) -> int | None:
        found: int | None = self._entry(key, Annotated[int, Meta(ge=low, le=high)])
        return found

    def number(self, key: str, *, low: float = -LARGEST) -> float | None:
        found: float | None = self._entry(key, Annotated[float, Meta(ge=low, le=LARGEST)])
        return found

    def choice(self, key: str, options: Sequence[Word]) -> Word | None:
        found: Word | None = self._entry(key, Literal[tuple(options)])
        return found

    def expr(self, key: str, names: Names) -> Expr | None:
        return self._expr(key, (key,), self.data[key], names) if key in self.data else None

    def real(self, key: str, names: Names) -> RealExpr | None:
        """The value of a float, of which sizes decide."""
        text = self.text(key)
        return None if text is None else self._parse_entry(key, (key,), lambda: parse_real(text, names=names))

    def items(self, key: str, of: str) -> list[object]:
        """The items of a list; [] also where the value is no list, which is noted."""
        value = self.data.get(key, [])
        if isinstance(value, list):
            return value
        return self.must(key, f"be a list of {of} in [ ]") or []

    def integers(self, key: str, *, low: int, hint: str | None = None) -> tuple[int, ...]:
        """The different integers of a list, which must have some."""
        items = self.items(key, "integers")
        values: list[int] = []
        for item in items:
            if type(item) is not int or not low <= item <= LIMIT:
                allowed = "from 0 to 2**62" if low == 0 else "up to 2**62"
                self.fault(key, f"{key} must list integers {allowed}, got {show_value(item)}", hint)
            elif item in values:
                self.fault(key, f"{key} lists {item} more than once", "list every value once")
            else:
                values.append(item)
        if not items and isinstance(self.data[key], list):
            self.fault(key, f"{key} has no values", "list at least one")
        return tuple(values)

    def exprs(self, key: str, names: Names, *, most: int) -> tuple[Expr, ...]:
        """A list of one to `most` expressions."""
        items = self.items(key, "expressions")
        if isinstance(self.data.get(key), list) and not 1 <= len(items) <= most:
            self.fault(key, f"{key} must have 1 to {most} entries, got {len(items)}")
        found = [self._expr(key, (key, i), item, names) for i, item in enumerate(items)]
        return tuple(expr for expr in found if expr is not None)

    def table(self, key: str, label: str) -> Table | None:
        value = self.data.get(key)
        if value is None or isinstance(value, dict):
            return None if value is None else Table(value, (*self.keys, key), label, self.faults)
        return self.must(key, "be a table")

    def needed_table(self, key: str, label: str, hint: str) -> Table | None:
        return self.table(key, label) if self.needs(key, hint=hint) else None

    def table_or_empty(self, key: str, label: str) -> Table:
        return self.table(key, label) or Table({}, (*self.keys, key), label, self.faults)

    def tables(self, key: str, label: str) -> list[Table]:
        """The tables of `[[key]]`, labelled by their number; a lone `[key]` counts as one."""
        value = self.data.get(key, [])
        if isinstance(value, dict):
            return [self.table_or_empty(key, label)]
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            return self.must(key, f"be tables under [[{key}]] headers") or []
        numbered = enumerate(value)
        return [Table(item, (*self.keys, key, i), f"{label} {i + 1}", self.faults) for i, item in numbered]

    def attempt(self, key: str | None, action: Callable[[], T]) -> T | None:
        """What the action gives; None where it refuses its input, which is noted."""
        try:
            return action()
        except BadInput as error:
            return self.refuse(key, str(error), error.hint)

    def _entry(self, key: str, kind: object, names: Names = None) -> Any:
        """The entry as its kind, the annotation of a field that may be None; the fault in our words."""
        present = [one for one in get_args(kind) if one is not NoneType]
        kind = present[0] if NoneType in get_args(kind) and len(present) == 1 else kind
        if kind is Expr:
            return self.expr(key, names)
        if present and present[0] == tuple[Expr, ...]:
            return self.exprs(key, names, most=present[1].max_length)
        value = self.data.get(key)
        try:
            return None if value is None else msgspec.convert(value, _CONSTRAINED.get(kind, kind))
        except msgspec.ValidationError as error:
            item = _ITEM.search(str(error))
            value = value[int(item[1])] if item and isinstance(value, list) else value
            options = get_args(kind) if get_origin(kind) is Literal else ()
            hint = suggest_name(value, options) if isinstance(value, str) else None
            return self._refuse_value(key, f"be {_describe_type(kind, value, item is not None)}", value, hint)

    def _expr(self, key: str, keys: Keys, value: object, names: Names) -> Expr | None:
        if not isinstance(value, str) and (type(value) is not int or abs(value) > LIMIT):
            return self._refuse_value(key, "be an integer or an expression in quotes", value)
        # Lines of a text in three quotes are one expression.
        text = " ".join(value.split()) if isinstance(value, str) else value
        return self._parse_entry(key, keys, lambda: parse_expr(text, names=names))

    def _parse_entry(self, key: str, keys: Keys, parse: Callable[[], T]) -> T | None:
        try:
            return parse()
        except BadInput as error:
            prefix = f"{self.label}: {key}" if self.label else key
            self.faults.add((*self.keys, *keys), f"{prefix}: {error.message}", error.hint)
            return None


@cache
def _field_kinds(schema: Hashable) -> dict[str, object]:
    return get_type_hints(schema, include_extras=True)


def _describe_type(kind: object, value: object, is_item: bool) -> str:
    """In words, what an entry must be."""
    match inspect.type_info(kind):
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=low, le=high):
            return f"an integer from {low} to {'2**62' if high == LIMIT else high}"
        case inspect.FloatType(ge=low):
            return "a finite number" + ("" if low == -LARGEST else f" of at least {low:g}")
        case inspect.LiteralType():
            return f"one of {', '.join(get_args(kind))}"
        case inspect.StrType():
            return "one line of text, not empty" if isinstance(value, str) else "a text in quotes"
    return "a list of texts of one line each" if is_item else "a list of texts in [ ]"


def finite_number(value: object) -> float | None:
    """A TOML number as a float; None for anything else, infinities and NaN among it."""
    try:
        found: float = msgspec.convert(value, NUMBER)
        return found
    except msgspec.ValidationError:
        return None


def show_value(value: object) -> str:
    """A TOML value in words, short and on one line."""
    match value:
        case bool():
            return str(value).lower()
        case int() if abs(value) > LIMIT:
            return f"an integer of {value.bit_length()} bits"
        case int() | float():
            return str(value)
        case str():
            return shorten_text(repr(value))
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "a table"
    return f"the {type(value).__name__} {value}"


def walk_texts(value: object) -> Iterator[tuple[Keys, str]]:
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
