"""A repository on disk, read only."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, zip_longest
from pathlib import Path
from typing import Protocol

from tunesmith.base.errors import BadInput
from tunesmith.source.lex import Token, lex
from tunesmith.source.macros import MAX_TOKENS, ConditionReader, Expansion, Macro, read_macro
from tunesmith.source.preprocess import decided_defined
from tunesmith.source.text import MAX_TEXT, blank_text, first_word
from tunesmith.source.tree import Unreadable

SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".inl", ".cc", ".cpp", ".inc", ".hip", ".hh")
_MAX_FILES = 50_000
_MAX_BYTES = 4 << 20  # of one file: longer ones are data
_LEFT_OUT = frozenset({"node_modules", "__pycache__", "build", "dist"})


def refuse_odd_name(place: Path) -> None:
    """Problem files are UTF-8, and name the places they come from."""
    try:
        str(place.resolve()).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = str(place).encode("utf-8", "backslashreplace").decode()
        raise BadInput("its name is not UTF-8", where=shown, hint="rename it") from error


class Repository:
    """Its source files, which are read when they are asked for. Links are not followed."""

    def __init__(self, root: Path) -> None:
        refuse_odd_name(root)
        if not root.is_dir():
            hint = f"name its folder, and --file {root.name}" if root.is_file() else "correct the name"
            raise BadInput("a repository is a folder", where=str(root), hint=hint)
        self.root = root
        self.paths: Sequence[str] = sorted(self._listed())
        self._texts: dict[str, str] = {}

    def read(self, path: str) -> str:
        if path not in self._texts:
            place = self.root / path
            try:
                data = place.read_bytes() if place.stat().st_size <= _MAX_BYTES else b""
            except OSError as error:
                raise BadInput(f"cannot be read: {error.strerror}", where=str(place)) from error
            self._texts[path] = data.decode("utf-8", "replace").replace("\r\n", "\n")
        return self._texts[path]

    def _listed(self) -> Iterator[str]:
        count = 0
        for folder, inner, names in os.walk(self.root):
            inner[:] = [name for name in inner if not name.startswith(".") and name not in _LEFT_OUT]
            for name in names:
                place = Path(folder, name)
                if name.endswith(SUFFIXES) and not place.is_symlink():
                    count += 1
                    if count > _MAX_FILES:
                        fault = f"it has more than {_MAX_FILES:,} source files"
                        raise BadInput(fault, where=str(self.root), hint="give a folder inside of it")
                    yield place.relative_to(self.root).as_posix()


# What a framework brings is not taken where types and macros of ours stand for it.
_FRAMEWORKS = ("torch/", "c10/", "caffe2/", "ATen/", "pybind11/", "THC/")
_TAKEN = ("ATen/native/",)  # kernels' own headers, which happen to live there
# In the framework's own repository, headers with device code are read: for what we have nothing for.
_OWN = ("c10/", "ATen/")
_NEVER = ("c10/macros/",)
_DETAIL = ("ATen/cuda/detail/",)
_DEVICE = re.compile(r"\b(?:__device__|C10_DEVICE|C10_HOST_DEVICE|C10_HOST_DEVICE_NOINLINE)\b")
_OWN_PATH = re.compile(r"(?:^|/)(?:c10|ATen)/(?!native/)")


class SourceTree(Protocol):
    """A repository's files; paths have forward slashes and count from its top."""

    @property
    def paths(self) -> Sequence[str]: ...

    def read(self, path: str) -> str: ...


@dataclass(frozen=True)
class TextTree:
    """A repository that is held in memory."""

    texts: tuple[tuple[str, str], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.texts)

    def read(self, path: str) -> str:
        return dict(self.texts)[path]


def is_frameworks_own(path: str) -> bool:
    """Whether a file of a repository is one of a framework's, whose repository it then is."""
    return _OWN_PATH.search(path) is not None


def is_frameworks(spelling: str) -> bool:
    return spelling.startswith(_FRAMEWORKS) and not spelling.startswith(_TAKEN)


