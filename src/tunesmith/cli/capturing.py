"""The command `capture`: a program's kernels, and what tuning them could give."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tunesmith
from tunesmith.cli import console
from tunesmith.errors import BadInput
from tunesmith.text import counted, cut, flat, seconds_text

if TYPE_CHECKING:
    from tunesmith.capture.ranking import RankedKernel
    from tunesmith.capture.records import Capture, CapturedArgument, CapturedLaunch

LONGEST = 60  # characters of a kernel's name in the table
SHOWN = 20  # kernels
IDLE = 0.5  # of the time from first to last: worth saying
MOST_LAUNCHES = 40  # of one kernel


def _one_folder(words: list[str] | None) -> Path | None:
    if words and len(words) > 1:
        fault = f"--show takes one folder, and these are {len(words)}: {shlex.join(words)[:200]}"
        raise BadInput(fault, hint="leave out --show to run a program")
    return Path(words[0]) if words else None


def _show(folder: Path, capture: Capture, every: bool, as_json: bool) -> None:
    from tunesmith.capture.ranking import ranking

    ranked = ranking(capture)
    if as_json:
        about = {"program": capture.program, "devices": capture.devices, "notes": capture.notes}
        times = {"seconds": capture.seconds, "span": capture.span, "copies": capture.copies}
        console.print_encoded({"folder": str(folder), **about, **times, "kernels": ranked})
        return
    shown = ranked if every else ranked[:SHOWN]
    head = "# | kernel | of | launches: | time: | share: | by floor: | could save: | if busy: | end to end:"
    console.print_table(head, [_row(number, one) for number, one in enumerate(shown, 1)])
    console.show_lines([*_lines(folder, capture, ranked, len(shown))])


def _show_kernel(capture: Capture, name: str, as_json: bool) -> None:
    """One kernel's launches, with their arguments."""
    found = list(capture.named(name))
    if not found:
        known = ", ".join(cut(flat(kernel.shown), LONGEST) for kernel in capture.kernels[:5])
        raise BadInput(f"no kernel of this capture has {name!r} in its name", hint=f"it has e.g. {known}")
    if as_json:
        console.print_encoded(found)
        return
    for kernel in found:
        console.print_line(f"{flat(kernel.shown)}")
        code = f"code {kernel.code[:12]}" if kernel.code else "code not known"
        uses = f"{kernel.registers} registers, {kernel.static_shared} B static shared, {kernel.local} B local"
        console.print_line(f"{flat(kernel.name)}; {code}; {uses}")
        head = "launch | grid | block | shared: | cluster | streams | count: | mean: | arguments"
        rows = [_launch_row(launch) for launch in kernel.launches[:MOST_LAUNCHES]]
        console.print_table(head, rows)
        if len(kernel.launches) > MOST_LAUNCHES:
            console.print_line(f"{len(kernel.launches) - MOST_LAUNCHES} more; all with --json")


def _launch_row(launch: CapturedLaunch) -> tuple[str, ...]:
    shapes = ["×".join(map(str, triple)) for triple in (launch.grid, launch.block)]
    cluster = "×".join(map(str, launch.cluster)) if any(launch.cluster) else ""
    streams = ", ".join(map(str, launch.streams)) or ("graph" if launch.in_graph else "")
    mean = seconds_text(launch.mean) if launch.mean is not None else "?"
    arguments = ", ".join(map(_argument_text, launch.arguments)) if launch.complete else "not known"
    counts = (str(launch.count), mean)
    return (str(launch.number), *shapes, str(launch.shared), cluster, streams, *counts, arguments)


def _argument_text(argument: CapturedArgument) -> str:
    if memory := argument.memory:
        return f"→ {argument.pointers[0].least} of {memory.size} B"
    if argument.pointers:
        return f"{argument.size} B with {counted(len(argument.pointers), 'pointer')}"
    if argument.size in (1, 2, 4, 8):
        return str(int.from_bytes(argument.value, "little", signed=True))
    return f"{argument.size} B"


