"""A source as items that name each other, which of them a kernel reaches, and its words in one spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from tunesmith.expert.drafts.headers import blank_source
from tunesmith.problem.problem import Kernel
from tunesmith.source.lex import Token, closing_angle, lex, split_at
from tunesmith.source.text import Directive, find_directives
from tunesmith.source.tree import Language

AXES = ("x", "y", "z")


Words = Sequence[Token]


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def template_parameters(tokens: Words) -> list[list[Token]]:
    """Of the template that a definition is; none of any other."""
    end = closing_angle(tokens, 1) if len(tokens) > 1 and tokens[0].text == "template" else None
    return split_at(",", tokens[2:end]) if end is not None else []


def matching_paren(tokens: Sequence[Token], at: int, most: int, step: int = 1) -> int:
    """Where the parenthesis at a place closes, or backwards opens; -1 where that is `most` words away."""
    depth, first = 0, at
    while 0 <= at < len(tokens) and abs(at - first) < most:
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        if depth == 0:
            return at
        at += step
    return -1


def split_outside_parens(mark: str, tokens: Iterable[Token]) -> list[list[Token]]:
    """The words between marks outside parentheses, up to a parenthesis that was open before."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            break
        if token.text == mark and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


INTEGERS = word_set(
    "int unsigned signed short long char bool size_t uint ushort uchar ulong auto ptrdiff_t "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t"
)
SHARED = frozenset({"__shared__", "__local", "local"})
WARP_WORDS = re.compile(
    r"__shfl\w*|__syncwarp|__ballot\w*|__any\w*|__all\w*|warpSize|__reduce\w*|sub_group\w*"
)
QUALIFIERS = word_set("static inline constexpr const __device__ __host__ std ::")
_ATTRIBUTES = word_set(
    "__launch_bounds__ __attribute__ __align__ alignas __declspec decltype sizeof operator"
)
_DEFINE = re.compile(r"(\w+)(\([^)]*\))?\s*(.*)", re.DOTALL)
_KERNELS = frozenset({"__kernel", "kernel", "__global__"})
_MAX_PARTS = 40  # words of a macro's call that is a name
_INTRODUCING = word_set("= , ; [ { : (")


@dataclass(frozen=True)
class SourceItem:
    """A definition at the top of a file, namespaces left aside, or a macro with the words of its body."""

    tokens: tuple[Token, ...]
    introduces: frozenset[str]
    header: str = ""  # the file it stands in, where that is not the kernel's own
    macro: str = ""  # its name, where it is one
    parts: frozenset[str] = frozenset()  # words that a macro makes the name of a kernel of

    @property
    def is_function(self) -> bool:
        head: list[str] = []
        for token in self.tokens:
            if token.text == "{":
                break
            head.append(token.text)
        is_type = {"struct", "class", "union", "enum"} & set(head)
        return not is_type and not self.macro and "(" in head and "=" not in head


@dataclass(frozen=True)
class MacroLine:
    """A `#define` without parameters, with what stands around it."""

    name: str
    body: str
    directive: Directive
    header: str
    conditional: bool  # under an #if other than its own #ifndef
    guarded: bool  # under its own #ifndef


