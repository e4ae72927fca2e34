"""A plan and the files it names are read and stored, or every fault is told with its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tunesmith.base.errors import BadInput
from tunesmith.plugins.fleet import plan as planning
from tunesmith.plugins.fleet.plan import (
    FleetAuthor,
    cells_of,
    fleet_plan_differences,
    load_plan,
    read_plan,
    slots_of,
    store_plan,
    stored_plan,
)
from tunesmith.plugins.repo.capture.ranking import RankedKernel
from tunesmith.run.folder import RunFolder

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
num_gpus = 0
accelerator = "H200"
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
    assert (first.num_gpus, first.accelerator, second.num_gpus, second.accelerator) == (0, "H200", 1, "")
    assert ([name for name, _ in second.hosts], second.slots) == (["n1.toml", "n2.toml"], 2)
    assert second.weight == 0.5
    assert found.authors == (FleetAuthor("model", (("model", "openai:any"), ("rounds", 4))),)


LEAST = 'device_hours = 1\n[[problem]]\npath = "p"\n[[device]]\nname = "d"\n'


def test_the_expert_writes_unless_somebody_else_is_named() -> None:
    assert read_plan(LEAST, "plan.toml").authors == (FleetAuthor("expert"),)


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
        ('name = "d"', 'name = "d"\nnum_gpus = -1', ":6", "an integer from 0 to 1024"),
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


HOST = '[[worker]]\nname = "n"\ncommand = "ssh n tunesmith worker"\n'


def write(folder: Path, text: str = "", problems: str = '[[problem]]\npath = "ops/*"\n') -> Path:
    for number, name in enumerate(("one", "two")):
        problem = tiny.fake(folder / "ops" / name)
        tiny.spoil(problem / "problem.toml", '"tiny"', f'"{name}"')
        tiny.spoil(problem / "kernel.fake", "20000", f"2000{number}")
    (folder / "ops" / "notes").mkdir()
    (folder / "host.toml").write_text(HOST)
    plan = folder / "plan.toml"
    plan.write_text(f'device_hours = 1\n{text}{problems}[[device]]\nname = "d"\n')
    return plan


def more(plan: Path, text: str) -> Path:
    plan.write_text(plan.read_text() + text)
    return plan


def test_a_plan_is_stored_whole_and_read_again(tmp_path: Path) -> None:
    listed = '[[problem]]\npath = "ops/*"\nweight = 2\ntemplate = "template.fake"\n'
    path = more(
        write(tmp_path, problems=listed),
        'workers = ["host.toml"]\nslots = 2\n[[author]]\nname = "e"\nrounds = 2\n',
    )
    plan, stored = load_plan(path)
    assert [cell.name for cell in cells_of(plan)] == ["one@d+e", "two@d+e"]
    assert [slot.name for slot in slots_of(plan)] == ["d/d-1.toml/0", "d/d-1.toml/1"]
    assert plan.problems[0].weight == 2
    (tmp_path / "fleet" / "objects").mkdir(parents=True)
    folder = RunFolder(tmp_path / "fleet")
    store_plan(folder, plan, stored, path.read_text())
    again, cells = stored_plan(folder.path)
    assert again == plan
    assert fleet_plan_differences(again, plan) == ()
    assert (folder.path / "hosts" / "d-1.toml").read_text() == HOST
    texts = {name: folder.get(digest).decode() for name, digest in cells["one@d+e"].problem.files}
    assert "BLOCK" in texts["template:template.fake"]


def test_budget_weights_and_places_may_change_and_nothing_else(tmp_path: Path) -> None:
    plan, _ = load_plan(write(tmp_path))
    heavier = replace(plan, problems=tuple(replace(p, weight=9.0) for p in plan.problems), hours=7.0)
    wider = replace(heavier, devices=tuple(replace(d, slots=3, gpus=("0",)) for d in plan.devices))
    assert fleet_plan_differences(plan, wider) == ()
    changed = replace(plan, problems=tuple(replace(p, digest="x") for p in plan.problems))
    assert "as they were then, you ask for one (x)" in fleet_plan_differences(plan, changed)[0]
    for other in (
        replace(plan, settings=(("evals", 3),)),
        replace(plan, authors=()),
        replace(plan, devices=()),
    ):
        assert len(fleet_plan_differences(plan, other)) == 1


@pytest.mark.parametrize(
    ("problems", "after", "says"),
    [
        ('[[problem]]\npath = "none/*"\n', "", ["plan.toml:3: the pattern 'none/*' matches nothing"]),
        ('[[problem]]\npath = "*.toml"\n', "", ["plan.toml:3", "unknown key 'device_hours'"]),
        ('[[problem]]\npath = "ops/not*"\n', "", ["1 files and folders, none of them a problem"]),
        ('[[problem]]\npath = "gone"\n', "", ["plan.toml:3", "there is no such file"]),
        (
            '[[problem]]\npath = "ops/*"\n[[problem]]\npath = "ops/one"\n',
            "",
            ["plan.toml:5", "is the same problem"],
        ),
        (
            '[[problem]]\npath = "ops/one"\ntemplate = "no.fake"\n',
            "",
            ["plan.toml:4", "no.fake: there is no such"],
        ),
        ('[[problem]]\npath = "ops/one"\n', 'device = "7-0"\n', ["plan.toml:6", "no range"]),
        ('[[problem]]\npath = "ops/one"\n', 'gpus = [0, 1]\ndevice = "1"\n', ["plan.toml:7", "as device 0"]),
        ('[[problem]]\npath = "ops/one"\n', '[tune]\nsearch = "no"\n', ["plan.toml:6", "unknown search"]),
        (
            '[[problem]]\npath = "ops/one"\n',
            'workers = "gone.toml"\n',
            ["plan.toml:6", "gone.toml: cannot be read"],
        ),
        ('[[problem]]\npath = "ops/one"\n', 'backend = "cudda"\n', ["plan.toml:6", "cudda"]),
        (
            '[[problem]]\npath = "ops/one"\n',
            'backend = "replay:x"\n',
            ["plan.toml:6", "the times of one template"],
        ),
        (
            '[[problem]]\npath = "ops/one"\n',
            '[[author]]\nname = "m"\nstrategy = "rewrite"\n',
            ["plan.toml:6", "model"],
        ),
        (
            '[[problem]]\npath = "ops/one"\ntemplate = "template.fake"\n',
            '[[author]]\nname = "m"\nmodel = "mailbox"\n',
            ["plan.toml:7", "nothing is left for a model to write"],
        ),
    ],
)
def test_faults_of_what_it_names_are_told_at_its_line(tmp_path, problems, after, says):
    with pytest.raises(BadInput) as caught:
        load_plan(more(write(tmp_path, problems=problems), after))
    for words in says:
        assert words in str(caught.value)


def ranked(name: str, demangled: str, share: float) -> RankedKernel:
    empty = (1, 1, 1.0, share, None, None, 0.0, None, None, True, ())
    from tunesmith.plugins.repo.capture.ranking import KernelKind

    return RankedKernel(name, demangled, KernelKind.CUSTOM, *empty)


def test_a_capture_weighs_kernels_by_their_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        ranked("_Z5scaleIfEvPT_", "void ours::scale<float>(float*)", 0.25),
        ranked("_Z5scaleIdEvPT_", "void ours::scale<double>(double*)", 0.5),
        ranked("other", "other", 0.2),
    ]
    monkeypatch.setattr(planning, "read_capture", lambda _folder: None)
    monkeypatch.setattr(planning, "rank_kernels", lambda _capture: found)
    listed = '[[problem]]\npath = "ops/one"\n[[problem]]\npath = "ops/two"\nweight = 3\n'
    plan, _ = load_plan(write(tmp_path, 'capture = "seen"\n', listed))
    assert [problem.weight for problem in plan.problems] == [0.75, 3.0]
    monkeypatch.setattr(planning, "rank_kernels", lambda _capture: found[2:])
    with pytest.raises(BadInput, match="no time of a kernel 'scale'") as caught:
        load_plan(tmp_path / "plan.toml")
    assert "plan.toml:3" in str(caught.value)


def test_a_folder_that_is_no_capture_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="this is not a capture") as caught:
        load_plan(write(tmp_path, 'capture = "ops"\n'))
    assert (caught.value.where or "").endswith("plan.toml:2")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "damaged"),
        (b'{"hours":1,"problems":[],"devices":[],"authors":[],"format":99}', "another version"),
    ],
)
def test_a_stored_plan_that_cannot_be_used(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "fleet.json").write_bytes(data)
    with pytest.raises(BadInput, match=says):
        stored_plan(tmp_path)
