"""The templates of a run, by candidate: the one that was given, and drafts as they are stored; and the gate.

The gate says which configurations of a draft are tried before it may be searched, and what follows from them.
First the default; then every parameter's extremes, each alone; then a cover in which any two values meet, as
far as the cap goes. Where one fails, its values are taken back to the default one at a time: those without
which it works are to blame, alone or together. All of it follows from what was tried so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.errors import BadInput
from tunesmith.base.text import format_count, named_values
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Combination, Template, configs_of, plain_name
from tunesmith.problem.template_file import exclude_combinations, parse_template
from tunesmith.run.events import Admitted
from tunesmith.run.outcome import Outcome, Rehearsed, Result, Trial
from tunesmith.run.ports import Texts
from tunesmith.run.state import Candidate, State
from tunesmith.space.configset import Config, ConfigSet, Param

TemplateOf = Callable[[Config], Template]


class Templates:
    """Reads a draft when it is asked for; a text that is no template is the reader's BadInput."""

    def __init__(
        self,
        problem: Problem,
        device: Device,
        given: Template | None,
        texts: Texts,
        beside: Mapping[str, str] | None = None,
        authors: Mapping[str, str] | None = None,
    ) -> None:
        """`beside` are given too: name -> digest of the text. `authors` wrote those of the given, the first
        under no name, that neither the user nor the expert did."""
        self.problem = problem
        self.authors = dict(authors or {})
        self.given = None
        if given is not None:
            given = replace(given, is_foreign=True) if self.authors.get("") else given
            self.given = given.on(device)
        self.beside = dict(beside or {})
        self._device = device
        self._texts = texts
        self._read: dict[tuple[str, str], Template] = {}
        self._configs: dict[tuple[str, str], ConfigSet] = {}

    def on(self, device: Device) -> Templates:
        """The same on a device that was found later."""
        return Templates(self.problem, device, self.given, self._texts, self.beside, self.authors)

    def keep(self, text: str) -> str:
        """Store a draft before anything is said about it; its digest."""
        return self._texts.put(text)

    def text(self, candidate: Candidate) -> str:
        return self._texts.get(candidate.template)

    def of(self, candidate: Candidate) -> Template:
        if not candidate.id:
            assert self.given is not None, "this run was given no template"
            return self.given
        key = (candidate.id, candidate.template)
        if key not in self._read:
            read = self.parse(self.text(candidate), candidate.id)
            self._read[key] = replace(read, is_foreign=bool(self.author_of(candidate)))
        return self._read[key]

    def author_of(self, candidate: Candidate) -> str:
        """The model that wrote it, however long ago; empty: the expert, or the user."""
        drafted = candidate.drafted
        return drafted.author if drafted is not None else self.authors.get(candidate.id, "")

    def parse(self, text: str, candidate: str) -> Template:
        """Headers are the problem's own: an author has no others."""
        path = draft_name(self.problem, candidate)
        return parse_template(text, path=path, problem=self.problem).of_candidate(candidate).on(self._device)

    def configs(self, candidate: Candidate) -> ConfigSet:
        key = (candidate.id, candidate.template)
        if key not in self._configs:
            self._configs[key] = configs_of(self.problem, self.of(candidate), self._device)
        return self._configs[key]

    def admitted(self, candidate: Candidate, rules: tuple[Combination, ...] = ()) -> Admitted:
        """That it may be searched. With rules, the text that is searched, and delivered, has them too."""
        template, digest = self.of(candidate), candidate.template
        if rules:
            digest = self.keep(exclude_combinations(template.source, rules, template.path))
        count = len(self.configs(replace(candidate, template=digest)))
        return Admitted(digest, count, template.space.combinations, candidate.id, rules, template.baking)

    def lookup(self, state: State) -> TemplateOf:
        given = Candidate("", "")
        return lambda config: self.of(state.candidate(config.candidate) if config.candidate else given)


def draft_name(problem: Problem, candidate: str) -> str:
    name = plain_name(problem.kernel.path)
    suffix = f".{name.rsplit('.', 1)[1]}" if "." in name else ""
    return f"template-{candidate}{suffix}"


Row = tuple[Config, float | None]


def rows_for(template: Template, rows: Sequence[Row]) -> list[Row]:
    """Scores of configurations with the same parameters, as far as this template has their values."""
    domains = {param.name: param.positions for param in template.space.params}
    found: list[Row] = []
    for config, score in rows:
        values = config.as_dict()
        if values.keys() == domains.keys() and all(values[key] in domains[key] for key in domains):
            found.append((Config(tuple((k, values[k]) for k in domains), template.space.candidate), score))
    return found