class Includes:
    """`folders`: where headers in <> and "" are looked for besides the folder of whoever includes them."""

    def __init__(self, tree: SourceTree, folders: Sequence[str] = ()) -> None:
        self._tree = tree
        self._paths = frozenset(tree.paths)
        self._folders = tuple(folders)
        self._by_name: dict[str, list[str]] = {}
        for path in tree.paths:
            self._by_name.setdefault(posixpath.basename(path), []).append(path)

    def find(self, spelling: str, includer: str) -> str | None:
        """The file that is meant; where no folder is known, the one whose path ends so, the nearest first."""
        if is_frameworks(spelling):
            return self._frameworks_own(spelling)
        for folder in (posixpath.dirname(includer), *self._folders, ""):
            path = posixpath.normpath(posixpath.join(folder, spelling))
            if path in self._paths:
                return path
        ending = posixpath.normpath(spelling)
        while ending.startswith("../"):
            ending = ending[3:]
        alike = self._by_name.get(posixpath.basename(ending), ())
        found = [path for path in alike if path.endswith(f"/{ending}")]

        def distance(path: str) -> tuple[int, int, str]:
            shared = posixpath.commonprefix([path.split("/"), includer.split("/")])
            return -len(shared), len(path), path

        return min(found, key=distance, default=None)

    def _frameworks_own(self, spelling: str) -> str | None:
        if not spelling.startswith(_OWN) or spelling.startswith(_NEVER):
            return None
        alike = self._by_name.get(posixpath.basename(spelling), ())
        found = min((path for path in alike if f"/{path}".endswith(f"/{spelling}")), key=len, default=None)
        if found is None or found.endswith(".cuh") or spelling.startswith(_DETAIL):
            return found
        return found if _DEVICE.search(self._tree.read(found)) else None


# A file and what it includes, as device code sees it: conditions decided, what is off blank, macros left.
# What no flag settles (`#if __CUDA_ARCH__ >= 800` decides otherwise on another device) stays as it is.
MAX_FILES = 2000
_SETTLED = {
    "__CUDACC__": "1", "__cplusplus": "201703L", "CUDA_VERSION": "13000", "CUDART_VERSION": "13000",
    "CUB_VERSION": "300000", "THRUST_VERSION": "300000", "CCCL_VERSION": "3000000",
    "__NVCC__": "1", "__linux__": "1", "__x86_64__": "1",
}  # fmt: skip
# Values that a device or a compiler may have: a condition that comes out alike for all of them is settled.
_OPEN: Mapping[str, tuple[str | None, ...]] = {
    "__CUDA_ARCH__": ("700", "750", "800", "860", "890", "900", "1000", "1200"),
    "__CUDACC_VER_MAJOR__": ("12", "13"),
    "__CUDACC_VER_MINOR__": ("0", "8"),
    "__CUDACC_RTC__": (None, "1"),
}
_WORDS_OF_CONDITIONS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"})


@dataclass(frozen=True)
class Included:
    """An #include of what is not in the repository."""

    spelling: str  # with its brackets or quotes
    path: str
    line: int

    @property
    def name(self) -> str:
        return self.spelling.strip('<>" \t')


@dataclass(frozen=True)
class ReadFile:
    """`text` has blanks for what is off, with every place and line as in the file. `tokens` are its words;
    directives among them are macros, and conditions that are not settled."""

    path: str
    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class ReadSources:
    files: tuple[ReadFile, ...]  # in the order in which a compiler comes to their ends
    macros: Mapping[str, Macro]
    outside: tuple[Included, ...]
    undefined: tuple[tuple[str, str], ...]  # names that conditions asked for and nobody defines, with a place


def read_sources(
    tree: SourceTree, paths: Sequence[str], includes: Includes, defines: Iterable[tuple[str, str]] = ()
) -> ReadSources:
    """Raises Unreadable, with the file in its words."""
    work = _SourceReader(tree, includes)
    for name, value in (*_SETTLED.items(), *defines):
        work.define(f"{name} {value}")
    for path in paths:
        work.read_file(path)
    return ReadSources(tuple(work.files), work.macros, tuple(work.outside), tuple(work.undefined.items()))


@dataclass
class _OpenIf:
    on: bool
    taken: bool
    settled: bool
    outer: bool


