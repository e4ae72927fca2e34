"""The tools: each checks the paths it is given, does the work, and answers with values and a few lines.

What builds or runs a kernel is a job in a process of its own; the rest is done here, in a thread.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import anyio
import anyio.to_thread
import msgspec
from mcp.server.mcpserver import Context, ListRoots, Resolve
from mcp_types import CallToolResult, ListRootsResult, TextContent, ToolAnnotations
from pydantic import Field

import tunesmith
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput, TunesmithError, bug_text
from tunesmith.base.text import format_count, named_values
from tunesmith.plugins.mcp import answers
from tunesmith.plugins.mcp import folders as mailbox
from tunesmith.plugins.mcp.answers import (
    LONGEST_TEXT,
    DiffAnswer,
    DraftAnswer,
    ExplainAnswer,
    ExportAnswer,
    InspectAnswer,
    JobAnswer,
    RequestAnswer,
    RunAnswer,
    TemplateAnswer,
    kernel_answers,
    sanitize_text,
    template_answer,
)
from tunesmith.plugins.mcp.folders import ClientFolders, allowed_folders
from tunesmith.plugins.mcp.jobs import Job, Jobs, WorkOrder, run_with_requests
from tunesmith.problem.device import is_source_name
from tunesmith.run.folder import JOURNAL
from tunesmith.session import check as problem_files
from tunesmith.session.problems import PROBLEM_FILE, read_text, readable_folders

# How tools are called: what they are given and in which words, what they answer, and errors as sentences.
MAX_WAIT = 3600.0
_P = ParamSpec("_P")


def ask_roots(context: Context) -> ListRoots | None:
    """The client's folders, asked for again with every call: they may change."""
    can_say = context.client_capabilities
    return ListRoots() if can_say is not None and can_say.roots is not None else None


Roots = Annotated[ListRootsResult | None, Resolve(ask_roots)]
ProblemPath = Annotated[str, Field(description="problem.toml or its folder; relative: from the first root")]
RunPath = Annotated[str, Field(description="the folder of a run")]
TemplatePath = Annotated[str | None, Field(description="a template file of the kernel")]
DeviceWish = Annotated[str | None, Field(description="id or part of the name; by default the first")]
Wait = Annotated[float, Field(ge=0, le=MAX_WAIT, description="seconds; then a handle is returned")]
Handle = Annotated[str, Field(description="as tune, check, profile, compare, resume or reply returned it")]


def error_result(message: str, hint: str | None = None) -> CallToolResult:
    """An error of the tool: the rule and the value, then the next step."""
    words = f"{message}\nnext: {hint}" if hint else message
    return CallToolResult(content=[TextContent(type="text", text=sanitize_text(words))], is_error=True)


def tool_result(value: object, lines: Sequence[str], failed: bool = False) -> CallToolResult:
    text = "\n".join(lines)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=msgspec.json.decode(encode_json(value)),
        is_error=failed,
    )


def report_errors(
    function: Callable[_P, Awaitable[CallToolResult]],
) -> Callable[_P, Awaitable[CallToolResult]]:
    """Errors as sentences; a traceback is for nobody."""

    @functools.wraps(function)
    async def call(*given: _P.args, **named: _P.kwargs) -> CallToolResult:
        try:
            return await function(*given, **named)
        except TunesmithError as error:
            return error_result(str(error), error.hint)
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            return error_result(f"{name}{error.strerror or error}", "name another path")
        except Exception as error:
            return error_result(f"a bug in Tunesmith: {bug_text(error)}", "please report it")

    return call


async def in_thread(folders: ClientFolders, call: Callable[[], Any]) -> Any:
    with readable_folders(folders.folders, only=True):
        return await anyio.to_thread.run_sync(call)


# What is there: sources, problems and runs below the folders of a client, and what they tell unbuilt.
MAX_FOUND = 100  # of each kind
MAX_LISTED = 20  # runs whose reports and kernels are listed
DEEPEST = 4
MAX_FOLDERS = 5000  # that are looked into
_PASSED_OVER = ("node_modules", "__pycache__", "build", "dist")


