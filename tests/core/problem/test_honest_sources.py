"""No false alarms: kernels and templates of the repository, recorded replies and the expert's drafts are
accepted, and what is compiled of them on a CPU is the same code."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.core.expert.test_author import EVERY, device_of
from tests.core.source.corpus import EXAMPLES as KERNELS
from tests.core.source.corpus import Example
from tests.cuda_here import needs_nvrtc
from tests.opencl_here import needs_opencl
from tests.running import EXAMPLES, FIXTURES
from tunesmith.agents.prompting import read_file, read_kernel
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.expert.author import ExpertAuthor
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant, builds_of, configs_of, users_texts
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import vet_source, vetted_text
from tunesmith.run.events import Reply
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem

REPLIES = sorted(
    path
    for path in (FIXTURES / "conversations").rglob("*.reply.md")
    if path.name.split("-")[1].partition(".")[0] in ("author", "single")
)
TEMPLATES = sorted(EXAMPLES.glob("*/*/template.*"))


@cache
def problem_in(folder: Path) -> Problem:
    return load_problem(folder)[0]


def refusals(problem: Problem, template: Template, most: int = 1) -> list[str]:
    """Of the default, and of configurations spread over the rest."""
    configs = configs_of(problem, template, device_of(problem))
    spread = [configs[int(place * len(configs) / most)] for place in range(most)] if len(configs) else []
    variants = [
        built.variant
        for config in (template.default, *spread)
        for built in builds_of(problem, template, config)
    ]
    original, *headers = users_texts(problem)
    found = (vet_source(variant.source, original, variant.language, headers) for variant in variants)
    return [str(refusal) for refusal in found if refusal is not None]


def reply_template(path: Path) -> tuple[Problem, Template] | None:
    name = "softmax" if "softmax" in path.parts else "transpose"
    problem = problem_in(EXAMPLES / "opencl" / name)
    found = (read_kernel if "rewrite-1" in path.parts else read_file)(Reply(path.read_text()))
    return (problem, parse_template(found, path="t.cl", problem=problem)) if isinstance(found, str) else None


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.few(8)
def test_kernels(kernel: Example) -> None:
    assert (
        vet_source(kernel.text, "\n".join(f"#include {name}" for name in included(kernel)), kernel.language)
        is None
    )


def included(kernel: Example) -> list[str]:
    lines = (line.split(None, 1) for line in kernel.text.splitlines() if line.startswith("#include"))
    return [line[1] for line in lines]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.parent.name)
@pytest.mark.few(4)
def test_templates_written_by_hand(path: Path) -> None:
    problem = problem_in(path.parent)
    template = parse_template(path.read_text(), path=path.name, problem=problem)
    headers = "\n".join(line for line in path.read_text().splitlines() if line.startswith("#include"))
    original, *rest = users_texts(problem)
    variant = builds_of(problem, template, template.default)[0].variant
    assert vet_source(variant.source, f"{headers}\n{original}", variant.language, rest) is None


@pytest.mark.parametrize("path", REPLIES, ids=lambda path: "-".join(path.parts[-3:]))
@pytest.mark.few(4)
def test_recorded_replies(path: Path) -> None:
    found = reply_template(path)
    assert found is None or refusals(*found, most=3) == []


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.few(1)
def test_templates_of_the_expert(kernel: Example) -> None:
    problem = problem_in(kernel.path.parent)
    found = ExpertAuthor().write(Refactoring(EVERY), problem, device_of(problem))
    if isinstance(found, Written):
        template = parse_template(found.text, path=f"template{kernel.path.suffix}", problem=problem)
        assert refusals(problem, template, most=6) == []


def test_most_replies_are_templates() -> None:
    assert sum(reply_template(path) is not None for path in REPLIES) >= 8


@needs_opencl
@pytest.mark.parametrize("path", [*REPLIES, *TEMPLATES], ids=lambda path: "-".join(path.parts[-3:]))
@pytest.mark.few(1)
def test_what_was_vetted_is_the_same_code(path: Path) -> None:
    from tunesmith.backends.opencl import OpenCLBackend

    if path.suffix == ".cu":
        pytest.skip("not for a CPU")
    if path in TEMPLATES:
        problem = problem_in(path.parent)
        template = parse_template(path.read_text(), path="t.cl", problem=problem)
    else:
        found = reply_template(path)
        assert found is not None
        problem, template = found
    backend = OpenCLBackend()
    device = backend.devices()[0]

    def code(variant: Variant, source: str) -> str:
        unit = Unit(variant.path, source, variant.language, variant.flags, variant.entries)
        return backend.build(unit, device).code_digest

    variant = builds_of(problem, template, template.default)[0].variant
    text = vetted_text(variant.source, users_texts(problem)[0], "opencl", (), variant.flags)
    assert isinstance(text, str), text
    assert "#define" not in text
    assert code(variant, variant.source) == code(variant, text)


@needs_nvrtc
@pytest.mark.parametrize(
    "path", [p for p in TEMPLATES if p.suffix == ".cu"], ids=lambda path: path.parent.name
)
@pytest.mark.few(1)
def test_nor_is_it_other_code_for_a_gpu(path: Path) -> None:
    problem, gpu = problem_in(path.parent), absent_device("H200")
    template = parse_template(path.read_text(), path="t.cu", problem=problem).on(gpu)
    found = []
    for is_foreign in (False, True):
        own = replace(template, is_foreign=is_foreign)
        variant = builds_of(problem, own, template.default)[0].variant
        assert not variant.refused
        given = (variant.path, variant.source, variant.language, variant.flags, variant.entries)
        found.append(build_cubin(Unit(*given, variant.headers), gpu).code_digest)
    assert found[0] == found[1]
    assert not any(line.startswith("#if") for line in variant.source.splitlines())
