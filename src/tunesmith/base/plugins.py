"""What is found by name, and never imported by the core: ours in a table, anybody else's by entry points.

A package of somebody else's names it in its metadata, in the group `tunesmith.<group>`, as
`name = "module:attribute"`. A name of ours cannot be taken. Nothing is loaded before it is asked for.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tunesmith.base.errors import BadInput, bug_text

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    @property
    def name(self) -> str: ...


Loaded = TypeVar("Loaded", bound=Named)

# The order is that in which people are shown them; of backends the first that runs a language is its own.
TABLE: Mapping[str, Mapping[str, str]] = {
    "commands": {  # a function with the options of a command, or a Typer app
        "init": "tunesmith.cli.app:init",
        "extract": "tunesmith.plugins.repo.commands:extract",
        "capture": "tunesmith.plugins.repo.commands:capture",
        "check": "tunesmith.cli.app:check",
        "explain": "tunesmith.cli.app:explain",
        "template": "tunesmith.cli.app:template",
        "profile": "tunesmith.cli.app:profile",
        "tune": "tunesmith.cli.runs:tune",
        "retune": "tunesmith.cli.runs:retune",
        "resume": "tunesmith.cli.runs:resume",
        "fleet": "tunesmith.plugins.fleet.commands:fleet",
        "library": "tunesmith.cli.library:library_app",
        "report": "tunesmith.cli.runs:report",
        "watch": "tunesmith.plugins.watch.commands:watch",
        "verify": "tunesmith.cli.runs:verify",
        "compare": "tunesmith.plugins.studies.commands:compare",
        "diff": "tunesmith.plugins.studies.commands:diff",
        "bench": "tunesmith.plugins.studies.commands:bench",
        "export": "tunesmith.plugins.repo.commands:export",
        "apply": "tunesmith.plugins.repo.commands:apply",
        "doctor": "tunesmith.cli.app:doctor",
        "devices": "tunesmith.cli.app:devices",
        "trust": "tunesmith.cli.runs:trust",
        "mcp": "tunesmith.plugins.mcp.commands:mcp",
        "skill": "tunesmith.plugins.mcp.commands:skill",
        "worker": "tunesmith.plugins.hosts.commands:worker_app",
    },
    "api": {  # functions of the package `tunesmith`
        "apply": "tunesmith.plugins.repo.api:apply",
        "bench": "tunesmith.plugins.studies.api:bench",
        "capture": "tunesmith.plugins.repo.api:capture",
        "capture_program": "tunesmith.plugins.repo.api:capture_program",
        "compare": "tunesmith.plugins.studies.api:compare",
        "diff": "tunesmith.plugins.studies.api:diff",
        "extract": "tunesmith.plugins.repo.api:extract",
        "load_capture": "tunesmith.plugins.repo.api:load_capture",
        "resume_comparison": "tunesmith.plugins.studies.api:resume_comparison",
    },
    "backends": {  # a `BackendKind` of `backends.port`
        "cuda": "tunesmith.backends.cuda:KIND",
        "hip": "tunesmith.backends.hip:KIND",
        "opencl": "tunesmith.backends.opencl:KIND",
        "cpu": "tunesmith.plugins.cpu_device:KIND",
        "fake": "tunesmith.backends.fake:KIND",
        "replay": "tunesmith.backends.replay:KIND",
    },
    "exports": {  # a `Target` of `deliver.artefact`, and its languages: reports name it and load none
        "torch": "tunesmith.plugins.exports.python_package:TORCH cuda",
        "cpp": "tunesmith.plugins.exports.cuda_cpp:CPP cuda",
        "cubin": "tunesmith.plugins.exports.cuda_cpp:CUBIN cuda",
        "cupy": "tunesmith.plugins.exports.python_package:CUPY cuda",
        "cuda.core": "tunesmith.plugins.exports.python_package:CUDA_CORE cuda",
        "opencl": "tunesmith.plugins.exports.opencl:TARGET opencl",
        "sglang": "tunesmith.plugins.exports.sglang:TARGET cuda",
        "vllm": "tunesmith.plugins.exports.vllm:TARGET cuda",
        "patch": "tunesmith.plugins.exports.patch:TARGET cuda opencl",
        "kernel-tuner": "tunesmith.plugins.exports.kernel_tuner:TARGET cuda opencl",
    },
    "places": {  # where workers run: connects to them, as long as a run needs them
        "workers": "tunesmith.plugins.hosts.hosts:connected_hosts",
        "ray": "tunesmith.plugins.hosts.ray:connect_cluster",
    },
    "stand_in": {  # a `DeviceStandIn` of `session.place`: checks kernels whose device is not here
        "cpu": "tunesmith.plugins.cpu_device.stand_in:PROCESSOR"
    },
    "libraries": {},  # opens a `Library` of `run.library`, by the scheme of its URL; in a folder it is a file
    "checks": {  # what `doctor` tries beside the core
        "capture": "tunesmith.plugins.repo.capture.capture:examine_capture"
    },
}


def our_names(group: str) -> list[str]:
    """Ours that are installed here."""
    return [name for name, target in TABLE[group].items() if _is_here(target)]


def plugin_names(group: str) -> Iterator[str]:
    """All that are installed here, ours first: whoever finds what it wants looks no further."""
    yield from our_names(group)
    yield from _entry_points(group)


def is_known(group: str, name: str) -> bool:
    """Whether it is installed, or would be with a plugin of ours that is not."""
    return name in TABLE[group] or name in _entry_points(group)


def module_of(group: str, name: str) -> str:
    """Of one that is known: the module or package that has it, with its files."""
    target = TABLE[group].get(name)
    return target.partition(":")[0] if target is not None else _entry_points(group)[name].module


def plugin_words(group: str, name: str) -> str:
    """What the table says of one of ours beside where it is."""
    return TABLE[group].get(name, "").partition(" ")[2]


def first_sentence(name: str) -> str:
    """Of one of our commands that is a function. Read from its text: to import it loads all that it needs."""
    module, _, function = TABLE["commands"].get(name, "").partition(":")
    pattern = rf'^def {function}\(.*?"""(.*?)(?:\n\n|""")'
    found = re.search(pattern, _text_of(module), re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def load_plugin(group: str, name: str) -> Any:
    """BadInput where it is known and not installed, or does not load."""
    target = TABLE[group].get(name)
    if target is None:
        return _load_entry_point(group, name)
    module, _, attribute = target.split()[0].partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tunesmith."):
            raise
        missing = module if f"{module}.".startswith(f"{error.name}.") else error.name or ""
        raise BadInput(
            f"{name!r} needs the plugin {_plugin_of(missing)}, which is not installed here",
            hint="install all of Tunesmith: pip install --force-reinstall tunesmith",
        ) from error


def load_named(group: str, name: str, expected: type[Loaded]) -> Loaded:
    """BadInput also where it is something else than `expected`, or calls itself otherwise."""
    found: object = load_plugin(group, name)
    if not isinstance(found, expected):
        got = f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
        raise _bad_plugin(group, name, f"must name a {expected.__name__}, and names {got}")
    if found.name != name:
        raise _bad_plugin(group, name, f"names a {expected.__name__} whose own name is {found.name!r}")
    return found


def load_or_fault(group: str, name: str, expected: type[Loaded]) -> Loaded | BadInput:
    """What is wrong with it, for whoever goes on without it."""
    try:
        return load_named(group, name, expected)
    except BadInput as fault:
        return fault


def _bad_plugin(group: str, name: str, fault: str) -> BadInput:
    point = _entry_points(group).get(name)
    target = point.value if point is not None else TABLE[group][name].split()[0]
    package = "tunesmith" if point is None else point.dist.name if point.dist is not None else point.module
    return BadInput(
        f"{name!r} of the package {package} {fault} (entry point tunesmith.{group}: {target})",
        hint=f"mend or update {package}, or uninstall it: pip uninstall {package}",
    )


def _load_entry_point(group: str, name: str) -> Any:
    try:
        return _entry_points(group)[name].load()
    except Exception as error:  # whatever the package of somebody else does as it is loaded
        raise _bad_plugin(group, name, f"cannot be loaded: {bug_text(error)}") from error


def _plugin_of(module: str) -> str:
    parts = module.split(".")
    return parts[2] if parts[1] == "plugins" and len(parts) > 2 else module


@cache
def _is_here(target: str) -> bool:
    """By its file: to ask the import system would load the packages around it."""
    place = _file_of(target.partition(":")[0])
    return place.is_file() or (place.with_suffix("") / "__init__.py").is_file()


@cache
def _text_of(module: str) -> str:
    """Several commands stand in one module. Empty where it is none."""
    file = _file_of(module)
    return file.read_text("utf-8") if file.is_file() else ""


def _file_of(module: str) -> Path:
    place = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    return place.with_name(f"{place.name}.py")


def _entry_points(group: str) -> Mapping[str, EntryPoint]:
    return _found_on(tuple(sys.path)).get(group, {})


@cache
def _found_on(_path: tuple[str, ...]) -> dict[str, dict[str, EntryPoint]]:
    """Of all groups: what is installed is read once."""
    from importlib.metadata import entry_points  # which reads e-mail headers: not all that starts needs it

    every = entry_points()
    return {
        group: {one.name: one for one in every.select(group=f"tunesmith.{group}") if one.name not in ours}
        for group, ours in TABLE.items()
    }
