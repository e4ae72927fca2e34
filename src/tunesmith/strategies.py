"""The strategies of a run: which roles each has, who may play them, and what cannot be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tunesmith.core.dialogue import SINGLE, Role
from tunesmith.core.errors import BadInput
from tunesmith.core.strategy import STRATEGIES
from tunesmith.core.talking import Talking
from tunesmith.roles import signature_fault

if TYPE_CHECKING:
    from tunesmith.config import RunConfig
    from tunesmith.core.candidates import Templates
    from tunesmith.core.events import Strategy
    from tunesmith.core.ports import Catalogue, Planner
    from tunesmith.core.problem import Problem
    from tunesmith.core.talking import Conversation
    from tunesmith.core.template import Template
    from tunesmith.models.names import Spec

NAME_ONE = "name one, e.g. --model openai:NAME, --model openai:NAME@http://host:port/v1 or --model mailbox"


def named(text: str) -> Strategy:
    if text not in STRATEGIES:
        raise BadInput(
            f"unknown strategy {text!r}; known are {', '.join(STRATEGIES)}",
            hint="choose one of these, or leave --strategy out: templates are searched",
        )
    return STRATEGIES[text].name


def roles_of(strategy: str) -> tuple[Role, ...]:
    return STRATEGIES[strategy].roles


def prompt_name(role: Role, strategy: str) -> str:
    """The file that holds the words for a role."""
    return STRATEGIES[strategy].prompts.get(role, role)


def check(
    config: RunConfig, template_given: bool, priors_named: bool = False, from_library: bool = False
) -> None:
    """What does not go together is refused before a run begins."""
    strategy = named(config.strategy)
    if config.linear and STRATEGIES[strategy].is_chain is not None:
        raise BadInput(
            "--linear is for --strategy rewrite, where a round can go on from the last kernel; the strategy "
            f"is {strategy}",
            hint="leave out --linear, or add --strategy rewrite",
        )
    if not STRATEGIES[strategy].is_concrete:
        return
    if template_given:
        raise BadInput(
            f"with --strategy {strategy} kernels are written, and --template names one that is there",
            hint="leave out one of the two",
        )
    if priors_named:
        raise BadInput(
            f"--prior-run tells a search where to begin, and with --strategy {strategy} nobody searches",
            hint="leave out --prior-run",
        )
    if from_library:
        raise BadInput(
            f"--from-library begins from a template; with --strategy {strategy} kernels have no parameters",
            hint="leave out --from-library",
        )
    played(config.model, strategy)


def played(spec: str, strategy: str) -> dict[Role, Spec]:
    """The roles that a model plays; BadInput where the strategy cannot do with those."""
    kind = STRATEGIES[strategy]
    if kind.roles == (SINGLE,):
        return {SINGLE: _alone(spec)}
    if not spec and not kind.needed:
        return {}
    from tunesmith.models.names import EXPERT, parse_models

    found = parse_models(spec) if spec else {}
    models = {role: one for role, one in found.items() if one.kind != EXPERT}
    missing = [role for role in kind.needed if role not in models]
    if missing:
        if not models:
            raise BadInput(
                f"--strategy {strategy} needs a language model: kernels are planned and written in words",
                hint=NAME_ONE,
            )
        raise BadInput(
            f"--strategy {strategy} needs a model as planner and as author, since the expert knows templates "
            f"and their moves alone; it would be the {' and the '.join(missing)}",
            hint="name both, e.g. --model planner=openai:NAME,author=openai:NAME; tester and analyst may be "
            "left out",
        )
    return models


def _alone(spec: str) -> Spec:
    """Whom one conversation is held with."""
    from tunesmith.models.names import EXPERT, parse_spec

    role, has_role, rest = spec.partition("=") if "=" in spec.split("@", 1)[0] else ("", "", spec)
    if has_role and (role.strip() != SINGLE or "," in rest):
        raise BadInput(
            f"--strategy single is one conversation with one model, got {spec!r}",
            hint="write --model SPEC, without roles",
        )
    if not rest or (found := parse_spec(rest)).kind == EXPERT:
        raise BadInput(
            "--strategy single needs a language model: the expert holds no conversation", hint=NAME_ONE
        )
    return found


def concrete_talking(
    problem: Problem,
    templates: Templates,
    strategy: str,
    prompts: Mapping[Role, str],
    conversation: Conversation,
    catalogue: Callable[[], Catalogue],
) -> Talking:
    """Who talks where kernels are concrete: the roles of `rewrite`, or one model in all of them."""
    from tunesmith.agents.advisers import Analysed, ModelAnalyst, ModelTester
    from tunesmith.agents.author import ModelAuthor
    from tunesmith.agents.planner import RewritePlanner
    from tunesmith.agents.single import SinglePlanner, SingleWriter
    from tunesmith.roles import Silent

    def signature(template: Template) -> str | None:
        return signature_fault(problem, template)

    moves = Silent("kernels are written by a model")
    names = {role: model.name for role, model in conversation.models.items()}
    if strategy == "single":
        alone = SingleWriter(problem, templates, catalogue, prompts[SINGLE], names[SINGLE], signature)
        return Talking(problem, templates, SinglePlanner(problem), moves, alone, None, conversation)
    analyst = ModelAnalyst(problem, prompts["analyst"]) if "analyst" in names else None
    tester = ModelTester(problem, prompts["tester"]) if "tester" in names else None
    planner: Planner = RewritePlanner(problem, templates, catalogue, prompts["planner"], analyst)
    planner = Analysed(analyst, planner) if analyst is not None else planner
    author = ModelAuthor(problem, templates, catalogue, prompts["author"], names["author"], signature, True)
    return Talking(problem, templates, planner, moves, author, tester, conversation)
