"""C text as words. Comments, strings, numbers, directives and lines that go on are known here alone."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

# -- A comment of a kernel's source, apart from the tree: whoever only takes a text into words needs no
# tree.


@dataclass(frozen=True)
class Comment:
    """Words about a statement: lines of plain text, without the signs that make a comment of them.

    Somebody else may have written them, so a line that would be more than a comment is none: one that goes on
    with the next (`??/` is a backslash to old compilers), or that opens the declaration of a template.
    """

    text: str
    line: int = 0  # in the user's file; 0: ours
    behind: bool = False  # at the end of the statement's first line, not on lines before it

    def __post_init__(self) -> None:
        for words in self.text.split("\n"):
            if words.endswith(("\\", "??/")) or words.startswith("/") or not words.isprintable():
                raise ValueError(f"no line of a comment: {words!r}")

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")


Kind = Literal["word", "number", "string", "mark", "directive"]

_SPLICE = r"\\[ \t]*\r?\n"
_RAW = r"""(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)"|"""
_WORD, _NUMBER = r"[^\W\d]\w*", r"\.?\d(?:'(?=\w)|[eEpP][+-]|[\w.])*"


def _compile_token_pattern(is_c: bool) -> re.Pattern[str]:
    """What a text is made of, code in long pieces. C has neither raw strings nor 1'000."""
    raw, no_raw = ("", "") if is_c else (_RAW, r"""(?!(?:u8|[uUL])?R")""")
    number = _NUMBER.replace(r"'(?=\w)|", "") if is_c else _NUMBER
    return re.compile(
        rf"""
          (?P<newline>\n)
        | (?P<space>(?:[ \t\f\v\r]|{_SPLICE})+)
        | (?P<comment>//(?:{_SPLICE}|[^\n])*|/\*.*?(?:\*/|\Z))
        | (?P<string>{raw}"(?:\\(?:\r\n|.)|[^"\\\n])*"|'(?:\\(?:\r\n|.)|[^'\\\n])+')
        | (?P<code>(?:{no_raw}{_WORD}|{number}|[^\w"'/\#.\\\n]+|\.(?!\d))+|/=?|\#\#?|.)
        """,
        re.VERBOSE | re.DOTALL,
    )


