"""What may choose models, hosts and programs: folders that the user trusts, by the digests of their files,
and runs, comparisons and fleets that were begun here, by what they began with.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.files import SETTINGS_FILE, explain_disk_errors, open_plain, read_plain, write_whole
from tunesmith.base.text import redact_secrets, sha256_hex
from tunesmith.problem.device import is_source_name
from tunesmith.run.folder import FLEET, JOURNAL, PLAN

BEGUN = "begun"  # beside the folder of records: a digest each line
UNKNOWN, CHANGED, TRUSTED = "unknown", "changed", "trusted"
MAX_FILES, MAX_BYTES = 2000, 1 << 26  # that are digested of a folder, whenever a command starts in it
_NO_PROGRAMS = (".git", "__pycache__")


@dataclass(frozen=True)
class TrustedFolder:
    folder: str
    files: dict[str, str]  # name, from the folder -> digest
    version: int = 1


def state_of(folder: Path, digests: Callable[[], Mapping[str, str]], environment: Mapping[str, str]) -> str:
    """Of a folder whose files have these digests now: asked for where somebody has trusted it."""
    place = _record_path(folder, environment)
    known = None if place is None else _read_trust_record(place)
    if known is None or known.folder != os.path.realpath(folder):
        return UNKNOWN
    try:
        return TRUSTED if known.files == digests() else CHANGED
    except BadInput:  # it has grown beyond what trust may rest on
        return CHANGED


def trust_folder(folder: Path, files: Mapping[str, str], environment: Mapping[str, str]) -> None:
    place = _record_path(folder, environment)
    if place is None:
        fault = "what is trusted is written down in the home, and there is none"
        raise BadInput(fault, hint="set HOME or XDG_DATA_HOME to a folder of yours")
    with explain_disk_errors(
        "write down what is trusted", place, instead="another place with XDG_DATA_HOME=DIR"
    ):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(place, encode_json(TrustedFolder(os.path.realpath(folder), dict(files))))


def beginning_of(folder: Path) -> dict[str, str]:
    """The files that say what a run, a comparison or a fleet was begun with, and the digests of that: of a
    journal the first line. Empty: the folder is none of them."""
    found = {}
    for name in (FLEET, PLAN, JOURNAL):
        if (folder / name).is_file():
            with explain_disk_errors("read it", folder / name):
                data = read_plain(folder / name)
            found[name] = sha256_hex(data.partition(b"\n")[0] if name == JOURNAL else data)
    return found


def remember_begun(file: Path, environment: Mapping[str, str] = os.environ) -> None:
    """That it was begun here, with this file. A home that cannot be written keeps nobody from working: going
    on then asks who is meant, as with what came from others."""
    base = _records_folder(environment)
    if base is None:
        return
    with contextlib.suppress(OSError):
        base.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = open_plain(base.with_name(BEGUN), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(place, "w") as written:
            written.write(f"{beginning_of(file.parent)[file.name]}\n")


def refuse_strangers(
    file: Path, asked: Mapping[str, object], how: str = "", environment: Mapping[str, str] = os.environ
) -> None:
    """BadInput where a run, comparison or fleet that was not begun here, with this file, asks for what only
    the user may. `how`: what they can type, beside trusting the folder."""
    if not asked:
        return
    folder = file.parent
    known, base = beginning_of(folder), _records_folder(environment)
    with contextlib.suppress(OSError):
        begun = read_plain(base.with_name(BEGUN)) if base is not None else b""
        if known[file.name].encode() in begun.split():
            return
    if state_of(folder, lambda: known, environment) == TRUSTED:
        return
    named = ", ".join(f"{name} = {redact_secrets(repr(value))}" for name, value in asked.items())
    fault = f"a folder that was not begun here chooses no model, host or program, and this one names {named}"
    hint = f"{how}read it, then: tunesmith trust {shlex.quote(os.path.realpath(folder))}"
    raise BadInput(fault, where=str(folder), hint=hint)


def forget_folder(folder: Path, environment: Mapping[str, str]) -> bool:
    place = _record_path(folder, environment)
    if place is None or not place.is_file():
        return False
    place.unlink()
    return True


def trusted_folders(environment: Mapping[str, str]) -> list[TrustedFolder]:
    base = _records_folder(environment)
    places = sorted(base.glob("*.json")) if base is not None else []
    return sorted(filter(None, map(_read_trust_record, places)), key=lambda one: one.folder)


def digests_of(
    folder: Path, known: Mapping[str, bytes], names: Iterable[str], starts_programs: bool
) -> dict[str, str]:
    """Of what settings name: files, and of folders the files in them. Where they start programs, which may
    read and start whatever lies there: of all below the folder, but for git's own, bytecode, kernels, and
    folders of runs, which are no programs and change with every day's work."""
    paths = [folder / name for name in names]
    files = [file for path in paths for file in (_in_folder(path) if path.is_dir() else [path])]
    found, left = {name: sha256_hex(data) for name, data in known.items()}, MAX_BYTES
    for number, file in enumerate((*files, *(_all_below(folder) if starts_programs else ()))):
        if (name := os.path.relpath(file, folder)) in found:
            continue
        data = _read_or_empty(file, left + 1)
        left -= len(data)
        if number >= MAX_FILES or left < 0:
            fault = f"what trust would rest on is more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB"
            hint = f"put {SETTINGS_FILE} and what it names into a folder of its own, "
            hint += "or its settings into your own file"
            raise BadInput(fault, where=str(folder), hint=hint)
        link = f"{os.readlink(file)}\0".encode() if file.is_symlink() else b""
        found[name] = sha256_hex(link + data)
    return found


def _in_folder(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if not file.is_dir())


def _all_below(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        folders[:] = sorted(n for n in folders if n not in _NO_PROGRAMS and not _is_of_run(Path(root, n)))
        yield from (Path(root, name) for name in sorted([*files, *links]) if not is_source_name(name))


def _is_of_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (FLEET, PLAN, JOURNAL))


def _read_or_empty(path: Path, limit: int) -> bytes:
    """What cannot be read has no content: it cannot do anything either."""
    try:
        return read_plain(Path(os.path.realpath(path)), limit)
    except OSError:
        return b""


def _records_folder(environment: Mapping[str, str]) -> Path | None:
    base = environment.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):
        base = str(Path(environment.get("HOME", "")) / ".local/share")
    return Path(base) / "tunesmith" / "trusted" if os.path.isabs(base) else None


def _record_path(folder: Path, environment: Mapping[str, str]) -> Path | None:
    base = _records_folder(environment)
    return base / f"{sha256_hex(os.fsencode(os.path.realpath(folder)))}.json" if base is not None else None


def _read_trust_record(place: Path) -> TrustedFolder | None:
    try:
        return decode_json(read_plain(place), TrustedFolder)
    except (OSError, Malformed):
        return None
