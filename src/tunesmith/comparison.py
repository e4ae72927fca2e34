"""Comparisons of strategies on disk: planned once, made of ordinary runs, continued where they were.

DIR/compare.json              the plan; objects/ has the problems and prompts it names
DIR/runs/PROBLEM/ARM-REPEAT   a run each
DIR/compare.md, compare-data.json, plots/   what they say together, written whenever a run has ended
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith import backends, casting, machine
from tunesmith.comparison_runs import PROMPTS, Troubles, Work, model_of
from tunesmith.config import RunConfig
from tunesmith.core import comparing
from tunesmith.core.budget import KERNEL_ROUNDS, SEVERAL_EVALS
from tunesmith.core.codec import Malformed, decode, encode
from tunesmith.core.compared import ComparisonResult
from tunesmith.core.comparing import ARMS, Allowance, ComparisonPlan, PlannedProblem
from tunesmith.core.comparison_words import limits
from tunesmith.core.digest import digest_of
from tunesmith.core.errors import BadInput, DeviceMissing, Interrupted
from tunesmith.core.ports import Listener
from tunesmith.machine import temporary_scratch
from tunesmith.problems import all_texts, load_problem, read_text
from tunesmith.search import check_name
from tunesmith.starting import versions
from tunesmith.store import PLAN, RunFolder, explained, resume_command
from tunesmith.strategies import played
from tunesmith.whole_files import partial_of

DAMAGED_PLAN = "restore the folder from a copy, or begin another comparison with --out"
USUAL = "template,rewrite,single,expert"  # arms


@dataclass(frozen=True)
class Compared:
    comparison: ComparisonResult
    folder: Path
    go_on: str  # what to type
    troubles: Troubles  # what keeps runs from going on, or made them fail


def start(
    problems: Sequence[Path],
    strategies: str,
    repeats: int,
    config: RunConfig,
    out: Path | None,
    listener: Listener,
) -> Compared:
    """A new comparison; or, where `out` holds the same one, what is left of it."""
    arms = comparing.parse_arms(strategies)
    loaded = [load_problem(path) for path in problems]
    texts = [all_texts(*one) for one in loaded]
    prompts = _prompts(config.prompts, listener.note)
    _check(arms, {problem.kernel.language for problem, _ in loaded}, config, listener)
    names = comparing.folder_names([problem.name for problem, _ in loaded])
    planned = tuple(
        PlannedProblem(name, problem.name, problem.digest, _digests(own))
        for name, (problem, _), own in zip(names, loaded, texts, strict=True)
    )
    _refuse_twice(planned)
    plan = _plan(planned, arms, repeats, _digests(prompts), config)
    if out is not None and (out / PLAN).exists():
        folder = RunFolder(out, config.wait)
        folder.lock()
        try:
            if other := comparing.differences(_read_plan(folder), plan):
                raise BadInput(
                    f"this folder holds another comparison: {'; '.join(other)}",
                    where=str(out),
                    hint=f"go on with that one: {folder.go_on}; or choose another folder with --out",
                )
            return _go_on(folder, config, listener)
        finally:
            folder.unlock()
    folder = _create(out, config)
    try:
        for text in (text for own in (*texts, prompts) for text in own.values()):
            folder.put(text.encode())
        folder.write(PLAN, encode(plan) + b"\n")
        return _go_on(folder, config, listener)
    finally:
        folder.unlock()


def resume(path: Path, config: RunConfig, listener: Listener) -> Compared:
    if not (path / PLAN).is_file():
        raise BadInput(
            f"there is no comparison in this folder: it has no {PLAN}",
            where=str(path),
            hint="name the folder that `tunesmith compare PROBLEM...` has written",
        )
    folder = RunFolder(path, config.wait)
    folder.lock()
    try:
        return _go_on(folder, config, listener)
    finally:
        folder.unlock()


def go_on_command(path: Path, config: RunConfig) -> str:
    """What to type, whether there is a comparison yet or not."""
    return resume_command(path, config.wait, compared=True)


# -- planning -----------------------------------------------------------------------------------------------


def _check(arms: Sequence[str], languages: set[str], config: RunConfig, listener: Listener) -> None:
    """Everything that can be refused before anything is written."""
    talking = [arm for arm in arms if ARMS[arm].talks]
    if talking:
        _check_models(talking, config.model)
        for arm in talking:
            casting.prepare(model_of(arm, config.model), ARMS[arm].strategy)
    check_name(config.search)
    specs = {backends.backend_for(language, config.backend) for language in languages}
    for spec in specs:
        if backends.kind(spec).from_file:
            raise BadInput(
                f"{spec.partition(':')[0]} has the times of one template; arms that write their own cannot "
                "be compared on it",
                hint="leave out --backend, or take another one",
            )
        with temporary_scratch() as scratch:
            here = machine.look(spec, scratch)
            try:
                machine.choose_device(here, config.device)
            except DeviceMissing as error:
                if here.devices:  # none of them is the one that is named
                    raise
                listener.note(f"planned without a device: {error}")


def _check_models(arms: Sequence[str], model: str) -> None:
    """BadInput where a strategy cannot do with those that are named, or has none."""
    for arm in arms:
        if not (model and played(model_of(arm, model), ARMS[arm].strategy)):
            raise BadInput(
                f"{', '.join(arms)}: a model is needed, and --model names none",
                hint="add --model openai:NAME or another, or compare --strategies expert alone",
            )


def _plan(
    problems: tuple[PlannedProblem, ...],
    arms: tuple[str, ...],
    repeats: int,
    prompts: tuple[tuple[str, str], ...],
    config: RunConfig,
) -> ComparisonPlan:
    evals = SEVERAL_EVALS if config.evals is None and config.time is None else config.evals
    rounds = KERNEL_ROUNDS if config.rounds is None else config.rounds
    return ComparisonPlan(
        problems,
        arms,
        repeats,
        config.seed,
        Allowance(evals, config.time, rounds, config.tokens, config.money),
        model=config.model if any(ARMS[arm].talks for arm in arms) else "",
        backend=config.backend or "",
        device=config.device or "",
        search=config.search,
        prune=config.prune,
        steer=config.steer,
        counters=config.counters,
        prompts=prompts,
        versions=versions(),
    )


def _prompts(folder: str, note: Callable[[str], None]) -> dict[str, str]:
    """The user's own, as they are now: all arms and repeats are told the same."""
    if not folder:
        return {}
    casting.prompts_for("", folder, note=note)  # which refuses what is no folder
    return {file.name: read_text(file) for file in sorted(Path(folder).glob("*.md"))}


