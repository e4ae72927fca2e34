"""A file with the user's own headers in it, to look for kernels there: lines are those that include them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tunesmith.csource.macros import MOST_NESTING
from tunesmith.csource.nodes import Language
from tunesmith.errors import BadInput
from tunesmith.expert.reading.headers import SourceModel
from tunesmith.expert.reading.source import read_source

_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*[<"]([^<>"\n]+)[>"]')


def read_with_headers(
    text: str,
    language: Language,
    where: str,
    defines: Iterable[tuple[str, str]],
    headers: Iterable[tuple[str, str]],
) -> SourceModel:
    """Headers are looked into where the file itself has no kernel. Raises BadInput."""
    given, own = tuple(defines), dict(headers)
    try:
        return read_source(text, language, where=where, defines=given)
    except BadInput as error:
        if not any("__global__" in header for header in own.values()):
            if missing := [name for name in _QUOTED.findall(text) if name not in own]:
                raise BadInput(
                    f"{error.message}; {', '.join(missing[:3])}, which it includes, is not found",
                    hint=f"if the kernel is in {missing[0]}, put that beside the file, or give it by itself",
                    where=where,
                ) from error
            raise
        lines = _with_headers(text, own, set(), 0)
        model = read_source("\n".join(line for _, line in lines), language, where=where, defines=given)
    numbers = [number for number, _ in lines]
    kernels = tuple(replace(kernel, line=numbers[kernel.line - 1]) for kernel in model.kernels)
    launches = tuple(replace(site, line=numbers[site.line - 1]) for site in model.launches)
    found = tuple(replace(one, line=numbers[one.line - 1]) for one in model.instantiations)
    return replace(model, kernels=kernels, launches=launches, instantiations=found)


def _with_headers(
    text: str, headers: Mapping[str, str], done: set[str], depth: int, at: int = 0
) -> list[tuple[int, str]]:
    """Lines with their number in the file itself; each header once, where it is first included."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        included = _INCLUDE.match(line)
        if included is None or included[1] not in headers or depth > MOST_NESTING:
            found.append((at or number, line))
        elif included[1] not in done:
            done.add(included[1])
            found += _with_headers(headers[included[1]], headers, done, depth + 1, at or number)
        else:
            found.append((at or number, ""))
    return found
