"""A text of which some macros have known values: the conditions that these decide are gone from it.

What stays is left to the letter, comments included. A name that nobody defines here is no 0: a compiler may
define it, or a header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tunesmith.csource.conditions import ConditionReader
from tunesmith.csource.lex import CPP, Directive, Token, directives, first_word, lex
from tunesmith.csource.macros import Macro, expanded, read_macro
from tunesmith.csource.nodes import Unreadable

_INT = 1 << 31


def resolved(text: str, values: Mapping[str, int], early: Collection[str] = ()) -> str:
    """With `#define NAME value` where the text gave a known name its default; before all code where it gives
    none there, or uses the name before that, and for the names that must be known `early`."""
    work = _Resolver(text, values, early)
    found = list(directives(text))
    at = 0
    for number, directive in enumerate(found):
        start = text.rfind("\n", 0, directive.start) + 1
        end = text.find("\n", directive.end)
        end = len(text) if end < 0 else end + 1
        work.code(text[at:start])
        work.take(directive, text[start:end], found[number + 1] if number + 1 < len(found) else None)
        at = end
    work.code(text[at:])
    return work.text()


@dataclass
class _BranchInText:
    live: bool  # what stands here now may be compiled
    taken: bool  # some branch surely is: the later ones are gone
    written: bool = False  # its #if stays in the text


@dataclass
class _Resolver:
    source: str
    values: Mapping[str, int]
    early: Collection[str] = ()
    pieces: list[str] = field(default_factory=list)
    conditions: list[_BranchInText] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.macros: dict[str, Macro] = {}
        for name, value in self.values.items():
            macro = read_macro(f"{name} {value}" if value >= 0 else f"{name} ({value})")
            assert isinstance(macro, Macro), "a parameter's name does as a macro"
            self.macros[name] = macro
        self.seen = set(self.early)  # words of the code so far
        self.defined: set[str] = set()  # known names that the text defines by now
        self.remark = ""  # of a condition that holds, for the line below it

    def code(self, text: str) -> None:
        if not self._live or not text:
            return
        self.seen.update(token.text for token in lex(text) if token.kind == "word")
        if self.remark:
            indent = re.match(r"\s*\n|[ \t]*", text)
            self.pieces.append(f"{indent.group().strip(chr(10)) if indent else ''}{self.remark}\n")
            self.remark = ""
        self.pieces.append(text)

    @property
    def _live(self) -> bool:
        return all(condition.live for condition in self.conditions)

    @property
    def _sure(self) -> bool:
        """Whether what stands here is compiled in every configuration."""
        return not any(condition.written for condition in self.conditions)

    def take(self, directive: Directive, raw: str, following: Directive | None) -> None:
        word, rest = directive.word, directive.rest
        if word in ("if", "ifdef", "ifndef"):
            self._open(word, rest, raw, following)
        elif word in ("elif", "else", "endif") and self.conditions:
            self._go_on(word, rest, raw)
        elif self._live:
            self.remark = ""
            if word in ("define", "undef"):
                self._define(word, rest)
            self.seen.update(token.text for token in lex(rest) if token.kind == "word")
            self.pieces.append(raw)

    def _define(self, word: str, rest: str) -> None:
        macro = read_macro(rest) if word == "define" else None
        name = first_word(rest)[0]
        if isinstance(macro, Macro) and self._sure and name not in self.macros:
            self.macros[name] = macro
        elif name not in self.values:
            self.macros.pop(name, None)  # one of several, and which is not known
            self.seen.add(name)

    def _open(self, word: str, rest: str, raw: str, following: Directive | None) -> None:
        if not self._live:
            self.conditions.append(_BranchInText(live=False, taken=True))
            return
        name = first_word(rest)[0]
        if word == "ifndef" and name in self.values:
            self._settle(name, following)
        holds, left = self._decide(word, rest)
        if holds is None:
            self.remark = ""
            self.pieces.append(raw if left == rest else _with(raw, rest, left))
        elif holds:
            self.remark = _remark(raw)
        self.conditions.append(_BranchInText(holds is not False, holds is True, holds is None))

    def _settle(self, name: str, following: Directive | None) -> None:
        """A known name's default gives way to its value, unless the name was used before it."""
        is_default = following is not None and following.word == "define"
        if following is None or not is_default or first_word(following.rest)[0] != name or not self._sure:
            return
        if name in self.seen or name in self.defined:
            return
        raw = self.source[self.source.rfind("\n", 0, following.start) + 1 : following.end]
        self.pieces.append(f"#define {name} {shown(self.values[name])}{_behind(raw)}\n")
        self.defined.add(name)

    def _go_on(self, word: str, rest: str, raw: str) -> None:
        condition = self.conditions.pop()
        outer = self._live
        if word == "endif":
            if condition.written:
                self.pieces.append(raw)
            self.remark = ""
            return
        holds, left = (True, "") if word == "else" else (None, rest)
        if not outer or condition.taken:
            holds = False
        elif word == "elif":
            holds, left = self._decide("if", rest)
        if holds is None:
            said = raw if left == rest else _with(raw, rest, left)
            self.pieces.append(said if condition.written else said.replace("elif", "if", 1))
            condition.written = True
        elif holds and condition.written:
            self.pieces.append(raw if word == "else" else f"#else{_behind(raw)}\n")
        self.remark = _remark(raw) if holds and not condition.written else ""
        condition.live = holds is not False
        condition.taken = condition.taken or holds is True
        self.conditions.append(condition)

    def _decide(self, word: str, rest: str) -> tuple[bool | None, str]:
        if word == "if":
            return _simplified(rest, lex(rest), self._value)
        known = first_word(rest)[0] in self.macros or None
        return (known if word == "ifdef" else False if known else None), rest

    def _value(self, tokens: Sequence[Token]) -> bool | None:
        asked = _without_defined(tokens, self.macros)
        value = asked and value_of(asked, self.macros)
        return None if value is None else bool(value)

    def text(self) -> str:
        """The known names that have not found their place stand before all else."""
        whole = "".join(self.pieces)
        late = [name for name in self.values if name not in self.defined]
        return "".join(f"#define {name} {shown(self.values[name])}\n" for name in late) + whole


