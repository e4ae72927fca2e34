"""How inputs are changed: bytes, words, lines and values; and trees of JSON, where the type may stay."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any

LARGEST = 1 << 17  # bytes of a text
ODD_NUMBERS = (
    *("0", "1", "-1", "2", "255", "256", "65536", "2147483647", "2147483648", "-2147483649"),
    *("4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e308", "1e999"),
    *("9" * 5000, "0x" + "f" * 40, "0.0", "-0.0", "nan", "inf", "-inf", "1e-320", "0b1", "1_0", "07", "1."),
)
ODD_TEXTS = (
    *('""', '"\\u0000"', "'''", '"""', '"' + "x" * 3000 + '"', '"\N{GREEK SMALL LETTER MU}\U0001f600"'),
    *('"../../etc/passwd"', '"/"', '"."', '"nan"', '"0"', '"a b"', '"\\ud800"', '"%s%n{}"', "//", "/*", "*/"),
    *("\ufeff", "\u2028", "\u0660", "\r", "\t", "\x00", "\\\n", "#", "##", "...", "->", "::", "<<<", ">>>"),
)
ODD_VALUES = (
    *("[]", "{}", "[[]]", "[{}]", "{ a = 1 }", "true", "false", "null", "1979-05-27", "07:32:00", "[1, 'a']"),
    *('["", ""]', "[0, 0]", "{ min = 1, max = 0 }", "{ one_of = [] }", "[" * 60 + "]" * 60),
)
NESTS = (("(", ")"), ("[", "]"), ("{", "}"), ("-", ""), ("!", ""), ("*", ""), ("a(", ")"), ("if(1){", "}"))
NESTS += (("not ", ""), ("1+", ""), ("a?b:", "c"), ("#if 1\n", "#endif\n"), ("for(;;)", ";"))
_WORD = re.compile(r"\w+|[^\w\s]+|\s+")


