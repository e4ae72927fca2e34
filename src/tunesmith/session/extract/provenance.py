"""Where an extracted kernel comes from, so that what is tuned finds its way back."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tunesmith.problem.problem import Origin
from tunesmith.session.extract.finding import FoundKernel
from tunesmith.session.extract.host import HostReading
from tunesmith.session.extract.slicing import FRAMEWORK, KernelSlice
from tunesmith.session.extract.tree import SourceTree
from tunesmith.text import sha256


def origin_of(
    tree: SourceTree, found: FoundKernel, host: HostReading, cut: KernelSlice, captured: str = ""
) -> Origin:
    """`captured`: the kernel's own name in a capture. The repository and the capture are not known here."""
    item = found.item
    last = max((token.line for token in item.tokens), default=item.line)
    launches = tuple(dict.fromkeys(launch.place for launch in host.launches))
    used = (part.path for part in cut.items if part.path != FRAMEWORK)
    paths: Iterable[str] = (item.path, *(launch.path for launch in host.launches), *used)
    digests = tuple((path, text_digest(tree.read(path))) for path in sorted(set(paths)))
    return Origin(item.path, (item.line, max(item.line, last)), launches, digests, kernel=captured)


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
    lines += [f"include = [{', '.join(map(_quoted, origin.include))}]"] if origin.include else []
    lines += [f"capture = {_quoted(origin.capture)}"] if origin.capture else []
    lines += [f"kernel = {_quoted(origin.kernel)}"] if origin.kernel else []
    lines += ["", "[origin.digests]"]
    lines += [f"{_quoted(path)} = {_quoted(digest)}" for path, digest in origin.digests]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML; JSON's escapes are among its own."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def text_digest(text: str) -> str:
    """Of a file's text with plain line ends."""
    return sha256(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass"))
