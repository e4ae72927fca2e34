"""What the expert's moves make of kernels: knobs opened, moves drafted, or refused and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.core.expert.moves.kernels import CPU, GPU, searched
from tests.golden.model_readers import problem_of
from tests.samples import HOPPER
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.moves import LOCAL_MOVES, MOVES
from tunesmith.expert.moves.convert import recognise_format, run_function
from tunesmith.expert.moves.move import Context
from tunesmith.expert.moves.text_edits import find_site, start_draft, template_text
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel, TemplateDraft
from tunesmith.expert.write.rules import structural_rules
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Declined, Refactoring
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.tree import Language
from tunesmith.space.expr import parse_expr

Reader = Callable[..., Iterable[str]]
Told = object


def read_knobs(text: str, **told: Any) -> Iterator[str]:
    """The knobs of a text, its launch by them, and the lines that changed."""
    problem = problem_of(text, {"base": "work", **told})
    device = CPU if problem.kernel.language == "opencl" else absent_device("H200")
    found = ExpertAuthor().write(Refactoring(("knobs",)), problem, device)
    if isinstance(found, Declined):
        yield f"declined: {found.reason}"
        return
    template = parse_template(found.text, path="template.cu", problem=problem)
    yield from of_template(template)
    yield from changed_lines(problem.kernel.text, found.text, template)
    yield from (f"note: {note}" for note in found.notes)


def of_template(template: Template) -> Iterator[str]:
    for param in template.space.params:
        yield f"{param.name} = {template.default[param.name]} of {', '.join(map(str, param.values))}"
    for launch in template.launches:
        shared = f" with {launch.shared.text} bytes" if launch.shared is not None else ""
        grid, block = (", ".join(e.text for e in axes) for axes in (launch.grid, launch.block))
        yield f"launch {launch.entry}: ({grid}) blocks of ({block}){shared}"
    yield from (f"{rule.kind} {rule.name}: {rule.expr.text}" for rule in template.space.constraints)
    yield from (f"answers {remedy}: {expr.text}" for remedy, expr in template.answers)


def read_moves(
    text: str, moves: Sequence[str], device: str = "gpu", capability: int = 90, **told: Any
) -> Iterator[str]:
    """Choices, conditions and answers after each row of moves; or why one of them does not apply."""
    problem = problem_of(text, {"base": "moves", **told})
    gpu = replace(GPU, limits=replace(HOPPER, capability=capability))
    context = Context(problem, CPU if device == "cpu" else gpu)
    kernel = lift_kernel(problem)
    if not isinstance(kernel, KernelModel):
        yield f"not read: {kernel.reason}"
        return
    for names in moves:
        yield f"-- {names}"
        yield from after_moves(TemplateDraft(kernel), names.split(), context, problem)


def after_moves(
    draft: TemplateDraft, names: Sequence[str], context: Context, problem: Problem
) -> Iterator[str]:
    for name in names:
        move = next(move for move in MOVES if move.name == name)
        found = move.apply(draft, context)
        if isinstance(found, str):
            yield f"{name} is refused: {found}"
            return
        draft = found
    for role, choice in draft.schedule.items():
        kind = ", categorical" if choice.categorical else ""
        values = ", ".join(map(str, choice.values))
        yield f"{role}: {choice.name} = {choice.default} of {values}{kind}; {choice.note}"
    yield from (f"requires {name}: {text}" for name, text in structural_rules(draft, problem))
    yield from (f"requires {name}: {text}" for name, text in draft.require)
    whole = searched(draft, problem)
    yield from (f"prefers {name}: {text}" for name, text in whole.prefer)
    yield from (f"answers {remedy}: {text}" for remedy, text in whole.answers)
    yield from (f"{helper} by hardware: {statement}" for helper, statement in draft.hardware)


def read_local_moves(text: str, moves: str = "", **told: Any) -> Iterator[str]:
    """The parameters and the lines that local moves add to a text, and why others do not apply."""
    problem = problem_of(text, {"base": "blur", **told})
    site = find_site(problem)
    if isinstance(site, str):
        yield f"left alone: {site}"
        return
    context, draft = Context(problem, GPU), start_draft(site, problem)
    for move in LOCAL_MOVES:
        if move.name in (moves.split() or [move.name]):
            found = move.apply(draft, context)
            if isinstance(found, str):
                yield f"{move.name} is refused: {found}"
            else:
                draft = found
    if not draft.moves:
        return
    whole = template_text(draft, context)
    template = parse_template(whole, path="template.cu", problem=problem)
    yield from of_template(template)
    yield from changed_lines(problem.kernel.text, whole, template)


def changed_lines(old: str, whole: str, template: Template) -> Iterator[str]:
    """What a template has behind its heading and its defaults that the text does not have."""
    defaults = tuple(f"#{word} {p.name}" for p in template.space.params for word in ("ifndef", "define"))
    defaults += ("#endif",)
    known = {
        *old.splitlines(),
        "//",
        "// The original, kernel.cu, with its own text and a few choices left open.",
    }
    body = whole.partition("// ///\n")[2].rpartition("// ///\n")[2] or whole.rpartition("// ///\n")[2]
    for line in body.splitlines():
        if line not in known and not line.startswith(defaults):
            yield f"changed: {line}"


def read_call(
    text: str, moves: str, edits: Sequence[Sequence[str]] = (), when: str = "", looks_for: Sequence[str] = (),
    arch: str = "sm_90", **told: Any,
) -> Iterator[str]:  # fmt: skip
    """What is written of a call of a folder, after edits of its text: moves, notes, launches, parameters."""
    problem = problem_of(text, told)
    for old, new in edits:
        assert old in problem.kernel.text, old
        problem = replace(problem, kernel=replace(problem.kernel, text=problem.kernel.text.replace(old, new)))
    if when:
        *ahead, last = problem.launches
        problem = replace(problem, launches=(*ahead, replace(last, when=parse_expr(when))))
    found = ExpertAuthor().write(Refactoring(tuple(moves.split())), problem, absent_device(arch))
    if isinstance(found, Declined):
        yield f"declined: {found.reason}"
        return
    yield f"moves: {' '.join(found.moves)}"
    yield from (f"{name} is refused: {why}" for name, why in found.refused)
    yield from (f"{name} leaves out: {why}" for name, why in found.skipped)
    yield from (f"note: {note}" for note in found.notes)
    template = parse_template(found.text, path="template.cu", problem=problem)
    for launch in template.launches:
        condition = f" when {launch.when.text}" if launch.when is not None else ""
        yield f"launch {launch.entry}({', '.join(launch.args)}){condition}{' overlapping' * bool(launch.pdl)}"
    yield f"parameters: {' '.join(param.name for param in template.space.params)}"
    yield from (f"{rule.kind} {rule.name}: {rule.expr.text}" for rule in template.space.constraints)
    yield from (f"{found.text.count(words)} times: {words}" for words in looks_for)


def read_conversion(text: str, language: Language, **_: Told) -> Iterator[str]:
    """The number format that a helper converts to, by what it gives."""
    (function,) = read_source_tree(text, language).functions
    found = recognise_format(function)
    yield found.name if found is not None else "none"


def read_run(text: str, language: Language, **_: Told) -> Iterator[str]:
    """`0.5 -> return v > 1.0f;`: what a helper gives for a number."""
    argument, _arrow, body = text.partition(" -> ")
    source = read_source_tree(f"__device__ unsigned int f(float v) {{ {body} }}", language)
    yield str(run_function(source.functions[0], float(argument)))


MOVE_READERS: dict[str, Reader] = {
    "call": read_call,
    "conversion": read_conversion,
    "knobs": read_knobs,
    "local moves": read_local_moves,
    "moves": read_moves,
    "run": read_run,
}
