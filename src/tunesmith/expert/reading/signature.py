"""Whether a problem's arguments are the kernel's own: count, order, arrays and element types."""

from __future__ import annotations

import re

from tunesmith.core import languages
from tunesmith.core.dtypes import ElementType, element_type
from tunesmith.core.errors import BadInput
from tunesmith.core.problem import Argument, Launch, Problem
from tunesmith.expert.reading.source import read_source
from tunesmith.expert.reading.source_model import KernelSignature, Parameter


def signature_faults(problem: Problem) -> list[str]:
    """Every disagreement, in words. A kernel the reader cannot find is left to the compiler."""
    language = problem.kernel.language
    if not languages.named(language).is_c_family:
        return []
    try:
        model = read_source(problem.kernel.text, language)  # type: ignore[arg-type]
    except BadInput:
        return []
    faults: list[str] = []
    for launch in problem.launches:
        entry = launch.entry.split("<")[0].strip().removeprefix("::")
        meant = [k for k in model.kernels if k.qualified_name == entry]
        meant = meant or [k for k in model.kernels if k.name == entry.split("::")[-1]]
        # What the preprocessor decides is not known here.
        if len(meant) == 1 and meant[0].definitions == 1 and not meant[0].conditional:
            faults += _compare(problem, launch, meant[0])
    return faults


def missing_entry(problem: Problem) -> str | None:
    """Why no kernel can be called what a launch calls it, where that is certain without a compiler."""
    kernel = problem.kernel
    readable = languages.named(kernel.language).is_c_family
    if not readable or "#include" in kernel.text or "##" in kernel.text:
        return None
    for entry in dict.fromkeys(launch.entry for launch in problem.launches):
        name = entry.split("<")[0].split("::")[-1].strip()
        outside = [*kernel.flags, *(text for define in kernel.defines for text in define)]
        if (
            re.search(rf"\b{re.escape(name)}\b", kernel.text)
            or any(name in text for text in outside)
            or "{" in name
        ):
            continue
        try:
            known = [k.name for k in read_source(kernel.text, kernel.language).kernels]  # type: ignore[arg-type]
        except BadInput:
            return None
        return f"entry {entry!r} is nowhere in {kernel.path}, which defines {', '.join(known)}"
    return None


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
        fault = _mismatch(parameter, problem.argument(name), problem.kernel.language)
        if fault:
            faults.append(f"argument {number} of {kernel.name}: {fault} ({where})")
    return faults


def _mismatch(parameter: Parameter, argument: Argument, language: str) -> str | None:
    is_pointer = argument.role != "scalar"
    if language != "opencl" and _unknowable(parameter, argument):
        return None
    if parameter.pointer != is_pointer:
        kinds = ("a scalar", "an array")
        own, given = kinds[parameter.pointer], kinds[is_pointer]
        return f"{parameter.name} is {own} in the kernel, {argument.name} is {given}"
    if (parameter.space == "local") != (argument.role == "local"):
        own = f"{parameter.space or 'global'} memory in the kernel"
        return f"{parameter.name} is {own}, {argument.name} has role {argument.role}"
    if parameter.element is None:
        return None
    if parameter.vector > 1 and not is_pointer:
        return f"{parameter.name} is {parameter.type} in the kernel, a scalar argument is a single number"
    if not _stored_alike(element_type(parameter.element), argument.element):
        return f"{parameter.name} is {parameter.element} in the kernel, {argument.name} is {argument.type}"
    return None


def _unknowable(parameter: Parameter, argument: Argument) -> bool:
    """What C++ leaves open: a type may be a pointer, and a pointer may be null or carry anything."""
    if not parameter.pointer:
        return parameter.element is None
    if argument.role == "scalar":
        return argument.type in ("int64", "uint64") and argument.value is not None
    if parameter.element is None:
        return True
    carrier = element_type(parameter.element)
    wide = parameter.vector > 1 or (carrier.kind != "float" and argument.element.packed > 1)
    return wide or (carrier.kind != "float" and carrier.bytes == 1)


def _stored_alike(kernel: ElementType, problem: ElementType) -> bool:
    """Small floats are often passed as plain integers of their size; anything else must agree in kind."""
    if kernel.bytes != problem.bytes:
        return False
    return kernel.bytes <= 2 or (kernel.kind == "float") == (problem.kind == "float")
