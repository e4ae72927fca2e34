"""What ends a loop's body with a conversion that the hardware does for two at once."""

from __future__ import annotations

import pytest

from tests.expert.writing.models import statements
from tunesmith.csource.printing import print_expr
from tunesmith.expert.writing.packs import converted

FORMS = {"to_e4m3": "both({a}, {b})"}


@pytest.mark.parametrize("target", ["q[k].at[v]", "q[k].at[v].__x"])
def test_a_store_of_what_is_converted(target: str) -> None:
    found = converted(statements(f"const float y = x * 2.0f; {target} = to_e4m3(y + 1.0f);"), "v", FORMS)
    assert found is not None
    assert len(found.before) == 1
    assert (print_expr(found.into), print_expr(found.value)) == ("q[k].at", "y + 1.0f")
    assert found.form == "both({a}, {b})"


@pytest.mark.parametrize(
    "text",
    [
        "q[k].at[v] = other(x);",
        "q[k].at[v + 1] = to_e4m3(x);",
        "q[k].at[v] = to_e4m3(x); sum += x;",
        "if (x > 0.0f) continue; q[k].at[v] = to_e4m3(x);",
        "q[k].at[v] += to_e4m3(x);",
        "",
    ],
)
def test_what_is_none(text: str) -> None:
    assert converted(statements(text), "v", FORMS) is None
