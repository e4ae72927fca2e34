"""Reads a kernel source: its kernels, what they do with their arguments, how it launches them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tunesmith.core.errors import BadInput
from tunesmith.expert.reading.blanking import Blanked, blank
from tunesmith.expert.reading.headers import Header, read_headers
from tunesmith.expert.reading.launches import read_constants, read_launches
from tunesmith.expert.reading.parameters import read_parameter
from tunesmith.expert.reading.pointer_use import PointerUse, places_in
from tunesmith.expert.reading.source_model import KernelSignature, Language, Parameter, SourceModel
from tunesmith.expert.reading.syntax import parse

if TYPE_CHECKING:
    from tunesmith.expert.reading.pointer_use import Places

_MARKED_BY: Mapping[Language, str] = {"opencl": "__kernel", "cuda": "__global__", "hip": "__global__"}
_TYPEDEF = re.compile(r"\btypedef\s+([\w:][\w:\s]*?)\s+([^\W\d]\w*)\s*;")
_USING = re.compile(r"\busing\s+([^\W\d]\w*)\s*=\s*([\w:][\w:\s]*?)\s*;")
_TYPE_PARAMETER = re.compile(r"\b(?:typename|class)\s+([^\W\d]\w*)")


def read_source(text: str, language: Language, *, where: str | None = None) -> SourceModel:
    """Read `text`; `where` names the file in errors. Raises BadInput when it defines no kernel."""
    source = blank(text, language)
    headers = read_headers(source, language)
    defined = [header for header in headers if header.body is not None]
    if not defined:
        raise _no_kernel(headers, language, where)
    root = parse(source.code, language)
    aliases = _type_aliases(source)
    types = {*aliases, *_TYPE_PARAMETER.findall(source.plain)}
    use = PointerUse(root, source.macros, types, references=language != "opencl")
    kernels = [
        _signature(header, text, language, aliases, use, definitions)
        for header, definitions in _one_per_name(defined)
    ]
    constants = _unambiguous([*read_constants(root), *source.plain_macros().items()])
    launches = () if language == "opencl" else tuple(read_launches(root, source.code))
    return SourceModel(tuple(kernels), launches, tuple(constants.items()))


def _signature(
    header: Header,
    text: str,
    language: Language,
    aliases: Mapping[str, str],
    use: PointerUse,
    definitions: int,
) -> KernelSignature:
    # A template parameter hides a typedef of the same name.
    aliases = {name: meaning for name, meaning in aliases.items() if name not in header.template_params}
    # Parsed on its own, so that nothing else in the file can spoil it.
    body = places_in(parse(f"void kernel_body() {header.body}", language))
    parameters = (
        read_parameter(tokens, index, language, aliases) for index, tokens in enumerate(header.parameters)
    )
    return KernelSignature(
        name=header.name,
        namespace=header.namespace,
        template_params=header.template_params,
        parameters=tuple(_with_access(parameter, body, use) for parameter in parameters),
        line=text.count("\n", 0, header.offset) + 1,
        launch_bounds=header.launch_bounds,
        reqd_work_group_size=header.reqd_work_group_size,
        dynamic_shared=header.dynamic_shared,
        conditional=header.conditional,
        definitions=definitions,
    )


def _with_access(parameter: Parameter, body: Places, use: PointerUse) -> Parameter:
    if not parameter.pointer:
        return parameter
    access = use.of(body, parameter.name)
    if not access.hidden:
        return replace(parameter, written=access.write, read=access.read)
    if parameter.const and not access.write:  # wherever a const pointer goes, it can only be read there
        return replace(parameter, written=False, read=True)
    return replace(parameter, written=access.write or None, read=access.read or None)


def _one_per_name(headers: Iterable[Header]) -> list[tuple[Header, int]]:
    groups: dict[tuple[str, str], list[Header]] = {}
    for header in headers:
        groups.setdefault((header.namespace, header.name), []).append(header)
    # The general template before its specialisations, and the long body before the stub that another #if
    # leaves for old hardware.
    return [
        (max(group, key=lambda header: (not header.specialised, len(header.body or ""))), len(group))
        for group in groups.values()
    ]


def _type_aliases(source: Blanked) -> dict[str, str]:
    found = [(name, meaning) for meaning, name in _TYPEDEF.findall(source.plain)]
    found += _USING.findall(source.plain)
    return {name: " ".join(meaning.split()) for name, meaning in _unambiguous(found).items()}


def _unambiguous(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Names with one meaning: which of several holds depends on flags that are not known here."""
    meanings: dict[str, set[str]] = {}
    for name, meaning in pairs:
        meanings.setdefault(name, set()).add(meaning)
    return {name: found.pop() for name, found in meanings.items() if len(found) == 1}


def _no_kernel(headers: Iterable[Header], language: Language, where: str | None) -> BadInput:
    marker = _MARKED_BY[language]
    declared = sorted({header.name for header in headers})
    found = f"it only declares {', '.join(declared)}" if declared else "it has none"
    return BadInput(
        f"a kernel source must define a function marked {marker}; {found}",
        hint="give the file with the kernel's body; kernels that a macro writes are not seen: "
        "write them out, or give the preprocessed source",
        where=where,
    )
