"""A kernel without a problem, in words: whether it is read, what stands in the way, what `init` would say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tunesmith.csource.binding import bind
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.parse import read_source_tree
from tunesmith.csource.predefined import asked_names, assumed
from tunesmith.expert.model.obstacles import other_obstacles, with_change
from tunesmith.expert.model.words import explain_lines, fact_lines
from tunesmith.expert.reading.bare import BareFailure, BareReading
from tunesmith.expert.reading.bare_text import BareKernel, not_said
from tunesmith.expert.reading.draft import draft_of, read_safely
from tunesmith.expert.reading.launches import FILL
from tunesmith.problem.problem import Problem

_TABLE = re.compile(r"\[+([\w.]+)\]+")
_OPEN = re.compile(rf"(\w+) = .*{FILL}.*?(?:  # (.*))?")
_UNKNOWN_TYPE = re.compile(r"the type of \w+, (?:const )?(\w+)\**, is not known")


@dataclass(frozen=True)
class ExplainedText:
    """One kernel of a file, as far as its text alone goes."""

    entry: str
    line: int
    is_read: bool
    lines: tuple[str, ...]  # what it computes
    obstacles: tuple[str, ...]  # all that stands in the way, each with what would have to change
    filled: tuple[str, ...]  # what a draft of its problem would say
    left: tuple[str, ...]  # and what it would leave to the user
    problem: Problem | None  # with made-up numbers, to ask for moves; None: not even that can be made


def explain_text(bare: BareKernel) -> ExplainedText:
    found = read_safely(bare)
    drafted = draft_of(bare, found).files["problem.toml"]
    left = (*_left(drafted), "reference: the expected result in NumPy, or none, to compare with the original")
    known = (bare.entry, bare.kernel.line)
    said = (tuple(_filled(tomllib.loads(drafted))), left)
    if not isinstance(found, BareReading):
        problem = None if isinstance(found, str) else found.problem
        return ExplainedText(*known, False, (), tuple(_obstacles(bare, found)), *said, problem)
    lines = (*explain_lines(found.kernel), *fact_lines(found.kernel), _about_block(found), *_compiler(bare))
    return ExplainedText(*known, True, lines, (), *said, found.problem)


def _about_block(reading: BareReading) -> str:
    block = " x ".join(str(expr) for expr in reading.problem.launches[0].block)
    whose = "which the file says" if reading.own_block else "a usual number: the file says none"
    return f"Read with blocks of {block} threads, {whose}; every integer argument is taken for a size."


def _compiler(bare: BareKernel) -> tuple[str, ...]:
    """What is assumed of the compiler where the text asks for it."""
    if not asked_names((bare.text, *(text for _, text in bare.headers))):
        return ()
    which = assumed(bare.language).said_by.rpartition(": ")[2]
    said = "a run asks the one that builds it, which `compiler` in [kernel] may name"
    return (f"What compilers define is assumed to be that of {which}: no compiler was asked; {said}.",)


# -- what stands in the way ---------------------------------------------------------------------------------


def _obstacles(bare: BareKernel, found: BareFailure | str) -> Iterator[str]:
    if isinstance(found, BareFailure):
        reason, line = found.reason.reason, found.reason.line
        yield with_change(reason if not line or f"line {line}" in reason else f"line {line}: {reason}")
        yield from found.reason.others
        return
    missing = not_said(bare)
    if found not in missing:
        yield found
    yield from (f"line {bare.kernel.line}: {_with_word(one, bare)}" for one in missing)
    if FILL not in bare.entry:
        yield from _of_the_text(bare)


def _with_word(reason: str, bare: BareKernel) -> str:
    """What could be said of a type that is not known."""
    unknown = _UNKNOWN_TYPE.match(reason)
    if unknown is None:
        return reason
    name = unknown[1]
    own = re.search(rf"\b(?:struct|class|union)\s+{name}\b|\}}\s*{name}\s*;", bare.text) is not None
    change = "pass its fields as arguments of their own" if own else f"say it, as in --define {name}=float"
    return f"{reason} (to change: {change})"


def _of_the_text(bare: BareKernel) -> tuple[str, ...]:
    try:
        source = read_source_tree(bare.text, bare.language, bare.defines, bare.headers)
        bound = bind(source, bare.entry)
        if isinstance(bound, str):
            return ()
        return other_obstacles(bound.function, bound.source, bound.function.name)
    except (Unreadable, RecursionError) as error:
        return (str(error) or "its expressions are nested too deeply",)


# -- what a draft says --------------------------------------------------------------------------------------


def _filled(problem: Mapping[str, Any]) -> Iterator[str]:
    for argument in problem["argument"]:
        words = [argument["type"]] if FILL not in argument["type"] else []
        words += [argument["role"]] if argument.get("role", FILL) != FILL else []
        shape = argument.get("shape", [FILL])
        words += [f"shape [{', '.join(shape)}]"] if FILL not in shape else []
        words += [f"align {argument['align']}"] if "align" in argument else []
        words += [f"value {argument['value']}"] if argument.get("value", FILL) != FILL else []
        if words:
            yield f"{argument['name']}: {', '.join(words)}"
    launch = problem["launch"]
    said = [f"{key} {_list(value)}" for key, value in launch.items() if FILL not in value]
    if said:
        yield f"launch: {', '.join(said)}"
    sizes = problem["contract"]
    steps = {name: rule["multiple_of"] for name, rule in sizes.items() if "multiple_of" in rule}
    whole = [f"{name} a multiple of {step}" for name, step in steps.items()]
    if names := [name for name in sizes if name != FILL]:
        yield f"sizes: {', '.join([*names, *whole])}"
    if "independent" in problem["accuracy"]:
        yield f"independent: {problem['accuracy']['independent']}"


def _list(value: list[str] | str) -> str:
    return value if isinstance(value, str) else f"[{', '.join(value)}]"


def _left(drafted: str) -> Iterator[str]:
    """Every place that says FILL, with the comment beside it."""
    table, name, sizes = "", "", False
    for line in drafted.splitlines():
        if header := _TABLE.match(line):
            table, name = header[1], ""
        elif line.startswith("name = "):
            name = line.split('"')[1]
        elif not line.startswith("#") and (place := _OPEN.fullmatch(line)):
            if table in ("contract", "workloads"):
                sizes = True
                continue
            where = f"{name or table}, " if table else ""
            yield f"{where}{place[1]}" + (f": {place[2]}" if place[2] else "")
    if sizes:
        yield "sizes: the largest of each that callers send, and workloads, where it must be fast"
