"""Written templates, read back and built for a GPU that need not be here; configurations to try them at."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import KernelBinary
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant
from tunesmith.problem.template_file import parse_template
from tunesmith.space.configset import Config

DEVICE = absent_device(None)


def read(text: str, problem: Problem) -> Template:
    suffix = "cl" if problem.kernel.language == "opencl" else "cu"
    return parse_template(text, path=f"template.{suffix}", problem=problem)


def configurations(template: Template, problem: Problem, pairs: int = 0, seed: int = 1) -> list[Config]:
    """The default, each parameter's extremes one at a time, and a sample of pairs; legal ones somewhere."""
    default = template.default.as_dict()
    found: dict[Config, None] = {template.default: None}
    params = template.space.params
    for param in params:
        for value in (min(param.values), max(param.values)):
            found[Config.of({**default, param.name: value})] = None
    every = [
        {a.name: x, b.name: y} for a, b in combinations(params, 2) for x in a.values for y in b.values
    ]  # fmt: skip
    random.Random(seed).shuffle(every)
    for pair in every[:pairs]:
        # The rest at random: more than pairs meet.
        rest = {p.name: random.Random(repr((seed, pair, p.name))).choice(p.values) for p in params}
        found[Config.of({**rest, **pair})] = None
    return [config for config in found if any(True for _ in legal_sizes(template, problem, config))]


def legal_sizes(template: Template, problem: Problem, config: Config) -> Iterator[dict[str, int]]:
    for workload in problem.workloads:
        names = {**workload.as_dict(), **config.as_dict(), **DEVICE.limits.names()}
        constraints = [
            c for c in template.space.constraints if c.kind == "require" and c.expr.names <= names.keys()
        ]
        if all(c.expr.holds(names) for c in constraints):
            yield workload.as_dict()


def variant(template: Template, problem: Problem, config: Config) -> Variant:
    return template.render(problem, config, next(legal_sizes(template, problem, config)))


def built(made: Variant) -> KernelBinary:
    unit = Unit(made.path, made.source, "cuda", made.flags, made.entries, compiler="nvrtc")
    return build_cubin(unit, DEVICE)


def build_all(variants: list[Variant]) -> list[KernelBinary | Exception]:
    def one(made: Variant) -> KernelBinary | Exception:
        try:
            return built(made)
        except Exception as error:  # told by the test, with the configuration
            return error

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, variants))
