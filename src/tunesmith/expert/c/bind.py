"""The kernel an entry names, with its template arguments, the file's constants and its types filled in."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tunesmith.expert.c.fold import fold, int_value
from tunesmith.expert.c.lex import Token, lex, squeeze
from tunesmith.expert.c.nodes import Call, Expr, Function, Number, Source, TemplateParameter, Type
from tunesmith.expert.c.numbers import of_type
from tunesmith.expert.c.parse import read_expression, read_type
from tunesmith.expert.c.specialise import Meaning, file_meaning, specialise
from tunesmith.expert.c.substitution import substitute
from tunesmith.expert.c.unreadable import Unreadable
from tunesmith.expert.c.walk import names_in
from tunesmith.expert.reading.source_model import Language


@dataclass(frozen=True)
class Bound:
    function: Function  # no template any more, constants folded, types of the file resolved
    source: Source
    arguments: tuple[tuple[str, str], ...]  # template parameter -> what the entry binds it to


def bind(source: Source, entry: str) -> Bound | str:
    """The kernel of `name`, `ns::name<float, 128>`; a sentence where the entry cannot be followed."""
    name, texts = split_entry(entry)
    kernels = [function for function in source.functions if function.is_kernel and function.name == name]
    if not kernels:
        return _missing(source, name)
    fitting = [kernel for kernel in kernels if _fits(kernel, len(texts))]
    if len(fitting) != 1:
        wanted = " or ".join(str(len(kernel.template)) for kernel in kernels)
        if len(kernels) > 1:
            return f"{len(kernels)} kernels are called {name}, and the entry {entry} does not say which one"
        return (
            f"the kernel {name} takes {wanted} template arguments, and the entry {entry} gives {len(texts)}"
        )
    kernel = fitting[0]
    if any("{" in text for text in texts):
        return f"the entry {entry} depends on a size of the workload; a fixed template argument is needed"
    try:
        arguments = complete_arguments(kernel.template, texts, source)
        meaning = template_meaning(kernel.template, arguments, source)
        function = specialise(kernel, meaning)
    except Unreadable as trouble:
        return f"{name} could not be bound to its template arguments: {trouble.reason}"
    used = names_in(function.body)
    shared = tuple(declare for declare in source.shared if declare.name in used)
    return Bound(replace(function, body=(*shared, *function.body)), source, arguments)


def split_entry(entry: str) -> tuple[str, tuple[str, ...]]:
    """`ns::name<float, 128>` as ("name", ("float", "128"))."""
    head, bracket, rest = entry.strip().partition("<")
    name = head.strip().rpartition("::")[2]
    if not bracket:
        return name, ()
    inside = rest.strip().removesuffix(">")
    return name, _at_commas(inside)


def _at_commas(text: str) -> tuple[str, ...]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in lex(text):
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1, ">>": -2}.get(token.text, 0)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(squeeze(part) for part in parts if part)


def _missing(source: Source, name: str) -> str:
    for reason in source.unread:
        if re.search(rf"\b{re.escape(name)}\b", reason):
            return reason
    others = ", ".join(function.name for function in source.functions if function.is_kernel)
    return f"the source has no kernel {name}" + (f"; it has {others}" if others else "")


def _fits(kernel: Function, given: int) -> bool:
    needed = sum(1 for parameter in kernel.template if not parameter.default)
    return needed <= given <= len(kernel.template)


def complete_arguments(
    template: tuple[TemplateParameter, ...], texts: tuple[str, ...], source: Source
) -> tuple[tuple[str, str], ...]:
    """Each parameter with its argument; a default may name the parameters before it."""
    found: list[tuple[str, str]] = []
    for at, parameter in enumerate(template):
        text = texts[at] if at < len(texts) else parameter.default
        if not text:
            raise Unreadable(f"the template parameter {parameter.name} has no argument")
        if at >= len(texts):
            for name, value in found:
                text = re.sub(rf"\b{re.escape(name)}\b", value.replace("\\", "\\\\"), text)
        if parameter.kind == "type":
            text = file_meaning(source).type_text(text)
        found.append((parameter.name, text))
    return tuple(found)


def template_meaning(
    template: tuple[TemplateParameter, ...], arguments: tuple[tuple[str, str], ...], source: Source
) -> Meaning:
    language = _language(source)
    meaning = file_meaning(source)
    types: dict[str, Type] = {}
    values: dict[str, Expr] = {}
    functions: dict[str, Call] = {}
    for parameter, (name, text) in zip(template, arguments, strict=True):
        if parameter.kind == "type":
            types[name] = meaning.type(read_type(text, language))
            continue
        function, function_args = split_entry(text)
        if any(own.name == function for own in source.functions):
            functions[name] = Call(function, (), function_args)
            continue
        number = int_value(fold(substitute(read_expression(text, language), meaning.values)))
        if number is None:
            raise Unreadable(f"the template argument {text} for {name} is no integer that is known here")
        declared = meaning.type(parameter.type or Type("int"))
        declared = types.get(declared.base, declared)
        values[name] = of_type(Number(str(number), number), declared)
    return meaning.with_template(types, values, functions)


def _language(source: Source) -> Language:
    return "opencl" if source.language == "opencl" else "cuda"
