"""A plan is read, or every fault is told with its line."""

from __future__ import annotations

import pytest

from tunesmith.errors import BadInput
from tunesmith.session.fleet.plan_file import EXPERT, read_plan
from tunesmith.session.fleet.plans import FleetAuthor

WHOLE = """\
device_hours = 2.5
capture = "seen"
[[problem]]
path = "ops/*"
weight = 3
[[problem]]
path = "softmax/problem.toml"
template = "template.cl"
[[device]]
name = "h200"
device = "0"
gpus = [0, "1"]
[[device]]
name = "a100"
workers = ["n1.toml", "n2.toml"]
slots = 2
weight = 0.5
[[author]]
name = "model"
model = "openai:any"
rounds = 4
[tune]
evals = 50
cache = false
"""


def test_all_that_a_plan_can_say() -> None:
    found = read_plan(WHOLE, "plan.toml")
    assert (found.hours, found.capture, found.settings) == (2.5, "seen", (("evals", 50), ("cache", False)))
    assert [(p.path, p.weight, p.template) for p in found.problems] == [
        ("ops/*", 3.0, ""),
        ("softmax/problem.toml", None, "template.cl"),
    ]
    first, second = found.devices
    assert (first.name, first.device, first.gpus) == ("h200", "0", ("0", "1"))
    assert (second.workers, second.slots, second.weight) == (("n1.toml", "n2.toml"), 2, 0.5)
    assert found.authors == (FleetAuthor("model", (("model", "openai:any"), ("rounds", 4))),)


LEAST = 'device_hours = 1\n[[problem]]\npath = "p"\n[[device]]\nname = "d"\n'


def test_the_expert_writes_unless_somebody_else_is_named() -> None:
    assert read_plan(LEAST, "plan.toml").authors == (EXPERT,)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("device_hours = 1\n", "", "", "device_hours is missing"),
        ("device_hours = 1", "device_hours = 0", ":1", "must be above 0"),
        ("device_hours = 1", "device_hours = -1", ":1", "at least 0, got -1"),
        ("device_hours = 1", 'device_hours = "much"', ":1", "a finite number"),
        ("device_hours = 1", "device_hours = 1\nevals = 3", ":2", "unknown key 'evals'"),
        ('path = "p"', 'path = ""', ":3", "not empty"),
        ('path = "p"', 'path = "p"\nweight = 0', ":4", "above 0"),
        ('path = "p"', 'path = "p"\nwieght = 1', ":4", "unknown key 'wieght'"),
        ('path = "p"\n', "", ":2", "path is missing"),
        ('name = "d"', 'name = "d; rm -rf ~"', ":5", "a name has letters"),
        ('name = "d"', 'name = "../d"', ":5", "a name has letters"),
        ('name = "d"', 'name = "d"\nslots = 0', ":6", "an integer from 1 to 1024"),
        ('name = "d"', 'name = "d"\ngpus = []', ":6", "gpus lists nothing"),
        ('name = "d"', 'name = "d"\ngpus = [0, 0]', ":6", "names one twice"),
        ('name = "d"', 'name = "d"\ngpus = ["$(reboot)"]', ":6", "numbers or names of GPUs"),
        ('name = "d"', 'name = "d"\ngpus = [0]\nworkers = "h"', ":6", "of this machine"),
        ('name = "d"', 'name = "d"\nworkers = []', ":6", "workers lists nothing"),
        ('name = "d"', 'name = "d"\n[[device]]\nname = "d"', ":6", "is there twice"),
        ('name = "d"', 'name = "d"\n[tune]\nevals = "many"', ":7", "evals must be a whole number"),
        ('name = "d"', 'name = "d"\n[tune]\nevals = 0', ":7", "evals must be at least 1"),
        ('name = "d"', 'name = "d"\n[tune]\nseed = [1]', ":7", "a text, a number, true or false"),
        ('name = "d"', 'name = "d"\n[tune]\nout = "x"', ":7", "unknown key 'out'"),
        ('name = "d"', 'name = "d"\n[[author]]\nmodel = "mailbox"', ":6", "name is missing"),
        ('name = "d"', "name = d", ":5", "not readable as TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, line: str, says: str) -> None:
    assert old in LEAST
    with pytest.raises(BadInput) as caught:
        read_plan(LEAST.replace(old, new, 1), "plan.toml")
    assert says in caught.value.message
    assert (caught.value.where or "").startswith(f"plan.toml{line}")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(BadInput, match="3 faults") as caught:
        read_plan(LEAST.replace("= 1", "= -1").replace('"p"', "7").replace('"d"', '"/"'), "plan.toml")
    assert [f"plan.toml:{line}:" in caught.value.message for line in (1, 3, 5)] == [True] * 3


@pytest.mark.parametrize(("value", "says"), [("[]", "device lists nothing"), ("3", "tables under")])
def test_devices_are_tables(value: str, says: str) -> None:
    text = f'device_hours = 1\ndevice = {value}\n[[problem]]\npath = "p"\n'
    with pytest.raises(BadInput, match=says) as caught:
        read_plan(text, "plan.toml")
    assert caught.value.where == "plan.toml:2"
