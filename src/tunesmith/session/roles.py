"""Who plays which role in a run: the built-in expert, unless a template is given, or models as the user
names them. Makes models and prompts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tunesmith import backends
from tunesmith.base.codec import decode_json
from tunesmith.base.errors import BadInput, bug_text
from tunesmith.base.files import explain_disk_errors
from tunesmith.problem import device as languages
from tunesmith.run import config as settings
from tunesmith.run.budget import STRATEGIES, part_of
from tunesmith.run.events import SINGLE, Decided, LanguageModel, Role
from tunesmith.run.library import LibraryTemplate
from tunesmith.run.ports import Declined, Inbox, MoveCatalogue, MoveOffer
from tunesmith.run.state import State
from tunesmith.run.talk import Conversation, ModelDialogue
from tunesmith.session import problems

if TYPE_CHECKING:
    from tunesmith.agents.hosted import Hosted
    from tunesmith.agents.models import Spec
    from tunesmith.agents.roles import PlainKernels
    from tunesmith.problem.device import Device
    from tunesmith.problem.problem import Problem
    from tunesmith.problem.template import Template
    from tunesmith.run.candidates import Templates
    from tunesmith.run.config import RunConfig
    from tunesmith.run.events import Started, Strategy
    from tunesmith.run.folder import RunFolder
    from tunesmith.run.ports import (
        Author,
        Listener,
        ModelWriter,
        MoveAuthor,
        OwnAuthor,
        Planner,
        Refactoring,
        Written,
    )


NAME_ONE = "name one, e.g. --model openai:NAME, --model openai:NAME@http://host:port/v1 or --model mailbox"


def parse_strategy(text: str) -> Strategy:
    if text not in STRATEGIES:
        hint = "choose one of these, or leave --strategy out: templates are searched"
        raise BadInput(f"unknown strategy {text!r}; known are {', '.join(STRATEGIES)}", hint=hint)
    return STRATEGIES[text].name


def check_strategy_config(
    config: RunConfig, template_given: bool, priors_named: bool = False, from_library: bool = False
) -> None:
    """What does not go together is refused before a run begins."""
    strategy = parse_strategy(config.strategy)
    if config.linear and STRATEGIES[strategy].is_chain is not None:
        raise BadInput(
            "--linear is for --strategy rewrite, where a round can go on from the last kernel; the strategy "
            f"is {strategy}",
            hint="leave out --linear, or add --strategy rewrite",
        )
    check_moves(config, strategy)
    check_plain(config, strategy)
    if config.effort and not config.model:
        fault = f"--effort {config.effort} says how much a model is to think, and none is named"
        raise BadInput(fault, hint="leave out --effort, or name a model")
    if not STRATEGIES[strategy].is_concrete:
        return
    named_too = f"with --strategy {strategy} kernels are written, and --template names one that is there"
    no_search = f"--prior-run tells a search where to begin, and with --strategy {strategy} nobody searches"
    no_params = (
        f"--from-library begins from a template; with --strategy {strategy} kernels have no parameters"
    )
    for given, fault, hint in (
        (template_given, named_too, "leave out one of the two"),
        (priors_named, no_search, "leave out --prior-run"),
        (from_library, no_params, "leave out --from-library"),
    ):
        if given:
            raise BadInput(fault, hint=hint)
    specs_by_role(config.model, strategy)


def check_moves(config: RunConfig, strategy: str) -> None:
    """Whoever plans or writes by moves cannot do without them."""
    if config.moves != "none" or strategy != "template" or not config.model:
        return
    if missing := {"planner", "author"} - specs_by_role(config.model, strategy).keys():
        raise BadInput(
            f"with --moves none nobody plans or writes by the expert's moves; the {min(missing)} would",
            hint="name a model as planner and as author, or leave out --moves",
        )


def check_plain(config: RunConfig, strategy: str) -> None:
    """Somebody must rewrite the kernel, and the expert then have moves to make on it."""
    if not config.plain:
        return
    roles = specs_by_role(config.model, strategy) if strategy == "template" else {}
    fault, hint = "", "leave out --plain"
    if strategy != "template":
        fault = f"with --strategy {strategy} nobody makes any"
    elif "author" not in roles:
        fault, hint = "no model is named to rewrite it", f"{hint}, or name one, e.g. --model author=mailbox"
    elif config.moves == "none":
        fault, hint = "with --moves none nobody makes any", f"{hint} or --moves"
    if fault:
        raise BadInput(f"--plain has the kernel rewritten for the expert's moves: {fault}", hint=hint)


def specs_by_role(spec: str, strategy: str) -> dict[Role, Spec]:
    """The roles that a model plays; BadInput where the strategy cannot do with those."""
    kind = STRATEGIES[strategy]
    if kind.roles == (SINGLE,):
        return {SINGLE: _parse_single_spec(spec)}
    if not spec and not kind.needed:
        return {}
    from tunesmith.agents.models import EXPERT, parse_models

    found = parse_models(spec) if spec else {}
    models = {role: one for role, one in found.items() if one.kind != EXPERT}
    missing = [role for role in kind.needed if role not in models]
    if missing:
        if not models:
            fault = f"--strategy {strategy} needs a language model: kernels are planned and written in words"
            raise BadInput(fault, hint=NAME_ONE)
        raise BadInput(
            f"--strategy {strategy} needs a model as planner and as author, since the expert knows templates "
            f"and their moves alone; it would be the {' and the '.join(missing)}",
            hint="name both, e.g. --model planner=openai:NAME,author=openai:NAME; tester and analyst may be "
            "left out",
        )
    return models


def _parse_single_spec(spec: str) -> Spec:
    """Whom one conversation is held with."""
    from tunesmith.agents.models import EXPERT, names_roles, parse_spec

    role, has_role, rest = spec.partition("=") if names_roles(spec) else ("", "", spec)
    if has_role and (role.strip() != SINGLE or "," in rest):
        hint = "write --model SPEC, without roles"
        raise BadInput(f"--strategy single is one conversation with one model, got {spec!r}", hint=hint)
    if not rest or (found := parse_spec(rest)).kind == EXPERT:
        raise BadInput(
            "--strategy single needs a language model: the expert holds no conversation", hint=NAME_ONE
        )
    return found


class GivenTemplate:
    """Search it once, then stop; where there are several, each with its part of the budget."""

    def decide(self, state: State) -> Decided:
        waiting = [c for c in state.candidates if c.status == "admitted"]
        if len(waiting) > 1:
            reason = f"{len(waiting)} templates are given and not searched"
            return part_of(state, len(waiting)).search(reason, (), waiting[0].id)
        ended = [c.searched for c in state.candidates if c.searched is not None]
        if waiting or not ended:
            return Decided("search", "the template is given", candidate=waiting[0].id if waiting else "")
        return Decided("finish", ended[-1].reason)


@dataclass(frozen=True)
class Silent:
    """An author for runs that need none."""

    reason: str

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        del task, problem, device
        return Declined(self.reason)


def planner_and_author(problem: Problem, templates: Templates) -> tuple[Planner, Author]:
    """Who plans and who writes: the built-in expert, unless the template is given."""
    if templates.given is not None:
        return GivenTemplate(), Silent("the template is given")
    from tunesmith.expert.planning import ByDiagnosis, ExpertPlanner, InOrder

    if (language_author := _own_author(problem)) is not None:
        return ExpertPlanner(problem, InOrder(language_author.moves_in(problem))), language_author
    author = move_author(problem)
    return ExpertPlanner(problem, ByDiagnosis(problem, templates, author.available)), author


def _own_author(problem: Problem) -> OwnAuthor | None:
    """That of the backend which runs the kernel's language, where it has one."""
    kind = backends.kind_for(problem.kernel.language)
    return kind.author() if kind is not None and kind.author is not None else None


