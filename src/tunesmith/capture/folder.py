"""The folder of a capture: read whole, each file checked against what names it."""

from __future__ import annotations

import re
from pathlib import Path

from tunesmith.capture.records import ARRAYS, CAPTURE, FORMAT, Capture, ModuleImage
from tunesmith.errors import BadInput
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.files import explained, read_plain, write_whole
from tunesmith.text import sha256

_DIGEST = re.compile(r"[0-9a-f]{64}")
AGAIN = "capture the program again: tunesmith capture -- PROGRAM"


def read_capture(folder: Path) -> Capture:
    """What was seen, as it was written when the program ended."""
    path = folder / CAPTURE
    if not path.is_file():
        fault = "this is not a capture: it has no capture.json"
        raise BadInput(fault, where=str(folder), hint=AGAIN)
    with explained("read it", path):
        data = read_plain(path)
    try:
        found = decode(data, Capture, "capture")
    except Malformed as error:
        raise BadInput(str(error), where=str(path), hint=AGAIN) from error
    if found.format != FORMAT:
        fault = f"a capture of format {found.format}, and this version reads format {FORMAT}"
        raise BadInput(fault, where=str(path), hint=AGAIN)
    return found


def write_capture(folder: Path, capture: Capture) -> Path:
    path = folder / CAPTURE
    with explained("write what was seen", path):
        write_whole(path, encode(capture) + b"\n")
    return path


def read_image(folder: Path, image: ModuleImage) -> bytes:
    """A module's image, as the driver loaded it."""
    return _checked(folder / image.file, image.digest)


def read_array(folder: Path, digest: str) -> bytes:
    """Contents of a range of memory, as a `KeptRange` names them."""
    return _checked(folder / ARRAYS / f"{digest}.bin", digest)


def read_sized(path: Path) -> bytes:
    """A plain file, however large it is."""
    return read_plain(path, path.lstat().st_size)


def _checked(path: Path, digest: str) -> bytes:
    if not _DIGEST.fullmatch(digest):
        raise BadInput(f"not a digest: {digest!r}", where=str(path), hint=AGAIN)
    with explained("read it", path):
        data = read_sized(path)
    if sha256(data) != digest:
        raise BadInput("its contents are not those that were captured", where=str(path), hint=AGAIN)
    return data
