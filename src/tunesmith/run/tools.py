"""What a model may ask of the lab before it decides or writes: to compile, time or profile a text, or to see
what is expected of an input. Nothing of it is a measurement of the run: no candidate, no score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tunesmith.problem.template import Template
from tunesmith.run.dialogue import Exchange, Role
from tunesmith.space.params import Config

ToolName = Literal["compile", "time", "profile", "reference"]
ORIGINAL = "original"
ASKERS: tuple[Role, ...] = ("planner", "author", "single")
ON_DEVICE: tuple[ToolName, ...] = ("time", "profile")  # what an evaluation is


@dataclass(frozen=True)
class ToolCall:
    """As a model wrote it, with names that may be wrong."""

    tool: ToolName
    text: str = ""  # a whole file; empty: `base` says what is meant
    base: str = ORIGINAL  # or a template of the run
    config: tuple[tuple[str, int], ...] = ()  # values in place of the default's
    workload: str = ""  # empty: the first
    listing: tuple[int, int] | None = None  # lines of the file, the first and the last, as machine code
    sizes: tuple[tuple[str, int], ...] = ()  # of a reference
    values: str = "normal"


@dataclass(frozen=True)
class ToolTask:
    """What the lab is asked: it is there, it has been judged, and may be built."""

    tool: ToolName
    template: Template | None = None  # None: the original
    config: Config | None = None
    workload: str = ""
    listing: tuple[int, int] | None = None
    sizes: tuple[tuple[str, int], ...] = ()
    values: str = "normal"


@dataclass(frozen=True)
class ToolFound:
    text: str
    seconds: float = 0.0  # that it had the device
    evals: int = 0


ReadCall = Callable[[Exchange], ToolCall | None]
