"""The plan of a fleet: its TOML file, what that names, and its stored copy, from which all else goes on."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import get_args

from tunesmith import backends
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput, TunesmithError
from tunesmith.base.files import check_below, explain_disk_errors, folder_names, read_plain
from tunesmith.base.text import digest_of
from tunesmith.plugins.hosts import hosts
from tunesmith.plugins.repo.capture.ranking import rank_kernels
from tunesmith.plugins.repo.capture.records import read_capture
from tunesmith.plugins.repo.capture.trace import function_name
from tunesmith.problem.template import Template
from tunesmith.problem.toml_table import Table, load_toml
from tunesmith.run import trust
from tunesmith.run.config import RunConfig, beyond_permission, check_flags
from tunesmith.run.folder import FLEET, RunFolder
from tunesmith.search import check_name
from tunesmith.session import roles
from tunesmith.session.place import device_ids
from tunesmith.session.problems import (
    PROBLEM_FILE,
    TEMPLATE,
    LoadedProblem,
    all_texts,
    load_problem,
    load_template,
    read_text,
)

FLEET_FORMAT = 1  # counts changes of the stored plan
RUNS, OUTCOMES, HOSTS, LOGS, PLAN_COPY = "runs", "outcomes", "hosts", "logs", "plan.toml"  # in its folder
DAMAGED = "restore the folder from a copy, or begin another fleet with --out"
HOUR = 3600.0
MAX_CELLS, MAX_SLOTS, MAX_GPUS, MAX_WEIGHT = 100_000, 1024, 1024, 1e9
# Of devices and authors: part of folders' names.
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
ROOT = ("device_hours", "capture", "problem", "device", "author", "tune")
PROBLEM = ("path", "weight", "template")
DEVICE = (
    "name", "backend", "device", "workers", "gpus", "slots", "weight", "num_gpus", "accelerator",
)  # fmt: skip
# Of a run; what is said of the device, of folders and of waiting is the fleet's own.
TUNE = (
    "search", "evals", "time", "device_seconds", "seed", "cache", "prune", "steer", "counters", "prior",
    "library", "sandbox", "builders", "model", "strategy", "linear", "effort", "plain", "moves", "rounds",
    "tokens", "money", "reply_seconds",
)  # fmt: skip
EXAMPLE = 'device_hours = 2\n[[problem]]\npath = "ops/*"\n[[device]]\nname = "h200"\ndevice = "0"'
Setting = bool | int | float | str
Settings = tuple[tuple[str, Setting], ...]  # as `tunesmith tune` takes them, by name
Stored = dict[str, bytes]  # by digest


@dataclass(frozen=True)
class FleetProblem:
    folder: str  # its name in this fleet
    digest: str
    weight: float
    files: tuple[tuple[str, str], ...]  # name -> digest: all that it needs to be read again
    template: str = ""  # the one to search, among the files; empty: it is still to be written


@dataclass(frozen=True)
class FleetDevice:
    """One kind of device; a cell may go on at any of its places."""

    name: str
    backend: str = ""
    device: str = ""  # as for --device
    hosts: tuple[tuple[str, str], ...] = ()  # files as for --workers: name -> digest; none: this machine
    gpus: tuple[str, ...] = ()  # of this machine, each a place: as CUDA_VISIBLE_DEVICES names them
    slots: int = 1  # runs at once, at each place; on a Ray cluster altogether
    weight: float = 1.0
    num_gpus: int = 1  # that a run asks Ray for
    accelerator: str = ""  # kind of node, as Ray calls it

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.hosts) or tuple(f"gpu-{g}" for g in self.gpus) or ("here",)


@dataclass(frozen=True)
class FleetAuthor:
    name: str
    settings: Settings = ()


@dataclass(frozen=True)
class FleetCell:
    """One problem on one kind of device by one author: an ordinary run."""

    number: int
    problem: FleetProblem
    device: FleetDevice
    author: FleetAuthor

    @cached_property
    def name(self) -> str:
        return f"{self.problem.folder}@{self.device.name}+{self.author.name}"

    @property
    def weight(self) -> float:
        return self.problem.weight * self.device.weight


@dataclass(frozen=True)
class FleetSlot:
    """Where one cell runs at a time."""

    device: str
    place: str
    number: int
    gpu: str = ""  # the only one that may be seen there; empty: all

    @property
    def name(self) -> str:
        return f"{self.device}/{self.place}/{self.number}"


@dataclass(frozen=True)
class FleetPlan:
    hours: float  # of devices, of all cells together
    problems: tuple[FleetProblem, ...]
    devices: tuple[FleetDevice, ...]
    authors: tuple[FleetAuthor, ...]
    settings: Settings = ()  # of every run
    format: int = FLEET_FORMAT


def cells_of(plan: FleetPlan) -> tuple[FleetCell, ...]:
    """Numbered, problem by problem."""
    triples = ((p, d, a) for p in plan.problems for d in plan.devices for a in plan.authors)
    return tuple(FleetCell(number, *triple) for number, triple in enumerate(triples))


def slots_of(plan: FleetPlan) -> Iterator[FleetSlot]:
    """One of each place first, so that devices that few cells need are not all taken by one kind."""
    for number in range(max((device.slots for device in plan.devices), default=0)):
        for device in plan.devices:
            if number < device.slots:
                gpus = device.gpus or ("",) * len(device.places)
                pairs = zip(device.places, gpus, strict=True)
                yield from (FleetSlot(device.name, place, number, gpu) for place, gpu in pairs)


def fleet_plan_differences(plan: FleetPlan, wanted: FleetPlan) -> tuple[str, ...]:
    """In which respects a plan is not the one that is wanted, in words. The budget, weights and places may
    change while a fleet is under way."""
    pairs = zip(_fixed_parts(plan), _fixed_parts(wanted), strict=True)
    return tuple(
        f"it has the {what} {', '.join(parts) or 'nothing'} as they were then, you ask for "
        f"{', '.join(wanted_parts) or 'nothing'}"
        for (what, parts), (_, wanted_parts) in pairs
        if parts != wanted_parts
    )


def _fixed_parts(plan: FleetPlan) -> list[tuple[str, list[str]]]:
    problems = [" ".join(filter(None, (p.folder, p.template, f"({p.digest[:8]})"))) for p in plan.problems]
    authors = [" ".join((a.name, *(f"{k}={v}" for k, v in a.settings))) for a in plan.authors]
    settings = [f"{name}={value}" for name, value in plan.settings]
    devices = [f"{device.name} {device.backend}".strip() for device in plan.devices]
    return [("problems", problems), ("devices", devices), ("authors", authors), ("settings", settings)]


# -- the file -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProblemEntry:
    """One `[[problem]]`: a path, or a pattern of several, from the plan's folder."""

    path: str
    weight: float | None  # None: by the capture, else 1
    template: str  # beside each problem
    place: int  # which of them it is


