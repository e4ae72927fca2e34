"""A plan and the files it names, read and stored in the fleet's folder, from which all else goes on."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tunesmith import backends
from tunesmith.capture.demangle import function_name
from tunesmith.capture.folder import read_capture
from tunesmith.capture.ranking import ranking
from tunesmith.errors import BadInput, TunesmithError
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run import trust
from tunesmith.run.config import RunConfig, beyond_permission, check_flags
from tunesmith.run.files import check_below, explained, folder_names, read_plain
from tunesmith.run.store import FLEET, RunFolder
from tunesmith.search import check_name
from tunesmith.session import hosts
from tunesmith.session.fleet.cell import HOSTS, OUTCOMES, RUNS, run_path
from tunesmith.session.fleet.plan_file import DeviceEntry, PlanEntries, ProblemEntry, read_plan
from tunesmith.session.fleet.plans import (
    FLEET_FORMAT,
    FleetAuthor,
    FleetCell,
    FleetDevice,
    FleetPlan,
    FleetProblem,
    cells_of,
)
from tunesmith.session.fleet.record import DAMAGED
from tunesmith.session.machine import device_ids
from tunesmith.session.problems import (
    PROBLEM_FILE,
    TEMPLATE,
    TEMPLATE_HEADER,
    LoadedProblem,
    all_texts,
    load_problem,
    load_template,
    read_text,
)
from tunesmith.session.strategies import casting
from tunesmith.text import digest_of

MOST_CELLS = 100_000
PLAN_COPY = "plan.toml"
Stored = dict[str, bytes]  # by digest


def load_plan(path: Path) -> tuple[FleetPlan, Stored]:
    """The plan, and the texts that it names by their digests. All faults are told at once."""
    entries = read_plan(
        read_text(path, "name the plan of a fleet; docs/fleet.md says what is in it"), str(path)
    )
    stored: Stored = {}
    problems = _problems(entries, path.parent)
    devices = tuple(_device(entries, place, path.parent, stored) for place in range(len(entries.devices)))
    languages = sorted({loaded.definition.kernel.language for _, loaded, _ in problems})
    for place, device in enumerate(devices):
        _check_backend(entries, place, device, languages)
        _check_device(entries, place, device)
    for place, author in enumerate(entries.authors):
        _check_author(entries, place, author, any(texts for _, _, texts in problems))
    weights = _weights(entries, path.parent, [(entry, loaded) for entry, loaded, _ in problems])
    entries.faults.raise_any()
    names = folder_names([loaded.name for _, loaded, _ in problems])
    planned = []
    for own, weight, (_, loaded, template) in zip(names, weights, problems, strict=True):
        texts = {**all_texts(*loaded), **template}
        stored |= {digest_of(text.encode()): text.encode() for text in texts.values()}
        files = tuple((name, digest_of(text.encode())) for name, text in texts.items())
        given = next((name for name in template if name.startswith(TEMPLATE)), "")
        planned.append(FleetProblem(own, loaded.name, loaded.definition.digest, weight, files, given))
    plan = FleetPlan(entries.hours, tuple(planned), devices, entries.authors, entries.settings)
    count = len(planned) * len(devices) * len(entries.authors)
    if count > MOST_CELLS:
        fault = f"a fleet has {MOST_CELLS:,} cells at most, this one would have {count:,}"
        raise BadInput(fault, where=str(path), hint="make several plans of it")
    return replace(plan, versions=dict(backends.versions(*backends.kinds()))), stored


# -- problems -------------------------------------------------------------------------------------------


def _problems(entries: PlanEntries, folder: Path) -> list[tuple[ProblemEntry, LoadedProblem, dict[str, str]]]:
    found: list[tuple[ProblemEntry, LoadedProblem, dict[str, str]]] = []
    seen: dict[str, str] = {}
    for entry in entries.problems:
        keys = ("problem", entry.place, "path")
        for path in _named(entries, entry, folder):
            try:
                loaded = load_problem(path)
            except BadInput as error:
                entries.faults.add(keys, str(error), error.hint)
                continue
            try:
                texts = _template_texts(loaded, entry.template)
            except BadInput as error:
                is_there = (loaded.files.root / entry.template).exists()
                hint = error.hint if is_there else "a template lies beside each problem of its entry"
                entries.faults.add(("problem", entry.place, "template"), str(error), hint)
                continue
            if (before := seen.get(loaded.definition.digest)) is not None:
                entries.faults.add(keys, f"{path} is the same problem as {before}", "name it once")
            seen[loaded.definition.digest] = str(path)
            found.append((entry, loaded, texts))
    return found


def _named(entries: PlanEntries, entry: ProblemEntry, folder: Path) -> list[Path]:
    """The problems of a pattern; what it matches beside them is no problem."""
    keys = ("problem", entry.place, "path")
    if not glob.has_magic(entry.path):
        return [folder / entry.path]
    pattern = f"{glob.escape(str(folder))}/{entry.path}" if not Path(entry.path).is_absolute() else entry.path
    matched = sorted(map(Path, glob.glob(pattern, recursive=True)))
    found = [p for p in matched if (p / PROBLEM_FILE).is_file() or (p.suffix == ".toml" and p.is_file())]
    if not found:
        there = f"{len(matched)} files and folders, none of them a problem" if matched else "nothing"
        hint = f"it counts from {folder}; a problem is a folder with {PROBLEM_FILE}, or that file"
        entries.faults.add(keys, f"the pattern {entry.path!r} matches {there}", hint)
    return found


def _template_texts(loaded: LoadedProblem, name: str) -> dict[str, str]:
    if not name:
        return {}
    template = load_template(loaded.files.root / name, loaded.definition, loaded.files)
    headers = {TEMPLATE_HEADER + spelling: text for spelling, text in template.headers}
    return {TEMPLATE + template.path: template.source, **headers}


def _weights(
    entries: PlanEntries, folder: Path, problems: Sequence[tuple[ProblemEntry, LoadedProblem]]
) -> list[float]:
    """As the plan says, else each kernel's share of the captured program's device time, else 1."""
    shares: Mapping[str, float] | None = None
    if entries.capture:
        try:
            shares = _captured_shares(folder / entries.capture)
        except BadInput as error:
            entries.faults.add(("capture",), str(error), error.hint)
    found = []
    for entry, loaded in problems:
        weight = entry.weight
        if weight is None and shares is not None:
            weight = shares.get(_bare(loaded.definition.kernel.entry))
            if not weight:
                fault = f"the capture has no time of a kernel {loaded.definition.kernel.entry!r}"
                hint = "give this problem a weight, or leave it out"
                entries.faults.add(("problem", entry.place), fault, hint)
        found.append(1.0 if weight is None else weight)
    return found


def _captured_shares(folder: Path) -> dict[str, float]:
    """By the bare names of kernels; instances of one template count together."""
    found: dict[str, float] = {}
    for kernel in ranking(read_capture(folder)):
        names = {_bare(kernel.demangled), _bare(kernel.name)} - {""}
        for name in names:
            found[name] = found.get(name, 0.0) + kernel.share
    return found


def _bare(name: str) -> str:
    """`void space::softmax<float, 4>(float*)` is `softmax`."""
    return function_name(name).rpartition("::")[2]


# -- devices and authors --------------------------------------------------------------------------------


def _device(entries: PlanEntries, place: int, folder: Path, stored: Stored) -> FleetDevice:
    entry: DeviceEntry = entries.devices[place]
    named: list[tuple[str, str]] = []
    for number, name in enumerate(entry.workers):
        try:
            hosts.read_hosts(folder / name)
            data = read_text(folder / name).encode()
        except BadInput as error:
            entries.faults.add(("device", place, "workers"), str(error), error.hint)
            continue
        stored[digest_of(data)] = data
        named.append((f"{entry.name}-{number + 1}.toml", digest_of(data)))
    own = (entry.backend, entry.device, tuple(named), entry.gpus, entry.slots, entry.weight)
    return FleetDevice(entry.name, *own)


def _check_backend(entries: PlanEntries, place: int, device: FleetDevice, languages: Sequence[str]) -> None:
    for language in languages:
        try:
            kind = backends.kind(backends.backend_for(language, device.backend or None))
        except TunesmithError as error:
            entries.faults.add(("device", place), str(error), error.hint)
            continue
        if kind.from_file:
            fault = f"{kind.name} has the times of one template, and a fleet has many problems"
            entries.faults.add(("device", place, "backend"), fault, "name a device, or another backend")


def _check_device(entries: PlanEntries, place: int, device: FleetDevice) -> None:
    """What every cell of it would be refused for."""
    try:
        asked = device_ids(device.device)
        if device.gpus and any(number != "0" for number in asked):
            fault = f"each run sees one of gpus, as device 0, and device asks for {device.device}"
            entries.faults.add(("device", place, "device"), fault, "leave out device")
    except BadInput as error:
        entries.faults.add(("device", place, "device"), str(error), error.hint)


def _check_author(entries: PlanEntries, place: int, author: FleetAuthor, is_given: bool) -> None:
    """Everything about models that can be refused before anything begins."""
    own = {**dict(entries.settings), **dict(author.settings)}
    config = RunConfig(**own)  # type: ignore[arg-type]
    try:
        check_name(config.search)
        casting.checked_prompts(config, None, lambda _text: None)
        if is_given and config.model:
            fault = "a problem's template is given, and nothing is left for a model to write"
            raise BadInput(fault, hint="leave out the template or the model")
    except TunesmithError as error:
        keys = ("author", place) if author.settings else ("tune",)
        entries.faults.add(keys, str(error), error.hint)


# -- the folder -----------------------------------------------------------------------------------------


def store_plan(folder: RunFolder, plan: FleetPlan, stored: Stored, text: str) -> None:
    """Also again: what may change while a fleet is under way is then as it is now."""
    for data in stored.values():
        folder.put(data)
    for name in (RUNS, OUTCOMES):
        (folder.path / name).mkdir(exist_ok=True)
    kept = {name: folder.get(digest) for device in plan.devices for name, digest in device.hosts}
    folder.replace_folder(HOSTS, kept)
    folder.write(PLAN_COPY, text.encode())
    folder.write(FLEET, encode(plan) + b"\n")
    trust.remember_begun(folder.path / FLEET)


def stored_plan(path: Path) -> tuple[FleetPlan, dict[str, FleetCell]]:
    """As it was planned, and its cells by their names."""
    where = path / FLEET
    if not where.is_file():
        hint = "name the plan of a fleet, or the folder that `tunesmith fleet PLAN.toml` has written"
        raise BadInput(f"there is no fleet in this folder: it has no {FLEET}", where=str(path), hint=hint)
    with explained("read the plan", where):
        data = read_plain(where)
    try:
        plan = decode(data, FleetPlan, "plan of a fleet")
    except Malformed as error:
        raise BadInput(f"the plan is damaged: {error}", where=str(where), hint=DAMAGED) from error
    if plan.format != FLEET_FORMAT:
        fault = f"the plan is of another version of Tunesmith: its format is {plan.format}"
        raise BadInput(fault, where=str(where), hint="go on with that version, or begin another with --out")
    cells = {cell.name: cell for cell in cells_of(plan)}
    for name in cells:
        check_below(run_path(path, name), path)
    return plan, cells


def refuse_strangers(path: Path, plan: FleetPlan) -> None:
    """BadInput where a fleet that somebody else began asks for what only the user may."""
    asked: dict[str, object] = {}
    for own in (plan.settings, *(author.settings for author in plan.authors)):
        check_flags(dict(own))
        asked |= {name: dict(own)[name] for name in beyond_permission(dict(own), path)}
    for device in plan.devices:
        asked |= {"backend": device.backend} if beyond_permission({"backend": device.backend}, path) else {}
        asked |= {"workers": ", ".join(device.places)} if device.hosts else {}
    trust.refuse_strangers(path / FLEET, asked)
