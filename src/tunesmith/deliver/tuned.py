"""Everything below `tuned/`: one self-contained source per winner, the original, binaries, the dispatch."""

from __future__ import annotations

from collections.abc import Callable

from tunesmith import backends
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.candidates import TemplateOf
from tunesmith.run.delivery import assemble_delivery, baked_services, builds_known
from tunesmith.run.figures import as_shown
from tunesmith.run.ports import Delivery
from tunesmith.run.race import verified_choice
from tunesmith.run.state import State


def build_delivery(problem: Problem, state: State, template_of: TemplateOf) -> Delivery:
    """What a run that has ended delivers."""
    choice = verified_choice(problem, state)
    services = [s for s in baked_services(problem, state, template_of, choice) if s.shown]
    known = (builds_known(state), state.compiler, services)
    return assemble_delivery(problem, template_of, state.device, as_shown(state, choice), *known)


def tuned_files(
    problem: Problem, device: Device, made: Delivery, stored: Callable[[str], bytes]
) -> dict[str, bytes]:
    """By name; `stored` gives a binary by its digest."""
    files = made.files | {name: stored(digest) for name, digest in made.binaries.items()}
    own = backends.kind_for(problem.kernel.language)
    if own is not None and own.host_command is not None:
        from tunesmith.deliver.cuda.launch_cu import NAME, launch_cu

        command = own.host_command(problem.kernel.flags, device)
        files[NAME] = launch_cu(made.dispatch, files, command).encode()
    return files
