"""How models are named."""

from __future__ import annotations

import re

import pytest

from tunesmith.agents.models import (
    Spec,
    move_model_folders,
    parse_models,
    parse_spec,
    sole_model,
    with_effort,
)
from tunesmith.base.errors import BadInput


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("openai:gpt-5", Spec("openai", "gpt-5")),
        (
            "openai:org/model@http://localhost:8000/v1",
            Spec("openai", "org/model", "http://localhost:8000/v1"),
        ),
        ("anthropic:claude", Spec("anthropic", "claude")),
        ("openai:gpt-5#high", Spec("openai", "gpt-5", effort="high")),
        ("openai:a:8b@http://h/v1#low", Spec("openai", "a:8b", "http://h/v1", "low")),
        ("mailbox:box#1", Spec("mailbox", "box#1")),
        ("mailbox:box", Spec("mailbox", "box")),
        ("mailbox:", Spec("mailbox", "")),
        ("recorded:a/b", Spec("recorded", "a/b")),
        ("expert", Spec("expert")),
    ],
)
def test_one_model(text: str, spec: Spec) -> None:
    assert parse_spec(text) == spec
    assert set(parse_models(text).values()) == {spec}


def test_a_model_for_some_roles_leaves_the_others_to_the_expert() -> None:
    found = parse_models("planner=mailbox:box,author=openai:m@http://h/v1?a=b")
    assert found["planner"] == Spec("mailbox", "box")
    assert found["author"] == Spec("openai", "m", "http://h/v1?a=b")
    assert found["tester"] == found["analyst"] == Spec("expert")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt-5", "unknown model 'gpt-5'; known are openai:…, anthropic:…, mailbox:…, recorded:… and expert"),
        ("openai:", "names no model"),
        ("openai:#low", "names no model"),
        ("openai:m#", "an effort is low, medium or high, got ''"),
        ("openai:m@http://h/v1#top", "an effort is low, medium or high, got 'top'"),
        ("openai:m@localhost", "'localhost' is no address"),
        ("openai:m@http://me:secret@host/v1", "an address with a password in it would end up in the journal"),
        ("recorded:", "names no folder"),
        ("writer=expert", "unknown role 'writer'; the roles are planner, author, tester, analyst"),
        ("planner=mailbox,author=mailbox,planner=expert", "the role planner is named twice"),
        ("planner=nothing", "unknown model 'nothing'"),
    ],
)
def test_what_is_no_name_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)) as refused:
        parse_models(text)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("openai:m@http://h/v1?a=b", "openai:m@http://h/v1?a=b"),
        ("mailbox", "mailbox"),
        ("mailbox:box/", "mailbox:box/p/single-1"),
        ("planner=recorded:old,author=anthropic:m", "planner=recorded:old/p/single-1,author=anthropic:m"),
        ("tester=expert,author=mailbox:b", "tester=expert,author=mailbox:b/p/single-1"),
    ],
)
def test_folders_of_a_run_lie_below_the_one_that_is_named(text: str, found: str) -> None:
    assert move_model_folders(text, "p/single-1") == found
    parse_models(found)


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("mailbox:box", "mailbox:box"),
        ("planner=openai:a,author=openai:a", "openai:a"),
        ("planner=openai:a,author=expert", "openai:a"),
        ("planner=openai:a,author=openai:b", "planner=openai:a,author=openai:b"),
        ("openai:a@http://host/v1?key=b", "openai:a@http://host/v1?key=b"),
    ],
)
def test_one_model_in_all_roles(text: str, one: str) -> None:
    assert sole_model(text) == one


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ""),
        ("openai:a", "openai:a#low"),
        ("openai:a#high", "openai:a#high"),
        ("openai:a@http://h/v1?a=b", "openai:a@http://h/v1?a=b#low"),
        ("mailbox:box", "mailbox:box"),
        (
            "planner=expert,author=anthropic:m,tester=openai:a#high",
            "planner=expert,author=anthropic:m#low,tester=openai:a#high",
        ),
    ],
)
def test_an_effort_for_all_leaves_those_that_have_their_own(text: str, found: str) -> None:
    assert with_effort(text, "low") == found
    assert with_effort(text, "") == text


def test_an_effort_that_is_none_is_refused_whoever_plays() -> None:
    with pytest.raises(BadInput, match="an effort is low, medium or high, got 'much' for all models"):
        with_effort("", "much")