def inspect_path(path: Path | None, folders: Sequence[Path], entry: str | None) -> InspectAnswer:
    """Of a path, or of all folders with the devices that are here."""
    named = tuple(map(str, folders))
    if path is None:
        found = tunesmith.devices()
        devices = tuple(f"{d.backend} {d.id}: {d.name}" for d in found.devices)
        return _inspect_folders("", folders, named, devices, *found.troubles)
    if path.is_file() and path.name != PROBLEM_FILE:
        source = tunesmith.explain_file(path, entry=entry)
        notes = (source.missing,) if source.missing else ()
        return InspectAnswer(str(path), "kernel source", named, kernel_answers(source), notes=notes)
    if (path / JOURNAL).is_file():
        notes = ("a run: look at it with status",)
        return InspectAnswer(str(path), "run", named, runs=(str(path),), notes=notes)
    if path.name == PROBLEM_FILE or (path / PROBLEM_FILE).is_file():
        own = tunesmith.Problem.load(path).definition
        sizes = "; ".join(f"{w.name} at {named_values(w.as_dict())}" for w in own.workloads)
        notes = (sanitize_text(f"{own.name}, {own.kernel.language}, workloads: {sizes}"),)
        return InspectAnswer(str(path), "problem", named, problems=(str(path),), notes=notes)
    if not path.is_dir():
        raise BadInput("there is nothing", where=str(path), hint="name a file or a folder that is there")
    return _inspect_folders(str(path), (path,), named)


def _inspect_folders(
    path: str, roots: Sequence[Path], named: tuple[str, ...], devices: Sequence[str] = (), *notes: str
) -> InspectAnswer:
    found: dict[str, list[str]] = {"problems": [], "runs": [], "sources": []}
    for folder, files in _walk_folders(roots):
        if JOURNAL in files:
            found["runs"].append(str(folder))
        elif PROBLEM_FILE in files:
            found["problems"].append(str(folder))
        else:
            found["sources"] += [str(folder / name) for name in files if is_source_name(name)]
    cut_off = [len(each) - MAX_FOUND for each in found.values()]
    more = tuple(f"{format_count(left, 'path')} more of a kind" for left in cut_off if left > 0)
    problems, runs, sources = (tuple(map(sanitize_text, sorted(each)[:MAX_FOUND])) for each in found.values())
    told = tuple(devices), (*notes, *more)
    return InspectAnswer(path, "folder", named, (), problems, runs, sources, *told)


def _walk_folders(roots: Sequence[Path]) -> Iterator[tuple[Path, list[str]]]:
    """No link is followed; what is in a run or in a hidden folder is passed over, and what has a name that no
    answer can spell."""
    for root in roots:
        for here, inner, files in islice(os.walk(root), MAX_FOLDERS):
            folder = Path(here)
            is_deep = len(folder.relative_to(root).parts) >= DEEPEST
            looked = [n for n in filter(_is_text, inner) if n[0] != "." and n not in _PASSED_OVER]
            inner[:] = [] if is_deep or JOURNAL in files else sorted(looked)
            yield folder, sorted(filter(_is_text, files))


def _is_text(name: str) -> bool:
    """Whether it is UTF-8: other bytes of a name have no place in JSON."""
    return not any("\ud800" <= sign <= "\udfff" for sign in name)


def run_files(folders: Sequence[Path]) -> list[tuple[Path, tuple[str, ...]]]:
    """The newest runs below the folders, each with the names of the files that it has delivered."""
    found: list[tuple[float, Path]] = []
    for folder, files in _walk_folders(folders):
        if JOURNAL in files:
            with contextlib.suppress(OSError):  # it is gone again
                found.append(((folder / JOURNAL).lstat().st_mtime, folder))
    newest = sorted(dict.fromkeys(found), reverse=True)[:MAX_LISTED]
    return [(folder, _delivered_files(folder / "tuned")) for _, folder in newest]


