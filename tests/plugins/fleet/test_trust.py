"""What the file of a folder may not say, and who may: the user, by flags, environment, own file or trust."""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tunesmith.agents.models import external_models
from tunesmith.api import settings
from tunesmith.base.errors import BadInput
from tunesmith.base.files import SETTINGS_FILE as FILE
from tunesmith.cli.app import app
from tunesmith.plugins.fleet.plan import FleetAuthor, FleetDevice, FleetPlan, refuse_strangers
from tunesmith.run import trust
from tunesmith.run.config import FolderNotTrusted, RunConfig, own_file, resolve_config
from tunesmith.run.folder import FLEET, JOURNAL, PLAN

HOSTS = '[[worker]]\nname = "x"\ncommand = ["sh", "go.sh", "/bin/sh"]\n'
# All that a folder's file may say: a setting that is new is not among them until somebody thinks about it.
OPEN = (
    *("backend", "device", "search", "evals", "time", "seed", "cache", "prune", "prior", "steer", "counters"),
    *("runs", "linear", "wait", "device_seconds", "moves", "library", "sandbox", "ceilings"),
)
# Of these, values that reach further.
WIDER = {
    "backend": ['"replay:/etc/passwd"', '"fake:x"'],
    "runs": ['"../x"', '"/x"', '"a/../../x"', '"link"', '"link/x"', '"a\\u0000b"'],
    "library": ["true"],
    "sandbox": ['"off"', '"auto"'],
}
VALUES = {"str": '"x"', "int": "3", "float": "3.0", "bool": "true"}
CLOSED = [
    (f.name, VALUES[str(f.type).removesuffix(" | None")])
    for f in fields(RunConfig)
    if f.name not in (*OPEN, "notes")
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that came from somebody, with the user in it."""
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    monkeypatch.chdir(folder)
    return folder


def untold(**flags: Any) -> RunConfig:
    """Nothing is asked for beyond what may be."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return resolve_config(flags)


@pytest.mark.parametrize(("name", "value"), [*CLOSED, *((n, v) for n, vs in WIDER.items() for v in vs)])
def test_a_folders_file_does_not_widen_what_is_allowed(here: Path, name: str, value: str) -> None:
    usual = untold()
    (here / FILE).write_text(f"{name} = {value}\nseed = 7\n")
    with pytest.warns(FolderNotTrusted) as told:
        config = resolve_config({})
    assert getattr(config, name) == getattr(usual, name)
    assert config.seed == 7, "the rest of it holds"
    (one,) = told
    assert f"its {name} is ignored" in str(one.message)
    assert f"tunesmith trust {here}" in str(one.message)


def test_what_it_may_say(here: Path) -> None:
    (here / FILE).write_text('runs = "a/b"\nlibrary = false\nsandbox = "required"\nbackend = "fake"\n')
    config = untold()
    assert (config.runs, config.library, config.sandbox, config.backend) == ("a/b", False, "required", "fake")


def test_flags_and_the_environment_say_it_nevertheless(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / FILE).write_text('model = "openai:x@http://thief"\nworkers = "theirs.toml"\n')
    monkeypatch.setenv("TUNESMITH_WORKERS", "mine.toml")
    with pytest.warns(FolderNotTrusted, match="its model, workers are ignored"):
        config = settings(model="expert")
    assert (config.model, config.workers) == ("expert", "mine.toml")


def test_the_users_own_file_is_below_the_folders(here: Path, tmp_path: Path) -> None:
    own = own_file(os.environ)
    (tmp_path / "dotfiles").mkdir()
    own.parent.mkdir(parents=True)
    own.symlink_to(tmp_path / "dotfiles" / "settings")
    own.write_text('model = "anthropic:y"\nseed = 1\nworkers = "hosts.toml"\nprompts = "/p"\nevals = 9\n')
    (here / FILE).write_text("seed = 2\n")
    config = untold(evals=3)
    assert (config.model, config.seed, config.prompts, config.evals) == ("anthropic:y", 2, "/p", 3)
    assert config.workers == str(tmp_path / "dotfiles" / "hosts.toml"), "not one that the folder has"
    os.chdir(own.parent)
    assert untold().model == "anthropic:y", "there it is no folder's"


class TestTrust:
    @pytest.fixture(autouse=True)
    def folder(self, here: Path) -> None:
        (here / FILE).write_text('workers = "hosts.toml"\nprompts = "words"\nsandbox = "off"\n')
        (here / "hosts.toml").write_text(HOSTS)
        (here / "go.sh").write_text("true\n")
        (here / "words").mkdir()
        (here / "words" / "author.md").write_text("be quick")

    def trusted(self, *words: str) -> str:
        done = CliRunner().invoke(app, ["trust", *words])
        assert done.exit_code == 0, done.output
        return done.output

    def test_it_says_all_once_it_is_trusted_and_no_longer_when_it_is_not(self, here: Path) -> None:
        said = self.trusted(".")
        assert f"{FILE}, hosts.toml, words/author.md, go.sh, link" in said
        assert "workers, prompts, sandbox" in said
        config = untold()
        assert (config.workers, config.prompts, config.sandbox) == ("hosts.toml", "words", "off")
        assert str(here) in self.trusted()
        self.trusted("--remove", str(here))
        assert "no folder is trusted" in self.trusted()
        with pytest.warns(FolderNotTrusted, match="is not trusted"):
            assert resolve_config({}).sandbox == "auto"

    @pytest.mark.parametrize(
        "file",
        [FILE, "hosts.toml", "go.sh", "words/author.md", "words/new.md", "lib.sh", "Makefile", "tools/x.py"],
    )
    def test_any_change_withdraws_it(self, here: Path, file: str) -> None:
        (here / "tools").mkdir()
        (here / "lib.sh").write_text("true\n")  # which go.sh may read
        self.trusted(str(here))
        with (here / file).open("a") as changed:
            changed.write("# more\n")
        self.withdrawn()

    def withdrawn(self) -> None:
        with pytest.warns(FolderNotTrusted, match="has changed since it was trusted"):
            assert resolve_config({}).workers == ""

    def test_a_link_that_leads_elsewhere_withdraws_it(self, here: Path) -> None:
        self.trusted(str(here))
        (here / "link").unlink()
        (here / "link").symlink_to("/")
        self.withdrawn()

    def test_the_end_of_a_long_program_counts(self, here: Path) -> None:
        with (here / "go.sh").open("r+b") as program:
            program.truncate(trust.MAX_BYTES - 1000)
            self.trusted(str(here))
            program.seek(-1, os.SEEK_END)
            program.write(b"x")
        self.withdrawn()

    def test_work_does_not_withdraw_it(self, here: Path) -> None:
        """Kernels, runs, bytecode and what git keeps are no programs, however much of it there is."""
        for folder in (".git", "__pycache__", "tunesmith-runs/1"):
            (here / folder).mkdir(parents=True)
        (here / "tunesmith-runs/1" / JOURNAL).touch()
        self.trusted(str(here))
        with (here / ".git/pack").open("wb") as pack:
            pack.truncate(2 * trust.MAX_BYTES)
        for file in ("kernel.cu", "__pycache__/tool.pyc", "tunesmith-runs/1/report.json"):
            (here / file).write_text("new")
        assert untold().workers == "hosts.toml"

    @pytest.mark.parametrize("what", ["bytes", "files"])
    def test_a_folder_that_is_too_large_is_refused(self, here, what, monkeypatch):
        self.trusted(str(here))
        if what == "bytes":
            with (here / "model.bin").open("wb") as large:
                large.truncate(trust.MAX_BYTES)
        else:
            monkeypatch.setattr(trust, "MAX_FILES", 4)
        self.withdrawn()
        done = CliRunner().invoke(app, ["trust", str(here)])
        assert done.exit_code == 2
        assert "a folder of its own" in " ".join(done.output.split())

    def test_settings_that_start_nothing_rest_on_what_they_name(self, here: Path) -> None:
        (here / FILE).write_text('prompts = "words"\n')
        self.trusted(str(here))
        (here / "go.sh").write_text("false\n")
        assert untold().prompts == "words"

    def test_it_is_of_one_folder(self, here: Path, tmp_path: Path) -> None:
        self.trusted(str(here))
        here.rename(tmp_path / "moved")
        here.mkdir()
        (here / FILE).write_text('sandbox = "off"\n')
        with pytest.warns(FolderNotTrusted):
            assert resolve_config({}, folder=here).sandbox == "auto"
        with pytest.warns(FolderNotTrusted):
            assert resolve_config({}, folder=tmp_path / "moved").sandbox == "auto"


@pytest.mark.parametrize("words", [["--remove"], ["/nowhere"], ["."]])
def test_what_cannot_be_trusted(here: Path, words: list[str]) -> None:
    done = CliRunner().invoke(app, ["trust", *words])
    assert done.exit_code == 2
    assert "hint:" in done.output


@pytest.mark.timeout(20)
@pytest.mark.parametrize("what", ["pipe", "link"])
def test_a_file_that_is_none_is_said(here: Path, what: str) -> None:
    if what == "pipe":
        os.mkfifo(here / FILE)
    else:
        (here / FILE).symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="cannot be read"):
        resolve_config({})


