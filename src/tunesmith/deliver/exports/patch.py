"""Target `patch`: a unified diff of the user's own kernel file that adds the tuned kernels.

In CUDA every launch of the kernel asks first whether a tuned one serves; in OpenCL, where a file has no
launches, the tuned kernels stand behind the others, with comments that say when each serves.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import PurePosixPath

from tunesmith.deliver.exports.artefact import Artefact, DeviceResult, Export, Target
from tunesmith.deliver.exports.readmes import patch_readme
from tunesmith.errors import BadInput
from tunesmith.problem.dispatch import DispatchEntry
from tunesmith.problem.languages import CUDA, OPENCL
from tunesmith.text import plain

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_BARE_END = re.compile(r"(?<!\r)\n")  # of a line, without the carriage return that Windows writes


LEFT_OUT = "left out: "


@dataclass(frozen=True)
class PatchedFile:
    """The user's file with the tuned kernels in it."""

    text: str
    delivered: int  # of the tuned kernels
    notes: tuple[str, ...]  # what is not in it, or not where one would expect it, and why
    entries: tuple[tuple[DeviceResult, DispatchEntry], ...] = ()  # what it has, where a compiler can tell

    @property
    def left_out(self) -> tuple[str, ...]:
        return tuple(note.removeprefix(LEFT_OUT) for note in self.notes if note.startswith(LEFT_OUT))


def patch_of(artefact: Artefact, path: str, text: str, made: PatchedFile | None = None) -> str:
    """The diff against the file at `path` with this text, for `patch -p1` or `git apply`.

    Raises BadInput where no tuned kernel can be added to it.
    """
    made = made or patched_file(artefact, text)
    devices = ", ".join(result.dispatch.device for result in artefact.results)
    told = [f"{artefact.problem}, tuned by Tunesmith on {devices}.", *_told(artefact, made)]
    head = "".join(f"# {line}\n" for line in plain("\n".join(told)).split("\n"))
    return head + diff_text(_relative(path), text, made.text)


def _told(artefact: Artefact, made: PatchedFile) -> list[str]:
    tuned = len(artefact.tuned)
    counted = f"delivered: {made.delivered} of {tuned} tuned kernels; the original serves everything else."
    return [counted, *made.notes]


def patched_file(artefact: Artefact, text: str) -> PatchedFile:
    """Raises BadInput where nothing can be added."""
    if not any(result.dispatch.tuned for result in artefact.results):
        raise BadInput("the run has no tuned kernel: there is nothing to add to the file")
    if artefact.first.dispatch.language == OPENCL.name:
        from tunesmith.deliver.exports.patch_opencl import with_tuned_kernels

        made = with_tuned_kernels(artefact, text)
    else:
        from tunesmith.deliver.exports.patch_cuda import with_dispatch

        made = with_dispatch(artefact, text)
    if not made.delivered:
        raise BadInput("no tuned kernel can be added to the file: " + "; ".join(made.notes))
    if "\r\n" in text and not _BARE_END.search(text):
        made = replace(made, text=_with_returns(made.text))
    return made


def _with_returns(text: str) -> str:
    return _BARE_END.sub("\r\n", text)


def _relative(path: str) -> str:
    """A path that a patch may name."""
    found = PurePosixPath(path.replace("\\", "/"))
    if found.is_absolute() or ".." in found.parts or not found.name:
        found = PurePosixPath(found.name or "kernel")
    return re.sub(r"[\x00-\x1f]", "_", str(found))


def diff_text(path: str, before: str | None, after: str) -> str:
    """`before` is None where there is no such file yet."""
    end = "\t" if re.search(r"\s", path) else ""  # a name with a blank ends where a tab stands
    old = "/dev/null" if before is None else f"a/{path}{end}"
    texts = _LINES.findall(before or ""), _LINES.findall(after)
    lines = difflib.unified_diff(*texts, old, f"b/{path}{end}", lineterm="\n")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _write(artefact: Artefact) -> Export:
    first = artefact.first
    if not first.kernel_path or not first.kernel_text:
        raise BadInput("the user's own kernel file is not known, so there is nothing to make a patch of")
    made = patched_file(artefact, first.kernel_text)
    texts = {f"{artefact.name}.patch": patch_of(artefact, first.kernel_path, first.kernel_text, made)}
    if "\r\n" not in first.kernel_text:
        # A run keeps its kernel with plain line ends, so nobody knows here which ones the file has.
        own, windows = _with_returns(first.kernel_text), replace(made, text=_with_returns(made.text))
        texts[f"{artefact.name}.crlf.patch"] = patch_of(artefact, first.kernel_path, own, windows)
    verified = _verified_code(made)
    check = resources.files("tunesmith.deliver.runtime").joinpath("check_code.py").read_text("utf-8")
    texts |= {"check_code.py": check} if verified else {}
    path, written = _relative(first.kernel_path), (*texts, *verified)
    texts["README.md"] = patch_readme(artefact, path, written, _told(artefact, made))
    files = {name: text.encode(errors="surrogatepass") for name, text in texts.items()}
    return Export(files | verified, made.left_out, made.delivered)


def _verified_code(made: PatchedFile) -> dict[str, bytes]:
    """The machine code of each kernel in the patched file, in a folder for each architecture."""
    return {
        f"verified/{result.dispatch.architecture}/{PurePosixPath(entry.file).stem}.cubin": data
        for result, entry in made.entries
        if (data := result.binary(entry)) is not None
    }


TARGET = Target(
    name="patch",
    about="a unified diff of your own kernel file: tuned kernels added, the original kept for the rest",
    languages=(CUDA.name, OPENCL.name),
    write=_write,
    from_journal=True,
)
