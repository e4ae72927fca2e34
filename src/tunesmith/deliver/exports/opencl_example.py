"""A program that calls an exported operator once, and how its arguments are written in C."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tunesmith.deliver.exports.artefact import Artefact
from tunesmith.deliver.exports.terms import bytes_of
from tunesmith.problem.dispatch import DispatchArgument
from tunesmith.problem.problem import element_type
from tunesmith.space.expr import Undefined, parse

# C has no type for the narrow floats: they are passed as they lie in memory.
C_TYPES = {
    "float16": "cl_half", "bfloat16": "cl_ushort", "float8_e4m3": "cl_uchar", "float8_e5m2": "cl_uchar",
    "float32": "cl_float", "float64": "cl_double", "int8": "cl_char", "int16": "cl_short", "int32": "cl_int",
    "int64": "cl_long", "uint8": "cl_uchar", "uint16": "cl_ushort", "uint32": "cl_uint", "uint64": "cl_ulong",
    "int4": "cl_char", "uint4": "cl_uchar",
}  # fmt: skip


def element_bytes(argument: DispatchArgument, value: float) -> bytes:
    """One element, lowest byte first; host and device of a pattern have the same order."""
    kind = element_type(argument.type).numpy
    with np.errstate(over="ignore"):
        return bytes(np.array(value).astype(kind).tobytes())


def example(artefact: Artefact, names: Mapping[str, str]) -> str:
    """A program that makes one call, with zeros, at the first workload's sizes."""
    name, dispatch = artefact.name, artefact.first.dispatch
    sizes = dispatch.workloads[0].sizes if dispatch.workloads else {s.name: s.min for s in dispatch.sizes}
    lengths = {a.name: max(1, bytes_of(a).evaluate(sizes)) for a in dispatch.arrays}
    made = "".join(
        f"    cl_mem {names[array]} = zeros(context, queue, {length});\n" for array, length in lengths.items()
    )
    made += "".join(f"    {C_TYPES[a.type]} {names[a.name]} = {_initial(a)};\n" for a in dispatch.literals)
    given = [
        "self", "queue", *(names[a.name] for a in (*dispatch.arrays, *dispatch.literals)),
        *(str(sizes[s]) for s in [size.name for size in dispatch.sizes]), "0", "NULL", "NULL",
    ]  # fmt: skip
    return f"""\
// One call of {name}, on the first device of the first platform.
#include "{name}.h"

#include <stdio.h>

static cl_mem zeros(cl_context context, cl_command_queue queue, size_t bytes) {{
    const unsigned char zero = 0;
    cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, NULL);
    clEnqueueFillBuffer(queue, made, &zero, 1, 0, bytes, 0, NULL, NULL);
    return made;
}}

int main(void) {{
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) return 1;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return 1;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
{made}
    {name}_operator *self;
    cl_int error = {name}_create(context, device, &self);
    if (error == CL_SUCCESS) error = {name}_enqueue({", ".join(given)});
    if (error == CL_SUCCESS) error = clFinish(queue);
    if (error == CL_SUCCESS) printf("served by %s\\n", {name}_served(self));
    else printf("error %d\\n", (int)error);
    {name}_destroy(self);
    return error != CL_SUCCESS;
}}
"""


def _initial(argument: DispatchArgument) -> str:
    value = argument.value
    try:
        number = parse(value).evaluate({}) if isinstance(value, str) else value
    except Undefined:
        return "0"
    if number is None or not np.isfinite(number):
        return "0"
    if C_TYPES[argument.type] in ("cl_float", "cl_double"):
        return repr(float(number)) + ("f" if argument.type == "float32" else "")
    return f"{int.from_bytes(element_bytes(argument, number), 'little'):#x}"
