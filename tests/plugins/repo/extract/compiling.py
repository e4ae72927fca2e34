"""Slices compiled in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tunesmith.backends.cuda import cubin as entries
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed
from tunesmith.plugins.repo.extract.slice import FRAMEWORK, Build, BuildAttempt, KernelSlice, Pairs


@contextmanager
def here(entry: str, defines: Pairs) -> Iterator[tuple[Build]]:
    """NVRTC in this process: workers take their time to start."""

    def compiled(cut: KernelSlice, flags: tuple[str, ...]) -> BuildAttempt:
        text = "".join(f"#define {name} {value}\n" for name, value in defines) + cut.text()
        headers = ((FRAMEWORK, cut.framework_text()),) if cut.uses_framework else ()
        device = absent_device(None)
        assert device is not None
        try:
            built = build_cubin(Unit("kernel.cu", text, "cuda", flags, (entry,), headers, "nvrtc"), device)
        except BuildFailed as refused:
            return BuildAttempt("", str(refused), "nvrtc")
        symbols, cubin = entries.unpack(built.data)
        own = Cubin(cubin).kernel_digest(symbols[entry])
        return BuildAttempt(built.code_digest, "", "nvrtc", own, device.limits.capability)

    yield (compiled,)
