"""`tunesmith apply --swap`: a program as it is, and with launches of its kernel served by the tuned one.

No file of the program's is touched, and nothing stays: it is for measuring.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.base.files import explain_disk_errors, remove_tree
from tunesmith.base.text import format_count, one_line
from tunesmith.deliver.artefact import Artefact, DeviceResult
from tunesmith.deliver.cuda.host import image_text, read_cuda_resource
from tunesmith.deliver.expr_text import c_text, format_comment
from tunesmith.plugins.exports.patch import embedded_unit, twin_of, unserved_reason
from tunesmith.plugins.exports.patch_dispatch import (
    CannotServe,
    TunedUnit,
    at_launch_code,
    dispatch_code,
    launch_widths,
)
from tunesmith.plugins.repo.apply.changes import FOLDER, Side
from tunesmith.plugins.repo.apply.commands import (
    Applied,
    CommandEnd,
    Ending,
    SwapCounts,
    WishedApply,
    build_library,
    counts_in,
    foretold_by,
    run_command,
    swap_environment,
)
from tunesmith.plugins.repo.apply.gain import BenchMetric, BenchSeries, alternate_measurements
from tunesmith.plugins.repo.capture.records import read_capture
from tunesmith.problem.template import PLACEHOLDER
from tunesmith.run.ports import Listener
from tunesmith.session.result import Run

_INCLUDES = (
    "atomic", "dlfcn.h", "errno.h", "fcntl.h", "pthread.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
    "sys/mman.h", "unistd.h",
)  # fmt: skip
_PARTS = ("swap_driver.h", "arithmetic.cuh", "launch_checks.h", "patch_host.cuh")
_APPLY = "put it into the sources instead: tunesmith apply RUN; or take it in another form: tunesmith export"


@dataclass(frozen=True)
class SwapSource:
    """`text` is C++ for the host's compiler alone. `notes`: which tuned kernels it lacks, and why."""

    text: str
    delivered: int
    notes: tuple[str, ...]


def swap_source(artefact: Artefact, kernel: str) -> SwapSource:
    """`kernel`: the original's name in the driver. Raises BadInput where nothing can be swapped."""
    dispatch = artefact.first.dispatch
    launches = dispatch.original.launches
    if len(launches) > 1:
        fault = f"the operator takes {len(launches)} launches, and launches are swapped one by one"
        raise BadInput(fault, hint="take what was delivered in another form: tunesmith export RUN --to cpp")
    if PLACEHOLDER.search(launches[0].entry):
        raise BadInput("the original is another kernel for each size, which a launch does not tell apart")
    try:
        at_launch = at_launch_code(artefact)
    except CannotServe as error:
        raise BadInput(f"no launch can be swapped: {error}", hint=_APPLY) from error
    units, notes = _verified_units(artefact)
    if not units:
        raise BadInput("no tuned kernel can be swapped in: " + "; ".join(notes), hint=_APPLY)
    widths = launch_widths(dispatch)
    wanted = (
        f"static const char wanted_name[] = {c_text(kernel)};\n"
        f"constexpr size_t wanted_count = {len(widths)};\n"
        f"static const size_t wanted_bytes[] = {{{', '.join(map(str, widths or (1,)))}}};\n"
    )
    spaces = {unit.namespace: image_text("image", unit.image or b"") for unit in units}
    images = [f"namespace {name} {{\n{text}}}\n" for name, text in spaces.items()]
    head = "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n"
    head += "".join(f"#include <{name}>\n" for name in _INCLUDES)
    parts = map(read_cuda_resource, _PARTS)
    body = "\n".join([*parts, *images, wanted, dispatch_code(artefact, units), at_launch])
    about = format_comment([f"Launches of {kernel}, served by tuned kernels of {artefact.problem}."])
    text = f"{about}{head}\nnamespace {{\n\n{body}\n}}  // namespace\n\n{read_cuda_resource('swap_hooks.h')}"
    return SwapSource(text, len({(unit.result.run, unit.file) for unit in units}), tuple(notes))


def _verified_units(artefact: Artefact) -> tuple[list[TunedUnit], list[str]]:
    """What was verified, to the byte: machine code alone."""
    units: list[TunedUnit] = []
    left_out: dict[str, str] = {}
    for result in artefact.results:
        if not result.dispatch.capability:
            raise BadInput(f"{result.run} does not say the architecture of {result.dispatch.device}")
        for entry in result.dispatch.tuned:
            twin = twin_of(units, result, entry)
            if twin is not None and twin.entry.binary == entry.binary:
                units.append(replace(twin, entry=entry))
                continue
            made = embedded_unit(result, entry, f"v{len(units)}", result.dispatch.capability)
            if made is not None:
                units.append(made)
                continue
            why = unserved_reason(result.dispatch, entry) or "the run has no machine code of it"
            left_out.setdefault(entry.file, f"left out: {entry.file}, {why}")
    return units, list(left_out.values())


