"""Language models behind one protocol, and how they are named on the command line:
`openai:gpt-5@http://host/v1#high`, `mailbox:DIR`, `recorded:DIR`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tunesmith.base.errors import BadInput
from tunesmith.run.events import ROLES, Role

HOSTED = ("openai", "anthropic")
KINDS = (*HOSTED, "mailbox", "recorded")
EXPERT = "expert"
EFFORTS = ("low", "medium", "high")


@dataclass(frozen=True)
class Spec:
    """`kind` is one of KINDS or "expert"; `rest` a model's name or a folder, `url` another place for it,
    `effort` how much it is to think: one of EFFORTS, or empty for what it does by itself."""

    kind: str
    rest: str = ""
    url: str = ""
    effort: str = ""


def parse_spec(text: str) -> Spec:
    kind, _, rest = text.strip().partition(":")
    if kind == EXPERT and not rest:
        return Spec(EXPERT)
    if kind not in KINDS:
        known = ", ".join(f"{kind}:…" for kind in KINDS)
        raise BadInput(
            f"unknown model {text!r}; known are {known} and {EXPERT}",
            hint="e.g. --model openai:gpt-5, --model openai:my-model@http://localhost:8000/v1, "
            "--model mailbox:DIR",
        )
    if kind in ("mailbox", "recorded"):
        if not rest and kind == "recorded":
            raise BadInput(f"{text!r} names no folder", hint=f"write {kind}:DIR")
        return Spec(kind, rest)
    place, has_effort, effort = rest.rpartition("#")
    if has_effort:
        check_effort(effort, f"after the # of {text!r}")
    name, _, url = (place if has_effort else rest).partition("@")
    effort = effort if has_effort else ""
    if not name:
        raise BadInput(f"{text!r} names no model", hint=f"write {kind}:NAME")
    if "@" in url:
        hint = f"leave it out, and put the key into the environment: {kind}:{name}@http://host:port/v1"
        raise BadInput("an address with a password in it would end up in the journal", hint=hint)
    if url and not url.startswith(("http://", "https://")):
        raise BadInput(f"{url!r} is no address", hint=f"write {kind}:{name}@http://host:port/v1")
    return Spec(kind, name, url, effort)


def check_effort(effort: str, where: str) -> None:
    if effort not in EFFORTS:
        known = f"{', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}"
        raise BadInput(f"an effort is {known}, got {effort!r} {where}", hint="e.g. --model openai:gpt-5#high")


def with_effort(text: str, effort: str) -> str:
    """The same models, those behind a network with that effort where they name none of their own."""
    if effort:
        check_effort(effort, "for all models")
    if not (text and effort):
        return text

    def changed(one: str) -> str:
        spec = parse_spec(one)
        return f"{one}#{effort}" if spec.kind in HOSTED and not spec.effort else one

    return _with_each(text, changed)


def _with_each(text: str, change: Callable[[str], str]) -> str:
    """The same roles and models, the text of each model changed."""
    if not names_roles(text):
        return change(text)
    parts = (part.partition("=") for part in text.split(","))
    return ",".join(f"{role}={change(spec)}" for role, _, spec in parts)


def external_models(text: str) -> list[str]:
    """Of the models named those that are more than the expert and the mailbox in the run's own folder."""
    parts = [part.partition("=")[2] for part in text.split(",")] if names_roles(text) else [text]
    return [
        one for one in map(str.strip, parts) if one and parse_spec(one) not in (Spec(EXPERT), Spec("mailbox"))
    ]


def names_roles(text: str) -> bool:
    """Whether it is `ROLE=SPEC` and not a model for all; an address may have that sign, too."""
    return "=" in text.split("@", 1)[0]


def parse_models(text: str) -> Mapping[Role, Spec]:
    """`SPEC` for all roles, or `planner=SPEC,author=SPEC`: roles that are not named are the expert's."""
    if not names_roles(text):
        return dict.fromkeys(ROLES, parse_spec(text))
    found: dict[Role, Spec] = {}
    for part in text.split(","):
        name, _, spec = part.partition("=")
        role = next((role for role in ROLES if role == name.strip()), None)
        if role is None:
            words = f"unknown role {name.strip()!r}; the roles are {', '.join(ROLES)}"
            raise BadInput(words, hint="e.g. --model planner=expert,author=openai:gpt-5")
        if role in found:
            raise BadInput(f"the role {role} is named twice in {text!r}", hint="name one model for each role")
        found[role] = parse_spec(spec)
    return dict.fromkeys(ROLES, Spec(EXPERT)) | found


def sole_model(text: str) -> str:
    """The one model that plays whatever roles are named; where they are several, the text as it is."""
    if not names_roles(text):
        return text
    named = {part.partition("=")[2].strip() for part in text.split(",")} - {EXPERT}
    return named.pop() if len(named) == 1 else text


def move_model_folders(text: str, below: str) -> str:
    """The same models with their folders one of their own below the one named, where they have one."""

    def changed(one: str) -> str:
        spec = parse_spec(one)
        has_folder = spec.kind in ("mailbox", "recorded") and spec.rest
        return f"{spec.kind}:{spec.rest.rstrip('/')}/{below}" if has_folder else one

    return _with_each(text, changed)