def inherit_rows(template: Template, rows: Sequence[Row]) -> list[Row]:
    """What another template of the run has shown for this one: parameters it does not have stand at their
    defaults, which is how the kernel is before anything is made of them."""
    default = template.default.as_dict()
    return rows_for(template, [(Config.of(default | config.as_dict()), score) for config, score in rows])


COVER = 24  # configurations beside the extremes
FEW = 3  # values of a parameter are all tried alone
LISTED = 20_000  # configurations a cover is chosen from
MAX_BLAMED = 8  # faults; a draft with more of them is beyond mending
MAX_TRIED = 128  # configurations: by then what failed is forbidden as it stands

# What nobody is to blame for: it does not fit, or is not meant to run there.
NEUTRAL = (Status.OK, Status.INFEASIBLE, Status.OVER_LIMITS)

Positions = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class Checks:
    configs: tuple[Config, ...]


@dataclass(frozen=True)
class Faulty:
    """The draft may not be searched; `without` are values that are wrong by themselves."""

    reason: str
    trials: tuple[int, ...]
    without: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Passed:
    """The draft may be searched, once it forbids these."""

    rules: tuple[Combination, ...] = ()


def examine_draft(
    params: Sequence[Param], default: Config, configs: ConfigSet, outcomes: Sequence[Outcome], may_mend: bool
) -> Checks | Faulty | Passed:
    """`outcomes` are those of the draft so far; `may_mend`: whether its author can be asked for another."""
    tried = {o.trial.config: o for o in outcomes if o.trial.config is not None}
    field = _FeasibleRows(params, configs, default)
    start = field.start
    if start not in tried:
        return Checks((start,))
    if why := outcome_fault(tried[start]):
        near = "its default, {}," if start == default else "{}, the nearest to its default that fits,"
        where = f"at {near.format(start)} it" if params else "it"
        return Faulty(f"{where} is {_format_fault(why)}", (tried[start].trial.id,))
    if untried := [config for config in field.planned() if config not in tried]:
        return Checks(tuple(untried))
    blamed: list[tuple[Combination, Outcome]] = []
    bad = {config: o for config, o in tried.items() if outcome_fault(o)}
    for config in sorted(bad, key=lambda c: (len(_differing_params(c, start)), bad[c].trial.id)):
        if any(set(rule) <= set(config.items) for rule, _ in blamed):
            continue
        rule = _to_blame(config, start, configs, tried)
        if isinstance(rule, Checks):
            return rule
        blamed.append((rule, bad[config]))
    if not any(r.ok for o in tried.values() for r in o.results):
        first = tried[start]
        return Faulty(f"nothing of it runs: {_format_fault(first.results[0])}", (first.trial.id,))
    if len(blamed) > MAX_BLAMED:
        reason = f"it is wrong in {len(blamed)} ways: {_format_blamed(blamed[:FEW])} and more"
        return Faulty(reason, tuple(o.trial.id for _, o in blamed))
    alone = [(rule, o) for rule, o in blamed if len(rule) == 1]
    if alone and may_mend:
        values = tuple(rule[0] for rule, _ in alone)
        return Faulty(_format_blamed(alone), tuple(o.trial.id for _, o in alone), values)
    return Passed(tuple(rule for rule, _ in blamed))


def gate_plan(params: Sequence[Param], default: Config, configs: ConfigSet) -> tuple[Config, ...]:
    """What the gate tries if nothing fails, and then the values that none of it has, each once."""
    field = _FeasibleRows(params, configs, default)
    planned = [field.start, *field.planned()]
    return (*planned, *field.unmet(planned))


def outcome_fault(outcome: Outcome) -> Result | None:
    """What is wrong with a configuration, beyond its not fitting."""
    return next((r for r in outcome.results if r.status not in NEUTRAL), None)


def rule_text(rule: Combination) -> str:
    return named_values(rule, " with ")


def _to_blame(
    config: Config, start: Config, configs: ConfigSet, tried: Mapping[Config, Outcome]
) -> Combination | Checks:
    """The values without each of which it works. What cannot be taken back alone is among them."""
    differing = _differing_params(config, start)
    if len(differing) > 1:
        without = {name: config.replace(name, start[name]) for name in differing}
        asked = tuple(c for c in without.values() if c not in tried and c in configs)
        if asked and len(tried) < MAX_TRIED:
            return Checks(asked)
        needed = [n for n in differing if not (without[n] in tried and outcome_fault(tried[without[n]]))]
        differing = needed or differing
    return tuple((name, config[name]) for name in differing)


def _differing_params(a: Config, b: Config) -> list[str]:
    return [name for name, value in a.items if b[name] != value]


def _format_fault(result: Result) -> str:
    where = f" (workload {result.workload})" if result.workload else ""
    return f"{result.status}{where}: {result.detail}" if result.detail else f"{result.status}"


