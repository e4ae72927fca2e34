"""Models in their roles: what each is told, and what its reply becomes. An analyst says what bounds the
kernel, in words that cite numbers it was given; an author sends a draft; a planner, of templates or of
concrete kernels, decides. (A tester: `tester`.) Whatever they say, the lab has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tunesmith.agents import material, prompting
from tunesmith.agents.prompting import (
    REPAIRS,
    NoAnswer,
    PlanReply,
    PromptPart,
    Unusable,
    fence_with_backticks,
    of_role,
    read_json,
    settle_turn,
    shorten_middle,
)
from tunesmith.base.text import format_count
from tunesmith.problem.cases import case_misfit
from tunesmith.problem.device import Device
from tunesmith.problem.plan import ExtraCase
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.problem.vet import foreign_fault
from tunesmith.run.budget import candidate_noun, last_written, no_more_requests, share_of
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Decided, Exchange, Extended, Question, Reply
from tunesmith.run.ports import Author, Declined, MoveCatalogue, Planner, Refactoring, Written
from tunesmith.run.rounds import leading_candidate, plain_problem, problem_of
from tunesmith.run.state import Candidate, State

EXPERT = "expert"  # as the base of a plan


def expert_words(moves: MoveCatalogue, writes: bool) -> str:
    """What planners are told; empty where nobody could do it."""
    if not writes or not moves.available:
        return ""
    return (
        f'With `"base": "{EXPERT}"` both work on one template: a program makes it by `moves`, the author is '
        "handed its text and changes what `what` says."
    )


def decide_handover(plan: PlanReply, moves: MoveCatalogue, writes: bool) -> Decided | Unusable:
    """Of a plan that has the program's template changed by the author."""
    if not writes:
        return Unusable(f"`base` is {EXPERT!r}, and nobody here writes by words: leave `base` out")
    if unknown := [name for name in plan.moves if name not in moves.available]:
        known = ", ".join(moves.available) or "none"
        return Unusable(f"{unknown[0]!r} is no move that applies here; available are: {known}")
    if not plan.moves or not plan.what.strip():
        fault = f"with `base` {EXPERT!r} a plan has `moves`, for the program, and `what`, for the author"
        return Unusable(f"{fault}: one of them is empty")
    chosen = tuple(dict.fromkeys(plan.moves))
    return Decided("refactor", plan.why, chosen, what=plan.what, expected=plan.expected_gain, handed=True)


def handed_parts(
    decision: Decided, expert: Author | None, problem: Problem, device: Device
) -> list[PromptPart]:
    """The template of the moves, as the author's base; where there is none, why."""
    if not decision.handed:
        return []
    heading = "The template that a program made by these moves, which this goes on from"
    if expert is None:
        return [
            PromptPart(heading, "There is none: nobody applies moves here. Go on from the kernel as it is.")
        ]
    made = expert.write(Refactoring(decision.moves), problem, device)
    if isinstance(made, Declined):
        return [PromptPart(heading, f"There is none: {made.reason}. Go on from the kernel as it is.")]
    left_out = [f"{name} does not apply: {why}" for name, why in made.refused]
    words = "It is right as far as a program can prove. Change what the plan says, and keep the rest."
    return [PromptPart(heading, "\n".join([words, *left_out, "", fence_with_backticks(made.text)]))]


def plan_lines(decision: Decided, moves: MoveCatalogue) -> list[str]:
    """A plan, as its author is told of it."""
    lines = [f"Why: {decision.reason}"]
    if decision.what:
        lines.append(f"What to change: {decision.what}")
    if decision.handed:
        lines.append(f"Made by a program already: {', '.join(decision.moves)}.")
    elif decision.moves:
        lines.append("With these choices; names, values and places are a program's proposal:")
        lines += [material.offer_line(moves.offer(name)) for name in decision.moves]
    return lines


