"""Declarations at the level of namespaces: what each is called, and where it begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from tunesmith.plugins.repo.extract.tree import ReadFile, directive_end
from tunesmith.source.lex import Token, lay_out_tokens, lex, split_at
from tunesmith.source.macros import MAX_TOKENS, Expansion, Macro, read_macro
from tunesmith.source.text import first_word
from tunesmith.source.tree import Unreadable

ItemKind = Literal["macro", "function", "record", "alias", "variable", "using"]
RECORDS = frozenset({"struct", "class", "union", "enum"})
OPENS, CLOSES = frozenset("([{"), frozenset(")]}")
_BEFORE = frozenset({"__align__", "__attribute__", "alignas"})
# A word with parentheses behind it that is no function's name.
_ATTRIBUTES = frozenset({
    "__launch_bounds__", "__attribute__", "alignas", "__align__", "decltype", "noexcept", "__declspec",
    "explicit", "__cluster_dims__", "__maxnreg__", "requires", "__builtin_align__", "sizeof",
    "__block_size__",
})  # fmt: skip
LOUD = re.compile(r"[A-Z][A-Z0-9_]{3,}")


def after_brackets(tokens: Sequence[Token], at: int) -> int:
    """Where what follows the bracket at `at` and all inside it begins."""
    depth = 0
    for end in range(at, len(tokens)):
        text = tokens[end].text
        depth += (text in OPENS) - (text in CLOSES)
        if depth == 0:
            return end + 1
    return len(tokens)


def past_bracket(text: str, at: int, pair: str) -> int:
    """Where what follows the bracket at `at` begins; 0: it is not closed."""
    depth = 0
    for found in re.compile(f"[{re.escape(pair)}]").finditer(text, at):
        depth += 1 if found[0] == pair[0] else -1
        if depth == 0:
            return found.end()
    return 0


def split_text(text: str, mark: str = ",", opens: str = "<(", closes: str = ">)") -> list[str]:
    """At marks outside of all brackets."""
    parts, depth, last = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign in opens) - (sign in closes)
        if depth == 0 and text.startswith(mark, at):
            parts.append(text[last:at])
            last = at + len(mark)
    return [*parts, text[last:]]


def after_template(tokens: Sequence[Token], at: int) -> int:
    """Past `template <...>`, all of them."""
    while at + 1 < len(tokens) and tokens[at].text == "template" and tokens[at + 1].text == "<":
        at = _after_angles(tokens, at + 1)
    return at


def _after_angles(tokens: Sequence[Token], at: int) -> int:
    depth = round_ = 0
    for end in range(at, len(tokens)):
        text = tokens[end].text
        round_ += (text in OPENS) - (text in CLOSES)
        if round_ == 0:
            depth += {"<": 1, ">": -1, ">>": -2}.get(text, 0)
            if depth <= 0:
                return end + 1
    return len(tokens)


def shape_of(head: Sequence[Token]) -> tuple[ItemKind, tuple[str, ...], bool] | None:
    """Kind and names; None: nothing that others could need."""
    at = after_template(head, 0)
    words = [t for t in head[at:] if t.kind != "directive"]
    texts = [t.text for t in words]
    if not texts or texts[0] in ("template", "static_assert", "friend", "asm"):
        return None
    if texts[0] == "extern" and texts[1:2] == ["template"]:
        return None
    if texts[0] in ("using", "namespace"):
        return _alias_shape(texts)
    if texts[0] == "typedef":
        pointer = next((texts[i + 2] for i in range(len(texts) - 2) if texts[i : i + 2] == ["(", "*"]), None)
        return "alias", (pointer or next(t for t in reversed(texts) if t.isidentifier()),), True
    aligned = texts[after_attributes(words, 0) :]
    plain = [t for t in aligned if t not in ("inline", "static", "constexpr", "const", "__device__")]
    if plain and plain[0] in RECORDS:
        return "record", _record_names(words), False
    return _function_or_variable(words)


def after_attributes(tokens: Sequence[Token], at: int) -> int:
    """`__align__(8) struct Pair { ... };` is a struct."""
    while at + 1 < len(tokens) and tokens[at].text in _BEFORE and tokens[at + 1].text == "(":
        at = after_brackets(tokens, at + 1)
    return at


def _alias_shape(texts: Sequence[str]) -> tuple[ItemKind, tuple[str, ...], bool]:
    if texts[0] == "using" and texts[1:2] == ["namespace"]:
        return "using", (), True
    if "=" in texts:
        return "alias", (texts[1],), True
    return "alias", (next((t for t in reversed(texts) if t.isidentifier()), ""),), True


def _record_names(words: Sequence[Token]) -> tuple[str, ...]:
    texts = [t.text for t in words]
    at = next(i for i, text in enumerate(texts) if text in RECORDS) + 1
    name = ""
    while at < len(texts):
        text = texts[at]
        if text == "(":
            at, name = after_brackets(words, at), ""
            continue
        if text == "[":
            at = after_brackets(words, at)
            continue
        if text in (":", "<", "final"):
            break
        if text.isidentifier() and text not in ("class", "struct"):
            name = text
        at += 1
    return (name,)


def enumerator_names(tokens: Sequence[Token]) -> tuple[str, ...]:
    at = next((i for i, t in enumerate(tokens) if t.text == "{"), None)
    if at is None:
        return ()
    listed = split_at(",", tokens[at + 1 : after_brackets(tokens, at) - 1])
    return tuple(part[0].text for part in listed if part and part[0].kind == "word")


def typedef_names(tokens: Sequence[Token]) -> tuple[str, ...]:
    at = next(i for i, t in enumerate(tokens) if t.text == "{")
    return tuple(t.text for t in tokens[after_brackets(tokens, at) :] if t.kind == "word")


def _function_or_variable(words: Sequence[Token]) -> tuple[ItemKind, tuple[str, ...], bool] | None:
    texts = [t.text for t in words]
    at, depth = 0, 0
    while at < len(texts):
        text = texts[at]
        if text == "operator":
            end = next((i for i in range(at + 2, len(texts)) if texts[i] == "("), len(texts))
            return "function", ("operator" + "".join(texts[at + 1 : end]),), False
        if text in _ATTRIBUTES and texts[at + 1 : at + 2] == ["("]:
            at = after_brackets(words, at + 1)
            continue
        if text == "<" and at and words[at - 1].kind == "word":
            at = _after_angles(words, at)
            continue
        if text == "[" and texts[at + 1 : at + 2] == ["["]:
            at = after_brackets(words, at)
            continue
        if text == "(" and depth == 0:
            before = _callee_name(words, at)
            if before is None:
                return None
            if LOUD.fullmatch(before) and _more_follows(words, at):  # an attribute that is a macro
                at = after_brackets(words, at)
                continue
            return "function", (before,), False
        if text in ("=", "[", "{"):
            break
        at += 1
    names = [t for t in texts[:at] if t.isidentifier()]
    return ("variable", (names[-1],), True) if len(names) > 1 else None


def _more_follows(words: Sequence[Token], at: int) -> bool:
    end = after_brackets(words, at)
    return end < len(words) and words[end].kind == "word" and words[end].text not in ("const", "noexcept")


def _callee_name(words: Sequence[Token], at: int) -> str | None:
    """The name before "(", of a member that is defined outside its class the class."""
    end = _before_angles(words, at - 1)  # name<...>( of a specialisation
    if end < 0 or words[end].kind != "word":
        return None
    first = end
    while first >= 2 and words[first - 1].text == "::":
        first = _before_angles(words, first - 2)
    return words[first].text if words[first].kind == "word" else words[end].text


def _before_angles(words: Sequence[Token], end: int) -> int:
    """Before the template arguments that end there."""
    depth = 0
    while end >= 0 and (depth or words[end].text == ">"):
        depth += {">": 1, "<": -1, ">>": 2}.get(words[end].text, 0)
        end -= 1
        if depth <= 0:
            break
    return end


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
    def spaces(self) -> tuple[str, ...]:
        """Its namespaces that have a name."""
        return tuple(filter(None, self.scope))

    @property
    def qualified_name(self) -> str:
        return "::".join((*self.spaces, self.name))

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
                found = self._read_directive(token)
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

    def _read_directive(self, token: Token) -> FileItem | None:
        word, rest = first_word(token.text)
        if word == "define":
            macro = read_macro(rest)
            if isinstance(macro, str):
                return None
            text = self._with_comment(token.offset, directive_end(self._file.text, token.offset))
            return self._made("macro", (macro.name,), text, macro.body, token)
        if word in ("if", "ifdef", "ifndef"):
            self._guards.append(_guard_condition(word, rest))
        elif word in ("else", "elif") and self._guards:
            before = f"!({self._guards.pop()})"
            self._guards.append(before if word == "else" else f"{before} && ({rest})")
        elif word == "endif" and self._guards:
            self._guards.pop()
        return None

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
        self._scope.append("::".join(names))  # of a::b one brace closes both
        self._at += end + 1
        return True

    def _names_of_scope(self) -> tuple[str, ...]:
        return tuple(part for name in self._scope if name is not None for part in name.split("::"))

    def _item(self) -> Iterator[FileItem]:
        start = self._at
        if (call := self._macro_call(start)) is not None:
            yield from call
            return
        head, body, end = _item_extent(self._tokens, start)
        words = self._tokens[start:end]
        self._at = max(end, start + 1)
        shape = shape_of(head)
        if shape is None or not words:
            return
        kind, names, defines = shape
        if any(t.text == "enum" for t in head[:3]):
            names = (*names, *enumerator_names(words))
        if kind == "alias" and body:  # typedef struct { ... } name;
            names = (*typedef_names(words), *names)
        if kind == "record" and body and any(t.text == "typedef" for t in words[-4:]):
            # struct { ... } typedef name;
            names = (*(name for name in typedef_names(words) if name != "typedef"), *names)
        last = words[-1]
        text = self._with_comment(words[0].offset, last.offset + len(last.text))
        made = self._made(kind, tuple(name for name in names if name), text, words, words[0])
        if kind == "function" and made.name.startswith("operator"):
            made = replace(made, operands=tuple(token.text for token in head if token.kind == "word"))
        yield replace(made, is_definition=defines or body)

    def _macro_call(self, at: int) -> Iterator[FileItem] | None:
        """A macro's call that is a declaration by itself: put in its place; another's is left out."""
        token = self._tokens[at]
        if token.kind != "word" or at + 1 >= len(self._tokens) or self._tokens[at + 1].text != "(":
            return None
        macro = self._macros.get(token.text)
        if macro is None and not LOUD.fullmatch(token.text):
            return None
        end = after_brackets(self._tokens, at + 1)
        after = self._tokens[end].text if end < len(self._tokens) else ""
        if macro is not None and macro.parameters is not None:
            try:
                tokens = Expansion(self._macros, MAX_TOKENS).expand(
                    list(self._tokens[at:end]), frozenset(), 0
                )
            except Unreadable:
                tokens = []
            if tokens and tokens[-1].text not in (";", "}"):
                return None if after not in (";", "") and after != "{" else self._skip(end)
            self._at = end
            return self._expand_macro(tokens, token)
        return self._skip(end)

    def _skip(self, end: int) -> Iterator[FileItem]:
        """Past a call, and the body that a module's macro has."""
        self._at = end
        if end < len(self._tokens) and self._tokens[end].text == "{":
            self._at = after_brackets(self._tokens, end)
        return iter(())

    def _expand_macro(self, tokens: Sequence[Token], use: Token) -> Iterator[FileItem]:
        text = _break_lines(tokens)
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
        stands_first = not text[line:start].strip()
        above = _COMMENT_ABOVE.search(text, max(0, line - 3000), line) if stands_first else None
        comment = above.group() if above and not _BOILERPLATE.search(above.group()) else ""
        return comment + text[start:end]