def shown(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


def value_of(tokens: Sequence[Token], macros: Mapping[str, Macro]) -> int | None:
    """None: it depends on names that no macro here has."""
    try:
        left = expanded(tokens, macros)
        return None if any(t.kind == "word" for t in left) else ConditionReader(left).value()
    except Unreadable:
        return None


def _without_defined(tokens: Sequence[Token], macros: Collection[str]) -> list[Token] | None:
    """`defined X` as 1 where it is; None where it may not be."""
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        if tokens[at].text != "defined":
            done.append(tokens[at])
            at += 1
            continue
        group = [token.text for token in tokens[at + 1 : at + 4]]
        in_brackets = len(group) == 3 and group[0] == "(" and group[2] == ")"
        if (group[1] if in_brackets else "".join(group[:1])) not in macros:
            return None
        done.append(Token("number", "1", tokens[at].line, tokens[at].space))
        at += 4 if in_brackets else 2
    return done


def _simplified(
    text: str, tokens: Sequence[Token], value: Callable[[Sequence[Token]], bool | None]
) -> tuple[bool | None, str]:
    """Whether it holds, and what of it is left to ask; parts joined by && and || one by one."""
    for mark, settles in (("||", True), ("&&", False)):
        parts = _parts(tokens, mark)
        if len(parts) == 1:
            continue
        left: list[str] = []
        for part in parts:
            holds, said = _simplified(text, part, value)
            if holds is settles:
                return settles, ""
            left += [said] if holds is None else []
        whole = len(left) == len(parts) and all(
            said == _slice(text, p) for said, p in zip(left, parts, strict=True)
        )
        if whole:
            return None, _slice(text, tokens)
        return (None, f" {mark} ".join(left)) if left else (not settles, "")
    if tokens and tokens[0].text == "(" and _closes(tokens) == len(tokens) - 1:
        holds, said = _simplified(text, tokens[1:-1], value)
        single = holds is None and not any(t.text in ("||", "&&", "?", ",") for t in lex(said))
        return holds, said if single else f"({said})"
    return value(tokens), _slice(text, tokens)


def _parts(tokens: Sequence[Token], mark: str) -> list[list[Token]]:
    """At a mark outside brackets; a choice `a ? b : c` is of one piece."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == "?":
            return [list(tokens)]
        if depth == 0 and token.text == mark:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _closes(tokens: Sequence[Token]) -> int:
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return at
    return len(tokens)


def _slice(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].offset : tokens[-1].offset + len(tokens[-1].text)] if tokens else ""


def _with(raw: str, rest: str, left: str) -> str:
    """A directive that asks less, with the comment behind it."""
    word = re.match(r"\s*#\s*\w+", raw)
    return raw.replace(rest, left) if raw.count(rest) == 1 else f"{word.group() if word else '#if'} {left}\n"


def _behind(raw: str) -> str:
    """The comment behind a directive on its line, with two blanks before it."""
    found = [match.group() for match in CPP.finditer(raw) if match.lastgroup == "comment"]
    return f"  {found[-1].strip()}" if found and "\n" not in found[-1] else ""


def _remark(raw: str) -> str:
    return _behind(raw).strip()


# -- macros that are numbers by now ---------------------------------------------------------------------

_COMPARING = ("==", "!=", "<", ">", "<=", ">=", "&&", "||", "!")


def folded(text: str, values: Mapping[str, int]) -> str:
    """With numbers for the macros whose bodies are arithmetic over known values."""
    macros = {
        name: m for name, v in values.items() if isinstance(m := read_macro(f"{name} {shown(v)}"), Macro)
    }
    pieces: list[str] = []
    at = depth = 0
    for directive in directives(text):
        depth += (directive.word in ("if", "ifdef", "ifndef")) - (directive.word == "endif")
        macro = read_macro(directive.rest) if directive.word == "define" and depth == 0 else None
        if not isinstance(macro, Macro) or macro.parameters is not None or macro.name in macros:
            continue
        macros[macro.name] = macro
        value = value_of(macro.body, macros) if len(macro.body) > 1 and _is_int(macro.body) else None
        if value is not None and 0 <= value < _INT:
            comment = _behind(text[directive.start : directive.end])
            pieces += [text[at : directive.start], f"#define {macro.name} {value}{comment}"]
            at = directive.end
    return "".join([*pieces, text[at:]])


def _is_int(body: Sequence[Token]) -> bool:
    """Whether a macro's arithmetic is that of plain ints: a comparison is a bool in C++, 1u is unsigned."""
    if any(
        t.kind not in ("word", "number", "mark") or (t.kind == "number" and not t.text.isdigit())
        for t in body
    ):
        return False
    while body and body[0].text == "(" and _closes(body) == len(body) - 1:
        body = body[1:-1]
    depth, question = 0, None
    for at, token in enumerate(body):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == "?":
            question = at
            break
    if question is None:
        return not any(token.text in _COMPARING for token in body)
    nested = depth = 0
    for at in range(question + 1, len(body)):
        mark = body[at].text
        depth += (mark == "(") - (mark == ")")
        nested += (mark == "?") - (mark == ":") if depth == 0 else 0
        if nested < 0:
            return _is_int(body[question + 1 : at]) and _is_int(body[at + 1 :])
    return False
