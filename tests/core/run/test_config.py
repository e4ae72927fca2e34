"""Flags over environment over file over defaults, resolved once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.samples import DEVICE
from tunesmith.base.errors import BadInput
from tunesmith.run import trust
from tunesmith.run.config import RunConfig, folder_settings, resolve_config
from tunesmith.session.place import LocalDevices, Place, WorkerSite, worker_environment
from tunesmith.session.runs import _resolve_run_settings as run_settings


@pytest.fixture(autouse=True)
def _every_home_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The homes here are made up."""
    monkeypatch.setattr("tunesmith.run.config._can_hold", Path.is_absolute)


def resolved(
    folder: Path, text: str = "", environment: dict[str, str] | None = None, **flags: Any
) -> RunConfig:
    """In a folder that is trusted."""
    known = dict(environment or {})
    if text:
        (folder / "tunesmith.toml").write_text(text, encoding="utf-8")
        (folder / "data").mkdir(exist_ok=True)
        trust.trust_folder(folder, folder_settings(folder)[1], {"XDG_DATA_HOME": str(folder / "data")})
    if (folder / "data").exists():
        known.setdefault("XDG_DATA_HOME", str(folder / "data"))
    return resolve_config(flags, known, folder)


def test_defaults(tmp_path: Path) -> None:
    config = resolved(tmp_path, environment={"HOME": "/home/me"})
    library = "/home/me/.local/share/tunesmith/library"
    assert config == RunConfig(cache_dir="/home/me/.cache/tunesmith", library_dir=library)
    assert resolved(tmp_path, environment={"XDG_DATA_HOME": "/d"}).library_dir == "/d/tunesmith/library"
    assert config.cache_file == Path("/home/me/.cache/tunesmith/results.sqlite")
    assert config.evals is None


@pytest.mark.parametrize(
    ("name", "file", "environment", "flag"),
    [
        ("backend", '"fake"', "opencl", "replay:x"),
        ("device", '"0:0"', "0:1", "0:2"),
        ("search", '"random"', "evolution", "exhaustive"),
        ("evals", "10", "20", 30),
        ("time", "1.5", "2.5", 3.5),
        ("seed", "1", "2", 3),
        ("runs", '"a"', "b", "c"),
        ("cache_dir", '"/a"', "/b", "/c"),
        ("library_dir", '"/a"', "/b", "/c"),
        ("builders", "1", "2", 3),
        ("sandbox", '"off"', "required", "off"),
    ],
)
def test_flags_win_over_environment_over_file_over_defaults(
    tmp_path: Path, name: str, file: str, environment: str, flag: Any
) -> None:
    kind = type(flag)
    key = f"TUNESMITH_{name.upper()}"
    assert getattr(resolved(tmp_path), name) not in (file, environment, flag)
    text = f"{name} = {file}"
    assert getattr(resolved(tmp_path, text), name) == kind(file.strip('"'))
    assert getattr(resolved(tmp_path, text, {key: environment}), name) == kind(environment)
    assert getattr(resolved(tmp_path, text, {key: environment}, **{name: flag}), name) == flag
    assert getattr(resolved(tmp_path, text, {key: environment}, **{name: None}), name) == kind(environment)
    assert getattr(resolved(tmp_path, text, {key: ""}), name) == kind(file.strip('"'))


@pytest.mark.parametrize("name", ["cache", "prune", "prior"])
def test_a_switch_can_be_turned_back_at_every_level(tmp_path: Path, name: str) -> None:
    off, key = f"{name} = false", f"TUNESMITH_{name.upper()}"
    assert getattr(resolved(tmp_path), name) is True
    assert getattr(resolved(tmp_path, off), name) is False
    for value, texts in ((True, ("1", "YES", "on")), (False, ("0", "no", "False"))):
        assert {getattr(resolved(tmp_path, off, {key: text}), name) for text in texts} == {value}
    assert getattr(resolved(tmp_path, "", {key: "1"}, **{name: False}), name) is False


def test_every_setting_can_be_written_in_the_file(tmp_path: Path) -> None:
    said: dict[str, Any] = {
        "backend": "fake",
        "device": "0",
        "search": "random",
        "evals": 5,
        "time": 60,
        "seed": 7,
        **dict.fromkeys(("cache", "prune", "prior", "steer", "library"), False),
        "counters": True,
        "runs": "läufe",
        "cache_dir": "c",
        "library_dir": "l",
        "builders": 2,
    }
    text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in said.items())
    assert resolved(tmp_path, text) == RunConfig(**said)


def test_where_the_cache_lies(tmp_path: Path) -> None:
    for cache, folder in (("/x", "/x/tunesmith"), ("", "/h/.cache/tunesmith")):
        environment = {"HOME": "/h", "XDG_CACHE_HOME": cache}
        assert resolved(tmp_path, environment=environment).cache_dir == folder


