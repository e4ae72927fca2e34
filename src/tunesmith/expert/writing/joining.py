"""The code of several kernels in one file: what they have alike once, and no name with two meanings.

A name that a piece of code defines keeps its place in the file only if no other kernel's code has the word at
all, or defines it by the very same pieces. Otherwise it gets the number of its kernel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.effects import is_function
from tunesmith.csource.lex import Token, closing_angle, first_word, lex, without_comments
from tunesmith.csource.walk import fresh_name
from tunesmith.expert.writing.naming import Unwritable

_WORD = re.compile(r"[A-Za-z_]\w*")
# Comments and strings first: what is in them is no name. A word behind a dot is a member's.
_NAMES = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'"
    r"|(?:\.|->)\s*[A-Za-z_]\w*"
    r"|\b[A-Za-z_]\w*",
    re.DOTALL,
)
_TYPES = ("struct", "class", "union", "enum")
_ATTRIBUTES = ("__attribute__", "__align__", "alignas", "decltype", "__declspec", "__launch_bounds__")


@dataclass(frozen=True)
class KernelCode:
    """The pieces of a kernel's code, in the order of the file."""

    number: str
    pieces: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...] = ()  # names by which its pieces called something before

    def name(self, before: str) -> str:
        return dict(self.renamed).get(before, before)


def linked(codes: Sequence[KernelCode], taken: Collection[str], ahead: str = "") -> tuple[KernelCode, ...]:
    """The same codes with names that go together in one file, each piece once.

    `taken` are words that no new name may be; `ahead` is text that stands before all of them and stays as it
    is. Raises `Unwritable` where a name cannot be changed.
    """
    done, used = list(codes), {*taken, *_words(ahead), *(w for code in codes for w in _words_of(code))}
    while changes := _clashes(done, ahead):
        for at, names in enumerate(changes):
            new = {name: fresh_name(f"{name}_{done[at].number}", used) for name in names}
            pieces = tuple(renamed(piece, new) for piece in done[at].pieces)
            done[at] = replace(done[at], pieces=pieces, renamed=(*done[at].renamed, *new.items()))
    seen: set[str] = set()
    for at, code in enumerate(done):
        fresh = tuple(piece for piece in dict.fromkeys(code.pieces) if piece not in seen)
        seen.update(code.pieces)
        done[at] = replace(code, pieces=fresh)
    return tuple(done)


def _clashes(codes: Sequence[KernelCode], ahead: str) -> list[list[str]] | None:
    """By code: names that have to change; None where none has."""
    defined, words = [_definitions(code.pieces) for code in codes], [_words_of(code) for code in codes]
    before, theirs = _words(ahead), set(defined_names(ahead)) if ahead else set()
    found: list[list[str]] = []
    for at, own in enumerate(defined):
        outside = words[at] & theirs - own.keys()
        if outside:
            raise Unwritable(f"the original's text means something else by {min(outside)}")
        others = [place for place in range(len(codes)) if place != at]
        found.append(
            [
                name
                for name, pieces in own.items()
                if name in before or any(name in words[o] and defined[o].get(name) != pieces for o in others)
            ]
        )
    for code, names in zip(codes, found, strict=True):
        for name in names:
            if is_function(name) and not _is_only_defined(name, code):
                raise Unwritable(f"{name}, which a library has as well, is not the same for all kernels")
    return found if any(found) else None


def _is_only_defined(name: str, code: KernelCode) -> bool:
    """Its code has the word once, as the name of the kernel: nothing there means the library's."""
    words = [word for piece in code.pieces for word in _WORD.findall(without_comments(piece))]
    return words.count(name) == 1 and name in defined_names(code.pieces[-1])


