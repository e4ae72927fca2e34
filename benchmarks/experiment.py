"""What comparisons show together, as tables in Markdown: the page of an experiment.

    python -m benchmarks.experiment FOLDER... [--out FILE]

FOLDER holds folders of `tunesmith compare` (compare.json), at any depth. Their runs are read from their
journals and counted together, arm by arm; an arm with other settings (`--moves none`) is one of its own.
Intervals are by a bootstrap over problems and repeats with a fixed seed. Nothing is built, run or asked.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tunesmith.base.errors import BadInput
from tunesmith.base.text import escape_markdown, format_count, markdown_table, one_line, ratio_text
from tunesmith.plugins.studies import experiment as page
from tunesmith.plugins.studies.experiment import (
    TOKENS,
    ExperimentFigures,
    ExperimentRun,
    arm_label,
    experiment_figures,
)
from tunesmith.plugins.studies.plan import Allowance, ComparisonPlan, RunFacts, RunResult
from tunesmith.plugins.studies.run import read_comparison
from tunesmith.run.folder import PLAN
from tunesmith.run.outcome import geometric_mean

Looked = tuple[ComparisonPlan, tuple[RunResult, ...]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.experiment", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, help="the page; else it is printed")
    given = parser.parse_args(arguments)
    text = experiment_page([read_comparison(folder) for folder in comparisons(given.folders)])
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text, "utf-8")


def comparisons(folders: Sequence[Path]) -> list[Path]:
    found = [plan.parent for folder in folders for plan in sorted(folder.rglob(PLAN))]
    if not found:
        names = ", ".join(map(str, folders))
        raise BadInput(f"there is no comparison below {names}", hint=f"name a folder with a {PLAN}")
    return list(dict.fromkeys(found))


def experiment_runs(
    compared: Iterable[tuple[ComparisonPlan, Sequence[RunResult]]],
) -> tuple[ExperimentRun, ...]:
    return tuple(
        ExperimentRun(arm_label(run.planned.arm, plan), run.planned.problem, run)
        for plan, runs in compared
        for run in runs
    )


def experiment_sections(found: ExperimentFigures, budgets: Iterable[Allowance]) -> dict[str, list[str]]:
    """Title -> lines."""
    return {
        "Over problems and repeats": page.together_section(found),
        "Gain of each round": page.rounds_section(found),
        f"Gain per {TOKENS} tokens": page.tokens_section(found),
        "What the search adds to a template": page.searches_section(found),
        "What was stopped": page.stopped_section(found),
        "What each arm spent": page.spent_section(found, budgets),
    }


def experiment_page(looked: Sequence[Looked]) -> str:
    runs = experiment_runs(looked)
    sections = {"What was run": _what(looked, runs), "Problem by problem": _by_problem(runs)}
    sections |= experiment_sections(experiment_figures(runs), [plan.budget for plan, _ in looked])
    sections["Runs that do not count"] = _unfinished(runs)
    lines = ["# Experiment"]
    for title, part in sections.items():
        lines += ["", f"## {title}", "", *part]
    return "\n".join(lines) + "\n"


def _what(looked: Sequence[Looked], runs: Sequence[ExperimentRun]) -> list[str]:
    facts = [run.result.facts for run in runs if run.result.facts is not None]
    devices = dict.fromkeys(f"{f.device} ({f.driver})" for f in facts)
    versions = dict.fromkeys(f.versions for f in facts)
    counts = sum(run.result.counts for run in runs)
    lines = [
        f"{format_count(len(looked), 'comparison')}, {format_count(len(runs), 'run')}, of which "
        f"{counts} count."
    ]
    lines += [f"On {escape_markdown('; '.join(devices)) or 'no device so far'}."]
    lines += [
        f"- {escape_markdown(plan.model or 'no model')}: {page.budget_text(plan.budget)}"
        for plan in _budgets(looked)
    ]
    if len({plan.budget for plan, _ in looked}) > 1:
        lines.append("\nThe comparisons do not all have the same budget: arms may differ for that.")
    if len({plan.model for plan, _ in looked if plan.model}) > 1:
        lines.append("\nThe comparisons do not all have the same model: arms may differ for that.")
    if len(versions) > 1:
        lines.append("\nThe runs were not all made with the same versions.")
    return lines


def _budgets(looked: Sequence[Looked]) -> list[ComparisonPlan]:
    return list({(plan.model, plan.budget): plan for plan, _ in reversed(looked)}.values())[::-1]


def _by_problem(runs: Sequence[ExperimentRun]) -> list[str]:
    """Verified, each repeat."""
    rows = []
    for problem in dict.fromkeys(run.problem for run in runs):
        for arm in dict.fromkeys(run.arm for run in runs if run.problem == problem):
            own = [r.result for r in runs if (r.arm, r.problem) == (arm, problem) and r.result.counts]
            speedups = [run.speedup for run in own if run.speedup is not None]
            if speedups:
                rounds = max((run.facts for run in own if run.facts), key=_rounds, default=None)
                every = ", ".join(f"{value:.2f}" for value in speedups)
                mean, worst = ratio_text(geometric_mean(speedups)), ratio_text(min(speedups))
                rows.append(
                    (escape_markdown(problem), arm, mean, every, worst, _rounds(rounds) if rounds else 0)
                )
    return markdown_table("problem | arm | mean: | every run | worst: | rounds at most:", rows)


def _rounds(facts: RunFacts) -> int:
    return len(facts.rounds)


def _unfinished(runs: Sequence[ExperimentRun]) -> list[str]:
    open_ = [run for run in runs if not run.result.counts]
    if not open_:
        return ["None: all count."]
    kinds = Counter((run.arm, run.result.status) for run in open_)
    lines = markdown_table(
        "arm | status | runs:", ((arm, status, count) for (arm, status), count in kinds.items())
    )
    reasons = dict.fromkeys(
        escape_markdown(one_line(run.result.reason)) for run in open_ if run.result.reason
    )
    return [*lines, "", *(f"- {reason}" for reason in reasons)] if reasons else lines


if __name__ == "__main__":
    main()
