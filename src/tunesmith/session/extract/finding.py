"""Where in a repository a kernel is defined, and what is read to slice it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tunesmith.csource.nodes import Unreadable
from tunesmith.errors import BadInput
from tunesmith.session.extract.items import FileItem
from tunesmith.session.extract.reading import ReadSources, read_sources
from tunesmith.session.extract.repository import SUFFIXES
from tunesmith.session.extract.slicing import FRAMEWORK, Slicer, StandIns, stand_ins
from tunesmith.session.extract.tree import Includes, SourceTree, TextTree

_DEFINITION = re.compile(r"__global__[^;{}()]*?(?:\([^;{}]*?\)[^;{}()]*?)*?\b([^\W\d]\w*)\s*\(")
Pairs = tuple[tuple[str, str], ...]


class NoSuchKernel(BadInput):
    """The sources define none of that name."""


@dataclass(frozen=True)
class FoundKernel:
    """A kernel's definition, with all that its file sees."""

    item: FileItem
    sources: ReadSources
    slicer: Slicer


@cache
def framework() -> StandIns:
    text = files("tunesmith.session.extract").joinpath("headers", FRAMEWORK).read_text()
    tree = TextTree(((FRAMEWORK, text),))
    return stand_ins(read_sources(tree, (FRAMEWORK,), Includes(tree)))


def find_kernel(
    tree: SourceTree, name: str, file: str | None = None, folders: Sequence[str] = (), defines: Pairs = ()
) -> FoundKernel:
    """The kernel of that name, "space::name" too. Raises BadInput: there is none, or there are several."""
    plain = name.split("<")[0].strip().removeprefix("::")
    last = plain.split("::")[-1]
    paths = _files_with(tree, last, file)
    includes = Includes(tree, folders)
    found: list[FoundKernel] = []
    troubles: list[str] = []
    for path in paths:
        try:
            sources = read_sources(tree, (path,), includes, defines)
        except Unreadable as trouble:
            troubles.append(f"{path}: {trouble.reason}")
            continue
        slicer = Slicer(sources, framework())
        own = [item for item in slicer.kernels(plain) if item.path == path]
        found += [FoundKernel(item, sources, slicer) for item in _one_each(own)]
    if not found:
        raise _none(tree, last, file, troubles)
    if len(found) > 1:
        places = ", ".join(f"{kernel.item.place} ({_qualified(kernel.item)})" for kernel in found[:8])
        hint = f"choose one with --file, for example: --file {found[0].item.path}"
        if len({kernel.item.path for kernel in found}) == 1:
            hint = f"choose one by its namespace, for example: --kernel {_qualified(found[0].item)}"
        raise BadInput(f"{len(found)} kernels are called {last}: {places}", hint=hint)
    return found[0]


def _one_each(items: Sequence[FileItem]) -> list[FileItem]:
    """Overloads and specialisations belong together: the longest stands for them, the general one first."""
    best: dict[tuple[str, ...], FileItem] = {}
    for item in sorted(items, key=lambda item: (_is_special(item), -len(item.text))):
        best.setdefault(item.scope, item)
    return list(best.values())


def _is_special(item: FileItem) -> bool:
    return [token.text for token in item.tokens[:3]] == ["template", "<", ">"]


def _files_with(tree: SourceTree, name: str, file: str | None) -> list[str]:
    if file is not None:
        exact = [path for path in tree.paths if path == file or path.endswith(f"/{file}")]
        if not exact:
            close = difflib.get_close_matches(file, tree.paths, n=1, cutoff=0.4)
            hint = f"did you mean: --file {close[0]}" if close else "it counts from the repository's top"
            raise BadInput(f"the repository has no file {file}", hint=hint)
        return exact
    word = re.compile(rf"\b{re.escape(name)}\b")
    found = []
    for path in tree.paths:
        if path.endswith(SUFFIXES):
            text = tree.read(path)
            if "__global__" in text and word.search(text):
                found.append(path)
    return found


def _none(tree: SourceTree, name: str, file: str | None, troubles: Sequence[str]) -> NoSuchKernel:
    if troubles:
        return NoSuchKernel(
            f"no kernel {name} could be read: {troubles[0]}", hint="--file names the file to read"
        )
    known: dict[str, str] = {}
    for path in tree.paths:
        if path.endswith(SUFFIXES) and (file is None or path == file or path.endswith(f"/{file}")):
            known |= dict.fromkeys(_DEFINITION.findall(tree.read(path)), path)
    if name in known:
        fault = f"{known[name]} speaks of a kernel {name}, but no definition of it can be read there"
        return NoSuchKernel(fault, hint="is it whole, more than declared, and switched on? --define NAME")
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    if close:
        hint = f"did you mean: --kernel {close[0]}" + (f" (or {', '.join(close[1:])})" if close[1:] else "")
    elif known:
        hint = f"it defines {len(known)}, for example {', '.join(sorted(known)[:5])}"
    else:
        hint = "no file of it has a function marked __global__; kernels that a macro names are not seen"
    where = f"{file} defines" if file else "the repository defines"
    return NoSuchKernel(f"{where} no kernel called {name}", hint=hint)


def _qualified(item: FileItem) -> str:
    return "::".join((*(part for part in item.scope if part), item.name))
