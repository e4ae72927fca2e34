"""What users and machines get wrong: a message that helps, the right exit code, and nothing lost."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tests.end_to_end.asking import quickly, refused, tune
from tests.opencl_here import needs_opencl
from tests.running import Ended, expect_success, report_in, tunesmith, wait_until_alone
from tests.wording import says
from tunesmith import search

EVIL = "\x1b[31mred\x1b[0m [bold] <b>tag</b> ![image](http://127.0.0.1/x)"


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    return tiny.fake(tmp_path / "problem")


@pytest.fixture
def opencl(tmp_path: Path) -> Path:
    return tiny.opencl(tmp_path / "problem")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder, to be copied before it is spoilt."""
    folder = tmp_path_factory.mktemp("finished")
    tiny.fake(folder / "problem")
    ended = tune(folder, "--evals", 2, "--out", "run")
    assert ended.code == 0, ended.err
    return folder / "run"


class TestProblemFile:
    def test_every_fault_is_reported_with_its_line(self, tmp_path: Path, fake: Path) -> None:
        faults = [
            ('"kernel.fake"', '"nowhere.fake"', ["[kernel]:", "problem/nowhere.fake:", "no such file"]),
            ('"float32*"', '"floaty*"', ["argument 'out':", "element type 'floaty'", "float16"]),
            ('role = "output"', 'roll = "output"', ["argument 'out':", "unknown key 'roll'", "name, type"]),
            ('name = "x"', 'name = "x y"', ["name", "C identifier", "'x y'"]),
            ('value = "n"', 'value = "2 * m"', ["argument 'n':", "value:", "unknown name 'm'", '"2 * m"']),
            ('["64"]', '["64 +"]', ["[launch]:", "block:"]),
            ("only =", '"[bold]x" =', ["workload's name", "letters, digits and _ . -"]),
            ("n = 64", f"n = {'9' * 40}", ["n must be", "0 to 2**62", "133 bits"]),
            ("reference.py:scale", "reference.py:shrink", ["reference.py", "no function 'shrink'"]),
        ]
        places = [f":{tiny.spoil(fake / 'problem.toml', old, new)}: " for old, new, _ in faults]
        ended = tunesmith(tmp_path, "check", "problem", "--json")
        assert ended.code == ended.json["exit"] == 2
        head, *lines = ended.json["error"].splitlines()
        assert head == f"problem/problem.toml: {len(faults)} faults"
        for (_, _, parts), where in zip(faults, places, strict=True):
            says(lines, f"problem/problem.toml{where}", *parts)
        says(ended.json["hint"], "mend these lines", "same command")

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("[kernel]", "[kernel", "not readable as TOML: Expected ']'"),
            ('["n"]', '["2 * m"]', "argument 'out': shape: unknown name 'm' in \"2 * m\": known names are n"),
            (
                '"tiny"',
                '"../../Кernel"',
                "name has letters, digits and _ . -, for it names folders too, got '../",
            ),
        ],
    )
    def test_a_single_fault(self, tmp_path: Path, fake: Path, old: str, new: str, message: str) -> None:
        line = tiny.spoil(fake / "problem.toml", old, new)
        refused(quickly(tmp_path, "check", "problem"), 2, f"problem/problem.toml:{line}: ", message)

    def test_files_that_are_none(self, tmp_path: Path, fake: Path) -> None:
        refused(quickly(tmp_path, "check", "nowhere"), 2, "nowhere: there is no such file", "tunesmith init")
        (fake / "kernel.fake").unlink()
        (fake / "kernel.fake").symlink_to("kernel.fake")
        at = "problem/problem.toml:4: "
        refused(quickly(tmp_path, "check", "problem"), 2, at, "Too many levels of symbolic links")
        (fake / "kernel.fake").unlink()
        (fake / "kernel.fake").mkdir()
        refused(quickly(tmp_path, "check", "problem"), 2, at, "cannot be read: Is a directory")
        (fake / "kernel.fake").rmdir()
        (fake / "kernel.fake").write_bytes(b"// caf\xe9")
        refused(quickly(tmp_path, "check", "problem"), 2, at, "not UTF-8 text: byte 6 is 0xe9")
        (fake / "kernel.fake").write_text(" \n")
        refused(quickly(tmp_path, "check", "problem"), 2, at, "source 'kernel.fake' is empty")
        (fake / "problem.toml").write_bytes(b"\xff\xfe")
        refused(quickly(tmp_path, "check", "problem"), 2, "problem.toml: not UTF-8 text: byte 0 is 0xff")
        (fake / "problem.toml").unlink()
        refused(quickly(tmp_path, "check", "problem"), 2, "problem/problem.toml: there is no such file")

    def test_arguments_in_another_order(self, tmp_path: Path, opencl: Path) -> None:
        text = (opencl / "problem.toml").read_text()
        swapped = text.replace('"out"', '"?"').replace('"x"', '"out"').replace('"?"', '"x"')
        (opencl / "problem.toml").write_text(swapped)
        order = "the kernel takes (out, x, n), the problem gives (x, out, n) (kernel.cl:1)"
        refused(quickly(tmp_path, "check", "problem"), 2, order, "as the kernel takes them")

    def test_an_entry_that_is_not_there(self, tmp_path: Path, opencl: Path) -> None:
        tiny.spoil(opencl / "problem.toml", 'entry = "scale"', 'entry = "shrink"')
        message = "problem/problem.toml: entry 'shrink' is nowhere in kernel.cl, which defines scale"
        refused(quickly(tmp_path, "check", "problem"), 2, message, "name one of them as entry")

    @needs_opencl
    @pytest.mark.long
    def test_an_entry_that_only_the_compiler_can_miss(self, tmp_path: Path, opencl: Path) -> None:
        tiny.spoil(opencl / "problem.toml", 'entry = "scale"', 'entry = "shrink"')
        tiny.spoil(opencl / "kernel.cl", "__kernel", "// shrink is another one\n__kernel")
        message = "kernel.cl has no kernel called 'shrink'; it defines scale"
        refused(tunesmith(tmp_path, "check", "problem"), 2, message, "problem.toml")


