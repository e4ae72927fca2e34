"""A draft as the text of a template file: one kernel, every choice of its schedule a macro."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tunesmith.core.expr import parse
from tunesmith.core.problem import Problem
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.writing.baking import Baked
from tunesmith.expert.writing.cpu_file import write_opencl
from tunesmith.expert.writing.fast_math import FastMath
from tunesmith.expert.writing.gpu_beside import SideBySide
from tunesmith.expert.writing.gpu_prelude import own_names, packs
from tunesmith.expert.writing.header import header
from tunesmith.expert.writing.kernel_text import KernelText, guard
from tunesmith.expert.writing.make_plan import make_plan
from tunesmith.expert.writing.naming import Knob
from tunesmith.expert.writing.plan import Plan
from tunesmith.expert.writing.source_parts import helper_text, preamble, used_functions
from tunesmith.expert.writing.team_totals import TeamTotals


def write(draft: Draft, problem: Problem) -> str:
    """The template's text; raises `Unwritable`, with the reason, where the scheme does not carry.

    Choices that change nothing in this kernel are left out, and what is said of them holds for their default.
    """
    text = _write(draft, problem)
    idle = [choice for choice in draft.schedule.choices if not _is_used(choice.name, text)]
    return _write(without(draft, idle), problem) if idle else text


def _write(draft: Draft, problem: Problem) -> str:
    plan = make_plan(draft, problem)
    if plan.language == "opencl":
        return write_opencl(plan, fast_math(plan), assemble, helper_texts)
    return _write_gpu(plan)


def _is_used(name: str, text: str) -> bool:
    """In the code or the launch, beside its own declaration and default."""
    word = re.compile(rf"\b{name}\b")
    head, _, code = text.partition("\n// ///\n")
    launch = head[head.index("// [launch]") :]
    defines = head.partition("// [defines]")[2].partition("// [launch]")[0]
    build = head.partition("// [build]")[2]
    own = (f"#ifndef {name}", f"#define {name} ")
    lines = [line for line in code.split("\n") if not line.startswith(own) and not line.startswith("//")]
    return any(word.search(part) for part in (launch, defines, build, *lines))


def without(draft: Draft, idle: Sequence[Choice]) -> Draft:
    """The draft without some of its choices; conditions are taken at their defaults."""
    values = {choice.name: choice.default for choice in idle}

    def bound(conditions: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        found = [(name, parse(text).bind(values).text) for name, text in conditions]
        return tuple((name, text) for name, text in found if text != "1")

    fields = {field: None for field, value in vars(draft.schedule).items() if value in idle}
    return replace(
        draft,
        schedule=replace(draft.schedule, **fields),
        require=bound(draft.require),
        prefer=bound(draft.prefer),
        answers=bound(draft.answers),
    )


def fast_math(plan: Plan) -> FastMath:
    schedule = plan.draft.schedule
    return FastMath(
        plan.language,
        plan.names,
        fast=schedule.fast.name if schedule.fast is not None else "",
        reciprocal=schedule.reciprocal.name if schedule.reciprocal is not None else "",
        results={f.name: f.result for f in plan.kernel.source.functions if not f.template},
        aliases=dict(plan.kernel.source.aliases),
    )


def _write_gpu(plan: Plan) -> str:
    fast, baked = fast_math(plan), Baked.of(plan)
    called = own_names(plan.names)
    inside, totals = guard(plan), TeamTotals(plan)
    loops = SideBySide(plan, fast, totals, inside, called["Pack"])
    kernel = KernelText(plan, fast, baked, loops, totals, inside)
    helpers = helper_texts(plan, fast)
    body = kernel.text()  # before the macros are listed: it says which are used
    texts = "\n".join([body, *("\n".join(helper) for helper in helpers)])
    code = [fast.macros(texts), loops.division.macros(), *helpers, body.rstrip("\n").split("\n")]
    if any(loop.packs for loop in plan.all_loops):
        code.insert(
            0, packs(plan.draft.schedule, plan.language, called, loops.settles).rstrip("\n").split("\n")
        )
    return assemble(plan, baked, kernel, code)


def assemble(plan: Plan, baked: Baked, kernel: KernelText, code: list[list[str]]) -> str:
    """The whole file around its code."""
    code.insert(0, used_defines(kernel.defines(), code))
    top = [header(plan, baked) + about(plan), preamble(plan.kernel.source), macros(plan, baked, code)]
    return join([*top, *code])


def used_defines(defines: list[str], code: list[list[str]]) -> list[str]:
    """Without plain constants that nothing names; conditional ones stay."""
    text = "\n".join(line for part in code for line in part)
    kept: list[str] = []
    for line in reversed(defines):
        word = line.split()[1].partition("(")[0] if line.startswith("#define") else ""
        if not word or re.search(rf"\b{word}\b", text):
            kept.insert(0, line)
            text += "\n" + line
    return kept


def join(parts: list[list[str]]) -> str:
    lines: list[str] = []
    for part in parts:
        while part and not part[-1].strip():
            part = part[:-1]
        if part:
            lines += [*part, ""]
    return "\n".join(lines[:-1]) + "\n"


def helper_texts(plan: Plan, fast: FastMath) -> list[list[str]]:
    convert = plan.draft.schedule.convert
    switch = convert.name if convert is not None else ""
    hardware = dict(plan.draft.hardware)
    found = []
    for function in used_functions(plan.kernel):
        text = helper_text(function, fast, plan.language, hardware.get(function.name, ""), switch)
        found.append(text.rstrip("\n").split("\n"))
    return found


def macros(plan: Plan, baked: Baked, code: list[list[str]]) -> list[str]:
    """Parameters with their defaults; what is no parameter is a plain constant."""
    lines: list[str] = []
    for choice in plan.draft.schedule.choices:
        lines += [f"#ifndef {choice.name}", f"#define {choice.name} {choice.default}", "#endif"]
    lines += baked.defaults()
    knobs: list[Knob] = [k for k in vars(plan.knobs).values() if isinstance(k, Knob) and not k.is_parameter]
    return lines + used_defines([f"#define {knob.name} {knob.default}" for knob in knobs], code)


def about(plan: Plan) -> list[str]:
    """What the file is, for whoever opens it."""
    if plan.is_flat:
        how = "Elements stand alone: blocks take runs of them, threads neighbouring vectors of a run."
    else:
        over = ", ".join(task.name for task in plan.kernel.tasks)
        how = f"A task is one ({over}); {plan.knobs.lanes.name} threads share it."
    moves = f"Written by Tunesmith from {plan.problem.kernel.path.rsplit('/', 1)[-1]}."
    return ["//", f"// {plan.problem.name}: {moves}", f"// {how}"]
