"""Files, flags and environment resolved once, into one RunConfig."""

from __future__ import annotations

import os
import shlex
import site
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from tunesmith.base.errors import BadInput
from tunesmith.base.files import SETTINGS_FILE, private_folder, read_plain
from tunesmith.base.text import names_secret, redact_secrets
from tunesmith.run.protection import AUTO, MODES, REQUIRED

LARGEST_FILE = 1 << 20  # bytes of settings
# What processes that we start may inherit, whoever they are for; backends name more.
_LOOKED_IN = ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH")
PASSED_ON = (*_LOOKED_IN, "LANG", "LANGUAGE", "LC_*", "TZ", "PYTHON*", "TUNESMITH_DEBUG")
COMPILERS = ("HOME", "TMPDIR")  # what the host's compilers need besides: those that cache keep it there
_SEARCHED = (*_LOOKED_IN, "PYTHONPATH")
T = TypeVar("T")
Setting = str | int | float | bool
Settings = Mapping[str, Setting]
Permits = Callable[[Any, Path], bool]
_FROM_FOLDER = "from_folder"


def _permit_any(_value: Any, _folder: Path) -> bool:
    return True


def _open_setting(default: T, permits: Permits = _permit_any) -> T:
    """A setting that the file of a folder may have, which comes with the material: what it permits of it
    starts no program, names no host, reaches out of the folder nowhere, switches no protection off, spends no
    money and chooses no model. All others are the user's own to say, and so is each that is new."""
    found: T = field(default=default, metadata={_FROM_FOLDER: permits})
    return found


def _is_below(value: str, folder: Path) -> bool:
    top = os.path.realpath(folder)
    return "\0" not in value and Path(os.path.realpath(folder / value)).is_relative_to(top)


@dataclass(frozen=True)
class Budget:
    """What a run may use; None: no limit, or a usual one where that would be endless."""

    evals: int | None = None  # configurations to try
    seconds: float | None = None  # of search
    rounds: int | None = None  # refactorings
    tokens: int | None = None  # that models send and receive
    dollars: float | None = None  # that models cost
    device_seconds: float | None = None  # in which trials have the device

    @property
    def leaves_search_open(self) -> bool:
        return self.evals is None and self.seconds is None and self.device_seconds is None


@dataclass(frozen=True)
class RunConfig:
    """Everything a command may need to know, fully set."""

    # None: by the kernel's language
    backend: str | None = _open_setting(None, lambda value, _: ":" not in value)
    device: str | None = _open_setting(None)
    search: str = _open_setting("default")
    evals: int | None = _open_setting(None)
    time: float | None = _open_setting(None)
    seed: int = _open_setting(0)
    cache: bool = _open_setting(True)
    prune: bool = _open_setting(True)
    prior: bool = _open_setting(True)
    steer: bool = _open_setting(True)
    # For a search's prior; `tunesmith profile` takes them unless told otherwise.
    counters: bool = _open_setting(False)
    runs: str = _open_setting("tunesmith-runs", _is_below)
    cache_dir: str = ""
    builders: int = 0  # 0: as many as suit this machine and the device
    strategy: str = "template"  # or rewrite, or single
    linear: bool = _open_setting(False)  # rewrite: each round goes on from the last kernel, not from the best
    model: str = ""  # who plays the roles: SPEC, or role=SPEC,...; empty: the expert
    effort: str = ""  # how much models behind a network are to think: low, medium or high
    wait: bool = _open_setting(True)  # for replies that are written by hand
    prompts: str = ""  # a folder with prompts in place of ours
    reply_seconds: float = 600.0  # for one reply of a model behind a network
    record: str = ""  # a folder for what models reply
    rounds: int | None = None
    plain: bool = False  # a model rewrites the kernel plainly, before anything else, for the expert to read
    tokens: int | None = None
    money: float | None = None  # dollars
    device_seconds: float | None = _open_setting(None)  # in which trials may have the device
    # The expert's moves, as models are told of them: usual is to planners of templates, all is to those of
    # concrete kernels as well, as ideas; none is to nobody, and then the expert plans no round for a model.
    moves: str = _open_setting("usual")
    # Winning templates and timings are stored, and offered when their kernel comes again.
    library: bool = _open_setting(True, lambda value, _: value is False)
    library_dir: str = ""
    # Of workers: auto, required or off.
    sandbox: str = _open_setting(AUTO, lambda value, _: value == REQUIRED)
    workers: str = ""  # a file that says how to reach them; empty: they are of this machine
    ray: str = ""  # the address of a Ray cluster whose workers are used; "local": one of this machine alone
    # Those stored of the device are used where the cache of timings is not.
    ceilings: bool = _open_setting(False)
    notes: tuple[str, ...] = ()  # on how it was resolved, to be told before anything is done

    @property
    def limits(self) -> Budget:
        return Budget(self.evals, self.time, self.rounds, self.tokens, self.money, self.device_seconds)

    @property
    def cache_file(self) -> Path:
        return Path(self.cache_dir) / "results.sqlite"

    @property
    def elsewhere(self) -> str:
        """The options that say where workers are, as they are typed."""
        given = {"--workers": self.workers, "--ray": self.ray}
        return "".join(f" {option} {shlex.quote(value)}" for option, value in given.items() if value)