def _digests(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, digest_of(text.encode())) for name, text in texts.items())


def _refuse_twice(problems: Sequence[PlannedProblem]) -> None:
    seen: dict[str, str] = {}
    for problem in problems:
        if problem.digest in seen:
            raise BadInput(
                f"the problem {problem.name} is named twice",
                hint="name it once, and use --repeats",
            )
        seen[problem.digest] = problem.name


def _create(out: Path | None, config: RunConfig) -> RunFolder:
    if out is None:
        return RunFolder.create_next(Path(config.runs), "compare", config.wait)
    with explained("create the folder", out, instead="another folder with --out"):
        partial_of(out / PLAN).unlink(missing_ok=True)  # of one that was killed before it had a plan
    return RunFolder.create(out, config.wait)


def _read_plan(folder: RunFolder) -> ComparisonPlan:
    where = folder.path / PLAN
    with explained("read the plan", where):
        data = where.read_bytes()
    try:
        plan = decode(data, ComparisonPlan, "plan of a comparison")
    except Malformed as error:
        raise BadInput(f"the plan is damaged: {error}", where=str(where), hint=DAMAGED_PLAN) from error
    unknown = [arm for arm in plan.arms if arm not in ARMS]
    if plan.format != comparing.FORMAT or unknown:
        why = f"it has the arm {unknown[0]}" if unknown else f"its format is {plan.format}"
        raise BadInput(
            f"the plan is of another version of Tunesmith: {why}",
            where=str(where),
            hint="go on with that version, or begin another comparison with --out",
        )
    return plan


def _go_on(folder: RunFolder, config: RunConfig, listener: Listener) -> Compared:
    plan = _read_plan(folder)
    if plan.prompts:
        folder.replace_folder(PROMPTS, {name: folder.get(digest) for name, digest in plan.prompts})
    try:
        found, troubles = Work(folder, plan, config, listener).run()
        return Compared(found, folder.path, folder.go_on, troubles)
    except (KeyboardInterrupt, Interrupted) as error:
        hint = f"go on with: {folder.go_on}"
        raise Interrupted("interrupted; nothing is lost", where=str(folder.path), hint=hint) from error


def rendered_json(found: Compared) -> bytes:
    """What the command prints: the data, and why it is not all there."""
    troubles = [{"run": str(path), "exit": e.exit_code, "error": str(e)} for path, e in found.troubles]
    told = {"folder": str(found.folder), "troubles": troubles, "limits": limits(found.comparison)}
    return encode({**told, "comparison": found.comparison})
