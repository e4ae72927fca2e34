"""What is delivered, in the lab: binaries stored as they were verified, and calls through the dispatch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

from tunesmith.backends.port import PortableForm
from tunesmith.lab.builders import Builders, BuiltCode, unit_of
from tunesmith.lab.measuring import LaunchPlans, Policies, Ready, TrialTimer
from tunesmith.lab.memory import Verdict
from tunesmith.problem.dispatch import delivered_variant
from tunesmith.problem.plan import CannotRun, Status
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Variant
from tunesmith.run.events import ServedSize, StoredBinary, VerifiedBuild
from tunesmith.run.outcome import Result
from tunesmith.run.ports import Delivery, SizedCall

ROUNDS, LOOKS = 11, 2  # of timed launches, and looks at their results


class BinaryStore(Protocol):
    """Bytes that a run keeps, by digest; on disk when `put` returns."""

    def put(self, data: bytes) -> str: ...
    def get(self, digest: str) -> bytes: ...


@dataclass
class BinaryShelf:
    """Builds in the form in which they are delivered."""

    form: PortableForm | None  # None: this backend delivers sources alone
    store: BinaryStore | None

    def keep(self, code: BuiltCode, variant: Variant, workloads: tuple[str, ...]) -> VerifiedBuild:
        binary = None
        if self.form is not None and self.store is not None:
            symbols, data = self.form.unpack(code.binary)
            binary = StoredBinary(self.form.name, self.store.put(data), tuple(symbols.items()))
        return VerifiedBuild(workloads, variant.digest, code.code_digest, binary, code.resources)

    def code_of(self, build: VerifiedBuild | None, variant: Variant, compiler: str) -> BuiltCode | None:
        """The stored binary, to be loaded as it is; None where there is none."""
        if build is None or build.binary is None or self.form is None or self.store is None:
            return None
        data = self.form.pack(dict(build.binary.symbols), self.store.get(build.binary.digest))
        assert build.resources is not None, "stored with the binary"
        return BuiltCode(unit_of(variant, compiler), data, build.code_digest, build.resources, 0.0)


@dataclass
class Serving:
    _problem: Problem
    _builders: Builders
    _plans: LaunchPlans
    _timer: TrialTimer
    _shelf: BinaryShelf
    _policies: Policies
    _compiler: str
    _progress: Callable[[str], None]

    def serve(self, made: Delivery, calls: Sequence[SizedCall], seed: int) -> tuple[ServedSize, ...]:
        found = []
        for number, call in enumerate(calls, 1):
            self._progress(f"calling what is delivered at {call.name}, {number} of {len(calls)}")
            found.append(self._call(made, call, seed))
        return tuple(found)

    def _call(self, made: Delivery, call: SizedCall, seed: int) -> ServedSize:
        """Everything that decides comes from what is delivered: the entry, its launches and its binary."""
        sizes = dict(call.sizes)
        entry = made.dispatch.entry_for(sizes)
        config = made.configs.get(entry.digest) if entry.config is not None else None
        if config is None:
            words = Result(call.name, Status.INFEASIBLE, detail="the original serves")
            return ServedSize(call.sizes, entry.file, None, words)
        variant = delivered_variant(made.dispatch, entry, made.files, sizes)
        own = self._problem.arguments  # with what the lab knows of them beside: values, tolerances
        variant = replace(variant, arguments=(*own, *variant.arguments[len(own) :]), config=config)
        variant = replace(
            variant, made_from=made.made_from.get(entry.digest, ())
        )  # vetted as it is delivered
        stored = self._shelf.code_of(made.builds.get(entry.digest), variant, self._compiler)
        code = stored if stored is not None else self._builders.start(variant).result()
        workload = Workload(call.name, call.sizes, cache=call.cache)
        if isinstance(code, Verdict):
            result = Result(call.name, code.status, detail=code.detail)
        else:
            plan = self._plans.plan(variant, sizes, code)
            if isinstance(plan, CannotRun):
                result = Result(call.name, plan.status, detail=plan.reason)
            else:
                self._timer.expect(workload, self._estimate(sizes))
                policy = replace(self._policies.long, rounds=ROUNDS, looks=LOOKS)
                is_claimed = any(w.name == call.name for w in self._problem.workloads)
                ready = Ready(workload, code, plan)
                result = self._timer.against_original(ready, policy, seed, waits=is_claimed)
        return ServedSize(call.sizes, entry.file, config, result)

    def _estimate(self, sizes: Mapping[str, int]) -> float:
        """Seconds of the original, by the workload that is nearest in volume; generous, for deadlines."""
        volume = prod(map(float, sizes.values()))
        known = {
            prod(map(float, w.as_dict().values())): seconds
            for w in self._problem.workloads
            if (seconds := self._timer.original_seconds(w.name)) is not None
        }
        if not known:
            return 1.0
        near = min(known, key=lambda other: abs(other - volume))
        return known[near] * max(1.0, volume / near)
