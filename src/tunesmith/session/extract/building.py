"""Slices compiled here, in workers, for the device that is here or the usual one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tunesmith import backends
from tunesmith.backends.cuda import entries
from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.errors import DeviceMissing
from tunesmith.lab.builders import Builders
from tunesmith.lab.memory import Verdict
from tunesmith.problem.problem import Launch
from tunesmith.problem.template import Variant
from tunesmith.session import machine
from tunesmith.session.extract.slicing import FRAMEWORK, KernelSlice
from tunesmith.session.extract.trimming import BuildAttempt
from tunesmith.space.expr import parse

KERNEL_FILE = "kernel.cu"
_ONE = (parse("1"),)


@dataclass(frozen=True)
class SliceBuilder:
    """One compiler, by name; `entry`: the instance that is asked for."""

    builders: Builders
    compiler: str
    entry: str
    defines: tuple[tuple[str, str], ...]
    capability: int = 0

    def __call__(self, found: KernelSlice, flags: tuple[str, ...]) -> BuildAttempt:
        given = "".join(f"#define {name} {value}\n" for name, value in self.defines)
        given += "#line 1\n" if given else ""  # faults have the slice's own lines
        text = given + found.text()
        headers = ((FRAMEWORK, found.framework_text()),) if found.uses_framework else ()
        launch = Launch(self.entry, _ONE, _ONE, ())
        variant = Variant(KERNEL_FILE, text, "cuda", flags, (launch,), (), headers=headers)
        code = self.builders.start(variant).result()
        if isinstance(code, Verdict):
            return BuildAttempt("", code.detail, self.compiler)
        symbols, cubin = entries.unpack(code.binary)
        own = Cubin(cubin).kernel_digest(symbols[self.entry])
        return BuildAttempt(code.code_digest, "", self.compiler, own, self.capability)


@contextmanager
def slice_builders(entry: str, defines: tuple[tuple[str, str], ...]) -> Iterator[tuple[SliceBuilder, ...]]:
    """One for each compiler here, the quickest first."""
    known = backends.compilers("cuda") or ()
    if not known:
        toolchain = backends.toolchain("cuda")
        missing = toolchain.none_here if toolchain else "there is no CUDA compiler here"
        raise DeviceMissing(missing, hint=toolchain.how_to_install("") if toolchain else None)
    with machine.temporary_scratch() as scratch:
        place = machine.Workplace("cuda", scratch)
        device = machine.choose_device(machine.look(place), None)
        opened: list[Builders] = []
        try:
            made = []
            for name, _ in known:
                builders = machine.make_builders(place, device, 1, name)
                opened.append(builders)
                made.append(SliceBuilder(builders, name, entry, defines, device.limits.capability))
            yield tuple(made)
        finally:
            for builders in opened:
                builders.close()
