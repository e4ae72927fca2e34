"""Starting a run: what it is about, its settings, and everything of it that is kept before it goes on."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from tunesmith import __version__, backends, casting, machine, registry, roles, strategies
from tunesmith.config import RunConfig
from tunesmith.core.budget import KERNEL_ROUNDS, SEVERAL_EVALS
from tunesmith.core.codec import encode
from tunesmith.core.device import Device
from tunesmith.core.dialogue import Role
from tunesmith.core.errors import BadInput
from tunesmith.core.events import Primed, Settings, Started
from tunesmith.core.library import LibraryEntry, LibraryTemplate, ranked
from tunesmith.core.ports import Listener, write_down
from tunesmith.core.problem import Problem
from tunesmith.core.space.feasible import configs_of
from tunesmith.core.state import State, apply
from tunesmith.core.template import Template
from tunesmith.going_on import Finished, execute
from tunesmith.machine import temporary_scratch
from tunesmith.problems import BESIDE, KEPT, PROMPT, RECORDING, TEMPLATE, Files, keep
from tunesmith.search import check_name
from tunesmith.store import RunFolder

UNLIMITED = 256  # spaces up to this size have no budget unless the user sets one
DEFAULT_EVALS = 200
MODEL_ROUNDS = 8  # refactorings, where models decide on them
PACKAGES = (
    "numpy",
    "ml_dtypes",
    "pyopencl",
    "pocl-binary-distribution",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
)
Priors = Callable[[Device], tuple[Primed, ...]]


@dataclass(frozen=True)
class Subject:
    """What a run is about, as it was read."""

    problem: Problem
    files: Files
    template: Template | None = None  # None: still to be written
    beside: Mapping[str, Template] = field(default_factory=dict)  # given too, by the names they go by
    origin: str = ""  # what it searches again
    kept: Sequence[LibraryEntry] = ()  # of the library: it begins from the one that suits the device


def nothing_known(_device: Device) -> tuple[Primed, ...]:
    """For runs that begin from nothing."""
    return ()


def begin(
    subject: Subject,
    config: RunConfig,
    out: Path | None,
    listener: Listener,
    priors: Priors = nothing_known,
) -> Finished:
    """`priors`: what is known of templates like it, for the device that is chosen."""
    problem, template = subject.problem, subject.template
    prompts = _prompts(config, template, listener.note)
    spec = backends.backend_for(problem.kernel.language, config.backend)
    check_name(config.search)
    with temporary_scratch() as scratch:
        here = machine.look(spec, scratch)
        device = machine.choose_device(here, config.device)
        feasible = len(configs_of(problem, template, device)) if template is not None else None
        compiler = machine.choose_compiler(problem, template, device, spec, scratch, listener.note)
    notes = roles.launch_notes(problem, device)
    for note in notes:
        listener.say(f"note: {note}")
    primed = priors(device)
    kept = ranked(subject.kept, problem, device.name)[:1]
    if config.prior:
        primed += tuple(Primed(f"{e.name} of the library, on {e.device}", e.rows, e.best) for e in kept)
    wait = config.wait
    folder = (
        RunFolder.create(out, wait) if out else RunFolder.create_next(Path(config.runs), problem.name, wait)
    )
    try:
        stored = keep(folder, problem, subject.files, template)
        stored |= {f"{PROMPT}{role}": folder.put(text.encode()) for role, text in prompts.items()}
        stored |= {f"{BESIDE}{own}": folder.put(t.source.encode()) for own, t in subject.beside.items()}
        stored |= {f"{KEPT}{entry.name}": folder.put(encode(LibraryTemplate.of(entry))) for entry in kept}
        if spec.startswith("replay:"):
            stored[RECORDING] = folder.put(Path(spec.partition(":")[2]).read_bytes())
        started = Started(
            problem=problem.name,
            files=tuple(stored.items()),
            template=TEMPLATE + template.path if template is not None else "",
            backend=spec.partition(":")[0],
            device=device,
            settings=_settings(config, device, feasible),
            versions=versions(),
            compiler=compiler,
            priors=len(primed),
            origin=subject.origin,
            notes=notes,
        )
        journal = folder.journal()
        state = apply(State(), journal.append(started))
        for prior in primed:
            state = write_down(prior, state, journal, listener)
        journal.close()
    except BaseException:
        folder.discard()
        folder.unlock()
        raise
    return execute(folder, config, listener, here)


def _prompts(config: RunConfig, template: Template | None, note: Callable[[str], None]) -> dict[Role, str]:
    strategies.check(config, template is not None)
    if config.model and template is not None:
        raise BadInput(
            "with --template the template is given, and nothing is left for a model to write",
            hint="leave out --template or --model",
        )
    casting.prepare(config.model, config.strategy)
    return casting.prompts_for(config.model, config.prompts, config.strategy, note)


def _settings(config: RunConfig, device: Device, feasible: int | None) -> Settings:
    """`feasible` is None where templates are still to be written."""
    evals = config.evals
    if evals is None and config.time is None:
        if feasible is None:
            evals = SEVERAL_EVALS if config.strategy == "template" else None
        elif feasible > UNLIMITED and config.search != "exhaustive":
            evals = DEFAULT_EVALS
    return Settings(
        search=config.search,
        evals=evals,
        seconds=config.time,
        seed=config.seed,
        ahead=registry.built_ahead(device, registry.builder_count(device, config.builders)),
        use_cache=config.cache,
        prune=config.prune,
        steer=config.steer,
        profile="counters" if config.counters else "static",
        models=config.model,
        rounds=_rounds(config),
        tokens=config.tokens,
        dollars=config.money,
        strategy=strategies.named(config.strategy),
        linear=config.linear,
        library=config.library,
        ceilings=config.ceilings,
    )


def _rounds(config: RunConfig) -> int | None:
    if config.rounds is not None or not config.model:
        return config.rounds
    return MODEL_ROUNDS if config.strategy == "template" else KERNEL_ROUNDS


def versions() -> tuple[tuple[str, str], ...]:
    found = [
        ("tunesmith", __version__),
        ("python", platform.python_version()),
        ("system", platform.platform()),
    ]
    for package in PACKAGES:
        try:
            found.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)
