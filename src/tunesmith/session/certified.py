"""A run's certificate, and the files that it names, as they lie on disk."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tunesmith.deliver.certificate import CERTIFICATE_VERSION, Certificate
from tunesmith.deliver.certificate import DISPATCH as DISPATCH
from tunesmith.errors import BadInput
from tunesmith.problem.codec import Malformed, decode
from tunesmith.run.files import read_plain
from tunesmith.text import sha256


class NotCertified(Exception):
    """What is wrong with a file."""


def read_certificate(path: Path) -> Certificate:
    hint = "name a run's folder, or the certificate.json in it; a run that has ended has one"
    if path.name == "report.json":
        hint = f"a report proves nothing, with the folder of its run it can be verified: {hint}"
    try:
        found = decode(read_plain(path), Certificate, "certificate")
    except OSError as error:
        fault = f"the run's certificate cannot be read: {error.strerror}"
        raise BadInput(fault, where=str(path), hint=hint) from error
    except Malformed as error:
        raise BadInput(str(error), where=str(path), hint=hint) from error
    if found.version != CERTIFICATE_VERSION:
        fault = f"this certificate has version {found.version}, known is version {CERTIFICATE_VERSION}"
        raise BadInput(fault, where=str(path), hint="use the version of Tunesmith that wrote it")
    return found


def certified_file(root: Path, name: str, digest: str) -> bytes:
    """To the byte what the certificate names; raises NotCertified."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise NotCertified(f"{name} is not a file of the run")
    path = root.joinpath(*parts)
    try:
        is_link = any(p.is_symlink() for p in (path, *path.parents[: len(parts) - 1]))
        data = b"" if is_link else read_plain(path)
    except (OSError, ValueError) as error:
        raise NotCertified(f"{name} is missing") from error
    if is_link or sha256(data) != digest:
        raise NotCertified(f"{name} was changed")
    return data
