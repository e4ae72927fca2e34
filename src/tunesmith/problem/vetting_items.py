"""The declarations of a file, judged: device code, defined where declared, nothing that outlives a launch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tunesmith.csource.lex import Token, closing_angle, first_word, joined, lex
from tunesmith.csource.parse import top_level_items
from tunesmith.csource.types import PRIMITIVE
from tunesmith.problem.device_words import Refusal, UserWords, listed

ASSEMBLER = listed("asm __asm __asm__")
ATTRIBUTES = ("__attribute__", "__attribute")
_NO_VARIABLES = (";", "typedef", "static_assert", "_Static_assert", "namespace", "using")
_HEADS = listed("__launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ __align__ alignas decltype")
_NO_FUNCTIONS = _HEADS | listed("__attribute__ __attribute sizeof alignof typeof __typeof__")
_KEEPS = listed("__device__ __managed__")
_WORDS = re.compile(r"[^\W\d]\w*")
_DEVICE = listed("__device__ __global__ constexpr")


class TokenRun:
    """The words of a reading, with safe access to those around one."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.all = tokens

    def text(self, at: int) -> str:
        return self.all[at].text if 0 <= at < len(self.all) else ""

    def is_word(self, at: int) -> bool:
        return 0 <= at < len(self.all) and self.all[at].kind == "word"

    def closing(self, at: int) -> int:
        """The index of what closes the bracket at `at`; the end where nothing does."""
        opens = self.text(at)
        closes = {"(": ")", "[": "]", "{": "}"}[opens]
        depth = 0
        for end in range(at, len(self.all)):
            depth += (self.all[end].text == opens) - (self.all[end].text == closes)
            if depth == 0:
                return end
        return len(self.all)


def judge_item(
    tokens: Sequence[Token],
    functions: frozenset[str],
    namespaces: frozenset[str],
    user: UserWords,
    is_c: bool,
) -> None:
    """One declaration of the file; raises Refusal. `functions` are those that it defines."""
    item = TokenRun(_bare(tokens))
    if not item.all or item.all[0].kind == "directive":
        return
    first, line = item.text(0), tokens[0].line
    for state in _states(item):
        last = state.split()[-1]
        line = next((token.line for token in item.all if token.text == last), line)
        rule = "is a variable that outlives a launch and can be written: no template has one, even where the"
        remedy = "original does; make it const, or keep it in a function or in an argument of [workspace]"
        raise Refusal("state", line, f"`{state}` {rule} {remedy}")
    if [first, item.text(1)] == ["using", "namespace"] and item.text(2) not in namespaces | user.words:
        raise Refusal("declaration", line, f"using namespace {item.text(2)} is not known; leave it out")
    head, place = _head(item)
    if first not in _NO_VARIABLES and item.text(place) == "(" and not is_c:
        _judge_function(item, head, place, functions, user)


def _judge_function(
    item: TokenRun, head: Sequence[str], place: int, functions: frozenset[str], user: UserWords
) -> None:
    """C's are judged by the tree."""
    name, line = head[-1] if head else "", item.all[0].line
    body = next((at for at in range(item.closing(place), len(item.all)) if item.text(at) == "{"), None)
    has_body = body is not None
    if body is not None and item.closing(body) != len(item.all) - 1:
        words = f"{name} is followed by more in the same declaration; write a declaration of its own"
        raise Refusal("declaration", line, words)
    if {"operator", "friend"} & set(head):
        return
    if not has_body and name not in functions and name not in user.words:
        words = f"{name} is declared and not defined: a template calls what it defines and built-ins"
        raise Refusal("declaration", line, words)
    # A word of the user's may be a macro of a header that says so.
    if not set(head[:-1]) & (_DEVICE | (user.words - PRIMITIVE)) and name not in user.words:
        words = f"{name} is host code; a template holds device code alone: mark it __device__"
        raise Refusal("host", line, words)


def judge_outside(run: TokenRun, at: int, user: UserWords) -> None:
    """An `extern`, a `typedef` or a `using`: none names what is defined elsewhere, as functions of the host
    are where a kernel runs there."""
    line, is_extern = run.all[at].line, run.text(at) == "extern"
    if is_extern and run.text(at + 1) == '"C"':
        return
    place = at + 1
    while place < len(run.all) and run.text(place) != ";":
        text = run.text(place)
        if is_extern and text == "__shared__":
            return
        before = run.text(place - 1)
        is_declarator = before not in _NO_FUNCTIONS and (run.is_word(place - 1) or before in (">", "*", "&"))
        if text == "(" and not is_extern and is_declarator:
            name = run.text(at + 1 if run.text(at) == "using" else place - 1)
            if run.text(place + 1) not in ("*", "&") and name not in user.words - PRIMITIVE:
                words = "the type of a function is not allowed in a template: call functions by name"
                raise Refusal("declaration", line, words)
        end = closing_angle(run.all, place) if text == "<" else None
        place = (run.closing(place) if text in ("(", "[", "{") else place if end is None else end) + 1
    if is_extern:
        words = 'extern is not allowed in a template, but for extern "C" and extern __shared__'
        raise Refusal("declaration", line, words)


