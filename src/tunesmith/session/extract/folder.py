"""`tunesmith extract`: a repository in, a problem folder out, read back by the reader of problems."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from tunesmith.capture.folder import read_array, read_capture
from tunesmith.capture.records import Capture, CapturedKernel
from tunesmith.errors import BadInput, KernelWrong
from tunesmith.expert.reading.known import KnownWorkload
from tunesmith.problem.problem import Origin
from tunesmith.run.dialogue import LanguageModel
from tunesmith.run.files import explained, write_new, write_whole
from tunesmith.session.extract.calls import extract_call, followed_by
from tunesmith.session.extract.extraction import extract
from tunesmith.session.extract.filling import fill
from tunesmith.session.extract.flattening import in_parts
from tunesmith.session.extract.proof_worker import ProofReply, proof_of
from tunesmith.session.extract.provenance import origin_text
from tunesmith.session.extract.recording import recorded_files, with_recorded
from tunesmith.session.extract.repository import Repository, refuse_odd_name
from tunesmith.session.extract.wanted import captured_kernel
from tunesmith.session.extract.wishes import Extraction, ExtractionWish
from tunesmith.session.problems import PROBLEM_FILE, load_problem
from tunesmith.session.sources import given_defines
from tunesmith.session.strategies.casting import one_model
from tunesmith.text import counted, one_line

_SIZE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d+)\s*", re.ASCII)
_UNFILLED = 'what says "FILL" must be filled in first'
_KERNEL = re.compile(r"(?:::)?\s*[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*\s*(?:<.+>)?\s*", re.DOTALL)
NOT_PROVEN = "# Lines marked `by` were filled in by a model and are not proven: `tunesmith check` decides."
_PROVEN = {
    "same": "as captured",
    "within": "as captured",
    "unknown": "not proven",
    "differs": "another result",
}
_NAMED = re.compile(r"\s*([A-Za-z_][\w-]*)\s*:(.*)", re.ASCII | re.DOTALL)


class WishedExtraction(TypedDict, total=False):
    """Options, as the command and the Python interface have them."""

    file: str | None
    entry: str | None
    defines: Sequence[str]
    include: Sequence[str]
    flags: Sequence[str]
    workloads: Sequence[str]
    trim: bool
    reference: str | None
    capture: str | os.PathLike[str] | None
    symbol: str | None
    model: str | None
    wait: bool
    call: bool


@dataclass(frozen=True)
class ExtractedFolder:
    """A problem folder that was written. `stands_alone`: its kernel compiles; `faults`: what the reader of
    problems has against it, besides what is still to be filled in."""

    folder: Path
    kernel: str  # its entry, with namespaces and template arguments
    place: str  # file and line in the repository
    files: tuple[str, ...]
    stands_alone: bool
    compiler: str
    lines: int
    fills: int
    report: tuple[str, ...]
    missing: tuple[str, ...]
    faults: tuple[str, ...]
    proof: tuple[str, ...] = ()  # of captured launches that were made again; empty: none was


def extract_folder(
    repository: str | os.PathLike[str],
    kernel: str,
    out: Path | None,
    note: Callable[[str], None],
    **wish: Unpack[WishedExtraction],
) -> ExtractedFolder:
    """Write the folder; never over anything that is there."""
    capture = wish.get("capture")
    if capture is not None:
        refuse_odd_name(Path(capture))
    wished = wish_of(kernel, **wish)
    tree = Repository(Path(repository))
    if gone := [name for name in wished.folders if not (tree.root / name).is_dir()]:
        fault = f"-I {gone[0]}: the repository has no such folder"
        raise BadInput(fault, where=str(tree.root), hint="folders of headers count from the repository's top")
    found = _taken(tree, wished, note, **wish)
    name = found.entry.split("<")[0].split("::")[-1]
    folder = out or Path(name)
    by_model = ""
    if (model := wish.get("model")) is not None and found.fills and found.stands_alone:
        asked = one_model(model, folder, wish.get("wait", True), note)
        found = _filled(found, asked, note)
        by_model = "" if found.fills else asked.name
    found = with_origin(found, Path(repository), None if capture is None else Path(capture))
    write_folder(folder, found.files)
    proof: tuple[str, ...] = ()
    holds = False
    files = tuple(file for file, _ in found.files)
    faults = tuple(read_back(folder, found))
    if capture is not None and wished.seen is not None and found.stands_alone:
        if found.fills or faults:
            proof = (f"not proven on what was captured: {_UNFILLED if found.fills else faults[0]}",)
        else:
            note("making captured launches again")
            proof, holds = _proof(folder, found, Path(capture), wished.seen.name)
            if wished.reference is None and not found.members:
                added, said = record(folder, Path(capture), wished.seen.name, found)
                files, proof = (*files, *added), (*proof, *said)
    if by_model and holds:
        _as_proven(folder)
    elif by_model:
        words = f"what {by_model} filled in is not proven by a captured launch: problem.toml says so too"
        found = replace(found, report=(*found.report, words))
    return ExtractedFolder(
        folder,
        found.entry,
        found.place,
        files,
        found.stands_alone,
        found.attempt.compiler,
        found.lines,
        found.fills,
        found.report,
        found.missing,
        faults,
        proof,
    )


def _taken(
    tree: Repository, wished: ExtractionWish, note: Callable[[str], None], **wish: Unpack[WishedExtraction]
) -> Extraction:
    given = wish.get("capture")
    if given is None:
        return extract_call(tree, wished, note) if wish.get("call") else extract(tree, wished, note)
    capture = read_capture(Path(given))
    if wish.get("call"):
        return extract_call(tree, wished, note, seen_of=lambda name: _seen(capture, name))
    found = extract(tree, wished, note)
    after = followed_by(capture, wished.seen) if wished.seen is not None else []
    words = f"where it was launched, {', '.join(after)} came next each time: --call takes them together"
    return replace(found, report=(*found.report, words)) if after else found


def _seen(capture: Capture, name: str) -> CapturedKernel | None:
    try:
        return captured_kernel(capture, name)
    except BadInput:
        return None


def _proof(folder: Path, found: Extraction, capture: Path, kernel: str) -> tuple[tuple[str, ...], bool]:
    """Of the kernel, in words, and whether what the problem says is proven too. Where a call launches
    several, of each by itself, in a folder that goes again: that says nothing of the whole's own file."""
    if not found.members:
        reply = proof_of(folder, capture, kernel, found.parts, found.seen_sizes)
        return proven(folder, found, reply), reply.holds
    known = read_capture(capture)
    said: list[str] = []
    for part in found.members:
        seen = _seen(known, part.entry)
        if seen is None or part.fills:
            said.append(f"{part.entry}: not proven on what was captured")
            continue
        with tempfile.TemporaryDirectory(prefix="tunesmith-extract-") as scratch:
            write_folder(Path(scratch), part.files)
            reply = proof_of(Path(scratch), capture, seen.name, part.parts, part.seen_sizes)
        lines = proven(folder, replace(part, files=found.files), reply)
        said += [f"{part.entry}: {line}" for line in lines]
    return tuple(said), False


