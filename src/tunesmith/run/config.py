"""Files, flags and environment resolved once, into one RunConfig. Nobody else reads the environment."""

from __future__ import annotations

import os
import shlex
import site
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tunesmith.errors import BadInput
from tunesmith.run.files import private_folder
from tunesmith.run.protection import AUTO, MODES
from tunesmith.text import names_secret, redacted

FILE = "tunesmith.toml"
# What processes that we start may inherit, whoever they are for; backends name more.
PASSED_ON = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "PYTHON*",
    "TUNESMITH_DEBUG",
)


@dataclass(frozen=True)
class RunConfig:
    """Everything a command may need to know, fully set."""

    backend: str | None = None  # None: by the kernel's language
    device: str | None = None
    search: str = "default"
    evals: int | None = None
    time: float | None = None
    seed: int = 0
    cache: bool = True
    prune: bool = True
    prior: bool = True
    steer: bool = True
    counters: bool = False  # for the prior of a search; `tunesmith profile` takes them unless told otherwise
    runs: str = "tunesmith-runs"
    cache_dir: str = ""
    builders: int = 0  # 0: as many as suit this machine and the device
    strategy: str = "template"  # or rewrite, or single
    linear: bool = False  # rewrite: each round goes on from the last kernel, not from the best
    model: str = ""  # who plays the roles: SPEC, or role=SPEC,...; empty: the expert
    effort: str = ""  # how much models behind a network are to think: low, medium or high
    wait: bool = True  # for replies that are written by hand
    prompts: str = ""  # a folder with prompts in place of ours
    reply_seconds: float = 600.0  # for one reply of a model behind a network
    record: str = ""  # a folder for what models reply
    rounds: int | None = None
    drafts: int | None = None  # of a round, written side by side; None: as many as models write
    plain: bool = False  # a model rewrites the kernel plainly, before anything else, for the expert to read
    tokens: int | None = None
    money: float | None = None  # dollars
    device_seconds: float | None = None  # in which trials may have the device
    # The expert's moves, as models are told of them: usual is to planners of templates, all is to those of
    # concrete kernels as well, as ideas; none is to nobody, and then the expert plans no round for a model.
    moves: str = "usual"
    # Winning templates and timings are stored, and offered when their kernel comes again.
    library: bool = True
    library_dir: str = ""
    sandbox: str = AUTO  # of workers: auto, required or off
    workers: str = ""  # a file that says how to reach them; empty: they are of this machine
    ray: str = ""  # the address of a Ray cluster whose workers are used; "local": one of this machine alone
    ceilings: bool = False  # those stored of the device are used where the cache of timings is not
    sign: str = ""  # certificates, with this key: ssh:FILE or minisign:FILE
    notes: tuple[str, ...] = ()  # on how it was resolved, to be told before anything is done

    @property
    def cache_file(self) -> Path:
        return Path(self.cache_dir) / "results.sqlite"

    @property
    def elsewhere(self) -> str:
        """The options that say where workers are, as they are typed."""
        given = {"--workers": self.workers, "--ray": self.ray}
        return "".join(f" {option} {shlex.quote(value)}" for option, value in given.items() if value)


