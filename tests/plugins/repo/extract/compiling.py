"""Slices compiled in this process, and what is extracted so."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tunesmith.backends.cuda import cubin as entries
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed
from tunesmith.plugins.repo.extract.draft import Extraction, ExtractionWish
from tunesmith.plugins.repo.extract.extract import extract_kernel
from tunesmith.plugins.repo.extract.slice import FRAMEWORK, Build, BuildAttempt, KernelSlice, Pairs
from tunesmith.plugins.repo.extract.tree import TextTree


@contextmanager
def here(entry: str, defines: Pairs) -> Iterator[tuple[Build]]:
    """NVRTC in this process: workers take their time to start."""

    def compiled(cut: KernelSlice, flags: tuple[str, ...]) -> BuildAttempt:
        text = "".join(f"#define {name} {value}\n" for name, value in defines) + cut.text()
        headers = ((FRAMEWORK, cut.framework_text()),) if cut.uses_framework else ()
        device = absent_device(None)
        try:
            built = build_cubin(Unit("kernel.cu", text, "cuda", flags, (entry,), headers, "nvrtc"), device)
        except BuildFailed as refused:
            return BuildAttempt("", str(refused), "nvrtc")
        symbols, cubin = entries.unpack(built.data)
        digest = Cubin(cubin).kernel_digest(symbols[entry])
        return BuildAttempt(built.code_digest, "", "nvrtc", digest, device.limits.capability)

    yield (compiled,)


def of_text(text: str, kernel: str, **wish: Any) -> Extraction:
    tree = TextTree((("a.cu", text),))
    return extract_kernel(tree, ExtractionWish(kernel, trim=False, **wish), compilers=here)


def problem_of(found: Extraction) -> dict[str, Any]:
    return tomllib.loads(dict(found.files)["problem.toml"])


def arguments_of(found: Extraction) -> dict[str, dict[str, Any]]:
    return {argument["name"]: argument for argument in problem_of(found)["argument"]}