def _filled(found: Extraction, model: LanguageModel, note: Callable[[str], None]) -> Extraction:
    """What is filled in is marked as not proven until it is."""
    done = fill(found, model, note)
    own = dict(done.found.files)
    if not done.found.fills:
        own[PROBLEM_FILE] = f"{NOT_PROVEN}\n{own[PROBLEM_FILE]}"
    return replace(done.found, files=tuple(own.items()), report=(*done.found.report, *done.said))


def _as_proven(folder: Path) -> None:
    place = folder / PROBLEM_FILE
    with explained("write the problem", folder):
        write_whole(place, place.read_bytes().removeprefix(f"{NOT_PROVEN}\n".encode()))


def wish_of(kernel: str, **wish: Unpack[WishedExtraction]) -> ExtractionWish:
    entry = wish.get("entry")
    if entry is not None and entry.split("<")[0].split("::")[-1].strip() != kernel.split("::")[-1]:
        fault = f"--entry is an instance of --kernel {kernel}; got {entry!r}"
        raise BadInput(fault, hint=f"for example: --entry '{kernel}<float>'")
    instance = entry[entry.index("<") :] if entry is not None and "<" in entry else ""
    if not _KERNEL.fullmatch(kernel + instance):
        got = kernel + instance
        fault = f"--kernel is a name and --entry an instance of it, with all its brackets; got {got!r}"
        raise BadInput(fault, hint="for example: --kernel space::scale --entry 'scale<float, 4>'")
    capture, symbol = wish.get("capture"), wish.get("symbol")
    if symbol is not None and capture is None:
        raise BadInput("--symbol names a kernel of a capture", hint="add --capture FOLDER")
    seen = None
    if capture is not None:
        seen = captured_kernel(read_capture(Path(capture)), kernel + instance, symbol)
    return ExtractionWish(
        kernel + instance,
        wish.get("file"),
        tuple(wish.get("include", ())),
        given_defines(wish.get("defines", ())),
        tuple(wish.get("flags", ())),
        given_workloads(wish.get("workloads", ())),
        wish.get("reference"),
        wish.get("trim", True),
        seen,
    )


