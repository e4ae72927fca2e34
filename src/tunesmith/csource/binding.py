"""The kernel that an entry names: `ns::name<float, 128>` with its template arguments put in place."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.callees import plain, written_for
from tunesmith.csource.specialise import complete_arguments, specialise, split_entry, template_meaning

_QUALIFIED = re.compile(r"(?:(?<![\w:])::)?[^\W\d]\w*(?:::[^\W\d]\w*)*")
_SIZE = re.compile(r"\{\s*(\w+)\s*\}")


@dataclass(frozen=True)
class BoundKernel:
    function: c.Function  # no template any more, constants folded, types of the file resolved
    source: c.Source
    arguments: tuple[tuple[str, str], ...]  # template parameter -> what the entry binds it to


def bind(source: c.Source, entry: str) -> BoundKernel | str:
    """The kernel of `name`, `ns::name<float, 128>`; a sentence where the entry cannot be followed."""
    name, texts = split_entry(_without_namespaces(entry, source))
    kernels = [function for function in source.functions if function.is_kernel and function.name == name]
    if not kernels:
        return _missing(source, name)
    templates = [kernel for kernel in kernels if kernel.template]
    templates = templates or [f for f in source.prototypes if f.name == name]
    needed = [sum(1 for parameter in kernel.template if not parameter.default) for kernel in kernels]
    fitting = [k for k, least in zip(kernels, needed, strict=True) if least <= len(texts) <= len(k.template)]
    if len(templates) == 1 and texts and any(not kernel.template for kernel in kernels):
        fitting = _specialised(kernels, templates[0], texts, source) or fitting
    if len(fitting) != 1:
        wanted = " or ".join(str(len(kernel.template)) for kernel in kernels)
        if len(kernels) > 1:
            return f"{len(kernels)} kernels are called {name}, and the entry {entry} does not say which one"
        return (
            f"the kernel {name} takes {wanted} template arguments, and the entry {entry} gives {len(texts)}"
        )
    kernel = fitting[0]
    pairs = list(zip(kernel.template, texts, strict=False))  # none of what is written for these arguments
    for parameter, text in pairs:
        if "{" in text and (not _SIZE.fullmatch(text) or parameter.type is None):
            return f"the entry {entry} computes with a size; a size alone, or a fixed argument, is needed"
    # A size that only the call knows stays the template's own name, as one more parameter of the kernel.
    added = tuple(c.Parameter(p.type, p.name) for p, text in pairs if "{" in text and p.type is not None)
    named = {parameter.name for parameter in added}
    template = tuple(parameter for parameter in kernel.template if parameter.name not in named)
    try:
        arguments = complete_arguments(template, tuple(t for _, t in pairs if "{" not in t), source)
        meaning = template_meaning(template, arguments, source)
        function = specialise(kernel, meaning)
    except c.Unreadable as trouble:
        return f"{name} could not be bound to its template arguments: {trouble.reason}"
    used = walk.names_in(function.body)
    shared = tuple(declare for declare in source.shared if declare.name in used)
    parameters = (*function.parameters, *added)
    function = replace(function, parameters=parameters, body=(*shared, *function.body))
    return BoundKernel(function, source, arguments)


def _specialised(
    kernels: list[c.Function], primary: c.Function, texts: tuple[str, ...], source: c.Source
) -> list[c.Function]:
    """What is written for just these arguments, `template <> k<float>`; all where that cannot be told."""
    try:
        wanted = plain(primary, texts, source)
    except c.Unreadable:
        return kernels
    known = [(kernel, written_for(kernel, primary, source)) for kernel in kernels if not kernel.template]
    if any(not arguments for _, arguments in known):
        return kernels
    return [kernel for kernel, arguments in known if arguments == wanted]


def sizes_of_entry(entry: str) -> tuple[str, ...]:
    """Names in braces that are whole template arguments, `kernel<float, {d}>`, in their order."""
    return tuple(found[1] for text in split_entry(entry)[1] if (found := _SIZE.fullmatch(text)))


def _without_namespaces(entry: str, source: c.Source) -> str:
    """An entry in the words of the file, which is read without its own namespaces."""
    spellings = dict(source.spellings)
    spaces = {name.rpartition("::")[0] for name in spellings}

    def plain(match: re.Match[str]) -> str:
        words = match[0].removeprefix("::").split("::")
        for length in range(len(words), 1, -1):
            if (found := spellings.get("::".join(words[:length]))) is not None:
                return "::".join((found, *words[length:]))
        known = "::".join(words[:-1]) in spaces
        return words[-1] if known else "::".join(words)

    return _QUALIFIED.sub(plain, entry)


def _missing(source: c.Source, name: str) -> str:
    for reason in source.unread:
        if re.search(rf"\b{re.escape(name)}\b", reason):
            return reason
    if not source.functions and source.unread:
        return source.unread[0]
    others = ", ".join(function.name for function in source.functions if function.is_kernel)
    return f"the source has no kernel {name}" + (f"; it has {others}" if others else "")
