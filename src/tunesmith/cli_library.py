"""The commands of `tunesmith library`: what is kept there, one entry of it, out of it, away with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tunesmith.console import (
    AsJson,
    handled,
    print_json,
    print_line,
    print_table,
    resolved,
    say,
    show_lines,
    write,
)
from tunesmith.core.untrusted import plain

if TYPE_CHECKING:
    from tunesmith.library import Library

library_app = typer.Typer(
    help="Templates that won, kept for the next device and the next size.",
    rich_markup_mode=None,
    invoke_without_command=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As `tunesmith library` lists it.")]


@library_app.callback()
def library(context: typer.Context, as_json: AsJson = False) -> None:
    """List the templates in your library."""
    if context.invoked_subcommand is not None:
        return
    with handled(as_json):
        from tunesmith.core.codec import encode
        from tunesmith.core.library import summary
        from tunesmith.tables import library_table

        own = _library()
        entries = own.entries(lambda text: print_line(text, stderr=True))
        if as_json:
            print_json(encode([summary(entry) for entry in entries]))
        elif entries:
            print_table(library_table(entries))
        else:
            print_line(f"{own.folder} has no template yet: runs that find something better put theirs there")


@library_app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show one of them: what it is of, what it gave and where, and how to use it again."""
    with handled(as_json):
        from tunesmith.core.codec import encode
        from tunesmith.tables import library_lines

        entry = _library().get(name)
        if as_json:
            print_json(encode(entry))
            return
        show_lines(library_lines(entry))


@library_app.command()
def export(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="The file to write; by default stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write its template to a file of its own."""
    with handled(as_json):
        from tunesmith import library as kept
        from tunesmith.core.codec import encode

        entry = _library().get(name)
        if out is None and not as_json:
            write(plain(entry.template.rstrip()))
            return
        if out is None:
            print_json(encode({"name": name, "template": entry.template}))
            return
        written = [str(path) for path in kept.export(entry, out)]
        say(as_json, {"name": name, "files": written}, [f"wrote {', '.join(written)}"])


@library_app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Take it out of the library; runs are left alone."""
    with handled(as_json):
        _library().remove(name)
        say(as_json, {"removed": name}, [f"{name} is no longer in the library"])


def _library() -> Library:
    from tunesmith.library import Library

    return Library(Path(resolved().library_dir))
