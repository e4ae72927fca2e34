"""The command line's shell: help, usage errors, exit codes, and output that nobody takes or that acts."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tests.end_to_end import tiny
from tests.running import Ended, environment, expect_success, tunesmith, tunesmith_afresh
from tests.wording import says
from tunesmith import __version__
from tunesmith.base.errors import BadInput, DeviceMissing, Interrupted, KernelWrong, TunesmithError
from tunesmith.base.plugins import our_names
from tunesmith.cli.console import handle_errors

COMMANDS = [name for name in our_names("commands") if name != "worker"]


def shell(folder: Path, line: str, **more: str) -> Ended:
    """A line for the shell in which $T is the program."""
    if shutil.which("bash") is None:
        pytest.skip("only bash tells how the first program of a pipe ended")
    command = f"{sys.executable} -m tunesmith"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line.replace('$T', command)}"],
        cwd=folder,
        env={**environment(folder), **more},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


class TestHelp:
    def test_is_quick(self, tmp_path: Path) -> None:
        took: list[float] = []
        while len(took) < 5 and min(took, default=1.0) >= 0.5:  # the first may have to compile it
            before = os.times()
            assert tunesmith_afresh(tmp_path, "--help").code == 0
            after = os.times()
            took.append(after.children_user + after.children_system - sum(before[2:4]))
        assert min(took) < 0.5

    def test_names_every_command(self, tmp_path: Path) -> None:
        ended = tunesmith(tmp_path, "--help")
        assert ended.err == ""
        groups, _, more = ended.out.partition("\nMore:")
        shown = re.findall(r"(?m)^  (\w+) +[A-Z]", groups)
        assert len(shown) <= 18
        assert sorted([*shown, *re.findall(r"(\w+)[,:] ", more)]) == sorted(COMMANDS)

    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.few(5)
    def test_of_each_command(self, tmp_path: Path, command: str) -> None:
        ended = expect_success(tmp_path, command, "--help")
        assert ended.err == ""
        assert ended.out.startswith(f"Usage: tunesmith {command} [OPTIONS]")
        options = re.findall(r"(?m)^  (?:-\w, )?--\S+.*", ended.out)
        assert any("--json" in option for option in options)
        explained = re.sub(r"\n {10,}", " ", ended.out)
        for option in re.findall(r"(?m)^  (?:-\w, )?--\S+.*", explained):
            assert re.search(r"  \S.*\w", option.strip()), f"{option!r} says nothing"

    def test_short_option(self, tmp_path: Path) -> None:
        for arguments in ((), ("library", "show")):
            assert tunesmith(tmp_path, *arguments, "-h").out == tunesmith(tmp_path, *arguments, "--help").out

    def test_version(self, tmp_path: Path) -> None:
        ended = tunesmith(tmp_path, "--version")
        assert (ended.code, ended.out, ended.err) == (0, f"tunesmith {__version__}\n", "")


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("tunesmith tune --backend op", ["opencl"]),
        ("tunesmith retune x --search ev", ["evolution"]),
        ("tunesmith tune p --strategy re", ["rewrite"]),
        ("tunesmith compare p --strategies expert,sin", ["expert,single"]),
    ],
)
@pytest.mark.few(1)
def test_completion(tmp_path: Path, line: str, known: list[str]) -> None:
    if line.split()[1] not in COMMANDS:
        pytest.skip("it is a plugin's, which is not installed")
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    variables = {**environment(tmp_path), **words, "_TUNESMITH_COMPLETE": "complete_bash"}
    command = [sys.executable, "-m", "tunesmith"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == known, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: tunesmith"),
        (["nonsense"], "No such command 'nonsense'"),
        (["tune"], "Missing argument 'PROBLEM'"),
        (["tune", "p", "--evals", "0"], "--evals"),
        (["tune", "p", "--evals", "many", "--json"], "--evals"),
        (["tune", "p", "--time", "nan"], "--time"),
        (["tune", "p", "--seed", "-1"], "--seed"),
        (["tune", "p", "--device-seconds", "-1"], "got -1.0\nhint: give --device-seconds 0 or more"),
        (["check", "p", "--unknown"], "--unknown"),
        (["report", "a", "b"], "b"),
    ],
)
@pytest.mark.few(4)
def test_usage_errors(tmp_path: Path, arguments: list[str], message: str) -> None:
    ended = tunesmith(tmp_path, *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert message in ended.err


class TestExitCodes:
    @pytest.mark.parametrize(
        ("error", "code", "message"),
        [
            (BadInput("no", where="problem.toml:3", hint="yes"), 2, "error: problem.toml:3: no\nhint: yes\n"),
            (KernelWrong("it is wrong"), 3, "error: it is wrong\n"),
            (DeviceMissing("it is not here"), 5, "error: it is not here\n"),
            (Interrupted("stopped"), 130, "error: stopped\n"),
            (KeyboardInterrupt(), 130, "error: interrupted\n"),
            (TunesmithError("ours"), 1, "error: ours\n"),
            (MemoryError(), 1, "error: this machine ran out of memory\n"),
            (PermissionError(13, "Permission denied", "a file"), 2, "error: a file: Permission denied\n"),
        ],
    )
    def test_of_each_error(
        self, error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(typer.Exit) as ended, handle_errors(as_json=False):
            raise error
        assert ended.value.exit_code == code
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith(message)

    def test_of_a_bug_names_the_place_and_no_traceback(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(typer.Exit) as ended, handle_errors(as_json=True):
            raise ZeroDivisionError("one\ntwo")
        assert ended.value.exit_code == 1
        shown = capsys.readouterr()
        value = json.loads(shown.out)
        assert value["exit"] == 1
        assert re.search(
            r"a bug in Tunesmith: ZeroDivisionError: one two \(.*test_cli\.py:\d+\)", value["error"]
        )
        assert "TUNESMITH_DEBUG=1" in value["hint"]
        assert "Traceback" not in shown.err
        monkeypatch.setenv("TUNESMITH_DEBUG", "1")
        with pytest.raises(ZeroDivisionError), handle_errors(as_json=True):
            raise ZeroDivisionError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    tiny.fake(folder / "problem")
    # Nobody reads its progress, which does not end a run.
    ended = shell(folder, "$T tune problem --template problem/template.fake --evals 1 2> >(true)")
    assert ended.code == 0
    assert "tunesmith-runs/tiny-1/report.md" in ended.out
    return folder


class TestOutput:
    @pytest.mark.long
    def test_quiet_and_verbose(self, run: Path) -> None:
        ended = tunesmith(run, "check", "problem", "-q")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith("tiny is right")
        assert tunesmith(run, "-q", "check", "problem").err == ""
        for line in (("check", "problem", "--verbose"), ("-v", "check", "problem")):
            assert tunesmith(run, *line).err.count("checking the original, case") == 10
        assert tunesmith(run, "check", "gone", "-q").err.startswith("error: ")

    @pytest.mark.parametrize("form", ["text", "md", "json"])
    @pytest.mark.few(1)
    def test_whoever_stops_reading_has_seen_enough(self, run: Path, form: str) -> None:
        ended = shell(run, f"$T report --format {form} | true")
        assert (ended.code, ended.out, ended.err) == (0, "", "")

    @pytest.mark.long
    def test_a_full_disk_behind_stdout(self, run: Path) -> None:
        for flag in ("", "--json"):
            ended = shell(run, f"$T report {flag} > /dev/full")
            assert ended.code == 2
            error, hint = ended.err.splitlines()
            says(error, "error:", "cannot write", "stdout", "No space left on device")
            says(hint, "hint:", "runs are saved", "tunesmith report")

    @pytest.mark.long
    def test_streams_that_are_closed(self, run: Path) -> None:
        assert shell(run, "$T report >&-").code == 0
        assert shell(run, "$T report <&- 2>&-").out.startswith("tiny on")
        ended = shell(run, "$T report nowhere >&- 2>&- <&-")
        assert (ended.code, ended.err) == (2, "")

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
    @pytest.mark.few(1)
    def test_terminals_that_cannot_write_it(self, run: Path, encoding: str) -> None:
        command = [sys.executable, "-m", "tunesmith", "report"]
        variables = {**environment(run), "PYTHONIOENCODING": encoding}
        done = subprocess.run(command, cwd=run, env=variables, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert b"workload" in done.stdout


def on_a_terminal(folder: Path, *arguments: object) -> tuple[int, str]:
    """Run it with a terminal for stdin, stdout and stderr; what it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tunesmith", *map(str, arguments)],
        cwd=folder,
        env={**environment(folder), "TERM": "xterm", "COLUMNS": "200"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # how Linux says that the other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    return process.wait(timeout=60), written.decode(errors="replace").replace("\r\n", "\n")


class TestTerminal:
    @pytest.mark.long
    def test_a_live_line_and_a_table(self, run: Path) -> None:
        arguments = ("--template", "problem/template.fake", "--evals", 1, "--out", "terminal")
        code, written = on_a_terminal(run, "tune", "problem", *arguments)
        assert code == 0, written
        says(written, "search ended", "1 evaluation", "used up")
        assert "┃ workload ┃" in re.sub(r"\x1b\[[0-9;]*m", "", written)
        assert written.endswith("report           terminal/report.md\n") or "\x1b[?25h" in written

    @pytest.mark.long
    def test_what_users_code_says_does_not_act(self, tmp_path: Path) -> None:
        """Text from a reference, a kernel or a driver is shown, never obeyed."""
        problem = tiny.fake(tmp_path / "problem")
        evil = (
            r"\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m [bold]markup[/bold] :boom: \x9b1m \u202e bell\x07 end"
        )
        (problem / "reference.py").write_text(f"def scale(x):\n    raise ValueError('{evil}')\n")
        code, written = on_a_terminal(tmp_path, "check", "problem")
        assert code == 2
        message = written[written.index("error: ") :]
        shown = "reference.py:2: ValueError: red [bold]markup[/bold] :boom: �1m � bell� end"
        assert message.startswith(f"error: {shown}\nhint: ")
        assert "\x1b[31m" not in written
        assert "\x07" not in written
        ended = tunesmith(tmp_path, "check", "problem", "--json")
        assert ended.json["error"] == shown

        text = "import os\ndef scale(x):\n    os.write(2, b'\\x1b[31mlast\\x07 words\\n')\n    os._exit(3)\n"
        (problem / "reference.py").write_text(text)
        code, written = on_a_terminal(tmp_path, "check", "problem")
        assert code == 2
        assert "exit status 3; last� words\n" in written
