"""A draft as the text of a template file: one kernel, every choice of its schedule a macro."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources

from tunesmith.csource.lex import without_comments
from tunesmith.csource.nodes import (
    BLANK,
    Alternative,
    Assign,
    Binary,
    Cast,
    Comment,
    MacroDefinition,
    Member,
    Name,
    Stmt,
    Type,
    Verbatim,
)  # fmt: skip
from tunesmith.csource.printing import print_function, print_statements
from tunesmith.csource.types import integer
from tunesmith.csource.walk import calls_in, names_in
from tunesmith.expert.model.kernel import ParameterChoice, Schedule, TemplateDraft
from tunesmith.expert.writing.cpu_loops import CpuLoops, Lift
from tunesmith.expert.writing.fast_math import FastMath, helper_text, preamble, used_functions
from tunesmith.expert.writing.gpu_beside import SideBySide
from tunesmith.expert.writing.heading import fixed_values, header, settled_pairs
from tunesmith.expert.writing.kernel_text import KernelText, guard
from tunesmith.expert.writing.naming import Knob, Names, Unwritable
from tunesmith.expert.writing.plan import WritingPlan, make_plan
from tunesmith.expert.writing.rules import Baked
from tunesmith.expert.writing.team_totals import CpuTotals, TeamTotals
from tunesmith.problem.problem import Problem
from tunesmith.problem.template_source import WORD, find_block, used_words
from tunesmith.problem.unused import without_unused
from tunesmith.space.expr import parse
from tunesmith.space.settled import settled

_USING = ("", "[defines]", "[build]", "[launch]")  # tables whose words are uses; "": build.flags


def default_lines(name: str, value: object) -> tuple[str, ...]:
    """A macro's value where a build gives it none."""
    return f"#ifndef {name}", f"#define {name} {value}", "#endif"


def _table_lines(text: str) -> Iterator[tuple[str, str]]:
    """The lines of a template's declaration, each with the title above it."""
    title = ""
    for line in find_block(text, "template").toml.splitlines():
        title = line.strip() if line.startswith("[") else title
        yield title, "" if line.startswith("[") else line


def declared(text: str) -> list[tuple[str, str]]:
    """Name and line of each parameter, with the remark behind it."""
    lines = [line for title, line in _table_lines(text) if title == "[params]"]
    return [(name, " ".join(line.split())) for line in lines for name in WORD.findall(line)[:1]]


def unused(choices: Iterable[ParameterChoice], text: str) -> list[ParameterChoice]:
    """Those that a template's text does not declare, or has nowhere in its code, its launch or its flags.

    What has one value is no parameter, and not meant."""
    words = {word for title, line in _table_lines(text) if title in _USING for word in WORD.findall(line)}
    used = {name for name, _ in declared(text)} & (words | used_words(without_comments(text)))
    return [choice for choice in choices if choice.name not in used and len(choice.values) > 1]


# -- packs of neighbours in CUDA and HIP: their types, and how they are moved --------------------------


_OWN = ("settle_word", "Pack", "word_of", "two_words", "four_words", "fetch_once", "fetch_shared", "put_once")


def own_names(names: Names) -> dict[str, str]:
    """What `gpu_packs.cuh` defines -> what it is called, should the source use a word of ours."""
    return {word: names.fresh(word) for word in _OWN}


def packs(
    schedule: Schedule, language: str, called: Mapping[str, str], settles: bool, copies: tuple[str, str]
) -> str:
    """The types for packs; hinted ways of moving them where the schedule has hints.

    `copies`: further ways, as what comes before the type and its methods.
    """
    hip, at = language == "hip", "reinterpret_cast<{}word *>({})[w]"
    own, source, target = at.format("", "at"), at.format("const ", "from"), at.format("", "to")
    value = at.format("const ", "at")
    loads, stores = {"load": source}, {"store": f"{target} = {value}"}
    before = ""
    if "load_hint" in schedule:
        hint = schedule["load_hint"].name
        both = {"fetch_once": ".nc", "fetch_shared": ""}
        if hip:
            before += "".join(_part("hip load", HINT=hint, NAME=name) for name in both)
        else:
            special = "".join(_part("load past L1", NAME=name, PATH=path) for name, path in both.items())
            before += _part("load hints", HINT=hint) + special.rstrip("\n") + "\n#endif\n\n"
        loads |= {"load_once": f"fetch_once(&{source})", "load_shared": f"fetch_shared(&{source})"}
    if "store_hint" in schedule:
        store = "__builtin_nontemporal_store(value, to)" if hip else "__stcs(to, value)"
        before += _part("store hint", HINT=schedule["store_hint"].name, STORE=store)
        stores["store_once"] = f"put_once(&{target}, {value})"
    methods = [_method(name, "(const T *from)", f"{own} = {text}") for name, text in loads.items()]
    methods += [_method(name, "(T *to) const", text) for name, text in stores.items()]
    if settles:
        before += _part("settle")
        methods.append(_method("settle", "()", f"settle_word({own})"))
    two, four = ("two_words", "four_words") if hip else ("uint2", "uint4")
    words = (_part("hip types") if hip else "") + _part("words", TWO=two, FOUR=four)
    text = f"{words}\n{before}{copies[0]}{_part('pack', METHODS=''.join((*methods, copies[1])))}"
    return re.sub(r"\b(" + "|".join(called) + r")\b", lambda found: called[found.group()], text)


