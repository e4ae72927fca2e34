"""Comparisons of strategies on disk: planned once, made of ordinary runs, continued where they were.

DIR/compare.json              the plan; objects/ has the problems and prompts it names
DIR/runs/PROBLEM/ARM-REPEAT   a run each
DIR/compare.md, compare-data.json, plots/   what they say together, written whenever a run has ended
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tunesmith import backends
from tunesmith.agents.mailbox import has_reply, near_miss
from tunesmith.agents.models import external_models, move_model_folders, sole_model
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import (
    BadInput,
    DeviceMissing,
    Interrupted,
    TunesmithError,
    WaitingForModel,
    bug_text,
)
from tunesmith.base.files import check_below, explain_disk_errors, folder_names, read_plain, remove_partial
from tunesmith.base.text import digest_of, format_count
from tunesmith.plugins.studies import pages
from tunesmith.plugins.studies import plan as comparing
from tunesmith.plugins.studies.plan import ARMS
from tunesmith.plugins.studies.result import ComparisonResult, caveat_sentences, summarize_runs
from tunesmith.run import trust
from tunesmith.run.budget import KERNEL_ROUNDS, SEVERAL_EVALS
from tunesmith.run.config import RunConfig, beyond_permission, is_debugging
from tunesmith.run.folder import CERTIFICATE, PLAN, RunFolder, has_begun
from tunesmith.run.ports import Listener
from tunesmith.run.state import State
from tunesmith.search import check_name
from tunesmith.session import place as machine
from tunesmith.session import roles, runs
from tunesmith.session.problems import (
    LoadedProblem,
    all_texts,
    read_text,
    refuse_broken,
    restore_problem,
    state_and_templates,
)
from tunesmith.session.roles import specs_by_role
from tunesmith.session.runs import RunInput, begin_run

DAMAGED_PLAN = "restore the folder from a copy, or begin another comparison with --out"
USUAL = "template,rewrite,single,expert"  # arms
PROMPTS = "prompts"
POLL = 0.5  # seconds between two looks for replies
REMIND = 60.0  # seconds after which it is said again what is waited for
Troubles = tuple[tuple[Path, TunesmithError], ...]
# Of a run that an error stopped, the first that fits. What the user can mend is not the arm's fault.
STATUSES: tuple[tuple[type[TunesmithError], comparing.RunStatus], ...] = (
    *((WaitingForModel, "waiting"), (DeviceMissing, "no device")),
    *((BadInput, "stopped"), (TunesmithError, "failed")),
)


@dataclass(frozen=True)
class Compared:
    comparison: ComparisonResult
    folder: Path
    go_on: str  # what to type
    troubles: Troubles  # what keeps runs from going on, or made them fail


def start_comparison(
    loaded: Sequence[LoadedProblem],
    strategies: str,
    repeats: int,
    config: RunConfig,
    out: Path | None,
    listener: Listener,
) -> Compared:
    """A new comparison; or, where `out` holds the same one, what is left of it."""
    arms = comparing.parse_arms(strategies)
    texts = [all_texts(*one) for one in loaded]
    prompts = _read_prompts(config.prompts, listener.note)
    _check_arms(arms, {problem.kernel.language for problem, _ in loaded}, config, listener)
    names = folder_names([problem.name for problem, _ in loaded])
    planned = _plan_problems(names, loaded, texts)
    evals = SEVERAL_EVALS if config.limits.leaves_search_open else config.evals
    rounds = KERNEL_ROUNDS if config.rounds is None else config.rounds
    plan = comparing.ComparisonPlan(
        planned,
        arms,
        repeats,
        config.seed,
        comparing.Allowance(evals, config.time, rounds, config.tokens, config.money, config.device_seconds),
        model=config.model if any(ARMS[arm].talks for arm in arms) else "",
        backend=config.backend or "",
        device=config.device or "",
        search=config.search,
        prune=config.prune,
        steer=config.steer,
        counters=config.counters,
        prompts=_file_digests(prompts),
        moves=config.moves,
        versions=backends.package_versions(*backends.backend_kinds()),
    )
    if out is not None and (out / PLAN).exists():
        return _lock_and_go_on(RunFolder(out, config.wait), config, listener, plan)
    if out is None:
        folder = RunFolder.create_next(Path(config.runs), "compare", config.wait)
    else:
        with explain_disk_errors("create the folder", out, instead="another folder with --out"):
            remove_partial(out)  # of one that was killed before it had a plan
        folder = RunFolder.create(out, config.wait)
    try:
        for text in (text for files in (*texts, prompts) for text in files.values()):
            folder.put(text.encode())
        folder.write(PLAN, encode_json(plan) + b"\n")
        trust.remember_begun(folder.path / PLAN)
        return _go_on(folder, config, listener)
    finally:
        folder.unlock()


def _plan_problems(
    names: Sequence[str], loaded: Sequence[LoadedProblem], texts: Sequence[Mapping[str, str]]
) -> tuple[comparing.PlannedProblem, ...]:
    planned: dict[str, comparing.PlannedProblem] = {}
    for name, (problem, _), files in zip(names, loaded, texts, strict=True):
        if problem.digest in planned:
            fault = f"the problem {problem.name} is named twice"
            raise BadInput(fault, hint="name it once, and use --repeats")
        digests = _file_digests(files)
        planned[problem.digest] = comparing.PlannedProblem(name, problem.name, problem.digest, digests)
    return tuple(planned.values())


def continue_comparison(path: Path, config: RunConfig, listener: Listener) -> Compared:
    if not (path / PLAN).is_file():
        hint = "name the folder that `tunesmith compare PROBLEM...` has written"
        raise BadInput(f"there is no comparison in this folder: it has no {PLAN}", where=str(path), hint=hint)
    return _lock_and_go_on(RunFolder(path, config.wait), config, listener)


def _lock_and_go_on(
    folder: RunFolder, config: RunConfig, listener: Listener, plan: comparing.ComparisonPlan | None = None
) -> Compared:
    """With what is there, which must be as planned where there is a plan."""
    folder.lock()
    try:
        if plan is not None and (other := comparing.list_plan_differences(read_plan(folder), plan)):
            fault = f"this folder holds another comparison: {'; '.join(other)}"
            hint = f"go on with that one: {folder.go_on}; or choose another folder with --out"
            raise BadInput(fault, where=str(folder.path), hint=hint)
        if plan is None:
            _refuse_strangers(folder, read_plan(folder), config)
        return _go_on(folder, config, listener)
    finally:
        folder.unlock()


def _refuse_strangers(folder: RunFolder, plan: comparing.ComparisonPlan, config: RunConfig) -> None:
    """Of a plan that somebody else may have made."""
    models = plan.model if plan.model != config.model and external_models(plan.model) else ""
    asked = {name: value for name, value in (("model", models), ("backend", plan.backend)) if value}
    beyond = {name: asked[name] for name in beyond_permission(asked, folder.path)}
    how = f"give --model {shlex.quote(models)}, or " if [*beyond] == ["model"] else ""
    trust.refuse_strangers(folder.path / PLAN, beyond, how)


# -- planning -----------------------------------------------------------------------------------------------


def _check_arms(arms: Sequence[str], languages: set[str], config: RunConfig, listener: Listener) -> None:
    """Everything that can be refused before anything is written."""
    talking = [arm for arm in arms if ARMS[arm].talks]
    models = [(model_of(arm, config.model), ARMS[arm].strategy) for arm in talking]
    if not all(config.model and specs_by_role(*one) for one in models):
        hint = "add --model openai:NAME or another, or compare --strategies expert alone"
        raise BadInput(f"{', '.join(talking)}: a model is needed, and --model names none", hint=hint)
    for one in models:
        roles.prepare_models(*one)
    for arm in talking:
        roles.check_moves(config, ARMS[arm].strategy)
    check_name(config.search)
    specs = {backends.backend_for(language, config.backend) for language in languages}
    for spec in specs:
        if backends.find_backend_kind(spec).from_file:
            raise BadInput(
                f"{spec.partition(':')[0]} has the times of one template; arms that write their own cannot "
                "be compared on it",
                hint="leave out --backend, or take another one",
            )
        with machine.temporary_scratch() as scratch:
            here = machine.find_local_devices(machine.WorkerSite(spec, scratch, config.sandbox))
            try:
                machine.choose_device(here, config.device)
            except DeviceMissing as error:
                if here.devices:  # none of them is the one that is named
                    raise
                listener.note(f"planned without a device: {error}")


def _read_prompts(folder: str, note: Callable[[str], None]) -> dict[str, str]:
    """The user's own, as they are now: all arms and repeats are told the same."""
    if not folder:
        return {}
    roles.prompts_for("", folder, note=note)  # which refuses what is no folder
    return {file.name: read_text(file) for file in sorted(Path(folder).glob("*.md"))}