@dataclass(frozen=True)
class KnobText:
    """The text that a kernel consists of, headers of the user's included."""

    items: tuple[SourceItem, ...]
    macros: tuple[MacroLine, ...]
    pragmas: tuple[Directive, ...]  # of the kernel's own file
    refused: tuple[tuple[Token, ...], ...]  # conditions under which an #error stands
    conditional: tuple[tuple[int, int], ...]  # what stands under an #if in the kernel's own file
    asked: frozenset[str]  # words of #if, #ifdef and their like
    compared: frozenset[str]  # those that one number is asked of: `#if WIDTH == 4`

    def is_conditional(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self.conditional)

    def entries(self, name: str) -> tuple[int, ...]:
        """The items that a kernel is: by its name, or by a macro that stands for it or puts it together.

        Of the last, `kernel void NAME(sum, T)(...)`, those that have a part of the name among the words."""
        names = {name, *(macro.name for macro in self.macros if macro.body == name)}
        found = [place for place, item in enumerate(self.items) if names & item.introduces]
        if not any(self.items[place].is_function for place in found):
            found += [p for p, item in enumerate(self.items) if any(w in name for w in item.parts)]
        return tuple(found)

    def naming(self, name: str) -> frozenset[str]:
        """Words that an #if may choose a kernel's name by."""
        chosen = any(macro.body == name and macro.conditional for macro in self.macros)
        return self.compared if chosen else frozenset()

    def reached(self, entry: str) -> tuple[int, ...]:
        """The items that a kernel leads to, in the order of the text."""
        by_name: dict[str, list[int]] = {}
        for place, item in enumerate(self.items):
            for name in item.introduces:
                by_name.setdefault(name, []).append(place)
        known, found = set[str](), set(self.entries(entry))
        waiting = [
            token.text for place in found for token in self.items[place].tokens if token.kind == "word"
        ]
        while waiting:
            name = waiting.pop()
            if name in known:
                continue
            known.add(name)
            for place in by_name.get(name, ()):
                if place not in found:
                    found.add(place)
                    waiting += [token.text for token in self.items[place].tokens if token.kind == "word"]
        return tuple(sorted(found))


def read_text(kernel: Kernel) -> KnobText:
    items: list[SourceItem] = []
    macros: list[MacroLine] = []
    refused: list[tuple[Token, ...]] = []
    of_kernel: tuple[_Directives, str] | None = None
    asked: set[str] = set()
    compared: set[str] = set()
    for header, text in (("", kernel.text), *kernel.headers):
        found = _read_directives(text, header)
        of_kernel = of_kernel or (found, text)
        macros += found.macros
        refused += found.refused
        asked |= found.asked
        compared |= found.compared
        items += found.items
        plain = blank_source(text, cast("Language", kernel.language)).plain
        for tokens in _split_items(lex(plain)):
            words, names = tuple(normalise_tokens(tokens)), _introduced_names(tokens)
            items.append(SourceItem(words, names, header, parts=_put_together(tokens)))
    assert of_kernel is not None
    first = of_kernel[0]
    return KnobText(
        tuple(items), tuple(macros), tuple(first.pragmas), tuple(refused), tuple(first.spans),
        frozenset(asked), frozenset(compared),
    )  # fmt: skip


@dataclass
class _OpenCondition:
    start: int
    guards: str  # the name whose #ifndef this is
    off: bool
    clear: bool  # an include guard, or a literal condition: as if it were not there
    condition: str


class _Directives:
    def __init__(self) -> None:
        self.macros: list[MacroLine] = []
        self.items: list[SourceItem] = []
        self.pragmas: list[Directive] = []
        self.refused: list[tuple[Token, ...]] = []
        self.spans: list[tuple[int, int]] = []
        self.asked: set[str] = set()
        self.compared: set[str] = set()

    def ask(self, condition: str) -> None:
        self.asked.update(re.findall(r"[^\W\d]\w*", condition))
        self.compared.update(re.findall(r"\b([^\W\d]\w*)\s*==\s*\d", condition))


def _read_directives(text: str, header: str) -> _Directives:
    found, frames = _Directives(), list[_OpenCondition]()
    every = list(find_directives(text))
    for place, line in enumerate(every):
        after = every[place + 1] if place + 1 < len(every) else None
        if line.word in ("if", "ifdef", "ifndef"):
            frames.append(_open_condition(line, after))
            found.ask(line.rest)
        elif line.word in ("else", "elif") and frames:
            frame = frames[-1]
            found.ask(line.rest)
            if frame.condition in ("0", "1"):
                frame.off = frame.condition == "1"
            frame.condition = ""
        elif line.word == "endif" and frames:
            frame = frames.pop()
            if not frame.clear:
                found.spans.append((frame.start, line.end))
        elif any(frame.off for frame in frames):
            continue
        elif line.word == "define" and (define := _DEFINE.fullmatch(line.rest)):
            words = tuple(normalise_tokens(lex(define[3], line.line)))
            words = tuple(replace(word, offset=line.start) for word in words)
            found.items.append(SourceItem(words, frozenset({define[1]}), header, define[1]))
            if define[2] is None:
                around = [frame for frame in frames if not frame.clear]
                others = [frame for frame in around if frame.guards != define[1]]
                guarded = len(others) < len(around)
                found.macros.append(MacroLine(define[1], define[3], line, header, bool(others), guarded))
        elif line.word == "pragma":
            found.pragmas.append(line)
        elif line.word == "error" and len(frames) == 1 and frames[0].condition:
            found.refused.append(tuple(lex(frames[0].condition, line.line)))
    return found


