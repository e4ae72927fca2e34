"""Variables that belong to a turn, and pointers that a branch chooses: what is taken so, and what is not."""

from __future__ import annotations

import pytest

from tests.csource.reading import statements_of
from tunesmith.csource import nodes as c
from tunesmith.csource.printing import print_statements
from tunesmith.expert.model.chosen_pointers import with_branches_for_pointers
from tunesmith.expert.model.scratch import with_scratch_in_loops

_HEAD = "for (int i = t; i < n; i += 32) "
_PACK = "float4 v; __half2 *h = (__half2 *)&v; "


@pytest.mark.parametrize(
    "text",
    [
        _PACK + _HEAD + "{ v = x[i]; y[i] = h[0]; }",
        _PACK + _HEAD + "{ h[0] = x[i]; h[1] = x[i]; h[3] = x[i]; h[2] = x[i]; y[i] = v; }",
        _PACK + _HEAD + "{ for (int j = 0; j < 4; j++) h[j] = x[i]; y[i] = v; }",
        "float v[4]; " + _HEAD + "{ for (int j = 0; j < 4; j++) v[j] = x[i]; y[i] = v[2]; v[1] += 1; }",
    ],
)
def test_what_every_turn_sets_first_is_its_own(text: str) -> None:
    (loop,) = with_scratch_in_loops(statements_of(text))
    assert isinstance(loop, c.For)
    assert isinstance(loop.body[0], c.Declare)
    assert loop.body[0].name == "v"


@pytest.mark.parametrize(
    "text",
    [
        _PACK + _HEAD + "{ y[i] = h[0]; v = x[i]; }",  # of the turn before
        _PACK + _HEAD + "{ h[0] = x[i]; h[1] = x[i]; h[3] = x[i]; y[i] = v; }",  # a part of the turn before
        _PACK + _HEAD + "{ if (i > 3) v = x[i]; y[i] = v; }",
        _PACK + _HEAD + "{ for (int j = 1; j < 4; j++) h[j] = x[i]; y[i] = v; }",
        _PACK + _HEAD + "{ h[0] = h[1]; h[1] = x[i]; h[2] = x[i]; h[3] = x[i]; }",
        _PACK + _HEAD + "{ v = x[i]; y[i] = h[0]; } y[0] = h[1];",  # the last turn's
        _PACK + "v = x[0]; " + _HEAD + "{ v = x[i]; y[i] = h[0]; }",
        _PACK + "h = z; " + _HEAD + "{ v = x[i]; y[i] = h[0]; }",  # it points elsewhere
        "float v[4]; " + _HEAD + "{ for (int j = 0; j < 4; j++) v[j] += x[i]; }",
    ],
)
def test_what_a_turn_may_find_stays_outside(text: str) -> None:
    assert with_scratch_in_loops(statements_of(text)) == statements_of(text)


def test_what_follows_a_choice_is_done_with_each_pointer() -> None:
    text = "float *p = nullptr; if (i < n) p = a + i; else { i -= n; p = b; } p += i; y[i] = p[0];"
    done = with_branches_for_pointers(statements_of(text), ())
    assert " ".join(print_statements(done).split()) == (
        "if (i < n) { float *p = a + i; p += i; y[i] = p[0]; } else "
        "{ i -= n; float *p_2 = b; p_2 += i; y[i] = p_2[0]; }"
    )


@pytest.mark.parametrize(
    "text",
    [
        "float *p = nullptr; if (i < n) p = a + i; y[i] = p[0];",
        "float *p; if (i < n) p = a + i; else p = a - i; y[i] = p[0];",  # one array: a number that moves
        "float *p; if (i < n) { p = a; p = b; } else p = b; y[i] = p[0];",
        "float *p = c; if (i < n) p = a; else p = b; y[i] = p[0];",
        "float *p; if (i < n) p = a; else p = b; __syncthreads(); y[i] = p[0];",
        "float *p; if (i < n) p = a; else p = b; __shared__ float s[4]; s[0] = p[0];",
        "float *p; if (i < n) { if (i > 3) p = a; } else p = b; y[i] = p[0];",
    ],
)
def test_other_pointers_stay(text: str) -> None:
    assert with_branches_for_pointers(statements_of(text), ()) == statements_of(text)
