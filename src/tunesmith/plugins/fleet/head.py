"""The head of a fleet: starts cells as the budget is dealt, writes down what happens, stops all as one. Cells
are processes of this machine, or tasks of a Ray cluster that run the same program: Ray places them, and
repeats those whose node was lost.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunesmith.base.codec import decode_json, encode_json
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.base.files import is_locked, open_plain, read_plain
from tunesmith.base.interrupts import counted_requests
from tunesmith.base.text import flatten_text, format_count, ratio_text, truncate_text
from tunesmith.plugins.fleet import record
from tunesmith.plugins.fleet.cell import STOP, CellOrder, CellOutcome, outcome_path, read_outcome
from tunesmith.plugins.fleet.plan import HOUR, LOGS, RUNS, FleetCell, FleetPlan, FleetSlot, run_path, slots_of
from tunesmith.plugins.fleet.record import (
    MAX_LOSSES,
    CellBegan,
    CellEnded,
    FleetEvent,
    FleetJournal,
    FleetResult,
    FleetRow,
    FleetState,
    HeadBegan,
    apply_fleet_event,
    fund_cells,
    next_start,
)
from tunesmith.plugins.hosts.ray import HINT, LOCAL, refuse_missing_ray
from tunesmith.run.folder import LOCK, RunFolder
from tunesmith.run.ports import Listener

POLL_SECONDS = 0.5  # between two looks for whoever wants it to stop
WRITE_SECONDS = 30.0  # between two versions of the page
CONNECT_SECONDS = 10.0  # for a Ray cluster to answer
END_SECONDS = 20.0  # that a process may take to end at once
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
# So that what lies in the current folder is no module of ours, yet settings there count as for `tune`.
PROGRAM = (sys.executable, "-P", "-m", "tunesmith.plugins.fleet.cell")


def start_process(order: CellOrder, folder: str = "", gpu: str = "") -> subprocess.Popen[bytes]:
    """`folder`: the current one of whoever wants it, if that is here; `gpu`: the only one that it sees."""
    path = Path(order.fleet) / LOGS / f"{order.cell}.log"
    log = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        process = subprocess.Popen(
            PROGRAM,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=folder if os.path.isdir(folder) else None,
            env={**os.environ, **(dict.fromkeys(VISIBLE, gpu) if gpu else {})},
            start_new_session=True,  # a Ctrl-C of ours is not theirs: they end after their batch
        )
    finally:
        os.close(log)
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it has died already, and is told of as one that did
        process.stdin.write(encode_json(order) + b"\n")
        process.stdin.flush()
    return process


def end_process(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run_on_node(order: bytes, folder: str) -> int:
    """A task of a Ray cluster. It is interrupted where it is cancelled; where it is killed, its cell's input
    ends."""
    process = start_process(decode_json(order, CellOrder), folder)
    try:
        while (code := process.poll()) is None:
            time.sleep(POLL_SECONDS)  # Ray interrupts no call that waits for a process
        return code
    finally:
        end_process(process)


class CellRunner:
    """Runs cells. Whoever calls has written down that they begin, and writes down how they end."""

    def __init__(self, folder: Path, plan: FleetPlan) -> None:
        self.folder, self.plan = folder.resolve(), plan

    def slots(self) -> list[FleetSlot]:
        return list(slots_of(self.plan))

    def start(self, slot: FleetSlot, began: CellBegan) -> str:
        """What is to be said of it."""
        raise NotImplementedError

    def ended(self, seconds: float) -> list[tuple[str, CellOutcome]]:
        """Cells that have ended since, by name; waits so long for the first."""
        raise NotImplementedError

    def left(self, began: CellBegan) -> CellOutcome | None:
        """How a session ended that another head began; None: it is still at work."""
        if is_locked(run_path(self.folder, began.cell) / LOCK):
            return None
        return read_outcome(self.folder, began, "whoever ran it is gone")

    def stop(self) -> None:
        """What has not begun to work does not begin. The rest ends after the batch under way: it sees the
        file that asks for that."""

    def end(self) -> None:
        """At once. Nothing is lost but what is under way."""

    def close(self) -> None:
        self.end()

    def order(self, slot: FleetSlot, began: CellBegan, *, on_ray: bool = False) -> CellOrder:
        outcome_path(self.folder, began.cell).unlink(missing_ok=True)
        return CellOrder(str(self.folder), began.cell, slot.place, began.until, began.then, on_ray)

    def outcome(self, began: CellBegan, code: int) -> CellOutcome:
        """Of one whose process has ended."""
        reason = f"its process was killed by signal {-code}" if code < 0 else f"its process ended with {code}"
        try:
            log = read_plain(self.folder / LOGS / f"{began.cell}.log").decode(errors="replace")
        except OSError:
            log = ""
        last = next((line for line in reversed(log.splitlines()) if line.strip()), "")
        reason += f"; it said last: {flatten_text(last)}" if last else ""
        return read_outcome(self.folder, began, reason)


class LocalRunner(CellRunner):
    """By processes of this machine."""

    def __init__(self, folder: Path, plan: FleetPlan) -> None:
        super().__init__(folder, plan)
        self._at_work: dict[str, tuple[CellBegan, subprocess.Popen[bytes]]] = {}

    def start(self, slot: FleetSlot, began: CellBegan) -> str:
        self._at_work[began.cell] = began, start_process(self.order(slot, began), gpu=slot.gpu)
        return ""

    def ended(self, seconds: float) -> list[tuple[str, CellOutcome]]:
        until = time.monotonic() + seconds
        while not (over := [one for one in self._at_work.values() if one[1].poll() is not None]):
            if time.monotonic() >= until:
                return []
            time.sleep(0.05)
        for began, process in over:
            del self._at_work[began.cell]
            assert process.stdin is not None
            with contextlib.suppress(OSError):  # something unread may be in the pipe
                process.stdin.close()
        return [(began.cell, self.outcome(began, process.returncode)) for began, process in over]

    def end(self) -> None:
        for _, process in self._at_work.values():
            process.terminate()
        for _, process in self._at_work.values():
            end_process(process)


class RayRunner(CellRunner):
    """By tasks of a Ray cluster, whose nodes share the fleet's folder."""

    def __init__(self, folder: Path, plan: FleetPlan, address: str) -> None:
        super().__init__(folder, plan)
        if placed := [device.name for device in plan.devices if device.hosts or device.gpus]:
            fault = f"with --ray, Ray places the runs on {placed[0]!r}; gpus and workers place them, too"
            raise BadInput(fault, hint="leave them out; num_gpus says how many GPUs a run asks Ray for")
        refuse_missing_ray()
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        options = {"include_dashboard": False} if address == LOCAL else {}
        host, _, port = address.rpartition(":")
        try:
            if port.isdecimal():  # Ray itself would ask for minutes, whatever it is sent
                socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **options)
        except Exception as error:  # of many kinds, by what is wrong
            why = truncate_text(flatten_text(str(error)), 600)
            raise DeviceMissing(f"the Ray cluster at {address!r} cannot be used: {why}", hint=HINT) from error
        self._ray: Any = ray
        self._task = ray.remote(run_on_node)
        self._at_work: dict[Any, CellBegan] = {}

    def slots(self) -> list[FleetSlot]:
        """As many as a device has: where each is Ray decides."""
        slots = [FleetSlot(d.name, "ray", number) for d in self.plan.devices for number in range(d.slots)]
        return sorted(slots, key=lambda slot: slot.number)

    def start(self, slot: FleetSlot, began: CellBegan) -> str:
        device = next(device for device in self.plan.devices if device.name == slot.device)
        wanted = {"num_gpus": device.num_gpus, "num_cpus": 1, "max_retries": MAX_LOSSES}
        kind = {"accelerator_type": device.accelerator} if device.accelerator else {}
        order = encode_json(self.order(slot, began, on_ray=True))
        self._at_work[self._task.options(**wanted, **kind).remote(order, os.getcwd())] = began
        needed = {"GPU": device.num_gpus} | {f"accelerator_type:{name}": 1 for name in kind.values()}
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        has_node = any(all(node.get(name, 0) >= count for name, count in needed.items()) for node in nodes)
        return "" if has_node else "which no node of the cluster can run yet"

    def ended(self, seconds: float) -> list[tuple[str, CellOutcome]]:
        if not self._at_work:
            time.sleep(seconds)
            return []
        over = []
        for task in self._ray.wait(list(self._at_work), timeout=seconds)[0]:
            began = self._at_work.pop(task)
            try:
                outcome = self.outcome(began, self._ray.get(task))
            except self._ray.exceptions.TaskCancelledError:  # as we asked
                outcome = read_outcome(self.folder, began, "", "paused")
            except self._ray.exceptions.RayError as error:
                outcome = read_outcome(self.folder, began, f"Ray says: {flatten_text(str(error))}")
            over.append((began.cell, outcome))
        return over

    def stop(self) -> None:
        for task, began in self._at_work.items():
            if not is_locked(run_path(self.folder, began.cell) / LOCK):
                self._ray.cancel(task)

    def end(self) -> None:
        for task in self._at_work:
            self._ray.cancel(task)

    def close(self) -> None:
        if self._at_work:
            self.end()
            self._ray.wait(list(self._at_work), num_returns=len(self._at_work), timeout=END_SECONDS)
        self._ray.shutdown()


