"""Recorded measurements played back: a table of configurations and times stands in for the device.

A recording is JSON, gzipped or not: `params` (name -> values), `configs` (values in that order), `time_ms`:
one time for each configuration, null where it failed; or, for several workloads, an object of such lists
whose keys are the workloads' sizes, spelt "rows=64 d=1024". Sources are fake kernels: they compute as there,
only their time comes from the table.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tunesmith.backends import fake
from tunesmith.backends.fake import FakeBackend, FakeKernel, FakeSession, scalar_values
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, KernelBinary, LaunchCall, Session
from tunesmith.base.errors import BadInput
from tunesmith.base.text import digest_of
from tunesmith.problem.device import Device

LONGEST = 1e9  # milliseconds, twelve days


class _File(msgspec.Struct):
    params: dict[str, list[int]]
    configs: list[list[int]]
    time_ms: list[float | None] | dict[str, list[float | None]]


@dataclass(frozen=True)
class RecordedTimes:
    params: tuple[str, ...]
    times: dict[tuple[int, ...], tuple[float | None, ...]]  # per workload, in the order of `workloads`
    workloads: tuple[frozenset[tuple[str, int]], ...]  # empty: one time serves every size

    @staticmethod
    def parse(data: bytes, path: str) -> RecordedTimes:
        try:
            file = msgspec.json.decode(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, type=_File)
            table = file.time_ms if isinstance(file.time_ms, dict) else {"": file.time_ms}
            rows = list(zip(*table.values(), strict=True))
            workloads = tuple(
                frozenset((n, int(v)) for n, _, v in (part.partition("=") for part in key.split()))
                for key in table
            )
            times = {tuple(c): tuple(r) for c, r in zip(file.configs, rows, strict=True)}
            _check_times(times)
        except (msgspec.MsgspecError, OSError, EOFError, ValueError) as error:
            hint = "a recording is JSON, gzipped or not, with params, configs and time_ms"
            raise BadInput(f"not a recording: {error}", where=path, hint=hint) from error
        return RecordedTimes(tuple(file.params), times, () if set(table) == {""} else workloads)


def _check_times(times: dict[tuple[int, ...], tuple[float | None, ...]]) -> None:
    for config, row in times.items():
        for time_ms in row:
            if time_ms is not None and not 0 < time_ms <= LONGEST:
                raise ValueError(
                    f"{list(config)} takes {time_ms:g} ms: times are above 0 and at most {LONGEST:g} ms, "
                    "null where one failed"
                )


class ReplayBackend:
    name = "replay"

    def __init__(self, path: str) -> None:
        if not path:
            hint = "name it: --backend replay:recording.json.gz"
            raise BadInput("the replay backend needs a recording", hint=hint)
        try:
            self._recording = RecordedTimes.parse(Path(path).read_bytes(), path)
        except OSError as error:
            words = f"cannot read the recording: {error.strerror}"
            raise BadInput(words, where=path, hint="correct the name: --backend replay:FILE") from error
        self._name = Path(path).name

    def devices(self) -> tuple[Device, ...]:
        device, *_ = FakeBackend().devices()
        digest = digest_of(repr(sorted(self._recording.times.items())))
        return (replace(device, backend="replay", name=f"recording {self._name}", driver=digest[:16]),)

    def build(self, unit: Unit, device: Device) -> KernelBinary:
        row = self._row(FakeKernel.read(unit))
        if row is not None and all(t is None for t in row):
            raise BuildFailed("this configuration failed when it was recorded")
        return FakeBackend().build(unit, device)

    def open(self, device: Device) -> Session:
        return _ReplaySession(device, self)

    def seconds(self, call: LaunchCall, kernel: FakeKernel) -> float:
        row = self._row(kernel)
        if row is None:
            return kernel.seconds(scalar_values(call))  # the original: no configuration, its own stated time
        if not self._recording.workloads:
            time_ms = row[0]
        else:
            sizes = set(scalar_values(call).items())
            matches = [t for w, t in zip(self._recording.workloads, row, strict=True) if w <= sizes]
            time_ms = matches[0] if matches else None
        return (time_ms if time_ms is not None else 1e6) * 1e-3

    def _row(self, kernel: FakeKernel) -> tuple[float | None, ...] | None:
        if not set(self._recording.params) <= kernel.macros.keys():
            return None
        values = tuple(kernel.macros[name] for name in self._recording.params)
        if values not in self._recording.times:
            raise BuildFailed(f"no recording of {dict(zip(self._recording.params, values, strict=True))}")
        return self._recording.times[values]


class _ReplaySession(FakeSession):
    def __init__(self, device: Device, backend: ReplayBackend) -> None:
        super().__init__(device)
        self._backend = backend

    def call_seconds(self, call: LaunchCall) -> float:
        assert isinstance(call.executable, FakeKernel)
        return self._backend.seconds(call, call.executable)


KIND = replace(
    fake.KIND,
    name="replay",
    make=ReplayBackend,
    simulated=False,
    from_file=True,
    plays_absent=False,
    check=lambda _devices: [],
)
