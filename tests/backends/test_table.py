"""A backend is one folder and one line: with a made-up one, every command knows it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.fewer_calls import IN_A_PROCESS
from tests.running import FIXTURES, tunesmith_afresh
from tunesmith import backends
from tunesmith.backends.port import BackendKind
from tunesmith.errors import BadInput
from tunesmith.problem import languages

FOLDER = """
from dataclasses import replace

from tunesmith.backends.port import BackendKind, DoctorFinding
from tunesmith.problem.languages import SourceLanguage


def make(_argument):
    from tunesmith.backends.fake import FakeBackend

    class ToyBackend(FakeBackend):
        name = "toy"

        def devices(self):
            return tuple(replace(d, backend="toy", name="toy device") for d in super().devices())

    return ToyBackend()


KIND = BackendKind(
    name="toy",
    languages=(SourceLanguage("toy", "Toy", (".toy",), self_contained=True, is_c_family=False),),
    make=make,
    check=lambda devices: [DoctorFinding("toy", True, devices()[0].name)],
    environment=lambda scratch, inherited: {"TOY_CACHE": str(scratch)},
    no_profiles="a toy has nothing to profile",
)
"""
LINE = 'BACKENDS["toy"] = "toy_backend"'


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder and the line, for processes that a test starts; returns where their problem is."""
    folder = tmp_path / "python" / "toy_backend"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(FOLDER)
    (folder.parent / "sitecustomize.py").write_text(
        f"{IN_A_PROCESS}from tunesmith.backends import BACKENDS\n{LINE}\n"
    )
    path = os.pathsep.join(filter(None, [str(folder.parent), os.environ.get("PYTHONPATH")]))
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
    def with_a_line(self, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(tmp_path / "python")
        monkeypatch.setitem(backends.BACKENDS, "toy", "toy_backend")

    def test_its_language_is_known(self) -> None:
        assert backends.backend_for("toy", None) == "toy"
        assert languages.named("toy").title == "Toy"
        assert ".toy" in languages.all_suffixes()
        assert languages.language_of("kernel.cu") == "cuda"
        with pytest.raises(BadInput, match="must end in"):
            languages.language_of("kernel.toy")  # nobody reads it as C

    def test_what_it_does_not_say_is_refused_in_words(self) -> None:
        assert backends.toolchain("toy") is None
        assert backends.absent_device("toy", None) is None
        assert backends.instructions_reader("toy")(b"", "k")[0] is None
        with pytest.raises(BadInput, match="only the replay backend takes a file"):
            backends.kind("toy:file")


def test_a_line_less_and_nobody_knows_it() -> None:
    with pytest.raises(
        BadInput, match="unknown backend 'toy'; known are cuda, hip, opencl, cpu, fake, replay"
    ):
        backends.kind("toy")
    assert not languages.exists("toy")


@pytest.mark.parametrize("kind", backends.kinds(), ids=lambda kind: kind.name)
def test_what_a_backend_names_is_there(kind: BackendKind) -> None:
    assert backends.kind(kind.name) is kind
    assert kind.languages
    if kind.ceilings is not None:
        for file in (kind.ceilings.file, kind.ceilings.half):
            assert "fp" in backends.ceilings_text(kind.name, file)
    if kind.extra:
        declared = (Path(__file__).parents[2] / "pyproject.toml").read_text()
        assert f"\n{kind.extra} = [" in declared
