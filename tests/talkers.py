"""Models made up for tests: what each says to the n-th request, and what it was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tunesmith.run.events import NoReply, Pending, Recorded, Reply, Request, Unanswered, Usage

Said = str | Reply | NoReply | Pending


@dataclass
class Scripted:
    """`script`: by the request's number, what each attempt brings; the last of them for all that follow."""

    script: Mapping[int, Sequence[Said]]
    name: str = "scripted"
    asked: list[Request] = field(default_factory=list)
    tried: dict[int, int] = field(default_factory=dict)
    at_once: bool = True  # else it is asked in a thread of its own

    def after(self, records: Sequence[Recorded]) -> Scripted:
        """As it is after a run was killed there: what failed before is not tried again."""
        for record in records:
            if isinstance(record.event, Unanswered):
                self.tried[record.event.number] = record.event.attempt
        return self

    def reply(self, request: Request) -> Reply | Pending | NoReply:
        self.asked.append(request)
        said = self.script[request.number]
        attempt = self.tried.get(request.number, 0)
        self.tried[request.number] = attempt + 1
        found = said[min(attempt, len(said) - 1)]
        return Reply(found, Usage(100, 10, 0.5)) if isinstance(found, str) else found


def plan(decision: str = "refactor", **more: object) -> str:
    why = (
        {"why": "narrow loads", "what": "Read four at once: VEC."}
        if decision == "refactor"
        else {"why": "done"}
    )
    return json.dumps({"decision": decision, **why, **more})


def file(text: str) -> str:
    return f"Here it is.\n```c\n{text.rstrip()}\n```\nGood luck!\n"
