"""The text of a template: declaration, macros, headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import blank, directives, joined
from tunesmith.errors import BadInput
from tunesmith.problem.problem import Launch
from tunesmith.space.params import Config

_OPEN = re.compile(r"\s*//\s*///\s*tunesmith\s*")
_CLOSE = re.compile(r"\s*//\s*///\s*")
_COMMENT_LINE = re.compile(r"\s*// ?(.*)")
_EXAMPLE = 'open the file with "// /// tunesmith", then e.g. "// [params]", and close with "// ///"'

_DEFINE = re.compile(r"(\w+)(\(?)[ \t]*(.*)")
_INTEGER = re.compile(r"[(\s]*[-+]?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*[)\s]*")
_DEFINED = re.compile(r"\bdefined\s*(?:\w+|\(\s*\w+\s*\))")
WORD = re.compile(r"[A-Za-z_]\w*")
_UNROLL = re.compile(r"(?<=pragma unroll)[^\n]*")
_BLANKS = "\\ \t"


@dataclass(frozen=True)
class DeclarationBlock:
    toml: str
    line: int  # of the line that opens it


@dataclass(frozen=True)
class Define:
    """One `#define` of a macro without arguments."""

    name: str
    value: str
    line: int
    conditions: tuple[str, ...]  # of the #if, #ifdef and #ifndef around it, outermost first
    follows_ifndef: bool  # stands right under `#ifndef name`

    @property
    def is_guarded(self) -> bool:
        """Whether a definition made before the text can take its place."""
        return any(self.name in WORD.findall(condition) for condition in self.conditions)

    @property
    def is_default(self) -> bool:
        """`#ifndef X` / `#define X 1`; an include guard has no value."""
        return self.follows_ifndef and _INTEGER.fullmatch(self.value) is not None


def find_block(text: str, path: str) -> DeclarationBlock:
    """The TOML text between `// /// tunesmith` and `// ///`, with its comment signs off."""
    lines = text.replace("\r\n", "\n").split("\n")
    opens = [number for number, line in enumerate(lines, 1) if _OPEN.fullmatch(line)]
    if not opens:
        fault = "a template declares its parameters in a comment, there is none"
        raise BadInput(fault, hint=_EXAMPLE, where=path)
    if len(opens) > 1:
        fault = f"a template has one declaration, a second opens here and the first at line {opens[0]}"
        raise BadInput(fault, hint="join the two", where=f"{path}:{opens[1]}")
    start = opens[0]
    inside: list[str] = []
    for line in lines[start:]:
        if _CLOSE.fullmatch(line):
            return DeclarationBlock("\n".join(inside), start)
        comment = _COMMENT_LINE.fullmatch(line)
        if comment is None:
            break
        inside.append(comment[1])
    fault = f"the declaration opened at line {start} is not closed before line {start + len(inside) + 1}"
    hint = 'end it with a line "// ///"; every line in between starts with //'
    raise BadInput(fault, hint=hint, where=f"{path}:{start}")


def without_block(text: str) -> str:
    """The code of a template whose declaration could be read, with empty lines in place of that."""
    lines = text.replace("\r\n", "\n").split("\n")
    start = next(number for number, line in enumerate(lines) if _OPEN.fullmatch(line))
    end = next(number for number in range(start + 1, len(lines)) if _CLOSE.fullmatch(lines[number]))
    return "\n".join([*lines[:start], *[""] * (end + 1 - start), *lines[end + 1 :]])


def defines(code: str) -> Iterator[Define]:
    conditions: list[str] = []
    word, rest, before = "", "", 0  # the directive above, and where it ends
    for directive in directives(code):
        under_ifndef = word == "ifndef" and not code[before : directive.start].strip()
        name, (word, rest) = rest, directive[:2]
        before = directive.end
        if word in ("if", "ifdef", "ifndef"):
            conditions.append(rest)
        elif word == "elif" and conditions:
            conditions[-1] += f" {rest}"
        elif word == "endif" and conditions:
            conditions.pop()
        elif word == "define" and (found := _DEFINE.fullmatch(rest)) and not found[2]:
            under = under_ifndef and name == found[1]
            yield Define(found[1], found[3].strip(), directive.line, tuple(conditions), under)


def used_words(code: str) -> frozenset[str]:
    """Every identifier the code uses; to ask whether a macro is defined, or to define it, is no use of it."""
    words = set(WORD.findall(blank(code, ("directive",))))
    for word, rest, *_ in directives(code):
        if word == "define":
            words.update(WORD.findall(rest)[1:])
        elif word not in ("ifdef", "ifndef", "undef", "error", "warning"):
            words.update(WORD.findall(_DEFINED.sub("", rest)))
    return frozenset(words)


MOST_FILES = 500
MOST_BYTES = 4 << 20

_SPELLED = re.compile(r"(?:\"([^\"\n]+)\"|<([^>\n]+)>)")


@dataclass(frozen=True)
class HeaderFile:
    path: str  # tells two files apart, and where to look for what it includes itself
    text: str


FindHeader = Callable[[str, str | None, Sequence[str]], HeaderFile | None]
"""The header of that spelling, among the include folders of the problem file. One in quotes comes with the
path of the file that includes it, which is looked beside first; one in <> comes with None."""


def no_headers(_spelling: str, _includer: str | None, _folders: Sequence[str]) -> HeaderFile | None:
    """For sources that stand alone."""
    return None


def includes(text: str) -> Iterator[tuple[str, bool]]:
    """What a text includes, as it is spelled, and whether in quotes."""
    for word, rest, *_ in directives(joined(text)):
        if word == "include" and (found := _SPELLED.match(rest)):
            yield found[1] or found[2], found[1] is not None


def user_headers(
    text: str, path: str, find: FindHeader, folders: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Every header of the user's that the source reaches, as included -> text.

    A file has its text under its first spelling alone: compilers that know headers by spelling would take
    another one for another file, and read what says `#pragma once` twice.
    """
    found: dict[str, HeaderFile] = {}
    first: dict[str, str] = {}  # path -> its first spelling
    waiting = [HeaderFile(path, text)]
    read = {path}
    size = 0
    while waiting:
        file = waiting.pop(0)
        for spelling, quoted in includes(file.text):
            header = find(spelling, file.path if quoted else None, folders)
            if header is None:
                continue
            known = found.get(spelling)
            if known is None:
                found[spelling] = header
                first.setdefault(header.path, spelling)
                size += len(header.text.encode(errors="surrogatepass"))
                _refuse_too_much(len(found), size, spelling)
            elif known.text != header.text:
                files = f"{known.path} and {header.path} (included by {file.path})"
                hint = "include one of them by another path, for instance with its folder's name"
                raise BadInput(f'"{spelling}" means two different files: {files}', hint=hint)
            if header.path not in read:
                read.add(header.path)
                waiting.append(header)
    # In <>: in quotes, a file "../c.h" that means "c.h" would find itself beside it.
    return tuple(
        (spelling, header.text if (own := first[header.path]) == spelling else f"#include <{own}>\n")
        for spelling, header in found.items()
    )


