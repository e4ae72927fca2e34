"""What is asked of an extraction, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.capture.records import CapturedKernel
from tunesmith.expert.reading.known import KnownWorkload
from tunesmith.problem.problem import Origin
from tunesmith.session.extract.finding import Pairs
from tunesmith.session.extract.flattening import Parts
from tunesmith.session.extract.host import HostLaunch
from tunesmith.session.extract.seen import SeenSizes
from tunesmith.session.extract.slicing import KernelSlice
from tunesmith.session.extract.trimming import BuildAttempt


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
