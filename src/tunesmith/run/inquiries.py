"""Which question of a model waits for the lab, and what the lab is then asked to do, if it may be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tunesmith.errors import BadInput
from tunesmith.problem.template import Template
from tunesmith.run.budget import exhausted_budget, noun
from tunesmith.run.candidates import Templates
from tunesmith.run.dialogue import Exchange, Role, ToolUsed
from tunesmith.run.state import State
from tunesmith.run.tools import ASKERS, ON_DEVICE, ORIGINAL, ReadCall, ToolCall, ToolFound, ToolTask


def used(turn: tuple[Exchange, ...]) -> int:
    """How many questions of a turn the lab has answered."""
    return sum(e.tool is not None for e in turn)


def pending(state: State, read: ReadCall) -> tuple[int, ToolCall] | None:
    """The first question of this turn that the lab has not answered, with the number of its request. Those
    beyond the turn's number are none."""
    last: dict[tuple[Role, int], Exchange] = {}
    for exchange in state.dialogue:
        request = exchange.request
        if request.role in ASKERS and exchange.turn == len(state.decided):
            last[request.role, request.branch] = exchange
    for (role, branch), exchange in last.items():
        if exchange.reply is None or exchange.tool is not None:
            continue
        if (
            used(state.this_turn(role, branch)) < state.settings.tools
            and (call := read(exchange)) is not None
        ):
            return exchange.request.number, call
    return None


def on_host(
    state: State,
    question: tuple[int, ToolCall] | None,
    to_do: Callable[[State, int, ToolCall], ToolTask | str],
    use: Callable[[ToolTask], ToolFound],
) -> ToolUsed | None:
    """The answer to a question where the device is absent; None: there is none, or it needs the device and
    waits for it. What may not be done is told at once, whatever it would need."""
    if question is None:
        return None
    number, call = question
    task = to_do(state, number, call)
    if isinstance(task, str):
        return ToolUsed(number, call.tool, f"This was not done: {task}")
    if call.tool in ON_DEVICE:
        return None
    found = use(task)
    return ToolUsed(number, call.tool, found.text, found.seconds, found.evals)


def task_of(
    number: int,
    call: ToolCall,
    state: State,
    templates: Templates,
    fault_of: Callable[[Template], str | None],
) -> ToolTask | str:
    """What the lab is to do; or why it does nothing. A text is judged as a draft is."""
    names = [w.name for w in templates.problem.workloads]
    workload = call.workload or names[0]
    if workload not in names:
        known = ", ".join(names)
        return (
            f"there is no workload {workload!r}; known are {known}: name one of them, or none for the first"
        )
    if call.tool in ON_DEVICE and (spent := exhausted_budget(state)) is not None:
        return f"nothing more runs: {spent}. `compile` and `reference` are still there, or send your answer"
    task = ToolTask(call.tool, None, None, workload, call.listing, call.sizes, call.values)
    if call.tool == "reference" or (not call.text and call.base == ORIGINAL):
        return task
    try:
        template = _template(number, call, state, templates, fault_of)
    except BadInput as error:
        return f"{error} ({error.hint})" if error.hint else str(error)
    values, params = dict(call.config), {p.name: p for p in template.space.params}
    for name, value in values.items():
        if name not in params:
            known = ", ".join(params) or "none"
            return f"there is no parameter {name!r}; known are {known}: `config` has values of these alone"
        if value not in params[name].positions:
            known = ", ".join(map(str, params[name].values))
            return f"{name} = {value} is not among its values: {known}; choose one of them"
    config = template.default
    for name, value in values.items():
        config = config.replace(name, value)
    return replace(task, template=template, config=config)


def _template(
    number: int,
    call: ToolCall,
    state: State,
    templates: Templates,
    fault_of: Callable[[Template], str | None],
) -> Template:
    """BadInput: it cannot be read, or may not be built."""
    if not call.text:
        known = {c.id: c for c in state.candidates if c.status in ("admitted", "searched") and c.id}
        if call.base not in known:
            listed = ", ".join([ORIGINAL, *known])
            raise BadInput(
                f"there is no {noun(state.settings)} {call.base!r} that is right; known are {listed}",
                hint="name one of them as `base`, or send the whole file in a fence",
            )
        return templates.of(known[call.base])
    template = replace(templates.parse(call.text, f"tool-{number}"), is_foreign=True)
    if (fault := fault_of(template)) is not None:
        raise BadInput(fault)
    return template
