"""What a user asks for, before a run begins: which strategy, models and moves go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from tunesmith.errors import BadInput
from tunesmith.run.budget import STRATEGIES
from tunesmith.run.dialogue import SINGLE, Role
from tunesmith.run.events import MovesOffered

if TYPE_CHECKING:
    from tunesmith.models import Spec
    from tunesmith.run.config import RunConfig
    from tunesmith.run.events import Strategy

NAME_ONE = "name one, e.g. --model openai:NAME, --model openai:NAME@http://host:port/v1 or --model mailbox"


def named(text: str) -> Strategy:
    if text not in STRATEGIES:
        hint = "choose one of these, or leave --strategy out: templates are searched"
        raise BadInput(f"unknown strategy {text!r}; known are {', '.join(STRATEGIES)}", hint=hint)
    return STRATEGIES[text].name


def moves_named(text: str) -> MovesOffered:
    known: tuple[MovesOffered, ...] = get_args(MovesOffered)
    return next(name for name in known if name == text)


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
    played(config.model, strategy)


def check_moves(config: RunConfig, strategy: str) -> None:
    """Whoever plans or writes by moves cannot do without them."""
    if config.moves != "none" or strategy != "template" or not config.model:
        return
    if missing := {"planner", "author"} - played(config.model, strategy).keys():
        raise BadInput(
            f"with --moves none nobody plans or writes by the expert's moves; the {min(missing)} would",
            hint="name a model as planner and as author, or leave out --moves",
        )


def check_plain(config: RunConfig, strategy: str) -> None:
    """Somebody must rewrite the kernel, and the expert then have moves to make on it."""
    if not config.plain:
        return
    roles = played(config.model, strategy) if strategy == "template" else {}
    fault, hint = "", "leave out --plain"
    if strategy != "template":
        fault = f"with --strategy {strategy} nobody makes any"
    elif "author" not in roles:
        fault, hint = "no model is named to rewrite it", f"{hint}, or name one, e.g. --model author=mailbox"
    elif config.moves == "none":
        fault, hint = "with --moves none nobody makes any", f"{hint} or --moves"
    if fault:
        raise BadInput(f"--plain has the kernel rewritten for the expert's moves: {fault}", hint=hint)


def played(spec: str, strategy: str) -> dict[Role, Spec]:
    """The roles that a model plays; BadInput where the strategy cannot do with those."""
    kind = STRATEGIES[strategy]
    if kind.roles == (SINGLE,):
        return {SINGLE: _alone(spec)}
    if not spec and not kind.needed:
        return {}
    from tunesmith.models import EXPERT, parse_models

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


def _alone(spec: str) -> Spec:
    """Whom one conversation is held with."""
    from tunesmith.models import EXPERT, names_roles, parse_spec

    role, has_role, rest = spec.partition("=") if names_roles(spec) else ("", "", spec)
    if has_role and (role.strip() != SINGLE or "," in rest):
        hint = "write --model SPEC, without roles"
        raise BadInput(f"--strategy single is one conversation with one model, got {spec!r}", hint=hint)
    if not rest or (found := parse_spec(rest)).kind == EXPERT:
        raise BadInput(
            "--strategy single needs a language model: the expert holds no conversation", hint=NAME_ONE
        )
    return found
