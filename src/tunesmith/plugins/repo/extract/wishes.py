"""What is asked of an extraction, and what is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunesmith.base.errors import BadInput
from tunesmith.base.text import flatten_text, format_count, truncate_text
from tunesmith.expert.drafts.bare import KnownWorkload
from tunesmith.plugins.repo.capture.ranking import KernelKind, kind_of
from tunesmith.plugins.repo.capture.records import Capture, CapturedKernel
from tunesmith.plugins.repo.capture.trace import function_name
from tunesmith.plugins.repo.extract.flatten import Parts
from tunesmith.plugins.repo.extract.host import HostLaunch
from tunesmith.plugins.repo.extract.seen import SeenSizes
from tunesmith.plugins.repo.extract.slice import BuildAttempt, KernelSlice, Pairs
from tunesmith.problem.problem import Origin


@dataclass(frozen=True)
class ExtractionWish:
    """What is asked for. `kernel`: a name, with template arguments or without."""

    kernel: str
    file: str | None = None
    folders: tuple[str, ...] = ()
    defines: Pairs = ()
    flags: tuple[str, ...] = ()
    workloads: tuple[KnownWorkload, ...] = ()
    reference: str | None = None
    trim: bool = True
    seen: CapturedKernel | None = None  # what a program launched
    inside: tuple[str, str] | None = None  # file and host function whose launch is meant


@dataclass(frozen=True)
class Extraction:
    """What was made of it. `files`: name -> text, of the folder."""

    place: str  # where the kernel is defined
    entry: str
    files: tuple[tuple[str, str], ...]
    fills: int
    lines: int  # of the kernel's file
    items: int
    attempt: BuildAttempt
    report: tuple[str, ...]  # what was found, in words
    missing: tuple[str, ...] = ()  # why it does not stand alone, where it does not
    seen_sizes: SeenSizes = ()
    parts: Parts = ()  # of captured arguments that are structs
    passed: Pairs = ()  # the host's words for arguments, by their names
    launch: HostLaunch | None = None
    cut: KernelSlice | None = None
    members: tuple[Extraction, ...] = ()  # kernels that one call launches, each by itself
    origin: Origin | None = None
    unread: tuple[str, ...] = ()  # conditions of the host's that are not over sizes

    @property
    def stands_alone(self) -> bool:
        return self.attempt.ok


# -- Which captured kernel is meant; and where it cannot be extracted, why, and what can still be had.


_MOST_NAMES = 6
_LONGEST = 80
_WITHOUT_SOURCE = {
    KernelKind.VENDOR: "it belongs to a vendor's library, whose source nobody has",
    KernelKind.TRITON: "it is Triton's, compiled from Python: its own tuner is the one to ask",
    KernelKind.TEMPLATES: "it is a template of CUB or Thrust: its source is in that library's headers",
    KernelKind.TORCH: "it is PyTorch's own: name a folder with PyTorch's sources",
    KernelKind.CUPY: "CuPy makes its source while the program runs",
}


def captured_kernel(capture: Capture, name: str, symbol: str | None = None) -> CapturedKernel:
    """The kernel that is meant; of several instances the one that took longest. `symbol`: as the driver names
    it, where that is not its name in the sources. Raises BadInput."""
    if not capture.kernels:
        hint = "see what it did with: tunesmith capture --show FOLDER"
        raise BadInput("the capture has no kernels: the program launched none", hint=hint)
    if symbol is not None:
        found = [kernel for kernel in capture.kernels if symbol in (kernel.name, kernel.demangled)]
        if not found:
            hint = f"it launched {_list_names(kernel.name for kernel in capture.kernels)}"
            raise BadInput(f"the capture has no kernel whose symbol is {symbol}", hint=hint)
        return max(found, key=lambda kernel: kernel.seconds)
    exact = _of_name(capture.kernels, name)
    if not exact:
        raise _unknown_kernel_error(capture.kernels, name.split("<")[0].strip())
    return max(exact, key=lambda kernel: kernel.seconds)


def _of_name(kernels: Sequence[CapturedKernel], name: str) -> list[CapturedKernel]:
    plain = name.split("<")[0].strip()
    named = [(kernel, function_name(kernel.shown)) for kernel in kernels]
    last = plain.split("::")[-1]
    exact = [one for one, full in named if full.endswith(plain) and full.split("::")[-1] == last]
    if "<" in name:
        wanted = name[name.index("<") :].replace(" ", "")
        return [kernel for kernel in exact if wanted in kernel.shown.replace(" ", "")] or exact
    return exact


def is_stripped(kernel: CapturedKernel) -> bool:
    """Without a name, or with one that nobody wrote: mangled, and not to be taken apart again."""
    return not kernel.shown or kernel.shown.startswith("_Z")


def _unknown_kernel_error(kernels: Sequence[CapturedKernel], plain: str) -> BadInput:
    stripped = [kernel for kernel in kernels if is_stripped(kernel)]
    if stripped:
        words = format_count(len(stripped), "kernel of it has", "kernels of it have")
        fault = f"the capture has no kernel called {plain}; {words} no readable name"
        symbols = _list_names(kernel.name or "(none)" for kernel in stripped)
        hint = (
            f"say which it is with --symbol SYMBOL, one of {symbols} (tunesmith capture --show has their "
            "launches); or leave --capture out, and take what the sources say"
        )
        return BadInput(fault, hint=hint)
    names = _list_names(function_name(kernel.shown) for kernel in kernels)
    return BadInput(f"the capture has no kernel called {plain}", hint=f"it launched {names}")


def _list_names(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(truncate_text(flatten_text(name), _LONGEST) for name in names))
    return ", ".join(listed[:_MOST_NAMES]) + (", ..." if len(listed) > _MOST_NAMES else "")


def without_source(kernel: CapturedKernel, missing: BadInput) -> BadInput:
    """What is said of a kernel that ran and that the repository does not have."""
    what = truncate_text(flatten_text(function_name(kernel.shown)) or kernel.name, _LONGEST)
    why = _WITHOUT_SOURCE.get(kind_of(kernel))
    had = f"its launches, arguments and times: tunesmith capture --show --kernel {what}"
    if kernel.image:
        had += f"; its machine code: images/{kernel.image[:12]}...cubin of the capture"
    if why is not None:
        fault = f"{what} ran, and its source is not there: {why}"
        return BadInput(fault, hint=f"what can be had is {had}")
    fault = f"{what} ran, and {missing.message}"
    named = f"its module's line table names {', '.join(kernel.sources[:3])}; " if kernel.sources else ""
    hint = f"{named}name the folder that has its source: tunesmith extract FOLDER. What can be had is {had}"
    return BadInput(fault, hint=hint)
