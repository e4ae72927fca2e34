"""What agents are given: the server of the Model Context Protocol, and the skill for the command line."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.agents.models import parse_spec
from tunesmith.base.errors import BadInput
from tunesmith.base.files import explain_disk_errors, read_plain, write_whole
from tunesmith.cli import console

SKILL = "tunesmith/SKILL.md"
SHORTEST_TOKEN = 32


@dataclass(frozen=True)
class HttpAddress:
    port: int
    token_file: Path | None


def serve_agents(
    roots: Sequence[Path], models: Sequence[str], http: HttpAddress | None, as_json: bool
) -> None:
    if find_spec("mcp") is None:
        hint = "pip install 'tunesmith[mcp]', in a clone: pip install -e '.[mcp]'"
        raise BadInput("the server needs the package mcp, which is not installed", hint=hint)
    for root in roots:
        if not root.is_dir():
            raise BadInput("--root names a folder, and this is none", where=str(root), hint="name another")
    for model in models:
        parse_spec(model)
    token = token_of(http.token_file) if http is not None else ""
    from tunesmith.plugins.mcp.server import serve_http, serve_mcp

    if http is None:
        serve_mcp(roots, models)
        return

    def tell(address: str) -> None:
        """Where and how to call it; a token that the user has in a file is not shown again."""
        shown = {"address": address} | ({"token": token} if http.token_file is None else {})
        console.print_result(as_json, shown, [f"{name:<16} {value}" for name, value in shown.items()])

    serve_mcp(roots, models, lambda server: serve_http(server, http.port, token, tell))


def token_of(file: Path | None) -> str:
    """From a file that nobody else may read, or a new one."""
    if file is None:
        return secrets.token_urlsafe(32)
    try:
        others_may = file.stat().st_mode & 0o077
        token = read_plain(file, 4096).decode("ascii", "replace").strip()
    except OSError as error:
        hint = "name a plain file that holds it"
        raise BadInput(f"cannot be read: {error.strerror}", where=str(file), hint=hint) from error
    if others_may:
        fault = "the file with the token can be read by others"
        raise BadInput(fault, where=str(file), hint=f"chmod 600 {file}")
    if len(token) < SHORTEST_TOKEN or not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token):
        fault = (
            f"a token has at least {SHORTEST_TOKEN} letters, digits or -._~+/=, got {len(token)} characters"
        )
        raise BadInput(fault, where=str(file), hint=f"make one: openssl rand -hex 32 > {file}")
    return token


def skill_files() -> dict[str, str]:
    """Name -> text."""
    root = resources.files("tunesmith.plugins.mcp") / "skills"
    return {name: file.read_text(encoding="utf-8") for name, file in sorted(_walk_markdown(root, ""))}


def _walk_markdown(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        own = f"{name}/{item.name}" if name else item.name
        if item.is_dir():
            yield from _walk_markdown(item, own)
        elif item.name.endswith(".md"):
            yield own, item


def write_skill(out: Path | None) -> dict[str, str]:
    """In a folder of its own below `out`; an older one of the same name is replaced."""
    files = skill_files()
    if out is not None:
        for name, text in files.items():
            path = out / name
            with explain_disk_errors("write the skill", path, instead="another folder with --out"):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, text.encode())
    return files


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
    as_json: console.AsJson = False,
) -> None:
    """Serve agents by the Model Context Protocol: tools, reports and kernels of runs, and the method."""
    if not http and (port or token_file is not None):
        given = "--port" if port else "--token-file"
        raise BadInput(f"{given} goes with --http: on stdio there is neither", hint="add --http")
    address = HttpAddress(port, token_file) if http else None
    serve_agents(root or [], model or [], address, as_json)


def skill(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where your agent looks for skills; else stdout."),
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Write the skill that teaches coding agents to tune by this command line."""
    written = write_skill(out)
    if out is None:
        console.print_result(as_json, {"skill": written[SKILL]}, [written[SKILL].rstrip()])
    else:
        value = {"folder": str(out), "files": list(written)}
        console.print_result(as_json, value, [f"wrote {', '.join(written)} in {out}"])