@dataclass(frozen=True)
class PlanEntries:
    """A plan as it stands in its file. The hosts of its devices have no digests yet."""

    hours: float
    problems: tuple[ProblemEntry, ...]
    devices: tuple[FleetDevice, ...]
    authors: tuple[FleetAuthor, ...]
    settings: Settings
    capture: str
    root: Table = field(compare=False)

    @property
    def folder(self) -> Path:
        """What paths in it count from."""
        return Path(self.root.faults.path).parent

    @contextmanager
    def note_fault(self, *keys: str | int) -> Iterator[None]:
        """What is refused inside is a fault of the plan at these keys."""
        try:
            yield
        except TunesmithError as error:
            self.root.faults.add(keys, str(error), error.hint)


def read_plan(text: str, path: str) -> PlanEntries:
    """Every fault is told with its line. No other file is opened."""
    root = load_toml(text, path=path)
    root.only(ROOT)
    hours = 0.0
    if root.needs("device_hours", "problem", "device", hint=f"e.g.:\n{EXAMPLE}"):
        hours = root.number("device_hours", low=0.0) or 0.0
        if not hours and "device_hours" in root and not root.faults:
            root.fault("device_hours", "device_hours must be above 0, got 0", "give the fleet some time")
    problems = [_read_problem(table, place) for place, table in enumerate(root.tables("problem", "problem"))]
    devices = [_read_device(table) for table in root.tables("device", "device")]
    authors = [_read_author(table) for table in root.tables("author", "author")]
    for key, tables in (("problem", problems), ("device", devices)):
        if key in root and not tables and not root.faults:
            root.fault(key, f"{key} lists nothing", f"add a [[{key}]]")
    for key, names in (("device", [d.name for d in devices]), ("author", [a.name for a in authors])):
        for place, name in enumerate(names):
            if name and name in names[:place]:
                fault = f"the name {name!r} is there twice"
                root.faults.add((key, place), fault, "give each a name of its own")
    tune = root.table("tune", "[tune]")
    settings = _read_settings(tune, TUNE) if tune is not None else ()
    capture = root.text("capture") or ""
    root.faults.raise_any()
    everybody = tuple(authors) or (FleetAuthor("expert"),)
    return PlanEntries(hours, tuple(problems), tuple(devices), everybody, settings, capture, root)


