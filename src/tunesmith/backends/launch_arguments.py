"""A launch's arguments as a driver takes them: each the low bytes of one word, as many as the kernel says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tunesmith.backends import port
from tunesmith.problem.problem import element_type


def check_arguments(call: port.LaunchCall, sizes: Sequence[int]) -> None:
    """Drivers take the kernel's word for how many bytes there are, and read on."""
    if len(sizes) != len(call.args):
        raise port.LaunchFailed(f"{call.entry} takes {len(sizes)} arguments, {len(call.args)} are given")
    for number, (arg, size) in enumerate(zip(call.args, sizes, strict=True), start=1):
        own = element_type(arg.type).bytes if isinstance(arg, port.Scalar) else 8
        if own != size:
            what = arg.type if isinstance(arg, port.Scalar) else "an array"
            raise port.LaunchFailed(f"argument {number} of {call.entry} has {size} bytes, {what} has {own}")


def argument_bits(arg: object, address: Callable[[port.Pointer], int], language: str) -> int:
    """An argument's value as the low bytes of one word."""
    if isinstance(arg, port.Pointer):
        return address(arg)
    if isinstance(arg, port.Scalar):
        return int.from_bytes(element_type(arg.type).numpy.type(arg.value).tobytes(), "little")
    raise port.LaunchFailed(f"{language} has no local-memory arguments: use the launch's `shared`")