@needs_opencl
class TestKernel:
    def check(self, folder: Path, problem: Path, old: str, new: str) -> Ended:
        tiny.spoil(problem / "kernel.cl", old, new)
        ended = tunesmith(folder, "check", "problem")
        assert wait_until_alone(folder) == []
        assert list((folder / "tmp").iterdir()) == []
        return ended

    def test_does_not_compile(self, tmp_path: Path, opencl: Path) -> None:
        ended = self.check(tmp_path, opencl, "2.0f * x[i]", "2.0f * y[i]")
        refused(ended, 2, "does not compile", "kernel.cl:4:25: use of undeclared identifier 'y'")
        says(ended.err, "hint:", "source", "entry, flags and defines", "problem.toml")

    @pytest.mark.long
    def test_is_wrong_already(self, tmp_path: Path, opencl: Path) -> None:
        tiny.spoil(opencl / "kernel.cl", "2.0f * x[i]", "3.0f * x[i]")
        (tmp_path / "run").mkdir()
        ended = tune(tmp_path, "--out", "run")
        refused(ended, 3, "kernel.cl: the kernel is wrong already at n=8", "out[0] is ", "mend the kernel")
        assert quickly(tmp_path, "report", "run").code == 0

    def test_crashes(self, tmp_path: Path, opencl: Path) -> None:
        ended = self.check(tmp_path, opencl, "out[i] =", "*(volatile __global int*)(size_t)8 = 1; out[i] =")
        refused(ended, 3, "kernel.cl: the kernel crashes at n=8", "killed by SIG")

    @pytest.mark.slow
    @pytest.mark.long
    def test_hangs(self, tmp_path: Path, opencl: Path) -> None:
        ended = self.check(tmp_path, opencl, "out[i] =", "volatile int go = 1; while (go) {} out[i] =")
        refused(ended, 3, "kernel.cl: the kernel does not finish at n=8", "no answer within 20.0 s")

    @pytest.mark.long
    def test_writes_out_of_bounds(self, tmp_path: Path, opencl: Path) -> None:
        ended = self.check(tmp_path, opencl, "out[i] =", "if (i == 0) out[n] = 1.0f; out[i] =")
        refused(ended, 3, "is wrong already at n=8", "it writes outside out: 4 bytes past its end")

    @pytest.mark.long
    def test_is_not_deterministic(self, tmp_path: Path, opencl: Path) -> None:
        """It depends on what its output held before, by less than the tolerance."""
        leak = "out[i] = (as_uint(out[i]) % 97) * 1e-7f +"
        ended = self.check(tmp_path, opencl, "out[i] =", leak)
        refused(
            ended,
            3,
            "the kernel is not deterministic at n=8",
            "two runs on the same inputs give different out",
        )
        assert "hint: find the race; " in ended.err