def with_origin(found: Extraction, repository: Path, capture: Path | None) -> Extraction:
    """Where it comes from, in the problem file too."""
    if found.origin is None:
        return found
    seen = "" if capture is None else str(capture.resolve())
    origin = replace(found.origin, repository=str(repository.resolve()), capture=seen)
    own = dict(found.files)
    own[PROBLEM_FILE] = f"{own[PROBLEM_FILE].rstrip()}\n\n{origin_text(origin)}{_read_text(origin)}"
    return replace(found, files=tuple(own.items()), origin=origin)


def _read_text(origin: Origin) -> str:
    """Which launch promises were taken from; what it asks for besides may not hold at others."""
    if not origin.read:
        return ""
    asked = [" ".join(text.split()) for text in origin.unread]
    # Escapes of JSON's are among those of TOML's texts.
    lines = ["", "[origin.read]", f"launch = {json.dumps(origin.read)}"]
    lines += [f"unread = [{', '.join(map(json.dumps, asked))}]"] if asked else []
    lines += ["alone = true  # other launches are of other instances of the kernel"] if origin.alone else []
    return "\n".join(lines) + "\n"


def proven(folder: Path, found: Extraction, reply: ProofReply) -> tuple[str, ...]:
    """What was proven, in words; a kernel that does not do what was captured is refused, its files go."""
    wrong = [one.words for one in reply.launches if one.verdict == "differs"]
    if wrong or reply.fault:
        for name, _ in found.files:
            (folder / name).unlink(missing_ok=True)
        fault = f"{found.entry} does not do what was captured: {reply.fault or wrong[0]}"
        hint = "are these the sources that ran, and built so? --define, --flag and --entry say how; what a "
        hint += "model filled in may be wrong: without --model it is left to you"
        raise KernelWrong(fault, hint=hint, where=found.place)
    if reply.trouble:
        return (f"not proven on what was captured: {reply.trouble}",)
    return tuple(f"launch {one.launch}: {_PROVEN[one.verdict]} ({one.words})" for one in reply.launches)


def record(folder: Path, capture: Path, kernel: str, found: Extraction) -> tuple[list[str], list[str]]:
    """Launches whose memory was kept become cases of the problem, in files of their own; and what is said."""
    problem = load_problem(folder)
    sizes = {number: dict(own) for number, own in found.seen_sizes}
    seen = in_parts(read_capture(capture), kernel, found.parts)
    files, notes = recorded_files(
        problem.definition, seen, kernel, sizes, lambda digest: read_array(capture, digest)
    )
    said = list(notes)
    if files:
        write_folder(folder, tuple(files.items()))
        with explained("write the problem", folder):
            write_whole(folder / PROBLEM_FILE, with_recorded(problem.toml, list(files)).encode())
        words = counted(len(files), "launch is kept as a case", "launches are kept as cases")
        said.append(f"{words}: {', '.join(files)}, since there is no reference")
    return list(files), said


def write_folder(folder: Path, files: Sequence[tuple[str, str]]) -> None:
    there = [name for name, _ in files if os.path.lexists(folder / name)]
    if there:
        hint = "choose another folder with --out DIR"
        raise BadInput(f"{', '.join(there)} would be overwritten", where=str(folder), hint=hint)
    try:
        encoded = [(name, text.encode()) for name, text in files]
    except UnicodeEncodeError as error:  # a file of the repository is named so
        odd = (
            error.object[max(error.start - 40, 0) : error.end + 40]
            .encode("utf-8", "backslashreplace")
            .decode()
        )
        raise BadInput(f"a name in the repository is not UTF-8: {one_line(odd)}", hint="rename it") from error
    with explained("write the problem", folder, instead="another folder with --out DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        try:
            for name, data in encoded:
                write_new(folder / name, data)
                written.append(folder / name)
        except OSError:
            for path in written:
                path.unlink(missing_ok=True)
            raise


def read_back(folder: Path, found: Extraction) -> list[str]:
    """What the reader of problems says of it, but for places to be filled in."""
    try:
        load_problem(folder)
    except BadInput as refused:
        lines = [line for line in refused.message.splitlines() if "FILL" not in line]
        return lines if not found.fills or len(lines) > 1 else []
    return []


def given_workloads(options: Sequence[str]) -> tuple[KnownWorkload, ...]:
    """`--workload "decode: rows=16, hidden=4096"`; without a name they are numbered."""
    found: list[KnownWorkload] = []
    for number, option in enumerate(options, 1):
        named = _NAMED.fullmatch(option)
        name, text = (named[1], named[2]) if named else (f"workload_{number}", option)
        sizes = [_SIZE.fullmatch(part) for part in text.split(",")]
        if not all(sizes) or any(workload.name == name for workload in found):
            fault = f"--workload lists sizes, and its name comes once; got {option!r}"
            raise BadInput(fault, hint='for example: --workload "decode: rows=16, hidden=4096"')
        found.append(KnownWorkload(name, tuple((size[1], int(size[2])) for size in sizes if size)))
    return tuple(found)
