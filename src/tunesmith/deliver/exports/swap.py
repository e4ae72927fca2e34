"""A library that a program loads first: it serves launches of one kernel by tuned ones, for measuring."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunesmith.deliver.c_code import c_text, comment
from tunesmith.deliver.cuda_api import resource
from tunesmith.deliver.cuda_names import image_text
from tunesmith.deliver.exports.artefact import Artefact
from tunesmith.deliver.exports.patch_cuda import embedded_unit, twin_of, unserved
from tunesmith.deliver.exports.patch_dispatch import (
    CannotServe,
    TunedUnit,
    at_launch_code,
    dispatch_code,
    launch_widths,
)
from tunesmith.errors import BadInput
from tunesmith.problem.template import PLACEHOLDER

_INCLUDES = (
    "atomic", "dlfcn.h", "errno.h", "fcntl.h", "pthread.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
    "sys/mman.h", "unistd.h",
)  # fmt: skip
_PARTS = ("swap_driver.h", "arithmetic.cuh", "launch_checks.h", "exports/patch_host.cuh")
_APPLY = "put it into the sources instead: tunesmith apply RUN; or take it in another form: tunesmith export"


@dataclass(frozen=True)
class SwapSource:
    """`text` is C++ for the host's compiler alone. `notes`: which tuned kernels it lacks, and why."""

    text: str
    delivered: int
    notes: tuple[str, ...]


def swap_source(artefact: Artefact, kernel: str) -> SwapSource:
    """`kernel`: the original's name in the driver. Raises BadInput where nothing can be swapped."""
    dispatch = artefact.first.dispatch
    launches = dispatch.original.launches
    if len(launches) > 1:
        fault = f"the operator takes {len(launches)} launches, and launches are swapped one by one"
        raise BadInput(fault, hint="take what was delivered in another form: tunesmith export RUN --to cpp")
    if PLACEHOLDER.search(launches[0].entry):
        raise BadInput("the original is another kernel for each size, which a launch does not tell apart")
    try:
        at_launch = at_launch_code(artefact)
    except CannotServe as error:
        raise BadInput(f"no launch can be swapped: {error}", hint=_APPLY) from error
    units, notes = _units(artefact)
    if not units:
        raise BadInput("no tuned kernel can be swapped in: " + "; ".join(notes), hint=_APPLY)
    widths = launch_widths(dispatch)
    wanted = (
        f"static const char wanted_name[] = {c_text(kernel)};\n"
        f"constexpr size_t wanted_count = {len(widths)};\n"
        f"static const size_t wanted_bytes[] = {{{', '.join(map(str, widths or (1,)))}}};\n"
    )
    images = [
        f"namespace {name} {{\n{image_text('image', unit.image or b'')}}}\n"
        for name, unit in {unit.namespace: unit for unit in units}.items()
    ]
    head = "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n" + "".join(
        f"#include <{i}>\n" for i in _INCLUDES
    )
    body = "\n".join([*map(resource, _PARTS), *images, wanted, dispatch_code(artefact, units), at_launch])
    about = comment([f"Launches of {kernel}, served by tuned kernels of {artefact.problem}."])
    text = f"{about}{head}\nnamespace {{\n\n{body}\n}}  // namespace\n\n{resource('swap_hooks.h')}"
    return SwapSource(text, len({(unit.result.run, unit.file) for unit in units}), tuple(notes))


def _units(artefact: Artefact) -> tuple[list[TunedUnit], list[str]]:
    """What was verified, to the byte: machine code alone."""
    units: list[TunedUnit] = []
    left_out: dict[str, str] = {}
    for result in artefact.results:
        if not result.dispatch.capability:
            raise BadInput(f"{result.run} does not say the architecture of {result.dispatch.device}")
        for entry in result.dispatch.tuned:
            twin = twin_of(units, result, entry)
            if twin is not None and twin.entry.binary == entry.binary:
                units.append(replace(twin, entry=entry))
                continue
            made = embedded_unit(result, entry, f"v{len(units)}", result.dispatch.capability)
            if made is not None:
                units.append(made)
                continue
            why = unserved(result.dispatch, entry) or "the run has no machine code of it"
            left_out.setdefault(entry.file, f"left out: {entry.file}, {why}")
    return units, list(left_out.values())
