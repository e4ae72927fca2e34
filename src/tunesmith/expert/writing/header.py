"""The declaration at a template's top: parameters, defaults, conditions, launch, as TOML in comments."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.expert.model.kernel import Choice
from tunesmith.expert.writing.baking import Baked
from tunesmith.expert.writing.plan import Plan
from tunesmith.expert.writing.rules import block, grid, rules_of, shared_bytes

_NOTES = {
    "lanes": "threads that share a task",
    "tasks": "tasks in a block",
    "vector": "elements in one load or store",
    "items": "vectors a thread has under way at once",
    "split": "1: the elements of a task are spread over several blocks",
    "beside": "1: loops that do not depend on each other run side by side",
    "keep": "vectors of its task a thread keeps in registers; 0: they are read again",
    "early": "1: what later loops load is sent for before totals are known",
    "persistent": "blocks for every multiprocessor, which go on to further tasks; 0: blocks end",
    "load_hint": "loads: 1: not kept in L1; 2: evicted first",
    "store_hint": "1: results are evicted first",
    "fast": "1: functions and quotients from the special-function unit",
    "reciprocal": "quotients by what is the same for a row: 1: a product; 2: a product set right",
    "convert": "1: conversions by the device's own instructions",
    "divide": "index divisions: 1: by shifts, of powers of two; 2: by products",
    "unroll": "turns of inner loops unrolled",
    "bake": "1: sizes are constants of the build",
    "bounds": "blocks that must fit on a multiprocessor at once",
    "registers": "registers a thread may have, at most",
    "flags": "compiler flags",
}


def header(plan: Plan, baked: Baked) -> list[str]:
    lines = ["/// tunesmith", "[params]"]
    schedule = plan.draft.schedule
    named = [(field, choice) for field, choice in vars(schedule).items() if isinstance(choice, Choice)]
    width = max((len(choice.name) for _, choice in named), default=0)
    for field, choice in named:
        lines.append(_parameter(choice, width, choice.note or _NOTES[field]))
    lines.append("[default]")
    lines += [f"{choice.name:<{width}} = {choice.default}" for _, choice in named]
    lines += _conditions(plan)
    lines += _answers(plan)
    if baked.sizes:
        lines.append("[defines]")
        lines += [f'{macro} = "{text}"' for macro, text in baked.declared()]
    flags = _flags(plan)
    if flags:
        lines += ["[build]", f"flags = [{', '.join(_quoted(flag) for flag in flags)}]"]
    lines += _launch(plan)
    lines.append("///")
    return [f"// {line}".rstrip() for line in lines]


def _parameter(choice: Choice, width: int, note: str) -> str:
    values = f"[{', '.join(map(str, choice.values))}]"
    if choice.categorical:
        values = f"{{ values = {values}, categorical = true }}"
    return f"{choice.name:<{width}} = {values}" + (f"  # {note}" if note else "")


def _conditions(plan: Plan) -> list[str]:
    found: dict[str, dict[str, str]] = {"require": {}, "prefer": {}}
    given = {"require": plan.draft.require, "prefer": plan.draft.prefer}
    structural = rules_of(plan)
    for kind, table in found.items():
        own = [(name, text) for rule_kind, name, text in structural if rule_kind == kind]
        for name, text in (*own, *given[kind]):
            if text in table.values():
                continue
            free, number = name, 2
            while free in table:
                free, number = f"{name}_{number}", number + 1
            table[free] = text
    lines: list[str] = []
    for kind, table in found.items():
        if table:
            width = max(map(len, table))
            lines += [f"[{kind}]", *(f'{name:<{width}} = "{text}"' for name, text in table.items())]
    return lines


def _answers(plan: Plan) -> list[str]:
    """Which configurations answer a remedy."""
    answers = plan.draft.answers
    width = max((len(remedy) for remedy, _ in answers), default=0)
    return ["[answers]", *(f'{remedy:<{width}} = "{text}"' for remedy, text in answers)] if answers else []


def _flags(plan: Plan) -> list[str]:
    schedule = plan.draft.schedule
    flags: list[str] = []
    if schedule.registers is not None:
        flags.append(f"--maxrregcount={{{schedule.registers.name}}}")
    flags += plan.draft.build_flags
    return flags


def _launch(plan: Plan) -> list[str]:
    lines = ["[launch]"]
    if plan.problem.launches[0].entry != plan.kernel.function.name:
        lines.append(f'entry = "{plan.kernel.function.name}"')
    lines += _listed("grid", grid(plan)) + _listed("block", block(plan))
    shared = shared_bytes(plan)
    if shared is not None:
        lines.append(f'shared = "{_bare(shared)}"')
    return lines


def _listed(name: str, texts: Sequence[str]) -> list[str]:
    one = f"{name} = [{', '.join(_quoted(text) for text in texts)}]"
    if len(one) <= 108:
        return [one]
    return [f"{name} = [", *(f"  {_quoted(text)}," for text in texts), "]"]


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(0 if") and text.endswith(")") else text


def _quoted(text: str) -> str:
    return f'"{text}"'
