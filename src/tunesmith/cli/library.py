"""The commands of `tunesmith library`: what is kept there, one entry of it, out of it, away with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tunesmith.cli import console
from tunesmith.cli.console import AsJson, handled
from tunesmith.text import plain

if TYPE_CHECKING:
    from tunesmith.session.library import Library

library_app = typer.Typer(
    help="Templates that won, kept for the next device and the next size.",
    rich_markup_mode=None,
    invoke_without_command=True,
)


def _entry_names(incomplete: str) -> list[str]:
    return [path.stem for path in _library().folder.glob(f"{incomplete}*.json")]


Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="As `tunesmith library` lists it.", autocompletion=_entry_names),
]


@library_app.callback()
def library(context: typer.Context, as_json: AsJson = False) -> None:
    """List the templates in your library."""
    if context.invoked_subcommand is not None:
        return
    with handled(as_json):
        from tunesmith.cli.tables import library_table
        from tunesmith.run.library import summary

        own = _library()
        entries = own.entries(console.print_note)
        if as_json:
            console.print_encoded([summary(entry) for entry in entries])
        elif entries:
            console.print_table(library_table(entries))
        else:
            console.print_line(
                f"{own.folder} has no template yet: runs that find something better put theirs there"
            )


def show(name: Name, as_json: AsJson = False) -> None:
    """Show one of them: what it is of, what it gave and where, and how to use it again."""
    from tunesmith.cli.tables import library_lines

    entry = _library().get(name)
    if as_json:
        console.print_encoded(entry)
    else:
        console.show_lines(library_lines(entry))


def export(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="The file to write; by default stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write its template to a file of its own."""
    from tunesmith.session import library as kept

    entry = _library().get(name)
    if out is None and not as_json:
        console.write(plain(entry.template.rstrip()))
        return
    if out is None:
        console.print_encoded({"name": name, "template": entry.template})
        return
    written = [str(path) for path in kept.export(entry, out)]
    console.say(as_json, {"name": name, "files": written}, [f"wrote {', '.join(written)}"])


def remove(name: Name, as_json: AsJson = False) -> None:
    """Take it out of the library; runs are left alone."""
    _library().remove(name)
    console.say(as_json, {"removed": name}, [f"{name} is no longer in the library"])


def _library() -> Library:
    from tunesmith.run.config import resolve
    from tunesmith.session.library import Library

    return Library(Path(resolve({}).library_dir))


for _command in (show, export, remove):
    console.add_command(library_app, _command)
