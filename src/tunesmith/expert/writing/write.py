"""A draft as the text of a template file: one kernel, every choice of its schedule a macro."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.lex import without_comments
from tunesmith.csource.printing import print_function, print_statements
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.writing.cpu_loops import CpuLoops
from tunesmith.expert.writing.fast_math import FastMath, helper_text, preamble, used_functions
from tunesmith.expert.writing.gpu_beside import SideBySide
from tunesmith.expert.writing.heading import Heading, fixed_values, header, own_launch, settled_pairs
from tunesmith.expert.writing.kernel_text import KernelText
from tunesmith.expert.writing.naming import Knob
from tunesmith.expert.writing.plan import WritingPlan, make_plan
from tunesmith.expert.writing.rules import Baked
from tunesmith.problem.problem import Problem
from tunesmith.problem.template_source import WORD, find_block, used_words
from tunesmith.problem.unused import without_unused
from tunesmith.problem.usual import usual_name
from tunesmith.space.expr import parse
from tunesmith.space.settled import settled

_USING = ("", "[defines]", "[build]", "[launch]")  # tables whose words are uses; "": build.flags
_OF_CODE = frozenset(("VEC", "ITEMS"))


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
    return [(name, " ".join(line.split())) for line in lines for name in _names(line)]


def _names(line: str) -> list[str]:
    """Of a parameter, or of several that are declared alike: `"LANES_1, LANES_2" = [32, 64]`."""
    return WORD.findall(line.split('"')[1]) if line.startswith('"') else WORD.findall(line)[:1]


def unused(choices: Iterable[ParameterChoice], text: str) -> list[ParameterChoice]:
    """Those that a template's text does not declare, or has nowhere in its code, its launch or its flags.

    What has one value is no parameter, and not meant. How much a thread takes at once is the code's to say:
    in the launch alone it only changes how many blocks there are."""
    words = {word for title, line in _table_lines(text) if title in _USING for word in WORD.findall(line)}
    words = {word for word in words if usual_name(word)[0] not in _OF_CODE}
    used = {name for name, _ in declared(text)} & (words | used_words(without_comments(text)))
    return [choice for choice in choices if choice.name not in used and len(choice.values) > 1]


def write(draft: TemplateDraft, problem: Problem) -> str:
    """The template's text; raises `Unwritable`, with the reason, where the scheme does not carry.

    Choices that change nothing in this kernel are left out, and what is said of them holds for their default.
    """
    text = _write(draft, problem)
    idle = unused(draft.schedule.choices, text)
    return _write(without(draft, idle), problem) if idle else text


@dataclass(frozen=True)
class KernelPage:
    """A kernel of a template before it is text: what a file says of it, and its code piece by piece."""

    plan: WritingPlan
    heading: Heading  # its one launch as far as the kernel itself decides of it
    preamble: tuple[str, ...]  # what it takes of the user's file
    code: tuple[str, ...]  # the last is the kernel

    @property
    def entry(self) -> str:
        return self.plan.kernel.function.name


def page_of(draft: TemplateDraft, problem: Problem) -> KernelPage:
    plan = make_plan(draft, problem)
    on_cpu, fast, baked = plan.language == "opencl", fast_math(plan), Baked.of(plan)
    loops = CpuLoops(plan, fast) if on_cpu else SideBySide(plan, fast)
    scalar = FastMath(plan.language, plan.names) if on_cpu else fast  # a CPU's fast forms are for vectors
    kernel, helpers = KernelText(plan, scalar, baked, loops), helper_texts(plan, scalar)
    body = kernel.text()  # first of all: it asks for macros and functions
    functions = [print_function(function, plan.language).strip() for function in loops.functions()]
    macros = (fast.macros([*helpers, *functions, body]), loops.division.macros())
    defines = print_statements(kernel.defines(), 0, plan.language)
    code = (
        *("\n".join(defaults(plan, baked)), defines, *loops.before()),
        *(*macros, *helpers, *functions, body),
    )
    above = announced(preamble(plan.kernel.source), helpers)
    return KernelPage(plan, header(plan, baked, ()), tuple(above), code)


def announced(lines: Sequence[str], helpers: Iterable[str]) -> list[str]:
    """What stands above all else, with a declaration of each helper that a type there calls."""
    done = list(lines)
    for helper in helpers:
        head = helper.partition("{")[0].strip()
        name = re.search(r"(\w+)\s*\(", head)
        if name is None or "#" in head or "=" in head:
            continue
        calls = re.compile(rf"\b{name[1]}\s*\(")
        at = next((at for at, line in enumerate(done) if calls.search(line)), None)
        if at is not None:
            done.insert(at, f"{head};")
    return done


def _write(draft: TemplateDraft, problem: Problem) -> str:
    page = page_of(draft, problem)
    # Of macros, helpers and their methods only what some configuration uses.
    text = without_unused(pieces_text(("\n".join(page.preamble), *page.code)), ())
    launch = own_launch(page.plan, page.heading.launches[0])
    heading = replace(page.heading, launches=(launch,), in_code=in_code(draft.schedule.choices, text))
    return "\n".join([*heading.lines(), *about(page.plan), "", text])


def pieces_text(pieces: Iterable[str]) -> str:
    return "\n\n".join(piece.rstrip("\n") for piece in pieces if piece.strip()) + "\n"


def in_code(choices: Iterable[ParameterChoice], text: str) -> frozenset[str]:
    """Parameters whose defaults the text has."""
    return frozenset(choice.name for choice in choices if f"#ifndef {choice.name}\n" in text)


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
    knobs, source = plan.knobs, plan.kernel.source
    functions = tuple(f for f in source.functions if not f.template)
    return FastMath(
        plan.language, plan.names, knobs.fast.name, knobs.reciprocal.name, functions, dict(source.aliases)
    )


def helper_texts(plan: WritingPlan, fast: FastMath) -> list[str]:
    hardware = dict(plan.draft.hardware)
    return [
        helper_text(function, fast, plan.language, hardware.get(function.name, ""), plan.knobs.convert.name)
        for function in used_functions(plan.kernel)
    ]


def defaults(plan: WritingPlan, baked: Baked) -> list[str]:
    """Parameters with their defaults; what is no parameter is a plain constant."""
    lines: list[str] = []
    fixed = fixed_values(plan.draft.schedule.choices)
    for choice in plan.draft.schedule.choices:
        lines += default_lines(choice.name, choice.default) if choice.name not in fixed else ()
    for size in baked.sizes:
        lines += default_lines(size.macro, 0)
    for size in baked.always:
        value = parse(size.value).evaluate(plan.problem.workloads[0].as_dict())
        lines += default_lines(size.macro, value)
    knobs: list[Knob] = list(vars(plan.knobs).values())
    fixed |= {knob.name: knob.default for knob in knobs if knob.name and not knob.is_parameter}
    return lines + [f"#define {name} {value}" for name, value in fixed.items()]


def about(plan: WritingPlan) -> list[str]:
    """What the file is, for whoever opens it."""
    moves = f"Written by Tunesmith from {plan.problem.kernel.path.rsplit('/', 1)[-1]}."
    return ["//", f"// {plan.problem.name}: {moves}", f"// {how_shared(plan)}"]


def how_shared(plan: WritingPlan) -> str:
    """How the kernel's threads share its work, in a sentence."""
    if plan.is_flat:
        return "Elements stand alone: blocks take runs of them, threads neighbouring vectors of a run."
    if "tile" in plan.draft.schedule:
        return "A block takes a tile: along one axis into shared memory, along another out of it."
    over = ", ".join(task.name for task in plan.kernel.tasks)
    return f"A task is one ({over}); {plan.knobs.lanes.name} threads share it."
