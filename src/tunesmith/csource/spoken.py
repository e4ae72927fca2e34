"""Reasons in the words of the source: names that were made on the way there as what they stand for.

`q_a` is the field `q.a` of an object that was taken apart, `index_2` a variable `index` of which there are
several, `lambda_sum_8` the lambda that `sum` is set to. What the source says itself stays as it is.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBERED = re.compile(r"(?P<name>.+?)(?:_\d+)+")
_LAMBDA = re.compile(r"lambda_(?P<name>\w*)_\d+")


def words_of(text: str) -> frozenset[str]:
    return frozenset(_NAME.findall(text))


def in_words_of(source: frozenset[str], reason: str) -> str:
    """`source`: the names that the user has written."""

    def said(match: re.Match[str]) -> str:
        name = match[0]
        return name if name in source or "_" not in name else _said(name, source) or name

    return _NAME.sub(said, reason)


def _said(name: str, source: frozenset[str]) -> str:
    if (made := _LAMBDA.fullmatch(name)) is not None:
        return f"the lambda {made['name']}" if made["name"] in source else "a lambda"
    numbered = _NUMBERED.fullmatch(name)
    plain = numbered["name"] if numbered is not None else name
    if plain in source:
        return plain
    for at in (found.start() for found in re.finditer("_", plain)):
        of, field = plain[:at], plain[at + 1 :]
        owner = of if of in source else _said(of, source) if "_" in of else ""
        if owner and field in source:
            return f"{owner}.{field}"
    return ""