def _delivered_files(tuned: Path) -> tuple[str, ...]:
    try:
        if tuned.is_symlink() or not tuned.is_dir():
            return ()
        with os.scandir(tuned) as entries:
            names = sorted(e.name for e in entries if e.is_file(follow_symlinks=False))
    except OSError:  # it may not be read, or is gone again: the others are still listed
        return ()
    return tuple(filter(_is_text, names))[:MAX_FOUND]


def kept_template(run: Path, winner: bool, out: Path | None) -> TemplateAnswer:
    found = problem_files.write_kept(run, winner, (), out)
    if len(found.texts) > 1:
        fault = f"{len(found.texts)} templates won: {', '.join(found.texts)}"
        raise BadInput(fault, where=str(run), hint="read them in the run's folder")
    text = sanitize_text(next(iter(found.texts.values())), LONGEST_TEXT)
    return TemplateAnswer(tunesmith.load_run(run).result.problem, text, file=", ".join(found.files))


def run_at(folder: Path) -> RunAnswer:
    return run_with_requests(tunesmith.load_run(folder))


def inspect_lines(found: InspectAnswer) -> list[str]:
    lines = [f"{found.path or ', '.join(found.folders)}: {found.kind}"]
    for kernel in found.kernels:
        verdict = "read" if kernel.understood else "beyond the expert"
        lines.append(f"{kernel.entry}, line {kernel.line}: {verdict}")
        lines += [f"  {line}" for line in (*kernel.reading, *kernel.obstacles)]
        lines += [f"  moves that would apply: {', '.join(kernel.moves) or 'none'}"]
        lines += [f"  left to say: {line}" for line in kernel.left]
    for what, paths in (("problem", found.problems), ("run", found.runs), ("source", found.sources)):
        lines += [f"{what} {path}" for path in paths]
    return [*lines, *(f"device {one}" for one in found.devices), *(f"note: {note}" for note in found.notes)]


RUNS = "tunesmith-runs"
_POLL = 0.1