def _method(name: str, arguments: str, statement: str) -> str:
    return _part("method", NAME=name, ARGUMENTS=arguments, STATEMENT=statement)


@cache
def resource(name: str) -> str:
    return resources.files("tunesmith.expert.writing").joinpath(name).read_text(encoding="utf-8")


def filled(text: str, words: Mapping[str, str]) -> str:
    """With words in the places of @WORD@."""
    return re.sub(r"@([A-Z]+)@", lambda found: words[found.group(1)], text)


def _part(name: str, **words: str) -> str:
    """A part of `gpu_packs.cuh`, with words in their places."""
    parts = dict(part.split("\n", 1) for part in resource("gpu_packs.cuh").split("//= ")[1:])
    return filled(parts[name], words)


# -- OpenCL C for a CPU, as the text of a template file ---------------------------------------------


def _vector_types(knob: Knob, own: Mapping[str, str], loops: CpuLoops) -> tuple[Stmt, ...]:
    """Vectors by the number of their elements, what their bits are, and how they are moved."""
    kinds: tuple[Stmt, ...] = ()
    for value in reversed(knob.values):
        digits = "" if value == 1 else str(value)
        types = [Verbatim(f"typedef {word}{digits} {own[word]};") for word in ("float", "int")]
        casts = [MacroDefinition(own[word], Name(f"{word}{digits}")) for word in ("as_float", "as_int")]
        kinds = (Alternative(Binary("==", Name(knob.name), integer(value)), (*types, *casts), kinds),)
    about = "A row may start at any float. A packed struct says so, and unlike vloadN it is never a call."
    struct = f"typedef struct __attribute__((packed)) {{ {own['float']} v; }} {own['unaligned']};"
    at = Type(own["unaligned"], 1, space="global")
    load = Member(Cast(replace(at, const=True), Name("from")), "v", arrow=True)
    store = Assign("=", Member(Cast(at, Name("to")), "v", arrow=True), Name("x"))
    return (
        *kinds,
        Verbatim(struct, comments=(BLANK, Comment(about))),
        MacroDefinition(str(loops.words.words["LOAD"]), load, ("from",)),
        MacroDefinition(str(loops.words.words["STORE"]), store, ("x", "to")),
    )


def _write_opencl(plan: WritingPlan) -> str:
    fast = fast_math(plan)
    if plan.kernel.staged:
        raise Unwritable("a loop leaves values for a later one in local memory, which a CPU has no use for")
    if any(value not in (1, 2, 4, 8, 16) for value in plan.knobs.vector.values):
        raise Unwritable("OpenCL has vectors of 2, 4, 8 and 16 elements")
    fresh = plan.names.fresh
    words = {"float": "vec", "int": "ivec", "as_float": "AS_VEC", "as_int": "AS_IVEC"}
    own = {word: fresh(name) for word, name in words.items()}
    baked, totals, inside = Baked.of(plan), CpuTotals(plan), guard(plan)
    functions = {f.name: f for f in used_functions(plan.kernel)}
    plain = FastMath(plan.language, plan.names)  # fast forms are for vectors; what is scalar stays as it is
    lift = Lift(own["float"], plan.names, functions, fast)
    loops = CpuLoops(plan, fast, totals, inside, lift)
    kernel = KernelText(plan, plain, baked, loops, totals, inside)
    body = kernel.text()
    types: tuple[Stmt, ...] = ()
    if loops.uses_vectors:
        types = _vector_types(plan.knobs.vector, {**own, "unaligned": fresh("unaligned")}, loops)
    lifted = [print_function(f, "opencl").strip() for f in lift.written]
    macros = fast.macros("\n".join([body, *lifted]))
    code = [print_statements(types, 0, "opencl")]
    if "fast_exp" in {call.function for call in calls_in(macros)}:
        places = {"VEC": own["float"], "IVEC": own["int"], "ASVEC": own["as_float"], "ASIVEC": own["as_int"]}
        code.append(filled(resource("fast_exp.cl"), {**places, "FAST": fast.fast}))
    folds = [print_function(f, "opencl").strip() for f in loops.folds.functions()]
    code += [print_statements(macros), *helper_texts(plan, plain), *lifted, *folds, body]
    return assemble(plan, baked, kernel, code)


def write(draft: TemplateDraft, problem: Problem) -> str:
    """The template's text; raises `Unwritable`, with the reason, where the scheme does not carry.

    Choices that change nothing in this kernel are left out, and what is said of them holds for their default.
    """
    text = _write(draft, problem)
    idle = unused(draft.schedule.choices, text)
    return _write(without(draft, idle), problem) if idle else text


def _write(draft: TemplateDraft, problem: Problem) -> str:
    plan = make_plan(draft, problem)
    return _write_opencl(plan) if plan.language == "opencl" else _write_gpu(plan)