MAX_EVIDENCE, MAX_ADVICE = 12, 8  # of an analyst's lines that are passed on: the first
LONGEST = 6000  # characters of all of them
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class ModelAnalyst:
    problem: Problem
    prompt: str

    def question(self, state: State) -> Question | None:
        """Once in a turn, before anything is decided; once more where its reply cannot be read. None also
        where the budget has nothing left for it."""
        if state.baseline is None or no_more_requests(state) is not None:
            return None

        def first() -> Question:
            parts = material.task_parts(self.problem, state)
            now = [*material.round_parts(self.problem, state), *material.standing_parts(self.problem, state)]
            return of_role("analyst", self.prompt, parts, "json", prompting.ANALYSIS, now)

        found = settle_turn(
            "analyst",
            state.this_turn("analyst"),
            REPAIRS,
            lambda reply: read_json(reply, prompting.Analysis),
            first,
        )
        return found if isinstance(found, Question) else None

    def words(self, state: State) -> str:
        """What it said in this turn; where that cannot be used, why."""
        said = state.this_turn("analyst")
        return analysis_text(said[-1]) if said else ""


@dataclass(frozen=True)
class Analysed:
    """A planner, and an analyst that is asked before a round is planned. What it said goes with the decision,
    to whoever writes and into the report; a planner that is a model reads it in its own request."""

    analyst: ModelAnalyst
    planner: Planner

    def decide(self, state: State) -> Decided | Question:
        found = self.planner.decide(state)
        if isinstance(found, Decided) and found.decision != "refactor":
            return found
        if (question := self.analyst.question(state)) is not None:
            return question
        return replace(found, analysis=self.analyst.words(state)) if isinstance(found, Decided) else found


def analysis_part(text: str) -> PromptPart:
    """Beside the diagnosis, and not to be taken for it."""
    return PromptPart("What an analyst reads in these numbers: a model's words, nothing measured", text, 1)


def analysis_text(exchange: Exchange) -> str:
    """Evidence with a number that nobody gave to the analyst is left out."""
    if exchange.reply is None:
        return f"the analyst did not answer: {exchange.failed}"
    found = read_json(exchange.reply, prompting.Analysis)
    if isinstance(found, Unusable):
        return f"the analyst's reply cannot be used: {found.reason}"
    text = "\n".join(m.text for m in exchange.request.messages if m.speaker == "user")
    example = exchange.request.example  # whose numbers, as those of the instructions, are nobody's
    given = set(_NUMBER.findall(text.replace(example, "") if example else text))
    shown = [line for line in found.evidence if set(_NUMBER.findall(line)) <= given]
    made_up = len(found.evidence) - len(shown)
    lines = [f"Bound: {found.bound}", *(f"- {line}" for line in shown[:MAX_EVIDENCE])]
    lines += [f"- ({made_up} more left out: they cite numbers that were not measured)"] if made_up else []
    lines += [f"Advice: {line}" for line in found.advice[:MAX_ADVICE]]
    # On a line each, so that none can pass for a heading of what it is shown in.
    return shorten_middle("\n".join(" ".join(line.split()) for line in lines), LONGEST)


SignatureFaults = Callable[[Template], str | None]
NO_PARAMETERS = "it has no parameters, so nothing could be searched: declare at least one under [params]"