_UNFIT = re.compile(r"[\s:]")  # what separates the names in LD_PRELOAD
_ALONE = ("repo", "bench", "build", "force", "dry_run")


class _SwapFails(Exception):
    """What the program makes of swapped launches."""


@dataclass
class _Swapping:
    command: str
    folder: Path  # for what is printed
    library: Path
    counting: Path  # for what processes count
    kernel: str
    metric: BenchMetric
    timeout: float
    listener: Listener
    number: int = 0  # of commands that were run
    counts: list[SwapCounts] = field(default_factory=list)  # of the program, one for each run

    def ran(self, what: str, command: str, side: Side) -> tuple[CommandEnd, SwapCounts]:
        self.number += 1
        counts = self.counting / f"counts-{self.number}"
        counts.mkdir()
        log = self.folder / f"{self.number:02d}-{what}-{side}.log"
        environment = swap_environment(self.library, counts) if side == "after" else {}
        self.listener.say(f"{what} {'swapped' if side == 'after' else 'as it is'}: {command}")
        ended = run_command(command, Path.cwd(), log, self.timeout, self.listener.note, environment)
        if ended.ok:
            return ended, counts_in(counts)
        who = "the program" if what == "program" else "the test command"
        if side == "after":
            raise _SwapFails(f"with swapped launches {who} {ended.fault}; {ended.log}")
        hint = "mend it, or name another program" if what == "program" else "mend it, or correct --test"
        raise BadInput(f"{who} fails before anything is swapped: it {ended.fault}", where=str(log), hint=hint)

    def measured(self, side: Side) -> float:
        ended, counts = self.ran("program", self.command, side)
        if side == "after":
            self.counts.append(counts)
            _check_swapped(counts, self.kernel)
        value = self.metric.read(ended.output, ended.seconds)
        if value is not None:
            return value
        if side == "after":
            raise _SwapFails(f"with swapped launches the program prints no number for --metric; {ended.log}")
        fault = f"the program prints no positive number where --metric {self.metric.pattern!r} looks"
        raise BadInput(fault, where=str(ended.log), hint="correct --metric; the file has what it prints")

    def series(self, rounds: int) -> BenchSeries:
        """In alternation, after one run of each that is not counted: caches are filled by it."""
        for side in ("before", "after"):
            self.measured(side)

        def say(side: Side, words: str) -> None:
            self.listener.say(f"program {'swapped' if side == 'after' else 'as it is'}, {words}")

        return alternate_measurements(rounds, self.metric, self.measured, say)

    def tested(self, command: str) -> tuple[tuple[float, ...], str]:
        """Seconds of both sides, and how much of it was swapped."""
        plain, _ = self.ran("test", command, "before")
        ended, counts = self.ran("test", command, "after")
        launches = format_count(counts.swapped, "launch was", "launches were")
        note = f"in the tests {launches} swapped, of {counts.ours} of the kernel"
        if not counts.swapped:
            note = "in the tests no launch was swapped: they say nothing about the tuned kernel"
        return (plain.seconds, ended.seconds), note


def swap_result(run: Run, result: DeviceResult, listener: Listener, **wish: Unpack[WishedApply]) -> Applied:
    """Runs the program by turns without and with swapped launches."""
    words = wish.get("swap") or ()
    if not words:
        hint = "name it after two dashes: tunesmith apply RUN --swap -- python bench.py"
        raise BadInput("there is no program to run", hint=hint)
    if odd := [name for name in _ALONE if wish.get(name)]:
        fault = f"--{odd[0].replace('_', '-')} is for patches, and --swap touches no file"
        raise BadInput(fault, hint=f"leave out --{odd[0].replace('_', '-')}, or --swap")
    metric = BenchMetric(wish.get("metric") or "", wish.get("higher", False))
    origin = result.templates.problem.origin if result.templates is not None else None
    capture = wish.get("capture") or (origin.capture if origin is not None else "") or None
    seen = None if capture is None else Path(capture)
    asked = wish.get("kernel")
    kernel = _name_of(result) if asked is None else _captured_name(asked, seen)
    artefact = Artefact((result,))
    listener.note("building the library that swaps launches")
    made = swap_source(artefact, kernel)
    foretold, notes = foretold_by(run, kernel, seen, metric)
    notes = [*made.notes, *notes]
    folder = _make_log_folder(run.folder)
    fault, series = "", None
    tested: tuple[float, ...] = ()
    with _preload_folder(folder) as place:
        library = build_library(made.text, place)
        timeout = wish.get("timeout", 600.0)
        work = _Swapping(shlex.join(words), folder, library, place, kernel, metric, timeout, listener)
        try:
            if test := wish.get("test"):
                tested, said = work.tested(test)
                notes.append(said)
            series = work.series(wish.get("rounds", 3))
        except _SwapFails as failed:
            fault = str(failed)
    ending: Ending = "swap failed" if fault else "swapped"
    no_patch = ("", "", (), ())
    return Applied(
        *(str(run.folder), artefact.problem, "", ending, *no_patch, made.delivered, len(artefact.tuned)),
        notes=(*notes, *_count_notes(work.counts)),
        tested=tested,
        bench=series,
        foretold=foretold,
        fault=fault,
        counts=work.counts[-1] if work.counts else None,
        kernel=kernel,
    )