def without(draft: TemplateDraft, idle: Sequence[ParameterChoice]) -> TemplateDraft:
    """The draft without some of its choices; conditions are taken at their defaults."""
    values = {choice.name: choice.default for choice in idle}
    gone = [role for role, choice in draft.schedule.items() if choice in idle]
    return replace(
        draft,
        schedule=draft.schedule.without(*gone),
        require=settled_pairs(draft.require, values),
        prefer=settled_pairs(draft.prefer, values),
        answers=settled_pairs(draft.answers, values),
        shape=tuple(
            (name, text if name == "kind" else settled(parse(text), values).text)
            for name, text in draft.shape
        ),
    )


def fast_math(plan: WritingPlan) -> FastMath:
    schedule, source = plan.draft.schedule, plan.kernel.source
    fast, reciprocal = (schedule[r].name if r in schedule else "" for r in ("fast", "reciprocal"))
    functions = tuple(f for f in source.functions if not f.template)
    return FastMath(plan.language, plan.names, fast, reciprocal, functions, dict(source.aliases))


def _write_gpu(plan: WritingPlan) -> str:
    fast, baked = fast_math(plan), Baked.of(plan)
    called = own_names(plan.names)
    inside, totals = guard(plan), TeamTotals(plan)
    loops = SideBySide(plan, fast, totals, inside, called["Pack"])
    kernel = KernelText(plan, fast, baked, loops, totals, inside)
    helpers = helper_texts(plan, fast)
    body = kernel.text()  # before the macros are listed: it says which are used
    macros = (fast.macros("\n".join([body, *helpers])), loops.division.macros())
    code = [*map(print_statements, macros), *helpers, body]
    if any(loop.packs for loop in plan.all_loops):
        code.insert(0, packs(plan.draft.schedule, plan.language, called, loops.settles, loops.copies()))
    return assemble(plan, baked, kernel, code)


def assemble(plan: WritingPlan, baked: Baked, kernel: KernelText, code: list[str]) -> str:
    """The whole file around its parts, a blank line between them."""
    code = [print_statements(used_defines(kernel.defines(), code), 0, plan.language), *code]
    words = frozenset(WORD.findall(without_comments("\n".join(code))))
    top = [header(plan, baked, words) + about(plan), preamble(plan.kernel.source), macros(plan, baked, code)]
    parts = [*("\n".join(lines) for lines in top), *code]
    text = "\n\n".join(part.rstrip("\n") for part in parts if part.strip()) + "\n"
    # Of the helpers and their methods only what some configuration calls.
    return without_unused(text, (), since=len("\n".join(top[0])) + 1)


def used_defines(defines: Sequence[Stmt], code: Sequence[str]) -> tuple[Stmt, ...]:
    """Without those that neither the code nor a later one names."""
    words = set(WORD.findall(without_comments("\n".join(code))))

    def used(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        kept: list[Stmt] = []
        for stmt in reversed(stmts):
            if isinstance(stmt, Alternative):
                branches = used(stmt.otherwise), used(stmt.then)
                stmt = replace(stmt, then=branches[1], otherwise=branches[0])
            elif isinstance(stmt, MacroDefinition) and stmt.name not in words:
                continue
            words.update(names_in(stmt))
            kept.append(stmt)
        return tuple(reversed(kept))

    return used(defines)


def helper_texts(plan: WritingPlan, fast: FastMath) -> list[str]:
    convert = plan.draft.schedule.get("convert")
    switch = convert.name if convert is not None else ""
    hardware = dict(plan.draft.hardware)
    return [
        helper_text(function, fast, plan.language, hardware.get(function.name, ""), switch)
        for function in used_functions(plan.kernel)
    ]


def macros(plan: WritingPlan, baked: Baked, code: list[str]) -> list[str]:
    """Parameters with their defaults; what is no parameter is a plain constant."""
    lines: list[str] = []
    fixed = fixed_values(plan.draft.schedule.choices)
    for choice in plan.draft.schedule.choices:
        if choice.name not in fixed:
            lines += default_lines(choice.name, choice.default)
    for size in baked.sizes:
        lines += default_lines(size.macro, 0)
    knobs: list[Knob] = [k for k in vars(plan.knobs).values() if isinstance(k, Knob) and not k.is_parameter]
    fixed |= {knob.name: knob.default for knob in knobs}
    constants = used_defines([MacroDefinition(name, integer(n)) for name, n in fixed.items()], code)
    return lines + print_statements(constants).splitlines()


def about(plan: WritingPlan) -> list[str]:
    """What the file is, for whoever opens it."""
    if plan.is_flat:
        how = "Elements stand alone: blocks take runs of them, threads neighbouring vectors of a run."
    else:
        over = ", ".join(task.name for task in plan.kernel.tasks)
        how = f"A task is one ({over}); {plan.knobs.lanes.name} threads share it."
    moves = f"Written by Tunesmith from {plan.problem.kernel.path.rsplit('/', 1)[-1]}."
    return ["//", f"// {plan.problem.name}: {moves}", f"// {how}"]