def _read_name(table: Table) -> str:
    name = table.text("name") if table.needs("name") else None
    if name is not None and not PLAIN_NAME.fullmatch(name):
        rule = "a name has letters, digits, _, . and -, begins with a letter or digit and has 64 at most"
        table.fault("name", f"{rule}; got {name!r}", "folders are called after it")
    return name or ""


def _read_weight(table: Table) -> float | None:
    weight = table.number("weight", low=0.0)
    if weight is None or 0 < weight <= MAX_WEIGHT:
        return weight
    fault = f"weight must be above 0 and at most {MAX_WEIGHT:g}, got {weight:g}"
    return table.refuse("weight", fault, "leave out what is worth nothing")


def _read_problem(table: Table, place: int) -> ProblemEntry:
    table.only(PROBLEM)
    path = table.text("path") if table.needs("path") else None
    return ProblemEntry(path or "", _read_weight(table), table.text("template") or "", place)


def _read_device(table: Table) -> FleetDevice:
    table.only(DEVICE)
    num_gpus = table.integer("num_gpus", low=0, high=MAX_GPUS)
    return FleetDevice(
        name=_read_name(table),
        backend=table.text("backend") or "",
        device=table.text("device") or "",
        hosts=tuple((name, "") for name in _read_workers(table)),
        gpus=_read_gpus(table),
        slots=table.integer("slots", low=1, high=MAX_SLOTS) or 1,
        weight=_read_weight(table) or 1.0,
        num_gpus=1 if num_gpus is None else num_gpus,
        accelerator=table.text("accelerator") or "",
    )


def _read_workers(table: Table) -> tuple[str, ...]:
    if not isinstance(table.data.get("workers"), list):
        name = table.text("workers")
        return () if name is None else (name,)
    names = table.texts("workers")
    if not table.data["workers"]:
        table.fault("workers", "workers lists nothing", "leave it out for devices of this machine")
    if len(set(names)) < len(names):
        table.fault("workers", "workers names a file twice", "say how many at once with slots")
    return names


def _read_gpus(table: Table) -> tuple[str, ...]:
    """By number, or by what `nvidia-smi -L` says."""
    names = [str(item) if type(item) is int else item for item in table.items("gpus", "GPUs")]
    for name in names:
        if not isinstance(name, str) or not PLAIN_NAME.fullmatch(name):
            table.fault("gpus", f"gpus lists numbers or names of GPUs, got {name!r}", "e.g. gpus = [0, 1]")
            return ()
    if "gpus" in table and not names and not table.faults:
        table.fault("gpus", "gpus lists nothing", "leave it out for the device that a run takes by itself")
    if len(set(names)) < len(names):
        table.fault("gpus", "gpus names one twice", "say how many runs at once with slots")
    if names and "workers" in table:
        table.fault("gpus", "gpus are of this machine, workers of others", "make two devices of it")
    return tuple(map(str, names))


def _read_author(table: Table) -> FleetAuthor:
    return FleetAuthor(_read_name(table), _read_settings(table, ("name", *TUNE)))


def _read_settings(table: Table, known: tuple[str, ...]) -> Settings:
    table.only(known)
    settings: list[tuple[str, Setting]] = []
    for name, value in table.data.items():
        if name not in TUNE:
            continue
        if not isinstance(value, get_args(Setting)):
            table.fault(name, f"{name} must be a text, a number, true or false", "as an option of `tune`")
            continue
        try:
            check_flags({name: value})
        except BadInput as error:
            table.fault(name, error.message, "as the option of `tune`")
        else:
            settings.append((name, value))
    return tuple(settings)