def _row(number: int, one: RankedKernel) -> tuple[str, ...]:
    by_floor = f"{one.distance:.2f}×" if one.distance is not None else "?"
    saving = f"{'' if one.distance else '≤ '}{100 * one.score:.1f} %" if one.tunable else "–"
    gains = [
        f"{gain:.2f}×" if one.tunable and gain is not None else "–"
        for gain in (one.on_device, one.end_to_end)
    ]
    name = cut(flat(one.demangled or one.name), LONGEST) or "(no name)"
    times = (str(one.count), seconds_text(one.seconds), f"{100 * one.share:.1f} %")
    return (str(number), name, one.kind, *times, by_floor, saving, *gains)


def _lines(folder: Path, capture: Capture, ranked: list[RankedKernel], shown: int) -> list[str]:
    devices = ", ".join(device.name for device in capture.devices) or "not known"
    copies, program = capture.copies, capture.program
    lines = [
        "by floor         its time by that of moving its bytes at the memory's bandwidth; these are at most",
        "                 what its pointers' allocations hold, so the floor may be lower",
        "could save       share of the device's time, down to that floor",
        "if busy          what that gives at most to a part in which the device never waits",
        "end to end       what that gives at most from the first kernel to the last",
        f"device           {devices}",
        f"device's time    {seconds_text(capture.seconds)}, of it copies and fills "
        f"{seconds_text(copies.seconds)} ({counted(copies.count, 'copy', 'copies')}); from first to last "
        f"{seconds_text(capture.span)}",
    ]
    if capture.span > 0 and (idle := 1 - capture.seconds / capture.span) >= IDLE:
        lines.append(
            f"idle             the device waited for {100 * idle:.1f} % of that: from end to end faster "
            "kernels give little, where it is busy all they save"
        )
    if program.command:
        code = program.exit_code
        ended = (
            "" if code is None else f", ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"
        )
        lines.append(f"program          {flat(shlex.join(program.command))}{ended}")
    reasons: dict[str, list[int]] = {}
    for number, one in enumerate(ranked[:shown], 1):
        for reason in one.missing:
            reasons.setdefault(reason, []).append(number)
    lines += [f"missing          of {_listed(numbers)}: {flat(why)}" for why, numbers in reasons.items()]
    if shown < len(ranked):
        lines.append(f"not shown        {counted(len(ranked) - shown, 'kernel')}; all with --all")
    lines += [f"note             {flat(note)}" for note in capture.notes]
    lines.append(f"capture          {folder}")
    return lines


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def capture(
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="[--] PROGRAM…|FOLDER", help="What to run, after --; with --show a capture."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show a capture, by default the newest; nothing is run.")
    ] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for what is seen.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A kernel whose memory is kept before and after launches; several may be named."),
    ] = None,
    keep_mib: Annotated[
        int, typer.Option("--keep-mib", min=1, help="How much memory may be kept, in MiB.")
    ] = 1024,
    exact: Annotated[
        bool, typer.Option("--exact", help="Switch PyTorch's caching allocator off: arrays' sizes are exact.")
    ] = False,
    launches: Annotated[
        int, typer.Option(min=1, help="Launches of a process whose arguments are looked at.")
    ] = 1_000_000,
    kernel: Annotated[
        str | None, typer.Option(help="With --show: the launches of this one, with their arguments.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show all kernels, not only the first 20.")] = False,
    as_json: console.AsJson = False,
) -> None:
    """Run a program and see which kernels it launches, and what tuning them could give."""
    if show:
        found = tunesmith.load_capture(_one_folder(program))
        if kernel is not None:
            _show_kernel(found.capture, kernel, as_json)
        else:
            _show(found.folder, found.capture, every, as_json)
        return
    with console.progress(as_json) as listener:
        found = tunesmith.capture_program(
            program or [],
            out=out,
            keep=keep or (),
            keep_bytes=keep_mib << 20,
            launches=launches,
            exact=exact,
            listener=listener,
        )
    _show(found.folder, found.capture, every, as_json)