def _open_condition(line: Directive, after: Directive | None) -> _OpenCondition:
    guards = line.rest if line.word == "ifndef" else ""
    missing = re.fullmatch(r"!\s*defined\s*\(?\s*(\w+)\s*\)?", line.rest) if line.word == "if" else None
    guards = missing[1] if missing else guards
    is_guard = after is not None and after.word == "define" and after.rest == guards != ""
    condition = line.rest if line.word == "if" else ""
    literal = condition in ("0", "1")
    return _OpenCondition(line.start, guards, condition == "0", is_guard or literal, condition)


def _split_items(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """What stands at the top of the file; braces of namespaces and `extern "C"` are looked through."""
    item: list[Token] = []
    depth = 0
    for token in tokens:
        if token.text == "{" and depth == 0 and item and _looks_through(item):
            item = []
            continue
        if token.text == "}" and depth == 0:
            item = []
            continue
        item.append(token)
        if token.text in ("{", "(", "["):
            depth += 1
        elif token.text in ("}", ")", "]"):
            depth = max(depth - 1, 0)
        if depth == 0 and token.text in (";", "}"):
            yield item
            item = []
    if item:
        yield item


def _looks_through(item: Sequence[Token]) -> bool:
    first = [token.text for token in item[:2]]
    return "namespace" in first or (first[0] == "extern" and item[-1].kind == "string")


def _introduced_names(item: Sequence[Token]) -> frozenset[str]:
    found: set[str] = set()
    start, depth = 0, 0
    if item and item[0].text == "template" and len(item) > 1:
        start = (closing_angle(item, 1) or 0) + 1
    enum = any(token.text == "enum" for token in item[:2])
    for place in range(start, len(item) - 1):
        token, after = item[place], item[place + 1].text
        if (
            token.kind == "word"
            and (depth == 0 or enum)
            and after in _INTRODUCING | ({"}"} if enum else set())
        ):
            if token.text not in _ATTRIBUTES and not _is_put_together(item, place):
                found.add(token.text)
        elif token.kind == "word" and depth == 0 and after == "<":  # a specialisation
            found.add(token.text)
        depth += (token.text in ("{", "(", "[")) - (token.text in ("}", ")", "]"))
    return frozenset(found - INTEGERS - QUALIFIERS)


def _is_put_together(item: Sequence[Token], place: int) -> int:
    """Where a call of a macro that is a function's name begins, the place of its last parenthesis; else 0."""
    end = matching_paren(item, place + 1, _MAX_PARTS - 1)
    is_call = 0 < end < len(item) - 1 and item[end].text == ")" and item[end + 1].text == "("
    return end if is_call else 0


def _put_together(item: Sequence[Token]) -> frozenset[str]:
    """The words in the macro's call that is a kernel's name."""
    depth, is_kernel = 0, False
    for place, token in enumerate(item[:-1]):
        if token.text == "{":
            break
        is_kernel |= token.text in _KERNELS
        if is_kernel and depth == 0 and token.kind == "word" and item[place + 1].text == "(":
            end = _is_put_together(item, place) if token.text not in _ATTRIBUTES else 0
            if end:
                return frozenset(t.text for t in item[place + 2 : end] if t.kind == "word")
        depth += (token.text == "(") - (token.text == ")")
    return frozenset()


_MEMBERS = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_CALLS = {
    "get_local_id": "threadIdx",
    "get_group_id": "blockIdx",
    "get_local_size": "blockDim",
    "get_enqueued_local_size": "blockDim",
    "get_num_groups": "gridDim",
    "get_global_id": "globalIdx",
    "get_global_size": "globalDim",
}
_OF_GROUPS = {  # methods of a thread_block of cooperative groups, `block.thread_index().x`
    "thread_index": "threadIdx",
    "group_index": "blockIdx",
    "group_dim": "blockDim",
    "dim_threads": "blockDim",
}
_HIP = {
    f"hip{word}_{axis}": f"{plain}.{axis}"
    for word, plain in (
        ("ThreadIdx", "threadIdx"), ("BlockIdx", "blockIdx"),
        ("BlockDim", "blockDim"), ("GridDim", "gridDim"),
    )
    for axis in AXES
}  # fmt: skip


def normalise_tokens(tokens: Sequence[Token]) -> list[Token]:
    """`threadIdx.x` as one word in every language, and so what is nothing but a name for it; no casts."""
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        token, rest = tokens[at], [t.text for t in tokens[at + 1 : at + 4]]
        if token.text in _MEMBERS and rest[:1] == ["."] and rest[1:2] and rest[1] in AXES:
            done.append(replace(token, text=f"{token.text}.{rest[1]}"))
            at += 3
        elif token.text in _CALLS and len(rest) == 3 and rest[1] in ("0", "1", "2"):
            done.append(replace(token, text=f"{_CALLS[token.text]}.{AXES[int(rest[1])]}"))
            at += 4
        elif (method := _of_group(tokens, at)) is not None:
            done.append(replace(token, text=method))
            at += 7
        elif token.text in _HIP:
            done.append(replace(token, text=_HIP[token.text]))
            at += 1
        elif (length := _cast_length(tokens, at)) and done and done[-1].text not in ("sizeof", "if", "while"):
            at += length
        else:
            done.append(token)
            at += 1
    return _without_names(done)


def _of_group(tokens: Sequence[Token], at: int) -> str | None:
    words = [token.text for token in tokens[at + 1 : at + 7]]
    if len(words) == 6 and words[1] in _OF_GROUPS and [words[0], *words[2:5]] == [".", "(", ")", "."]:
        return f"{_OF_GROUPS[words[1]]}.{words[5]}" if words[5] in AXES else None
    return None


def _cast_length(tokens: Sequence[Token], at: int) -> int:
    """The length of a conversion to an integer, `(int)`, that begins there."""
    end = at + 1
    while end < len(tokens) and tokens[end].text in INTEGERS:
        end += 1
    follows = end + 1 < len(tokens) and (
        tokens[end + 1].kind in ("word", "number") or tokens[end + 1].text == "("
    )
    is_cast = tokens[at].text == "(" and end > at + 1 and end < len(tokens) and tokens[end].text == ")"
    # `f(int)` declares; behind a name a parenthesis opens arguments.
    return end - at + 1 if is_cast and follows and (at == 0 or tokens[at - 1].kind != "word") else 0


def _without_names(tokens: list[Token]) -> list[Token]:
    """`int bx = blockIdx.x;`: `bx` is spelled so from there on."""
    meaning: dict[str, str] = {}
    for place in range(1, len(tokens) - 3):
        name, equals, value, end = tokens[place : place + 4]
        is_place = value.text.partition(".")[0] in ("threadIdx", "blockIdx", "blockDim") and "." in value.text
        if equals.text == "=" and is_place and end.text in (";", ",") and name.kind == "word":
            known = meaning.setdefault(name.text, value.text)
            if known != value.text:
                meaning[name.text] = ""
    for place, token in enumerate(tokens):  # one that is set again stands for itself
        after = tokens[place + 1].text if place + 1 < len(tokens) else ""
        if token.text in meaning and after in ("=", "+=", "-=", "*=", "/=", "++", "--", "<<=", ">>="):
            first = place + 2 < len(tokens) and tokens[place + 2].text == meaning[token.text]
            if not first or after != "=":
                meaning[token.text] = ""
    return [
        replace(token, text=meaning[token.text])
        if meaning.get(token.text) and not (place + 1 < len(tokens) and tokens[place + 1].text == "=")
        else token
        for place, token in enumerate(tokens)
    ]