# -- what it names --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlannedProblem:
    entry: ProblemEntry
    loaded: LoadedProblem
    template: Template | None


def load_plan(path: Path) -> tuple[FleetPlan, Stored]:
    """The plan, and the texts that it names by their digests. All faults are told at once."""
    text = read_text(path, "name the plan of a fleet; docs/fleet.md says what is in it")
    entries, stored = read_plan(text, str(path)), Stored()
    problems = _load_problems(entries)
    languages = sorted({problem.loaded.definition.kernel.language for problem in problems})
    devices = []
    for place, device in enumerate(entries.devices):
        devices.append(replace(device, hosts=_store_hosts(entries, place, device, stored)))
        _check_device(entries, place, device, languages)
    for place, author in enumerate(entries.authors):
        _check_author(entries, place, author, any(problem.template is not None for problem in problems))
    weights = _weigh_problems(entries, problems)
    entries.root.faults.raise_any()
    folders = folder_names([problem.loaded.name for problem in problems])
    planned = []
    for folder, weight, problem in zip(folders, weights, problems, strict=True):
        texts = all_texts(*problem.loaded, problem.template)
        stored |= {digest_of(text.encode()): text.encode() for text in texts.values()}
        files = tuple((name, digest_of(text.encode())) for name, text in texts.items())
        template = TEMPLATE + problem.template.path if problem.template is not None else ""
        planned.append(FleetProblem(folder, problem.loaded.definition.digest, weight, files, template))
    count = len(planned) * len(devices) * len(entries.authors)
    if count > MAX_CELLS:
        fault = f"a fleet has {MAX_CELLS:,} cells at most, this one would have {count:,}"
        raise BadInput(fault, where=str(path), hint="make several plans of it")
    parts = (tuple(planned), tuple(devices), entries.authors, entries.settings)
    return FleetPlan(entries.hours, *parts), stored


def _load_problems(entries: PlanEntries) -> list[PlannedProblem]:
    problems: list[PlannedProblem] = []
    seen: dict[str, Path] = {}
    for entry in entries.problems:
        for path in _find_problems(entries, entry):
            template = None
            with entries.note_fault("problem", entry.place, "path"):
                loaded = load_problem(path)
                digest = loaded.definition.digest
                if digest in seen:
                    raise BadInput(f"{path} is the same problem as {seen[digest]}", hint="name it once")
                seen[digest] = path
                with entries.note_fault("problem", entry.place, "template"):
                    if entry.template:
                        template = load_template(loaded.files.root / entry.template, *loaded)
                problems.append(PlannedProblem(entry, loaded, template))
    return problems


def _find_problems(entries: PlanEntries, entry: ProblemEntry) -> list[Path]:
    """The problems of a pattern; what it matches beside them is no problem."""
    if not glob.has_magic(entry.path):
        return [entries.folder / entry.path]
    is_absolute = Path(entry.path).is_absolute()
    pattern = entry.path if is_absolute else f"{glob.escape(str(entries.folder))}/{entry.path}"
    matches = sorted(map(Path, glob.glob(pattern, recursive=True)))
    problems = [p for p in matches if (p / PROBLEM_FILE).is_file() or (p.suffix == ".toml" and p.is_file())]
    if not problems:
        there = f"{len(matches)} files and folders, none of them a problem" if matches else "nothing"
        hint = f"it counts from {entries.folder}; a problem is a folder with {PROBLEM_FILE}, or that file"
        fault = f"the pattern {entry.path!r} matches {there}"
        entries.root.faults.add(("problem", entry.place, "path"), fault, hint)
    return problems


def _weigh_problems(entries: PlanEntries, problems: Sequence[PlannedProblem]) -> list[float]:
    """As the plan says, else each kernel's share of the captured program's device time, else 1."""
    shares: dict[str, float] | None = None
    with entries.note_fault("capture"):
        shares = _captured_shares(entries.folder / entries.capture) if entries.capture else None
    weights = []
    for problem in problems:
        weight, entry = problem.entry.weight, problem.loaded.definition.kernel.entry
        if weight is None and shares is not None and not (weight := shares.get(_bare_name(entry))):
            fault = f"the capture has no time of a kernel {entry!r}"
            hint = "give this problem a weight, or leave it out"
            entries.root.faults.add(("problem", problem.entry.place), fault, hint)
        weights.append(1.0 if weight is None else weight)
    return weights


