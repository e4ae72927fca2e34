"""Conditions that the problem's arguments decide, and those that only look like it."""

from __future__ import annotations

import pytest

from tests.csource.reading import statements_of
from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.fixed_arguments import facts_of_fixed, with_decided

_FIXED = {"mode": 2, "off": 0, "gone": 0}
_ARRAYS = frozenset({"x"})


def _decided(body: str) -> tuple[str, tuple[str, ...]]:
    function = c.Function("k", (), statements_of(body), c.Type("void"))
    done, said = with_decided(function, _FIXED, _ARRAYS)
    return print_statements(done.body), said


@pytest.mark.parametrize(
    ("body", "left", "said"),
    [
        ("if (mode == 2) y[0] = 1; else y[0] = 2;", "y[0] = 1;\n", ("mode",)),
        ("if (gone != nullptr) y[0] = gone[0];", "", ("gone",)),
        ("y[0] = off ? *scale : 1;", "y[0] = 1;\n", ("off",)),
        ("if (n > 3 && mode == 1) y[0] = 1;", "", ("mode",)),
        ("const bool has = gone != nullptr && mode > 1; if (has) y[0] = 1;",
         "const bool has = 0;\n", ("gone", "mode")),
        ("float *more = nullptr; const bool two = 0; if (two) more[0] = 2; y[0] = 1;",
         "const bool two = 0;\ny[0] = 1;\n", ()),
        ("float *more = nullptr; if (more != nullptr || mode == 1) more[0] = 2; y[0] = 1;",
         "y[0] = 1;\n", ("mode",)),
        ("if (x == nullptr) y[0] = 1; else y[0] = x[0];", "y[0] = x[0];\n", ()),
    ],
)  # fmt: skip
def test_what_the_arguments_decide_is_gone(body: str, left: str, said: tuple[str, ...]) -> None:
    assert _decided(body) == (left, said)


@pytest.mark.parametrize(
    "body",
    [
        "if (n == 2) y[0] = 1;",  # a size
        "y[mode] = mode * 2;",  # no question
        "if (z == nullptr) y[0] = 1;",  # no array of the problem
        "x = z; if (x != nullptr) y[0] = 1;",  # it points elsewhere by then
        "if (n > 1) { int mode = n; if (mode == 2) y[0] = 1; }",  # another one of that name
        "bool has = mode == n; if (has) y[0] = 1;",
        "bool two = 0; if (n) two = 1; if (two) y[0] = 1;",
        "float *more = nullptr; if (n) y[0] = more[0];",
        "float *more = nullptr; if (n) more = x; if (more != nullptr) y[0] = more[0];",
    ],
)
def test_what_they_do_not_decide_stays(body: str) -> None:
    assert _decided(body) == (print_statements(statements_of(body)), ())


def test_a_flag_that_changes_is_no_flag() -> None:
    left, _ = _decided("bool on = mode == 2; if (n > 3) on = false; if (on) y[0] = 1;")
    assert "if (on)" in left


def test_it_is_the_contracts_word() -> None:
    (fact,) = facts_of_fixed(("mode",), _FIXED)
    assert (fact.what, fact.ground) == ("'mode' is 2 in every call", "the contract's word")