def _captured_name(asked: str, capture: Path | None) -> str:
    """A driver's name for what a capture shows in words, `scale(float*, int)`."""
    if capture is None or not capture.exists():
        return asked
    shown = [kernel for kernel in read_capture(capture).kernels if asked in (kernel.name, kernel.demangled)]
    names = sorted({kernel.name for kernel in shown})
    if len(names) > 1:
        fault = f"--kernel {one_line(asked, 200)} is the name of {len(names)} kernels of the capture"
        raise BadInput(fault, hint=f"name one of them: {', '.join(names[:4])}")
    return names[0] if names else asked


def _name_of(result: DeviceResult) -> str:
    """The original's, as a driver has it: that which was captured, else that of its own machine code."""
    origin = result.templates.problem.origin if result.templates is not None else None
    if origin is not None and origin.kernel:
        return origin.kernel
    original = result.dispatch.original
    if original.binary is not None and (name := original.binary.symbols.get(original.launches[0].entry)):
        return name
    fault = "the run does not say by what name the program launches the kernel"
    raise BadInput(fault, hint="name it as tunesmith capture lists it: --kernel NAME")


def _make_log_folder(run: Path) -> Path:
    folder = run / FOLDER / "swap"
    with explain_disk_errors("make a folder for what the program prints", folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.log"):
            old.unlink()
    return folder


@contextmanager
def _preload_folder(logs: Path) -> Iterator[Path]:
    """For the library, in a folder that LD_PRELOAD can name."""
    beside = logs.resolve()
    parent = None if _UNFIT.search(str(beside)) else beside
    place = Path(tempfile.mkdtemp(prefix="swap-", dir=parent))
    try:
        yield place
    finally:
        remove_tree(place)


def _check_swapped(counts: SwapCounts, kernel: str) -> None:
    """A sentence where nothing was swapped, and why."""
    if counts.swapped:
        return
    if not counts.processes:
        fault = "the program launches nothing on a GPU: no process of it asked CUDA's driver how"
        hint = "does it run on the CPU? programs that are linked statically as a whole are not seen either"
        raise DeviceMissing(fault, hint=hint)
    if not counts.launches and not counts.nodes:
        hint = "does it do its work there?"
        raise DeviceMissing("the program used CUDA, but launched no kernel", hint=hint)
    if counts.untold:
        fault = (
            "the driver does not tell the names of kernels, or loads no libraries: it is older than CUDA 12.4"
        )
        raise DeviceMissing(fault, hint="update the driver, or apply the run: tunesmith apply RUN")
    if counts.nodes and not counts.ours:
        fault = f"the program launches {one_line(kernel, 200)} only in graphs that it makes node by node"
        raise BadInput(fault, hint="those stay as they are; apply the run: tunesmith apply RUN")
    if not counts.ours:
        fault = f"none of {format_count(counts.launches, 'launch', 'launches')} is of {one_line(kernel, 200)}"
        hint = "see what it launches with: tunesmith capture -- PROGRAM; another name is said by --kernel"
        raise BadInput(fault, hint=hint)
    why = "; ".join(_fallback_reasons(counts))
    hint = "a tuned kernel serves what it was verified for: see the contract, and the launches of the capture"
    launches = format_count(counts.ours, "launch", "launches")
    raise BadInput(f"no launch of {launches} could be swapped: {why}", hint=hint)


def _fallback_reasons(counts: SwapCounts) -> Iterator[str]:
    for number, why in (
        (counts.unverified, "sizes, values, memory or device are not as they were verified"),
        (counts.parameters, "the kernel has other parameters than the problem"),
        (counts.attributes, "launched with an attribute that a tuned launch would not have"),
        (counts.refused, "the driver refuses the tuned kernel"),
    ):
        if number:
            yield f"{number}: {why}"


def _count_notes(runs: list[SwapCounts]) -> Iterator[str]:
    if not runs:
        return
    last = runs[-1]
    yield from (f"as they are, {reason}" for reason in _fallback_reasons(last))
    if last.recorded:
        recorded = format_count(last.recorded, "swapped launch", "swapped launches")
        yield f"{recorded} went into graphs, each of which may run any number of times"
    if last.nodes:
        nodes = format_count(last.nodes, "node")
        yield f"{nodes} of the kernel in graphs that the program makes node by node stay as they are"
    swapped = [counts.swapped for counts in runs]
    if min(swapped) != max(swapped):
        yield f"from run to run {min(swapped)} to {max(swapped)} launches were swapped"