@dataclass(frozen=True)
class ModelAuthor:
    """`signature` tells whether callers can call a template as they call the original."""

    problem: Problem
    templates: Templates
    catalogue: Callable[[], MoveCatalogue]
    prompt: str
    name: str  # of the model
    signature: SignatureFaults
    concrete: bool = False  # whether it writes kernels without parameters
    expert: Author | None = None  # who applies moves, where there is such a one

    def write(self, state: State, decision: Decided) -> Written | Declined | Question:
        found = settle_turn(
            "author",
            state.this_turn("author"),
            state.settings.repairs,
            prompting.read_kernel if self.concrete else prompting.read_file,
            lambda: self._first(state, decision),
            state.drafts(),
        )
        if isinstance(found, NoAnswer):
            return Declined(str(found))
        return Written(found, decision.moves, author=self.name) if isinstance(found, str) else found

    def faults(self, template: Template) -> str | None:
        """Why what a model wrote may not be built, or callers could not call it."""
        if template.is_concrete and not self.concrete:
            return NO_PARAMETERS
        if self.concrete and not template.is_concrete:
            names = ", ".join(param.name for param in template.space.params)
            return (
                f"it has parameters ({names}), and nobody searches here: choose one value of each, write "
                "them into the code, and leave out [params]"
            )
        return foreign_fault(self.problem, template) or self.signature(template)

    def _first(self, state: State, decision: Decided) -> Question:
        """The plan; where drafts of it were turned away, the last of them and the exact words about it."""
        turn, before = state.this_turn("author"), state.written
        rejected = before[-1].rejected if before else None
        if turn and rejected is not None and (reply := turn[-1].reply) is not None:
            return prompting.ask_again(turn[0].request, reply, shorten_middle(rejected.reason, 6000))
        parts, now = self._stable(state), self._parts(state, decision)
        return of_role("author", self.prompt, parts, "file", self._example(), now)

    def _example(self) -> str:
        return prompting.example_file(self.problem.kernel.language, self.concrete)

    def _stable(self, state: State) -> list[PromptPart]:
        """The same in every round."""
        return [
            *material.task_parts(self.problem, state, self.catalogue()),
            material.build_part(self.problem, state),
            material.tested_part(self.problem, state),
        ]

    def _parts(self, state: State, decision: Decided) -> list[PromptPart]:
        base = next((c for c in state.candidates if c.id == decision.candidate and c.drafted), None)
        best = leading_candidate(self.problem, state)
        evals = None if self.concrete else share_of(state).evals
        plan = [
            *plan_lines(decision, self.catalogue()),
            goes_on(base) if self.concrete else "",
            f"The best that is right so far is {candidate_noun(state.settings)} {best.id}."
            if best and best is not base
            else "",
            "" if evals is None else f"The search of your template has {format_count(evals, 'evaluation')}.",
        ]
        return [
            *material.round_parts(self.problem, state),
            *([material.base_part(self.problem, state, self.templates, base)] if base is not None else []),
            *handed_parts(decision, self.expert, self.problem, state.device),
            *material.standing_parts(self.problem, state),
            analysis_part(decision.analysis),
            PromptPart("The plan", "\n".join(filter(None, plan))),
        ]


def goes_on(base: Candidate | None) -> str:
    if base is None:
        return "Go on from the kernel as it is."
    return f"Go on from kernel {base.id}" + (", which is broken." if base.rejected else ".")


OWN_CHOICE = "There is no plan for this round: choose yourself what pays most, by the numbers."
NO_ROOM = "its text is left out: there is no room"


@dataclass(frozen=True)
class PlanningModel:
    """What planners have in common: what they are told, and where their plan is read."""

    problem: Problem
    templates: Templates
    catalogue: Callable[[], MoveCatalogue]
    prompt: str
    analyst: ModelAnalyst | None  # whose words it is told; `Analysed` asks for them
    lessons: str = field(default="", kw_only=True)  # of earlier runs

    def _plan(
        self,
        state: State,
        read: Callable[[Reply], Decided | Unusable],
        example: Callable[[], str],
        offered: Callable[[], list[PromptPart]],
        written: Callable[[], list[PromptPart]],
        turn: str,
    ) -> Decided | Question | NoAnswer:
        """`offered` stays the same in a run; `written` does not; `turn` stands at the end."""

        def first() -> Question:
            values = material.values_tested(self.problem, state)
            parts = [
                *material.task_parts(self.problem, state, self.catalogue()),
                PromptPart("Tested anyway", f"All edges of the contract, with values: {values}.", 1),
                material.lessons_part(self.lessons),
                *offered(),
            ]
            now = [
                *material.round_parts(self.problem, state),
                *written(),
                *material.standing_parts(self.problem, state),
                *([analysis_part(self.analyst.words(state))] if self.analyst is not None else []),
                PromptPart("Your turn", f"{material.left_words(state)}. {turn} What comes next?"),
            ]
            return of_role("planner", self.prompt, parts, "json", example(), now)

        return settle_turn("planner", state.this_turn("planner"), state.settings.repairs, read, first)

    def _text(self, state: State, base: Candidate | None, called: str = "") -> list[PromptPart]:
        """What is gone on from, as far as there is room; `called` says what else it is."""
        if base is None:
            return []
        part = material.base_part(self.problem, state, self.templates, base)
        heading = f"{part.heading.split(',')[0]}{called}" if called else part.heading
        return [PromptPart(heading, part.text, 1, NO_ROOM)]


