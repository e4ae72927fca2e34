"""C text as words, and words as text again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from tunesmith.source.text import NUMBER, WORD, find_elements, join_directive_lines
from tunesmith.source.tree import Comment

Kind = Literal["word", "number", "string", "mark", "directive"]

_CODE = re.compile(
    rf"""
      (?P<space>[ \t\f\v\r]+)
    | (?P<word>{WORD})
    | (?P<number>{NUMBER})
    | (?P<mark><<<|<<=|>>=|\.\.\.|->\*?|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#|[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
MAX_WORDS = 50_000
MAX_BRACKETS = 256  # within each other, as clang has it
MAX_RUN = 2 * MAX_BRACKETS
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
DEPTHS = _BRACKETS | {"<": 1, ">": -1, ">>": -2}


@dataclass(frozen=True, slots=True)
class Token:
    """`space`: the blanks before it on its line. A directive's text is the whole of it after the #.

    `comments`: those that stand between it and the word before, and one behind it at the end of its line.
    """

    kind: Kind
    text: str
    line: int
    space: str = ""
    offset: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return self.text


def lex(text: str, line: int = 1) -> list[Token]:
    found: list[Token] = []
    space = ""
    ahead: list[Comment] = []  # of the word to come

    def add(kind: Kind, word: str, start: int) -> None:
        nonlocal space, ahead
        found.append(Token(kind, word, line, space, start, tuple(ahead)))
        space, ahead = "", []

    for kind, start, end in find_elements(text):
        whole = text[start:end]
        match kind:
            case "newline":
                space = ""
            case "space":
                space = whole.rpartition("\n")[2] if "\n" in whole else space + whole
            case "comment":
                space = "" if "\n" in whole else f"{space} "
                behind = _is_behind(found, line, text, end)
                comment = read_comment(whole, line, behind)
                if comment is not None and behind:
                    found[-1] = replace(found[-1], comments=(*found[-1].comments, comment))
                elif comment is not None:
                    ahead.append(comment)
            case "directive":
                add("directive", join_directive_lines(whole[1:]), start)
            case "string":
                add("string", whole, start)
            case _:
                for word in _CODE.finditer(text, start, end):
                    if word.lastgroup == "space":
                        space = word.group()
                    else:
                        add(_KINDS[word.lastgroup or "mark"], word.group(), word.start())
        line += whole.count("\n")
    return found


_KINDS: dict[str, Kind] = {"word": "word", "number": "number", "mark": "mark"}


def _is_behind(found: Sequence[Token], line: int, text: str, end: int) -> bool:
    """Whether a comment that ends at `end` closes the line of the last word."""
    if not found or found[-1].kind == "directive" or found[-1].line + found[-1].text.count("\n") != line:
        return False
    return _LINE_END.match(text, end) is not None


_LINE_END = re.compile(r"[ \t\f\v\r]*(?:\n|\Z)")
_STARTS = re.compile(r"(?:[/*]{1,4}[!<]+|[/*\s])+")
_ENDS = re.compile(r"(?:[\\\s]|\?\?/)+\Z")
_MAX_LINES, _MAX_WIDTH = 20, 160


def read_comment(text: str, line: int, behind: bool = False) -> Comment | None:
    """Its words, as far as they can stand in any comment; None where it has none."""
    inner = text[2:].removesuffix("*/") if text.startswith("/*") else text
    lines: list[str] = []
    for part in inner.split("\n", _MAX_LINES)[:_MAX_LINES]:
        shown = "".join(sign if sign.isprintable() else " " for sign in part[:_MAX_WIDTH])
        opening = _STARTS.match(shown)
        words = _ENDS.sub("", shown[opening.end() :] if opening else shown)
        lines += [words] if any(sign.isalnum() for sign in words) else []
    return Comment("\n".join(lines), line, behind) if lines else None


def deep_bracket(tokens: Iterable[Token], most: int) -> Token | None:
    """The first that opens one bracket too many."""
    depth = 0
    for token in tokens:
        depth = max(depth + _BRACKETS.get(token.text, 0), 0)  # one that closes nothing makes no room
        if depth > most:
            return token
    return None


def _long_run(tokens: Iterable[Token]) -> Token | None:
    """Where more brackets and operators than can be nested stand with no name or number between them."""
    run = 0
    for token in tokens:
        run = run + 1 if token.kind == "mark" else 0
        if run > MAX_RUN:
            return token
    return None


def find_parse_obstacle(tokens: Sequence[Token]) -> str | None:
    """Why a grammar should not be shown this: no compiler takes it, and a grammar takes long to say so."""
    if len(tokens) > MAX_WORDS:
        return f"it has {len(tokens):,} words, at most {MAX_WORDS:,} are read; split the file up"
    if deep := deep_bracket(tokens, MAX_BRACKETS):
        advice = "split the expression or the block up"
        return f"line {deep.line}: brackets are nested more than {MAX_BRACKETS} levels deep; {advice}"
    if lone := next((t for t in tokens if t.kind == "mark" and t.text in ("'", '"')), None):
        return f"line {lone.line}: a quote has no other half; close it"
    if at := _long_run(tokens):
        fault = f"more than {MAX_RUN} brackets and operators stand one after the other"
        return f"line {at.line}: {fault}; take those out that do nothing"
    return None


_CLOSERS = {"(": ")", "[": "]", "{": "}"}


def closing_bracket(tokens: Sequence[Token], at: int) -> int:
    """Where the bracket at `at` closes; the end where nothing does."""
    opens, depth = tokens[at].text, 0
    closes = _CLOSERS[opens]
    for end in range(at, len(tokens)):
        depth += (tokens[end].text == opens) - (tokens[end].text == closes)
        if depth == 0:
            return end
    return len(tokens)


W = TypeVar("W", str, Token)


def split_at(mark: str, words: Iterable[W]) -> list[list[W]]:
    """The words between marks that stand outside every kind of bracket."""
    parts: list[list[W]] = [[]]
    depth = 0
    for word in words:
        text = str(word)
        depth += DEPTHS.get(text, 0)
        if text == mark and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


_NO_TEMPLATE_INSIDE = frozenset({"&&", "||", ";", "{", "}", "?", "=", "+=", "-=", "!", "==", "!="})
_DEEPEST_TEMPLATE = 16  # templates within templates
_ROUND = {"(": 1, "[": 1, ")": -1, "]": -1}
_ANGLE = {"<": 1, ">": -1, ">>": -2}
_TELLING = frozenset((*_ROUND, *_ANGLE, *_NO_TEMPLATE_INSIDE))


def closing_angle(tokens: Sequence[Token], at: int) -> int | None:
    """Where the "<" at `at` closes if what is between can be template arguments."""
    depth, round_ = 0, 0
    for end in range(at, min(at + 120, len(tokens))):
        text = tokens[end].text
        if text not in _TELLING:
            continue
        round_ += _ROUND.get(text, 0)
        if round_ < 0:
            return None
        if round_:
            continue
        if text in _NO_TEMPLATE_INSIDE and not (text == "=" and tokens[at - 1].text == "template"):
            return None
        depth += _ANGLE.get(text, 0)
        if depth > _DEEPEST_TEMPLATE:
            return None
        if depth <= 0:
            return end if depth == 0 else None  # a < b >> c shifts
    return None


def lay_out_tokens(
    tokens: Iterable[Token], first_line: int | None = None, *, with_comments: bool = False
) -> str:
    """The words as text, each on its own line number counted from `first_line` (or the first word's).

    Comments stand on lines of their own or end one, whatever stood behind them.
    """
    pieces: list[str] = []
    line = first_line
    previous: Token | None = None
    for token in tokens:
        said = token.comments if with_comments else ()
        for comment in (comment for comment in said if not comment.behind and comment.line < token.line):
            line = comment.line if line is None else line
            fresh = not pieces or pieces[-1].endswith("\n")
            pieces.append("\n" * max(comment.line - line, 0 if fresh else 1))
            pieces += [f"{token.space}// {words}\n" for words in comment.lines]
            line = max(comment.line, line) + len(comment.lines)
        line = token.line if line is None else line
        breaks = max(token.line - line, 0)
        if token.kind == "directive":
            breaks = max(breaks, bool(pieces) and not pieces[-1].endswith("\n"))
            pieces.append("\n" * breaks + f"#{token.text}\n")
            line = max(token.line, line) + 1
        else:
            space = token.space
            if not breaks and not space and previous is not None and _would_join(previous, token):
                space = " "
            pieces.append("\n" * breaks + space + token.text)
            line = max(token.line, line) + token.text.count("\n")
        for comment in (comment for comment in said if comment.behind and len(comment.lines) == 1):
            pieces.append(f"  // {comment.text}\n")
            line += 1
        previous = token
    return "".join(pieces)


def squeeze_tokens(tokens: Sequence[Token]) -> str:
    """One line in the usual spacing: for types and template arguments."""
    text = ""
    for at, token in enumerate(tokens):
        previous = tokens[at - 1] if at else None
        gap = previous is not None and (
            previous.text == ","
            or (_is_wordlike(previous) and (_is_wordlike(token) or token.text in ("*", "&")))
            or (token.space != "" and token.text not in (",", ">", ")") and previous.text not in "<(")
        )
        text += (" " if gap else "") + token.text
    return text


def _is_wordlike(token: Token) -> bool:
    return token.kind in ("word", "number", "string")


def _would_join(left: Token, right: Token) -> bool:
    if (are_words := _is_wordlike(left) and _is_wordlike(right)) or "word" in (left.kind, right.kind):
        return are_words
    match = _CODE.match(left.text + right.text)
    is_other = left.text[-1:] + right.text[:1] in "// /* <: <% %: %> :>"  # comments and digraphs
    return is_other or (match is not None and match.end() > len(left.text))
