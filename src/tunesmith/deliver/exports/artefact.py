"""What exports are made from: the dispatch and files of a run, or of several runs of one problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from tunesmith.deliver.c_code import identifier
from tunesmith.errors import BadInput
from tunesmith.problem.dispatch import Dispatch, DispatchEntry
from tunesmith.run.candidates import Templates
from tunesmith.run.state import State


@dataclass(frozen=True)
class DeviceResult:
    """What one run delivered, on one device."""

    run: str  # the name of its folder
    dispatch: Dispatch
    files: Mapping[str, bytes]  # below `tuned/`, by name
    kernel_path: str = ""  # the user's own file, as the problem names it, and its text; for a patch of it
    kernel_text: str = ""
    state: State | None = None  # the run's own, for exports that tell of the search
    templates: Templates | None = None

    def source(self, entry: DispatchEntry) -> str:
        return self.files[entry.file].decode()

    def binary(self, entry: DispatchEntry) -> bytes | None:
        return self.files[entry.binary.file] if entry.binary is not None else None


@dataclass(frozen=True)
class Artefact:
    """The results of one problem: dispatched by device first, then by size."""

    results: tuple[DeviceResult, ...]

    @property
    def first(self) -> DeviceResult:
        return self.results[0]

    @property
    def tuned(self) -> tuple[tuple[DeviceResult, str], ...]:
        """The tuned kernels, by the file of each. This is what is counted, everywhere."""
        return tuple((result, file) for result in self.results for file in result.dispatch.tuned_files)

    @property
    def problem(self) -> str:
        return self.first.dispatch.problem

    @cached_property
    def name(self) -> str:
        """The problem's, as a name in C and Python."""
        return identifier(self.problem)


@dataclass(frozen=True)
class Export:
    """The files of an export by name, and a sentence for each tuned kernel that it cannot have. `delivered`:
    how many of them it has, where the sentences do not tell. `notes`: what else is not as in the run."""

    files: dict[str, bytes]
    left_out: tuple[str, ...] = ()
    delivered: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A form of export. `write` gives its files by name; it raises BadInput where a result cannot have it."""

    name: str
    about: str  # one line, for people
    languages: tuple[str, ...]
    write: Callable[[Artefact], Export | dict[str, bytes]]
    from_journal: bool = False  # it needs the user's own kernel, or what was searched

    def export(self, artefact: Artefact) -> Export:
        made = self.write(artefact)
        return made if isinstance(made, Export) else Export(made)


def missing_lines(
    lines: Iterable[tuple[DeviceResult, DispatchEntry, str, str]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of entries that an export tried, each with its name and why it is missing, empty where it is there: a
    sentence for each tuned kernel that has none, and notes on entries that are missing of the original, or of
    a kernel that has others."""
    tried = list(lines)
    there = {(id(result), entry.file) for result, entry, _, why in tried if not why}
    left_out: dict[tuple[int, str], str] = {}
    notes: list[str] = []
    for result, entry, about, why in tried:
        source = id(result), entry.file
        if why and entry.config is not None and source not in there:
            left_out.setdefault(source, f"{about}: {why}")
        elif why:
            notes.append(f"{about}, where {entry.when}: {why}")
    return tuple(left_out.values()), tuple(notes)


def one_artefact(results: tuple[DeviceResult, ...]) -> Artefact:
    """The same operator on each device, no device twice."""
    first = results[0].dispatch
    for other in (result.dispatch for result in results[1:]):
        same = (first.problem, first.language, first.arguments, first.sizes)
        if (other.problem, other.language, other.arguments, other.sizes) != same:
            one, two = (f"{d.problem} on {d.device}" for d in (other, first))
            fault = f"{one} is not the same operator as {two}"
            hint = "export runs of one problem file together: same arguments, sizes and language"
            raise BadInput(fault, hint=hint)
    devices = [result.dispatch.architecture or result.dispatch.device for result in results]
    if twice := next((d for d in devices if devices.count(d) > 1), None):
        raise BadInput(f"two runs are for {twice}", hint="name one run for each kind of device")
    return Artefact(results)