def move_author(problem: Problem) -> MoveAuthor:
    """Who writes templates by moves for a kernel's language."""
    from tunesmith.backends.binaries import as_compiled
    from tunesmith.expert.author import ExpertAuthor

    return _own_author(problem) or ExpertAuthor(as_compiled)


def is_for_expert(problem: Problem) -> bool:
    """Whether the expert can read kernels of this language."""
    return languages.find_language(problem.kernel.language).is_c_family and _own_author(problem) is None


def reading_of(problem: Problem, device: Device) -> tuple[str, ...]:
    """What the expert makes of a kernel, in words, and what that rests on."""
    if (language_author := _own_author(problem)) is not None:
        return language_author.reading
    from tunesmith.backends.binaries import as_compiled
    from tunesmith.expert.author import reading_of_call

    return reading_of_call(as_compiled(problem, device), facts=True)


def launch_notes(problem: Problem, device: Device) -> tuple[str, ...]:
    """What users should know of their launch before they trust a speed-up."""
    if not languages.find_language(problem.kernel.language).is_c_family:
        return ()
    from tunesmith.backends.binaries import as_compiled
    from tunesmith.expert.author import excess_block_notes

    try:
        return excess_block_notes(as_compiled(problem, device), device)
    except Exception as error:  # whatever a kernel does to the expert, it can be checked and run without
        return (f"the expert failed, which is a bug in Tunesmith: {bug_text(error)}",)