class TestReference:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "def scale(x):\n    return nothing * x",
                "reference.py:2: NameError: name 'nothing' is not defined",
            ),
            ("import os\ndef scale(x):\n    os._exit(3)", "exit status 3"),
            ("def scale(x:", "reference.py:1: not readable as Python: '(' was never closed"),
        ],
    )
    def test_that_fails(self, tmp_path: Path, fake: Path, text: str, message: str) -> None:
        (fake / "reference.py").write_text(text)
        refused(tunesmith(tmp_path, "check", "problem"), 2, message)


class TestTemplate:
    def test_every_fault_is_reported_with_its_line(self, tmp_path: Path, fake: Path) -> None:
        template = fake / "template.fake"
        tiny.spoil(template, "// [default]\n", "// VEC = [1]\n// [default]\n// VEC = 1\n")
        tiny.spoil(template, "// [launch]", '// [require]\n// few = "BLOK > 9"\n// [launch]')
        tiny.spoil(template, "BLOCK = 64\n", "BLOCK = 65\n")
        tiny.spoil(template, "#ifndef BLOCK", "#ifndef TILE\n#define TILE 4\n#endif\n#ifndef BLOCK")
        ended = tune(tmp_path, run=quickly)
        refused(ended, 2, "template.fake: 4 faults", "mend these lines and run the same command again")
        for message in (
            "template.fake:4: 'VEC' is unused in the code and the launch (use it, or remove it",
            "template.fake:7: [default]: BLOCK must be one of 32, 64, 128, 256, got 65 (choose one)",
            "template.fake:9: [require]: few: unknown name 'BLOK' in \"BLOK > 9\": known names are BLOCK",
            "template.fake:15: TILE looks like a parameter and is undeclared in [params] and [defines]",
        ):
            assert message in ended.err
        assert not (tmp_path / "tunesmith-runs").exists()

    def test_without_a_declaration(self, tmp_path: Path, fake: Path) -> None:
        tiny.spoil(fake / "template.fake", "// /// tunesmith", "//")
        message = "template.fake: a template declares its parameters in a comment, there is none"
        refused(tune(tmp_path, run=quickly), 2, message, 'open the file with "// /// tunesmith"')

    def test_constraints_that_leave_nothing(self, tmp_path: Path, fake: Path) -> None:
        tiny.spoil(fake / "template.fake", "// [launch]", '// [require]\n// no = "BLOCK > 999"\n// [launch]')
        refused(
            tune(tmp_path, run=quickly),
            2,
            "template.fake:7: require 'no', 'BLOCK > 999', leaves no configuration",
        )

    def test_constraints_that_leave_nothing_on_this_device(self, tmp_path: Path, fake: Path) -> None:
        tiny.spoil(
            fake / "template.fake", "// [launch]", '// [require]\n// sms = "device.sms > 99"\n// [launch]'
        )
        message = "template.fake: the template's constraints leave no configuration on simulated device"
        refused(tune(tmp_path), 2, message, "loosen a constraint")
        assert not (tmp_path / "tunesmith-runs").exists()

    def test_there_is_no_such_file(self, tmp_path: Path, fake: Path) -> None:
        arguments = ("tune", "problem", "--template")
        refused(quickly(tmp_path, *arguments, "nowhere.fake"), 2, "nowhere.fake: there is no such file")
        refused(quickly(tmp_path, *arguments, "problem"), 2, "problem: cannot be read: Is a directory")


