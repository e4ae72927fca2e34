"""What one does with a fleet: start it or go on with it, and stop it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.base.errors import BadInput, Interrupted
from tunesmith.base.files import explain_disk_errors, is_locked, remove_partial, write_whole
from tunesmith.base.text import format_count
from tunesmith.plugins.fleet.cell import STOP
from tunesmith.plugins.fleet.head import FleetHead, LocalRunner, RayRunner
from tunesmith.plugins.fleet.plan import (
    HOSTS,
    LOGS,
    OUTCOMES,
    PLAN_COPY,
    RUNS,
    fleet_plan_differences,
    load_plan,
    refuse_strangers,
    run_path,
    store_plan,
    stored_plan,
)
from tunesmith.plugins.fleet.record import FleetJournal, FleetResult, fold_fleet_events
from tunesmith.run.config import resolve_config
from tunesmith.run.folder import FLEET, LOCK, FolderInbox, RunFolder
from tunesmith.run.ports import Listener
from tunesmith.session.problems import read_text


@dataclass(frozen=True)
class FleetRun:
    result: FleetResult
    folder: Path
    go_on: str  # what to type

    @property
    def exit_code(self) -> int:
        """The most urgent of all cells': a fault, then a reply that is missing, then a device."""
        return min((row.code for row in self.result.rows if row.code), default=0)


def run_fleet(target: Path, out: Path | None, listener: Listener, ray: str = "") -> FleetRun:
    """Start the fleet of a plan, or go on with it; `target` may also be the folder of one. `ray`: the address
    of a cluster; empty: by processes of this machine."""
    folder = _open_fleet(target, out)
    folder.elsewhere = f" --ray {shlex.quote(ray)}" if ray else ""
    journal = FleetJournal(folder.path)
    try:
        plan, cells = stored_plan(folder.path)
        state = fold_fleet_events(journal.read())
        # What an earlier head began is waited for.
        _refuse_held(folder.path, [name for name in cells if name not in state.at_work])
        runner = RayRunner(folder.path, plan, ray) if ray else LocalRunner(folder.path, plan)
        try:
            head = FleetHead(folder, plan, cells, runner, journal, state, listener)
            result = head.run()
        finally:
            runner.close()
        if head.is_stopped and any(row.status not in ("finished", "failed") for row in result.rows):
            hint = f"go on with: {folder.go_on}"
            raise Interrupted("stopped; nothing is lost", where=str(folder.path), hint=hint)
        return FleetRun(result, folder.path, folder.go_on)
    finally:
        journal.close()
        folder.unlock()


def stop_fleet(target: Path) -> tuple[bool, int]:
    """Whether a head was at work, and how many cells were; each ends after its batch."""
    _, cells = stored_plan(target)
    has_head = is_locked(target / LOCK)
    if has_head:
        with explain_disk_errors("ask it to stop", target / STOP):
            write_whole(target / STOP, b"")
    at_work = [name for name in cells if is_locked(run_path(target, name) / LOCK)]
    for name in at_work:  # somebody may have gone on with a run by hand
        FolderInbox(run_path(target, name)).put("stop")
    return has_head, len(at_work)


def _refuse_held(path: Path, names: Iterable[str]) -> None:
    """Whoever goes on with a run by hand uses what would be dealt to it."""
    held = [name for name in names if is_locked(run_path(path, name) / LOCK)]
    if held:
        count = format_count(len(held), "run")
        rule = "a budget is dealt while nobody else has a run of the fleet"
        hint = f"wait until they have ended, or stop them: tunesmith fleet {path} --stop"
        raise BadInput(f"{rule}: {count} held, the first {held[0]}", where=str(path), hint=hint)


def _open_fleet(target: Path, out: Path | None) -> RunFolder:
    """The fleet's folder, planned and held by us."""
    if target.is_dir():
        if out is not None:
            raise BadInput("a fleet that is there has its folder", hint="leave out --out, or name the plan")
        refuse_strangers(target, stored_plan(target)[0])
        folder = RunFolder(target)
        folder.lock()
        return folder
    text = read_text(target, "name the plan of a fleet, or its folder; docs/fleet.md says what is in it")
    plan, stored = load_plan(target)
    path = out if out is not None else Path(resolve_config({}).runs) / f"{target.stem}-fleet"
    with explain_disk_errors("create the folder", path, instead="another folder with --out"):
        (path / "objects").mkdir(parents=True, exist_ok=True)
    folder = RunFolder(path)
    is_new = not (path / FLEET).exists()
    folder.lock()
    try:
        if is_new:
            _refuse_strange_files(path)
            remove_partial(path)
        elif different := fleet_plan_differences(stored_plan(path)[0], plan):
            fault = f"this folder holds another fleet: {'; '.join(different)}"
            hint = f"go on with that one: {folder.go_on}; or choose another folder with --out"
            raise BadInput(fault, where=str(path), hint=hint)
        store_plan(folder, plan, stored, text)
    except BaseException:
        folder.unlock()
        raise
    return folder


def _refuse_strange_files(path: Path) -> None:
    expected = {"objects", LOCK, RUNS, OUTCOMES, LOGS, HOSTS, f"{HOSTS}.new", PLAN_COPY}
    if strange := sorted(item.name for item in path.iterdir() if item.name not in expected):
        fault = f"a fleet's folder must be new or empty, this one holds {', '.join(strange[:4])}"
        hint = f"choose another folder: --out {shlex.quote(str(path))}/fleet"
        raise BadInput(fault, where=str(path), hint=hint)