@dataclass
class FleetHead:
    """For one process. The journal is read by then, and its folder is ours."""

    folder: RunFolder
    plan: FleetPlan
    cells: Mapping[str, FleetCell]
    runner: CellRunner
    journal: FleetJournal
    state: FleetState
    listener: Listener
    is_stopped: bool = False
    _is_ending: bool = False
    _noted: str = ""
    _written: float = 0.0
    _has_changed: bool = True
    _notes: list[str] = field(default_factory=list)
    _losses: dict[str, list[str]] = field(default_factory=dict)  # in a row: the cells that a slot has lost

    def run(self) -> FleetResult:
        """Until nothing is left that can be done here, or it is asked to stop."""
        earlier = dict(self.state.at_work)
        self._record_event(HeadBegan(self.plan.hours))
        (self.folder.path / STOP).unlink(missing_ok=True)
        with counted_requests() as requests:
            while self._step(earlier):
                if requests():
                    self._stop("asked to stop", "again ")
                if requests() > 1 and not self._is_ending:
                    self._is_ending = True
                    self.listener.say("ending at once; what is under way is measured again when it goes on")
                    self.runner.end()
        return self._write()

    def _step(self, earlier: dict[str, CellBegan]) -> bool:
        """Whether anything is left to wait for. `earlier`: what another head began."""
        for cell, outcome in self.runner.ended(POLL_SECONDS if self.state.at_work else 0.0):
            self._end_cell(cell, outcome)
        for cell, began in sorted(earlier.items()):
            if (left := self.runner.left(began)) is not None:
                del earlier[cell]
                self._end_cell(cell, left)
        if (self.folder.path / STOP).exists():
            self._stop("asked to stop by the file of that name in its folder", "twice ")
        while not self.is_stopped and (start := self._next_start()) is not None:
            self._begin(*start)
        if (text := progress_line(self.cells, self.state)) != self._noted:
            self._noted = text
            self.listener.note(text)
        if self._has_changed and time.monotonic() - self._written >= WRITE_SECONDS:
            self._write()
        return bool(self.state.at_work)

    def _next_start(self) -> tuple[FleetSlot, CellBegan] | None:
        slots = [s for s in self.runner.slots() if len(self._losses.get(s.name, ())) < MAX_LOSSES]
        return next_start(self.state, list(self.cells.values()), slots)

    def _begin(self, slot: FleetSlot, began: CellBegan) -> None:
        share = began.until - self.state.of(began.cell).standing.device_seconds
        self._record_event(began)
        what = f"{share:.1f} device-seconds" if began.then == "stop" else "race and verification"
        remark = self.runner.start(slot, began)
        self.listener.say(f"{began.cell}: {what}, on {slot.name}" + (f", {remark}" if remark else ""))

    def _end_cell(self, cell: str, outcome: CellOutcome) -> None:
        before = self.state.of(cell)
        assert before.began is not None
        slot, got_on = before.began.slot, outcome.standing.device_seconds > before.standing.device_seconds
        known = (outcome.how, outcome.standing, outcome.reason, outcome.code, self.is_stopped)
        self._record_event(CellEnded(cell, slot, *known))
        self.listener.say(ended_line(cell, self.state, outcome))
        losses = self._losses.setdefault(slot, [])
        if outcome.how not in ("lost", "no device") or got_on:
            losses.clear()  # it is there, or was in between
        elif outcome.how == "no device" or cell not in losses:  # else the cell may be to blame
            losses.append(cell)
            if len(losses) == MAX_LOSSES:
                self._note(f"{slot} is left out: {MAX_LOSSES} losses in a row")

    def _stop(self, reason: str, again: str) -> None:
        """`again` is what a signal then is: the first may have been one."""
        if not self.is_stopped:
            self.is_stopped = True
            self._notes.append(reason)
            if self.state.at_work:
                words = f"{reason}: waiting for the batches under way; Ctrl-C {again}ends at once"
                self.listener.say(words)
            self.folder.write(STOP, b"")
            self.runner.stop()

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self.listener.say(text)

    def _record_event(self, event: FleetEvent) -> None:
        self.journal.append(event)
        self.state = apply_fleet_event(self.state, event)
        self._has_changed = True

    def _write(self) -> FleetResult:
        self._written, self._has_changed = time.monotonic(), False
        result = result_of(self.folder.path, self.plan, self.cells, self.state, tuple(self._notes))
        self.folder.write(record.HTML, record.fleet_html(result).encode())
        self.folder.write(record.MARKDOWN, record.fleet_markdown(result).encode())
        self.folder.write(record.DATA, encode_json(result) + b"\n")
        return result


