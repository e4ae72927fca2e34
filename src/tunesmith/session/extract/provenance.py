"""Where an extracted kernel comes from, so that what is tuned finds its way back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from tunesmith.problem.origin import Origin
from tunesmith.session.extract.finding import FoundKernel
from tunesmith.session.extract.host import HostReading
from tunesmith.session.extract.slicing import FRAMEWORK, KernelSlice
from tunesmith.session.extract.tree import SourceTree


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


def text_digest(text: str) -> str:
    """Of a file's text with plain line ends."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()
