"""What the gate tries of a template before it may be searched; whom it blames is in `admissions.txt`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import pytest

from tests.drafts import a_draft
from tests.samples import DEVICE, a_problem, a_template, outcome
from tunesmith.problem.template import Template, configs_of
from tunesmith.run.candidates import COVER, LISTED, Checks, Faulty, Passed, examine_draft
from tunesmith.run.outcome import Outcome
from tunesmith.space.configset import Config

PROBLEM = a_problem()
PARAMS = {"A": [1, 2, 4, 8], "B": [0, 1], "C": [3, 1, 2], "D": [0, 1, 2, 3, 4]}


def template(params: dict[str, list[int]] | None = None) -> Template:
    return a_template(PROBLEM, a_draft(params or PARAMS))


def go(own: Template) -> tuple[Passed | Faulty, list[list[Config]]]:
    """What the gate decides where nothing is wrong, and the batches it tried."""
    configs, done, batches = configs_of(PROBLEM, own, DEVICE), list[Outcome](), list[list[Config]]()
    while True:
        step = examine_draft(own.space.params, own.default, configs, done, True)
        if not isinstance(step, Checks):
            return step, batches
        batches.append(list(step.configs))
        assert all(config in configs for config in step.configs)
        for config in step.configs:
            done.append(outcome(len(done), config, {"small": 1.0, "wide": 1.0}, "gate"))


def differing(config: Config, own: Template) -> list[str]:
    return [name for name, value in config.items if own.default[name] != value]


def test_the_default_then_extremes_alone_then_any_two_values_together() -> None:
    own = template()
    step, batches = go(own)
    assert step == Passed()
    assert batches[0] == [own.default]
    changed = {(name, config[name]) for config in batches[1][:5] for name in differing(config, own)}
    assert changed == {("A", 8), ("B", 1), ("C", 1), ("C", 2), ("D", 4)}
    tried = [config for batch in batches for config in batch]
    for (a, ones), (b, others) in combinations(PARAMS.items(), 2):
        met = {(config[a], config[b]) for config in tried}
        assert met == set(product(ones, others)), f"{a} with {b}"
    assert len(tried) <= 1 + 5 + COVER


def test_the_cover_has_an_end() -> None:
    wide = {f"P{n}": list(range(9)) for n in range(8)}
    step, batches = go(template(wide))
    assert step == Passed()
    assert len(batches[1]) == 8 + COVER


@pytest.mark.long
def test_large_spaces_are_looked_at_in_part() -> None:
    own = template({f"P{n}": list(range(8)) for n in range(6)})
    configs: Sequence[Config] = configs_of(PROBLEM, own, DEVICE)
    assert len(configs) == 8**6 > LISTED
    step, batches = go(own)
    again, same = go(own)
    assert step == again == Passed()
    assert batches == same