def progress_line(cells: Mapping[str, FleetCell], state: FleetState) -> str:
    finished = sum(cell.status == "finished" for cell in state.cells.values())
    hours = f"{state.spent / HOUR:.3g} of {state.hours:g} device hours"
    return f"{finished} of {len(cells)} finished, {len(state.at_work)} at work, {hours}"


def ended_line(cell: str, state: FleetState, outcome: CellOutcome) -> str:
    now = outcome.standing
    if outcome.how == "finished" and now.verified is not None:
        figure = now.verified.figure
        return f"{cell}: finished, {figure.words} verified ({figure.span})"
    if outcome.how == "paused":
        tried = format_count(now.evaluations, "evaluation")
        return f"{cell}: paused at {ratio_text(now.best)} by the search, {tried}"
    later = "; it goes on later" if state.of(cell).is_ready else ""
    return f"{cell}: {outcome.how}: {truncate_text(outcome.reason, 300)}{later}"


def result_of(
    path: Path,
    plan: FleetPlan,
    cells: Mapping[str, FleetCell],
    state: FleetState,
    notes: tuple[str, ...] = (),
) -> FleetResult:
    rows, funded = [], {share.cell.name for share in fund_cells(state, list(cells.values()))}
    for name, cell in cells.items():
        known = state.of(name)
        now, reason = known.standing, known.reason
        if known.status == "not begun" and state.heads and name not in funded:
            reason = "the budget does not reach it"
        rows.append(
            FleetRow(
                problem=cell.problem.folder,
                device=cell.device.name,
                author=cell.author.name,
                status=known.status,
                weight=cell.weight,
                device_seconds=now.device_seconds,
                seconds=now.seconds,
                evaluations=now.evaluations,
                best=now.best,
                run=f"{RUNS}/{name}",
                verified=now.verified,
                reason=reason,
                code=known.code,
            )
        )
    return FleetResult(path.resolve().name, state.hours or plan.hours, tuple(rows), notes)
