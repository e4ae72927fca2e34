"""A backend is one folder and one line, also of somebody else's package: every command knows it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.fewer_calls import IN_A_PROCESS
from tests.running import FIXTURES, tunesmith_afresh
from tests.toy_plugin.installed import install_toy
from tunesmith import backends
from tunesmith.backends.port import BackendKind
from tunesmith.base.errors import BadInput
from tunesmith.problem import device


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the toy plugin, also for processes that a test starts; returns where their problem is."""
    folder = install_toy(tmp_path / "python")
    (folder / "sitecustomize.py").write_text(IN_A_PROCESS)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
    problem = tmp_path / "scale"
    shutil.copytree(FIXTURES / "scale", problem)
    for name in ("kernel", "template"):
        (problem / f"{name}.fake").rename(problem / f"{name}.toy")
    file = problem / "problem.toml"
    file.write_text(file.read_text().replace("kernel.fake", "kernel.toy").replace('"fake"', '"toy"'))
    return problem


@pytest.mark.long
def test_every_command_knows_a_new_backend(toy: Path, tmp_path: Path) -> None:
    doctor = tunesmith_afresh(tmp_path, "doctor", "--json")
    assert {"what": "toy", "usable": True, "detail": "toy device", "fix": ""} in doctor.json
    template = ("--template", toy / "template.toy", "--evals", 3)
    ended = tunesmith_afresh(
        tmp_path, "tune", toy, *template, "--no-library", "--out", tmp_path / "run", "--json"
    )
    assert ended.code == 0, ended.err
    assert ended.json["device"] == "toy device"


class TestTable:
    @pytest.fixture(autouse=True)
    def here_too(self, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(tmp_path / "python")

    def test_its_language_is_known(self) -> None:
        assert backends.backend_for("toy", None) == "toy"
        assert device.find_language("toy").title == "Toy"
        assert ".toy" in device.all_suffixes()
        assert device.language_of("kernel.cu") == "cuda"
        with pytest.raises(BadInput, match="must end in"):
            device.language_of("kernel.toy")  # nobody reads it as C

    def test_what_it_does_not_say_is_refused_in_words(self) -> None:
        assert backends.find_toolchain("toy") is None
        assert backends.absent_device("toy", None) is None
        assert backends.instructions_reader("toy")(b"", "k")[0] is None
        with pytest.raises(BadInput, match="only the replay backend takes a file"):
            backends.find_backend_kind("toy:file")


def test_uninstalled_nobody_knows_it() -> None:
    with pytest.raises(
        BadInput, match="unknown backend 'toy'; known are cuda, hip, opencl, cpu, fake, replay"
    ):
        backends.find_backend_kind("toy")
    assert not device.has_language("toy")


@pytest.mark.parametrize("kind", backends.backend_kinds(), ids=lambda kind: kind.name)
def test_what_a_backend_names_is_there(kind: BackendKind) -> None:
    assert backends.find_backend_kind(kind.name) is kind
    assert kind.languages
    if kind.ceilings is not None:
        for file in (kind.ceilings.file, kind.ceilings.half):
            assert "fp" in backends.ceilings_text(kind.name, file)
    if kind.extra:
        declared = (Path(__file__).parents[3] / "pyproject.toml").read_text()
        assert f"\n{kind.extra} = [" in declared
