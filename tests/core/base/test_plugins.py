"""Plugins are found by the table or by entry points; one that is not here is missed in words."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import tunesmith
from tests.end_to_end.asking import quickly, refused
from tests.running import FIXTURES, tunesmith_afresh
from tests.toy_plugin.installed import install_toy
from tunesmith import backends
from tunesmith.base import plugins
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.cli.app import app
from tunesmith.deliver import names_for, target_named
from tunesmith.run.config import RunConfig
from tunesmith.session.library import SqliteLibrary, open_library

HERE = [(group, name) for group in plugins.TABLE for name in plugins.our_names(group)]


@pytest.fixture
def toy_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With the toy plugin installed, here and in processes that a test starts."""
    folder = install_toy(tmp_path / "installed")
    monkeypatch.syspath_prepend(folder)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
    yield folder
    for module in [name for name in sys.modules if name.startswith("toy_plugin")]:
        del sys.modules[module]


def test_what_the_table_names_is_there() -> None:
    """All of it; where the folder of plugins is gone what is left."""
    is_whole = Path(tunesmith.__file__).with_name("plugins").is_dir()
    assert [
        (group, name)
        for group, entries in plugins.TABLE.items()
        for name, target in entries.items()
        if is_whole or ".plugins." not in target
    ] == HERE


@pytest.mark.parametrize(("group", "name"), HERE, ids="/".join)
def test_what_is_here_is_loaded(group: str, name: str) -> None:
    assert plugins.load_plugin(group, name) is not None


@pytest.mark.parametrize("name", plugins.our_names("commands"))
def test_help_says_of_a_command_what_it_says_itself(name: str) -> None:
    words, found = plugins.first_sentence(name), plugins.load_plugin("commands", name)
    if isinstance(found, typer.Typer):
        assert not words
    else:
        assert words == " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())


def test_what_is_not_installed_is_missed_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = "tunesmith.plugins.toys.shop:sell And more"
    for group in ("commands", "api", "exports"):
        monkeypatch.setitem(plugins.TABLE[group], "diff", gone)  # type: ignore[index]
    monkeypatch.delitem(vars(tunesmith), "diff", raising=False)
    assert "diff" not in plugins.plugin_names("commands")
    assert "diff" not in list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match="'diff' needs the plugin toys, which is not installed here"):
        plugins.load_plugin("commands", "diff")
    with pytest.raises(AttributeError, match="needs the plugin toys"):
        _ = tunesmith.diff
    with pytest.raises(BadInput, match="needs the plugin toys"):
        target_named("diff")


def test_the_command_of_a_plugin_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(plugins.TABLE["commands"], "diff", "tunesmith.plugins.toys.shop:sell Sells.")  # type: ignore[index]
    with pytest.raises(SystemExit) as ended:
        app(["diff", "one", "two"], prog_name="tunesmith")
    assert ended.value.code == BadInput.exit_code
    assert "needs the plugin toys" in capsys.readouterr().err


def test_a_strangers_plugin_is_found(toy_path: Path, tmp_path: Path) -> None:
    assert list(plugins.plugin_names("backends"))[-1] == "toy"
    assert names_for("toy") == ["toy"]
    assert "toy" not in names_for("cuda") or not plugins.our_names("exports")
    assert target_named("toy").about == "one text"
    assert "Greet whoever plays." in quickly(tmp_path, "--help").out
    assert quickly(tmp_path, "greet", "--json").json == {"greeting": "hello"}
    assert plugins.module_of("backends", "toy") == "toy_plugin.backend"


def test_nobody_takes_a_name_of_ours(toy_path: Path) -> None:
    points = toy_path / "toy_plugin-1.0.dist-info" / "entry_points.txt"
    points.write_text("[tunesmith.backends]\ncuda = toy_plugin.backend:KIND\nodd = toy_plugin.nowhere:KIND\n")
    plugins._found_on.cache_clear()
    try:
        assert plugins.load_plugin("backends", "cuda").name == "cuda"
        with pytest.raises(BadInput, match="'odd' of the package toy-plugin cannot be loaded"):
            plugins.load_plugin("backends", "odd")
    finally:
        plugins._found_on.cache_clear()


BACKEND = """
from dataclasses import replace
from toy_plugin.backend import KIND, ToyBackend
ALIKE = replace(KIND, name="alike", make=lambda _argument: ToyBackend())
"""


@pytest.fixture
def bad_plugins(toy_path: Path) -> Iterator[None]:
    """Beside the toy: mistakes that people make in their first plugin."""
    (toy_path / "toy_plugin" / "bad.py").write_text(BACKEND)
    points = toy_path / "toy_plugin-1.0.dist-info" / "entry_points.txt"
    backend = "alike = toy_plugin.bad:ALIKE\nkindless = toy_plugin.backend:ToyBackend\n"
    backend += "mine = toy_plugin.backend:KIND\nnowhere = toy_plugin.nowhere:KIND\n"
    export = (
        "bare = toy_plugin.export:write\nlost = toy_plugin.nowhere:TARGET\ntoy = toy_plugin.export:TARGET\n"
    )
    points.write_text(f"[tunesmith.backends]\n{backend}\n[tunesmith.exports]\n{export}")
    plugins._found_on.cache_clear()
    backends._kind_or_fault.cache_clear()
    yield
    plugins._found_on.cache_clear()
    backends._kind_or_fault.cache_clear()


