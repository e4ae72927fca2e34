"""What becomes of an instruction: an event, by the state in which it is taken up."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.errors import BadInput
from tunesmith.run.budget import asked_to_finish, exhausted_budget, exhausted_share, is_finishing
from tunesmith.run.candidates import parse_config
from tunesmith.run.dialogue import RunInstruction
from tunesmith.run.events import Instructed
from tunesmith.run.ports import Inbox, RunLog
from tunesmith.run.scores import OneSearch
from tunesmith.run.state import State
from tunesmith.space.params import Config


def is_stopping(state: State) -> bool:
    """Whether nothing more is asked for until the run is resumed."""
    said = [i.what for i in state.instructed if i.what in ("stop", "resume") and not i.refused]
    return bool(said) and said[-1] == "stop"


def hints(state: State) -> list[Config]:
    """Configurations of the template that is searched which somebody wants tried and which are not yet."""
    searched = state.under_way.candidate if state.under_way is not None and state.searching else None
    on_the_way = {trial.config for trial in state.in_flight}
    named = dict.fromkeys(i.config for i in state.instructed if i.config is not None)
    return [
        c for c in named if c.candidate == searched and c not in on_the_way and not state.searched.count(c)
    ]


def not_taken(
    waiting: Sequence[RunInstruction], state: State, inbox: Inbox | None = None
) -> list[RunInstruction]:
    """Without what is in the journal, which is taken out of the inbox too, where that is given."""
    known = {taken.id for taken in state.instructed}
    if inbox is not None:
        for id in known.intersection(given.id for given in waiting):
            inbox.drop(id)
    return [given for given in waiting if given.id not in known]


def refuse_old_stops(log: RunLog, inbox: Inbox) -> None:
    """Who resumes a run does not want what was asked of it before to stop it again."""
    for given in not_taken(inbox.waiting(), log.state):
        if given.what == "stop":
            log.write(Instructed(given.id, "stop", refused="the run had ended before it was taken up"))
            inbox.drop(given.id)
    if is_stopping(log.state):
        log.write(Instructed("", "resume"))


def taken_up(given: RunInstruction, state: State, search: OneSearch | None) -> Instructed | None:
    """None: it is too early. `search`: what is under way, where that is a search."""
    if given.what == "finish" and state.device.absent:
        why = "nothing can be raced or verified without the device; stop the run, and go on where it is"
        return Instructed(given.id, "finish", refused=why)
    if given.what == "stop" or (given.what == "finish" and not _is_to_finish(state)):
        return Instructed(given.id, given.what)
    if given.what == "finish":
        return Instructed(given.id, "finish", refused="the run is finishing already")
    if search is None and not _is_to_finish(state):
        return None
    config, refused = _hinted(given.text, state, search)
    return Instructed(given.id, "hint", given.text, config, refused)


def _is_to_finish(state: State) -> bool:
    return is_finishing(state) or asked_to_finish(state) is not None


def _hinted(text: str, state: State, search: OneSearch | None) -> tuple[Config | None, str]:
    """The configuration, or why it is not tried."""
    if search is None:
        return None, "nothing is searched any more"
    if (spent := exhausted_budget(state) or exhausted_share(state)) is not None:
        return None, spent
    if search.template.is_concrete:
        return None, "what is searched has no parameters"
    try:
        config = parse_config(search.template, text)
    except BadInput as error:
        return None, f"{error.message} ({error.hint})" if error.hint else error.message
    if config not in search.configs:
        return None, f"{config} is forbidden by the template's constraints, or runs at no workload here"
    pruned = {verdict.config: verdict.reason for verdict in state.pruned.of(("of", config.candidate))}
    if config in pruned:
        return None, f"{config} was built and left out: {pruned[config]}"
    if state.searched.count(config) or config in {trial.config for trial in state.in_flight}:
        return None, f"{config} has been tried, or is about to be"
    return config, ""
