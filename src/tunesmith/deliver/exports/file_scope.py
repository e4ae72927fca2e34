"""The names that a file in OpenCL C declares outside its functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tunesmith.csource.lex import Token, directives, first_word, lex
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.preprocess import Preprocessor

_OPENS, _CLOSES = ("(", "[", "{"), (")", "]", "}")
_TAGS = ("struct", "union", "enum")
_ATTRIBUTES = ("__attribute__", "__attribute")
_COMPILERS = ("_", "cl_", "CL_")
_SAYS_ERROR = "the file says #error"
_MOST_READ = 64
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
    found: set[str] = set()
    waiting: list[dict[str, bool]] = [{}]
    try:
        for count, answers in enumerate(waiting):
            work = _Reading(answers, defines)
            try:
                found |= _declared(work.read(tokens))
            except _AskedMacros as question:
                waiting += [{**answers, str(question): holds} for holds in (True, False)]
            if count >= _MOST_READ:
                raise Unreadable("its conditions leave too many ways to read it")
    except Unreadable:
        return _declared(tokens) - macros_in(text)
    return found


class _AskedMacros(Exception):
    """A condition that only the compiler can decide."""


class _Reading(Preprocessor):
    def __init__(self, answers: Mapping[str, bool], defines: Iterable[tuple[str, str]]) -> None:
        super().__init__(knows_headers=False)
        self._answers = answers
        for name, value in defines:
            self.define(f"{name} {value}", 0)

    def read(self, tokens: Iterable[Token]) -> Sequence[Token]:
        for token in tokens:
            self.take(token)
        self.flush()
        if self.open_conditions or any(_SAYS_ERROR not in words for words in self.problems):
            raise Unreadable("its conditions cannot be followed")
        return self.done

    def _holds(self, word: str, rest: str, line: int) -> bool:
        asked = rest if word == "if" else f"defined({first_word(rest)[0]})"
        names = self._asked_for(lex(rest)).keys() - self._macros.keys()
        if not any(name.startswith(_COMPILERS) for name in names):
            return super()._holds(word, rest, line)
        if asked not in self._answers:
            raise _AskedMacros(asked)
        return self._answers[asked] == (word != "ifndef")


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