def _refuse_too_much(count: int, size: int, spelling: str) -> None:
    if count <= MOST_FILES and size <= MOST_BYTES:
        return
    rule = f"a kernel's own headers are at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB"
    hint = "take folders of libraries out of include, or include only the headers that the kernel uses"
    raise BadInput(f'{rule}, got {count} files and {size:,} bytes up to "{spelling}"', hint=hint)


# -- of a tuned kernel --------------------------------------------------------------------------------------


def with_counts(text: str, values: Mapping[str, object]) -> str:
    """`#pragma unroll N` with the value of N: nvcc's host compiler expands no macro in a pragma."""

    def counted(pragma: re.Match[str]) -> str:
        return WORD.sub(lambda word: str(values.get(word[0], word[0])), pragma[0])

    return _UNROLL.sub(counted, text)


def macro_lines(macros: Iterable[tuple[str, object]]) -> str:
    return "".join(f"#define {name} {value}\n" for name, value in macros)


def describe_launch(launch: Launch) -> str:
    grid, block, own = (
        ", ".join(e.text for e in each) for each in (launch.grid, launch.block, launch.cluster)
    )
    shared = f", {launch.shared.text} bytes of shared memory" if launch.shared is not None else ""
    # Each only where it is said: a text that changes would make another variant of every kernel known so far.
    cluster = f", clusters of ({own})" if launch.cluster else ""
    cooperative = ", cooperative" if launch.cooperative else ""
    pdl = ", programmatic dependent launch" if launch.pdl else ""
    when = f", where {launch.when.text}" if launch.when is not None else ""
    how = f"grid ({grid}), block ({block}){shared}{cluster}{cooperative}{pdl}{when}"
    return f"{launch.entry}: {how}; arguments {', '.join(launch.args)}"


def tuned_header(name: str, config: Config, launches: tuple[Launch, ...], flags: tuple[str, ...]) -> str:
    """How to use the file, in the file: what is compiled and timed is, to the byte, what is delivered."""
    lines = [f"{name}, tuned by Tunesmith: {config}"]
    lines += [f"launch {describe_launch(launch)}" for launch in launches]
    if flags:
        lines.append(f"build with {' '.join(flags)}")
    # A backslash at the end of a line would swallow the next one, even with blanks behind it.
    return "".join(f"// {line.rstrip(_BLANKS)}\n" for text in lines for line in text.splitlines())
