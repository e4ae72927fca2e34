"""The templates of a run by candidate, and what one of them tells another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.run.test_loop import MemoryTexts
from tests.drafts import a_draft
from tests.samples import DEVICE, TEMPLATE, a_problem, a_template, started
from tunesmith.base.codec import decode_json, encode_json
from tunesmith.base.errors import BadInput
from tunesmith.run.candidates import Templates, draft_name, inherit_rows, rows_for
from tunesmith.run.events import Drafted
from tunesmith.run.state import Candidate, State, author_of
from tunesmith.space.configset import Config

PROBLEM = a_problem()
GIVEN = a_template(PROBLEM)


def templates(*texts: str) -> tuple[Templates, list[Candidate]]:
    store = MemoryTexts()
    own = [Candidate(str(n), store.put(text)) for n, text in enumerate(texts, 1)]
    return Templates(PROBLEM, DEVICE, GIVEN, store), own


def test_the_same_values_of_two_templates_are_two_configurations() -> None:
    found, (one, two) = templates(TEMPLATE, TEMPLATE)
    first, second = found.configs(one), found.configs(two)
    assert len(first) == len(second)
    assert set(first).isdisjoint(second)
    assert first[0] not in second
    assert first[0].candidate == "1"
    assert str(first[0]) == str(second[0])
    assert first[0].label == f"{first[0]} of template 1"
    assert GIVEN.default.label == str(GIVEN.default)
    assert first[0].replace("BLOCK", 256).candidate == "1"
    assert found.of(one).default == Config((("BLOCK", 64), ("VEC", 1)), "1")


def test_each_configuration_finds_its_template() -> None:
    found, (one,) = templates(a_draft({"A": [1, 2]}))
    lookup = found.lookup(State(candidates=(one,)))
    given = lookup(Config.of({"BLOCK": 64, "VEC": 1}))
    assert given == replace(GIVEN, built_for=given.built_for)
    own = lookup(Config((("A", 2),), "1"))
    assert own.path == draft_name(PROBLEM, "1") == "template-1.cl"
    assert own.space.candidate == own.default.candidate == "1"
    assert own.digest == one.template


@pytest.mark.parametrize("author", ["", "a model"])
def test_what_a_model_wrote_is_vetted_when_it_is_built(author: str) -> None:
    found, (one,) = templates(TEMPLATE)
    drafted = replace(one, drafted=Drafted("1", "", one.template, author=author))
    variant = found.of(drafted).render(PROBLEM, found.of(drafted).default, PROBLEM.workloads[0].as_dict())
    assert bool(variant.made_from) is bool(author)
    digest = found.admitted(drafted, rules=((("BLOCK", 256), ("VEC", 1)),)).template
    assert digest != one.template
    assert found.of(replace(drafted, template=digest)).is_foreign is bool(author), (
        "also with rules of the gate"
    )


def test_given_ones_that_a_model_once_wrote_are_vetted_too() -> None:
    store = MemoryTexts()
    digest = store.put(TEMPLATE)
    found = Templates(PROBLEM, DEVICE, GIVEN, store, {"2": digest, "3": digest}, {"": "a model", "3": "x"})
    assert [found.of(Candidate(name, digest)).is_foreign for name in ("", "2", "3")] == [True, False, True]


def test_a_run_says_who_wrote_what_it_was_given() -> None:
    own = replace(started(), authors=(("2", "a model"),), origin="run x on y")
    assert (author_of(own, ""), author_of(own, "2")) == ("", "a model")


def test_a_text_that_is_no_template_is_refused_each_time_it_is_asked_for() -> None:
    found, (one,) = templates("nothing")
    for _ in range(2):
        with pytest.raises(BadInput, match="declares its parameters"):
            found.of(one)


def test_a_journal_from_before_there_were_candidates_is_read() -> None:
    old = b'{"items":[["BLOCK",64],["VEC",1]]}'
    assert decode_json(old, Config) == GIVEN.default
    assert decode_json(encode_json(Config((("A", 2),), "3")), Config).candidate == "3"


def test_rows_of_the_same_parameters_carry_over_as_far_as_the_values_go() -> None:
    own = a_template(PROBLEM, a_draft({"B": [0, 1], "A": [1, 2]})).of_candidate("4")
    rows = [
        (Config((("A", 1), ("B", 1)), "2"), 0.5),
        (Config((("A", 8), ("B", 1)), "2"), 0.7),
        (Config((("A", 1),), "2"), 0.9),
        (Config((("A", 2), ("B", 0)), "2"), None),
    ]
    assert rows_for(own, rows) == [
        (Config((("B", 1), ("A", 1)), "4"), 0.5),
        (Config((("B", 0), ("A", 2)), "4"), None),
    ]


def test_what_a_template_adds_stands_at_its_default() -> None:
    own = a_template(PROBLEM, a_draft({"A": [1, 2], "KEEP": [0, 1]})).of_candidate("2")
    rows = [(Config((("A", 2),), "1"), 0.5), (Config((("A", 2), ("OTHER", 1)), "1"), 0.5)]
    assert inherit_rows(own, rows) == [(Config((("A", 2), ("KEEP", 0)), "2"), 0.5)]