_LEAST = dict.fromkeys(("evals", "rounds", "tokens", "reply_seconds"), 1)
_LEAST |= dict.fromkeys(("time", "seed", "builders", "money", "device_seconds"), 0)
MOVES = ("usual", "all", "none")
_BOOLS = {"1": True, "yes": True, "true": True, "on": True}
_BOOLS |= {"0": False, "no": False, "false": False, "off": False}
_TYPES = {f.name: f.type for f in fields(RunConfig) if f.name != "notes"}
_PERMITS: dict[str, Permits] = {
    f.name: f.metadata[_FROM_FOLDER] for f in fields(RunConfig) if _FROM_FOLDER in f.metadata
}
# Those that name files whose content says what is done. In the user's own file they count from its folder:
# what they name is never looked for where the material lies.
_NAMES_FILES = ("workers", "prompts", "cache_dir", "library_dir")
_KINDS = {"str": str, "int": int, "float": float, "bool": bool}
_WORDS = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false"}


def resolve_config(
    flags: Mapping[str, Any], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> RunConfig:
    """Flags win over the environment, that over `tunesmith.toml` in the current folder, as far as it may say
    it, that over the user's own file, then defaults."""
    environment = os.environ if environment is None else environment
    folder = Path.cwd() if folder is None else folder
    settings = {**_user_settings(environment), **_permitted_settings(folder, environment)}
    _refuse_misspelt(environment)
    named = {name: environment.get(f"TUNESMITH_{name.upper()}") for name in _TYPES}
    settings |= {name: _from_text(name, text) for name, text in named.items() if text}
    given = {name: value for name, value in flags.items() if value is not None}
    for name, value in given.items():
        _check_type(name, value, None)
    config = _apply_settings(RunConfig(), {**settings, **given})
    _check_ranges(config, given)
    return _with_folders(config, environment)


def _apply_settings(config: RunConfig, settings: Settings) -> RunConfig:
    """`settings` have been checked, each for its type."""
    changes: Mapping[str, Any] = settings
    return replace(config, **changes)


def check_flags(flags: Mapping[str, Any]) -> None:
    """Whether these could be given to a command, whatever else is."""
    for name, value in flags.items():
        _check_type(name, value, None)
    _check_ranges(_apply_settings(RunConfig(), flags), flags)


def _check_ranges(config: RunConfig, given: Mapping[str, Any]) -> None:
    for name, least in _LEAST.items():
        value = getattr(config, name)
        if value is not None and not value >= least:  # so that a NaN is refused too
            hint = _correction_hint(name, name in given, f"{least} or more")
            raise BadInput(f"{name} must be at least {least}, got {value}", hint=hint)
    for name, allowed in (("sandbox", MODES), ("moves", MOVES)):
        if (value := getattr(config, name)) not in allowed:
            fault = f"{name} must be {', '.join(allowed[:-1])} or {allowed[-1]}, got {value!r}"
            raise BadInput(fault, hint="correct it in the command, the environment or tunesmith.toml")


def _correction_hint(name: str, is_flag: bool, how: str) -> str:
    if is_flag:
        return f"give --{name.replace('_', '-')} {how}, or leave it out"
    return f"correct it in {SETTINGS_FILE} or in TUNESMITH_{name.upper()}: {how}"


def _with_folders(config: RunConfig, environment: Mapping[str, str]) -> RunConfig:
    """Cache and library where the user has such things; where that cannot be, in a private folder."""
    places = {
        "cache_dir": ("XDG_CACHE_HOME", ".cache", "tunesmith"),
        "library_dir": ("XDG_DATA_HOME", ".local/share", "tunesmith/library"),
    }
    for name, (variable, below, folder) in places.items():
        if getattr(config, name):
            continue
        home = environment.get("HOME", "")
        base = environment.get(variable) or (str(Path(home) / below) if home else "")
        if not _can_hold(Path(base) / folder):
            why = f"{base} cannot be written" if base else "HOME is not set"
            base = str(private_folder())
            config = replace(config, notes=(*config.notes, f"{why}: {folder} is in {base}"))
        config = _apply_settings(config, {name: str(Path(base) / folder)})
    return config


def _can_hold(folder: Path) -> bool:
    """Whether it is there, or can be made. A relative path would land wherever we happen to be."""
    there = next(place for place in (folder, *folder.parents) if place.exists() or place == place.parent)
    return folder.is_absolute() and (there == folder or (there.is_dir() and os.access(there, os.W_OK)))


def is_debugging() -> bool:
    return bool(os.environ.get("TUNESMITH_DEBUG"))


def model_keys(names: Iterable[str]) -> dict[str, str]:
    """Keys for models: from the environment, and stored nowhere else."""
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def secret_values() -> list[str]:
    """Values of variables that nobody else may know, to be cut out of what we repeat."""
    return [value for name, value in os.environ.items() if names_secret(name)]


def passed_on(patterns: Iterable[str] = ()) -> dict[str, str]:
    """The variables that processes which we start inherit: those on our list and of these patterns."""
    wanted = (*PASSED_ON, *patterns)
    listed = {n: v for n, v in os.environ.items() if any(fnmatchcase(n, pattern) for pattern in wanted)}
    kept = {n: v for n, v in listed.items() if not names_secret(n) and redact_secrets(v) == v}
    return {n: _without_here(v) if n in _SEARCHED else v for n, v in kept.items()}


def _without_here(folders: str) -> str:
    """An empty entry, which `$PATH:` leaves behind, is the current folder: nobody has asked for that."""
    return os.pathsep.join(filter(None, folders.split(os.pathsep)))


def forget_current_folder() -> None:
    """For a program of ours, as it starts: what lies in the current folder is no module and no program,
    whether `python -m` or an empty entry of a variable says so."""
    try:
        here, ours = Path.cwd(), Path(__file__).parents[2]
    except FileNotFoundError:  # it is gone, and holds nothing
        return
    sys.path[:] = [path for path in sys.path if (here / path) != here or (here / path) == ours]
    for name in _SEARCHED:
        if name in os.environ:
            os.environ[name] = _without_here(os.environ[name])


def worker_environment(scratch: Path, patterns: Iterable[str] = (), sandbox: str = AUTO) -> dict[str, str]:
    """What every worker sees: everything it may write by itself lands in its scratch folder. `patterns` are
    those of variables that its backend needs."""
    inherited = passed_on(patterns)
    folders = inherited.get("PYTHONPATH", "")
    absolute = os.pathsep.join(map(os.path.abspath, folders.split(os.pathsep)))  # workers start elsewhere
    return {
        **inherited,
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
        head, _, setting = name.partition("TUNESMITH_")
        if not head and setting and setting not in known:
            import difflib  # here, so that `--help` stays quick

            close = difflib.get_close_matches(setting.upper(), known, n=1, cutoff=0.75)
            if close:
                hint = f"did you mean TUNESMITH_{close[0]}? Otherwise unset it"
                raise BadInput(f"the environment sets {name}, which is no setting", hint=hint)


class FolderNotTrusted(UserWarning):
    """What the file of a folder asked for and may not say; told once, by whoever shows warnings."""


def own_file(environment: Mapping[str, str]) -> Path | None:
    base = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = str(Path(environment.get("HOME", "")) / ".config")
    return Path(base) / "tunesmith" / SETTINGS_FILE if os.path.isabs(base) else None


def _user_settings(environment: Mapping[str, str]) -> dict[str, Setting]:
    path = own_file(environment)
    if path is None:
        return {}
    path = Path(os.path.realpath(path))  # users keep such files elsewhere, and a link here
    found = _from_file(path, _read_settings_file(path))
    for name in _NAMES_FILES:
        if (file := str(found.get(name) or "")) and "://" not in file:
            found[name] = str(path.parent / Path(file).expanduser())
    return found


def _permitted_settings(folder: Path, environment: Mapping[str, str]) -> Settings:
    """What the file in a folder may say: all of it where the user trusts the folder as it is."""
    path, users = folder / SETTINGS_FILE, own_file(environment)
    if users is not None and os.path.realpath(users) == os.path.realpath(path):
        return {}  # it has been read
    data = _read_settings_file(path)
    asked = _from_file(path, data)
    beyond = beyond_permission(asked, folder)
    if not beyond:
        return asked
    from tunesmith.run import trust  # which few folders ask for

    state = trust.state_of(folder, lambda: named_files(folder, data, asked), environment)
    if state == trust.TRUSTED:
        return asked
    why = "or what it names has changed since it was trusted" if state == trust.CHANGED else "is not trusted"
    keys = f"its {', '.join(beyond)} {'is' if len(beyond) == 1 else 'are'} ignored"
    how = f"give flags, or read its files, then: tunesmith trust {shlex.quote(os.path.realpath(folder))}"
    warnings.warn(FolderNotTrusted(f"{path} {why}: {keys}; {how}"), stacklevel=2)
    return {name: value for name, value in asked.items() if name not in beyond}


def beyond_permission(asked: Mapping[str, Any], folder: Path) -> list[str]:
    """The settings that the file of a folder may not say by itself."""
    return [n for n, value in asked.items() if not (n in _PERMITS and _PERMITS[n](value, folder))]


def folder_settings(folder: Path) -> tuple[Settings, dict[str, str]]:
    """What the file in a folder asks for, and the digests of all that trust in it rests on."""
    data = _read_settings_file(folder / SETTINGS_FILE)
    if not data:
        fault = f"there is no {SETTINGS_FILE} in it, so it asks for nothing"
        raise BadInput(fault, where=str(folder), hint="name the folder that has one")
    asked = _from_file(folder / SETTINGS_FILE, data)
    return asked, named_files(folder, data, asked)


def named_files(folder: Path, data: bytes, asked: Mapping[str, Any]) -> dict[str, str]:
    from tunesmith.run.trust import digests_of

    names = [str(asked[name]) for name in _NAMES_FILES[:2] if asked.get(name)]
    names += [str(asked.get("backend", "")).partition(":")[2]]
    named = [name for name in names if name and "\0" not in name]
    return digests_of(folder, {SETTINGS_FILE: data}, named, bool(asked.get("workers")))


def _read_settings_file(path: Path) -> bytes:
    try:
        return read_plain(path, LARGEST_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}", where=str(path)) from error


def _from_file(path: Path, data: bytes) -> dict[str, Setting]:
    try:
        table = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # what is no TOML, no text, or too deep
        raise BadInput(f"cannot be read: {error}", where=str(path)) from error
    for name, value in table.items():
        _check_type(name, value, str(path))
    return table


def _check_type(name: str, value: object, where: str | None) -> None:
    if name not in _TYPES:
        from tunesmith.space.expr import suggest_name

        known = f"unknown key {name!r}; known are {', '.join(_TYPES)}"
        raise BadInput(known, where=where, hint=suggest_name(name, _TYPES))
    kind = _KINDS[_type_name(name)]
    allowed = (int, float) if kind is float else kind
    if isinstance(value, bool) != (kind is bool) or not isinstance(value, allowed):
        fault = f"{name} must be {_WORDS[_type_name(name)]}, got {redact_secrets(repr(value))}"
        raise BadInput(fault, where=where, hint=f"correct it, or leave out {name}")


def _from_text(name: str, text: str) -> Setting:
    kind = _KINDS[_type_name(name)]
    try:
        return _BOOLS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        words = f"{_WORDS[_type_name(name)]}, got {redact_secrets(repr(text))}"
        hint = "correct it in the environment, or unset it"
        raise BadInput(f"TUNESMITH_{name.upper()} must be {words}", hint=hint) from None


def _type_name(setting: str) -> str:
    return str(_TYPES[setting]).removesuffix(" | None")