class TestNames:
    @needs_opencl
    @pytest.mark.long
    def test_spaces_quotes_and_markup_in_file_names(self, tmp_path: Path, opencl: Path) -> None:
        template = (opencl / "template.cl").rename(opencl / 'my "template" [bold].cl')
        (opencl / "kernel.cl").rename(opencl / 'the "kernel".cl')
        tiny.spoil(opencl / "problem.toml", '"kernel.cl"', r'"the \"kernel\".cl"')
        tiny.spoil(template, "[32, 64, 128, 256]", "[64, 257]")
        text = template.read_text().replace(
            "    int i", f"#if BLOCK == 257\n#error {EVIL}\n#endif\n    int i"
        )
        template.write_text(text)
        arguments = ("--template", template, "--search", "exhaustive", "--out", 'my "run"')
        ended = expect_success(tmp_path, "tune", "problem", *arguments)
        assert "report           'my \"run\"/report.md'" in ended.out
        run = tmp_path / 'my "run"'
        failures = report_in(run)["failures"]
        assert [failure["config"] for failure in failures] == [{"BLOCK": 257}]
        assert "template___bold_.cl:15:2: " in failures[0]["detail"]
        assert "[bold] <b>tag</b> ![image](" in failures[0]["detail"]
        markdown = (run / "report.md").read_text()
        assert "\\[bold] \\<b>tag\\</b> !\\[image](" in markdown
        assert "\x1b" not in markdown
        assert not re.search(r"(?<!\\)(\[bold|</?b>|\[image)", markdown)
        assert tunesmith(tmp_path, "resume", 'my "run"', "--json").json["finished"] is True

    def test_any_letters_in_folders(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "ядро 你好 [red]")
        expect_success(tmp_path, "check", problem)

    @pytest.mark.long
    def test_bytes_that_are_no_letters(self, tmp_path: Path, fake: Path) -> None:
        name = os.fsdecode(b"bad\xff.fake")
        try:
            (fake / "template.fake").rename(fake / name)
        except OSError:
            pytest.skip("this file system has no such names")
        ended = tunesmith(tmp_path, "tune", "problem", "--template", fake / name)
        refused(ended, 2, "bad\N{REPLACEMENT CHARACTER}.fake: the file's name is not UTF-8 text", "rename it")
        ended = tunesmith(tmp_path, "report", name, "--json")
        assert ended.code == ended.json["exit"] == 2