# -- runs, comparisons and fleets -----------------------------------------------------------------------

ASKED = {"model": "openai:x@http://elsewhere.example/v1"}


def begun(folder: Path, name: str = JOURNAL, text: str = '{"first": 1}\n{"second": 2}\n') -> Path:
    folder.mkdir()
    (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", [JOURNAL, PLAN, FLEET])
def test_what_was_begun_elsewhere_chooses_no_model(tmp_path: Path, name: str) -> None:
    given, own = begun(tmp_path / "given", name), begun(tmp_path / "own", name, '{"own": 1}\n')
    trust.remember_begun(own / name)
    trust.refuse_strangers(own / name, ASKED)
    trust.refuse_strangers(own.rename(tmp_path / "moved") / name, ASKED)
    trust.refuse_strangers(given / name, {})
    with pytest.raises(BadInput, match=r"was not begun here.*model = 'openai:x") as refused:
        trust.refuse_strangers(given / name, ASKED, "give --model X, or ")
    assert refused.value.hint == f"give --model X, or read it, then: tunesmith trust {given}"
    assert CliRunner().invoke(app, ["trust", str(given)]).exit_code == 0
    trust.refuse_strangers(given / name, ASKED)
    (given / name).write_text('{"first": 2}\n')
    with pytest.raises(BadInput):
        trust.refuse_strangers(given / name, ASKED)


def test_a_journal_that_grows_stays_its_own_and_one_that_begins_otherwise_does_not(tmp_path: Path) -> None:
    own = begun(tmp_path / "own")
    trust.remember_begun(own / JOURNAL)
    with (own / JOURNAL).open("a") as file:
        file.write('{"third": 3}\n')
    trust.refuse_strangers(own / JOURNAL, ASKED)
    given = begun(tmp_path / "given", text='{"first": 2}\n')
    shutil.copy(own / JOURNAL, given / PLAN)  # what is known, beside what is not
    shutil.copy(own / JOURNAL, given / FLEET)
    with pytest.raises(BadInput):
        trust.refuse_strangers(given / JOURNAL, ASKED)


@pytest.mark.parametrize("variables", [{}, {"HOME": "/dev/null"}, {"XDG_DATA_HOME": "relative"}])
def test_without_a_home_nobody_is_known_and_work_goes_on(tmp_path: Path, variables: dict[str, str]) -> None:
    own = begun(tmp_path / "own")
    trust.remember_begun(own / JOURNAL, variables)
    with pytest.raises(BadInput):
        trust.refuse_strangers(own / JOURNAL, ASKED, environment=variables)


HIDDEN = (FleetAuthor("a", (("sandbox", "off"),)), FleetAuthor("b", (("sandbox", "required"),)))


@pytest.mark.parametrize(
    ("plan", "asked"),
    [
        ({}, ""),
        ({"settings": (("sandbox", "required"), ("evals", 3))}, ""),
        ({"settings": (("sandbox", "off"),)}, "sandbox = 'off'"),
        ({"settings": (("cache_dir", "../x"),)}, "cache_dir"),
        ({"authors": HIDDEN}, "sandbox = 'off'"),
        ({"authors": (FleetAuthor("a", (("model", "openai:x"),)),)}, "model = 'openai:x'"),
        ({"devices": (FleetDevice("d", hosts=(("d-1.toml", "0"),)),)}, "workers = 'd-1.toml'"),
        ({"devices": (FleetDevice("d", backend="replay:/etc/passwd"),)}, "backend"),
    ],
)
def test_a_fleet_that_was_begun_elsewhere(tmp_path: Path, plan: dict[str, Any], asked: str) -> None:
    folder = begun(tmp_path / "fleet", FLEET)
    given = FleetPlan(**{"hours": 1.0, "problems": (), "devices": (), "authors": (), **plan})
    if not asked:
        refuse_strangers(folder, given)
        return
    with pytest.raises(BadInput, match=asked):
        refuse_strangers(folder, given)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *((one, []) for one in ("", "expert", "mailbox", "planner=expert,author=mailbox")),
        *((one, [one]) for one in ("openai:x", "mailbox:d", "recorded:d", "anthropic:x@http://a/?b=c")),
        ("planner=recorded:d,author=openai:x", ["recorded:d", "openai:x"]),
    ],
)
def test_models_that_are_more_than_the_runs_own(text: str, found: list[str]) -> None:
    assert external_models(text) == found
