"""The loop: look at the state, do the next thing, write down what happened, look again.

Each step follows from the state alone, a fold over the journal: a run that was killed goes on where it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.run import devices, events, stages
from tunesmith.run.outcome import Trial
from tunesmith.run.ports import RunLog
from tunesmith.run.prior import without_profiles
from tunesmith.run.state import State
from tunesmith.space.configset import Config


@dataclass
class Loop:
    world: stages.World
    log: RunLog
    blocked: str = ""  # why the run goes no further, if it has not stopped

    def run(self) -> State:
        """Go on from the state of the log until the run has stopped, or can go no further here."""
        self._issued: set[int] = set()
        self._at_lab: set[str] = set()
        self._tell_what_is_done_without()
        self._issue()
        while self.log.state.stopped is None:
            action = stages.next_action(self.log.state, self.world)
            if isinstance(action, stages.Blocked):
                self.blocked = action.reason
                break
            self._perform_action(action)
        return self.log.state

    def _tell_what_is_done_without(self) -> None:
        state, lacks = self.log.state, self.world.lab.lacks
        said = without_profiles(state.settings, lacks.get("profile", ""))
        if said and state.stopped is None and not state.device.absent:
            self.log.listener.note(said)

    def _perform_action(
        self, action: stages.Write | stages.OrderBuild | stages.Collect | stages.Experiment
    ) -> None:
        lab = self.world.lab
        match action:
            case stages.Write(event):
                self._write(event)
            case stages.OrderBuild(config):
                self.world.surveying.append(config)
                digest = self._admit_template(config) if config is not None else ""
                lab.build(Trial(-1, config, (), "build", "search", digest))
            case stages.Collect():
                outcome = lab.collect()
                change = lab.changed() if outcome is None else devices.measured_event(self.log.state, outcome)
                if change is not None:
                    self.log.write(change)
            case stages.Experiment(perform, configs, note):
                if note:
                    self.log.listener.note(note)
                for config in configs:
                    self._admit_template(config)
                if (found := perform(lab)) is not None:
                    self._write(found)

    def _write(self, event: events.Event) -> None:
        """With what follows from it for the lab and whoever listens."""
        self.log.write(event)
        match event:
            case events.Asked() | events.AskedOf() | events.Enlisted():
                self._issue()
            case events.LeftOut(device):
                self._issue()
                self.world.lab.leave_out(device)
            case events.Searched():
                self.world.lab.drop_builds()
            case events.Surveyed() if self.world.surveying:
                self.world.surveying.pop(0)
            case events.Rehearsed():
                if said := stages.end_of_host_gate(self.log.state, self.world):
                    self.log.listener.say(said)

    def _issue(self) -> None:
        """Give the lab what it has not been given yet by this process."""
        state, lab = self.log.state, self.world.lab
        builds = state.building if state.searching else ()  # nobody waits for them afterwards
        bound = {trial: (device,) for trial, device in state.bound}
        for trial in (*builds, *state.in_flight):
            if trial.id in self._issued:
                continue
            self._issued.add(trial.id)
            if trial.config is not None:
                self._admit_template(trial.config)
            if trial.effort == "build":
                lab.build(trial)
            else:
                lab.submit(trial, *bound.get(trial.id, ()))

    def _admit_template(self, config: Config) -> str:
        """The lab knows a template before it is asked about a configuration of it. The template's digest."""
        candidate = self.log.state.candidate(config.candidate)
        if candidate.template not in self._at_lab:
            self._at_lab.add(candidate.template)
            self.world.lab.admit(self.world.templates.of(candidate))
        return candidate.template
