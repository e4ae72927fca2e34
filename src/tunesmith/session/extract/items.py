"""Declarations at the level of namespaces: what each is called, and where it begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.lex import Token, first_word, layout, lex
from tunesmith.csource.macros import MOST_TOKENS, Expansion, Macro, read_macro
from tunesmith.csource.nodes import Unreadable
from tunesmith.session.extract.naming import (
    CLOSES,
    LOUD,
    OPENS,
    RECORDS,
    ItemKind,
    after_attributes,
    after_template,
    closing,
    enumerators,
    shape_of,
    typedef_names,
)
from tunesmith.session.extract.reading import ReadFile

_COMMENT_ABOVE = re.compile(r"(?:[ \t]*//[^\n]*\n|[ \t]*/\*(?:[^*]|\*(?!/))*\*/[ \t]*\n)+\Z")
_BOILERPLATE = re.compile(r"copyright|license|SPDX", re.IGNORECASE)


@dataclass(frozen=True)
class FileItem:
    path: str
    line: int
    order: int
    kind: ItemKind
    names: tuple[str, ...]
    scope: tuple[str, ...]  # namespaces, outermost first; "" for one without a name
    text: str
    tokens: tuple[Token, ...]
    guards: tuple[str, ...] = ()  # conditions around it that are not settled, each as a whole #if expression
    is_definition: bool = True
    operands: tuple[str, ...] = ()  # of an operator: words of its parameters

    @property
    def name(self) -> str:
        return self.names[0] if self.names else ""

    @property
    def is_kernel(self) -> bool:
        return self.kind == "function" and any(token.text == "__global__" for token in self.tokens)

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def items_of(file: ReadFile, macros: Mapping[str, Macro], first: int = 0) -> tuple[FileItem, ...]:
    return tuple(_Splitter(file, macros, first).run())


class _Splitter:
    def __init__(self, file: ReadFile, macros: Mapping[str, Macro], first: int) -> None:
        self._file, self._macros = file, macros
        self._tokens = file.tokens
        self._at = 0
        self._order = first
        self._scope: list[str | None] = []  # None: extern "C"
        self._guards: list[str] = []

    def run(self) -> Iterator[FileItem]:
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind == "directive":
                found = self._directive(token)
                if found is not None:
                    yield found
                self._at += 1
            elif token.text == "}":
                if self._scope:
                    self._scope.pop()
                self._at += 1
            elif token.text == ";":
                self._at += 1
            elif not self._opens_namespace():
                yield from self._item()

    # -- the level of namespaces ---------------------------------------------------------------------

    def _directive(self, token: Token) -> FileItem | None:
        word, rest = first_word(token.text)
        if word == "define":
            macro = read_macro(rest)
            if isinstance(macro, str):
                return None
            text = self._with_comment(token.offset, _end_of_directive(self._file.text, token.offset))
            return self._made("macro", (macro.name,), text, macro.body, token)
        self._follow_guard(word, rest)
        return None

    def _follow_guard(self, word: str, rest: str) -> None:
        if word in ("if", "ifdef", "ifndef"):
            self._guards.append(_condition(word, rest))
        elif word in ("else", "elif") and self._guards:
            before = f"!({self._guards.pop()})"
            self._guards.append(before if word == "else" else f"{before} && ({rest})")
        elif word == "endif" and self._guards:
            self._guards.pop()

    def _opens_namespace(self) -> bool:
        texts = [token.text for token in self._tokens[self._at : self._at + 12]]
        at = 1 if texts[0] == "inline" and texts[1:2] == ["namespace"] else 0
        if texts[0] == "extern" and texts[1:2] == ['"C"'] and texts[2:3] == ["{"]:
            self._scope.append(None)
            self._at += 3
            return True
        if texts[at] != "namespace" or "{" not in texts:
            return False
        end = texts.index("{")
        names = [text for text in texts[at + 1 : end] if text.isidentifier()]
        if "=" in texts[:end]:
            return False
        if len(names) > 1:  # a::b: one brace closes both
            self._scope.append("::".join(names))
        else:
            self._scope.append(names[0] if names else "")
        self._at += end + 1
        return True

    def _names_of_scope(self) -> tuple[str, ...]:
        return tuple(part for name in self._scope if name is not None for part in name.split("::"))

    # -- one declaration -----------------------------------------------------------------------------

    def _item(self) -> Iterator[FileItem]:
        start = self._at
        if (call := self._macro_call(start)) is not None:
            yield from call
            return
        head, body, end = _extent(self._tokens, start)
        own = self._tokens[start:end]
        self._at = max(end, start + 1)
        shape = shape_of(head)
        if shape is None or not own:
            return
        kind, names, defines = shape
        if any(t.text == "enum" for t in head[:3]):
            names = (*names, *enumerators(own))
        if kind == "alias" and body:  # typedef struct { ... } name;
            names = (*typedef_names(own), *names)
        if kind == "record" and body and any(t.text == "typedef" for t in own[-4:]):
            # struct { ... } typedef name;
            names = (*(name for name in typedef_names(own) if name != "typedef"), *names)
        last = own[-1]
        text = self._with_comment(own[0].offset, last.offset + len(last.text))
        made = self._made(kind, tuple(name for name in names if name), text, own, own[0])
        if kind == "function" and made.name.startswith("operator"):
            words = tuple(token.text for token in head if token.kind == "word")
            made = replace(made, operands=words)
        yield replace(made, is_definition=defines or body)

    def _macro_call(self, at: int) -> Iterator[FileItem] | None:
        """A macro's call that is a declaration by itself: put in its place; another's is left out."""
        token = self._tokens[at]
        if token.kind != "word" or at + 1 >= len(self._tokens) or self._tokens[at + 1].text != "(":
            return None
        macro = self._macros.get(token.text)
        if macro is None and not LOUD.fullmatch(token.text):
            return None
        end = closing(self._tokens, at + 1)
        after = self._tokens[end].text if end < len(self._tokens) else ""
        if macro is not None and macro.parameters is not None:
            try:
                tokens = Expansion(self._macros, MOST_TOKENS).expand(
                    list(self._tokens[at:end]), frozenset(), 0
                )
            except Unreadable:
                tokens = []
            if tokens and tokens[-1].text not in (";", "}"):
                return None if after not in (";", "") and after != "{" else self._skip(end)
            self._at = end
            return self._expanded(tokens, token)
        return self._skip(end)

    def _skip(self, end: int) -> Iterator[FileItem]:
        """Past a call, and the body that a module's macro has."""
        self._at = end
        if end < len(self._tokens) and self._tokens[end].text == "{":
            self._at = closing(self._tokens, end)
        return iter(())

    def _expanded(self, tokens: Sequence[Token], use: Token) -> Iterator[FileItem]:
        text = _broken(tokens)
        words = tuple(lex(text))
        inner = _Splitter(ReadFile(self._file.path, text, words), {}, self._order)
        for item in inner.run():
            self._order = item.order + 1
            scope = (*self._names_of_scope(), *item.scope)
            yield replace(item, line=use.line, scope=scope, guards=(*self._guards, *item.guards))

    def _made(
        self, kind: ItemKind, names: tuple[str, ...], text: str, tokens: Sequence[Token], first: Token
    ) -> FileItem:
        self._order += 1
        scope = () if kind == "macro" else self._names_of_scope()
        place = (self._file.path, first.line, self._order - 1)
        return FileItem(*place, kind, names, scope, text, tuple(tokens), tuple(self._guards))

    def _with_comment(self, start: int, end: int) -> str:
        """Its text, with a comment that stands right above it."""
        text = self._file.text
        line = text.rfind("\n", 0, start) + 1
        above = (
            _COMMENT_ABOVE.search(text, max(0, line - 3000), line) if not text[line:start].strip() else None
        )
        comment = above.group() if above and not _BOILERPLATE.search(above.group()) else ""
        return comment + text[start:end]