def test_no_builders_means_that_the_device_decides(tmp_path: Path) -> None:
    assert resolved(tmp_path, "builders = 0").builders == 0
    assert resolved(tmp_path, "builders = 3", {"TUNESMITH_BUILDERS": "0"}).builders == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("evals = 1.5", "evals must be a whole number, got 1.5"),
        ('evals = "5"', "evals must be a whole number, got '5'"),
        ("evals = true", "evals must be a whole number, got True"),
        ("cache = 1", "cache must be true or false, got 1"),
        ("time = true", "time must be a number, got True"),
        ("search = 3", "search must be a text, got 3"),
        ("evils = 3", "unknown key 'evils'; known are backend"),
        ("evals = ", "cannot be read"),
        ("evals = 0", "evals must be at least 1"),
        ("evals = -3", "evals must be at least 1"),
        ("time = -1.0", "time must be at least 0"),
        ("time = nan", "time must be at least 0"),
        ("seed = -1", "seed must be at least 0"),
        ("builders = -1", "builders must be at least 0"),
    ],
)
def test_what_the_file_must_not_say(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        resolved(tmp_path, text)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "tunesmith.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="cannot be read") as caught:
        resolved(tmp_path)
    assert caught.value.where == str(tmp_path / "tunesmith.toml")
    (tmp_path / "tunesmith.toml").unlink()
    (tmp_path / "tunesmith.toml").mkdir()
    with pytest.raises(BadInput, match="cannot be read"):
        resolved(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        *((name, text, rf"TUNESMITH_{name} must be .*, got '{text}'") for name, text in (
            ("EVALS", "many"), ("EVALS", "1.5"), ("TIME", "soon"), ("CACHE", "perhaps"), ("SEED", "0x"),
        )),
        *((name, text, f"{name.lower()} must be at least") for name, text in (
            ("EVALS", "0"), ("TIME", "nan"), ("SEED", "-4"),
        )),
    ],
)  # fmt: skip
def test_what_the_environment_must_not_say(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        resolved(tmp_path, environment={f"TUNESMITH_{name}": text})


@pytest.mark.parametrize(
    ("name", "meant"), [("SEDE", "SEED"), ("EVAL", "EVALS"), ("CACHEDIR", "CACHE_DIR"), ("seed", "SEED")]
)
def test_a_variable_that_is_nearly_a_setting_is_refused(tmp_path: Path, name: str, meant: str) -> None:
    with pytest.raises(BadInput, match=f"TUNESMITH_{name}, which is no setting") as refused:
        resolved(tmp_path, environment={f"TUNESMITH_{name}": "3"})
    assert f"TUNESMITH_{meant}?" in (refused.value.hint or "")


def test_variables_of_others_do_not_matter(tmp_path: Path) -> None:
    others = dict.fromkeys(("EVALS", "TUNESMITH_", "TUNESMITH_OTHER"), "x")
    assert resolved(tmp_path, environment=others).evals is None


def test_a_worker_writes_into_scratch_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIBRARY_PATH", "/opt/lib")
    environment = worker_environment("opencl", tmp_path)
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "POCL_CACHE_DIR"):
        assert environment[name].startswith(str(tmp_path))
    assert environment["LIBRARY_PATH"].split(os.pathsep) == ["/opt/lib", str(tmp_path / "lib")]
    environment = worker_environment("cuda", tmp_path)
    assert environment["CUDA_CACHE_PATH"].startswith(str(tmp_path))
    assert environment["CUDA_CACHE_DISABLE"] == "1", "else a build may come without the compiler's words"


def test_only_variables_on_a_list_reach_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "LANG": "C.UTF-8",
        "LC_TIME": "C",
        "CUDA_VISIBLE_DEVICES": "1",
        "POCL_DEBUG": "all",
        "OPENAI_API_KEY": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "SSH_AUTH_SOCK": "/run/agent",
        "ANYTHING": "else",
        "CUDA_LICENCE_TOKEN": "c",
        "LC_ALL": "sk-ant-0123456789abcdef0123",
        "LD_PRELOAD": "/tmp/spy.so",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    seen = {spec: worker_environment(spec, tmp_path) for spec in ("opencl", "cuda", "fake")}
    passed = {spec: {name for name in given if name in own} for spec, own in seen.items()}
    assert passed["fake"] == {"LANG", "LC_TIME"}
    assert passed["cuda"] == passed["fake"] | {"CUDA_VISIBLE_DEVICES"}
    assert passed["opencl"] == passed["cuda"] | {"POCL_DEBUG"}


def test_a_sandbox_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"auto, required or off.*'strict'"):
        resolved(tmp_path, sandbox="strict")


@pytest.mark.parametrize(
    ("flags", "steer", "profile"),
    [({}, True, "static"), ({"steer": False}, False, "static"), ({"counters": True}, True, "counters")],
)
def test_a_run_is_steered_by_default(flags: dict[str, bool], steer: bool, profile: str) -> None:
    config = resolve_config(flags, {"HOME": "/h"}, Path("/nowhere"))
    place = Place(WorkerSite("fake", Path()), LocalDevices("fake", (DEVICE,)), DEVICE)
    settings = run_settings(config, place, 10)
    assert (settings.steer, settings.profile) == (steer, profile)


class TestNoHome:
    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    @pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "."}, {"XDG_CACHE_HOME": "cache"}])
    def test_what_belongs_there_goes_to_a_private_folder_and_is_said(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        config = resolve_config({}, environment, tmp_path)
        for folder in (config.cache_dir, config.library_dir):
            assert Path(folder).is_relative_to(tmp_path / f"tunesmith-{os.getuid()}")
        assert len(config.notes) == 2
        assert all(str(tmp_path) in note for note in config.notes)

    def test_nor_where_it_cannot_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda *_given: False)
        home = tmp_path / "home"
        (home / ".local/share/tunesmith/library").mkdir(parents=True)
        config = resolve_config({}, {"HOME": str(home)}, tmp_path)
        assert not Path(config.cache_dir).is_relative_to(home)
        assert Path(config.library_dir).is_relative_to(home), "it is there, and can be read"
        assert str(home / ".cache") in config.notes[0]

    def test_where_they_are_named_no_home_is_needed(self, tmp_path: Path) -> None:
        own = {"TUNESMITH_CACHE_DIR": "/c", "TUNESMITH_LIBRARY_DIR": "/l"}
        assert resolve_config({}, own, tmp_path).notes == ()

    def test_a_number_without_end_in_the_settings_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "tunesmith.toml").write_text(f"evals = {'9' * 5000}\n")
        with pytest.raises(BadInput, match="cannot be read"):
            resolve_config({}, {}, tmp_path)