def _bare(tokens: Sequence[Token]) -> Sequence[Token]:
    while tokens:
        texts = [token.text for token in tokens[:2]]
        if texts == ["template", "<"]:
            depth = 0
            for end, token in enumerate(tokens):
                depth += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0)
                if end and depth <= 0 and token.text in (">", ">>"):
                    break
            tokens = tokens[end + 1 :]
        elif texts == ["extern", '"C"']:
            tokens = tokens[2:]
        else:
            break
    return tokens


def _head(item: TokenRun) -> tuple[list[str], int]:
    """The words before the first of ( { = [ ; that belongs to the declaration itself, and where that is."""
    found: list[str] = []
    at = 0
    while at < len(item.all):
        text = item.text(at)
        if text in (*ATTRIBUTES, *_HEADS) and item.text(at + 1) == "(":
            found.append(text)
            at = item.closing(at + 1) + 1
        elif text == "[" and item.text(at + 1) == "[":
            at = item.closing(at) + 1
        elif text in ("(", "{", "=", "[", ";"):
            break
        elif text == "<":
            end = closing_angle(item.all, at)
            at = at + 1 if end is None else end + 1
        else:
            found.append(text)
            at += 1
    return found, at


_CONSTANT = listed("constexpr __constant constant")
_TYPES = listed("struct class union enum")


def kept_by(headers: Sequence[str]) -> set[str]:
    """Names of the user's headers by which device code reaches what outlives a launch and can be written:
    such variables, and functions and macros that have them."""
    tokens = [token for text in headers for token in lex(joined(text.replace("\r\n", "\n")))]
    macros = [first_word(token.text)[1] for token in tokens if token.kind == "directive"]
    bodies = {words[0]: set(words[1:]) for text in macros if (words := _WORDS.findall(text))}
    device = {name for name, body in bodies.items() if body & _KEEPS} | _KEEPS
    found: set[str] = set()
    for one in top_level_items([token for token in tokens if token.kind != "directive"]):
        item = TokenRun(_bare(one))
        head, place = _head(item)
        if set(head) & device:
            is_function = item.text(place) == "("
            for state in _states(item):
                found.add(head[-1] if is_function else state.split()[-1])
            bodies.setdefault(head[-1], set()).update(t.text for t in item.all[place:] if t.kind == "word")
    more = found
    while more:
        more = {name for name, body in bodies.items() if body & found} - found
        found |= more
    return found


def _states(item: TokenRun) -> Iterator[str]:
    head, place = _head(item)
    following = item.text(place)
    if set(head) & _TYPES and following == "{":
        end = item.closing(place) + 1
        while item.text(end) in ATTRIBUTES:
            end = item.closing(end + 1) + 1
        if item.text(end) not in (";", "") and "typedef" not in head:
            yield " ".join([*head, item.text(end)])
    elif item.text(0) not in _NO_VARIABLES and item.all[:1] and item.all[0].kind != "directive":
        is_forward = set(head) & _TYPES and len(head) <= 2 and following == ";"
        is_function = following == "(" and "," not in head
        if head and not is_forward and not is_function and not _is_constant(head, following):
            yield " ".join(head)
    for at, token in enumerate(item.all):
        if token.text == "static" and (at or following == "("):
            inner = TokenRun(item.all[at:])
            words, end = _head(inner)
            behind = inner.closing(end) + 1 if inner.text(end) == "(" else end
            while inner.text(behind) in ("const", "noexcept"):
                behind += 1
            in_body = following == "(" and at > place  # where `static S memo(1);` is no function
            ends = ("{", "->", *ATTRIBUTES) if in_body else ("{", "->", ";", *ATTRIBUTES)
            is_function = behind > end and inner.text(behind) in ends
            if not is_function and not _is_constant(words, inner.text(end)):
                yield " ".join(words)


def _is_constant(head: Sequence[str], following: str) -> bool:
    """Whether nothing can be written there from one launch to the next."""
    if set(head) & _CONSTANT or "__shared__" in head:
        return True
    behind = head[len(head) - head[::-1].index("*") :] if "*" in head else head
    return "const" in behind or ("__constant__" in head and "*" not in head and following in ("=", "[", "{"))