def _break_lines(tokens: Sequence[Token]) -> str:
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
        text += "  " * max(level, 0) + lay_out_tokens(line).strip() + "\n"
        level += line[-1].text == "{"
    return text


def _guard_condition(word: str, rest: str) -> str:
    name = first_word(rest)[0]
    return rest if word == "if" else f"{'!' if word == 'ifndef' else ''}defined({name})"


def _item_extent(tokens: Sequence[Token], start: int) -> tuple[tuple[Token, ...], bool, int]:
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
            depth = _depth_at_branch(first_word(text)[0], depth, waiting)
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
            depth = _depth_at_branch(first_word(token.text)[0], depth, waiting)
            continue
        depth += (token.text in OPENS) - (token.text in CLOSES)
        if depth == 0:
            break
    return at


def _depth_at_branch(word: str, depth: int, waiting: list[int]) -> int:
    if word in ("if", "ifdef", "ifndef"):
        waiting.append(depth)
    elif word in ("else", "elif") and waiting:
        return waiting[-1]
    elif word == "endif" and waiting:
        waiting.pop()
    return depth


_NO_TYPES = frozenset({
    "return", "else", "case", "goto", "new", "delete", "sizeof", "throw", "operator", "typename", "do",
    "struct", "class", "enum", "union", "using", "namespace", "template", "co_return", "alignof", "if",
    "while", "not", "and", "or", "inline", "decltype",
})  # fmt: skip
_BEHIND_NAME = frozenset({"=", ";", ",", ")", "[", "{", ":", "("})


