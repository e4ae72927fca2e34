"""The commands `export`, `extract`, `apply` and `capture`: programs and repositories, in and out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tunesmith
from tunesmith.base.errors import BadInput, KernelWrong
from tunesmith.base.text import flatten_text, format_count, one_line, seconds_text, truncate_text
from tunesmith.cli import console

if TYPE_CHECKING:
    from tunesmith.plugins.repo.apply.commands import Applied
    from tunesmith.plugins.repo.capture.ranking import RankedKernel
    from tunesmith.plugins.repo.capture.records import Capture, CapturedArgument, CapturedLaunch
    from tunesmith.plugins.repo.extract.extract import ExtractedFolder


def export(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="The run; by default the newest. Several: one for each device."),
    ] = None,
    to: Annotated[str, typer.Option("--to", help="One of {exports}.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder that is empty or new.")] = None,
    as_json: console.AsJson = False,
) -> None:
    """Write what a run delivered in the form that a program takes."""
    found = tunesmith.export(runs or None, to=to, out=out)
    if as_json:
        console.print_encoded(found)
        return
    lines = [f"exported         {found.problem} for {found.target}, tuned on {', '.join(found.devices)}"]
    lines += [found.delivered.replace(": ", "        ", 1)]
    lines += [f"not delivered    {why}" for why in found.left_out]
    lines += [f"note             {note}" for note in found.notes]
    lines += [f"folder           {found.folder}, {len(found.files)} files"]
    start = next((name for name in ("README.md", "python/README.md", "tune.py") if name in found.files), "")
    lines += [f"start with       {found.folder}/{start}"] if start else []
    console.show_lines(lines)


# -- The commands `extract` and `apply`: out of a repository and back, with its tests and benchmark before
# and after.


def check_words(program: list[str] | None, swap: bool, kernel: str | None, run: Path | None) -> None:
    """A program, and a kernel's name in it, are for --swap, which takes the first word for the run."""
    if swap and run is not None and not run.is_dir():
        fault = f"--swap needs the run before the program, and {shlex.quote(str(run))} is no run's folder"
        raise BadInput(fault, hint="tunesmith apply RUN --swap -- PROGRAM")
    if swap or not (program or kernel):
        return
    what = f"a program, {shlex.join(program)[:200]}," if program else "--kernel"
    raise BadInput(f"{what} is given without --swap", hint="tunesmith apply RUN --swap -- PROGRAM")


def show_applied(found: Applied, as_json: bool) -> None:
    console.print_result(as_json, found, list(_applied_lines(found)))
    if found.ending in ("rolled back", "swap failed"):
        raise typer.Exit(KernelWrong.exit_code)


def _applied_lines(found: Applied) -> Iterator[str]:
    if found.ending == "undone":
        yield f"undone           {', '.join(found.files)} in {found.repository}"
        return
    if found.ending == "dry run":
        yield found.diff.rstrip("\n")
    yield from _swap_lines(found) if found.kernel else _patch_lines(found)
    yield from (f"note             {note}" for note in found.notes)
    if found.tested:
        both = "as it is and with swapped launches" if found.kernel else "before and after"
        passed = both if len(found.tested) == 2 else "before"
        yield f"tests            passed {passed}, {' and '.join(f'{t:.1f} s' for t in found.tested)}"
    if (series := found.bench) is not None:
        from tunesmith.plugins.repo.apply.gain import spread_text

        before, after = (spread_text(side, series.unit) for side in (series.before, series.after))
        names = ("program", "as it is", "swapped") if found.kernel else ("benchmark", "before", "after")
        runs = f"{len(series.before)} runs each"
        yield f"{names[0]:<16} {names[1]} {before}, {names[2]} {after}, {runs}"
        low, high = series.spread
        yield f"end to end       {series.gain:.3f}× ({low:.3f} to {high:.3f})"
    if (told := found.foretold) is not None:
        yield (
            f"foretold         {told.gain:.3f}×: the kernel has {100 * told.share:.1f} % of {told.of}, "
            f"and is {told.speedup:.2f}× as fast"
        )
        if told.busy is not None:
            yield f"if busy          {told.busy:.3f}×, where the device never waits while it is timed"
    again = shlex.quote(found.run)
    if found.ending == "applied":
        yield f"undo             tunesmith apply --undo {again} --repo {shlex.quote(found.repository)}"
    elif found.ending == "rolled back":
        yield f"rolled back      {found.fault}"
        left = ", ".join(found.still_patched)
        again = f"git apply -R {shlex.quote(found.patch)}"
        yield f"repository       {f'still patched: {left}; take it out by {again}' if left else 'as it was'}"
    elif found.ending == "swap failed":
        yield f"failed           {found.fault}"


