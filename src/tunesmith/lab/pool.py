"""Several devices of one kind, a lab for each: trials go to whoever is free, outcomes come as they are ready.
One that is lost leaves what it was asked to the others.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tunesmith.base.errors import DeviceMissing, TunesmithError
from tunesmith.base.text import first_line
from tunesmith.lab.build import Builders, BuiltCode
from tunesmith.lab.lab import LocalLab
from tunesmith.lab.memory import Verdict
from tunesmith.lab.process import WorkerProcess
from tunesmith.problem.device import Device
from tunesmith.problem.plan import ExtraCase, Status
from tunesmith.problem.template import Template
from tunesmith.run.events import Baseline, Enlisted, Extended, LeftOut, Profiled, Served, Surveyed, Verified
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.ports import Delivery, Power, SizedCall
from tunesmith.space.configset import Config

if TYPE_CHECKING:
    from tunesmith.backends.messages import Unit

T = TypeVar("T")
MOMENT = 0.5  # seconds between two looks whether there is still somebody to wait for
REFUSALS = 3  # of what builds where a device is: a machine that only builds is left out


class DeviceLab(LocalLab):
    """The lab of one device of several. `turn` is its card's: two workers of one card never run at once."""

    turn: AbstractContextManager[object]

    @property
    def name(self) -> str:
        """As outcomes carry it."""
        return self._identity

    def evaluate(self, trial: Trial) -> Outcome:
        for build in self._start_builds(trial):
            build.result()  # no device is kept from others for that
        with self.turn:
            return self._evaluate(trial)

    def start_builds(self, trial: Trial) -> None:
        self._start_builds(trial)

    def share_gate(self, first: DeviceLab) -> None:
        """What sanitizers have seen there they need not see here."""
        self._gated = first._gated

    def add_cases(self, cases: tuple[ExtraCase, ...]) -> None:
        self._cases.extra = cases

    def close_own(self) -> None:
        """Only what no other lab has a part in."""
        for part in (self._runner, self._clean, self._cases):
            part.close()
        for threads in (self._ahead, self._thread):
            threads.shutdown(wait=True, cancel_futures=True)
        self._sanitizing.close()


@dataclass(frozen=True)
class BuildHost:
    """A machine that builds, and so many workers of it at once."""

    spawn: Callable[[], WorkerProcess]
    gone: Callable[[], str]  # why it will not come back; empty: it is there, or may be again
    count: int
    name: str = ""
    measures: bool = True  # it has a device of the run: what its compiler refuses is refused
    device: Device | None = None  # as it is called there, where that is not as at home