def text_mutation(rng: Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """One to four changes, of any kind."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(_KINDS)(rng, data, pool)
    return data[:LARGEST]


def _bytes(rng: Random, data: bytes, _pool: Sequence[bytes]) -> bytes:
    if not data:
        return bytes([rng.randrange(256)])
    at = rng.randrange(len(data))
    kind = rng.randrange(4)
    if kind == 0:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    end = min(len(data), at + rng.choice((1, 2, 8, 64)))
    return data[:at] + data[end:] if kind == 2 else data[:end] + data[at:]


def _words(rng: Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """One word for another: of its own, of another input, or an odd one."""
    words = _split(data)
    if not words:
        return data
    at = rng.randrange(len(words))
    kind = rng.randrange(6)
    if kind == 0:
        words[at] = rng.choice(words)
    elif kind == 1:
        words[at] = rng.choice(_split(rng.choice(pool)) or [""])
    elif kind == 2:
        words[at] = rng.choice(ODD_NUMBERS)
    elif kind == 3:
        words[at] = rng.choice((*ODD_TEXTS, *ODD_VALUES))
    elif kind == 4:
        del words[at : at + rng.choice((1, 1, 2, 5))]
    else:
        words.insert(at, rng.choice(words))
    return "".join(words).encode("utf-8", "surrogateescape")


def _numbers(rng: Random, data: bytes, _pool: Sequence[bytes]) -> bytes:
    found = list(re.finditer(rb"\d+", data))
    if not found:
        return data
    chosen = rng.choice(found)
    return data[: chosen.start()] + rng.choice(ODD_NUMBERS).encode() + data[chosen.end() :]


def _values(rng: Random, data: bytes, _pool: Sequence[bytes]) -> bytes:
    """What stands behind an equals sign, up to the end of its line."""
    found = list(re.finditer(rb"= *([^\n=]+)", data))
    if not found:
        return data
    chosen, odd = rng.choice(found), rng.choice((*ODD_NUMBERS, *ODD_TEXTS, *ODD_VALUES))
    return data[: chosen.start(1)] + odd.encode("utf-8", "surrogatepass") + data[chosen.end(1) :]


def _lines(rng: Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, rng.choice(lines))
    elif kind == 2:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3:
        lines.insert(at, rng.choice(rng.choice(pool).split(b"\n")))
    elif kind == 4:
        lines[at:] = []
    else:
        foreign = rng.choice(pool).split(b"\n")
        lines[at:] = foreign[rng.randrange(len(foreign)) :]
    return b"\n".join(lines)


def _nested(rng: Random, data: bytes, _pool: Sequence[bytes]) -> bytes:
    """Deeper than anybody writes."""
    at, depth = rng.randrange(len(data) + 1), rng.choice((3, 30, 300, 3000, 30000))
    head, tail = rng.choice(NESTS)
    inner = min(len(data), at + rng.choice((0, 1, 4)))
    return data[:at] + head.encode() * depth + data[at:inner] + tail.encode() * depth + data[inner:]


def _repeated(rng: Random, data: bytes, _pool: Sequence[bytes]) -> bytes:
    words = _split(data)
    if not words:
        return data
    at = rng.randrange(len(words))
    words[at] = (words[at][:1000] * rng.choice((2, 10, 1000, 20000)))[:LARGEST]
    return "".join(words).encode("utf-8", "surrogateescape")


_KINDS = (_bytes, _words, _words, _words, _numbers, _numbers, _values, _lines, _lines, _nested, _repeated)


def _split(data: bytes) -> list[str]:
    return _WORD.findall(data.decode("utf-8", "surrogateescape"))


# -- JSON ---------------------------------------------------------------------------------------------------

_INTEGERS = (0, 1, -1, 2, 3, 7, 1000, 2**31, 2**53, 2**62, 2**63, -(2**63), 2**64, 10**30, 10**400)
_FLOATS = (0.0, 1.0, -1.0, 1e-320, 1e-12, 1e12, 1e300, 1.7976931348623157e308, -1e300, 0.5)
_TEXTS = (
    "",
    " ",
    "0",
    "\x00",
    "\ud800",
    "\N{GREEK SMALL LETTER MU}",
    "x" * 5000,
    "..",
    "/",
    "original",
    "ok",
)


def tree_mutation(rng: Random, value: Any, others: Sequence[Any]) -> Any:
    """The value with one place in it changed. Most changes keep the type, so that it still can be read."""
    places = list(_places(value))
    path = rng.choice(places)
    if not path:
        return _changed(rng, value, others)
    copy = json.loads(json.dumps(value))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    last = path[-1]
    kind = rng.random()
    if kind < 0.08:
        del inner[last]
    elif kind < 0.2 and isinstance(inner, list):
        inner.insert(rng.randrange(len(inner) + 1), inner[last])
    elif kind < 0.45:  # what another place under the same name holds
        same = [found for other in others for found in _under(other, last) if isinstance(last, str)]
        inner[last] = rng.choice(same) if same else _changed(rng, inner[last], others)
    else:
        inner[last] = _changed(rng, inner[last], others)
    return copy


def _changed(rng: Random, value: Any, others: Sequence[Any]) -> Any:
    if rng.random() < 0.04:
        return rng.choice((None, True, 0, "x", [], {}, [[]], 1.5))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((*_INTEGERS, value + 1, value - 1, -value, value * 2))
    if isinstance(value, float):
        return rng.choice((*_FLOATS, value * 2, -value, value / 1e9, value * 1e9))
    if isinstance(value, str):
        words = [*_TEXTS, value + "x", value[:-1], value.upper()]
        words += list(_texts(rng.choice(others))) if others else []
        return rng.choice(words)
    if isinstance(value, list):
        kind = rng.randrange(4)
        if kind == 0 or not value:
            return []
        return (value + value, value[:-1], rng.sample(value, len(value)))[kind - 1]
    if isinstance(value, dict):
        return {} if rng.random() < 0.3 else dict(rng.sample(list(value.items()), max(0, len(value) - 1)))
    return rng.choice((0, "", [], {}, 1.0))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield from _places(inner, (*path, step))


def _under(value: Any, name: Any) -> Any:
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        for inner in value.values():
            yield from _under(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _under(inner, name)


def _texts(value: Any) -> Any:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
