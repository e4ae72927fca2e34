"""Who plays the roles of a run: the expert, or models as the user names them. Makes models and prompts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith.errors import BadInput, bug_text
from tunesmith.run import config as settings
from tunesmith.run.budget import STRATEGIES
from tunesmith.run.dialogue import LanguageModel, Role
from tunesmith.run.ports import Catalogue
from tunesmith.run.store import explained
from tunesmith.run.talking import Conversation, Talking
from tunesmith.strategies.strategies import catalogue_of, models_talking, played, roles

if TYPE_CHECKING:
    from tunesmith.models.names import Spec
    from tunesmith.problem.problem import Problem
    from tunesmith.run.candidates import Templates
    from tunesmith.run.library import LibraryTemplate
    from tunesmith.run.state import State

MAILBOX = "mailbox"  # of a run, where no other is named


@dataclass(frozen=True)
class Casting:
    """What models need to know of the run and of this machine."""

    spec: str  # as the user wrote it; empty: the expert plays all roles
    prompts: Mapping[Role, str]
    folder: Path  # the run's
    wait: bool = True
    seconds: float = 600.0  # for one reply over a network
    note: Callable[[str], None] = lambda _text: None
    pause: Callable[[float], None] = time.sleep
    strategy: str = "template"
    kept: LibraryTemplate | None = None  # a template of the library that the run begins from


def prompts_for(
    spec: str, folder: str, strategy: str = "template", note: Callable[[str], None] = lambda _text: None
) -> dict[Role, str]:
    """The words for each role that a model plays: the user's own where there is such a file, else ours. What
    lies beside these and is not read is noted."""
    own, names = Path(folder), _prompt_names(strategy)
    if folder and not own.is_dir():
        hint = f"it may hold {', '.join(f'{name}.md' for name in names.values())}"
        raise BadInput(f"--prompts names a folder, there is no folder {folder!r}", hint=hint)
    if folder:
        known, unread = _prompt_files(own)
        if unread:
            note(f"--prompts: nobody reads {', '.join(unread)}; what is read is {', '.join(known)}")
    found: dict[Role, str] = {}
    for role in played(spec, strategy):
        from tunesmith.agents.prompting import own_prompt

        file = own / f"{names[role]}.md"
        try:
            found[role] = file.read_text("utf-8") if folder and file.exists() else own_prompt(names[role])
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"cannot be read: {error}", where=str(file)) from error
        if not found[role].strip():
            fault = "the words for a role must say something, this file is empty"
            raise BadInput(fault, where=str(file), hint="write them, or remove the file: ours take its place")
    return found


def _prompt_names(strategy: str) -> dict[Role, str]:
    """The files that hold the words for each role."""
    kind = STRATEGIES[strategy]
    return {role: kind.prompts.get(role, role) for role in kind.roles}


def _prompt_files(folder: Path) -> tuple[list[str], list[str]]:
    """What is read, in any strategy, and what lies in the folder beside that; BadInput where nothing there is
    read."""
    known = sorted({f"{name}.md" for s in STRATEGIES for name in _prompt_names(s).values()})
    there = [file.name for file in folder.glob("*.md")]
    if not set(there) & set(known):
        got = f"; it has {', '.join(sorted(there))}" if there else ""
        fault = f"--prompts names a folder with one of {', '.join(known)} or more{got}"
        raise BadInput(fault, where=str(folder), hint="name the files so, or leave --prompts out")
    return known, sorted(set(there) - set(known))


def prepare(spec: str, strategy: str = "template") -> None:
    """Everything about models that can be refused before a run begins."""
    who = played(spec, strategy)
    for one in dict.fromkeys(who.values()):
        model = _model(one, Casting(spec, {}, Path()))
        if hasattr(model, "prepare"):
            model.prepare()


def talking(problem: Problem, templates: Templates, state: State, cast: Casting) -> Talking:
    talk = _talking(problem, templates, state, cast)
    if cast.kept is None:
        return talk
    from tunesmith.expert.planning import LibraryAuthor, LibraryFirst

    kept = cast.kept
    return replace(talk, planner=LibraryFirst(kept, talk.planner), author=LibraryAuthor(kept, talk.author))


def _talking(problem: Problem, templates: Templates, state: State, cast: Casting) -> Talking:
    planner, author = roles(problem, templates)
    who = played(cast.spec, cast.strategy)
    if not who or templates.given is not None:
        return Talking(problem, templates, planner, author)
    conversation = Conversation(_models(who, cast, state), cast.pause, cast.note)

    @cache
    def catalogue() -> Catalogue:
        try:
            return catalogue_of(problem, state.device)
        except Exception as error:  # whatever a kernel does to the expert, a model can do without its moves
            return Catalogue((f"the expert failed, which is a bug in Tunesmith: {bug_text(error)}",))

    expert = (planner, author) if cast.strategy == "template" else None
    return models_talking(problem, templates, cast.strategy, cast.prompts, conversation, catalogue, expert)


def record(folder: Path, state: State) -> None:
    """What models were asked and said in a run so far, as files that can be read and played."""
    from tunesmith.models.recording import keep

    if state.started is not None:
        with explained("write the recording", folder, instead="another folder with --record"):
            keep(folder, state.started, state.dialogue)


def _models(who: Mapping[Role, Spec], cast: Casting, state: State) -> dict[Role, LanguageModel]:
    """One for each that is named, whatever roles it plays."""
    from tunesmith.models.recording import Player

    made: dict[Spec, LanguageModel] = {}
    for spec in who.values():
        if spec in made:
            continue
        model = _model(spec, cast)
        if isinstance(model, Player):
            model.prepare()  # also of a run that goes on, maybe elsewhere
            model.skip(state.dialogue)
        made[spec] = model
    return {role: made[spec] for role, spec in who.items()}


def _model(spec: Spec, cast: Casting) -> LanguageModel:
    from tunesmith.models.hosted import KEYS, Hosted
    from tunesmith.models.mailbox import Mailbox
    from tunesmith.models.recording import Player

    if spec.kind == "mailbox":
        return Mailbox(Path(spec.rest) if spec.rest else cast.folder / MAILBOX, cast.wait, cast.note)
    if spec.kind == "recorded":
        return Player(Path(spec.rest))
    return Hosted(spec.kind, spec.rest, spec.url, settings.model_keys(KEYS.values()), cast.seconds)