_LEAST = {
    "evals": 1,
    "time": 0,
    "seed": 0,
    "builders": 0,
    "rounds": 1,
    "tokens": 1,
    "money": 0,
    "reply_seconds": 1,
    "drafts": 1,
    "device_seconds": 0,
}
_MOST = {"drafts": 16}  # a planner has one reply for the plans of all of them
MOVES = ("usual", "all", "none")
_BOOLS = {"1": True, "yes": True, "true": True, "on": True}
_BOOLS |= {"0": False, "no": False, "false": False, "off": False}
_TYPES = {f.name: f.type for f in fields(RunConfig) if f.name != "notes"}
_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def resolve(
    flags: Mapping[str, Any], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> RunConfig:
    """Flags win over the environment, that over `tunesmith.toml` in the current folder, then defaults."""
    environment = os.environ if environment is None else environment
    config = RunConfig(**_from_file((folder or Path.cwd()) / FILE))
    _refuse_misspelt(environment)
    for name in _TYPES:
        text = environment.get(f"TUNESMITH_{name.upper()}")
        if text:
            config = replace(config, **_from_text(name, text))
    given = {name: value for name, value in flags.items() if value is not None}
    for name, value in given.items():
        _check_type(name, value, None)
    config = replace(config, **given)
    _check_ranges(config, given)
    return _with_folders(config, environment)


def check_flags(flags: Mapping[str, Any]) -> None:
    """Whether these could be given to a command, whatever else is."""
    for name, value in flags.items():
        _check_type(name, value, None)
    _check_ranges(replace(RunConfig(), **flags), flags)


def _check_ranges(config: RunConfig, given: Mapping[str, Any]) -> None:
    for name, least in _LEAST.items():
        value = getattr(config, name)
        if value is not None and not value >= least:  # so that a NaN is refused too
            hint = _correct(name, name in given, f"{least} or more")
            raise BadInput(f"{name} must be at least {least}, got {value}", hint=hint)
    for name, most in _MOST.items():
        value = getattr(config, name)
        if value is not None and value > most:
            hint = _correct(name, name in given, f"{most} or less")
            raise BadInput(f"{name} must be at most {most}, got {value}", hint=hint)
    if config.sandbox not in MODES:
        fault = f"sandbox must be {', '.join(MODES[:-1])} or {MODES[-1]}, got {config.sandbox!r}"
        raise BadInput(fault, hint="correct it in the command, the environment or tunesmith.toml")
    if config.moves not in MOVES:
        fault = f"moves must be {', '.join(MOVES[:-1])} or {MOVES[-1]}, got {config.moves!r}"
        raise BadInput(fault, hint="correct it in the command, the environment or tunesmith.toml")


def _correct(name: str, is_flag: bool, how: str) -> str:
    if is_flag:
        return f"give --{name.replace('_', '-')} {how}, or leave it out"
    return f"correct it in {FILE} or in TUNESMITH_{name.upper()}: {how}"


def _with_folders(config: RunConfig, environment: Mapping[str, str]) -> RunConfig:
    """Cache and library where the user has such things; where that cannot be, in a private folder."""
    places = {
        "cache_dir": ("XDG_CACHE_HOME", ".cache", "tunesmith"),
        "library_dir": ("XDG_DATA_HOME", ".local/share", "tunesmith/library"),
    }
    for name, (variable, below, own) in places.items():
        if getattr(config, name):
            continue
        home = environment.get("HOME", "")
        base = environment.get(variable) or (str(Path(home) / below) if home else "")
        if not _can_hold(Path(base) / own):
            why = f"{base} cannot be written" if base else "HOME is not set"
            base = str(private_folder())
            config = replace(config, notes=(*config.notes, f"{why}: {own} is in {base}"))
        found: dict[str, Any] = {name: str(Path(base) / own)}
        config = replace(config, **found)
    return config


def _can_hold(folder: Path) -> bool:
    """Whether it is there, or can be made. A relative path would land wherever we happen to be."""
    there = next(place for place in (folder, *folder.parents) if place.exists() or place == place.parent)
    return folder.is_absolute() and (there == folder or (there.is_dir() and os.access(there, os.W_OK)))


def debugging() -> bool:
    """Whether someone looks for a bug of ours and wants the traceback."""
    return bool(os.environ.get("TUNESMITH_DEBUG"))


def model_keys(names: Iterable[str]) -> dict[str, str]:
    """Keys for models: from the environment, and stored nowhere else."""
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def secrets() -> list[str]:
    """Values of variables that nobody else may know, to be cut out of what we repeat."""
    return [value for name, value in os.environ.items() if names_secret(name)]


def passed_on(patterns: Iterable[str] = ()) -> dict[str, str]:
    """The variables that processes which we start inherit: those on our list and of these patterns."""
    wanted = (*PASSED_ON, *patterns)
    listed = {n: v for n, v in os.environ.items() if any(fnmatchcase(n, pattern) for pattern in wanted)}
    return {n: v for n, v in listed.items() if not names_secret(n) and redacted(v) == v}


def worker_environment(scratch: Path, patterns: Iterable[str] = (), sandbox: str = AUTO) -> dict[str, str]:
    """What every worker sees: everything it may write by itself lands in its scratch folder. `patterns` are
    those of variables that its backend needs."""
    own = passed_on(patterns)
    folders = own.get("PYTHONPATH", "")
    absolute = os.pathsep.join(map(os.path.abspath, folders.split(os.pathsep)))  # workers start elsewhere
    return {
        **own,
        **({"PYTHONPATH": absolute} if folders else {}),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "XDG_CACHE_HOME": str(scratch),
        "PYTHONUSERBASE": site.getuserbase(),  # which is in the home, for Python
        "TUNESMITH_HIDDEN": str(Path(os.environ.get("HOME") or "/")),
        "TUNESMITH_SANDBOX": sandbox,
        # Idle threads of a linear-algebra library spin, and would disturb what is measured on the same cores.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def _refuse_misspelt(environment: Mapping[str, str]) -> None:
    """A variable that is nearly ours would be ignored, and nobody would know."""
    known = [name.upper() for name in (*_TYPES, "debug", "pocl")]  # the last is for set-up
    for name in sorted(environment):
        head, _, own = name.partition("TUNESMITH_")
        if not head and own and own not in known:
            import difflib  # here, so that `--help` stays quick

            close = difflib.get_close_matches(own.upper(), known, n=1, cutoff=0.75)
            if close:
                hint = f"did you mean TUNESMITH_{close[0]}? Otherwise unset it"
                raise BadInput(f"the environment sets {name}, which is no setting", hint=hint)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:  # what is no TOML, no text, or too deep
        raise BadInput(f"cannot be read: {error}", where=str(path)) from error
    for name, value in table.items():
        _check_type(name, value, str(path))
    return table


def _check_type(name: str, value: object, where: str | None) -> None:
    if name not in _TYPES:
        from tunesmith.space.grammar import suggestion

        known = f"unknown key {name!r}; known are {', '.join(_TYPES)}"
        raise BadInput(known, where=where, hint=suggestion(name, _TYPES))
    kind = _kind(name)
    allowed = (int, float) if kind is float else kind
    if isinstance(value, bool) != (kind is bool) or not isinstance(value, allowed):
        hint = f"correct it, or leave out {name}"
        raise BadInput(
            f"{name} must be {_allowed(name)}, got {redacted(repr(value))}", where=where, hint=hint
        )


def _from_text(name: str, text: str) -> dict[str, Any]:
    kind = _kind(name)
    try:
        return {name: _BOOLS[text.lower()] if kind is bool else kind(text)}
    except (KeyError, ValueError):
        fault = f"TUNESMITH_{name.upper()} must be {_allowed(name)}, got {redacted(repr(text))}"
        raise BadInput(fault, hint="correct it in the environment, or unset it") from None


def _allowed(name: str) -> str:
    return _KINDS[_kind(name)]


def _kind(name: str) -> type:
    text = str(_TYPES[name]).removesuffix(" | None")
    return {"str": str, "int": int, "float": float, "bool": bool}[text]