@dataclass(frozen=True)
class NameUse:
    name: str
    qualifiers: tuple[str, ...]  # a::b before it; "" first: from the top
    line: int
    declared_here: bool  # the same word names a parameter or a variable of the declaration


def uses_of(item: FileItem) -> tuple[NameUse, ...]:
    tokens = tuple(_words_with_directives(item.tokens))
    declared = _declared_names(item, tokens)
    found: dict[tuple[str, tuple[str, ...]], NameUse] = {}
    for at, token in enumerate(tokens):
        if token.kind != "word" or (at and tokens[at - 1].text in (".", "->")):
            continue
        qualifiers = _qualifiers_before(tokens, at)
        if qualifiers is None:
            continue
        key = (token.text, qualifiers)
        found.setdefault(key, NameUse(token.text, qualifiers, token.line, token.text in declared))
    return tuple(found.values())


def _words_with_directives(tokens: Sequence[Token]) -> Iterator[Token]:
    """With what stands in conditions and pragmas."""
    for token in tokens:
        if token.kind != "directive":
            yield token
            continue
        word, rest = first_word(token.text)
        if word in ("if", "elif", "ifdef", "ifndef", "pragma"):
            yield from (part for part in lex(rest, token.line) if part.kind == "word")


def _qualifiers_before(tokens: Sequence[Token], at: int) -> tuple[str, ...] | None:
    """None: a member of what a template makes."""
    found: list[str] = []
    while at >= 1 and tokens[at - 1].text == "::":
        if at < 2 or tokens[at - 2].kind != "word" or tokens[at - 2].text in _NO_TYPES:
            return None if at >= 2 and tokens[at - 2].text == ">" else ("", *reversed(found))
        found.append(tokens[at - 2].text)
        at -= 2
    return tuple(reversed(found))