def _file_digests(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, digest_of(text.encode())) for name, text in texts.items())


def read_plan(folder: RunFolder) -> comparing.ComparisonPlan:
    where = folder.path / PLAN
    with explain_disk_errors("read the plan", where):
        data = read_plain(where)
    try:
        plan = decode_json(data, comparing.ComparisonPlan, "plan of a comparison")
    except Malformed as error:
        raise BadInput(f"the plan is damaged: {error}", where=str(where), hint=DAMAGED_PLAN) from error
    unknown = [arm for arm in plan.arms if arm not in ARMS]
    if plan.format != comparing.FORMAT or unknown:
        why = f"it has the arm {unknown[0]}" if unknown else f"its format is {plan.format}"
        hint = "go on with that version, or begin another comparison with --out"
        raise BadInput(f"the plan is of another version of Tunesmith: {why}", where=str(where), hint=hint)
    for item in comparing.schedule_runs(plan):
        check_below(folder.path / pages.RUNS / item.place, folder.path)
    return plan


def _go_on(folder: RunFolder, config: RunConfig, listener: Listener) -> Compared:
    plan = read_plan(folder)
    if plan.prompts:
        folder.replace_folder(PROMPTS, {name: folder.get(digest) for name, digest in plan.prompts})
    try:
        found, troubles = ComparisonRuns(folder, plan, config, listener).run()
        return Compared(found, folder.path, folder.go_on, troubles)
    except KeyboardInterrupt as error:
        hint = f"go on with: {folder.go_on}"
        raise Interrupted("interrupted; nothing is lost", where=str(folder.path), hint=hint) from error