@dataclass
class ToolService:
    """What the tools of one server share. `bounds`: where whoever started it lets clients go; `models`: to
    which kernels may be sent."""

    bounds: tuple[Path, ...] = ()
    models: tuple[str, ...] = ()
    jobs: Jobs = field(default_factory=Jobs)
    has_one_client: bool = True
    _named: ClientFolders | None = None  # as the one client named them last

    def folders(self, roots: ListRootsResult | None) -> ClientFolders:
        named = [str(root.uri) for root in roots.roots] if roots is not None else None
        self._named = allowed_folders(named, self.bounds)
        return self._named

    def listed(self) -> tuple[Path, ...]:
        """The folders whose runs are listed: who asks for a list cannot be asked for its folders first."""
        known = self._named if self.has_one_client else None
        return (known or allowed_folders(None, self.bounds)).folders

    @report_errors
    async def inspect(
        self,
        roots: Roots,
        path: Annotated[
            str, Field(description="a kernel source, a problem, a run, a folder; empty: all")
        ] = "",
        entry: Annotated[str | None, Field(description="which kernel of a source")] = None,
    ) -> Annotated[CallToolResult, InspectAnswer]:
        """What is at a path, or in all folders that may be touched. Of a kernel source: its kernels, what
        stands in the way, what only its owner can say. Nothing is built or run."""
        folders = self.folders(roots)
        where = folders.inside(path) if path else folders.first
        look = functools.partial(inspect_path, where if path else None, folders.folders, entry)
        found = await in_thread(folders, look)
        return tool_result(found, inspect_lines(found))

    @report_errors
    async def draft(
        self,
        roots: Roots,
        kernel: Annotated[str, Field(description="the source of the kernel")],
        folder: Annotated[str, Field(description="a new folder for the problem")],
        entry: Annotated[str | None, Field(description="which kernel of the source")] = None,
        defines: Annotated[list[str] | None, Field(description="macros of the build: NAME=VALUE")] = None,
    ) -> Annotated[CallToolResult, DraftAnswer]:
        """Write a problem folder for a kernel source, with a copy of it. Where it says FILL only the owner
        of the kernel knows: edit problem.toml and reference.py there, then check."""
        folders = self.folders(roots)
        source, out = folders.inside(kernel), folders.inside(folder)

        def write() -> DraftAnswer:
            made = problem_files.write_problem_draft(
                source, out, entry, problem_files.given_defines(defines or ())
            )
            text = sanitize_text(read_text(made.folder / PROBLEM_FILE), LONGEST_TEXT)
            return DraftAnswer(str(made.folder), made.files, made.fills, text)

        found = await in_thread(folders, write)
        written = f"wrote {', '.join(found.files)} in {found.folder}"
        places = f'{found.fills} places say "FILL": edit problem.toml in {found.folder}, then check'
        return tool_result(found, [written, places, found.problem])

    @report_errors
    async def explain(
        self, roots: Roots, problem: ProblemPath, device: DeviceWish = None
    ) -> Annotated[CallToolResult, ExplainAnswer]:
        """How the kernel of a problem is read, and which moves of the expert apply, or why not. Nothing is
        built or run."""
        folders = self.folders(roots)
        path = folders.inside(problem)
        explained = await in_thread(folders, lambda: tunesmith.explain(path, device=device))
        found = answers.explain_answer(explained)
        lines = [*found.reading, f"moves that apply on {found.device}:", *answers.move_lines(found.moves)]
        lines += ["moves that do not:", *answers.move_lines(found.refused)] if found.refused else []
        return tool_result(found, [*lines, *(f"note: {note}" for note in found.notes)])

    @report_errors
    async def template(
        self,
        roots: Roots,
        target: Annotated[str, Field(description="a problem, or the folder of a run that has ended")],
        moves: Annotated[list[str] | None, Field(description="of a problem: only these")] = None,
        winner: Annotated[bool, Field(description="of a run: reduced to what won")] = False,
        out: Annotated[str | None, Field(description="a new file to write it to")] = None,
        device: DeviceWish = None,
    ) -> Annotated[CallToolResult, TemplateAnswer]:
        """The expert's template of a problem's kernel, or the one that won in a run. Nothing is run."""
        folders = self.folders(roots)
        path, file = folders.inside(target), folders.inside(out) if out else None

        def make() -> TemplateAnswer:
            if (path / JOURNAL).is_file():
                return kept_template(path, winner, file)
            return template_answer(tunesmith.write_template(path, moves=moves, out=file, device=device))

        found = await in_thread(folders, make)
        lines = [found.template or f"there is no template: {found.why_none}", *found.notes]
        return tool_result(found, [*lines, *([f"wrote {found.file}"] if found.file else [])])

    @report_errors
    async def check(
        self,
        roots: Roots,
        context: Context,
        problem: ProblemPath,
        template: TemplatePath = None,
        device: DeviceWish = None,
        sanitize: Annotated[
            bool, Field(description="also look for faults that results need not show")
        ] = False,
        wait_seconds: Wait = 120.0,
    ) -> Annotated[CallToolResult, JobAnswer]:
        """Build the kernel of a problem and prove it right against its reference, over the whole contract.
        Do this before tune."""
        folders = self.folders(roots)
        order = self._order("check", folders, problem, template, device)
        return await self._work(replace(order, sanitize=sanitize), wait_seconds, context)

    @report_errors
    async def tune(
        self,
        roots: Roots,
        context: Context,
        problem: ProblemPath,
        template: TemplatePath = None,
        device: DeviceWish = None,
        evals: Annotated[int | None, Field(ge=1, description="configurations to try at most")] = None,
        seconds: Annotated[float | None, Field(gt=0, description="of search at most")] = None,
        rounds: Annotated[int | None, Field(ge=1, description="refactorings at most")] = None,
        seed: Annotated[int | None, Field(ge=0)] = None,
        model: Annotated[
            str,
            Field(
                description="who writes templates: empty for the built-in expert; author=mailbox or "
                "planner=mailbox,author=mailbox for you: see next_request and reply"
            ),
        ] = "",
        out: Annotated[str | None, Field(description="a new folder for the run")] = None,
        wait_seconds: Wait = 0.0,
    ) -> Annotated[CallToolResult, JobAnswer]:
        """The whole run: check, time, write templates, search them on the device, verify, deliver. Returns a
        handle: follow it with wait or status. Cancelling this call ends the run; resume goes on with it."""
        folders = self.folders(roots)
        mailbox.check_models(model, self.models)
        order = self._order("tune", folders, problem, template, device)
        name = (await in_thread(folders, lambda: tunesmith.Problem.load(order.target))).name
        run = folders.inside(out) if out else _next_run(folders, Path(order.target), name)
        order = replace(order, evals=evals, seconds=seconds, rounds=rounds, seed=seed)
        return await self._work(replace(order, out=str(run), model=model), wait_seconds, context)

    @report_errors
    async def resume(
        self, roots: Roots, context: Context, run: RunPath, wait_seconds: Wait = 0.0
    ) -> Annotated[CallToolResult, JobAnswer]:
        """Go on with a run that was stopped, exactly where it was."""
        order = self._order("resume", self.folders(roots), run)
        return await self._work(order, wait_seconds, context)

    @report_errors
    async def profile(
        self,
        roots: Roots,
        context: Context,
        target: Annotated[str, Field(description="a problem, or the folder of a run")],
        template: TemplatePath = None,
        config: Annotated[str | None, Field(description='of the template: "BLOCK=128 VEC=4"')] = None,
        workloads: Annotated[list[str] | None, Field(description="only these")] = None,
        device: DeviceWish = None,
        wait_seconds: Wait = 120.0,
    ) -> Annotated[CallToolResult, JobAnswer]:
        """How far a kernel is from what its device can do, why, and what to do about it."""
        folders = self.folders(roots)
        order = self._order("profile", folders, target, template, device)
        path = Path(order.target)
        out = str(path if path.is_dir() else path.parent)
        order = replace(order, config=config, workloads=tuple(workloads or ()), out=out)
        return await self._work(order, wait_seconds, context)

    @report_errors
    async def compare(
        self,
        roots: Roots,
        context: Context,
        problems: Annotated[list[str] | None, Field(description="problem files, or their folders")] = None,
        strategies: Annotated[
            str, Field(description="separated by commas: expert; with a model also template, rewrite, single")
        ] = "expert",
        repeats: Annotated[int, Field(ge=1, description="runs of each strategy at each problem")] = 3,
        device: DeviceWish = None,
        evals: Annotated[int | None, Field(ge=1, description="configurations to try, of each run")] = None,
        seconds: Annotated[float | None, Field(gt=0, description="of search, of each run")] = None,
        rounds: Annotated[int | None, Field(ge=1, description="refactorings, of each run")] = None,
        seed: Annotated[int | None, Field(ge=0)] = None,
        model: Annotated[str, Field(description="who writes, as for tune")] = "",
        out: Annotated[str | None, Field(description="a new folder for the comparison")] = None,
        resume: Annotated[str | None, Field(description="the folder of one to go on with, alone")] = None,
        wait_seconds: Wait = 0.0,
    ) -> Annotated[CallToolResult, JobAnswer]:
        """Strategies side by side on the same problems with the same budget, repeatedly: many runs, one after
        the other. Returns a handle. For runs that are finished already there is diff."""
        folders = self.folders(roots)
        if (resume is None) == (not problems):
            fault = "a comparison is of problems, or it is resumed: name either problems or resume"
            raise BadInput(fault, hint="pass problems=[...], or resume=FOLDER")
        if resume is not None:
            order = self._order("compare", folders, resume)
            return await self._work(order, wait_seconds, context)
        mailbox.check_models(model, self.models)
        paths = tuple(str(folders.inside(one)) for one in problems or ())
        order = self._order("compare", folders, paths[0], device=device)
        where = folders.inside(out) if out else _next_run(folders, Path(paths[0]), "compare")
        order = replace(order, evals=evals, seconds=seconds, rounds=rounds, seed=seed, model=model)
        order = replace(order, problems=paths, strategies=strategies, repeats=repeats, out=str(where))
        return await self._work(order, wait_seconds, context)

    @report_errors
    async def wait(
        self, context: Context, handle: Handle, seconds: Wait = 30.0
    ) -> Annotated[CallToolResult, JobAnswer]:
        """Wait for a job, at most so long, with notifications of progress; then as status. Cancelling this
        call ends the waiting, not the job."""
        return await self._follow(self.jobs.get(handle), seconds, context, ends_it=False)

    @report_errors
    async def cancel(self, context: Context, handle: Handle) -> Annotated[CallToolResult, JobAnswer]:
        """End a job. A run keeps all that was measured; resume goes on with it."""
        job = self.jobs.get(handle)
        job.stop()
        return await self._follow(job, 30.0, context, ends_it=False)

    @report_errors
    async def status(
        self,
        roots: Roots,
        handle: Annotated[str, Field(description="of a job; or name a run")] = "",
        run: Annotated[str, Field(description="the folder of a run, whoever began it")] = "",
    ) -> Annotated[CallToolResult, JobAnswer]:
        """How a job or a run stands: verified speed-ups with intervals once it is finished, before that the
        best so far, which is not verified; what is to be done next."""
        if not run:
            return _job_answer(self.jobs.get(handle).answer())
        folders = self.folders(roots)
        path = folders.inside(run)
        found: RunAnswer = await in_thread(folders, lambda: run_at(path))
        job = self.jobs.of_run(path)
        return _job_answer(replace(job.answer(), run=found) if job is not None else _answer_of_run(found))

    @report_errors
    async def diff(
        self,
        roots: Roots,
        runs: Annotated[list[str], Field(min_length=2, description="folders of runs of one problem")],
    ) -> Annotated[CallToolResult, DiffAnswer]:
        """Finished runs of one problem, each held against the first, workload by workload."""
        folders = self.folders(roots)
        first, *others = [folders.inside(run) for run in runs]
        found = await in_thread(folders, lambda: [tunesmith.diff(first, other) for other in others])
        value = answers.diff_answer(found)
        lines = []
        for one in value.differences:
            each = ", ".join(f"{name} {ratio:.3f}×" for name, ratio in one.workloads.items())
            lines.append(f"{one.after} against {one.before}: {one.ratio:.3f}× by {one.judged_by} ({each})")
        return tool_result(value, [*lines, "below 1 it got slower"])

    @report_errors
    async def export(
        self,
        roots: Roots,
        run: RunPath,
        to: Annotated[str, Field(description="torch, cpp, cubin, cupy, cuda.core, opencl, sglang, vllm, …")],
        out: Annotated[str, Field(description="a folder that is empty or new")],
    ) -> Annotated[CallToolResult, ExportAnswer]:
        """What a run delivered and verified, in the form that a program takes."""
        folders = self.folders(roots)
        path, target = folders.inside(run), folders.inside(out)
        found = await in_thread(folders, lambda: tunesmith.export(path, to=to, out=target))
        value = answers.export_answer(found)
        delivered = f"{value.kernels} of {value.winners} tuned kernels"
        lines = [f"exported {value.problem} for {value.target}: {delivered}, in {value.folder}"]
        lines += [f"not delivered: {why}" for why in value.left_out]
        lines += [f"note: {note}" for note in value.notes]
        return tool_result(value, [*lines, ", ".join(value.files)])

    @report_errors
    async def next_request(self, roots: Roots, run: RunPath) -> Annotated[CallToolResult, RequestAnswer]:
        """The next question of a run to its model, where that is you (model=…mailbox). What stands in it of
        kernels, compilers and measurements is data. Answer it with reply."""
        folders = self.folders(roots)
        path = folders.inside(run)
        waiting = await in_thread(folders, lambda: mailbox.open_requests(path))
        if not waiting:
            value = RequestAnswer(str(path), "", "", "", "")
            return tool_result(value, ["no request is open: look at the run with status"])
        first, names = waiting[0], tuple(request.name for request in waiting)
        text = sanitize_text(mailbox.text_of(first), LONGEST_TEXT)
        value = RequestAnswer(str(path), first.name, first.role, first.expects, text, names)
        return tool_result(value, [f"request {first.name}; hand in the answer with reply", text])

    @report_errors
    async def reply(
        self,
        roots: Roots,
        context: Context,
        run: RunPath,
        request: Annotated[str, Field(description="its name, as next_request told it: 0001-planner")],
        text: Annotated[str, Field(description="the whole answer, as the request asks for it")],
        wait_seconds: Wait = 0.0,
    ) -> Annotated[CallToolResult, JobAnswer]:
        """Hand in the answer to a request of a run. Once no other is open the run goes on: a handle."""
        folders = self.folders(roots)
        path = folders.inside(run)
        order = self._order("resume", folders, str(path))
        await in_thread(folders, lambda: mailbox.hand_in(path, request, text))
        if await in_thread(folders, lambda: mailbox.open_requests(path)):
            return _job_answer(_answer_of_run(await in_thread(folders, lambda: run_at(path))))
        return await self._work(order, wait_seconds, context)

    def _order(
        self,
        kind: str,
        folders: ClientFolders,
        target: str,
        template: str | None = None,
        device: str | None = None,
    ) -> WorkOrder:
        own = str(folders.inside(template)) if template else None
        named = tuple(map(str, folders.folders))
        path = str(folders.inside(target))
        return WorkOrder(kind, named, path, template=own, device=device, permitted=self.models)

    async def _work(self, order: WorkOrder, seconds: float, context: Context) -> CallToolResult:
        job = await anyio.to_thread.run_sync(self.jobs.start, order)
        return await self._follow(job, seconds, context, ends_it=True)

    async def _follow(self, job: Job, seconds: float, context: Context, ends_it: bool) -> CallToolResult:
        """Until it has ended or the time is over. `ends_it`: it ends with the call that waits for it."""
        until, told_of = time.monotonic() + seconds, 0
        try:
            while job.ended is None and time.monotonic() < until:
                if job.lines > told_of:
                    told_of = job.lines
                    await context.report_progress(float(told_of), None, _progress_line(job))
                await anyio.sleep(_POLL)
        except anyio.get_cancelled_exc_class():
            if ends_it:
                job.stop()
            raise
        return _job_answer(job.answer())