def _declared_names(item: FileItem, tokens: Sequence[Token]) -> frozenset[str]:
    """Parameters and variables: a word behind a type, and before what ends a name."""
    if item.kind == "macro":
        return frozenset()
    found = (
        set(_function_parameter_names(item, tokens)) - set(item.names) if item.kind == "function" else set()
    )
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.kind != "word" or after.text not in _BEHIND_NAME or token.text in item.names:
            continue
        typed = before.kind == "word" and before.text not in _NO_TYPES
        if typed or (
            before.text in ("*", "&", ">")
            and after.text in (",", ")", "=", ";")
            and _is_declaration_line(token, tokens)
        ):
            found.add(token.text)
    return frozenset(found)


def _function_parameter_names(item: FileItem, tokens: Sequence[Token]) -> Iterator[str]:
    """Names of parameters: the last word of each, before what it is by default."""
    depth, last = 0, ""
    pairs = pairwise(tokens)
    start = next(
        (at for at, (name, mark) in enumerate(pairs) if (name.text, mark.text) == (item.name, "(")), 0
    )
    for token in tokens[start:]:
        if token.text == "{" and depth == 0:
            return
        depth += (token.text == "(") - (token.text == ")")
        if depth == 1 and token.kind == "word":
            last = token.text
        elif (depth == 1 and token.text in (",", "=", "[")) or (depth == 0 and token.text == ")"):
            if last:
                yield last
            last = ""


def _is_declaration_line(token: Token, tokens: Sequence[Token]) -> bool:
    """Whether the line starts with a type: `const T* x = `, not `y = a * x`."""
    line = [t for t in tokens if t.line == token.line and t.offset <= token.offset]
    return bool(line) and line[0].kind == "word" and not any(t.text in ("=", "(", "return") for t in line)