def _patch_lines(found: Applied) -> Iterator[str]:
    yield f"repository       {found.repository}"
    yield f"delivered        {found.delivered} of {found.winners} tuned kernels of {found.problem}"
    changed = "would change" if found.ending == "dry run" else "changed"
    yield f"{changed:<16} {', '.join(found.files)}"
    yield f"launches         {', '.join(found.launches)}; the original serves where they are not as verified"
    yield f"patch            {found.patch}"


def _swap_lines(found: Applied) -> Iterator[str]:
    yield f"kernel           {one_line(found.kernel, 300)}"
    tuned = f"{found.delivered} of {found.winners} tuned kernels of {found.problem}"
    yield f"swapped in       {tuned}, for measuring"
    if (counts := found.counts) is not None:
        yield (
            f"launches         {counts.swapped} swapped, {counts.left} as they are; of all kernels "
            f"{counts.launches}, in {format_count(counts.processes, 'process', 'processes')}"
        )


def extract(
    kernel: Annotated[str, typer.Option("--kernel", metavar="NAME", help="The kernel, also space::name.")],
    repository: Annotated[
        Path, typer.Argument(metavar="[REPO]", help="The folder of the sources; by default this one.")
    ] = Path(),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the problem; by default the kernel's name.")
    ] = None,
    file: Annotated[str | None, typer.Option("--file", help="Its file, where several define one.")] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", metavar="'k<float, 4>'", help="The instance of a template.")
    ] = None,
    define: console.Defines = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", "-I", metavar="DIR", help="Where headers lie, in REPO.")
    ] = None,
    flag: Annotated[
        list[str] | None, typer.Option("--flag", metavar="FLAG", help="A flag that it is built with.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", metavar="SIZES", help="Where it must be fast: 'rows=16, hidden=4096'."),
    ] = None,
    capture: Annotated[
        Path | None, typer.Option("--capture", metavar="FOLDER", help="What a program launched: a capture.")
    ] = None,
    symbol: Annotated[
        str | None,
        typer.Option("--symbol", metavar="SYMBOL", help="Its name in the capture, where that is another."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="CALL", help="What gives the same: 'torch.softmax(x, -1)'."),
    ] = None,
    call: Annotated[
        bool, typer.Option("--call", help="All kernels that its host function launches, as one problem.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="SPEC", help="A model to fill in what is left, as `tune` takes it."),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait for a reply in a mailbox.")] = True,
    trim: Annotated[
        bool, typer.Option(help="Leave out overloads that the machine code does not need.")
    ] = True,
    as_json: console.AsJson = False,
) -> None:
    """Take a kernel out of a repository: a problem folder that stands alone."""
    with console.show_progress(as_json) as listener:
        found = tunesmith.extract(
            repository,
            kernel=kernel,
            out=out,
            file=file,
            entry=entry,
            defines=define or (),
            include=include or (),
            flags=flag or (),
            workloads=workload or (),
            capture=capture,
            symbol=symbol,
            reference=reference,
            call=call,
            model=model,
            wait=wait,
            trim=trim,
            listener=listener,
        )
    console.print_result(as_json, found, list(_extract_lines(found)))
    if not found.stands_alone:
        raise typer.Exit(2)


