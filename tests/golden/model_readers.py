"""What the expert reads kernels as, and what single steps on the way there leave of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tests.core.source.reading import expression_of, statements_of
from tests.golden.csource_readers import on_one_line
from tests.golden.made_problems import made_problem
from tests.running import FIXTURES
from tunesmith.backends.binaries import as_compiled
from tunesmith.backends.cuda.devices import absent_device as nvidia
from tunesmith.backends.hip.devices import absent_device as amd
from tunesmith.expert.author import reading_lines, try_read_kernel
from tunesmith.expert.read.contract import SizeBounds, with_decided, with_promised
from tunesmith.expert.read.integers import (
    LaunchTerms,
    conditions_for_multiple,
    from_sizes,
    index_stride,
    launch_terms,
    same_value,
    simplify_expr,
    split_affine,
    to_sizes,
)
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import Each, KernelModel, Let, NotReadable, Once, Repeat, Step, When
from tunesmith.expert.read.rules.launched_loops import turned_once
from tunesmith.expert.read.rules.loops import with_scratch_in_loops, without_single_turns
from tunesmith.expert.read.rules.pointers import (
    in_elements,
    with_arrays_for_pointers,
    with_branches_for_pointers,
)
from tunesmith.expert.read.rules.tidy import tidy_statements
from tunesmith.expert.read.words import explain_lines, fact_lines
from tunesmith.problem.problem import Problem, SizeRule
from tunesmith.session.problems import load_problem
from tunesmith.source import tree as c
from tunesmith.source.printing import print_expr, print_statements
from tunesmith.source.reader.parse import read_expression, read_source_tree
from tunesmith.source.tree import Language
from tunesmith.space.expr import parse_expr

Reader = Callable[..., Iterable[str]]
Told = object


def problem_of(text: str, told: dict[str, Any]) -> Problem:
    """That of the case, or of a folder that is named; as it is compiled for a device, where one is named."""
    folder, device = told.pop("folder", ""), told.pop("compiled_for", "")
    problem = load_problem(FIXTURES / folder).definition if folder else made_problem(text, **told)
    return as_compiled(problem, (amd if device.startswith("gfx") else nvidia)(device)) if device else problem


# -- whole readings


def read_model(text: str, **told: Any) -> Iterator[str]:
    """All of a model that its words do not say as well; or why there is none."""
    model = lift_kernel(problem_of(text, told))
    if isinstance(model, NotReadable):
        yield f"not read: {model.reason}"
        return
    yield f"{model.team}: {summary(model)}"
    yield from bodies(model.steps, model.source.language)
    yield from (f"keeps {row.name}: {row.width} {row.type.base}" for row in model.staged)
    for access in model.accesses:
        within = f" within {', '.join(map(print_expr, access.within))}" if access.within else ""
        yield f"{access.kind} {access.array}[{print_expr(access.index)}]: {access.stride}{within}"
    yield from (f"note: {note}" for note in model.notes)
    yield from fact_lines(model)[1:]
    if model.waits:
        yield "waits for the launch ahead"
    yield from (f"read at {name} = {value}" for name, value in model.pinned)


def read_words(text: str, **told: Any) -> Iterator[str]:
    yield from explain_lines(lift_kernel(problem_of(text, told)))


def read_refusal(text: str, around: str, **told: Any) -> Iterator[str]:
    """Whether a kernel is read, in one line, with the text where `VALUE` stands."""
    found = lift_kernel(problem_of(around.replace("VALUE", text), told))
    yield f"not read: {found.reason}" if isinstance(found, NotReadable) else summary(found)


def read_obstacles(text: str, **told: Any) -> Iterator[str]:
    problem = problem_of(text, told)
    yield from reading_lines(problem, try_read_kernel(problem))


def summary(kernel: KernelModel) -> str:
    """`token<tokens | each 0..d +sum; let scale; each 0..d`"""
    tasks = ", ".join(f"{task.name}<{task.size or print_expr(task.extent)}" for task in kernel.tasks)
    return f"{tasks} | {steps_in_short(kernel.steps)}".strip()


def steps_in_short(steps: Sequence[Step]) -> str:
    return "; ".join(map(step_in_short, steps))


def step_in_short(step: Step) -> str:
    match step:
        case Each():
            totals = "".join(f" {total.operator}{total.name}" for total in step.totals)
            again = " again" if step.again else ""
            return f"each{again} {print_expr(step.start)}..{print_expr(step.stop)}{totals}"
        case Let(body=body):
            return "let " + ", ".join(stmt.name for stmt in body if isinstance(stmt, c.Declare))
        case Once(body=body):
            return f"once {len(body)}"
        case When():
            other = f" else {{{steps_in_short(step.otherwise)}}}" if step.otherwise else ""
            return f"when {print_expr(step.condition)} {{{steps_in_short(step.then)}}}{other}"
        case Repeat():
            return f"again {step.index} {{{steps_in_short(step.body)}}}"


def bodies(steps: Sequence[Step], language: Language) -> Iterator[str]:
    for step in steps:
        match step:
            case When():
                yield from (*bodies(step.then, language), *bodies(step.otherwise, language))
            case Repeat():
                yield from bodies(step.body, language)
            case _:
                starts = [
                    f"{total.name} from {print_expr(total.start)} {total.combine}".rstrip()
                    for total in getattr(step, "totals", ())
                ]
                head = step_in_short(step) + (f" ({', '.join(starts)})" if starts else "")
                text = print_statements(step.body, 1, language).rstrip("\n")
                yield f"{head}:\n{text}"


# -- single steps


def as_function(text: str, parameters: tuple[c.Parameter, ...] = ()) -> c.Function:
    return c.Function("k", parameters, statements_of(text), c.Type("void"))


def read_tidied(text: str, language: Language, parameters: str, **_: Told) -> Iterator[str]:
    head = "__kernel" if language == "opencl" else "__global__"
    source = read_source_tree(f"{head} void k({parameters}) {{ {text} }}", language)
    (function,) = source.functions
    yield on_one_line(tidy_statements(function.body, source, function.parameters))


def read_byte_pointers(text: str, arguments: dict[str, str], **_: Told) -> Iterator[str]:
    launch = LaunchTerms({name: parse_expr(value).tree for name, value in arguments.items()}, {})
    names = (c.Parameter(c.Type("int"), name) for name in (*arguments, "i"))
    function = as_function(text, (c.Parameter(c.Type("float", 1), "x"), *names))
    yield on_one_line(in_elements(function, function.body, launch))


def read_promised(text: str, **told: Any) -> Iterator[str]:
    """What alignment and remainders of the contract leave of a body."""
    kernel = f"__global__ void k(const float *x, float *out, int rows, int d) {{ {text} }}"
    source = read_source_tree(kernel, "cuda")
    (function,) = source.functions
    done, facts = with_promised(function, source, problem_of(kernel, told))
    yield on_one_line(done.body)
    yield from (f"since {fact.what} ({fact.where})" for fact in facts)


def read_decided(text: str, fixed: dict[str, int], arrays: Sequence[str], **_: Told) -> Iterator[str]:
    done, names = with_decided(as_function(text), fixed, frozenset(arrays))
    yield on_one_line(done.body) + (f" // by {', '.join(sorted(names))}" if names else "")


def read_single_turns(text: str, fixed: dict[str, int], **_: Told) -> Iterator[str]:
    done, names = without_single_turns(as_function(text), fixed)
    body = tidy_statements(done.body, c.Source("cuda", (), ()), ())
    yield on_one_line(body) + (f" // by {', '.join(sorted(names))}" if names else "")


def read_scratch(text: str, **_: Told) -> Iterator[str]:
    yield on_one_line(with_scratch_in_loops(statements_of(text)))


def read_chosen_pointers(text: str, **_: Told) -> Iterator[str]:
    yield on_one_line(with_branches_for_pointers(statements_of(text), ()))


def read_local_pointers(text: str, **_: Told) -> Iterator[str]:
    yield on_one_line(with_arrays_for_pointers(statements_of(text)))


def read_passed_tests(text: str, **told: Any) -> Iterator[str]:
    launch = launch_terms(problem_of(text, told), ("x", "out", "rows", "d"))
    yield on_one_line(turned_once(statements_of(text), launch))


# -- arithmetic


def read_affine(text: str, **_: Told) -> Iterator[str]:
    """`a * i + b`, with a multiple of it that is a stride; what is no such sum has none."""
    expr = read_expression(text)
    found, step = split_affine(expr, "i"), index_stride(expr, "i")
    yield f"({print_expr(found[0])}) * i + ({print_expr(found[1])})" if found is not None else "no sum"
    if step is None:
        yield "no stride"
    else:
        within = f" within {', '.join(map(print_expr, step.within))}" if step.within else ""
        yield f"stride {step.step}{within}"


def read_same_value(text: str, **_: Told) -> Iterator[str]:
    left, right = map(read_expression, text.split(" == "))
    yield f"{'the same' if same_value(left, right) else 'not proved'}: {print_expr(simplify_expr(left))}"


def read_multiples(text: str, names: Sequence[str], **_: Told) -> Iterator[str]:
    found = conditions_for_multiple(read_expression(text), set(names))
    yield "none" if found is None else "; ".join(sorted(map(print_expr, found)))


def read_sizes(text: str, values: dict[str, str], **_: Told) -> Iterator[str]:
    known = {name: parse_expr(value).tree for name, value in values.items()}
    yield to_sizes(read_expression(text), known) or "none"


def read_from_sizes(text: str, values: dict[str, str], **_: Told) -> Iterator[str]:
    found = from_sizes(
        parse_expr(text).tree, {name: parse_expr(value).tree for name, value in values.items()}
    )
    yield "none" if found is None else print_expr(found)


def read_never_negative(
    text: str,
    sizes: dict[str, list[int]],
    one_of: dict[str, list[int]],
    values: dict[str, str],
    ranges: dict[str, list[str]],
    **_: Told,
) -> Iterator[str]:
    rules = [SizeRule(name, low, high) for name, (low, high) in sizes.items()]
    rules += [SizeRule(name, 0, 0, 1, tuple(listed)) for name, listed in one_of.items()]
    known = {name: parse_expr(value).tree for name, value in values.items()}
    ends = {name: (expression_of(low), expression_of(high)) for name, (low, high) in ranges.items()}
    is_sure = SizeBounds(tuple(rules), known, ends).never_negative(expression_of(text))
    yield "never negative" if is_sure else "not proved"


MODEL: dict[str, Reader] = {
    "affine": read_affine,
    "byte pointers": read_byte_pointers,
    "chosen pointers": read_chosen_pointers,
    "decided": read_decided,
    "explained": read_words,
    "from sizes": read_from_sizes,
    "local pointers": read_local_pointers,
    "model": read_model,
    "multiples": read_multiples,
    "never negative": read_never_negative,
    "obstacles": read_obstacles,
    "passed tests": read_passed_tests,
    "promised": read_promised,
    "refusal": read_refusal,
    "same value": read_same_value,
    "scratch": read_scratch,
    "single turns": read_single_turns,
    "sizes": read_sizes,
    "tidied": read_tidied,
}