@dataclass(frozen=True)
class ModelPlanner(PlanningModel):
    """`expert` searches what is admitted, and plans a round for which the model has no plan."""

    expert: Planner
    writes: bool  # whether a model writes templates, too: else there is nothing but moves

    def decide(self, state: State) -> Decided | Question:
        if any(c.status == "admitted" for c in state.candidates):
            return self.expert.decide(state)

        def read(reply: Reply) -> Decided | Unusable:
            plan = read_json(reply, PlanReply)
            return plan if isinstance(plan, Unusable) else self._decision(plan, state)

        def example() -> str:
            return prompting.plan_example(self.catalogue().available, self.writes)

        who = "An author is there for plans in words, a program for moves."
        who = who if self.writes else "Only moves are possible: nobody writes by words."
        is_without = state.settings.moves == "none" and self.writes
        who = "An author is there for plans in words; no moves are offered." if is_without else who
        who = " ".join(filter(None, [who, self._colleague_words(state)]))

        found = self._plan(
            state,
            read,
            example,
            lambda: [material.moves_part(self.catalogue())],
            lambda: [
                *self._text(state, leading_candidate(self.problem, state), ", the best so far"),
                material.candidates_part(self.problem, state),
            ],
            who,
        )
        if not isinstance(found, NoAnswer):
            return found
        if is_without:
            best = leading_candidate(self.problem, state)
            reason = f"{found.what} ({found.why}); the author chooses"
            return Decided("refactor", reason, (), best.id if best else "", what=OWN_CHOICE)
        plan = self.expert.decide(state)  # one of moves, which it can apply by itself
        if isinstance(plan, Question):
            return plan
        reason = f"{found.what} ({found.why}); the expert plans: {plan.reason}"
        return replace(plan, reason=reason, by_moves=plan.decision == "refactor")

    def _colleague_words(self, state: State) -> str:
        """How author and program may work together."""
        return expert_words(self.catalogue(), self.writes)

    def _decision(self, plan: PlanReply, state: State) -> Decided | Unusable:
        if plan.decision == "stop":
            return Decided("finish", plan.why)
        if plan.decision == "search":
            base = self._base(plan, state)
            return base if isinstance(base, Unusable) else _further_search(plan, base, state)
        return self._decide_refactoring(plan, state)

    def _decide_refactoring(self, plan: PlanReply, state: State) -> Decided | Unusable:
        if plan.base == EXPERT:
            return decide_handover(plan, self.catalogue(), self.writes)
        base = self._base(plan, state)
        if isinstance(base, Unusable):
            return base
        if plan.moves:
            return self._moves(plan, base)
        if not self.writes:
            return Unusable("nobody here writes by words: name moves, out of those that are available")
        if not plan.what.strip():
            return Unusable("`what` is empty: say what the author is to change, or name moves")
        base_id = base.id if base else ""
        return Decided("refactor", plan.why, (), base_id, what=plan.what, expected=plan.expected_gain)

    def _base(self, plan: PlanReply, state: State) -> Candidate | Unusable | None:
        """None: the original. What was turned away is nobody's base."""
        if plan.base in ("", "best"):
            return leading_candidate(self.problem, state)
        if plan.base == "original":
            return None
        sound = {c.id: c for c in state.candidates if c.status in ("admitted", "searched")}
        if plan.base in sound:
            return sound[plan.base]
        known = ", ".join(["original", *sound])
        return Unusable(f"`base` is {plan.base!r}; it can be: {known}, or empty for the best")

    def _moves(self, plan: PlanReply, base: Candidate | None) -> Decided | Unusable:
        moves = self.catalogue()
        if unknown := [name for name in plan.moves if name not in moves.available]:
            why = dict(moves.refused).get(unknown[0])
            reason = f"does not apply here: {why}" if why else "is no move"
            known = ", ".join(moves.available) or "none"
            return Unusable(f"{unknown[0]!r} {reason}; available are: {known}")
        # Moves start from the original: a base has some of them, or is a model's, which has none.
        chosen = tuple(dict.fromkeys((*(base.moves if base else ()), *plan.moves)))
        base_id, gain = base.id if base is not None and base.moves else "", plan.expected_gain
        return Decided("refactor", plan.why, chosen, base_id, what=plan.what, expected=gain, by_moves=True)