def rendered_json(found: Compared) -> bytes:
    """What the command prints: the data, and why it is not all there."""
    troubles = [{"run": str(path), "exit": e.exit_code, "error": str(e)} for path, e in found.troubles]
    shown = {"folder": str(found.folder), "troubles": troubles, "limits": caveat_sentences(found.comparison)}
    return encode_json({**shown, "comparison": found.comparison})


# -- the runs: what stops one does not stop the others --------------------------------------------------


def model_of(arm: str, model: str) -> str:
    """One conversation has one model, whatever roles that plays in the other arms."""
    return sole_model(model) if ARMS[arm].strategy == "single" else model


@dataclass
class ComparisonRuns:
    folder: RunFolder
    plan: comparing.ComparisonPlan
    config: RunConfig
    listener: Listener
    results: dict[comparing.Planned, comparing.RunResult] = field(default_factory=dict)
    errors: dict[comparing.Planned, TunesmithError] = field(default_factory=dict)

    def run(self) -> tuple[ComparisonResult, Troubles]:
        """Every run as far as it goes; where replies come by files and are waited for, again and again."""
        every = comparing.schedule_runs(self.plan)
        self.listener.note(f"looking at {format_count(len(every), 'run')}")
        self.results = {item: self._seen(item) for item in every}
        todo = [item for item in every if self.results[item].status != "finished"]
        while todo:
            for item in todo:
                place = f"run {every.index(item) + 1} of {len(every)}"
                self.listener.say(f"{place}: {item.problem}, {item.arm}, repeat {item.repeat}")
                try:
                    self.results[item] = self._one(item)
                except KeyboardInterrupt:
                    self.results[item] = self._seen(item)
                    self._write_report()
                    raise
                self._write_report()
            todo = self._answered() if self.config.wait else []
        troubles = ((self._path(item), self.errors[item]) for item in every if item in self.errors)
        return self._write_report(), tuple(troubles)

    def _path(self, item: comparing.Planned) -> Path:
        return self.folder.path / pages.RUNS / item.place

    def _seen(self, item: comparing.Planned) -> comparing.RunResult:
        """What an earlier call has left of it."""
        path = self._path(item)
        if not has_begun(path):
            return comparing.RunResult(item, "not begun")
        try:
            state, facts = journal_facts(path)
        except TunesmithError as error:  # told again, with its exit code, when the run is resumed
            return comparing.RunResult(item, "stopped", str(error))
        told = (path / ("report.json" if state.unproven else CERTIFICATE)).exists()
        done = state.stopped is not None and told
        if done and (recording := self._recording(item)):
            roles.write_recording(Path(recording), state)
        if done:
            return comparing.RunResult(item, "finished", facts=facts)
        if (open_ := state.open_request) is not None:
            why = f"request {open_.request.number} has no reply yet"
            return comparing.RunResult(item, "waiting", why, facts)
        return comparing.RunResult(item, "stopped", "not finished", facts)

    def _one(self, item: comparing.Planned) -> comparing.RunResult:
        path = self._path(item)
        self.errors.pop(item, None)
        error = self._attempt_run(item, path)
        if error is None:
            return comparing.RunResult(item, "finished", facts=journal_facts(path)[1])
        self.errors[item] = error
        known = None
        with suppress(TunesmithError):  # the trouble may be that there is nothing to be read
            known = journal_facts(path)[1] if has_begun(path) else None
        status = next(status for kind, status in STATUSES if isinstance(error, kind))
        return comparing.RunResult(item, status, str(error), known)

    def _attempt_run(self, item: comparing.Planned, path: Path) -> TunesmithError | None:
        """Go on with one run; what stops it does not stop the others."""
        config = self._config(item)
        try:
            if has_begun(path):
                return runs.resume(path, config, self.listener).missing
            if (drafts := self.plan.drafts) > 1:
                fault = f"this comparison was begun with {drafts} drafts a round, and a round has one"
                return BadInput(fault, hint="begin another")
            problem = next(p for p in self.plan.problems if p.folder == item.problem)
            texts = {name: self.folder.get(digest).decode() for name, digest in problem.files}
            return begin_run(RunInput(restore_problem(texts)), config, path, self.listener).missing
        except TunesmithError as error:
            return error
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            return BadInput(f"{name}{error.strerror or error}")
        except Exception as error:
            if is_debugging():
                raise
            return TunesmithError(f"a bug in Tunesmith: {bug_text(error)}")

    def _config(self, item: comparing.Planned) -> RunConfig:
        """The same for every arm but for its strategy; no run knows of another."""
        plan, arm, budget = self.plan, ARMS[item.arm], self.plan.budget
        return replace(
            self.config,
            backend=plan.backend or None,
            device=plan.device or None,
            search=plan.search,
            prune=plan.prune,
            steer=plan.steer,
            counters=plan.counters,
            seed=plan.seed + item.repeat - 1,
            strategy=arm.strategy,
            linear=arm.linear,
            model=move_model_folders(model_of(item.arm, plan.model), item.place) if arm.talks else "",
            prompts=str(self.folder.path / PROMPTS) if plan.prompts else "",
            record=self._recording(item),
            evals=budget.evals,
            time=budget.seconds,
            rounds=budget.rounds,
            device_seconds=budget.device_seconds,
            moves=plan.moves,
            plain=False,
            tokens=budget.tokens,
            money=budget.dollars,
            cache=False,
            ceilings=self.config.cache,  # they are the device's, whoever asks
            prior=False,
            library=False,
            wait=False,
        )

    def _recording(self, item: comparing.Planned) -> str:
        """Where what its models say is recorded; empty: nowhere."""
        asked = self.config.record and ARMS[item.arm].talks
        return str(Path(self.config.record) / item.place) if asked else ""

    def _answered(self) -> list[comparing.Planned]:
        """Wait until replies are there; the runs that can go on. None: nobody waits for a file."""
        awaited = {
            item: Path(error.awaits)
            for item, error in self.errors.items()
            if isinstance(error, WaitingForModel) and error.awaits
        }
        reminded = -REMIND
        while awaited:
            if found := [item for item, file in awaited.items() if has_reply(file)]:
                return found
            if time.monotonic() - reminded >= REMIND:
                reminded = time.monotonic()
                first, count = next(iter(awaited.values())), format_count(len(awaited), "reply", "replies")
                self.listener.say(f"waiting for {count}, the first is {first}")
                for file in awaited.values():
                    if seen := near_miss(file):
                        self.listener.say(f"{file}: {seen}")
            time.sleep(POLL)
        return []

    def _write_report(self) -> ComparisonResult:
        found = summarize_runs(self.plan, tuple(self.results.values()))
        self.folder.replace_folder(pages.PLOTS, pages.comparison_plots(found))
        self.folder.write(pages.MARKDOWN, pages.comparison_markdown(found).encode())
        self.folder.write(pages.DATA, pages.comparison_json(found))
        return found