KINDLESS = (
    "'kindless' of the package toy-plugin must name a BackendKind, and names the class ToyBackend "
    "(entry point tunesmith.backends: toy_plugin.backend:ToyBackend)"
)
MISTAKES = {
    "kindless": KINDLESS,
    "mine": "'mine' of the package toy-plugin names a BackendKind whose own name is 'toy'",
    "nowhere": "'nowhere' of the package toy-plugin cannot be loaded: ModuleNotFoundError",
    "alike": "the alike backend lists toy device as a device of the backend 'toy'",
}


@pytest.mark.usefixtures("bad_plugins")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_backend_that_is_none_is_refused_in_words(tmp_path: Path, name: str) -> None:
    code = DeviceMissing.exit_code if name == "alike" else BadInput.exit_code
    refused(quickly(tmp_path, "devices", "--backend", name), code, MISTAKES[name])


@pytest.mark.usefixtures("bad_plugins")
def test_bad_backends_end_nothing_for_others(tmp_path: Path) -> None:
    ended = quickly(tmp_path, "devices", "--json")
    assert ended.code == 0
    assert "fake" in {device["backend"] for device in ended.json}
    assert all(words in ended.err for words in MISTAKES.values())
    assert backends.kind_for("fortran") is None
    assert [name for name, _ in backends.unusable_backends()] == ["kindless", "mine", "nowhere"]


@pytest.mark.usefixtures("bad_plugins")
def test_bad_exports_are_refused_and_listed_in_words(tmp_path: Path) -> None:
    bare = "'bare' of the package toy-plugin must name a Target, and names a function"
    lost = "'lost' of the package toy-plugin cannot be loaded: ModuleNotFoundError"
    with pytest.raises(BadInput, match=bare):
        target_named("bare")
    refused(quickly(tmp_path, "export", "--to", "nope"), BadInput.exit_code, "no export 'nope'", bare, lost)
    assert names_for("toy") == ["toy"]
    assert "bare" not in names_for("")


def test_help_names_what_is_installed(toy_path: Path, tmp_path: Path) -> None:
    for group, command in (("exports", "export"), ("backends", "devices")):
        shown = " ".join(quickly(tmp_path, command, "--help").out.split())
        assert f"{', '.join(plugins.our_names(group))}, toy" in shown


@pytest.mark.parametrize("name", plugins.our_names("exports"))
def test_the_table_has_the_languages_of_a_target(name: str) -> None:
    assert tuple(plugins.plugin_words("exports", name).split()) == target_named(name).languages


def test_nothing_is_offered_for_a_language_that_no_export_takes() -> None:
    assert names_for("fortran") == []
    with pytest.raises(BadInput, match="no export 'nope'") as caught:
        target_named("nope", "fortran")
    assert caught.value.hint == "no export takes fortran kernels"


@pytest.mark.slow
def test_a_strangers_backend_and_export_work(toy_path: Path, tmp_path: Path) -> None:
    problem = tmp_path / "scale"
    shutil.copytree(FIXTURES / "scale", problem)
    for name in ("kernel", "template"):
        (problem / f"{name}.fake").rename(problem / f"{name}.toy")
    file = problem / "problem.toml"
    file.write_text(file.read_text().replace("kernel.fake", "kernel.toy").replace('"fake"', '"toy"'))
    run, out = tmp_path / "run", tmp_path / "out"
    options = ("--template", problem / "template.toy", "--evals", 2, "--no-library", "--out", run)
    ended = tunesmith_afresh(tmp_path, "tune", problem, "--backend", "toy", *options, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["device"] == "toy device"
    if "export" not in plugins.our_names("commands"):
        return
    exported = tunesmith_afresh(tmp_path, "export", run, "--to", "toy", "--out", out)
    assert exported.code == 0, exported.err
    assert (out / "toys.txt").read_text().strip()


def test_a_library_at_a_url_is_a_plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = RunConfig(library_dir=f"toy://{tmp_path}")
    with pytest.raises(BadInput, match="nothing here opens a library at toy://"), open_library(config):
        pass
    monkeypatch.setitem(plugins.TABLE["libraries"], "toy", f"{open_toy.__module__}:open_toy")  # type: ignore[index]
    with open_library(config) as library:
        assert library.where == str(tmp_path)


def open_toy(url: str, patience: float) -> SqliteLibrary:
    return SqliteLibrary(Path(url.partition("://")[2]), patience)
