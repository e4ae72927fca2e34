"""What an OpenCL compiler defines: by the version of the device's platform, its extensions and the flags.

Where the extensions are not known, a source is read with all that it asks for and without any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tunesmith.csource.predefined import Predefined, opencl_of
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Kernel

_OF_DEVICE = re.compile(r"cl_\w+|__IMAGE_SUPPORT__|__opencl_c_\w+")


def predefined(kernel: Kernel, device: Device, names: Sequence[str]) -> tuple[Predefined, ...]:
    plain = opencl_of(device.driver, " ".join(kernel.flags), device.extensions)
    extensions = [name for name in names if _OF_DEVICE.fullmatch(name)]
    if not extensions or device.extensions:
        return (plain,)
    everything = (*plain.macros, *((name, "1") for name in extensions))
    return (
        Predefined(plain.macros, f"{plain.said_by}, no extension"),
        Predefined(everything, f"{plain.said_by}, all extensions"),
    )
