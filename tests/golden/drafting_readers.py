"""What the expert makes of kernels before there is a problem, and of a problem's arguments."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from typing import Any

from tests.golden.made_problems import in_toml
from tunesmith.expert.drafts.bare import not_said
from tunesmith.expert.drafts.draft import bare_kernels, draft_problem, explain_text
from tunesmith.expert.drafts.headers import elements_of
from tunesmith.expert.drafts.launches import looks_like_a_size, read_launches, translate_expr
from tunesmith.expert.drafts.signature import missing_entry, read_source, signature_faults
from tunesmith.problem.problem import Accuracy, Argument, Contract, Kernel, Launch, Problem
from tunesmith.source.reader.grammar import syntax_tree
from tunesmith.source.tree import Language
from tunesmith.space.expr import parse_expr

Reader = Callable[..., Iterable[str]]
Told = object


def read_draft(text: str, language: Language, entry: str | None = None, **_: Told) -> Iterator[str]:
    """What a drafted problem says, and how often it says FILL; its remarks on lines of the source."""
    made = draft_problem(text, "kernel.cu", language, entry)
    whole = made.files["problem.toml"]
    table = tomllib.loads(whole)
    yield f"{table['name']}: {made.fills} times FILL"
    for name, value in table.items():
        for one in value if isinstance(value, list) else [value] if isinstance(value, dict) else []:
            yield f"{name}: {', '.join(f'{key} = {in_toml(part)}' for key, part in one.items())}"
    for line in whole.splitlines():
        if "#" in line and any(word in line for word in ("line ", "launch", "align", "values")):
            yield f"remark: {line.strip()}"
    head = (line for line in made.files["reference.py"].splitlines() if line.startswith("def "))
    yield from (f"reference: {line}" for line in head)


def read_whole_draft(text: str, language: Language, entry: str | None = None, **_: Told) -> Iterator[str]:
    for name, content in draft_problem(text, "kernel.cu", language, entry).files.items():
        yield f"== {name}"
        yield content.rstrip("\n")


def read_explained(
    text: str,
    language: Language,
    entry: str | None = None,
    defines: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    **_: Told,
) -> Iterator[str]:
    macros = tuple((defines or {}).items())
    for bare in bare_kernels(text, "kernel.cu", language, entry, macros, tuple((headers or {}).items())):
        found = explain_text(bare)
        yield f"{bare.entry}: {'read' if found.is_read else 'not read'}"
        yield from found.lines
        yield from (f"obstacle: {line}" for line in found.obstacles)
        yield from (f"filled in: {line}" for line in found.filled)
        yield from (f"left: {line}" for line in found.left)
        yield from (f"not said: {line}" for line in not_said(bare))


def read_accesses(
    text: str, language: Language, declared: str = "float* p", before: str = "", **_: Told
) -> Iterator[str]:
    """What a body does through its first pointer: reads, writes, both; ? for a part that is not known."""
    marker = "__kernel" if language == "opencl" else "__global__"
    model = read_source(f"{before}\n{marker} void k({declared}, int n) {{ {text} }}", language)
    pointer = model.kernels[0].parameters[0]
    words = {True: "{}", False: "", None: "may be {}"}
    said = [words[pointer.read].format("read"), words[pointer.written].format("written")]
    yield ", ".join(filter(None, said)) or "neither"


def read_launch_text(text: str, sizes: dict[str, str], constants: dict[str, str], **_: Told) -> Iterator[str]:
    yield translate_expr(text, sizes, constants) or "none"


def read_launches_of(text: str, language: Language, **_: Told) -> Iterator[str]:
    for site in read_launches(syntax_tree(text, language), text):
        yield f"line {site.line}: {', '.join(said_of(site))}"


def read_signatures(text: str, language: Language, **_: Told) -> Iterator[str]:
    """Kernels with their parameters, and launches, as a draft starts from them."""
    model = read_source(text, language, where="kernel.cu")
    for kernel in model.kernels:
        yield f"line {kernel.line}: {kernel.qualified_name}: {', '.join(said_of(kernel))}"
        yield from (f"  {one.name}: {', '.join(said_of(one))}" for one in kernel.parameters)
    for site in model.launches:
        yield f"launch, line {site.line}: {', '.join(said_of(site))}"


def said_of(value: Any) -> Iterator[str]:
    """The fields that are not as usual."""
    for field in fields(value):
        usual = field.default_factory() if field.default_factory is not MISSING else field.default
        part = getattr(value, field.name)
        if part != usual and field.name not in ("line", "text", "body", "parameters", "namespace"):
            yield f"{field.name} {sorted(part) if isinstance(part, set | frozenset) else part!r}"


def read_elements(text: str, language: Language, **_: Told) -> Iterator[str]:
    element, count = elements_of(text, language)
    yield f"{element or 'not known'} × {count}"


def read_size_names(text: str, **_: Told) -> Iterator[str]:
    yield "; ".join(dict.fromkeys("a size" if looks_like_a_size(one) else "none" for one in text.split()))


def read_faults(
    text: str, language: str, arguments: str = "", entry: str = "k", kernel: dict[str, Any] | None = None,
    launches: Sequence[Sequence[str]] = (), **_: Told,
) -> Iterator[str]:  # fmt: skip
    """What a problem with these arguments says otherwise than the kernel; before a bar, where a line has one:
    `out: float32* output; n: int32 | __global__ void k(…) {}`."""
    if not arguments:
        arguments, _bar, text = text.partition(" | ")
    listed = [argument_of(one) for one in arguments.split("; ")] if arguments else []
    names = launches or [(entry, *(a.name for a in listed))]
    made = tuple(Launch(of, (parse_expr(1),), (parse_expr(1),), tuple(args)) for of, *args in names)
    about: dict[str, Any] = dict(kernel or {})
    about |= {"flags": tuple(about.get("flags", ())), "defines": tuple(about.get("defines", {}).items())}
    about = {"path": "kernel.cu", "text": text, "entry": entry, "language": language, **about}
    problem = Problem("p", Kernel(**about), tuple(listed), made, Contract(()), (), Accuracy(0, 0))
    found = signature_faults(problem)
    yield from found or ["no fault"]
    if (fault := missing_entry(problem)) is not None:
        yield f"entry: {fault}"


def argument_of(text: str) -> Argument:
    name, _, kind = text.partition(": ")
    kind, _, role = kind.partition("* ") if "* " in kind else (kind.rstrip("*"), "", "input")
    if "*" in text:
        return Argument(name, kind, role, (parse_expr("n"),))  # type: ignore[arg-type]
    return Argument(name, kind, "scalar", value=parse_expr("n") if "int" in kind else 0.5)


DRAFTING: dict[str, Reader] = {
    "accesses": read_accesses,
    "bare": read_explained,
    "draft": read_draft,
    "elements": read_elements,
    "faults": read_faults,
    "launch text": read_launch_text,
    "launches": read_launches_of,
    "signatures": read_signatures,
    "size names": read_size_names,
    "whole draft": read_whole_draft,
}