CPP, C = (
    _compile_token_pattern(is_c=False),
    _compile_token_pattern(is_c=True),
)  # their matches join: nothing of a text is left out
_CODE = re.compile(
    rf"""
      (?P<space>[ \t\f\v\r]+)
    | (?P<word>{_WORD})
    | (?P<number>{_NUMBER})
    | (?P<mark><<<|<<=|>>=|\.\.\.|->\*?|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#|[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_STRING = re.compile(r"(\\\r?\n)|[^\r\n]")
_NO_BREAK = re.compile(r"[^\r\n]")
_SPLICED = re.compile(_SPLICE)
MAX_TEXT = 500_000  # characters of a source
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


class Directive(NamedTuple):
    """`#word rest`, without comments and as one line; `start` and `end` are places in the text."""

    word: str
    rest: str
    line: int
    start: int
    end: int


_Element = tuple[str, int, int]  # its kind, where it starts and ends
_SHORT = 100_000  # of texts that are no longer, a few are remembered: each is asked several things in turn


def _find_elements(text: str) -> Iterable[_Element]:
    """Everything there is, each directive whole."""
    return _scan_elements_cached(text) if len(text) <= _SHORT else _scan_elements(text)


@lru_cache(maxsize=32)
def _scan_elements_cached(text: str) -> tuple[_Element, ...]:
    return tuple(_scan_elements(text))


def _scan_elements(text: str) -> Iterator[_Element]:
    start, fresh = -1, True  # of the directive that is open; whether only blanks stand on this line so far
    for match in CPP.finditer(text):
        kind = match.lastgroup or "code"
        if kind == "newline":
            if start >= 0:
                yield "directive", start, match.start()
            start, fresh = -1, True
        elif start >= 0:
            continue
        elif fresh and kind == "code":
            if match.group() == "#":
                start = match.start()
                continue
            fresh = False
        elif kind == "string":
            fresh = False
        yield kind, match.start(), match.end()
    if start >= 0:
        yield "directive", start, len(text)


def lex(text: str, line: int = 1) -> list[Token]:
    found: list[Token] = []
    space = ""
    ahead: list[Comment] = []  # of the word to come

    def add(kind: Kind, word: str, start: int) -> None:
        nonlocal space, ahead
        found.append(Token(kind, word, line, space, start, tuple(ahead)))
        space, ahead = "", []

    for kind, start, end in _find_elements(text):
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
                add("directive", _one_line(whole[1:]), start)
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


def find_directives(text: str) -> Iterator[Directive]:
    line, done = 1, 0
    for kind, start, end in _find_elements(text):
        if kind == "directive":
            line, done = line + text.count("\n", done, start), start
            yield Directive(*first_word(_one_line(text[start + 1 : end])), line, start, end)


def _one_line(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match.lastgroup == "comment":
            return " "
        return _SPLICED.sub("", match.group()) if match.lastgroup == "space" else match.group()

    return CPP.sub(plain, text).strip() if "/" in text or "\\" in text else text.strip()


def first_word(text: str) -> tuple[str, str]:
    """Of a directive, and what follows it: `if(X)` is "if" and "(X)"."""
    found = re.match(r"\w*", text)
    end = found.end() if found else 0
    return text[:end], text[end:].strip()


def blank_elements(text: str, kinds: Container[str]) -> str:
    """The text with blanks for comments, directives or what is in strings; every place stays what it is."""
    pieces: list[str] = []
    done = 0
    plain = ((match.lastgroup or "", match.start(), match.end()) for match in CPP.finditer(text))
    for kind, start, end in _find_elements(text) if "directive" in kinds else plain:
        if kind in kinds:
            whole = _blank_string(text[start:end]) if kind == "string" else blank_text(text[start:end])
            pieces += (text[done:start], whole)
            done = end
    return "".join([*pieces, text[done:]])


def _blank_string(text: str) -> str:
    """Its quotes stay, and what makes it go on in the next line."""
    first, last = text.index(text[-1]) + 1, len(text) - 1
    if "\n" in text and text[: first - 1].endswith("R"):
        first, last = text.index("(") + 1, text.rindex(")")
        return text[:first] + blank_text(text[first:last]) + text[last:]
    inner = _IN_STRING.sub(lambda found: found[1] or " ", text[first:last])
    return f"{blank_text(text[: first - 1])}{text[-1]}{inner}{text[-1]}"


def blank_text(text: str) -> str:
    return _NO_BREAK.sub(" ", text)


def without_comments(text: str) -> str:
    """The code alone, on the same lines; what stands in quotes is left as it is."""
    return _remembered_code(text) if len(text) <= _SHORT else _blank_comments(text)


@lru_cache(maxsize=32)
def _remembered_code(text: str) -> str:
    return _blank_comments(text)


def _blank_comments(text: str) -> str:
    return blank_elements(text.replace("\r\n", "\n"), ("comment",))


def join_spliced_lines(text: str) -> str:
    """Lines that go on as one. Their newlines stand behind it as vertical tabs, so that lines still count."""
    parts, at, gone = [], 0, 0
    for splice in _SPLICED.finditer(text):
        if gone and (end := text.find("\n", at, splice.start())) >= 0:
            parts += [text[at:end], "\v" * gone]
            at, gone = end, 0
        parts.append(text[at : splice.start()])
        at, gone = splice.end(), gone + 1
    end = text.find("\n", at) if gone else -1
    end = len(text) if end < 0 else end
    return "".join([*parts, text[at:end], "\v" * gone, text[end:]])


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


_INTEGER_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)")
_FLOAT_LITERAL = re.compile(r"(\d*\.\d+(?:[eE][+-]?\d+)?|\d+\.?(?:[eE][+-]?\d+)?)(f16|bf16|[fFlLhH]?)")
_HEX_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)([fFlLhH]?)")
_CHARACTERS = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34}
_MAX_LITERAL = 400


def read_number(text: str) -> int | float | None:
    """The value of a numeric, character or boolean literal; None where it is none that is known."""
    text = text.replace("'", "") if text[:1].isdigit() else text
    if len(text) > _MAX_LITERAL:
        return None
    if text in ("true", "false"):
        return int(text == "true")
    if found := _INTEGER_LITERAL.fullmatch(text):
        digits = found[1]
        if digits[:2] in ("0x", "0X", "0b", "0B"):
            return int(digits, 0)
        if digits.startswith("0") and len(digits) > 1:
            return int(digits, 8) if not set(digits) & set("89") else None
        return int(digits)
    if found := _FLOAT_LITERAL.fullmatch(text):
        return float(found[1])
    if found := _HEX_LITERAL.fullmatch(text):
        return float.fromhex(found[1])
    if len(text) == 3 and text[0] == text[2] == "'":
        return ord(text[1])
    if len(text) == 4 and text[:2] == "'\\" and text[3] == "'":
        return _CHARACTERS.get(text[2])
    return None


def is_unsigned(text: str) -> bool:
    """Whether a literal is of an unsigned type: by its suffix, or a hexadecimal too large for int."""
    match = _INTEGER_LITERAL.fullmatch(text.replace("'", ""))
    if match is None:
        return False
    value = read_number(text)
    wide = "l" in match[2].lower()
    return "u" in match[2].lower() or (
        isinstance(value, int) and match[1][:2] in ("0x", "0X") and not wide and 2**31 <= value < 2**32
    )


# -- Long lines of C as several: broken where the fewest parentheses are open, and set below what these
# hold.


WIDTH = 118
_DEEP = 72  # a column from which a line is too short to go on in
_STEP = 4
# Before these a line is broken, the weakest first; behind commas and semicolons sooner than before any.
_OPERATORS = ("? :", "||", "&&", "| ^ &", "+ -", "* / %")
_RANK = {word: rank for rank, words in enumerate(_OPERATORS, 1) for word in words.split()}
_EQUALS = len(_OPERATORS) + 1  # behind these last of all
_ASSIGNED = re.compile(r" (?:[-+*/%&|^]|<<|>>)?= $")
_BRACKET_PLACES = re.compile(r"[(\[{]|[)\]}]|(?<=\w)<(?=\w)|(?<=[\w*>])>(?=[:(>*]|$| \w)")


@dataclass(frozen=True)
class _Break:
    depth: int
    rank: int
    at: int
    opened: tuple[int, ...]  # columns behind the brackets that are open there


def wrap_line(line: str, width: int = WIDTH) -> list[str]:
    """The line, or what it is broken into; directives, comments and lines with strings stay as they are."""
    if len(line) <= width or '"' in line or line.lstrip().startswith(("#", "//")):
        return [line]
    indent = len(line) - len(line.lstrip())
    code, mark, said = line.partition("  // ")
    if mark:
        return [f"{' ' * indent}// {said}", *wrap_line(code, width)]
    further = indent + (2 * _STEP if code.endswith(("{", ")")) else _STEP)  # below a head is a step in
    found: list[str] = []
    opened: tuple[int, ...] = ()
    while len(code) > width:
        places = [place for place in _find_line_breaks(code, opened) if place.at <= width + 1]
        if not places:
            break
        best = min(places, key=lambda place: (place.depth, place.rank, -place.at))
        found.append(code[: best.at].rstrip())
        opened = best.opened
        column = max((at for at in opened if at <= _DEEP), default=further)
        code = " " * column + code[best.at :]
    return [*found, code]


def _find_line_breaks(code: str, opened: tuple[int, ...]) -> Iterator[_Break]:
    start = len(code) - len(code.lstrip())
    brackets = {found.start(): found[0] for found in _BRACKET_PLACES.finditer(code)}
    for at in range(start, len(code)):
        if at > start and code[at - 1] == " ":
            rank = _break_rank(code, at)
            if rank is not None:
                yield _Break(len(opened), rank, at, opened)
        if (bracket := brackets.get(at)) is not None:
            opened = (*opened, at + 1) if bracket in "([{<" else opened[:-1]


def _break_rank(code: str, at: int) -> int | None:
    """How firmly what stands around the place holds together; None: no place to break a line at."""
    if code[at - 2] in ",;":
        return 0
    if _ASSIGNED.search(code, 0, at):
        return _EQUALS
    return _RANK.get(code[at:].partition(" ")[0])