def catalogue_of(problem: Problem, device: Device) -> MoveCatalogue:
    """The moves as a model is offered them."""
    if (language_author := _own_author(problem)) is not None:
        available, refused = language_author.available(problem, device)
        return MoveCatalogue(language_author.reading, tuple(map(MoveOffer, available)), refused)
    from tunesmith.backends.binaries import as_compiled
    from tunesmith.expert.author import build_catalogue

    return build_catalogue(as_compiled(problem, device), device)


def signature_fault(problem: Problem, template: Template) -> str | None:
    """Why callers could not call a template as they call the original. A workspace may come last."""
    from tunesmith.expert.drafts.signature import missing_entry, signature_faults

    extra = {argument.name for argument in template.workspace}
    if len(problem.launches) == len(template.launches) == 1:
        wanted, got = problem.launches[0].args, template.launches[0].args
        if got[: len(wanted)] != wanted or not set(got[len(wanted) :]) <= extra:
            return (
                f"the kernel's arguments must stay ({', '.join(wanted)}), with a workspace behind them at "
                f"most; [launch] passes ({', '.join(got)})"
            )
    as_problem = replace(
        problem,
        kernel=replace(problem.kernel, text=template.source, path=template.path),
        launches=template.launches,
        arguments=(*problem.arguments, *template.workspace),
    )
    if (no_entry := missing_entry(as_problem)) is not None:
        return no_entry
    found = signature_faults(as_problem)
    return f"callers could not call it any more: {found[0]}" if found else None