def _format_blamed(blamed: Sequence[tuple[Combination, Outcome]]) -> str:
    found = [(rule_text(rule), outcome_fault(outcome)) for rule, outcome in blamed]
    return "; ".join(f"{name} is {_format_fault(why)}" for name, why in found if why is not None)


class _FeasibleRows:
    """The feasible configurations as rows of positions: all of them, or many drawn once and for all."""

    def __init__(self, params: Sequence[Param], configs: ConfigSet, default: Config) -> None:
        self._params = tuple(params)
        self._configs = configs
        numbers = np.arange(len(configs))
        if len(configs) > LISTED:
            numbers = np.unique(np.random.default_rng(0).integers(len(configs), size=LISTED))
        self._numbers = numbers
        self._rows: Positions = configs.positions(numbers)
        self.start = default if default in configs else self._nearest_config(default, np.arange(len(numbers)))

    def planned(self) -> list[Config]:
        """Extremes one at a time, then the cover; the start is not among them."""
        found = dict.fromkeys(self._extreme_configs())
        found |= dict.fromkeys(self._cover_pairs([self.start, *found]))
        found.pop(self.start, None)
        return list(found)

    def unmet(self, chosen: Sequence[Config]) -> list[Config]:
        """For each value that none of these has, the nearest to the start."""
        found: list[Config] = []
        for place, param in enumerate(self._params):
            for value in param.values:
                having = np.flatnonzero(self._rows[:, place] == param.positions[value])
                if having.size and all(config[param.name] != value for config in (*chosen, *found)):
                    found.append(self._nearest_config(self.start.replace(param.name, value), having))
        return found

    def _extreme_configs(self) -> Iterator[Config]:
        for place, param in enumerate(self._params):
            ends = param.values
            if len(ends) > FEW:
                ends = (min(ends), max(ends))
            for value in ends:
                if value == self.start[param.name]:
                    continue
                alone = self.start.replace(param.name, value)
                if alone in self._configs:
                    yield alone
                    continue
                having = np.flatnonzero(self._rows[:, place] == param.positions[value])
                if having.size:  # else no configuration has it, or none was drawn
                    yield self._nearest_config(alone, having)

    def _cover_pairs(self, chosen: Sequence[Config]) -> list[Config]:
        """Greedily, the rows in which most values meet that have not met yet."""
        several = [i for i, param in enumerate(self._params) if len(param.values) > 1]
        pairs = list(combinations(several, 2))
        missing = {(i, j): self._feasible_pairs(i, j) for i, j in pairs}
        for config in chosen:
            self._mark_covered(missing, [p.positions[config[p.name]] for p in self._params])
        found: list[Config] = []
        while pairs and len(found) < COVER:
            gains = sum(missing[i, j][self._rows[:, i], self._rows[:, j]].astype(np.int32) for i, j in pairs)
            best = int(np.argmax(gains))
            if not np.asarray(gains)[best]:
                break
            self._mark_covered(missing, self._rows[best].tolist())
            found.append(self._configs[int(self._numbers[best])])
        return found

    def _feasible_pairs(self, i: int, j: int) -> NDArray[np.bool_]:
        met = np.zeros((len(self._params[i].values), len(self._params[j].values)), dtype=np.bool_)
        met[self._rows[:, i], self._rows[:, j]] = True
        return met

    def _mark_covered(self, missing: Mapping[tuple[int, int], NDArray[np.bool_]], row: Sequence[int]) -> None:
        for (i, j), met in missing.items():
            met[row[i], row[j]] = False

    def _nearest_config(self, config: Config, among: NDArray[np.int64]) -> Config:
        """With the fewest values that differ; of those the one that keeps what stands first: `LANES`, say,
        which decides in what order sums are added up."""
        wanted = np.array([p.positions[config[p.name]] for p in self._params])
        differs = self._rows[among] != wanted
        first = differs @ np.arange(len(self._params), 0, -1)
        nearest = np.lexsort((first, differs.sum(axis=1)))[0]
        return self._configs[int(self._numbers[among[int(nearest)]])]


def parse_config(template: Template, text: str, called: str = "") -> Config:
    """`BLOCK=128 VEC=4`: values for some parameters, the template's defaults for the others.
    `called` begins every fault."""
    config = template.default
    known = {p.name: p for p in template.space.params}
    seen: set[str] = set()
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if name in seen:
            raise BadInput(f"{called}{name} is set twice", hint=f"say once what {name} shall be")
        seen.add(name)
        if name not in known:
            fault = f"{called}the template has no parameter {name!r}; it has {', '.join(known)}"
            raise BadInput(fault, where=template.path, hint='write it as "NAME=VALUE NAME=VALUE"')
        try:
            number = int(value, 0)
        except ValueError:
            got = f"{word!r}" if equals else f"{word!r} without a value"
            fault = f"{called}a parameter's value is an integer, got {got}"
            hint = f"write e.g. {name}={known[name].values[0]}"
            raise BadInput(fault, where=template.path, hint=hint) from None
        if number not in known[name].positions:
            allowed = ", ".join(map(str, known[name].values))
            fault = f"{called}{name}={number} is not in its domain: allowed are {allowed}"
            hint = "choose one of them, or add the value to the template's [params]"
            raise BadInput(fault, where=template.path, hint=hint)
        config = config.replace(name, number)
    return config


