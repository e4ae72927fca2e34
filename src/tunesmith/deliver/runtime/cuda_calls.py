"""Calls on a CUDA device: code is loaded, or compiled where none fits, and launches are made ready once.

A framework brings arrays, memory and its stream; this module has the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import cuda_driver, nvrtc
from .manifest import Entry
from .operator import KEPT, BoundCall, Decision, Delivered, Operator, Scratch


class ReadyDecision:
    """A decision with its launches made ready on a device."""

    def __init__(self, decision: Decision, launches: list[Any]) -> None:
        self.decision, self.launches = decision, launches
        self.scratch: tuple[Scratch, ...] = decision.scratch
        self.fills = any(part.fill is not None for part in self.scratch)


class CudaCalls:
    """What the exports for CUDA share. `allocate(nbytes, device, stream)` gives a pointer, and whatever must
    live until the work is queued."""

    def __init__(self, operator: Operator) -> None:
        if operator.results[0].dispatch.language != "cuda":
            raise ValueError(
                f"{operator.name} is in {operator.results[0].dispatch.language}, not CUDA: export it for that"
            )
        self.operator = operator
        self.signature = operator.signature
        self._modules: dict[tuple[int, int, int, tuple[str, ...]], tuple[Any, dict[str, str]]] = {}
        self._ready: dict[tuple[int, int], tuple[Decision, ReadyDecision]] = {}
        self._lock = threading.RLock()

    def device_of(self, ordinal: int) -> tuple[str, str]:
        return cuda_driver.device_of(ordinal)

    def launch(
        self,
        call: BoundCall,
        pointers: Sequence[int],
        scalars: Sequence[bytes],
        ordinal: int,
        stream: int,
        allocate: Callable[[int], tuple[int, Any]],
        original: bool = False,
    ) -> Decision:
        """Queue what serves the call. Nothing waits for the device."""
        decision = call.decide(pointers, scalars, original)
        ready = self._ready.get((id(decision), ordinal))
        if ready is not None:
            own = ready[1]
        else:
            own = self._made_ready(decision, lambda: call.decide(pointers, scalars, True), ordinal)
        if call.fills or own.fills:
            cuda_driver.have_context(ordinal)
        for number, element in call.fills:
            cuda_driver.fill(pointers[number], call.nbytes[number], element, stream)
        kept: list[Any] = []
        scratch: list[int] = []
        for part in own.scratch:
            pointer, holder = _aligned(allocate, part)
            kept.append(holder)
            scratch.append(pointer)
            if part.fill is not None:
                cuda_driver.fill(pointer, part.nbytes, part.fill, stream)
        words = [int.from_bytes(value, "little") for value in scalars]
        sources = {"array": pointers, "scratch": scratch, "scalar": words}
        for launcher, changes in own.launches:
            launcher([(n, sources[kind][index]) for n, kind, index in changes], stream)
        return own.decision

    # -- making ready ---------------------------------------------------------------------------------------

    def _made_ready(
        self, decision: Decision, original: Callable[[], Decision], ordinal: int
    ) -> ReadyDecision:
        """Of the original where this machine does not take the tuned code."""
        with self._lock:
            try:
                ready = ReadyDecision(decision, self._launchers(decision, ordinal))
            except (cuda_driver.CudaError, nvrtc.CompileError) as error:
                if decision.entry.is_original or not error.is_about_code:
                    raise
                self.operator.warn_refused(decision.entry, error)
                instead = original()
                ready = ReadyDecision(instead, self._launchers(instead, ordinal))
            if len(self._ready) >= KEPT:
                self._ready.clear()
            # The decision is kept beside it, so that no other gets its number.
            self._ready[(id(decision), ordinal)] = (decision, ready)
            return ready

    def _launchers(self, decision: Decision, ordinal: int) -> list[Any]:
        launches: list[Any] = []
        entries = tuple(dict.fromkeys(launch.entry for launch in decision.launches))
        module, symbols = self.module(decision.delivered, decision.entry, entries, ordinal)
        for launch in decision.launches:
            if 0 in launch.grid:
                continue  # of nothing: the driver refuses what a loop would do no times
            words, changes = [], []
            for number, (kind, value) in enumerate(launch.args):
                words.append(int.from_bytes(value, "little") if kind == "value" else 0)
                if kind == "local":
                    raise ValueError(f"{launch.entry}: CUDA has no arguments of local memory")
                if kind != "value":
                    changes.append((number, kind, value))
            geometry = (launch.grid, launch.block, launch.shared, launch.cluster)
            how = (launch.cooperative, launch.pdl, words)
            made = cuda_driver.launcher(module, symbols[launch.entry], *geometry, *how)
            launches.append((made, tuple(changes)))
        return launches

    def module(
        self, delivered: Delivered, entry: Entry, entries: tuple[str, ...], ordinal: int
    ) -> tuple[Any, dict[str, str]]:
        """The binary that was verified where the device is the one it is for, else what NVRTC makes."""
        architecture = cuda_driver.device_of(ordinal)[0]
        own = entry.binary and delivered.dispatch.architecture == architecture
        has_all = own and all(name in entry.symbols for name in entries)
        key = (id(delivered), entry.number, ordinal, () if has_all else entries)
        with self._lock:
            if key not in self._modules:
                found: tuple[bytes, Mapping[str, str]]
                if has_all:
                    found = delivered.read(entry.binary), entry.symbols
                else:
                    found = compiled(delivered, entry, entries, architecture)
                self._modules[key] = (cuda_driver.Module(found[0], ordinal), dict(found[1]))
            return self._modules[key]

    def prepare(self, ordinal: int) -> None:
        """Load, or compile, everything that may serve on this device, so that no later call has to."""
        delivered, known = self.operator.result_for(*cuda_driver.device_of(ordinal))
        for entry in delivered.dispatch.entries if known else (delivered.dispatch.original,):
            entries = tuple(dict.fromkeys(launch.entry for launch in entry.launches))
            if any("{" in name for name in entries):
                continue  # its sizes are part of its name: known at the call
            try:
                module, symbols = self.module(delivered, entry, entries, ordinal)
                for name in entries:
                    module.function(symbols[name], 0, None)
            except (cuda_driver.CudaError, nvrtc.CompileError) as error:
                if entry.is_original or not error.is_about_code:
                    raise
                self.operator.warn_refused(entry, error)


def compiled(
    delivered: Delivered, entry: Entry, entries: Sequence[str], architecture: str
) -> tuple[bytes, Mapping[str, str]]:
    build = delivered.builds[entry.number] if entry.number < len(delivered.builds) else {}
    headers = dict(build.get("headers", {}))
    for name in entry.header_files:
        spelling = name[len(entry.header_folder) + 1 :]
        headers[spelling] = delivered.read(name).decode(errors="surrogatepass")
    return nvrtc.compile_source(
        delivered.read(entry.file).decode(errors="surrogatepass"),
        entry.file,
        entries,
        f"{architecture}{build.get('suffix', '')}",
        tuple(build.get("options", entry.flags)),
        headers,
        cuda_driver.driver_version(),
    )


def _aligned(allocate: Callable[[int], tuple[int, Any]], part: Scratch) -> tuple[int, Any]:
    """Allocators give multiples of 256 bytes; for more than that some is left unused."""
    spare = part.align if part.align > 256 else 0
    pointer, holder = allocate(max(part.nbytes, 1) + spare)
    return (-(-pointer // spare) * spare if spare else pointer), holder