class SpreadBuilders(Builders):
    """Builders on several hosts. What one was building when it was lost for good, another builds. What one
    that only builds refuses is built again where a device is: its compiler may not be the run's. One that
    refuses more than a few kernels that build there builds no more."""

    def __init__(
        self,
        hosts: Sequence[BuildHost],
        device: Device,
        *,
        compiler: str = "",
        say: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._hosts, self._say = hosts, say
        self._next = itertools.cycle(
            [h for n in range(max(h.count for h in hosts)) for h in hosts if n < h.count]
        )
        self._next_lock = threading.Lock()
        self._host_of: dict[WorkerProcess, BuildHost] = {}
        self._refused: Counter[BuildHost] = Counter()  # what others built
        measuring = [host for host in hosts if host.measures]
        is_needed = 0 < len(measuring) < len(hosts)
        self._judge = SpreadBuilders(measuring, device, compiler=compiler) if is_needed else None
        super().__init__(self._spawn_next, device, sum(h.count for h in hosts), compiler=compiler)

    def close(self) -> None:
        self._closed = True
        if self._judge is not None:
            self._judge.close()
        super().close()
        if self._judge is not None:
            self._judge.close()  # a thread that has ended now may have begun a worker anew

    def _is_out(self, host: BuildHost) -> bool:
        return bool(host.gone()) or self._refused[host] >= REFUSALS

    def _spawn_next(self) -> WorkerProcess:
        with self._next_lock:  # every thread that builds asks
            host = next(h for h in self._next if not self._is_out(h) or not self._live_hosts())
        worker = host.spawn()
        self._host_of[worker] = host
        return worker

    def _live_hosts(self) -> list[BuildHost]:
        return [host for host in self._hosts if not self._is_out(host)]

    def _take_worker(self) -> WorkerProcess:
        while not self._closed:
            try:
                worker = self._idle.get_nowait()
            except queue.Empty:
                # Those of a host that is gone are not made up for by the others: they have their own count.
                room = sum(host.count for host in self._live_hosts())
                live = [w for w in self._workers if not self._is_out(self._host_of[w])]
                if len(live) < room or not room:
                    return super()._take_worker()
                try:
                    worker = self._idle.get(timeout=MOMENT)
                except queue.Empty:
                    continue
            if not self._is_out(self._host_of[worker]) or not self._live_hosts():
                return worker
        return super()._take_worker()

    def _device_at(self, worker: WorkerProcess) -> Device:
        return self._host_of[worker].device or self._device

    def _build_unit(self, unit: Unit) -> BuiltCode | Verdict:
        tries = len(self._hosts)
        while True:
            try:
                worker = self._take_worker()
                try:
                    found = self._ask_worker(worker, unit)
                finally:
                    self._idle.put(worker)
            except DeviceMissing:
                tries -= 1
                if self._closed or not tries or not self._live_hosts():
                    raise
                continue
            host = self._host_of[worker]
            is_last = host.measures or self._judge is None or self._closed
            return found if is_last or isinstance(found, BuiltCode) else self._judged(host, found, unit)

    def _ask_worker(self, worker: WorkerProcess, unit: Unit) -> BuiltCode | Verdict:
        """Where there is no device, what cannot be asked is refused too."""
        try:
            return super()._ask_worker(worker, unit)
        except DeviceMissing:
            raise
        except TunesmithError as error:
            if self._host_of[worker].measures:
                raise
            return Verdict(Status.BUILD_FAILED, error.message)

    def _judged(self, host: BuildHost, refusal: Verdict, unit: Unit) -> BuiltCode | Verdict:
        """What a machine with a device makes of a unit that one without refused."""
        assert self._judge is not None, "there is somebody to ask"
        try:
            found = self._judge._build_unit(unit)
        except DeviceMissing:
            return refusal  # all with a device are lost
        if isinstance(found, BuiltCode):
            with self._next_lock:
                self._refused[host] += 1
                is_enough = self._refused[host] == REFUSALS
            if is_enough:
                why = first_line(refusal.detail)
                self._say(f"worker {host.name!r} refuses what builds elsewhere ({why}); it builds no more")
        return found


class LabPool:
    """The labs of several devices as one `Lab`. The first that is left is home: it times the original first,
    and everything that is timed against it."""

    def __init__(self, labs: Sequence[DeviceLab], builders: Builders, lost: Sequence[LeftOut] = ()) -> None:
        """`lost` are in force by the journal, and could not be had."""
        self._labs = {lab.name: lab for lab in labs}
        self._any, self._builders = labs[0], builders  # what needs no device any of them can do
        for lab in labs[1:]:
            lab.share_gate(labs[0])
        self._waiting: deque[Trial] = deque()
        self._bound: dict[str, deque[Trial]] = {lab.name: deque() for lab in labs}
        self._were_bound: set[int] = set()  # trials that were asked of one device
        self._done: deque[Outcome | BaseException] = deque()
        self._news: deque[LeftOut | str] = deque(lost)  # who was lost or has joined, in order; not told yet
        # In force, as far as is told.
        self._told = [*(lab.name for lab in labs), *(one.device for one in lost)]
        self._templates: list[Template] = []
        self._cases: tuple[ExtraCase, ...] = ()
        self._left_out: set[str] = set()
        self._closing = False
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []

    @property
    def _home(self) -> DeviceLab:
        """While `_changed` is held."""
        found = next((lab for name, lab in self._labs.items() if name not in self._left_out), None)
        if found is None:
            raise DeviceMissing("no device of the run is left")
        return found

    def submit(self, trial: Trial, device: str = "") -> None:
        self._any.start_builds(trial)
        with self._changed:
            # One whose lab could not be had is not left out yet: what it is asked goes with it.
            (self._bound.setdefault(device, deque()) if device else self._waiting).append(trial)
            self._were_bound |= {trial.id} if device else set()
            self._changed.notify_all()
            if not self._threads:
                for lab in self._labs.values():
                    self._start_thread(lab)

    def _start_thread(self, lab: DeviceLab) -> None:
        options = {"name": f"evaluate-{lab.name}", "daemon": True}
        self._threads.append(threading.Thread(target=self._work, args=(lab,), **options))  # type: ignore[arg-type]
        self._threads[-1].start()

    def collect(self) -> Outcome | None:
        with self._changed:
            self._changed.wait_for(lambda: self._done or self._news)
            if self._news:
                return None
            found = self._done.popleft()
        if isinstance(found, BaseException):
            raise found
        return found

    def changed(self) -> LeftOut | Enlisted | None:
        with self._changed:
            if not self._news:
                return None
            first = self._news.popleft()
            if isinstance(first, LeftOut):
                self._told.remove(first.device)
                return first
            self._told.append(first)
            while self._news and isinstance(self._news[0], str):
                self._told.append(str(self._news.popleft()))
            return Enlisted(tuple(self._told))

    def join(self, lab: DeviceLab) -> bool:
        """From now on it measures too, as `changed` tells. False: it is too late, or it is there already."""
        with self._changed:
            if self._closing or lab.name in self._labs:
                return False
            lab.share_gate(self._any)
            for template in self._templates:
                lab.admit(template)
            lab.add_cases(self._cases)
            self._labs[lab.name], self._bound[lab.name] = lab, deque()
            self._news.append(lab.name)
            if self._threads:
                self._start_thread(lab)
            self._changed.notify_all()
        return True

    @property
    def is_closing(self) -> bool:
        return self._closing

    def leave_out(self, device: str) -> None:
        with self._changed:
            self._left_out.add(device)
            self._bound.setdefault(device, deque()).clear()
            self._told = [name for name in self._told if name != device]
            if self._left_out >= self._labs.keys() and self._news:
                # The last of the others was lost meanwhile. It stays in force, and is missed.
                last = self._news.pop()
                assert isinstance(last, LeftOut)
                self._done.append(DeviceMissing(last.reason))
            self._changed.notify_all()

    def _work(self, lab: DeviceLab) -> None:
        while (trial := self._next_trial(lab)) is not None:
            found: Outcome | BaseException
            try:
                found = lab.evaluate(trial)
            except DeviceMissing as error:
                if self._lose(lab, error, trial):
                    return
                found = error
            except BaseException as error:  # told to whoever collects
                found = error
            with self._changed:
                self._done.append(found)
                self._changed.notify_all()

    def _next_trial(self, lab: DeviceLab) -> Trial | None:
        """What it does next, when there is something; None: nothing any more."""
        while True:
            with self._changed:
                if self._closing or lab.name in self._left_out:
                    return None
                if self._bound[lab.name]:
                    return self._bound[lab.name].popleft()
                # Finalists are timed by one device alone, in turn.
                fitting = (t for t in self._waiting if t.purpose != "finalist" or lab is self._home)
                if (trial := next(fitting, None)) is not None:
                    self._waiting.remove(trial)
                    return trial
                self._changed.wait()

    def _lose(self, lab: DeviceLab, error: DeviceMissing, trial: Trial | None = None) -> bool:
        """False where it is the last one: then there is nothing to go on with."""
        with self._changed:
            left = [name for name in self._labs if name not in self._left_out and name != lab.name]
            if not left or self._closing:
                return False
            if lab.name not in self._left_out:
                self._left_out.add(lab.name)
                self._news.append(LeftOut(lab.name, first_line(error.message), lost=True))
            self._bound[lab.name].clear()
            if trial is not None and trial.id not in self._were_bound:
                self._waiting.appendleft(trial)
            self._changed.notify_all()
        return True

    def _at_home(self, do: Callable[[DeviceLab], T]) -> T:
        """By the first device that is left; where it is lost meanwhile, by the next."""
        while True:
            with self._changed:
                lab = self._home
            try:
                with lab.turn:
                    return do(lab)
            except DeviceMissing as error:
                if not self._lose(lab, error):
                    raise

    def baseline(self) -> Baseline:
        return self._at_home(lambda lab: lab.baseline())

    def extend(self, wanted: Extended) -> Extended:
        found = self._at_home(lambda lab: lab.extend(wanted))
        with self._changed:
            self._cases = found.cases
            for lab in self._labs.values():
                lab.add_cases(found.cases)
        return found

    def verify(self, trial: Trial, later: Sequence[Trial] = ()) -> Verified:
        return self._at_home(lambda lab: lab.verify(trial, later))

    def serve(self, delivery: Delivery, calls: Sequence[SizedCall]) -> Served:
        return self._at_home(lambda lab: lab.serve(delivery, calls))

    def profile(self, config: Config | None, workload: str, seconds: float) -> Profiled:
        return self._at_home(lambda lab: lab.profile(config, workload, seconds))

    def prepare_profiles(self) -> None:
        self._at_home(lambda lab: lab.prepare_profiles())

    @property
    def lacks(self) -> Mapping[Power, str]:
        return self._any.lacks

    def admit(self, template: Template) -> None:
        with self._changed:
            self._templates.append(template)
            for lab in self._labs.values():
                lab.admit(template)

    def build(self, trial: Trial) -> None:
        self._any.build(trial)

    def built(self) -> Surveyed:
        return self._any.built()

    def drop_builds(self) -> None:
        self._any.drop_builds()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for lab in self._labs.values():
            lab.close()  # what it was doing ends at once now
        self._builders.close()
        for thread in self._threads:
            thread.join()
