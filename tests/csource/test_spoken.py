"""Names that were made on the way are told as what the source has."""

from __future__ import annotations

import pytest

from tunesmith.csource.spoken import in_words_of, words_of

WORDS = words_of("P q; q.at.x = own_name; auto f = [&] {}; int index; blockDim.x")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("'q_at' is read before it is set", "'q.at' is read before it is set"),
        ("'q_at_x[index_2]' is stored", "'q.at.x[index]' is stored"),
        ("lambda_f_8 stays a call", "the lambda f stays a call"),
        ("lambda_of_12 stays a call", "a lambda stays a call"),
        ("own_name is called", "own_name is called"),
        ("far_away is called, __any_sync too", "far_away is called, __any_sync too"),
        ("index_2_3 differs", "index differs"),
    ],
)
def test_names_are_those_of_the_source(reason: str, said: str):
    assert in_words_of(WORDS, reason) == said
