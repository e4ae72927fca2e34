"""What can be done next in a run, and what that is decided by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run import events
from tunesmith.run.candidates import HostGate, NextRehearsal, Templates
from tunesmith.run.outcome import Rehearsed
from tunesmith.run.ports import Inbox, Lab, Power, Searcher
from tunesmith.run.scores import OneSearch
from tunesmith.run.state import Candidate, State
from tunesmith.run.talk import Talking
from tunesmith.space.configset import Config


@dataclass(frozen=True)
class Write:
    """What follows from the state by itself."""

    event: events.Event


@dataclass(frozen=True)
class OrderBuild:
    """A build of which the journal says nothing until it is there: without a device nothing waits for it."""

    config: Config | None


@dataclass(frozen=True)
class Collect:
    """The outcome of a trial that is under way."""


@dataclass(frozen=True)
class Experiment:
    """An experiment that is over when the lab returns; what came of it is written down."""

    perform: Callable[[Lab], events.Event | None]
    configs: tuple[Config, ...] = ()  # whose templates the lab knows by then
    note: str = ""


@dataclass(frozen=True)
class Blocked:
    """Nothing more can be done here, and the run has not stopped."""

    reason: str


Action = Write | OrderBuild | Collect | Experiment | Blocked


class Rehearse(Protocol):
    def __call__(self, template: Template | None, wanted: NextRehearsal | None, /) -> Rehearsed | None: ...


@dataclass
class World:
    """What stages look at beside the state. Of what it remembers nothing matters: a process that goes on
    finds it out again."""

    problem: Problem
    templates: Templates
    lab: Lab
    searcher: Searcher  # one that needs no scores where nothing is timed
    talk: Talking
    inbox: Inbox | None = None
    heeds_words: bool = True  # whether the author can make use of what is said of its draft
    rehearse: Rehearse = lambda _template, _wanted: None  # on the host; None: it has nothing to say
    surveying: list[Config | None] = field(default_factory=list, init=False)  # in the order they were asked
    unrehearsed: set[Config | None] = field(default_factory=set, init=False)  # the host said nothing of them
    gates: dict[str, HostGate | None] = field(default_factory=dict, init=False)  # on the host, of drafts

    def search_of(self, state: State) -> OneSearch:
        return OneSearch(self.problem, state, self.templates)

    def rehearsal(self, candidate: Candidate | None, wanted: NextRehearsal | None) -> Experiment | None:
        """Of the original, or of a template by one configuration, unless the host has nothing to say."""
        config = None if wanted is None else wanted.config
        if config in self.unrehearsed:
            return None

        def perform(_lab: Lab) -> Rehearsed | None:
            template = None if candidate is None else self.templates.of(candidate)
            if (found := self.rehearse(template, wanted)) is None:
                self.unrehearsed.add(config)
            return found

        return Experiment(perform)


class Stage(NamedTuple):
    name: str
    next: Callable[[State, World], Action | None]  # None: it has nothing to do
    needs: tuple[Power, ...] = ()
    is_offline: bool = False  # only where the device is absent
