"""Headers of the C and C++ standard that device code includes, in small: NVRTC comes with none.

They lie in `headers/`, with only what a kernel can use: limits, integer types, constants of <math.h>, the
functions of <cmath> that CUDA has by these names, common type traits (CUDA's own C++ core libraries have all
of it, and take seconds of every build). Integer types are those of these libraries under NVRTC, with which
they get along. nvcc finds the host's own headers instead, so nothing of this is delivered. A source that
needs more is told so by the compiler, and is nvcc's.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from tunesmith.core.files.read_headers import includes

Headers = tuple[tuple[str, str], ...]

_DEFINED = re.compile(r"#[ \t]*define[ \t]+(\w+)")


def standard_headers(source: str, given: Headers) -> Headers:
    """What of the standard these texts include and nobody has given: spelling and text."""
    own = {spelling for spelling, _ in given}
    found: dict[str, str] = {}
    queue = [
        source,
        *(text for _, text in given),
        *(["#include <math.h>"] if pre_included(source, given) else []),
    ]
    while queue:
        for spelling, _ in includes(queue.pop()):
            if spelling in _names() and spelling not in own and spelling not in found:
                found[spelling] = _text(spelling)
                queue.append(found[spelling])
    return tuple(found.items())


def pre_included(source: str, given: Headers) -> str:
    """The header that nvcc would have put in front of a source's first line, where a text makes use of it;
    else nothing."""
    if any(spelling == "math.h" for spelling, _ in given):
        return ""
    texts = "\n".join([source, *(text for _, text in given)])
    words = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", texts)) & _names_in_math()
    words -= set(_DEFINED.findall(texts))
    return "math.h" if words else ""


@cache
def _names() -> frozenset[str]:
    return frozenset(file.name for file in resources.files(__package__).joinpath("headers").iterdir())


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath("headers", name).read_text(encoding="utf-8")


@cache
def _names_in_math() -> frozenset[str]:
    return frozenset(_DEFINED.findall(_text("math.h")))