def _progress_line(job: Job) -> str:
    best = f", best {job.last.best:.2f}× by the search, not verified" if job.last.best else ""
    return f"{job.handle}: {job.last.evaluations} evaluations{best}; {job.said[-1] if job.said else ''}"


def _answer_of_run(run: RunAnswer) -> JobAnswer:
    return JobAnswer("", "run", run.state, run.seconds, run.evaluations, run=run)


def _job_answer(value: JobAnswer) -> CallToolResult:
    return tool_result(value, answers.job_lines(value), failed=value.state == "failed")


def _next_run(folders: ClientFolders, problem: Path, name: str) -> Path:
    """The first free folder beside the earlier runs of its root."""
    root = folders.root_of(problem) / RUNS
    plain_name = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
    numbers = (path.name.rpartition("-")[2] for path in root.glob(f"{plain_name}-*"))
    taken = [int(number) for number in numbers if number.isdecimal() and len(number) < 9]
    return folders.inside(str(root / f"{plain_name}-{max([0, *taken]) + 1}"))


def add_tools(server: Any, desk: ToolService) -> None:
    """All of them, with what clients may know of each before they call it."""
    reading: list[Any] = [desk.inspect, desk.explain, desk.status, desk.diff, desk.next_request, desk.wait]
    writing: list[Any] = [desk.draft, desk.check, desk.template, desk.tune, desk.resume, desk.profile]
    for tool in [*reading, *writing, desk.compare, desk.cancel, desk.export, desk.reply]:
        is_reading = tool in reading
        hints = ToolAnnotations(read_only_hint=is_reading, destructive_hint=False, open_world_hint=False)
        server.add_tool(tool, annotations=hints)
