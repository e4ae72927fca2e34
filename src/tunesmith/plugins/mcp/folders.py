"""The folders that a client names: a path, with all its links followed, leads into one or is refused."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tunesmith.agents.mailbox import format_letter, has_reply
from tunesmith.agents.models import EXPERT, external_models, parse_models
from tunesmith.base.errors import BadInput
from tunesmith.base.files import explain_disk_errors, write_whole
from tunesmith.run.events import LONGEST, Request
from tunesmith.run.folder import RunFolder
from tunesmith.session.problems import state_of
from tunesmith.session.roles import own_mailbox

_RULE = "only the folders that the client names are touched"


@dataclass(frozen=True)
class ClientFolders:
    """Resolved, the first the one that relative paths count from. Empty: nothing may be touched."""

    folders: tuple[Path, ...]
    why_none: str = "the client names none, and the server was started without --root"

    @property
    def first(self) -> Path:
        if not self.folders:
            hint = "have the client name its folders (roots), or start the server with --root DIR"
            raise BadInput(f"{_RULE}: {self.why_none}", hint=hint)
        return self.folders[0]

    def inside(self, given: str) -> Path:
        """The path as it is once every link is followed; BadInput where that is not in one of them."""
        if not given or "\0" in given:
            raise BadInput(f"a path is a text with at least one letter, got {given!r}", hint="name a path")
        try:
            path = (self.first / given).resolve()
        except (OSError, RuntimeError) as error:  # links in a circle, a name that is too long
            hint = "name another path"
            raise BadInput(f"the path cannot be followed: {error}", where=given, hint=hint) from error
        if not any(path.is_relative_to(folder) for folder in self.folders):
            named = ", ".join(map(str, self.folders))
            own = "" if str(path) == given else f", which is {path}"
            hint = f"name a path in one of them: {named}; or have the client name that folder too"
            raise BadInput(f"{_RULE}; got {given}{own}", hint=hint)
        return path

    def root_of(self, path: Path) -> Path:
        """The one that a path lies in, the innermost."""
        around = [folder for folder in self.folders if path.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=self.first)


def allowed_folders(named: Iterable[str] | None, bounds: Iterable[Path]) -> ClientFolders:
    """What the client names as addresses (None: it cannot say), within the bounds that whoever started the
    server set; without bounds all that it names, and without its word the bounds."""
    limits = tuple(bound.resolve() for bound in bounds)
    if named is None:
        return ClientFolders(limits)
    listed = list(named)
    wanted = tuple(folder for address in listed if (folder := folder_of(address)) is not None)
    if not limits:
        none_here = f"of what it names none is a folder here: {', '.join(listed)}"
        return ClientFolders(wanted, none_here if listed else "it names none")
    inner = [folder for folder in wanted if any(folder.is_relative_to(limit) for limit in limits)]
    inner += [limit for limit in limits if any(limit.is_relative_to(folder) for folder in wanted)]
    outside = f"what it names ({', '.join(listed) or 'nothing'}) is outside of --root"
    return ClientFolders(tuple(dict.fromkeys(inner)), outside)


def folder_of(address: str) -> Path | None:
    """Of `file:///home/me/project`; None where it is no folder of this machine."""
    try:
        parts = urlsplit(address)
        path = Path(unquote(parts.path))
        is_here = parts.scheme == "file" and parts.netloc in ("", "localhost") and path.is_absolute()
        return path.resolve() if is_here and path.is_dir() else None
    except (OSError, ValueError):
        return None


# The client as the model of a run: requests in the run's mailbox that nobody has answered, and replies.
_LONG_AGO = 60.0  # seconds: a reply that is whole when it gets its name need not settle


def check_models(text: str, permitted: Sequence[str]) -> None:
    """Kernels and keys go to nobody whom only a client, or a run's folder, names: BadInput for models that
    are neither the run's own mailbox nor among those the server was started with."""
    if text:
        parse_models(text)
    if refused := next((one for one in external_models(text) if one not in permitted), None):
        named = ", ".join(["mailbox", EXPERT, *permitted])
        roles = "name one of them, in roles: planner=mailbox,author=mailbox"
        hint = f"{roles}; others: tunesmith mcp --model SPEC"
        raise BadInput(f"models through this server are {named}; got {refused!r}", hint=hint)


def check_run(folder: Path, permitted: Sequence[str]) -> str:
    """The same of a run that somebody else may have begun. Its models, which may be asked."""
    started = state_of(RunFolder.open(folder)).started
    models = started.settings.models if started is not None else ""
    check_models(models, permitted)
    return models


def open_requests(folder: Path) -> tuple[Request, ...]:
    """In the order they were asked."""
    state = state_of(RunFolder.open(folder))
    if state.stopped is not None:
        return ()
    box = own_mailbox(folder)
    waiting = (exchange.request for exchange in state.dialogue if exchange.is_open)
    return tuple(request for request in waiting if not has_reply(box / f"{request.name}.reply.md"))


def text_of(request: Request) -> str:
    return format_letter(request, f"{request.name}.reply.md")


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
    target = own_mailbox(folder) / f"{name}.reply.md"
    with explain_disk_errors("write the reply", target):
        target.parent.mkdir(exist_ok=True)
        write_whole(target, text.encode("utf-8", "replace"))
        then = time.time() - _LONG_AGO
        os.utime(target, (then, then))
