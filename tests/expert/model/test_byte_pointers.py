"""Places in bytes that are whole elements, and those of which nobody knows."""

from __future__ import annotations

import pytest

from tests.csource.reading import statements_of
from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.byte_pointers import in_elements
from tunesmith.expert.model.translate import LaunchTerms
from tunesmith.space.expr import parse

_LAUNCH = LaunchTerms(
    {name: parse(text).tree for name, text in (("nb", "d * 4"), ("pad", "4 * d + 8"), ("odd", "d * 2"))}, {}
)
_PARAMETERS = (
    c.Parameter(c.Type("float", 1), "x"),
    *(c.Parameter(c.Type("int"), name) for name in ("nb", "pad", "odd", "i")),
)


def _counted(text: str) -> str:
    body = statements_of(text)
    function = c.Function("k", _PARAMETERS, body, c.Type("void"))
    return print_statements(in_elements(function, body, _LAUNCH))


@pytest.mark.parametrize(
    ("place", "elements"),
    [
        ("(char *)x + i * nb", "x + i * (nb / 4)"),
        ("(const char *)x + i * pad + 8", "x + (i * (pad / 4) + 2)"),
        ("(char *)x + (long long)i * nb + 4 * odd", "x + (i * (nb / 4) + odd)"),
    ],
)
def test_places_that_are_whole_elements(place: str, elements: str) -> None:
    assert _counted(f"float *p = (float *)({place});") == f"float *p = {elements};\n"


@pytest.mark.parametrize(
    "place",
    [
        "(char *)x + i * odd",
        "(char *)x + i * nb + 2",
        "(char *)x + (short)(i * nb)",
        "(char *)x + 4 * i - 4 * nb",
        "(short *)x + i * nb",
        "(char *)nb + i * nb",
    ],
)
def test_places_that_may_not_be(place: str) -> None:
    text = f"float *p = (float *)({place});"
    assert _counted(text) == print_statements(statements_of(text))


def test_an_argument_that_changes_is_no_multiple() -> None:
    text = "nb += 1; float *p = (float *)((char *)x + nb);"
    assert "nb / 4" not in _counted(text)