def _definitions(pieces: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Names with the pieces that define them."""
    found: dict[str, tuple[str, ...]] = {}
    for piece in pieces:
        for name in dict.fromkeys(defined_names(piece)):
            found[name] = (*found.get(name, ()), piece)
    return found


def _words_of(code: KernelCode) -> frozenset[str]:
    return frozenset(word for piece in code.pieces for word in _words(piece))


def _words(text: str) -> frozenset[str]:
    """Everything that may be a name; words in strings are among them."""
    return frozenset(_WORD.findall(without_comments(text)))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with other words for these; comments speak of them too, members and strings do not."""

    def word(found: re.Match[str]) -> str:
        text = found[0]
        if text.startswith(("//", "/*")):
            return _WORD.sub(lambda inner: names.get(inner[0], inner[0]), text)
        return names.get(text, text)

    return _NAMES.sub(word, text) if names else text


# -- what a text defines for the whole file ---------------------------------------------------------


def defined_names(text: str) -> Iterator[str]:
    """Macros, functions, types and variables, each as often as it is defined."""
    tokens = lex(text)
    for token in tokens:
        if token.kind == "directive":
            word, rest = first_word(token.text)
            if word == "define" and (found := _WORD.match(rest.lstrip())):
                yield found[0]
    yield from _declared([token for token in tokens if token.kind != "directive"])


def _declared(tokens: Sequence[Token]) -> Iterator[str]:
    at = 0
    while at < len(tokens):
        at = _behind_template(tokens, at)
        if at >= len(tokens):
            return
        if tokens[at].text in ("}", ";"):
            at += 1
            continue
        body = _next(tokens, at, ("{", ";", "="))
        head = _without_attributes(tokens[at:body])
        words = [token.text for token in head]
        if body < len(tokens) and tokens[body].text == "{" and _is_outside(words):
            at = body + 1  # what is inside belongs to the file
            continue
        plain = words[0] not in ("typedef", "using") and (body == len(tokens) or tokens[body].text != "=")
        is_function = plain and "(" in words
        end = _end(tokens, body, is_function)
        yield from _name(words, tokens[at:end], is_function)
        at = end


def _is_outside(words: Sequence[str]) -> bool:
    return words[:1] == ["namespace"] or (len(words) == 2 and words[0] == "extern" and words[1][:1] == '"')


def _behind_template(tokens: Sequence[Token], at: int) -> int:
    while at + 1 < len(tokens) and tokens[at].text == "template" and tokens[at + 1].text == "<":
        closing = closing_angle(tokens, at + 1)
        if closing is None:
            raise Unwritable("the code has a template that does not end")
        at = closing + 1
    return at


def _next(tokens: Sequence[Token], at: int, marks: Collection[str]) -> int:
    """Where one of these stands outside of brackets."""
    depth = 0
    for place in range(at, len(tokens)):
        mark = tokens[place].text
        if depth == 0 and mark in marks:
            return place
        depth += (mark in ("(", "[")) - (mark in (")", "]"))
    return len(tokens)


def _end(tokens: Sequence[Token], body: int, is_function: bool) -> int:
    """Behind the declaration whose body, value or end is here."""
    depth = 0
    for place in range(body, len(tokens)):
        mark = tokens[place].text
        depth += (mark in ("{", "(", "[")) - (mark in ("}", ")", "]"))
        if depth == 0 and (mark == ";" or (mark == "}" and is_function)):
            return place + 1
    return len(tokens)


def _without_attributes(tokens: Sequence[Token]) -> list[Token]:
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        if tokens[at].text in _ATTRIBUTES:
            depth, at = 0, at + 1
            while at < len(tokens):
                depth += (tokens[at].text == "(") - (tokens[at].text == ")")
                if depth <= 0:
                    break
                at += 1
            at += 1
            continue
        done.append(tokens[at])
        at += 1
    return done


def _name(words: Sequence[str], whole: Sequence[Token], is_function: bool) -> Iterator[str]:
    if not words or words[0] in ("using", "static_assert"):
        named = words[1:2] if words[:1] == ["using"] and "=" in [t.text for t in whole] else []
        yield from (word for word in named if _WORD.fullmatch(word))
    elif words[0] == "typedef":
        inner = [token.text for token in whole]
        closing = len(inner) - 1 - inner[::-1].index("}") if "}" in inner else 0
        behind = [word for word in inner[closing:] if _WORD.fullmatch(word)]
        yield from behind[-1:]
        yield from _tag(words)
    elif is_function:
        before = _without_arguments(words[: words.index("(")])
        if "operator" not in before and "::" not in before[-2:]:
            yield from (word for word in before[-1:] if _WORD.fullmatch(word))
    elif any(word in _TYPES for word in words):
        yield from _tag(words)
    else:
        until = words[: words.index("[")] if "[" in words else words
        yield from [word for word in until if _WORD.fullmatch(word)][-1:]


def _without_arguments(words: Sequence[str]) -> Sequence[str]:
    """`fetch<uint4>` as `fetch`: a function for certain arguments has the name of the others."""
    if words[-1:] != [">"]:
        return words
    depth = 0
    for at in range(len(words) - 1, -1, -1):
        depth += (words[at] == ">") - (words[at] == "<")
        if depth == 0:
            return words[:at]
    return words


def _tag(words: Sequence[str]) -> Iterator[str]:
    """The name behind `struct`."""
    place = next((at for at, word in enumerate(words) if word in _TYPES), len(words))
    behind = [word for word in words[place + 1 :] if _WORD.fullmatch(word) and word not in _TYPES]
    yield from behind[:1]
