"""A CUDA source made ready to stand beside others in one file: in a namespace, its headers above it.

The code itself stays as it is. The user's own headers are written in place; includes of other headers are
repeated above the namespace, under the conditions and macros they had, so that inside it their include guards
leave nothing to include; macros get their former meaning back; and `extern "C"` functions, which would be one
function in all namespaces, become ordinary ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tunesmith.problem.template import plain_name
from tunesmith.source.text import Directive, blank_elements, find_directives, first_word

_SPELLED = re.compile(r"(?:\"([^\"\n]+)\"|<([^>\n]+)>)")
_LINE = re.compile(r"(\d+)(?:\s+\"([^\"\n]*)\")?")
_EXTERN_C = re.compile(r"\bextern\s*(\" \")")
_CALLED = re.compile(r"\b([^\W\d]\w*)\s*\(")
_FOREIGN = re.compile(r"\bnamespace\s+(std|cuda|nvcuda|cooperative_groups)\b[\s\w:]*\{")
_BRACE = re.compile(r"\s*\{")
_BRACKET = re.compile(r"[(){}]")
# `::name` behind nothing that it could be a part of; a cast may stand before it.
_GLOBAL = re.compile(r"(?<![\w>:])::\s*(?:template\s+)?([^\W\d]\w*)")
# A block whose names are also those of what is around it.
_TRANSPARENT = re.compile(
    r"(?:\bextern\s*\" \"|\bnamespace|\binline\s+namespace\s+\w+"
    r"|\benum\b(?!\s+(?:class|struct)\b)[\w:\s]*)\s*\Z"
)
_TYPE = re.compile(r"\b(?:struct|class|union|enum|namespace)\b([^;{}=:,>]*)")
_USING = re.compile(r"\busing\s+namespace\b[^;]*;")
MAX_BEFORE = 200  # characters that say what a block is
_DECLARED = re.compile(r"(?<!::)\b([^\W\d]\w*)\s*(?=[(\[=;,{}])")
_WORD = re.compile(r"[^\W\d]\w*")
_BRACKETS = ("(", ")", "{", "}")

MAX_CHARACTERS = 8_000_000
LEAST_COUNTED = 2_000  # for each header, however short: thousands of empty ones take time too
_OPENS = ("if", "ifdef", "ifndef")
_INCLUDES = ("include", "include_next", "import")
_TURNS = ("else", "elif", "elifdef", "elifndef")
_HIDDEN = ("comment", "string")
_CARRIED = (*_OPENS, *_TURNS, *_INCLUDES, "endif", "define", "undef")


@dataclass(frozen=True)
class NamespacedSource:
    includes: str  # directives to stand above every namespace
    text: str  # what stands inside one
    macros: tuple[str, ...]  # whose former meaning must come back after it


class Unfit(Exception):
    """Why a source cannot stand in a namespace beside others."""


def namespace_source(
    source: str, headers: tuple[tuple[str, str], ...], file: str, entries: Sequence[str] = ()
) -> NamespacedSource:
    """`headers` are the user's own, as included -> text; `file` is what compilers shall call the source;
    `entries` will be named behind it.

    Raises Unfit.
    """
    text = _Headers(dict(headers)).write(source, file)
    plain = blank_elements(text, _HIDDEN)
    if foreign := _FOREIGN.search(plain):
        raise Unfit(f"it adds to namespace {foreign[1]}, which it could not from within another")
    directives = tuple(find_directives(text))
    asked = {name for each in (plain, *entries) for name in _GLOBAL.findall(each)}
    if asked and (declared := asked & _global_names(plain, directives)):
        raise Unfit(f"it names its own ::{min(declared)} as global, which within a namespace it is not")
    changed = (_macro_name(d) for d in directives if d.word in ("define", "undef"))
    return NamespacedSource(
        includes=_include_directives(directives),
        text=f'#line 1 "{plain_name(file)}"\n{_own_linkage(text)}',
        macros=tuple(dict.fromkeys(name for name in changed if name)),
    )


def unnamed_lines(text: str) -> str:
    """With #line as numbers alone, which asserts have in their code: a build takes a file that it names for
    one that this is made from, and as it is not here would build everything again each time."""
    done, pieces = 0, list[str]()
    for directive in find_directives(text):
        if directive.word == "line" and '"' in directive.rest:
            pieces += [text[done : directive.start], "#line " + directive.rest.partition('"')[0].strip()]
            done = directive.end
    return "".join([*pieces, text[done:]])


def push_macro(name: str) -> str:
    return f'#pragma push_macro("{name}")'


def pop_macro(name: str) -> str:
    return f'#pragma pop_macro("{name}")'


def _macro_name(directive: Directive) -> str:
    """The macro that a define, an undef or an ifndef is about."""
    return first_word(directive.rest)[0]


def _is_once(directive: Directive) -> bool:
    return directive.word == "pragma" and directive.rest.split() == ["once"]


def _include_name(directive: Directive) -> str | None:
    """What an include names."""
    found = _SPELLED.match(directive.rest) if directive.word == "include" else None
    return (found[1] or found[2]) if found else None


class _Headers:
    """Writes the user's headers where they are included."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.room = MAX_CHARACTERS
        self.directives = cache(lambda text: tuple(find_directives(text)))
        self.open: list[str] = []
        # For each condition that is open, what was written since: further down it need not be written again.
        self.settled: list[set[str]] = [set()]

    def write(self, text: str, file: str) -> str:
        self.room -= len(text) + LEAST_COUNTED
        if self.room < 0:
            raise Unfit("its headers include each other too often")
        directives = self.directives(text)
        # An include guard is no condition.
        guards = (directives[0], directives[-1]) if _has_include_guard(directives) else ()
        pieces: list[str] = []
        done = 0
        line, since = 1, 0  # the number of the line that starts at `since`
        for directive in directives:
            if directive not in guards:
                self.follow(directive.word)
            if directive.word == "line" and (found := _LINE.match(directive.rest)):
                line, since, file = int(found[1]), directive.end + 1, found[2] or file
            elif _is_once(directive):
                pieces.append(text[done : directive.start])
                done = directive.end
            elif (name := _include_name(directive)) is not None and name in self.headers:
                after = line + text.count("\n", since, directive.end) + 1
                marker = f'#line {after} "{plain_name(file)}"'
                pieces.append(f"{text[done : directive.start]}{self.header(name)}{marker}")
                done = directive.end
        return "".join([*pieces, text[done:]])

    def follow(self, word: str) -> None:
        if word in _OPENS:
            self.settled.append(set())
        elif word == "endif" and len(self.settled) > 1:
            self.settled.pop()
        elif word in _TURNS:
            self.settled[-1] = set()

    def header(self, name: str) -> str:
        if name in self.open or any(name in written for written in self.settled):
            return ""  # its guard, or what ends its recursion, would make nothing of it
        text = self.headers[name]
        directives = self.directives(text)
        once = any(_is_once(directive) for directive in directives)
        self.open.append(name)
        written = f'#line 1 "{plain_name(name)}"\n{self.write(text, name)}\n\n'
        self.open.pop()
        if once or _has_include_guard(directives):
            self.settled[-1].add(name)
        if once:  # the pragma means files, and this is no file any more
            guard = f"TUNESMITH_ONCE_{list(self.headers).index(name)}"
            written = f"#ifndef {guard}\n#define {guard}\n{written}#endif\n"
        return written


