"""What a rehearsal says of who watched it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tunesmith.lab.lab import rehearse_builds
from tunesmith.lab.memory import RIGHT
from tunesmith.run.events import Sanitized

WATCHED = Sanitized("g++", ("cpu",))
CUT_OFF = Sanitized("g++", (), (("cpu", "it ran out of time"),))
NONE = Sanitized(absent=(("", "there is none here"),))


@pytest.mark.parametrize(
    ("looks", "watched"),
    [
        ([WATCHED], "g++"),
        ([WATCHED, WATCHED], "g++"),
        ([CUT_OFF], ""),
        ([WATCHED, CUT_OFF], ""),
        ([NONE], ""),
    ],
)
def test_watched_is_said_where_every_build_was_watched_to_the_end(
    looks: list[Sanitized], watched: str
) -> None:
    left = iter(looks)
    builders: Any = SimpleNamespace(start=lambda _: SimpleNamespace(result=lambda: "code"))
    cases: Any = SimpleNamespace(level=lambda *_: RIGHT, of_level=lambda *_: [1, 2])
    sanitizing: Any = SimpleNamespace(look_at_gate=lambda *_: next(left))
    builds: Any = [SimpleNamespace(variant=None) for _ in looks]
    found = rehearse_builds(builds, builders, cases, sanitizing, 0)
    assert (found.verdict, found.cases, found.watched) == (RIGHT, 4 * len(looks), watched)
