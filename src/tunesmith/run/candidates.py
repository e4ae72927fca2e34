"""The templates of a run, by candidate: the one that was given, and drafts as the run keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tunesmith.problem.device import Device
from tunesmith.problem.feasible import configs_of
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, plain_name
from tunesmith.problem.template_file import parse_template
from tunesmith.run.ports import Texts
from tunesmith.run.state import Candidate, State
from tunesmith.space.configset import ConfigSet
from tunesmith.space.params import Config

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
    ) -> None:
        """`beside` are given too: name -> digest of the text."""
        self.problem = problem
        self.given = given
        self.beside = dict(beside or {})
        self._device = device
        self._texts = texts
        self._read: dict[tuple[str, str], Template] = {}
        self._configs: dict[tuple[str, str], ConfigSet] = {}

    def on(self, device: Device) -> Templates:
        """The same on a device that was found later."""
        return Templates(self.problem, device, self.given, self._texts, self.beside)

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
            self._read[key] = self.parse(self.text(candidate), candidate.id)
        return self._read[key]

    def parse(self, text: str, candidate: str) -> Template:
        """Headers are the problem's own: an author has no others."""
        path = draft_name(self.problem, candidate)
        return parse_template(text, path=path, problem=self.problem).of_candidate(candidate)

    def configs(self, candidate: Candidate) -> ConfigSet:
        key = (candidate.id, candidate.template)
        if key not in self._configs:
            self._configs[key] = configs_of(self.problem, self.of(candidate), self._device)
        return self._configs[key]

    def lookup(self, state: State) -> TemplateOf:
        """The template a configuration belongs to."""
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


def inherited(template: Template, rows: Sequence[Row]) -> list[Row]:
    """What another template of the run has shown for this one: parameters it does not have stand at their
    defaults, which is how the kernel is before anything is made of them."""
    default = template.default.as_dict()
    return rows_for(template, [(Config.of(default | config.as_dict()), score) for config, score in rows])
