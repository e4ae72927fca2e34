"""What an OpenCL compiler defines: by the version of the device's platform and the flags.

Which extensions a device has is not known here, so that a source is read with all that it asks for and
without any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tunesmith.csource.predefined import Predefined, opencl
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Kernel

_VERSION = re.compile(r"OpenCL (\d)\.(\d)")
_STANDARD = re.compile(r"-cl-std=CL(\d)\.(\d)")
_OF_DEVICE = re.compile(r"cl_\w+|__IMAGE_SUPPORT__|__opencl_c_\w+")


def predefined(kernel: Kernel, device: Device, names: Sequence[str]) -> tuple[Predefined, ...]:
    said, standard = _VERSION.search(device.driver), _STANDARD.search(" ".join(kernel.flags))
    version = _number(said, 120)
    c_version = _number(standard, min(120, version))
    who = f"{'the platform' if said else 'assumed'}: OpenCL {version / 100:.1f}, C {c_version / 100:.1f}"
    plain = opencl(version, (), who, c_version)
    if "-cl-fast-relaxed-math" in kernel.flags:
        plain = Predefined((*plain.macros, ("__FAST_RELAXED_MATH__", "1")), who)
    extensions = [name for name in names if _OF_DEVICE.fullmatch(name)]
    if not extensions:
        return (plain,)
    everything = (*plain.macros, *((name, "1") for name in extensions))
    return Predefined(plain.macros, f"{who}, no extension"), Predefined(everything, f"{who}, all extensions")


def _number(found: re.Match[str] | None, otherwise: int) -> int:
    return int(found[1]) * 100 + int(found[2]) * 10 if found else otherwise