def _has_include_guard(directives: Sequence[Directive]) -> bool:
    """Whether `#ifndef X`, `#define X` and `#endif` go around everything."""
    if len(directives) < 3 or directives[-1].word != "endif":
        return False
    first, second = directives[:2]
    if (first.word, second.word) != ("ifndef", "define") or _macro_name(first) != _macro_name(second):
        return False
    depth = 0
    for directive in directives[:-1]:
        depth += (directive.word in _OPENS) - (directive.word == "endif")
        if depth == 0 or (depth == 1 and directive.word in _TURNS):
            return False
    return True


def _include_directives(directives: Sequence[Directive]) -> str:
    """The directives up to the last include, with whatever decides on it and nothing left behind."""
    last = max((n for n, d in enumerate(directives) if d.word in _INCLUDES), default=-1)
    lines: list[str] = []
    always: dict[str, bool] = {}  # each macro, and whether it is sure to be changed
    depth = 0
    for directive in directives[: last + 1]:
        if directive.word not in _CARRIED:
            continue
        name = _macro_name(directive)
        if directive.word in ("define", "undef") and name:
            if name not in always:
                always[name] = depth == 0
                lines += [push_macro(name)] if always[name] else []
            if not always[name]:
                # Kept from here on and not from the start: until here a system header may have defined it.
                marker = f"TUNESMITH_CHANGED_{name}"
                lines += [f"#ifndef {marker}", f"#define {marker}", push_macro(name), "#endif"]
        depth += (directive.word in _OPENS) - (directive.word == "endif")
        lines.append(f"#{directive.word} {directive.rest}".rstrip())
    lines += ["#endif"] * depth
    for name, sure in always.items():
        marker = f"TUNESMITH_CHANGED_{name}"
        changed = [f"#ifdef {marker}", f"#undef {marker}", pop_macro(name), "#endif"]
        lines += [pop_macro(name)] if sure else changed
    return "".join(f"{line}\n" for line in lines)


