"""What the reader itself adds to steps, in OpenCL's words: it names functions as CUDA does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.expert.c.nodes import Call, Expr
from tunesmith.expert.c.walk import map_expr, map_statements
from tunesmith.expert.model.kernel import Each, Kernel, Let, Once, Repeat, Step, When

_WORDS = {
    "fmaxf": "fmax", "fminf": "fmin", "__int_as_float": "as_float", "__uint_as_float": "as_float",
}  # fmt: skip


def in_opencl_words(kernel: Kernel) -> Kernel:
    own = {function.name for function in kernel.source.functions}
    words = {cuda: opencl for cuda, opencl in _WORDS.items() if cuda not in own}
    return replace(kernel, steps=_Words(words).steps(kernel.steps))


class _Words:
    def __init__(self, words: dict[str, str]) -> None:
        self._words = words

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(self._step(step) for step in steps)

    def _step(self, step: Step) -> Step:
        match step:
            case Each():
                totals = tuple(
                    replace(t, start=self._in(t.start), combine=self._words.get(t.combine, t.combine))
                    for t in step.totals
                )
                body = map_statements(step.body, on_expr=self._in)
                return replace(
                    step, start=self._in(step.start), stop=self._in(step.stop), totals=totals, body=body
                )
            case Let(body=body) | Once(body=body):
                return replace(step, body=map_statements(body, on_expr=self._in))
            case When():
                then, otherwise = self.steps(step.then), self.steps(step.otherwise)
                return replace(step, condition=self._in(step.condition), then=then, otherwise=otherwise)
            case Repeat():
                return replace(step, body=self.steps(step.body))

    def _in(self, expr: Expr) -> Expr:
        return map_expr(expr, self._one)

    def _one(self, expr: Expr) -> Expr:
        if isinstance(expr, Call) and expr.function in self._words:
            return replace(expr, function=self._words[expr.function])
        return expr