def _further_search(plan: PlanReply, base: Candidate | None, state: State) -> Decided | Unusable:
    if base is None or base.searched is None:
        return Unusable("there is no template to search further: refactor or stop")
    if not base.searched.cut:
        why = f"the search of template {base.id} has ended: {base.searched.reason}"
        return Unusable(f"{why}; refactor or stop")
    return share_of(state).search(plan.why, base.moves, base.id)


@dataclass(frozen=True)
class RewritePlanner(PlanningModel):
    """Of concrete kernels, which nobody searches. Rounds go on from the best kernel that is right or, linear,
    from the last that was written. A round for which the model has no plan is the author's own; if that is
    silent too, the run ends."""

    def decide(self, state: State) -> Decided | Question:
        if (measure := to_measure(state)) is not None:
            return measure
        base = last_written(state) if state.settings.linear else leading_candidate(self.problem, state)
        base_id = base.id if base else ""

        def read(reply: Reply) -> Decided | Unusable:
            plan = read_json(reply, prompting.RewriteReply)
            if isinstance(plan, Unusable):
                return plan
            if plan.decision == "stop":
                return Decided("finish", plan.why)
            if not plan.what.strip():
                return Unusable("`what` is empty: say what the author is to change")
            return Decided("refactor", plan.why, (), base_id, what=plan.what, expected=plan.expected_gain)

        def written() -> list[PromptPart]:
            every = [material.candidates_part(self.problem, state)] if state.candidates else []
            return [*self._text(state, base), *every]

        ideas = material.ideas_parts(state, self.catalogue)
        found = self._plan(state, read, lambda: prompting.REWRITE, lambda: ideas, written, goes_on(base))
        if not isinstance(found, NoAnswer):
            return found
        last = next((e for e in reversed(state.dialogue) if e.request.role == "author"), None)
        if found.is_silent and last is not None and last.reply is None:
            return Decided("finish", f"neither planner nor author answers: {found.why}")
        reason = f"{found.what} ({found.why}); the author chooses"
        return Decided("refactor", reason, (), base_id, what=OWN_CHOICE)


def to_measure(state: State) -> Decided | None:
    """A kernel that the gate let in is measured before anything else is decided."""
    waiting = [c for c in state.candidates if c.status == "admitted"]
    return Decided("search", f"kernel {waiting[-1].id} is right", (), waiting[-1].id) if waiting else None


@dataclass(frozen=True)
class ModelTester:
    problem: Problem
    prompt: str

    def cases(self, state: State) -> Extended | Question:
        """What is to be tried on the original; what cannot be a case is set aside with the reason."""
        said = [e for e in state.dialogue if e.request.role == "tester"]
        found = settle_turn(
            "tester",
            said,
            REPAIRS,
            lambda reply: read_json(reply, prompting.Cases),
            lambda: self._first(state),
        )
        if isinstance(found, Question):
            return found
        if isinstance(found, NoAnswer):
            return Extended((), note=str(found))
        cases, left_out = [], []
        for case in found.cases:
            ordered = {name: case.sizes[name] for name in self.problem.size_names if name in case.sizes}
            sizes = tuple((ordered if len(ordered) == len(case.sizes) else case.sizes).items())
            one = ExtraCase(sizes, case.values, case.why)
            if (why := case_misfit(self.problem, one)) is None:
                cases.append(one)
            else:
                left_out.append((one, why))
        return Extended(tuple(cases), tuple(left_out))

    def _first(self, state: State) -> Question:
        parts = [
            *material.kernel_parts(self.problem),
            material.problem_part(self.problem, state),
            material.device_part(state.device),
            material.tested_part(self.problem, state),
        ]
        return of_role(
            "tester", self.prompt, parts, "json", prompting.cases_example(self.problem.workloads[0].as_dict())
        )