def _own_linkage(text: str) -> str:
    """What is defined here as `extern "C"` gets its namespace's linkage; the rest is defined elsewhere."""
    plain = blank_elements(text, _HIDDEN)
    pieces: list[str] = []
    done = 0
    for found in _EXTERN_C.finditer(plain):
        if text[found.start(1) : found.end(1)] == '"C"' and _is_defined(plain, found.end()):
            pieces.append(f'{text[done : found.start(1)]}"C++"')
            done = found.end(1)
    return "".join([*pieces, text[done:]])


def _is_defined(plain: str, start: int) -> bool:
    """Whether what follows `extern "C"` has a body: a function, here or further down, or a block with one."""
    brace = _BRACE.match(plain, start)
    if brace:
        return "{" in plain[brace.end() : _closing_position(plain, brace.end() - 1)]
    end = start
    while end < len(plain) and plain[end] not in ";{=":
        end = _closing_position(plain, end) if plain[end] == "(" else end + 1
    if plain[end : end + 1] != ";":
        return True
    names = set(_CALLED.findall(plain[start:end]))
    return any(
        _BRACE.match(plain, _closing_position(plain, found.end() - 1))
        for found in _CALLED.finditer(plain, end)
        if found[1] in names
    )


def _global_names(plain: str, directives: Sequence[Directive]) -> set[str]:
    """What the text declares outside every function, type and namespace; rather too many than too few."""
    events = [(found.start(), found.end(), found[0]) for found in _BRACKET.finditer(plain)]
    events += [(directive.start, directive.end, directive.word) for directive in directives]
    pieces: list[str] = []
    hiding: list[bool] = []  # for each bracket that is open, whether it hides what is in it
    before: list[list[bool]] = []  # the same, where each condition that is open began
    done = 0
    for start, end, word in (*sorted(events), (len(plain), len(plain), "")):
        if start < done:
            continue  # a bracket in a directive
        if not any(hiding):
            pieces.append(f"{plain[done:start]}{word if word in _BRACKETS else ' '}")
        done = end
        if word in ("(", "{"):
            hiding.append(word == "(" or not _TRANSPARENT.search(plain[max(0, start - MAX_BEFORE) : start]))
        elif word in (")", "}"):
            del hiding[-1:]
            pieces += [] if any(hiding) else [word]
        elif word in _OPENS:
            before.append(list(hiding))
        elif word in _TURNS and before:
            hiding = list(before[-1])  # one branch alone is compiled: their brackets do not add up
        elif word == "endif":
            del before[-1:]
    outside = _USING.sub(" ", "".join(pieces))
    names = set(_DECLARED.findall(outside))
    return names.union(*(_WORD.findall(found) for found in _TYPE.findall(outside)))


def _closing_position(plain: str, opening: int) -> int:
    """The position after the bracket that closes the one at `opening`; the end where none does."""
    depth = 0
    for found in _BRACKET.finditer(plain, opening):
        depth += 1 if found[0] in "({" else -1
        if depth == 0:
            return found.end()
    return len(plain)