def _broken(tokens: Sequence[Token]) -> str:
    """What a macro stands for, with lines as people break them."""
    lines: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]")
        if token.text == "}" and lines[-1]:
            lines.append([])
        lines[-1].append(replace(token, line=1))
        if depth == 0 and token.text in (";", "{", "}"):
            lines.append([])
    text, level = "", 0
    for line in filter(None, lines):
        level -= line[0].text == "}"
        text += "  " * max(level, 0) + layout(line).strip() + "\n"
        level += line[-1].text == "{"
    return text


def _condition(word: str, rest: str) -> str:
    name = first_word(rest)[0]
    return rest if word == "if" else f"{'!' if word == 'ifndef' else ''}defined({name})"


def _end_of_directive(text: str, start: int) -> int:
    end = text.find("\n", start)
    while end >= 0 and text[start:end].rstrip(" \t").endswith("\\"):
        end = text.find("\n", end + 1)
    return len(text) if end < 0 else end


def _extent(tokens: Sequence[Token], start: int) -> tuple[tuple[Token, ...], bool, int]:
    """The words before a body or the end, whether there is a body, and where what follows begins.

    Of branches that are not settled the first one's brackets count.
    """
    at = after_attributes(tokens, after_template(tokens, start))
    first = next(
        (t.text for t in tokens[at:] if t.kind == "word" and t.text not in ("typedef", "alignas")), ""
    )
    is_record = first in RECORDS
    depth, has_value, closed_round = 0, False, False
    waiting: list[int] = []
    head_end = 0
    body = False
    while at < len(tokens):
        token = tokens[at]
        text = token.text
        if token.kind == "directive":
            depth = _branch(first_word(text)[0], depth, waiting)
        elif text in OPENS:
            if text == "{" and depth == 0:
                head_end = head_end or at
                body = True
                if not has_value and not is_record and closed_round:
                    return tuple(tokens[start:head_end]), True, _body_end(tokens, at)
            depth += 1
        elif text in CLOSES:
            if depth == 0:  # the namespace's own
                return tuple(tokens[start : head_end or at]), body, at
            depth -= 1
            closed_round = closed_round or text == ")"
        elif depth == 0 and text == "=":
            has_value = True
        elif depth == 0 and text == ";":
            return tuple(tokens[start : head_end or at]), body, at + 1
        at += 1
    return tuple(tokens[start : head_end or at]), body, at


def _body_end(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    waiting: list[int] = []
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.kind == "directive":
            depth = _branch(first_word(token.text)[0], depth, waiting)
            continue
        depth += (token.text in OPENS) - (token.text in CLOSES)
        if depth == 0:
            break
    return at


def _branch(word: str, depth: int, waiting: list[int]) -> int:
    if word in ("if", "ifdef", "ifndef"):
        waiting.append(depth)
    elif word in ("else", "elif") and waiting:
        return waiting[-1]
    elif word == "endif" and waiting:
        waiting.pop()
    return depth