@dataclass
class _SourceReader:
    tree: SourceTree
    includes: Includes
    macros: dict[str, Macro] = field(default_factory=dict)
    files: list[ReadFile] = field(default_factory=list)
    outside: list[Included] = field(default_factory=list)
    undefined: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def read_file(self, path: str) -> None:
        if path in self._seen:
            return
        if len(self._seen) >= MAX_FILES:
            raise Unreadable(f"{path}: more than {MAX_FILES} files are included")
        self._seen.add(path)
        text = self.tree.read(path).replace("\r\n", "\n")
        if len(text) > MAX_TEXT:
            return
        frames: list[_OpenIf] = []
        kept: list[Token] = []
        tokens = lex(text)
        for token in tokens:
            is_on = not frames or frames[-1].on
            if token.kind != "directive":
                if is_on:
                    kept.append(token)
                continue
            word, rest = first_word(token.text)
            if word in _WORDS_OF_CONDITIONS:
                if self._condition(word, rest, frames, f"{path}:{token.line}"):
                    kept.append(token)
            elif is_on and self._read_directive(word, rest, path, token.line):
                kept.append(token)
        self.files.append(ReadFile(path, _kept_text(text, tokens, kept), tuple(kept)))

    def _read_directive(self, word: str, rest: str, path: str, line: int) -> bool:
        """Whether it stays in the text."""
        if word == "define":
            self.define(rest)
            return True
        if word == "undef":
            self.macros.pop(rest.strip(), None)
            return False
        if word == "include":
            if rest[:1] not in '<"':
                return False
            closing = rest.find(">" if rest[0] == "<" else '"', 1)
            spelling = rest[: closing + 1]
            found = self.includes.find(spelling[1:-1], path)
            if found is None or is_frameworks(spelling[1:-1]):
                self.outside.append(Included(spelling, path, line))
            if found is not None:
                self.read_file(found)
            return False
        return word == "pragma" and not rest.startswith(("once", "nv_diag", "GCC", "clang", "warning"))

    def define(self, rest: str) -> None:
        macro = read_macro(rest)
        if isinstance(macro, Macro):
            self.macros[macro.name] = macro

    def _condition(self, word: str, rest: str, frames: list[_OpenIf], place: str) -> bool:
        """Whether the directive stays, since its condition is not settled."""
        if word in ("if", "ifdef", "ifndef"):
            outer = not frames or frames[-1].on
            came = self._value(word, rest, place) if outer else False
            frames.append(_OpenIf(came is not False, came is True or not outer, came is not None, outer))
            return came is None
        if not frames:
            return False
        frame = frames[-1]
        if word == "endif":
            frames.pop()
            return frame.outer and not frame.settled
        if frame.taken or not frame.outer:
            frame.on = False
            return False
        if not frame.settled:  # further branches of what is open are open, too
            return True
        came = True if word == "else" else self._value("if" if word == "elif" else word[2:], rest, place)
        frame.on, frame.taken = came is not False, came is not False
        return False

    def _value(self, word: str, rest: str, place: str) -> bool | None:
        """None: it depends on the device or the compiler."""
        asked = f"defined({first_word(rest)[0]})" if word != "if" else rest
        words = {token.text for token in lex(asked) if token.kind == "word"} - {"defined"}
        for name in sorted(words):
            if name not in self.macros and name not in _OPEN and not _is_guard(name, word):
                self.undefined.setdefault(name, place)
        open_ones = [name for name in _OPEN if name in words or self._reaches(words, name)]
        found: set[bool] = set()
        for values in product(*(_OPEN[name] for name in open_ones)):
            macros = dict(self.macros)
            for name, value in zip(open_ones, values, strict=True):
                given = read_macro(f"{name} {value}") if value is not None else None
                if isinstance(given, Macro):
                    macros[name] = given
            try:
                tokens = decided_defined(lex(asked), macros)
                expanded = Expansion(macros, MAX_TOKENS).expand(tokens, frozenset(), 0)
                found.add(ConditionReader(expanded).value() != 0)
            except Unreadable:
                return None if "__has_include" not in asked else False
        came = found.pop() if len(found) == 1 else None
        return came if came is None or word != "ifndef" else not came

    def _reaches(self, words: set[str], name: str) -> bool:
        bodies = (self.macros[word].body for word in words if word in self.macros)
        return any(token.text == name for body in bodies for token in body)


def _is_guard(name: str, word: str) -> bool:
    return word == "ifndef" or name.startswith("__has") or name in ("true", "false")


def directive_end(text: str, start: int) -> int:
    """Past the lines with which it goes on."""
    end = text.find("\n", start)
    while end >= 0 and text[start:end].rstrip(" \t").endswith("\\"):
        end = text.find("\n", end + 1)
    return len(text) if end < 0 else end


def _kept_text(text: str, tokens: Sequence[Token], kept: Sequence[Token]) -> str:
    """Blanks from each word that is off to the next one."""
    there = {token.offset for token in kept}
    pieces, done = [], 0
    for start, end in _dropped_spans(text, tokens, there):
        pieces += [text[done:start], blank_text(text[start:end])]
        done = end
    return "".join([*pieces, text[done:]])


def _dropped_spans(text: str, tokens: Sequence[Token], there: set[int]) -> Iterator[tuple[int, int]]:
    for token, after in zip_longest(tokens, tokens[1:]):
        if token is None or token.offset in there:
            continue
        until = len(text) if after is None else after.offset
        stays = after is None or after.offset in there  # then comments before it are its own
        ends_early = token.kind == "directive" and stays
        yield token.offset, directive_end(text, token.offset) if ends_early else until