def apply(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The run; by default the newest.")] = None,
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="[--] PROGRAM…", help="With --swap, what to run; RUN stands before it."),
    ] = None,
    repo: Annotated[
        Path | None, typer.Option("--repo", metavar="DIR", help="Where the repository is, if it was moved.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="CMD", help="Your tests: if they fail afterwards, nothing stays.")
    ] = None,
    bench: Annotated[
        str | None, typer.Option(metavar="CMD", help="Your benchmark, run before and after in alternation.")
    ] = None,
    build: Annotated[
        str | None, typer.Option(metavar="CMD", help="What builds it, run whenever files change.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Where the benchmark prints its number; else its wall time."),
    ] = None,
    higher: Annotated[bool, typer.Option("--higher", help="More of --metric is better.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="How often both sides are timed.")] = 3,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that each command may take.")] = 600.0,
    capture: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The capture that foretells; else the problem's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the patch, and change nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where files have changes that are not committed.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the run's patch back.")] = False,
    swap: Annotated[
        bool,
        typer.Option(
            "--swap", help="Touch no file: run PROGRAM by turns as it is and with swapped launches."
        ),
    ] = False,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --swap, the original's name in the program.")
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Patch the repository that a kernel was taken from; test and time it before and after."""
    check_words(program, swap, kernel, run)
    with console.show_progress(as_json) as listener:
        found = tunesmith.apply(
            run,
            repo=repo,
            test=test,
            bench=bench,
            build=build,
            metric=metric,
            higher=higher,
            rounds=rounds,
            timeout=timeout,
            capture=capture,
            dry_run=dry_run,
            force=force,
            undo=undo,
            swap=tuple(program or ()) if swap else None,
            kernel=kernel,
            listener=listener,
        )
    show_applied(found, as_json)


def _extract_lines(found: ExtractedFolder) -> Iterator[str]:
    yield f"kernel           {found.kernel}"
    yield from (f"note             {line}" for line in found.report)
    yield from (f"missing          {line}" for line in found.missing)
    yield from (f"problem file     {line}" for line in found.faults)
    yield from (f"proof            {line}" for line in found.proof)
    code = format_count(found.lines, "line")
    yield f"wrote            {', '.join(found.files)} in {found.folder}, {code} of code"
    then = f"tunesmith check {shlex.quote(str(found.folder))}"
    if not found.stands_alone:
        yield "stands alone     no, it does not compile: see what is missing"
    elif found.fills:
        places = format_count(found.fills, 'place says "FILL"', 'places say "FILL"')
        yield f"stands alone     yes, it compiles; {places}, and what was seen stands beside it. Then: {then}"
    else:
        yield f"stands alone     yes, it compiles. Next: {then}"


# -- The command `capture`: a program's kernels, and what tuning them could give.


LONGEST = 60  # characters of a kernel's name in the table
SHOWN = 20  # kernels
IDLE = 0.5  # of the time from first to last: worth saying
MAX_LAUNCHES = 40  # of one kernel


def _one_folder(words: list[str] | None) -> Path | None:
    if words and len(words) > 1:
        fault = f"--show takes one folder, and these are {len(words)}: {shlex.join(words)[:200]}"
        raise BadInput(fault, hint="leave out --show to run a program")
    return Path(words[0]) if words else None


def _show_capture(folder: Path, capture: Capture, every: bool, as_json: bool) -> None:
    from tunesmith.plugins.repo.capture.ranking import rank_kernels

    ranked = rank_kernels(capture)
    if as_json:
        about = {"program": capture.program, "devices": capture.devices, "notes": capture.notes}
        times = {"seconds": capture.seconds, "span": capture.span, "copies": capture.copies}
        console.print_encoded({"folder": str(folder), **about, **times, "kernels": ranked})
        return
    shown = ranked if every else ranked[:SHOWN]
    head = "# | kernel | of | launches: | time: | share: | by floor: | could save: | if busy: | end to end:"
    console.print_table(head, [_ranked_kernel_row(number, one) for number, one in enumerate(shown, 1)])
    console.show_lines([*_capture_lines(folder, capture, ranked, len(shown))])


def _show_kernel(capture: Capture, name: str, as_json: bool) -> None:
    """One kernel's launches, with their arguments."""
    found = list(capture.named(name))
    if not found:
        known = ", ".join(truncate_text(flatten_text(one.shown), LONGEST) for one in capture.kernels[:5])
        raise BadInput(f"no kernel of this capture has {name!r} in its name", hint=f"it has e.g. {known}")
    if as_json:
        console.print_encoded(found)
        return
    for kernel in found:
        console.print_line(f"{flatten_text(kernel.shown)}")
        code = f"code {kernel.code[:12]}" if kernel.code else "code not known"
        uses = f"{kernel.registers} registers, {kernel.static_shared} B static shared, {kernel.local} B local"
        console.print_line(f"{flatten_text(kernel.name)}; {code}; {uses}")
        head = "launch | grid | block | shared: | cluster | streams | count: | mean: | arguments"
        rows = [_launch_row(launch) for launch in kernel.launches[:MAX_LAUNCHES]]
        console.print_table(head, rows)
        if len(kernel.launches) > MAX_LAUNCHES:
            console.print_line(f"{len(kernel.launches) - MAX_LAUNCHES} more; all with --json")


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
        return f"{argument.size} B with {format_count(len(argument.pointers), 'pointer')}"
    if argument.size in (1, 2, 4, 8):
        return str(int.from_bytes(argument.value, "little", signed=True))
    return f"{argument.size} B"


def _ranked_kernel_row(number: int, one: RankedKernel) -> tuple[str, ...]:
    by_floor = f"{one.distance:.2f}×" if one.distance is not None else "?"
    saving = f"{'' if one.distance else '≤ '}{100 * one.score:.1f} %" if one.tunable else "–"
    most = (one.on_device, one.end_to_end)
    gains = [f"{gain:.2f}×" if one.tunable and gain is not None else "–" for gain in most]
    name = truncate_text(flatten_text(one.demangled or one.name), LONGEST) or "(no name)"
    times = (str(one.count), seconds_text(one.seconds), f"{100 * one.share:.1f} %")
    return (str(number), name, one.kind, *times, by_floor, saving, *gains)


def _capture_lines(folder: Path, capture: Capture, ranked: list[RankedKernel], shown: int) -> list[str]:
    from tunesmith.plugins.repo.capture.capture import code_text

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
        f"{seconds_text(copies.seconds)} ({format_count(copies.count, 'copy', 'copies')}); from "
        "first to last "
        f"{seconds_text(capture.span)}",
    ]
    if capture.span > 0 and (idle := 1 - capture.seconds / capture.span) >= IDLE:
        lines.append(
            f"idle             the device waited for {100 * idle:.1f} % of that: from end to end faster "
            "kernels give little, where it is busy all they save"
        )
    if program.command:
        ended = "" if program.exit_code is None else f", ended with {code_text(program.exit_code)}"
        lines.append(f"program          {flatten_text(shlex.join(program.command))}{ended}")
    reasons: dict[str, list[int]] = {}
    for number, one in enumerate(ranked[:shown], 1):
        for reason in one.missing:
            reasons.setdefault(reason, []).append(number)
    for why, numbers in reasons.items():
        lines.append(f"missing          of {', '.join(map(str, numbers))}: {flatten_text(why)}")
    if shown < len(ranked):
        lines.append(f"not shown        {format_count(len(ranked) - shown, 'kernel')}; all with --all")
    lines += [f"note             {flatten_text(note)}" for note in capture.notes]
    lines.append(f"capture          {folder}")
    return lines


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
            _show_capture(found.folder, found.capture, every, as_json)
        return
    with console.show_progress(as_json) as listener:
        found = tunesmith.capture_program(
            program or [],
            out=out,
            keep=keep or (),
            keep_bytes=keep_mib << 20,
            launches=launches,
            exact=exact,
            listener=listener,
        )
    _show_capture(found.folder, found.capture, every, as_json)