# -- A kernel that is beyond the expert: a model is asked only to rewrite it plainly. What comes back
# passes the gate as every draft does, and only if the expert reads it and can do more with it than with
# the original; from then on moves are made on it.


PLAIN = "plain"  # as the base of a plan, and the name of its words
FEW = 3  # moves: with no more of them a plain kernel is worth a thought
ASKED_FOR = "the kernel is rewritten plainly first, as --plain asks, so that the expert can read it"
_SHOWN = 12  # obstacles that are told at a time


@dataclass(frozen=True)
class PlainKernels:
    """What moves there are, on the original or on the plain kernel that has taken its place."""

    problem: Problem
    templates: Templates
    of_problem: Callable[[Problem], MoveCatalogue]

    @property
    def of_original(self) -> MoveCatalogue:
        return self.of_problem(self.problem)

    def catalogue(self, state: State) -> MoveCatalogue:
        kernel = state.plain_kernel
        if kernel is None:
            return self.of_original
        found = self.of_problem(problem_of(self.problem, self.templates, kernel))
        called = f"template {kernel.id}, the kernel written plainly"
        return replace(found, of=called, text=self.templates.text(kernel))

    def words(self, state: State) -> str:
        """What planners are told of it; empty where there is no use for it, or nobody to do it."""
        moves = self.of_original
        if state.plain_kernel is not None or state.settings.moves == "none":
            return ""
        if not moves.beyond and len(moves.offers) > FEW:
            return ""
        stops = "cannot read the kernel" if moves.beyond else f"has {len(moves.offers)} moves for the kernel"
        return (
            f"The program {stops} as it is; why stands with how it reads it and with the moves. With "
            f'`"base": "{PLAIN}"` and no `moves` the author only rewrites it plainly; once that is right and '
            "the program reads it, moves are made on it, and need no author."
        )

    def decision(self, plan: PlanReply, state: State) -> Decided | Unusable:
        if plan.moves:
            return Unusable(
                f"with `base` {PLAIN!r} the kernel is only rewritten: `moves` come in a later round"
            )
        if (kernel := state.plain_kernel) is not None:
            return Unusable(f"template {kernel.id} is the plain kernel already: name `moves` to make on it")
        if state.settings.moves == "none":
            return Unusable(f"`base` is {PLAIN!r}, and no moves are offered here that it could be for")
        return Decided("refactor", plan.why, what=plan.what, expected=plan.expected_gain, plain=True)

    def fault(self, template: Template) -> str | None:
        """Why a plain rewrite would not help, in the expert's words."""
        if (form := _form_fault(self.problem, template)) is not None:
            return form
        found, before = self.of_problem(plain_problem(self.problem, template)), self.of_original
        if found.beyond:
            lines = [f"- {line}" for line in found.beyond[:_SHOWN]]
            return "\n".join(["the program still cannot read it:", *lines])
        if not set(found.available) - set(before.available):
            known = ", ".join(found.available) or "none"
            fault = f"the program reads it, and has no move for it that it did not have before ({known})"
            return "\n".join([f"{fault}:", *material.refused_lines(found)[:_SHOWN]])
        return None


