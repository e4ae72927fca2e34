"""The reader of a fleet's plan: TOML in, values out, every fault with its line. It opens no other file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from tunesmith.errors import BadInput
from tunesmith.problem.toml_table import Faults, Table, load_toml
from tunesmith.run.config import check_flags
from tunesmith.session.fleet.plans import PLAIN_NAME, FleetAuthor, Setting, Settings

ROOT = ("device_hours", "capture", "problem", "device", "author", "tune")
PROBLEM = ("path", "weight", "template")
DEVICE = ("name", "backend", "device", "workers", "gpus", "slots", "weight")
# Of a run; what is said of the device, of folders and of waiting is the fleet's own.
TUNE = (
    *("search", "evals", "time", "device_seconds", "seed", "cache", "prune", "steer", "counters", "prior"),
    *("library", "sandbox", "builders", "model", "strategy", "linear", "effort", "plain"),
    *("moves", "rounds", "tokens", "money", "reply_seconds"),
)
EXPERT = FleetAuthor("expert")
EXAMPLE = 'device_hours = 2\n[[problem]]\npath = "ops/*"\n[[device]]\nname = "h200"\ndevice = "0"'
MOST_SLOTS = 1024
MOST_WEIGHT = 1e9


@dataclass(frozen=True)
class ProblemEntry:
    """One `[[problem]]`: a path, or a pattern of several, from the plan's folder."""

    path: str
    weight: float | None = None  # None: by the capture, else 1
    template: str = ""  # beside each problem
    place: int = 0  # which of them it is


@dataclass(frozen=True)
class DeviceEntry:
    name: str
    backend: str = ""
    device: str = ""
    workers: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    slots: int = 1
    weight: float = 1.0


@dataclass(frozen=True)
class PlanEntries:
    """A plan as it stands in its file."""

    hours: float
    problems: tuple[ProblemEntry, ...]
    devices: tuple[DeviceEntry, ...]
    authors: tuple[FleetAuthor, ...]
    settings: Settings
    capture: str
    faults: Faults = field(compare=False)  # of the same file, for what is found out later


def read_plan(text: str, path: str) -> PlanEntries:
    root = load_toml(text, path=path)
    root.only(ROOT)
    hours = 0.0
    if root.needs("device_hours", "problem", "device", hint=f"e.g.:\n{EXAMPLE}"):
        hours = root.number("device_hours", low=0.0) or 0.0
        if not hours and "device_hours" in root and not root.faults:
            root.fault("device_hours", "device_hours must be above 0, got 0", "give the fleet some time")
    problems = [_problem(one, place) for place, one in enumerate(root.tables("problem", "problem"))]
    devices = [_device(one) for one in root.tables("device", "device")]
    authors = [_author(one) for one in root.tables("author", "author")]
    for key, found in (("problem", problems), ("device", devices)):
        if key in root and not found and not root.faults:
            root.fault(key, f"{key} lists nothing", f"add a [[{key}]]")
    _apart(root, "device", [one.name for one in devices if one])
    _apart(root, "author", [one.name for one in authors if one])
    tune = root.table("tune", "[tune]")
    settings = _settings(tune, TUNE) if tune is not None else ()
    capture = root.text("capture") or ""
    root.faults.raise_any()
    return PlanEntries(
        hours,
        tuple(one for one in problems if one),
        tuple(one for one in devices if one),
        tuple(one for one in authors if one) or (EXPERT,),
        settings,
        capture,
        root.faults,
    )


def _apart(root: Table, key: str, names: list[str]) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            root.faults.add((key, place), f"the name {name!r} is there twice", "give each a name of its own")


def _name(table: Table) -> str:
    name = table.text("name") if table.needs("name") else None
    if name is not None and not PLAIN_NAME.fullmatch(name):
        rule = "a name has letters, digits, _, . and -, begins with a letter or digit and has 64 at most"
        table.fault("name", f"{rule}; got {name!r}", "folders are called after it")
        return ""
    return name or ""


def _weight(table: Table) -> float | None:
    weight = table.number("weight", low=0.0)
    if weight is not None and not 0 < weight <= MOST_WEIGHT:
        hint = "leave out what is worth nothing"
        return table.refuse(
            "weight", f"weight must be above 0 and at most {MOST_WEIGHT:g}, got {weight:g}", hint
        )
    return weight


def _problem(table: Table, place: int) -> ProblemEntry | None:
    table.only(PROBLEM)
    path = table.text("path") if table.needs("path") else None
    own = ProblemEntry(path or "", _weight(table), table.text("template") or "", place)
    return own if path else None


def _device(table: Table) -> DeviceEntry | None:
    table.only(DEVICE)
    name = _name(table)
    workers: tuple[str, ...] = ()
    if isinstance(table.data.get("workers"), list):
        workers = table.texts("workers")
        if not table.data["workers"]:
            table.fault("workers", "workers lists nothing", "leave it out for devices of this machine")
        if len(set(workers)) < len(workers):
            table.fault("workers", "workers names a file twice", "say how many at once with slots")
    elif (one := table.text("workers")) is not None:
        workers = (one,)
    slots = table.integer("slots", low=1, high=MOST_SLOTS)
    backend, device = table.text("backend") or "", table.text("device") or ""
    own = DeviceEntry(name, backend, device, workers, _gpus(table), slots or 1, _weight(table) or 1.0)
    return own if name else None


def _gpus(table: Table) -> tuple[str, ...]:
    """By number, or by what `nvidia-smi -L` says."""
    found = [str(item) if type(item) is int else item for item in table.items("gpus", "GPUs")]
    for item in found:
        if not isinstance(item, str) or not PLAIN_NAME.fullmatch(item):
            table.fault("gpus", f"gpus lists numbers or names of GPUs, got {item!r}", "e.g. gpus = [0, 1]")
            return ()
    if "gpus" in table and not found and not table.faults:
        table.fault("gpus", "gpus lists nothing", "leave it out for the device that a run takes by itself")
    if len(set(found)) < len(found):
        table.fault("gpus", "gpus names one twice", "say how many runs at once with slots")
    if found and "workers" in table:
        table.fault("gpus", "gpus are of this machine, workers of others", "make two devices of it")
    return tuple(str(item) for item in found)


def _author(table: Table) -> FleetAuthor | None:
    name = _name(table)
    settings = _settings(table, ("name", *TUNE))
    return FleetAuthor(name, tuple(one for one in settings if one[0] != "name")) if name else None


def _settings(table: Table, known: tuple[str, ...]) -> Settings:
    table.only(known)
    found: list[tuple[str, Setting]] = []
    for name, value in table.data.items():
        if name not in known or name == "name":
            continue
        if not isinstance(value, get_args(Setting)):
            table.fault(name, f"{name} must be a text, a number, true or false", "as an option of `tune`")
            continue
        try:
            check_flags({name: value})
        except BadInput as error:
            table.fault(name, error.message, "as the option of `tune`")
        else:
            found.append((name, value))
    return tuple(found)
