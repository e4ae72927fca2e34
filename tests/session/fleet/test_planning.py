"""Plans and the files they name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tunesmith.capture.ranking import RankedKernel
from tunesmith.errors import BadInput
from tunesmith.run.store import RunFolder
from tunesmith.session.fleet import planning
from tunesmith.session.fleet.planning import load_plan, store_plan, stored_plan
from tunesmith.session.fleet.plans import cells_of, other_plan, slots_of

HOST = '[[worker]]\nname = "n"\ncommand = "ssh n tunesmith worker"\n'


def write(folder: Path, text: str = "", problems: str = '[[problem]]\npath = "ops/*"\n') -> Path:
    for number, name in enumerate(("one", "two")):
        own = tiny.fake(folder / "ops" / name)
        tiny.spoil(own / "problem.toml", '"tiny"', f'"{name}"')
        tiny.spoil(own / "kernel.fake", "20000", f"2000{number}")
    (folder / "ops" / "notes").mkdir()
    (folder / "host.toml").write_text(HOST)
    plan = folder / "plan.toml"
    plan.write_text(f'device_hours = 1\n{text}{problems}[[device]]\nname = "d"\n')
    return plan


def more(plan: Path, text: str) -> Path:
    plan.write_text(plan.read_text() + text)
    return plan


def test_a_plan_is_stored_whole_and_read_again(tmp_path: Path) -> None:
    own = '[[problem]]\npath = "ops/*"\nweight = 2\ntemplate = "template.fake"\n'
    path = more(
        write(tmp_path, problems=own),
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
    assert other_plan(again, plan) == ()
    assert (folder.path / "hosts" / "d-1.toml").read_text() == HOST
    texts = {name: folder.get(digest).decode() for name, digest in cells["one@d+e"].problem.files}
    assert "BLOCK" in texts["template:template.fake"]


def test_budget_weights_and_places_may_change_and_nothing_else(tmp_path: Path) -> None:
    plan, _ = load_plan(write(tmp_path))
    heavier = replace(plan, problems=tuple(replace(p, weight=9.0) for p in plan.problems), hours=7.0)
    wider = replace(heavier, devices=tuple(replace(d, slots=3, gpus=("0",)) for d in plan.devices))
    assert other_plan(plan, wider) == ()
    changed = replace(plan, problems=tuple(replace(p, digest="x") for p in plan.problems))
    assert "the same as they are now" in other_plan(plan, changed)[0]
    for other in (
        replace(plan, settings=(("evals", 3),)),
        replace(plan, authors=()),
        replace(plan, devices=()),
    ):
        assert len(other_plan(plan, other)) == 1


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
        ('[[problem]]\npath = "ops/one"\n', 'backend = "cudda"\n', ["plan.toml:4", "cudda"]),
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
def test_faults_of_what_it_names_are_told_at_its_line(
    tmp_path: Path, problems: str, after: str, says: list[str]
) -> None:
    with pytest.raises(BadInput) as caught:
        load_plan(more(write(tmp_path, problems=problems), after))
    for words in says:
        assert words in str(caught.value)


def ranked(name: str, demangled: str, share: float) -> RankedKernel:
    empty = (1, 1, 1.0, share, None, None, 0.0, None, None, True, ())
    from tunesmith.capture.ranking import KernelKind

    return RankedKernel(name, demangled, KernelKind.CUSTOM, *empty)


def test_a_capture_weighs_kernels_by_their_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        ranked("_Z5scaleIfEvPT_", "void ours::scale<float>(float*)", 0.25),
        ranked("_Z5scaleIdEvPT_", "void ours::scale<double>(double*)", 0.5),
        ranked("other", "other", 0.2),
    ]
    monkeypatch.setattr(planning, "read_capture", lambda _folder: None)
    monkeypatch.setattr(planning, "ranking", lambda _capture: found)
    own = '[[problem]]\npath = "ops/one"\n[[problem]]\npath = "ops/two"\nweight = 3\n'
    plan, _ = load_plan(write(tmp_path, 'capture = "seen"\n', own))
    assert [problem.weight for problem in plan.problems] == [0.75, 3.0]
    monkeypatch.setattr(planning, "ranking", lambda _capture: found[2:])
    with pytest.raises(BadInput, match="no time of a kernel 'scale'") as caught:
        load_plan(tmp_path / "plan.toml")
    assert "plan.toml:3" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("softmax", "softmax"),
        ("softmax<{n}, float>", "softmax"),
        ("scale_{type}", "scale_{type}"),
        ("_Z5scaleIfEvPT_", "_Z5scaleIfEvPT_"),
        ("void space::softmax<float, 4>(float*)", "softmax"),
        ("unsigned int a::b::k(float*, int) const", "k"),
        ("void (anonymous namespace)::softmax_kernel<float>(float*, int)", "softmax_kernel"),
        ("(anonymous namespace)::k(int)", "k"),
        ("void at::(anonymous namespace)::k<4>(at::(anonymous namespace)::X<int>, void (*)(int))", "k"),
        ("void k<at::(anonymous namespace)::X<(bool)1>, 2>(float*)", "k"),
        ("void A<(anonymous namespace)::B>::k<(8>4), (1<2)>(int)", "k"),
        ("void f(int)::{lambda(float)#1}::operator()(float) const", "operator()"),
        ("void ns::F<int>::operator()<float>(float*) const", "operator()"),
        ("bool ns::operator< <int>(X<int> const&, X<int> const&)", "operator<"),
        ("ns::operator<<(X&, int)", "operator<<"),
        ("ns::X::operator bool() const", "operator bool"),
        ("void f(int) const::{lambda()#1}::g(k::h)", "g"),
        ("cooperator(int)", "cooperator"),
        ("void k<float", "k"),
        ("", ""),
        ("(", ""),
    ],
)
def test_the_bare_name_of_a_kernel(name: str, bare: str) -> None:
    assert planning._bare(name) == bare


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