def read_comparison(path: Path) -> tuple[comparing.ComparisonPlan, tuple[comparing.RunResult, ...]]:
    """What the runs of a comparison have to tell, by their journals; none of them goes on. Failures are those
    that its own page tells of: a journal does not know of them."""
    plan, told = read_plan(RunFolder(path)), path / pages.DATA
    failed: dict[comparing.Planned, str] = {}
    if told.is_file():
        found = decode_json(
            encode_json(json.loads(read_plain(told))["comparison"]), ComparisonResult, str(told)
        )
        failed = {run.planned: run.reason for run in found.runs if run.status == "failed"}
    results = []
    for item in comparing.schedule_runs(plan):
        folder = path / pages.RUNS / item.place
        if not has_begun(folder):
            results.append(
                comparing.RunResult(item, "failed" if item in failed else "not begun", failed.get(item, ""))
            )
            continue
        state, facts = journal_facts(folder)
        done: comparing.RunStatus = "finished" if state.stopped is not None else "stopped"
        status: comparing.RunStatus = "failed" if item in failed and done == "stopped" else done
        results.append(comparing.RunResult(item, status, failed.get(item, ""), facts))
    return plan, tuple(results)


def journal_facts(path: Path) -> tuple[State, comparing.RunFacts]:
    state, templates = state_and_templates(RunFolder.open(path))
    refuse_broken(state, path)
    return state, comparing.facts_of(templates.problem, state, templates)