@dataclass(frozen=True)
class RoleFactory:
    """Makes whoever plays the roles: models those that they are named for, the expert the others."""

    problem: Problem
    templates: Templates
    conversation: Conversation
    prompts: Mapping[Role, str]
    catalogue_of: Callable[[Problem], MoveCatalogue]  # the moves on a kernel
    strategy: str = "template"
    expert: tuple[Planner, Author] | None = None  # None: kernels are concrete
    lessons: str = ""  # of earlier runs, for whoever plans
    rewrites_plainly: bool = False  # whether the expert goes on from another kernel in the original's place
    plain_first: bool = False  # such a one is asked for before anything else

    def talking(self) -> ModelDialogue:
        """The players of all roles."""
        from tunesmith.agents import roles, single

        asked = [role for role in STRATEGIES[self.strategy].roles if role in self._names]
        if silent := [role for role in asked if role not in self.prompts]:
            hint = "restore the run's folder from a copy, or start a new run"
            raise BadInput(f"the run has lost what its {silent[0]} is told", hint=hint)
        problem, templates, talk = self.problem, self.templates, self.conversation
        moves: Author = Silent("kernels are written by a model") if self.expert is None else self.expert[1]
        if self.strategy == "single":
            alone = single.SingleWriter(
                *self._told(SINGLE), *self._name_and_signature_check(SINGLE), lessons=self.lessons
            )
            return ModelDialogue(problem, templates, single.SinglePlanner(problem), moves, alone, None, talk)
        planner = self._create_planner()
        writer = self._create_writer(moves) if "author" in self._names else None
        cases = roles.ModelTester(problem, self.prompts["tester"]) if "tester" in self._names else None
        judged = writer.plain_fault if isinstance(writer, roles.PlainAuthor) else None
        return ModelDialogue(problem, templates, planner, moves, writer, cases, talk, judged)

    @property
    def _names(self) -> Mapping[Role, str]:
        """Of the models, by the roles they play."""
        return {role: model.name for role, model in self.conversation.models.items()}

    @cached_property
    def _kernels(self) -> PlainKernels | None:
        """What the author rewrites plainly, where the expert can go on from that."""
        if "author" not in self._names or self.expert is None or not self.rewrites_plainly:
            return None
        from tunesmith.agents.roles import PlainKernels

        return PlainKernels(self.problem, self.templates, self.catalogue_of)

    def _told(self, role: Role) -> tuple[Problem, Templates, Callable[[], MoveCatalogue], str]:
        return self.problem, self.templates, partial(self.catalogue_of, self.problem), self.prompts[role]

    def _name_and_signature_check(self, role: Role) -> tuple[str, Callable[[Template], str | None]]:
        return self._names[role], partial(signature_fault, self.problem)

    def _create_writer(self, moves: Author) -> ModelWriter:
        from tunesmith.agents import roles

        told = (*self._told("author"), *self._name_and_signature_check("author"))
        if self._kernels is not None:
            return roles.PlainAuthor(*told, expert=moves, kernels=self._kernels)
        is_concrete = self.expert is None
        return roles.ModelAuthor(*told, is_concrete, None if is_concrete else moves)

    def _create_planner(self) -> Planner:
        from tunesmith.agents import roles

        is_analysed, is_model = "analyst" in self._names, "planner" in self._names
        analyst = roles.ModelAnalyst(self.problem, self.prompts["analyst"]) if is_analysed else None
        planner: Planner
        if self.expert is None:
            planner = roles.RewritePlanner(*self._told("planner"), analyst, lessons=self.lessons)
        elif not is_model:
            planner = self.expert[0]
        else:
            told = (*self._told("planner"), analyst, self.expert[0], "author" in self._names)
            planner = roles.ModelPlanner(*told, lessons=self.lessons)
            if self._kernels is not None:
                planner = roles.PlainPlanner(*told, lessons=self.lessons, kernels=self._kernels)
        if analyst is not None:  # whoever plans: an author and the report read it, too
            planner = roles.Analysed(analyst, planner)
        if self.plain_first and self._kernels is not None:
            planner = roles.PlainFirst(planner, by_moves=not is_model)
        return planner


MAILBOX = "mailbox"  # of a run, where no other is named


@dataclass(frozen=True)
class RoleContext:
    """What models need to know of the run and of this machine."""

    spec: str  # as the user wrote it; empty: the expert plays all roles
    prompts: Mapping[Role, str]
    folder: Path  # the run's
    wait: bool = True
    seconds: float = 600.0  # for one reply over a network
    note: Callable[[str], None] = lambda _text: None  # what is worth keeping
    progress: Callable[[str], None] = lambda _text: None  # what is true only for now
    pause: Callable[[float], None] = time.sleep
    strategy: str = "template"
    library: LibraryTemplate | None = None  # a template of the library that the run begins from
    lessons: str = ""  # of earlier runs, for whoever plans
    inbox: Inbox | None = None  # what whoever watches asks of the run