def _form_fault(problem: Problem, template: Template) -> str | None:
    """Nothing but a launch, with the kernels and the arguments of the original."""
    more = {
        "[defines]": template.defines,
        "[require]": template.space.constraints,
        "[workspace]": template.workspace,
        "[build]": template.flags,
    }
    if there := [title for title, declared in more.items() if declared]:
        return f"a plain kernel declares its launch and nothing else: leave out {', '.join(there)}"
    wanted, got = ([(one.entry, one.args) for one in whose.launches] for whose in (problem, template))
    if wanted != got:
        shown = ", then ".join(f"{entry} ({', '.join(args)})" for entry, args in wanted)
        return f"a plain kernel is called as the original is: {shown}"
    return None


@dataclass(frozen=True)
class PlainingAuthor(ModelAuthor):
    """Writes the kernel plainly."""

    def _example(self) -> str:
        return prompting.example_file(self.problem.kernel.language, concrete=True, plain=True)

    def _stable(self, state: State) -> list[PromptPart]:
        moves = self.catalogue()
        stops = [f"- {line}" for line in moves.beyond] or material.refused_lines(moves)
        return [
            *material.kernel_parts(self.problem),
            material.problem_part(self.problem, state),
            PromptPart("What keeps the program from reading it, or from its moves", "\n".join(stops)),
            material.device_part(state.device),
            material.plain_build_part(self.problem, state),
            material.tested_part(self.problem, state),
        ]

    def _parts(self, state: State, decision: Decided) -> list[PromptPart]:
        plan = [f"Why: {decision.reason}", *([f"Mind: {decision.what}"] if decision.what else [])]
        return [PromptPart("The plan", "\n".join(plan))]


@dataclass(frozen=True)
class OnPlain:
    """An author by moves, for the plain kernel whatever it is asked about."""

    author: Author
    plain: Problem

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        del problem
        return self.author.write(task, self.plain, device)


@dataclass(frozen=True)
class PlainAuthor(ModelAuthor):
    """A model that writes templates, and the kernel plainly where that is what was decided."""

    kernels: PlainKernels = field(kw_only=True)

    def write(self, state: State, decision: Decided) -> Written | Declined | Question:
        if decision.plain:
            return self._make_plaining_author.write(state, decision)
        kernel, expert = state.plain_kernel, self.expert
        if kernel is not None and expert is not None:
            expert = OnPlain(expert, problem_of(self.problem, self.templates, kernel))
        now = replace(self, catalogue=lambda: self.kernels.catalogue(state), expert=expert)
        return ModelAuthor.write(now, state, decision)

    def plain_fault(self, template: Template) -> str | None:
        return self._make_plaining_author.faults(template) or self.kernels.fault(template)

    @property
    def _make_plaining_author(self) -> PlainingAuthor:
        return PlainingAuthor(
            self.problem,
            self.templates,
            lambda: self.kernels.of_original,
            prompting.own_prompt(PLAIN),
            self.name,
            self.signature,
            concrete=True,
        )


@dataclass(frozen=True)
class PlainPlanner(ModelPlanner):
    """A planner who may have the kernel rewritten plainly."""

    kernels: PlainKernels = field(kw_only=True)

    def decide(self, state: State) -> Decided | Question:
        now = replace(self, catalogue=lambda: self.kernels.catalogue(state))
        return ModelPlanner.decide(now, state)

    def _colleague_words(self, state: State) -> str:
        return " ".join(filter(None, [super()._colleague_words(state), self.kernels.words(state)]))

    def _decide_refactoring(self, plan: PlanReply, state: State) -> Decided | Unusable:
        if plan.base == PLAIN:
            return self.kernels.decision(plan, state)
        return super()._decide_refactoring(plan, state)


@dataclass(frozen=True)
class PlainFirst:
    """A plain rewrite before anything else; then as the other planner says, `by_moves` of the expert where no
    model plans."""

    then: Planner
    by_moves: bool

    def decide(self, state: State) -> Decided | Question:
        is_waiting = any(c.status == "admitted" for c in state.candidates)
        if not is_waiting and not any(decided.plain for decided in state.decided):
            return Decided("refactor", ASKED_FOR, plain=True)
        found = self.then.decide(state)
        if isinstance(found, Question) or found.decision != "refactor":
            return found
        return replace(found, by_moves=True) if self.by_moves else found
