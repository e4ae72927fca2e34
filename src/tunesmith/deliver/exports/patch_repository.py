"""A repository with the tuned kernels in it: a header beside the original, and launches that ask it first.

The original stays what it is, and serves wherever a launch is not as it was verified. No build has to be
changed for the header: files that launch the kernel include it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.deliver.c_code import comment
from tunesmith.deliver.cuda_api import resource
from tunesmith.deliver.exports.artefact import Artefact, DeviceResult
from tunesmith.deliver.exports.launch_sites import place_behind_includes
from tunesmith.deliver.exports.patch import diff_text
from tunesmith.deliver.exports.patch_cuda import (
    HOST_PARTS,
    SameCode,
    asking,
    base_name,
    macros_in,
    same_code_by_nvcc,
    sections,
    tuned_units,
    usable_launches,
)
from tunesmith.deliver.exports.patch_dispatch import CannotServe, dispatch_code, sites_code
from tunesmith.errors import BadInput
from tunesmith.problem.dispatch import DispatchEntry
from tunesmith.problem.template import PLACEHOLDER

HEADER_MARK = "// Tuned kernels, written by `tunesmith apply`"


@dataclass(frozen=True)
class LaunchingFile:
    """A file of the repository that may launch the kernel. `macros`: names that files it includes define."""

    path: str
    text: str
    macros: frozenset[str] = frozenset()
    other: str = ""  # a file with a kernel of this name that is not the one that was tuned


@dataclass(frozen=True)
class PromisedAt:
    """The launch that alone may change, "file:line", where no dispatch can check what it promises."""

    place: str
    why: str

    def holds(self, path: str, line: int) -> bool:
        return self.place == f"{path}:{line}"


@dataclass(frozen=True)
class FileChange:
    path: str
    before: str | None  # None: there was no such file
    after: str


@dataclass(frozen=True)
class RepositoryPatch:
    changes: tuple[FileChange, ...]
    delivered: int  # of the tuned kernels
    launches: tuple[str, ...]  # "file:line", of those that ask first
    notes: tuple[str, ...]  # what is not in it, and why
    entries: tuple[tuple[DeviceResult, DispatchEntry], ...] = ()

    @property
    def diff(self) -> str:
        """For `git apply` and `patch -p1`."""
        return "".join(diff_text(change.path, change.before, change.after) for change in self.changes)


def patched_repository(
    artefact: Artefact,
    files: Sequence[LaunchingFile],
    folder: str,
    same_code: SameCode | None = None,
    promised: PromisedAt | None = None,
) -> RepositoryPatch:
    """`folder`: where the header goes, from the repository's top; `promised`: the one launch that may change.
    Raises BadInput where nothing changes."""
    dispatch, namespace = artefact.first.dispatch, f"{artefact.name}_tuned"
    header = posixpath.join(folder, f"{namespace}.cuh")
    if not any(result.dispatch.tuned for result in artefact.results):
        hint = "tune it again, with more time or another model: tunesmith tune"
        raise BadInput("the run has no tuned kernel: there is nothing to apply", hint=hint)
    if len(dispatch.original.launches) > 1:
        taken = len(dispatch.original.launches)
        raise BadInput(f"the operator takes {taken} launches, and a patch changes one", hint=_EXPORT)
    if PLACEHOLDER.search(dispatch.original.launches[0].entry):
        fault = "the original is another kernel for each size, which a patch cannot tell apart"
        raise BadInput(fault, hint=_EXPORT)
    try:
        sites_code(artefact)
    except CannotServe as error:
        raise BadInput(f"no launch can ask for the tuned kernel: {error}", hint=_EXPORT) from error
    units, notes = tuned_units(artefact, same_code or same_code_by_nvcc, embeds=True)
    if not units:
        raise BadInput("no tuned kernel can be part of a patch: " + "; ".join(notes), hint=_EXPORT)
    changes, launches = [], []
    macros: set[str] = set()
    for file in files:
        sites, faults = usable_launches(artefact, file.text, macros=True)
        kept = [site for site in sites if promised is None or promised.holds(file.path, site.line)]
        if promised is not None:
            left = [site.line for site in sites if site not in kept and not file.other]
            notes += [f"{file.path}:{line} stays as it is: {promised.why}" for line in left]
        chosen = [number for number, site in enumerate(sites) if site in kept]
        notes += [f"{file.path}: {fault}" for fault in faults]
        if sites and file.other:
            notes += [f"{file.path}:{site.line} stays as it is: {_another(file)}" for site in sites]
        elif kept:
            macros |= file.macros | macros_in(file.text)
            after = _with_header(file, min(site.start for site in sites), header)
            moved = usable_launches(artefact, after, macros=True)[0]
            own = [moved[number] for number in chosen]
            changes.append(FileChange(file.path, file.text, asking(after, own, 0, namespace, artefact)))
            launches += [f"{file.path}:{site.line}" for site in kept]
    if not changes:
        raise _no_launch(artefact, files, notes, namespace)
    embedded = _EMBEDDED if any(unit.image is not None for unit in units) else ()
    shared = "\n".join(map(resource, (*HOST_PARTS, *embedded)))
    lines = [
        f"of {artefact.problem}, tuned on {', '.join(r.dispatch.device for r in artefact.results)}.",
        "A launch is served by one of them where its sizes, arguments and device are as they were verified,",
        "else by the original. Take it out again with: tunesmith apply --undo RUN",
    ]
    text = (
        f"{HEADER_MARK}\n{comment(lines)}#pragma once\n{_DEVICE_ONLY}"
        f"{sections(macros, units, namespace, hides=True)}"
        f"\nnamespace {namespace} {{ namespace {{\n\n{shared}\n{dispatch_code(artefact, units)}"
        f"{sites_code(artefact)}\n}}}}  // namespace {namespace}\n#endif  // {namespace.upper()}\n"
        "#endif  // __CUDACC__\n"
    )
    delivered = len({(unit.result.run, unit.file) for unit in units})
    entries = tuple((unit.result, unit.entry) for unit in units)
    every = (FileChange(header, None, text), *changes)
    return RepositoryPatch(every, delivered, tuple(launches), tuple(notes), entries)


# A host's compiler, which has no launches either, passes over it.
_DEVICE_ONLY = "#if defined(__CUDACC__) || defined(__HIPCC__)\n"
_EMBEDDED = ("embedded_runtime.cuh", "embedded_kernel.h")
_EXPORT = "take what was delivered in another form: tunesmith export RUN --to cpp"


def _another(file: LaunchingFile) -> str:
    where = "the file" if file.other == file.path else file.other
    return f"{where} defines a kernel of this name itself"


def _with_header(file: LaunchingFile, first: int, header: str) -> str:
    name = posixpath.relpath(header, posixpath.dirname(file.path) or ".")
    place = place_behind_includes(file.text, first)
    end = "\r\n" if "\r\n" in file.text else "\n"
    before = "" if not place or file.text[place - 1] == "\n" else end
    return f'{file.text[:place]}{before}#include "{name}"{end}{file.text[place:]}'


def _no_launch(
    artefact: Artefact, files: Sequence[LaunchingFile], notes: Sequence[str], namespace: str
) -> BadInput:
    base, _ = base_name(artefact.first.dispatch.original.launches[0].entry)
    served = [file.path for file in files if f"::{namespace}::launch(" in file.text]
    if served:
        fault = f"a tuned kernel serves launches of {base} in {served[0]} already"
        return BadInput(fault, hint="undo that first: tunesmith apply --undo RUN, with the run it came from")
    listed = ", ".join(file.path for file in files) or "no file"
    why = "; ".join(notes) or f"nothing in {listed} launches it by {base}<<<...>>>"
    return BadInput(f"no launch of {base} can be changed: {why}", hint=_EXPORT)