def of_run(
    folder: RunFolder, started: Started, config: settings.RunConfig, listener: Listener
) -> RoleContext:
    """As the run's folder has it."""
    files, given = dict(started.files), started.settings
    named = ((role, f"{problems.PROMPT}{role}") for role in STRATEGIES[given.strategy].roles)
    prompts = {role: folder.get(files[name]).decode() for role, name in named if name in files}
    entries = [folder.get(digest) for name, digest in files.items() if name.startswith(problems.LIBRARY)]
    return RoleContext(
        given.models,
        prompts,
        folder.path,
        config.wait,
        config.reply_seconds,
        listener.say,
        listener.note,
        strategy=given.strategy,
        library=decode_json(entries[0], LibraryTemplate) if entries else None,
        lessons=folder.get(files[problems.LESSONS]).decode() if problems.LESSONS in files else "",
    )


def checked_prompts(
    config: settings.RunConfig, template: Template | None, note: Callable[[str], None]
) -> dict[Role, str]:
    """Of who plays the roles, once that is known to fit the rest of what is wished for."""
    check_strategy_config(config, template is not None)
    if config.model and template is not None:
        fault = "the template is given (--template), and nothing is left for a model to write (--model)"
        raise BadInput(fault, hint="leave out the template or the model")
    prepare_models(config.model, config.strategy)
    return prompts_for(config.model, config.prompts, config.strategy, note)


def prompts_for(
    spec: str, folder: str, strategy: str = "template", note: Callable[[str], None] = lambda _text: None
) -> dict[Role, str]:
    """The words for each role that a model plays: the user's own where there is such a file, else ours. What
    lies beside these and is not read is noted."""
    place, names = Path(folder), _prompt_names(strategy)
    if folder and not place.is_dir():
        hint = f"it may hold {', '.join(f'{name}.md' for name in names.values())}"
        raise BadInput(f"--prompts names a folder, there is no folder {folder!r}", hint=hint)
    if folder:
        known = sorted({f"{name}.md" for s in STRATEGIES for name in _prompt_names(s).values()})
        there = sorted(file.name for file in place.glob("*.md"))
        if not set(there) & set(known):
            got = f"; it has {', '.join(there)}" if there else ""
            fault = f"--prompts names a folder with one of {', '.join(known)} or more{got}"
            raise BadInput(fault, where=str(place), hint="name the files so, or leave --prompts out")
        if unread := [name for name in there if name not in known]:
            note(f"--prompts: nobody reads {', '.join(unread)}; what is read is {', '.join(known)}")
    found: dict[Role, str] = {}
    for role in specs_by_role(spec, strategy):
        from tunesmith.agents.prompting import own_prompt

        file = place / f"{names[role]}.md"
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


def prepare_models(spec: str, strategy: str = "template") -> None:
    """Everything about models that can be refused before a run begins."""
    who = specs_by_role(spec, strategy)
    for one in dict.fromkeys(who.values()):
        _create_prepared_model(one, RoleContext(spec, {}, Path()))


def one_model(spec: str, folder: Path, wait: bool, note: Callable[[str], None]) -> LanguageModel:
    """A model for a single question, outside of runs; its mailbox is in `folder` unless it is named."""
    from tunesmith.agents.models import parse_spec

    named = parse_spec(spec)
    if named.kind == "expert":
        raise BadInput("the built-in expert has said what it can", hint="name a model, e.g. --model mailbox")
    return _create_prepared_model(named, RoleContext(spec, {}, folder, wait=wait, note=note, progress=note))


def _create_prepared_model(spec: Spec, cast: RoleContext) -> LanguageModel:
    """BadInput where it cannot be asked."""
    model = _create_language_model(spec, cast)
    if hasattr(model, "prepare"):
        model.prepare()
    return model


def create_hosted_models(spec: str, seconds: float, tell: Callable[[str], None]) -> list[Hosted]:
    """The models behind a network among those named, each once, ready to be asked."""
    from tunesmith.agents.models import HOSTED, parse_models

    hosted_ones = [one for one in dict.fromkeys(parse_models(spec).values()) if one.kind in HOSTED]
    if not hosted_ones:
        fault = f"only models behind a network can be tried, got {spec!r}"
        raise BadInput(fault, hint="e.g. --model openai:NAME@http://localhost:8000/v1")
    cast = RoleContext(spec, {}, Path(), seconds=seconds, progress=tell)
    return [_create_hosted_model(one, cast) for one in hosted_ones]


