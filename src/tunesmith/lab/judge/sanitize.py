"""Kernels under sanitizers: a few small cases, each tool in a process of its own, beside all that is timed.

A fault that the original does not have convicts a kernel, whatever its results are. What a tool cannot do,
or does not do in time, is a sentence, and convicts nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith import backends
from tunesmith.backends.messages import BareRun, Draw, EndedTool, RunBare
from tunesmith.backends.port import BackendKind, SanitizerKind
from tunesmith.base.errors import BadInput
from tunesmith.base.text import end_of_process, redact_secrets, strip_controls, truncate_text
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.measure import LaunchPlans, Original
from tunesmith.lab.memory import RIGHT, Verdict
from tunesmith.problem.cases import Case, watched_cases
from tunesmith.problem.device import Device
from tunesmith.problem.plan import CannotRun, Plan, Status, show_sizes
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant
from tunesmith.run.config import secret_values
from tunesmith.run.events import (
    NOT_IN_FORCE,
    NOTE,
    Sanitized,
    SanitizerFinding,
    combine_device_and_host,
    distinct_findings,
    mark_shared_findings,
    merge_sanitized,
)

if TYPE_CHECKING:
    from tunesmith.lab.device_tools import SanitizerHost, Spawn

NO_SMALL = "the kernel can be launched at no small size"
SECONDS = 20.0  # for one tool and all cases; most take three
HOST_SECONDS = 90.0  # where the host stands in for a device, and its compiler begins from nothing
HOST = "cpu"
ON_HOST_TOO = ("cuda", "hip")  # backends whose languages the cpu device builds


@dataclass(frozen=True)
class Watched:
    """What one tool said."""

    tool: str
    findings: tuple[SanitizerFinding, ...] = ()
    why_not: str = ""  # it found nothing, and did not see all either


@dataclass(frozen=True)
class SanitizerTools:
    """Those that are where the device is."""

    kind: SanitizerKind
    place: SanitizerHost
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        return self.place.name

    def watch(
        self, code: BuiltCode, device: Device, runs: Sequence[BareRun], tools: Sequence[str]
    ) -> list[Watched]:
        with ThreadPoolExecutor(len(tools), thread_name_prefix="sanitize") as threads:
            return list(threads.map(lambda tool: self._watch(code, device, runs, tool), tools))

    def _watch(self, code: BuiltCode, device: Device, runs: Sequence[BareRun], tool: str) -> Watched:
        request = RunBare(code.unit, code.code_digest, device, tuple(runs))
        ended = self.place.run(tool, request, () if self.kind.own_device else (code.binary,), self.seconds)
        found = tuple(
            replace(f, words=redact_secrets(f.words, secret_values()))
            for f in self.kind.read(tool, ended.log)
        )
        return Watched(tool, found, "" if found else self._why_not(ended))

    def _why_not(self, ended: EndedTool) -> str:
        """Why it did not see all launches to their end; empty where it did."""
        name = self.kind.program
        if ended.fault:
            return ended.fault
        if met := self.kind.unable(ended.log):
            return f"{name} cannot judge it: {met}"
        if ended.code < 0:
            return f"{name} was {end_of_process(ended.code)} before it was through"
        if ended.reply:
            return f"the kernel does not run under {name}: {redact_secrets(ended.reply, secret_values())}"
        if not ended.replies:
            said = strip_controls(f"{ended.log}\n{ended.stderr}").strip().splitlines() or ["it says nothing"]
            last = truncate_text(redact_secrets(said[-1].strip(), secret_values()), 300)
            return f"{name} ended with exit status {ended.code} before the kernel ran: {last}"
        return ""


def sanitizer_tools(
    kind: BackendKind, environment: Callable[[], Mapping[str, str]], scratch: Path, sandbox: str
) -> SanitizerTools | str:
    """Those of a backend on this machine, with the environment of its workers; or why there are none."""
    if kind.sanitizer is None:
        return kind.no_sanitizer
    from tunesmith.lab.device_tools import tools_here  # which few runs need

    return _with_tools(kind, tools_here(kind, environment, scratch, sandbox))


def sanitizer_tools_there(kind: BackendKind, spawn: Spawn, sandbox: str) -> SanitizerTools | str:
    """Those of the host whose workers `spawn` starts; DeviceMissing where it is lost."""
    from tunesmith.lab.device_tools import tools_there  # which few runs need

    return _with_tools(kind, tools_there(kind, spawn, sandbox))


def _with_tools(kind: BackendKind, place: SanitizerHost | str) -> SanitizerTools | str:
    if isinstance(place, str):
        return place
    assert kind.sanitizer is not None
    return SanitizerTools(kind.sanitizer, place, HOST_SECONDS if kind.untimed else SECONDS)


def is_watched_twice(device: Device) -> bool:
    """Whether the processor of this machine watches its kernels too, wherever the device is."""
    return device.backend in ON_HOST_TOO and not device.untimed and not device.absent


def note_of(found: SanitizerTools | str, sandbox: str, device: Device | None = None) -> str:
    """What will watch winners on the device, or why nothing will, before anything is tried."""
    twice = device is not None and is_watched_twice(device)
    host = sanitizer_tools(backends.find_backend_kind(HOST), dict, Path(), sandbox) if twice else ""
    beside = "" if isinstance(host, str) else f"{host.name} ({', '.join(host.kind.tools)})"
    if isinstance(found, str):
        return f"{NOTE}{beside}; {found}" if beside else f"{NOTE}{NOT_IN_FORCE}: {found}"
    note = f"{NOTE}{found.name} ({', '.join(found.kind.tools)})"
    return f"{note} and {beside}" if beside else note


Beside = Callable[[Variant, int], Sanitized]  # a kernel, and the seed of its cases


@dataclass
class Sanitizing:
    """What a lab asks; `_tools` are a sentence where there are none."""

    _problem: Problem
    _device: Device
    _plans: LaunchPlans
    _original: Original
    _tools: SanitizerTools | str
    _beside: Beside | None = None  # another that watches the same kernels, on the host
    _of_original: dict[tuple[Case, ...], tuple[SanitizerFinding, ...]] = field(default_factory=dict)
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="sanitizing")
    )

    def start(self, code: BuiltCode, variant: Variant, seed: int) -> Callable[[], Sanitized]:
        """All tools, for a winner. The answer waits for them; on a CPU they begin then, having no cores of
        their own."""
        if isinstance(self._tools, str) and self._beside is None:
            absent = Sanitized(absent=(("", self._tools),))
            return lambda: absent
        tools = () if isinstance(self._tools, str) else self._tools.kind.tools
        if self._device.is_host:
            return lambda: self._looked(code, variant, seed, tools)
        return self._thread.submit(self._looked, code, variant, seed, tools).result

    def at_gate(self, code: BuiltCode, variant: Variant, seed: int) -> Verdict:
        """The few tools that a draft by a model is shown to."""
        return verdict_of(self.look_at_gate(code, variant, seed))

    def look_at_gate(self, code: BuiltCode, variant: Variant, seed: int) -> Sanitized:
        tools = () if isinstance(self._tools, str) else self._tools.kind.at_gate
        return self._looked(code, variant, seed, tools)

    def of_original(self, variant: Variant, seed: int) -> Sanitized:
        """All tools, for what the user wrote: every fault is its own."""
        if isinstance(self._tools, str):
            return Sanitized(absent=(("", self._tools),))
        planned: dict[str, tuple[BuiltCode, list[BareRun]]] = {}
        sizes: list[tuple[tuple[str, int], ...]] = []
        for case in watched_cases(self._problem, variant, self._device, seed, self._tools.kind.nbytes):
            code, plan = self._original.plan(case)
            planned.setdefault(code.code_digest, (code, []))[1].append(self._bare_run(case, plan))
            sizes.append(case.sizes)
        parts: list[Sanitized] = []
        for code, runs in planned.values():
            watched = self._tools.watch(code, self._device, runs, self._tools.kind.tools)
            found = self._confirmed(code, runs, distinct_findings(f for one in watched for f in one.findings))
            held = tuple(one.tool for one in watched if not one.why_not)
            missing = tuple((one.tool, one.why_not) for one in watched if one.why_not)
            parts.append(Sanitized(self._tools.name, held, missing, tuple(sizes), found))
        return merge_sanitized(parts) or Sanitized(self._tools.name, absent=(("", NO_SMALL),))

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _looked(self, code: BuiltCode, variant: Variant, seed: int, tools: Sequence[str]) -> Sanitized:
        """By the device's own tools, and at the same time by who stands beside them."""
        if self._beside is None:
            return self._sanitize_cases(code, variant, seed, tools)
        with ThreadPoolExecutor(1, thread_name_prefix="beside") as thread:
            host = thread.submit(self._beside, variant, seed)
            return combine_device_and_host(self._sanitize_cases(code, variant, seed, tools), host.result())

    def _sanitize_cases(
        self, code: BuiltCode, variant: Variant, seed: int, tools: Sequence[str]
    ) -> Sanitized:
        if isinstance(self._tools, str):
            return Sanitized(absent=(("", self._tools),))
        nbytes = self._tools.kind.nbytes
        planned: dict[Case, Plan] = {}
        for case in watched_cases(self._problem, variant, self._device, seed, nbytes):
            plan = self._plans.plan(variant, dict(case.sizes), code)
            if not isinstance(plan, CannotRun):
                planned[case] = plan
        if not planned:
            return Sanitized(self._tools.name, absent=(("", NO_SMALL),))
        runs = [self._bare_run(case, plan) for case, plan in planned.items()]
        watched = self._tools.watch(code, self._device, runs, tools)
        found = distinct_findings(finding for one in watched for finding in one.findings)
        found = self._confirmed(code, runs, found)
        if not all(finding.doubted for finding in found):
            found = mark_shared_findings(found, self._findings_of_original(tuple(planned)))
        return Sanitized(
            self._tools.name,
            tuple(one.tool for one in watched if not one.why_not),
            tuple((one.tool, one.why_not) for one in watched if one.why_not),
            tuple(case.sizes for case in planned),
            found,
        )

    def _confirmed(
        self, code: BuiltCode, runs: Sequence[BareRun], findings: tuple[SanitizerFinding, ...]
    ) -> tuple[SanitizerFinding, ...]:
        """Those that the tool may imagine are doubted, or need another that finds such a fault too."""
        assert isinstance(self._tools, SanitizerTools)
        kind, confirm = self._tools.kind, self._tools.kind.confirm
        doubted = {finding for finding in findings if kind.imagines(finding, code.unit.source)}
        others = tuple(dict.fromkeys(confirm(f) for f in findings if f not in doubted and confirm(f)))
        watched = self._tools.watch(code, self._device, runs, others) if others else []
        agreed = {"", *(one.tool for one in watched if any(confirm(f) == one.tool for f in one.findings))}
        return tuple(replace(f, doubted=f in doubted or confirm(f) not in agreed) for f in findings)

    def _findings_of_original(self, cases: tuple[Case, ...]) -> tuple[SanitizerFinding, ...]:
        """What the original has at the same cases. Where it cannot be launched nothing is shared."""
        assert isinstance(self._tools, SanitizerTools)
        if cases in self._of_original:
            return self._of_original[cases]
        by_code: dict[str, tuple[BuiltCode, list[BareRun]]] = {}
        for case in cases:
            try:
                code, plan = self._original.plan(case)
            except BadInput:
                continue
            by_code.setdefault(code.code_digest, (code, []))[1].append(self._bare_run(case, plan))
        found: list[SanitizerFinding] = []
        for code, runs in by_code.values():
            watched = self._tools.watch(code, self._device, runs, self._tools.kind.tools)
            found += [finding for one in watched for finding in one.findings]
        self._of_original[cases] = tuple(found)
        return self._of_original[cases]

    def _bare_run(self, case: Case, plan: Plan) -> BareRun:
        return BareRun(plan, Draw(case.distribution, case.seed, self._problem.inputs))


def verdict_of(found: Sanitized) -> Verdict:
    """A kernel with a fault of its own is wrong, whatever it computes."""
    if not found.own:
        return RIGHT
    others = f" (and {len(found.own) - 1} more)" if len(found.own) > 1 else ""
    sizes = "; ".join(show_sizes(dict(case)) for case in found.cases)
    said = f"{found.own[0].sentence}{others}; the original has no such fault at {sizes}"
    return Verdict(Status.WRONG, f"{said}; {found.disagreement}" if found.disagreement else said)
