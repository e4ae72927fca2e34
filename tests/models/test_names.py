"""How models are named."""

from __future__ import annotations

import re

import pytest

from tunesmith.core.errors import BadInput
from tunesmith.models.names import Spec, parse_models, parse_spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("openai:gpt-5", Spec("openai", "gpt-5")),
        (
            "openai:org/model@http://localhost:8000/v1",
            Spec("openai", "org/model", "http://localhost:8000/v1"),
        ),
        ("anthropic:claude", Spec("anthropic", "claude")),
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
        ("openai:m@localhost", "'localhost' is no address"),
        ("openai:m@http://me:secret@host/v1", "an address with a password in it would end up in the journal"),
        ("recorded:", "names no folder"),
        ("writer=expert", "unknown role 'writer'; the roles are planner, author, tester, analyst"),
        ("planner=nothing", "unknown model 'nothing'"),
    ],
)
def test_what_is_no_name_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)) as refused:
        parse_models(text)
    assert refused.value.hint
