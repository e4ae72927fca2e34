"""A draft as the text of a template file: one kernel, every choice of its schedule a macro."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tunesmith.csource.printing import print_function
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.writing.cpu_loops import CpuLoops, CpuTotals
from tunesmith.expert.writing.cpu_vectors import Lift
from tunesmith.expert.writing.fast_math import FastMath, helper_text, preamble, used_functions
from tunesmith.expert.writing.gpu_beside import SideBySide
from tunesmith.expert.writing.gpu_packs import filled, own_names, packs, resource
from tunesmith.expert.writing.kernel_text import KernelText, guard
from tunesmith.expert.writing.naming import Knob, Unwritable, distinct
from tunesmith.expert.writing.plan import WritingPlan, make_plan
from tunesmith.expert.writing.rules import Baked, block, grid, rules_of, shared_bytes
from tunesmith.expert.writing.team_totals import TeamTotals
from tunesmith.problem.problem import Problem
from tunesmith.space.expr import parse

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


def header(plan: WritingPlan, baked: Baked) -> list[str]:
    lines = ["/// tunesmith", "[params]"]
    schedule = plan.draft.schedule
    named = [(f, choice) for f, choice in vars(schedule).items() if isinstance(choice, ParameterChoice)]
    width = max((len(choice.name) for _, choice in named), default=0)
    for field, choice in named:
        lines.append(_parameter(choice, width, choice.note or _NOTES[field]))
    lines.append("[default]")
    lines += [f"{choice.name:<{width}} = {choice.default}" for _, choice in named]
    lines += _conditions(plan)
    if baked.sizes:
        lines.append("[defines]")
        lines += [f'{macro} = "{text}"' for macro, text in baked.declared()]
    if plan.draft.build_flags:
        quoted = ", ".join(f'"{flag}"' for flag in plan.draft.build_flags)
        lines += ["[build]", f"flags = [{quoted}]"]
    lines += _launch(plan)
    lines.append("///")
    return [f"// {line}".rstrip() for line in lines]


def _parameter(choice: ParameterChoice, width: int, note: str) -> str:
    values = f"[{', '.join(map(str, choice.values))}]"
    if choice.categorical:
        values = f"{{ values = {values}, categorical = true }}"
    return f"{choice.name:<{width}} = {values}" + (f"  # {note}" if note else "")


def _conditions(plan: WritingPlan) -> list[str]:
    """What makes a configuration legal, what makes it worthwhile, and which ones answer a remedy."""
    structural, draft = rules_of(plan), plan.draft
    lines: list[str] = []
    for kind, given in (("require", draft.require), ("prefer", draft.prefer), ("answers", draft.answers)):
        own = [(name, text) for rule_kind, name, text in structural if rule_kind == kind]
        pairs = given if kind == "answers" else distinct((), (*own, *given))
        width = max((len(name) for name, _ in pairs), default=0)
        if pairs:
            lines += [f"[{kind}]", *(f'{name:<{width}} = "{text}"' for name, text in pairs)]
    return lines


def _launch(plan: WritingPlan) -> list[str]:
    lines = ["[launch]"]
    if plan.problem.launches[0].entry != plan.kernel.function.name:
        lines.append(f'entry = "{plan.kernel.function.name}"')
    lines += _listed("grid", grid(plan)) + _listed("block", block(plan))
    shared = shared_bytes(plan)
    if shared is not None:
        bare = shared[1:-1] if shared.startswith("(0 if") and shared.endswith(")") else shared
        lines.append(f'shared = "{bare}"')
    return lines


def _listed(name: str, texts: Sequence[str]) -> list[str]:
    quoted = [f'"{text}"' for text in texts]
    one = f"{name} = [{', '.join(quoted)}]"
    return [one] if len(one) <= 108 else [f"{name} = [", *(f"  {text}," for text in quoted), "]"]


# -- OpenCL C for a CPU, as the text of a template file ---------------------------------------------


def _vector_types(knob: Knob, vec: str, ivec: str, as_vec: str, as_ivec: str) -> list[str]:
    lines: list[str] = []
    for number, value in enumerate(knob.values):
        digits = "" if value == 1 else str(value)
        lines += [
            f"#{'if' if number == 0 else 'elif'} {knob.name} == {value}",
            f"typedef float{digits} {vec};",
            f"typedef int{digits} {ivec};",
            f"#define {as_vec} as_float{digits}",
            f"#define {as_ivec} as_int{digits}",
        ]
    return [*lines, "#endif"]


def _write_opencl(plan: WritingPlan) -> str:
    fast = fast_math(plan)
    if plan.kernel.kept:
        raise Unwritable("a loop leaves values for a later one in local memory, which a CPU has no use for")
    if any(value not in (1, 2, 4, 8, 16) for value in plan.knobs.vector.values):
        raise Unwritable("OpenCL has vectors of 2, 4, 8 and 16 elements")
    fresh = plan.names.fresh
    vec, ivec, as_vec, as_ivec = fresh("vec"), fresh("ivec"), fresh("AS_VEC"), fresh("AS_IVEC")
    baked, totals, inside = Baked.of(plan), CpuTotals(plan), guard(plan)
    functions = {f.name: f for f in used_functions(plan.kernel)}
    plain = FastMath(plan.language, plan.names)  # fast forms are for vectors; what is scalar stays as it is
    lift = Lift(vec, plan.names, functions, fast)
    loops = CpuLoops(plan, fast, totals, inside, lift)
    kernel = KernelText(plan, plain, baked, loops, totals, inside)
    body = kernel.text()
    types: list[str] = []
    if loops.uses_vectors:
        types = [
            *_vector_types(plan.knobs.vector, vec, ivec, as_vec, as_ivec),
            "",
            "// A row may start at any float. A packed struct says so, and unlike vloadN it is never a call.",
            f"typedef struct __attribute__((packed)) {{ {vec} v; }} {(un := fresh('unaligned'))};",
            f"#define {loops.load}(from) (((__global const {un} *)(from))->v)",
            f"#define {loops.store}(x, to) (((__global {un} *)(to))->v = (x))",
        ]
    lifted = [print_function(f, "opencl").strip().split("\n") for f in lift.written]
    macros = fast.macros("\n".join([body, *("\n".join(part) for part in lifted)]))
    code: list[list[str]] = [types]
    if any("fast_exp" in line for line in macros):
        words = {"FAST": fast.fast, "VEC": vec, "IVEC": ivec, "ASVEC": as_vec, "ASIVEC": as_ivec}
        text = filled(resource("fast_exp.cl"), words)
        code.append(text.rstrip("\n").split("\n"))
    code += [macros, *helper_texts(plan, plain), *lifted, *loops.folds.text(), body.rstrip("\n").split("\n")]
    return assemble(plan, baked, kernel, code)


def write(draft: TemplateDraft, problem: Problem) -> str:
    """The template's text; raises `Unwritable`, with the reason, where the scheme does not carry.

    Choices that change nothing in this kernel are left out, and what is said of them holds for their default.
    """
    text = _write(draft, problem)
    idle = [choice for choice in draft.schedule.choices if not _is_used(choice.name, text)]
    return _write(without(draft, idle), problem) if idle else text


def _write(draft: TemplateDraft, problem: Problem) -> str:
    plan = make_plan(draft, problem)
    return _write_opencl(plan) if plan.language == "opencl" else _write_gpu(plan)


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


def without(draft: TemplateDraft, idle: Sequence[ParameterChoice]) -> TemplateDraft:
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


def fast_math(plan: WritingPlan) -> FastMath:
    schedule, source = plan.draft.schedule, plan.kernel.source
    fast, reciprocal = (c.name if c is not None else "" for c in (schedule.fast, schedule.reciprocal))
    results = {f.name: f.result for f in source.functions if not f.template}
    return FastMath(plan.language, plan.names, fast, reciprocal, results, dict(source.aliases))


def _write_gpu(plan: WritingPlan) -> str:
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
        types = packs(plan.draft.schedule, plan.language, called, loops.settles)
        code.insert(0, types.rstrip("\n").split("\n"))
    return assemble(plan, baked, kernel, code)


def assemble(plan: WritingPlan, baked: Baked, kernel: KernelText, code: list[list[str]]) -> str:
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


def helper_texts(plan: WritingPlan, fast: FastMath) -> list[list[str]]:
    convert = plan.draft.schedule.convert
    switch = convert.name if convert is not None else ""
    hardware = dict(plan.draft.hardware)
    found = []
    for function in used_functions(plan.kernel):
        text = helper_text(function, fast, plan.language, hardware.get(function.name, ""), switch)
        found.append(text.rstrip("\n").split("\n"))
    return found


def macros(plan: WritingPlan, baked: Baked, code: list[list[str]]) -> list[str]:
    """Parameters with their defaults; what is no parameter is a plain constant."""
    lines: list[str] = []
    for choice in plan.draft.schedule.choices:
        lines += [f"#ifndef {choice.name}", f"#define {choice.name} {choice.default}", "#endif"]
    lines += baked.defaults()
    knobs: list[Knob] = [k for k in vars(plan.knobs).values() if isinstance(k, Knob) and not k.is_parameter]
    return lines + used_defines([f"#define {knob.name} {knob.default}" for knob in knobs], code)


def about(plan: WritingPlan) -> list[str]:
    """What the file is, for whoever opens it."""
    if plan.is_flat:
        how = "Elements stand alone: blocks take runs of them, threads neighbouring vectors of a run."
    else:
        over = ", ".join(task.name for task in plan.kernel.tasks)
        how = f"A task is one ({over}); {plan.knobs.lanes.name} threads share it."
    moves = f"Written by Tunesmith from {plan.problem.kernel.path.rsplit('/', 1)[-1]}."
    return ["//", f"// {plan.problem.name}: {moves}", f"// {how}"]