def _captured_shares(folder: Path) -> dict[str, float]:
    """By the bare names of kernels; instances of one template count together."""
    shares: dict[str, float] = {}
    for kernel in rank_kernels(read_capture(folder)):
        for name in {_bare_name(kernel.demangled), _bare_name(kernel.name)} - {""}:
            shares[name] = shares.get(name, 0.0) + kernel.share
    return shares


def _bare_name(name: str) -> str:
    """`void space::softmax<float, 4>(float*)` is `softmax`."""
    return function_name(name).rpartition("::")[2]


def _store_hosts(
    entries: PlanEntries, place: int, device: FleetDevice, stored: Stored
) -> tuple[tuple[str, str], ...]:
    named: list[tuple[str, str]] = []
    for number, (name, _) in enumerate(device.hosts):
        with entries.note_fault("device", place, "workers"):
            hosts.read_hosts(entries.folder / name)
            data = read_text(entries.folder / name).encode()
            stored[digest_of(data)] = data
            named.append((f"{device.name}-{number + 1}.toml", digest_of(data)))
    return tuple(named)


def _check_device(entries: PlanEntries, place: int, device: FleetDevice, languages: Sequence[str]) -> None:
    """What every cell of it would be refused for."""
    for language in languages:
        with entries.note_fault("device", place, "backend"):
            kind = backends.find_backend_kind(backends.backend_for(language, device.backend or None))
            if kind.from_file:
                fault = f"{kind.name} has the times of one template, and a fleet has many problems"
                raise BadInput(fault, hint="name a device, or another backend")
    with entries.note_fault("device", place, "device"):
        is_first = all(number == "0" for number in device_ids(device.device))
        if device.gpus and not is_first:
            fault = f"each run sees one of gpus, as device 0, and device asks for {device.device}"
            raise BadInput(fault, hint="leave out device")


def _check_author(entries: PlanEntries, place: int, author: FleetAuthor, has_template: bool) -> None:
    """Everything about models that can be refused before anything begins."""
    settings = {**dict(entries.settings), **dict(author.settings)}
    config = RunConfig(**settings)  # type: ignore[arg-type]
    with entries.note_fault(*(("author", place) if author.settings else ("tune",))):
        check_name(config.search)
        roles.checked_prompts(config, None, lambda _text: None)
        if has_template and config.model:
            fault = "a problem's template is given, and nothing is left for a model to write"
            raise BadInput(fault, hint="leave out the template or the model")


# -- the folder -----------------------------------------------------------------------------------------


def run_path(folder: Path, cell: str) -> Path:
    return folder / RUNS / cell


def store_plan(folder: RunFolder, plan: FleetPlan, stored: Stored, text: str) -> None:
    """Also again: what may change while a fleet is under way is then as it is now."""
    for data in stored.values():
        folder.put(data)
    for name in (RUNS, OUTCOMES, LOGS):
        (folder.path / name).mkdir(exist_ok=True)
    kept = {name: folder.get(digest) for device in plan.devices for name, digest in device.hosts}
    folder.replace_folder(HOSTS, kept)
    folder.write(PLAN_COPY, text.encode())
    folder.write(FLEET, encode_json(plan) + b"\n")
    trust.remember_begun(folder.path / FLEET)


def stored_plan(path: Path) -> tuple[FleetPlan, dict[str, FleetCell]]:
    """As it was planned, and its cells by their names."""
    where = path / FLEET
    if not where.is_file():
        hint = "name the plan of a fleet, or the folder that `tunesmith fleet PLAN.toml` has written"
        raise BadInput(f"there is no fleet in this folder: it has no {FLEET}", where=str(path), hint=hint)
    with explain_disk_errors("read the plan", where):
        data = read_plain(where)
    try:
        plan = decode_json(data, FleetPlan, "plan of a fleet")
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
    for settings in (dict(plan.settings), *(dict(author.settings) for author in plan.authors)):
        check_flags(settings)
        asked |= {name: settings[name] for name in beyond_permission(settings, path)}
    for device in plan.devices:
        asked |= {"backend": device.backend} if beyond_permission({"backend": device.backend}, path) else {}
        asked |= {"workers": ", ".join(device.places)} if device.hosts else {}
    trust.refuse_strangers(path / FLEET, asked)
