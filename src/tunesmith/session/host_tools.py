"""Models' questions to the laboratory on a machine without the device: builds and references need none, times
and profiles wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith import backends
from tunesmith.errors import DeviceMissing
from tunesmith.problem.problem import Problem
from tunesmith.run.events import Event
from tunesmith.run.ports import Journal, Listener, write_down
from tunesmith.run.state import State
from tunesmith.run.talking import Talking
from tunesmith.run.tools import ToolFound, ToolTask
from tunesmith.session import machine
from tunesmith.text import seed_of


@dataclass(frozen=True)
class HostTools:
    problem: Problem
    place: machine.Workplace
    talk: Talking

    def answer(self, state: State) -> Event | None:
        """To the question that waits; None: there is none, or it needs what is not here."""
        from tunesmith.run.inquiries import on_host  # which few runs need

        if state.compiler and tuple(state.compiler.split(" ", 1)) not in (self.place.compilers()):
            return None  # what another compiler says is not what was asked
        return on_host(
            state, self.talk.asked_of_lab(state), self.talk.tool_task, lambda task: self._use(state, task)
        )

    def go_on(self, state: State, journal: Journal, listener: Listener) -> State:
        """All that can be asked and answered without the device."""
        while (said := self.answer(state) or self.talk.next_event(state)) is not None:
            state = write_down(said, state, journal, listener)
        return state

    def told(self, state: State, missing: DeviceMissing) -> DeviceMissing:
        """With the question that waits for the device."""
        question = self.talk.asked_of_lab(state)
        if question is None:
            return missing
        number, call = question
        words = f"{missing.message}; the reply to request {number} asks for `{call.tool}`, which waits for it"
        return DeviceMissing(words, hint=missing.hint, where=missing.where)

    def _use(self, state: State, task: ToolTask) -> ToolFound:
        """By processes of its own, since questions are few."""
        from tunesmith.lab.measuring import LaunchPlans, Original
        from tunesmith.lab.references import References
        from tunesmith.lab.tooling import HostBench

        device, compiler = state.device, state.compiler
        builders = machine.make_builders(self.place, device, 1, compiler)
        references = References(self.problem, [self.place.spawn("reference")])
        plans, kind = LaunchPlans(self.problem, device), backends.kind(self.place.spec)
        started = state.started
        salt, seed = started.salt if started else 0, state.settings.seed
        bench = HostBench(
            self.problem,
            device,
            builders,
            plans,
            Original(self.problem, builders, plans),
            references,
            seed_of(seed, salt) if salt else seed,
            kind.instructions,
            kind.listing,
        )
        try:
            return bench.use(task)
        finally:
            bench.close()
