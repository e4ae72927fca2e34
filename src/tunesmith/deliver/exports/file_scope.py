"""The names that a file in OpenCL C declares outside its functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tunesmith.csource.lex import Token, directives, first_word, lex
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.readings import readings

_OPENS, _CLOSES = ("(", "[", "{"), (")", "]", "}")
_TAGS = ("struct", "union", "enum")
_ATTRIBUTES = ("__attribute__", "__attribute")
_NO_NAME = re.compile(
    r"__\w*|struct|union|enum|void|(?:u(?=[cils]))?(?:char|short|int|long)\d*|(?:float|double|half)\d*|bool"
    r"|unsigned|signed|const|static|inline|typedef|volatile|kernel|global|local|constant|private|typeof"
    r"|_Static_assert"
)


def macros_in(text: str) -> set[str]:
    return {first_word(d.rest)[0] for d in directives(text) if d.word == "define"} - {""}


def names_declared(text: str, defines: Iterable[tuple[str, str]] = ()) -> set[str]:
    """With macros expanded, whatever the compiler says of itself in an #if; where the preprocessor's lines
    cannot be followed, as the text stands."""
    tokens = lex(text)
    try:
        found = readings(tokens, lambda name: name.startswith(("_", "cl_", "CL_")), defines)
    except Unreadable:
        return _declared(tokens) - macros_in(text)
    return {name for reading in found for name in _declared(reading.tokens)}


def _declared(tokens: Sequence[Token]) -> set[str]:
    found: set[str] = set()
    depth = 0
    initial = enumerates = False  # within what a variable is set to; whether a list of an enum is next
    before = ""
    shown = _without_attributes(tokens)
    for at, token in enumerate(shown):
        following = shown[at + 1].text if at + 1 < len(shown) else ""
        is_name = token.kind == "word" and not _NO_NAME.fullmatch(token.text)
        if depth == 0:
            if token.text in (";", ","):
                initial = False
            elif token.text == "=":
                initial = True
            elif token.text == "enum":
                enumerates = True
            elif is_name and not initial and (before in _TAGS or following in ("(", "[", "=", ";", ",", "{")):
                found.add(token.text)
            elif token.text == "(" and following == "*" and not initial:  # a pointer to an array
                end = next((k for k in range(at, len(shown)) if shown[k].text == ")"), at)
                found |= {word.text for word in shown[end - 1 : end] if word.kind == "word"}
        elif depth == 1 and enumerates and is_name and before in ("{", ","):
            found.add(token.text)
        depth = max(0, depth + (token.text in _OPENS) - (token.text in _CLOSES))
        enumerates = enumerates and not (depth == 0 and token.text in (";", "}", ")"))
        before = token.text
    return found


def _without_attributes(tokens: Iterable[Token]) -> list[Token]:
    kept: list[Token] = []
    depth = -1  # -1: outside; 0: before the brackets of an attribute
    for token in tokens:
        if depth < 0 and token.text in _ATTRIBUTES:
            depth = 0
        elif depth >= 0:
            depth += (token.text == "(") - (token.text == ")")
            depth = -1 if depth <= 0 else depth
        elif token.kind != "directive":
            kept.append(token)
    return kept
