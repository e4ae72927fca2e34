"""Where a problem was taken from: `[origin]` of a problem file, written by `extract` and read by `apply`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from tunesmith.problem.toml_table import Table, show

_ORIGIN = ("repository", "file", "lines", "launches", "digests", "capture", "kernel")

_LINES = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class Origin:
    """Files count from the repository's top. `digests`: of every file that the problem was made of, as text
    with plain line ends."""

    file: str  # that defines the kernel
    lines: tuple[int, int]  # the first and the last of its definition
    launches: tuple[str, ...]  # "file:line" of each launch that was seen
    digests: tuple[tuple[str, str], ...]
    repository: str = ""  # where it was
    capture: str = ""  # the folder of what a program launched, where one told
    kernel: str = ""  # the captured kernel's own name

    @property
    def launching_files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.rpartition(":")[0] for place in self.launches))


def origin_text(origin: Origin) -> str:
    """As a problem file has it."""
    lines = [
        "# Where it was taken from, for `tunesmith apply`.",
        "[origin]",
        f"repository = {_quoted(origin.repository)}",
        f"file = {_quoted(origin.file)}",
        f'lines = "{origin.lines[0]}-{origin.lines[1]}"',
        f"launches = [{', '.join(map(_quoted, origin.launches))}]",
    ]
    lines += [f"capture = {_quoted(origin.capture)}"] if origin.capture else []
    lines += [f"kernel = {_quoted(origin.kernel)}"] if origin.kernel else []
    lines += ["", "[origin.digests]"]
    lines += [f"{_quoted(path)} = {_quoted(digest)}" for path, digest in origin.digests]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML; JSON's escapes are among its own."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_origin(root: Table) -> Origin | None:
    if "origin" not in root:
        return None
    table = root.table("origin", "[origin]")
    if table is None:
        return None
    table.only(_ORIGIN)
    table.needs("file", hint="`tunesmith extract` writes [origin]: leave it as it is, or leave it out")
    said = table.text("lines") or "1-1"
    lines = _LINES.fullmatch(said)
    if lines is None:
        table.fault("lines", f'lines are the first and the last, "12-40", got {show(said)}')
    own = table.table_or_empty("digests", "[origin.digests]")
    digests = tuple((path, own.text(path) or "") for path in own.data)
    file = table.text("file") or ""
    launches = table.texts("launches")
    for path in (file, *(place.rpartition(":")[0] for place in launches), *(path for path, _ in digests)):
        if path and not is_inside(path):
            table.fault(None, f"files count from the repository's top and lie below it, got {show(path)}")
    return Origin(
        file,
        (int(lines[1]), int(lines[2])) if lines else (1, 1),
        launches,
        digests,
        table.text("repository") or "",
        table.text("capture") or "",
        table.text("kernel") or "",
    )


def is_inside(path: str) -> bool:
    found = PurePosixPath(path)
    return not found.is_absolute() and ".." not in found.parts and bool(found.name)
