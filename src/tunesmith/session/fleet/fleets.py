"""What one does with a fleet: start it or go on with it, stop it, collect it, hand it to Slurm."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.deliver.fleet import FleetResult
from tunesmith.errors import BadInput, Interrupted
from tunesmith.run.config import resolve
from tunesmith.run.files import explained, is_locked, remove_partial, write_whole
from tunesmith.run.inbox import FolderInbox
from tunesmith.run.ports import Listener
from tunesmith.run.store import FLEET, LOCK, RunFolder
from tunesmith.session.fleet import slurm
from tunesmith.session.fleet.cell import CellNews, CellOrder, CellOutcome, run_cell, run_path
from tunesmith.session.fleet.dealing import all_shares
from tunesmith.session.fleet.head import STOP, FleetHead, collect, result_of, write_result
from tunesmith.session.fleet.planning import load_plan, refuse_strangers, store_plan, stored_plan
from tunesmith.session.fleet.plans import FleetCell, other_plan
from tunesmith.session.fleet.processes import CellProcesses, CellRunner
from tunesmith.session.fleet.record import FleetJournal, HeadBegan, SharesGiven, apply, fold
from tunesmith.session.problems import read_text
from tunesmith.text import counted

MakeRunner = Callable[[Path], CellRunner]


@dataclass(frozen=True)
class FleetRun:
    result: FleetResult
    folder: Path
    go_on: str  # what to type

    @property
    def exit_code(self) -> int:
        """The most urgent of all cells': a fault, then a reply that is missing, then a device."""
        return min((row.code for row in self.result.rows if row.code), default=0)


@dataclass(frozen=True)
class WrittenJobs:
    folder: Path
    scripts: tuple[Path, ...]
    tasks: int


def run_fleet(
    target: Path, out: Path | None, listener: Listener, make: MakeRunner = CellProcesses
) -> FleetRun:
    """Start the fleet of a plan, or go on with it; `target` may also be the folder of one."""
    folder = _opened(target, out)
    journal = FleetJournal(folder.path)
    try:
        plan, cells = stored_plan(folder.path)
        known = fold(journal.read())
        # What an earlier head began its runner looks after; what tasks of Slurm did is collected.
        others = {name: cell for name, cell in cells.items() if known.of(name).began is None}
        _refuse_held(folder.path, others)
        state = collect(folder, others, journal)
        runner = make(folder.path)
        try:
            head = FleetHead(folder, plan, cells, runner, journal, state, listener)
            found = head.run()
        finally:
            runner.close()
        if head.is_stopped and any(row.status not in ("finished", "failed") for row in found.rows):
            hint = f"go on with: {folder.go_on}"
            raise Interrupted("stopped; nothing is lost", where=str(folder.path), hint=hint)
        return FleetRun(found, folder.path, folder.go_on)
    finally:
        journal.close()
        folder.unlock()


def collect_fleet(target: Path) -> FleetRun:
    """What its runs say by now, whoever ran them; none of them goes on."""
    plan, cells = stored_plan(target)
    folder = RunFolder(target)
    folder.lock()
    journal = FleetJournal(target)
    try:
        state = collect(folder, cells, journal)
        found = result_of(target, plan, cells, state)
        write_result(folder, found)
        return FleetRun(found, target, folder.go_on)
    finally:
        journal.close()
        folder.unlock()


def stop_fleet(target: Path) -> tuple[bool, int]:
    """Whether a head was at work, and how many cells were; each ends after its batch."""
    _, cells = stored_plan(target)
    is_led = is_locked(target / LOCK)
    if is_led:
        with explained("ask it to stop", target / STOP):
            write_whole(target / STOP, b"")
    at_work = [name for name in cells if is_locked(run_path(target, name) / LOCK)]
    for name in at_work:
        FolderInbox(run_path(target, name)).put("stop")
    return is_led, len(at_work)


def write_jobs(target: Path, out: Path | None) -> WrittenJobs:
    """Job scripts for what is left of a fleet; its budget is shared out at once."""
    folder = _opened(target, out)
    journal = FleetJournal(folder.path)
    try:
        plan, cells = stored_plan(folder.path)
        _refuse_held(folder.path, cells)
        state = collect(folder, cells, journal)
        began = HeadBegan(plan.hours)
        shares = all_shares(apply(state, began), list(cells.values()))
        journal.append(began)
        journal.append(SharesGiven(tuple(shares.items())))
        left = {name: share - state.of(name).standing.device_seconds for name, share in shares.items()}
        words = plan.slurm.command or (sys.executable, "-P", "-m", "tunesmith")
        place = _plain_place(folder.path.resolve())
        own = (list(cells.values()), left, plan.slurm, shlex.join(words))
        jobs = list(slurm.array_jobs(place, *own))
        folder.replace_folder(slurm.FOLDER, {job.name: job.text.encode() for job in jobs})
        scripts = tuple(place / slurm.FOLDER / job.name for job in jobs)
        return WrittenJobs(folder.path, scripts, sum(len(job.cells) for job in jobs))
    finally:
        journal.close()
        folder.unlock()


