"""What of the user's file the template needs beside its kernel: includes, declarations, helper functions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tunesmith.expert.c.nodes import Evaluate, Function, Source, Stmt
from tunesmith.expert.c.printing import print_function
from tunesmith.expert.c.walk import calls_in, names_in
from tunesmith.expert.model.kernel import Each, Kernel, Repeat, Step, When
from tunesmith.expert.writing.fast_math import FastMath

_HEAD = re.compile(r"^[^{]*", re.DOTALL)


def used_functions(kernel: Kernel) -> tuple[Function, ...]:
    """Helpers that the steps call, and those that these call, in the order of the file."""
    by_name: dict[str, list[Function]] = {}
    for function in kernel.source.functions:
        if not function.is_kernel:
            by_name.setdefault(function.name, []).append(function)
    wanted: set[str] = set()
    pending = [word for part in _parts(kernel.steps) for word in _words(part)]
    while pending:
        name = pending.pop()
        if name in by_name and name not in wanted:
            wanted.add(name)
            for function in by_name[name]:
                pending += _words(function.body)
                pending += re.findall(r"[A-Za-z_]\w*", function.text)
    return tuple(f for f in kernel.source.functions if f.name in wanted and not f.is_kernel)


def _words(part: Iterable[Stmt]) -> list[str]:
    stmts = tuple(part)
    found = [call.function for call in calls_in(stmts)]
    for call in calls_in(stmts):
        for text in call.template_args:
            found += re.findall(r"[A-Za-z_]\w*", text)
    return [*found, *names_in(stmts)]


def _parts(steps: Iterable[Step]) -> Iterable[tuple[Stmt, ...]]:
    for step in steps:
        match step:
            case When(condition=condition, then=then, otherwise=otherwise):
                yield (Evaluate(condition),)
                yield from _parts((*then, *otherwise))
            case Repeat():
                yield (Evaluate(step.start), Evaluate(step.stop), Evaluate(step.step))
                yield from _parts(step.body)
            case Each():
                yield (Evaluate(step.start), Evaluate(step.stop))
                yield from ((Evaluate(total.start),) for total in step.totals)
                yield step.body
            case _:
                yield step.body


def helper_text(
    function: Function, fast: FastMath, language: str, hardware: str = "", switch: str = ""
) -> str:
    """The function as it stands, or with fast forms behind macros where its body has any.

    `hardware`: the statement that does the same on the device's own unit, taken where `switch` is set.
    """
    types = {parameter.name: parameter.type for parameter in function.parameters}
    body, _ = fast.statements(function.body, dict(types))
    text = function.text.strip() or print_function(function, language).strip()
    if body != function.body:
        head = _HEAD.match(text)
        head_text = head.group().rstrip() if head is not None and head.group().strip() else ""
        changed = print_function(
            Function(function.name, function.parameters, body, function.result), language
        ).strip()
        text = changed
        if head_text:
            text = f"{head_text}\n{changed[changed.index('{') :]}"
    if hardware and switch:
        opening = text.index("{") + 1
        closing = text.rindex("}")
        inner = text[opening:closing].strip("\n")
        text = f"{text[:opening]}\n#if {switch}\n    {hardware}\n#else\n{inner}\n#endif\n}}"
    return text + "\n"


def preamble(source: Source) -> list[str]:
    lines = [f"#include {include}" for include in source.includes]
    if source.preamble:
        lines.append("")
        lines += [text.rstrip() for text in source.preamble]
    return lines