def create_talking(problem: Problem, templates: Templates, state: State, cast: RoleContext) -> ModelDialogue:
    talk = _create_base_talking(problem, templates, state, cast)
    if cast.library is None:
        return talk
    from tunesmith.expert.planning import LibraryAuthor, LibraryFirst

    entry = cast.library
    return replace(talk, planner=LibraryFirst(entry, talk.planner), author=LibraryAuthor(entry, talk.author))


def _create_base_talking(
    problem: Problem, templates: Templates, state: State, cast: RoleContext
) -> ModelDialogue:
    planner, author = planner_and_author(problem, templates)
    who = specs_by_role(cast.spec, cast.strategy)
    if not who or templates.given is not None:
        return ModelDialogue(problem, templates, planner, author, conversation=Conversation(inbox=cast.inbox))
    conversation = _create_conversation(who, cast, state)

    @cache
    def of_problem(kernel: Problem) -> MoveCatalogue:
        try:
            found = catalogue_of(kernel, state.device)
            return MoveCatalogue(found.reading) if state.settings.moves == "none" else found
        except Exception as error:  # whatever a kernel does to the expert, a model can do without its moves
            failed = f"the expert failed, which is a bug in Tunesmith: {bug_text(error)}"
            return MoveCatalogue((failed,), beyond=(failed,))

    return RoleFactory(
        problem,
        templates,
        conversation,
        cast.prompts,
        of_problem,
        cast.strategy,
        expert=(planner, author) if cast.strategy == "template" else None,
        lessons=cast.lessons,
        rewrites_plainly=is_for_expert(problem),
        plain_first=state.settings.plain,
    ).talking()


def write_recording(folder: Path, state: State) -> None:
    """What models were asked and said in a run so far, as files that can be read and played."""
    from tunesmith.agents.mailbox import write_dialogue

    if state.started is not None:
        with explain_disk_errors("write the recording", folder, instead="another folder with --record"):
            write_dialogue(folder, state.started, state.dialogue)


def _create_conversation(who: Mapping[Role, Spec], cast: RoleContext, state: State) -> Conversation:
    """One model for each that is named, whatever roles it plays."""
    from tunesmith.agents.mailbox import Mailbox, Player

    made = {spec: _create_language_model(spec, cast) for spec in dict.fromkeys(who.values())}
    models = {role: made[spec] for role, spec in who.items()}
    found = Conversation(models, cast.pause, cast.note, in_a_thread, cast.inbox)
    for model in made.values():
        if isinstance(model, Player):
            model.prepare()  # also of a run that goes on, maybe elsewhere
        if isinstance(model, Player | Mailbox):
            model.skip(e for e in state.dialogue if found.model_for(e.request) is model)
    return found


def in_a_thread(ask: Callable[[], None]) -> None:
    """A run that is stopped does not wait for it."""
    Thread(target=ask, name="request", daemon=True).start()


def own_mailbox(folder: Path) -> Path:
    """The mailbox of a run, which is a folder in it and no link to another."""
    box = folder / MAILBOX
    if box.is_symlink():
        raise BadInput("the mailbox of a run is a folder, this is a link", where=str(box), hint="remove it")
    return box


def _create_language_model(spec: Spec, cast: RoleContext) -> LanguageModel:
    from tunesmith.agents.mailbox import Mailbox, Player

    if spec.kind == "mailbox":
        return Mailbox(Path(spec.rest) if spec.rest else own_mailbox(cast.folder), cast.wait, cast.note)
    if spec.kind == "recorded":
        return Player(Path(spec.rest))
    return _create_hosted_model(spec, cast)


def _create_hosted_model(spec: Spec, cast: RoleContext) -> Hosted:
    from tunesmith.agents.hosted import KEYS, Hosted

    keys, tell = settings.model_keys(KEYS.values()), cast.progress
    return Hosted(spec.kind, spec.rest, spec.url, keys, cast.seconds, spec.effort, tell=tell)