def _refuse_held(path: Path, names: Iterable[str]) -> None:
    """What they may still use was promised to them, and would be dealt again."""
    held = [name for name in names if is_locked(run_path(path, name) / LOCK)]
    if held:
        count = counted(len(held), "run")
        fault = f"a budget is dealt while no task has a run of the fleet: {count} held, the first {held[0]}"
        hint = f"wait until they have ended, or stop them: tunesmith fleet {path} --stop"
        raise BadInput(fault, where=str(path), hint=hint)


def _plain_place(path: Path) -> Path:
    """Options of a job script are read by rules of their own, in which some characters cannot be written."""
    if not str(path).isprintable() or set(str(path)) & set('"\\'):
        fault = "a job script cannot name a folder with quotes, backslashes or control characters"
        raise BadInput(fault, where=str(path), hint="choose another folder with --out")
    return path


def run_one(target: Path, wanted: str, listener: Listener) -> CellOutcome:
    """One cell by its number or name, with the share that the job scripts were written by, to its end."""
    plan, cells = stored_plan(target)
    refuse_strangers(target, plan)
    cell = _cell(list(cells.values()), wanted, target)
    shares = fold(FleetJournal(target).read()).shares
    if cell.name not in shares:
        hint = f"write the job scripts, which share out the budget: tunesmith fleet {target} --slurm"
        raise BadInput(f"the cell {cell.name} has no share of the budget", where=str(target), hint=hint)

    def tell(news: CellNews) -> None:
        best = f", {news.best:.2f}× by the search" if news.best else ""
        tried = counted(news.evaluations, "evaluation")
        listener.note(f"{cell.name}: {tried}, {news.device_seconds:.1f} device-seconds{best}")

    place = _place(cell)
    listener.say(f"{cell.name}: up to {shares[cell.name]:.1f} device-seconds, at {place}")
    order = CellOrder(str(target.resolve()), cell.name, place, shares[cell.name], "finish")
    return run_cell(plan, cell, order, tell)


def _place(cell: FleetCell) -> str:
    """Tasks that run at once spread over the hosts of their device, if it has several."""
    places = cell.device.places
    return places[cell.number % len(places)]


def _cell(cells: list[FleetCell], wanted: str, where: Path) -> FleetCell:
    found = [cell for cell in cells if wanted in (cell.name, str(cell.number))]
    if not found:
        fault = f"there is no cell {wanted!r}; there are 0 to {len(cells) - 1}, the first is {cells[0].name}"
        raise BadInput(fault, where=str(where), hint="name one by its number or its name")
    return found[0]


def _opened(target: Path, out: Path | None) -> RunFolder:
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
    path = out if out is not None else Path(resolve({}).runs) / f"{target.stem}-fleet"
    with explained("create the folder", path, instead="another folder with --out"):
        path.mkdir(parents=True, exist_ok=True)
        (path / "objects").mkdir(exist_ok=True)
    folder = RunFolder(path)
    is_new = not (path / FLEET).exists()
    folder.lock()
    try:
        if is_new:
            _refuse_strange(path)
            remove_partial(path)
        elif other := other_plan(stored_plan(path)[0], plan):
            fault = f"this folder holds another fleet: {'; '.join(other)}"
            hint = f"go on with that one: {folder.go_on}; or choose another folder with --out"
            raise BadInput(fault, where=str(path), hint=hint)
        store_plan(folder, plan, stored, text)
    except BaseException:
        folder.unlock()
        raise
    return folder


def _refuse_strange(path: Path) -> None:
    ours = {"objects", LOCK, "runs", "outcomes", "hosts", "hosts.new", "plan.toml"}
    if strange := sorted(item.name for item in path.iterdir() if item.name not in ours):
        fault = f"a fleet's folder must be new or empty, this one holds {', '.join(strange[:4])}"
        raise BadInput(
            fault, where=str(path), hint=f"choose another folder: --out {shlex.quote(str(path))}/fleet"
        )
