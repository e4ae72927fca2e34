"""The client as the model of a run: requests in the run's mailbox that nobody has answered, and replies."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tunesmith.errors import BadInput
from tunesmith.models import EXPERT, names_roles, parse_models, parse_spec
from tunesmith.models.letters import has_reply, letter
from tunesmith.run.dialogue import LONGEST, Request
from tunesmith.run.files import explained, write_whole
from tunesmith.run.store import RunFolder
from tunesmith.session.problems import state_of
from tunesmith.session.strategies.casting import MAILBOX

_LONG_AGO = 60.0  # seconds: a reply that is whole when it gets its name need not settle


def check_models(text: str, permitted: Sequence[str]) -> None:
    """Kernels and keys go to nobody whom only a client, or a run's folder, names: BadInput for models that
    are neither the run's own mailbox nor among those the server was started with."""
    if not text:
        return
    parse_models(text)
    parts = [part.partition("=")[2] for part in text.split(",")] if names_roles(text) else [text]
    for one in map(str.strip, parts):
        spec = parse_spec(one)
        if spec.kind == EXPERT or (spec.kind == "mailbox" and not spec.rest) or one in permitted:
            continue
        named = ", ".join(["mailbox", EXPERT, *permitted])
        hint = (
            "name one of them, in roles: planner=mailbox,author=mailbox; others: tunesmith mcp --model SPEC"
        )
        raise BadInput(f"models through this server are {named}; got {one!r}", hint=hint)


def check_run(folder: Path, permitted: Sequence[str]) -> None:
    """The same of a run that somebody else may have begun."""
    started = state_of(RunFolder.open(folder)).started
    if started is not None:
        check_models(started.settings.models, permitted)


def open_requests(folder: Path) -> tuple[Request, ...]:
    """In the order they were asked."""
    state = state_of(RunFolder.open(folder))
    if state.stopped is not None:
        return ()
    box = _box(folder)
    waiting = (exchange.request for exchange in state.dialogue if exchange.is_open)
    return tuple(request for request in waiting if not has_reply(box / f"{request.name}.reply.md"))


def text_of(request: Request) -> str:
    return letter(request, f"{request.name}.reply.md")


def hand_in(folder: Path, name: str, text: str) -> None:
    """As the reply to an open request, whole or not at all."""
    waiting = [request.name for request in open_requests(folder)]
    if name not in waiting:
        hint = f"open are: {', '.join(waiting)}" if waiting else "none is open: look at the run with status"
        fault = f"a reply is to a request that is open; got {name!r}"
        raise BadInput(fault, where=str(folder), hint=hint)
    if not text.strip() or len(text) > LONGEST:
        hint = "send what the request asks for: one JSON object, or one whole file in a fence"
        raise BadInput(f"a reply has 1 to {LONGEST} characters, got {len(text)}", where=name, hint=hint)
    target = _box(folder) / f"{name}.reply.md"
    with explained("write the reply", target):
        target.parent.mkdir(exist_ok=True)
        write_whole(target, text.encode("utf-8", "replace"))
        then = time.time() - _LONG_AGO
        os.utime(target, (then, then))


def _box(folder: Path) -> Path:
    """The mailbox of a run, which is a folder in it and no link to another."""
    box = folder / MAILBOX
    if box.is_symlink():
        raise BadInput("the mailbox of a run is a folder, this is a link", where=str(box), hint="remove it")
    return box
