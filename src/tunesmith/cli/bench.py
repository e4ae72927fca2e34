"""The commands `bench` and `capture`, of kernels where programs call them; `mcp` and `skill`, for agents;
`trust`, of folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

import tunesmith
from tunesmith.cli import console
from tunesmith.cli.console import AsJson
from tunesmith.errors import BadInput


def bench(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The run; by default the newest.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long it may take at most.")] = 600.0,
    as_json: AsJson = False,
) -> None:
    """Time original and tuned where they are called: eager, compiled, captured; the host's cost apart."""
    with console.progress(as_json) as listener:
        found = tunesmith.bench(run, seconds=seconds, listener=listener)
    if as_json:
        console.print_encoded(found)
        return
    rows = []
    for workload in found.workloads:
        kernel = f"{workload.verified:.2f}×" if workload.verified is not None else "original"
        for way in workload.ways:
            low, high = way.interval
            times = (way.original_us, way.tuned_us, way.original_host_us, way.tuned_host_us)
            figures = [f"{time:.1f} µs" for time in times]
            gain = (f"{way.ratio:.2f}×", f"{low:.2f} to {high:.2f}")
            rows.append((workload.name, kernel, way.way, *figures[:2], *gain, *figures[2:]))
        rows += [(workload.name, kernel, failed.way, *["–"] * 6) for failed in workload.failed if failed.way]
    head = "workload | verified: | called by | original: | tuned: | measured: | interval"
    if rows:
        console.print_table(f"{head} | host, original: | host, tuned:", rows)
    lines = [
        f"device           {found.device}",
        "verified         the speed-up of the kernel alone, by the run",
        "measured         the speed-up of the whole call, now; host: until a call returns",
    ]
    for workload in found.workloads:
        for failed in workload.failed:
            name = f"{workload.name}, {failed.way}" if failed.way else workload.name
            lines.append(f"not timed        {name}: {failed.why}")
    notes = [*found.notes, *(note for workload in found.workloads for note in workload.notes)]
    console.show_lines([*lines, *(f"note             {note}" for note in notes)])


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
    as_json: AsJson = False,
) -> None:
    """Run a program and see which kernels it launches, and what tuning them could give."""
    from tunesmith.cli import capturing

    if show:
        found = tunesmith.load_capture(capturing.one_folder(program))
        if kernel is not None:
            capturing.show_kernel(found.capture, kernel, as_json)
        else:
            capturing.show(found.folder, found.capture, every, as_json)
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
    capturing.show(found.folder, found.capture, every, as_json)


def mcp(
    root: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder that clients may touch; by default what they name."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="A hosted model that clients may have write, as `tune` takes it."),
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="On loopback with a token, instead of stdio.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http; 0: a free one.")] = 0,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --http: the token; by default a new one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve agents by the Model Context Protocol: tools, reports and kernels of runs, and the method."""
    from tunesmith.cli import agents

    if not http and (port or token_file is not None):
        given = "--port" if port else "--token-file"
        raise BadInput(f"{given} goes with --http: on stdio there is neither", hint="add --http")
    address = agents.HttpAddress(port, token_file) if http else None
    agents.serve_agents(root or [], model or [], address, as_json)


def skill(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where your agent looks for skills; else stdout."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the skill that teaches coding agents to tune by this command line."""
    from tunesmith.cli import agents

    written = agents.write_skill(out)
    if out is None:
        console.say(as_json, {"skill": written[agents.SKILL]}, [written[agents.SKILL].rstrip()])
    else:
        console.say(
            as_json, {"folder": str(out), "files": list(written)}, [f"wrote {', '.join(written)} in {out}"]
        )


def trust(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="One with a tunesmith.toml, or a run's; none: list them."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Trust it no longer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a folder's tunesmith.toml, or a run of others, say what only you may, until it changes."""
    from tunesmith.run import trust as trusting
    from tunesmith.run.config import beyond_permission, folder_settings

    if folder is None:
        if remove:
            raise BadInput("--remove needs a folder", hint="see which are trusted: tunesmith trust")
        known = trusting.trusted_folders(os.environ)
        console.say(as_json, known, [one.folder for one in known] or ["no folder is trusted"])
        return
    if remove:
        was = trusting.forget(folder, os.environ)
        words = "is not trusted any more" if was else "was not trusted"
        console.say(as_json, {"folder": str(folder), "removed": was}, [f"{folder} {words}"])
        return
    if files := trusting.beginning_of(folder):
        beyond = ["models, hosts and programs, as it was begun"]
    else:
        asked, files = folder_settings(folder)
        beyond = beyond_permission(asked, folder)
    trusting.remember(folder, files, os.environ)
    console.say(
        as_json,
        {"folder": str(folder), "files": files, "settings": beyond},
        [
            f"trusted, as they are now: {', '.join(files)}",
            f"its settings that only you may give: {', '.join(beyond) or 'none'}",
        ],
    )
