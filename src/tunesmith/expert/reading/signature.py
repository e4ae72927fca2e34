"""Whether a problem's arguments are the kernel's own: count, order, arrays and element types."""

from __future__ import annotations

from tunesmith.core.dtypes import ElementType, element_type
from tunesmith.core.errors import BadInput
from tunesmith.core.problem import Argument, Launch, Problem
from tunesmith.expert.reading.source import read_source
from tunesmith.expert.reading.source_model import KernelSignature, Parameter


def signature_faults(problem: Problem) -> list[str]:
    """Every disagreement, in words. A kernel the reader cannot find is left to the compiler."""
    language = problem.kernel.language
    if language not in ("opencl", "cuda", "hip"):
        return []
    try:
        model = read_source(problem.kernel.text, language)  # type: ignore[arg-type]
    except BadInput:
        return []
    # What the preprocessor decides is not known here.
    kernels = {k.name: k for k in model.kernels if k.definitions == 1 and not k.conditional}
    faults: list[str] = []
    for launch in problem.launches:
        kernel = kernels.get(launch.entry.split("<")[0].split("::")[-1].strip())
        if kernel is not None:
            faults += _compare(problem, launch, kernel)
    return faults


def _compare(problem: Problem, launch: Launch, kernel: KernelSignature) -> list[str]:
    taken = [p.name for p in kernel.parameters]
    given = list(launch.args)
    where = f"{problem.kernel.path}:{kernel.line}"
    both = f"the kernel takes ({', '.join(taken)}), the problem gives ({', '.join(given)})"
    if len(taken) != len(given):
        return [f"{kernel.name} takes {len(taken)} arguments, {len(given)} are given: {both} ({where})"]
    if taken != given and set(taken) == set(given):
        return [f"the arguments of {kernel.name} are in another order: {both} ({where})"]
    faults = []
    for number, (parameter, name) in enumerate(zip(kernel.parameters, given, strict=True), start=1):
        fault = _mismatch(parameter, problem.argument(name))
        if fault:
            faults.append(f"argument {number} of {kernel.name}: {fault} ({where})")
    return faults


def _mismatch(parameter: Parameter, argument: Argument) -> str | None:
    is_pointer = argument.role != "scalar"
    if parameter.pointer != is_pointer:
        kinds = ("a scalar", "an array")
        own, given = kinds[parameter.pointer], kinds[is_pointer]
        return f"{parameter.name} is {own} in the kernel, {argument.name} is {given}"
    if (parameter.space == "local") != (argument.role == "local"):
        own = f"{parameter.space or 'global'} memory in the kernel"
        return f"{parameter.name} is {own}, {argument.name} has role {argument.role}"
    if parameter.element is None:
        return None
    if not _stored_alike(element_type(parameter.element), argument.element):
        return f"{parameter.name} is {parameter.element} in the kernel, {argument.name} is {argument.type}"
    return None


def _stored_alike(kernel: ElementType, problem: ElementType) -> bool:
    """Small floats are often passed as plain integers of their size; anything else must agree in kind."""
    if kernel.bytes != problem.bytes:
        return False
    return kernel.bytes <= 2 or (kernel.kind == "float") == (problem.kind == "float")
