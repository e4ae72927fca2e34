"""Cells as processes of this machine, one for each slot. Each ends by itself when its share is used up, when
it is asked to, and when we are gone."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tunesmith.errors import TunesmithError
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.files import is_locked, open_plain, read_plain
from tunesmith.run.store import LOCK
from tunesmith.session.fleet.cell import (
    CellNews,
    CellOrder,
    CellOutcome,
    last_standing,
    outcome_path,
    read_outcome,
    run_path,
    standing_of,
)
from tunesmith.session.fleet.plans import FleetSlot
from tunesmith.session.fleet.record import CellBegan
from tunesmith.text import cut, flat

LOGS = "logs"
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
PATIENCE = 20.0  # seconds that a process may take to end at once
_LAST_WORDS = 400
# So that what lies in the current folder is no module of ours, yet settings there count as for `tune`.
PROGRAM = (sys.executable, "-P", "-m", "tunesmith.session.fleet.cell")


class CellRunner(Protocol):
    """Runs cells. Whoever calls has written down that they begin, and writes down how they end."""

    def start(self, slot: FleetSlot, began: CellBegan) -> None: ...

    def ended(self, seconds: float) -> Sequence[tuple[str, CellOutcome]]:
        """Cells that have ended since, by name; waits so long for the first."""

    def news(self) -> Mapping[str, CellNews]:
        """Of those at work, what they said last."""

    def stop(self) -> None:
        """All of them, each after the batch under way."""

    def left(self, began: CellBegan) -> CellOutcome | None:
        """How a session ended that another head began; None: it is still at work."""

    def close(self) -> None:
        """End at once what is still at work. Nothing is lost but what is under way."""


@dataclass
class _CellProcess:
    began: CellBegan
    process: subprocess.Popen[bytes]
    news: CellNews = field(default_factory=CellNews)


class CellProcesses:
    """Of one fleet."""

    def __init__(self, folder: Path, program: Sequence[str] = PROGRAM) -> None:
        self._folder = folder
        self._program = tuple(program)
        self._at_work: dict[str, _CellProcess] = {}
        self._over: queue.SimpleQueue[str] = queue.SimpleQueue()
        (folder / LOGS).mkdir(exist_ok=True)

    def start(self, slot: FleetSlot, began: CellBegan) -> None:
        outcome_path(self._folder, began.cell).unlink(missing_ok=True)
        log = open_plain(self._log(began.cell), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            process = subprocess.Popen(
                self._program,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **dict.fromkeys(VISIBLE, slot.gpu)} if slot.gpu else None,
                start_new_session=True,  # a Ctrl-C of ours is not theirs: they end after their batch
            )
        finally:
            os.close(log)
        own = self._at_work[began.cell] = _CellProcess(began, process)
        order = CellOrder(str(self._folder.resolve()), began.cell, slot.place, began.until, began.then)
        assert process.stdin is not None
        try:
            process.stdin.write(encode(order) + b"\n")
            process.stdin.flush()
        except OSError:
            pass  # it has died already, and is told of as one that did
        threading.Thread(target=self._listen, args=(began.cell, own), daemon=True).start()

    def _listen(self, cell: str, own: _CellProcess) -> None:
        assert own.process.stdout is not None
        for data in own.process.stdout:
            try:
                own.news = decode(data, CellNews)
            except Malformed:
                continue
        own.process.stdout.close()
        own.process.wait()
        self._over.put(cell)

    def ended(self, seconds: float) -> list[tuple[str, CellOutcome]]:
        try:
            names = [self._over.get(timeout=seconds) if seconds > 0 else self._over.get_nowait()]
        except queue.Empty:
            return []
        while not self._over.empty():
            names.append(self._over.get_nowait())
        found = []
        for name in names:
            own = self._at_work.pop(name)
            _close_input(own.process)
            found.append((name, self._outcome(own.began, own.process.returncode)))
        return found

    def _outcome(self, began: CellBegan, status: int | None) -> CellOutcome:
        cell, told = began.cell, read_outcome(self._folder, began.cell)
        if told is not None and told.until == began.until:  # else it is an earlier session's
            return told
        how = (
            f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with {status}"
        )
        words = f"its process {how}" if status is not None else "whoever ran it is gone"
        if said := self._last_words(cell):
            words += f"; it said last: {said}"
        try:
            return CellOutcome("lost", standing_of(run_path(self._folder, cell)), words, 1)
        except TunesmithError as error:  # of this cell alone: others go on
            return CellOutcome("failed", last_standing(self._folder, cell), str(error), error.exit_code)

    def news(self) -> Mapping[str, CellNews]:
        return {cell: own.news for cell, own in self._at_work.items()}

    def stop(self) -> None:
        for own in self._at_work.values():
            _close_input(own.process)

    def left(self, began: CellBegan) -> CellOutcome | None:
        if is_locked(run_path(self._folder, began.cell) / LOCK):
            return None
        return self._outcome(began, None)

    def close(self) -> None:
        for own in self._at_work.values():
            own.process.terminate()
        for own in self._at_work.values():
            try:
                own.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                own.process.kill()
                own.process.wait()

    def _log(self, cell: str) -> Path:
        return self._folder / LOGS / f"{cell}.log"

    def _last_words(self, cell: str) -> str:
        try:
            lines = read_plain(self._log(cell)).decode(errors="replace").splitlines()
        except OSError:
            return ""
        return cut(flat(next((line for line in reversed(lines) if line.strip()), "")), _LAST_WORDS)


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None and not process.stdin.closed:
        try:
            process.stdin.close()
        except OSError:
            return  # it is gone, with something unread in its pipe