GATE_SECONDS = 300.0  # for one draft; the first configuration is tried whatever it takes
MAX_NAMED = 3  # of what was wrong when the time was up


@dataclass(frozen=True)
class NextRehearsal:
    config: Config
    whole: bool  # whether on all cases, as the default is; the others on the few of a search
    left: int  # that the gate would try after it


@dataclass(frozen=True)
class HostGate:
    """The gate where the device is absent: what the host's processor tries of one draft, in which order.

    All that the gate tries on a device, and each value of every parameter at least once. What is found wrong
    goes back to the author; what is found right is believed by nobody: the device's own gate begins anew.
    """

    template: Template
    configs: ConfigSet
    plan: tuple[Config, ...]  # what the device's gate tries, and values that it leaves out
    seconds: float = GATE_SECONDS

    @classmethod
    def of(cls, template: Template, configs: ConfigSet, seconds: float = GATE_SECONDS) -> HostGate:
        plan = gate_plan(template.space.params, template.default, configs)
        return cls(template, configs, plan, seconds)

    def step(
        self, done: Sequence[Rehearsed], may_mend: bool, is_model: bool
    ) -> NextRehearsal | Faulty | Passed:
        """`done` are those of this draft. Faulty is what goes back to its author, who heeds words if that is
        a model."""
        tried = {one.config: one for one in done if one.config is not None}
        start = self.plan[0]
        if start not in tried:
            return NextRehearsal(start, True, len(self.plan) - 1)
        if tried[start].status is not Status.OK and not tried[start].convicts:
            return Passed()  # nothing can be said of it here
        pending = tuple(config for config in self.plan if config not in tried)
        if not pending or tried[start].convicts:
            outcomes = [_as_outcome(number, one) for number, one in enumerate(done)]
            params, default = self.template.space.params, self.template.default
            found = examine_draft(params, default, self.configs, outcomes, may_mend)
            if isinstance(found, Faulty):
                return Faulty(f"{found.reason} (on {done[-1].device})", (), found.without)
            if isinstance(found, Passed):
                return found
            pending = found.configs
        if sum(one.seconds for one in done) >= self.seconds:
            return _cut_short(list(tried.values()), may_mend and is_model)
        return NextRehearsal(pending[0], False, len(pending) - 1)


def _cut_short(done: Sequence[Rehearsed], may_mend: bool) -> Faulty | Passed:
    """Whom to blame is not known. A model can mend what it is told; what else was written goes on to the
    device, whose gate finds out."""
    wrong = [one for one in done if one.convicts]
    if not wrong or not may_mend:
        return Passed()
    words = "; ".join(f"at {one.config} it is {one.status}: {one.detail}" for one in wrong[:MAX_NAMED])
    more = f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
    return Faulty(f"{words}{more} (on {wrong[-1].device})", ())


def _as_outcome(number: int, one: Rehearsed) -> Outcome:
    """For the gate. What could not be checked here may be right elsewhere, and is nobody's fault."""
    known = one.convicts or one.status is Status.OK
    status = one.status if known else Status.INFEASIBLE
    result = Result("", status, detail=one.detail if one.convicts else "")
    return Outcome(Trial(number, one.config, (), "short", "gate"), (result,), seconds=one.seconds)


def gate_sentence(done: Sequence[Rehearsed]) -> str:
    """What was tried of one draft, in words; empty where its first configuration says all."""
    left = done[-1].left if done and done[0].status is Status.OK else 0
    if len(done) < 2 and not left:
        return ""
    wrong = sum(one.convicts for one in done)
    open_ = sum(not one.convicts and one.status is not Status.OK for one in done)
    parts = [f"{wrong} wrong"] * bool(wrong) + [f"{open_} not checked"] * bool(open_)
    right = f"{len(done) - wrong - open_} of {format_count(len(done), 'configuration')} right"
    named = done[-1].config.candidate if done[-1].config is not None else ""
    words = f"the gate{f' of {named}' if named else ''} on {done[-1].device}: {right}"
    words += f", {', '.join(parts)}" if parts else ""
    if left:
        spent = sum(one.seconds for one in done)
        words += f"; its time was up after {spent:.0f} s, {left} were not tried"
    return words if wrong else f"{words}; not timed, and to be passed again on a GPU"
