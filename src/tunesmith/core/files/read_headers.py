"""The user's own headers: what a source includes, and what that includes, by spelling.

Pure: where a header lies is asked of a callable. One that is found nowhere is the toolkit's, and left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tunesmith.core.errors import BadInput
from tunesmith.csource.lex import directives, joined

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
                raise BadInput(
                    f'"{spelling}" means two different files: {known.path} and {header.path} '
                    f"(included by {file.path})",
                    hint="include one of them by another path, for instance with its folder's name",
                )
            if header.path not in read:
                read.add(header.path)
                waiting.append(header)
    return tuple(
        (spelling, header.text if first[header.path] == spelling else _see(first[header.path]))
        for spelling, header in found.items()
    )


def _see(spelling: str) -> str:
    """In <>: in quotes, a file "../c.h" that means "c.h" would find itself beside it."""
    return f"#include <{spelling}>\n"


def _refuse_too_much(count: int, size: int, spelling: str) -> None:
    if count <= MOST_FILES and size <= MOST_BYTES:
        return
    rule = f"a kernel's own headers are at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB"
    raise BadInput(
        f'{rule}, got {count} files and {size:,} bytes up to "{spelling}"',
        hint="take folders of libraries out of include, or include only the headers that the kernel uses",
    )
