"""What the reader itself adds to steps, in OpenCL's words: it names functions as CUDA does."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.expert.model.kernel import Each, KernelModel, Step, map_own_parts, map_steps

_WORDS = {
    "fmaxf": "fmax", "fminf": "fmin", "__int_as_float": "as_float", "__uint_as_float": "as_float",
}  # fmt: skip


def in_opencl_words(kernel: KernelModel) -> KernelModel:
    own = {function.name for function in kernel.source.functions}
    words = {cuda: opencl for cuda, opencl in _WORDS.items() if cuda not in own}

    def word(expr: c.Expr) -> c.Expr:
        if isinstance(expr, c.Call) and expr.function in words:
            return replace(expr, function=words[expr.function])
        return expr

    def one(step: Step) -> Step:
        step = map_own_parts(
            step, lambda expr: walk.map_expr(expr, word), lambda body: walk.map_nodes(body, word)
        )
        if isinstance(step, Each):
            totals = tuple(replace(t, combine=words.get(t.combine, t.combine)) for t in step.totals)
            step = replace(step, totals=totals)
        return step

    return replace(kernel, steps=map_steps(kernel.steps, one))