class TestFlags:
    @pytest.mark.parametrize(
        ("flag", "value", "code", "message"),
        [
            ("--backend", "metal", 2, "unknown backend 'metal'; known are cuda, hip, opencl, cpu, fake"),
            ("--backend", "opencl", 2, "backend opencl runs opencl kernels, this one is fake"),
            ("--backend", "fake:x", 2, "only the replay backend takes a file, got 'fake:x'"),
            ("--backend", "replay", 2, "the replay backend needs a recording"),
            ("--backend", "replay:nowhere.json", 2, "nowhere.json: cannot read the recording: No such file"),
            (
                "--backend",
                "replay:problem/problem.toml",
                2,
                "problem.toml: not a recording: JSON is malformed",
            ),
            ("--search", "luck", 2, f"unknown search 'luck'; known are {', '.join(search.SEARCHERS)}"),
            ("--device", "H999", 5, "device 'H999' matches no device; there are: 0 = simulated device"),
        ],
    )
    def test_unknown_words(
        self, tmp_path: Path, fake: Path, flag: str, value: str, code: int, message: str
    ) -> None:
        refused(tune(tmp_path, flag, value, run=quickly), code, message)
        assert not (tmp_path / "tunesmith-runs").exists()

    @pytest.mark.parametrize("time", [0, -1.5, 1e300])
    def test_a_recording_with_impossible_times(self, tmp_path: Path, fake: Path, time: float) -> None:
        data = {"params": {"BLOCK": [32, 64]}, "configs": [[32], [64]], "time_ms": [1.0, time]}
        (tmp_path / "r.json").write_text(json.dumps(data))
        ended = tune(tmp_path, "--backend", "replay:r.json", run=quickly)
        refused(ended, 2, f"r.json: not a recording: [64] takes {time:g} ms: times are above 0")

    def test_earlier_runs_named_and_ignored(self, tmp_path: Path, fake: Path) -> None:
        ended = tune(tmp_path, "--prior-run", "run", "--no-prior", run=quickly)
        refused(ended, 2, "(--no-prior) ignores earlier runs, and --prior-run run names one")

    def test_unknown_format(self, tmp_path: Path) -> None:
        ended = quickly(tmp_path, "report", "--format", "pdf")
        refused(ended, 2, "unknown format 'pdf'; known are text, md, html, json", "--format text")

    def test_no_run_yet(self, tmp_path: Path) -> None:
        for command in ("report", "resume"):
            ended = quickly(tmp_path, command)
            refused(ended, 2, "there is no run in tunesmith-runs yet", "tunesmith tune PROBLEM")
        refused(quickly(tmp_path, "report", "nowhere"), 2, "nowhere: there is no such run folder")
        (tmp_path / "empty").mkdir()
        refused(quickly(tmp_path, "resume", "empty"), 2, "empty: this is not a run folder: it has no journal")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("evals = 0", "evals must be at least 1, got 0"),
            ("speed = 9", "unknown key 'speed'; known are backend, device, search"),
            ("seed = x", "cannot be read: Invalid value (at line 1, column 8)"),
        ],
    )
    def test_settings_in_a_file(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "tunesmith.toml").write_text(text)
        refused(quickly(tmp_path, "report"), 2, message, "tunesmith.toml")


class TestDevice:
    @pytest.mark.long
    def test_another_one_than_the_run_began_on(self, finished: Path, tmp_path: Path) -> None:
        run = shutil.copytree(finished, tmp_path / "run")
        first = json.loads((run / "journal.jsonl").read_text().splitlines()[0])
        first["event"]["device"] |= {"name": "another device", "driver": "535.0"}
        (run / "journal.jsonl").write_text(json.dumps(first) + "\n")
        ended = tunesmith(tmp_path, "resume", "run")
        message = "this run belongs to another device with 16 units (535.0); here there is: simulated device"
        refused(ended, 5, message, "resume it where that device is, or start a new run here")
        assert tunesmith(tmp_path, "report", "run").code == 0
        assert not (run / "scratch").exists()

    @pytest.mark.long
    def test_one_array_is_too_large(self, tmp_path: Path, fake: Path) -> None:
        for old, new in (("8, 64]", "8, 60000000]"), ("n = 64", "n = 60000000")):
            tiny.spoil(fake / "problem.toml", old, new)
        message = "array out needs 240000000 bytes, the device allows 134217728"
        refused(tunesmith(tmp_path, "check", "problem"), 2, message, "60000000")

    @pytest.mark.long
    def test_out_of_memory(self, tmp_path: Path, fake: Path) -> None:
        """Each array fits, all of them together do not."""
        more = [
            f'[[argument]]\nname = "{name}"\ntype = "float32*"\nshape = ["33000000"]\nrole = "workspace"\n'
            for name in "abc"
        ]
        scalar = '[[argument]]\nname = "n"'
        tiny.spoil(fake / "problem.toml", scalar, "".join(more) + scalar)
        tiny.spoil(fake / "kernel.fake", '"x", ', '"x", "a", "b", "c", ')
        ended = tunesmith(tmp_path, "check", "problem")
        refused(ended, 2, "the kernel cannot run here at n=8", " bytes wanted, ", "choose smaller sizes")
