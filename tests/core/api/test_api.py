"""The Python interface: runs on the simulated device, what they give back, and how they are interrupted."""

from __future__ import annotations

import json
import subprocess
import sys
import typing
from dataclasses import fields, replace
from pathlib import Path

import msgspec
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import tunesmith
from tests.core.api.problems import built, template
from tests.end_to_end import tiny
from tests.running import environment, wait_until_alone
from tunesmith.api import OtherSettings
from tunesmith.base.codec import decode_json
from tunesmith.deliver.certificate import Certificate
from tunesmith.deliver.pages.page import report_html
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Baseline, Measured
from tunesmith.run.report import RESULT_VERSION, Report
from tunesmith.session import problems

SCHEMAS = Path(__file__).parents[3] / "docs" / "schema"
DESCRIBED: dict[str, type] = {"result": Report, "certificate": Certificate}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[tunesmith.Run, list[tunesmith.ProgressUpdate]]:
    """One run for all tests that only look. What it begins with is not read a second time."""
    folder, heard = tmp_path_factory.mktemp("api"), list[tunesmith.ProgressUpdate]()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # where no earlier run lies
        patch.setattr(problems, "reload_problem", lambda *_: pytest.fail("the problem is read twice"))
        done = tunesmith.tune(
            built(),
            template=template(folder),
            budget=3,
            listener=heard.append,
            out=folder / "run",
            cache_dir=str(folder / "cache"),
            library=False,
            builders=1,
        )
    return done, heard


Ran = tuple[tunesmith.Run, list[tunesmith.ProgressUpdate]]


class TestImport:
    def test_is_cheap_and_has_all_names(self, tmp_path: Path) -> None:
        code = (
            "import sys, tunesmith; loaded = [m for m in sys.modules if m.startswith('tunesmith.')]\n"
            "assert not loaded and 'numpy' not in sys.modules, loaded\n"
            "from tunesmith import Problem, tune\n"
            "assert all(getattr(tunesmith, name) is not None for name in tunesmith.__all__)\n"
            "assert callable(tunesmith.profile) and not hasattr(tunesmith, 'nonsense')\n"
        )
        subprocess.run([sys.executable, "-c", code], env=environment(tmp_path), check=True, timeout=60)

    def test_settings_are_those_there_are(self) -> None:
        named = set(typing.get_type_hints(OtherSettings))
        given = {"device", "model", "evals", "time", "rounds", "tokens", "money", "device_seconds"}
        assert named | given | {"notes"} == {f.name for f in fields(RunConfig)}


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


class TestRun:
    def test_while_it_searches_linear_algebra_has_one_thread(self, tmp_path: Path) -> None:
        seen: list[set[int]] = []
        with threadpool_limits(2):
            before = blas_threads()
            tunesmith.tune(
                built(),
                template=template(tmp_path),
                budget=3,
                listener=lambda _: seen.append(blas_threads()),
                out=tmp_path / "run",
                cache_dir=str(tmp_path / "cache"),
                library=False,
                builders=1,
            )
            assert blas_threads() == before != {1}
        assert {1} in seen

    def test_result_is_what_json_says(self, run: Ran) -> None:
        done, _ = run
        assert done.result.version == RESULT_VERSION
        assert decode_json(done.report("json").encode(), Report) == done.result
        assert (done.folder / "report.json").read_text() == done.report("json")
        assert tunesmith.load_run(done.folder).result == done.result

    @pytest.mark.parametrize("name", DESCRIBED)
    def test_schema_is_current(self, name: str) -> None:
        """Write them anew with: python -m tests.core.api.test_api"""
        assert json.loads((SCHEMAS / f"{name}.json").read_text()) == schema(DESCRIBED[name])

    def test_best(self, run: Ran) -> None:
        done, _ = run
        assert done.best is not None
        assert done.best.speedup == done.result.geometric_mean
        assert done.best.config is not None
        assert (done.best.folder / "dispatch.json").is_file()
        assert all((done.folder / name).is_file() for name in done.best.files)
        ready = done.best.kernel_for({"n": 64})
        (launch,) = ready.launches
        assert ready.config == done.best.config
        assert launch.block == (done.best.config["BLOCK"],)
        assert launch.grid == (-(-64 // launch.block[0]),)
        assert done.best.kernel_for({"n": 9}).config is None  # outside the contract the original serves
        with pytest.raises(tunesmith.BadInput, match="needs n"):
            done.best.kernel_for({})
        assert tunesmith.Run(replace(done.result, finished=False), done.folder, "").best is None

    def test_report(self, run: Ran) -> None:
        done, _ = run
        assert "BLOCK=" not in done.report()
        assert "BLOCK=" in done.report(full=True)
        assert done.report("md").startswith("# tiny")
        with pytest.raises(tunesmith.BadInput, match="xml"):
            done.report("xml")  # type: ignore[arg-type]

    def test_repr_is_one_short_line(self, run: Ran) -> None:
        done, _ = run
        assert done.best is not None
        for shown in (repr(done), repr(done.best)):
            assert f"{done.best.speedup:.2f}×" in shown
            assert str(done.folder) in shown
            assert "\n" not in shown
            assert len(shown) < 100 + len(str(done.folder))
        unfinished = tunesmith.Run(replace(done.result, finished=False), done.folder, "")
        assert "not finished" in repr(unfinished)
        live = replace(done.result, finished=False, live=True)
        assert "running" in repr(tunesmith.Run(live, done.folder, ""))

    def test_listener_hears_typed_events(self, run: Ran) -> None:
        _, heard = run
        assert sum(isinstance(update.event, Measured) for update in heard) >= 3
        (first,) = [update for update in heard if isinstance(update.event, Baseline)]
        assert first.text
        assert max(update.evaluations for update in heard) == 3
        assert [update.best for update in heard if update.best is not None][-1] > 1
        assert any(update.passing and update.event is None for update in heard)

    def test_in_a_notebook_everything_is_escaped(self, run: Ran) -> None:
        done, _ = run
        evil = "<script>alert(1)</script>\x1b[31m\"'"
        workload = replace(done.result.workloads[0], name=evil, config=None)
        report = replace(
            done.result, problem=evil, device=evil, notes=(evil,), judged_by=evil, workloads=(workload,)
        )
        shown = report_html(report, evil, evil)
        assert "<script" not in shown
        assert "\x1b" not in shown
        assert "&lt;script&gt;" in shown
        assert shown.count("<img ") == shown.count('src="data:image/svg+xml;base64,') >= 1
        assert "<table>" in done._repr_html_()


class TestWithoutARun:
    def test_check_explain_template_profile(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        checked = tunesmith.check(problem, template=problem / "template.fake")
        assert (checked.problem, checked.feasible, checked.missing) == ("tiny", 4, None)
        assert checked.cases > 0
        assert tunesmith.explain(problem).problem == "tiny"
        assert tunesmith.write_template(problem).problem == "tiny"
        assert {d.backend for d in tunesmith.devices("fake").devices} == {"fake"}

    def test_bad_calls_are_refused(self, tmp_path: Path) -> None:
        problem = tiny.fake(tmp_path / "problem")
        for call, why in (
            (lambda: tunesmith.tune(3), "a problem is"),  # type: ignore[arg-type]
            (lambda: tunesmith.tune(problem, seed="x"), "seed"),  # type: ignore[arg-type]
            (lambda: tunesmith.tune(problem, budget=0), "evals"),
            (lambda: tunesmith.tune(problem, budget="x"), "budget.*'x'"),  # type: ignore[arg-type]
            (lambda: tunesmith.tune(problem, budget=2.5), "budget.*2.5"),  # type: ignore[arg-type]
            (lambda: tunesmith.tune(problem, budget=True), "budget.*True"),
            (lambda: tunesmith.tune(problem, device=5), "device.*5"),  # type: ignore[arg-type]
            (lambda: tunesmith.tune(problem, nonsense=1), "nonsense"),  # type: ignore[call-arg]
            (lambda: tunesmith.tune(problem, listener=3), "listener"),  # type: ignore[arg-type]
            (lambda: tunesmith.tune(problem, prior=False, prior_runs=["r"]), "prior"),
            (lambda: tunesmith.tune(tmp_path / "gone"), "no such file"),
            (lambda: tunesmith.resume(tmp_path), "journal"),
        ):
            with pytest.raises(tunesmith.BadInput, match=why) as refused:
                call()
            assert "tunesmith.toml" not in (refused.value.hint or "")
        assert not (tmp_path / "tunesmith-runs").exists()


class TestInterrupting:
    @pytest.mark.long
    def test_inside_a_listener_leaves_a_run_that_goes_on_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Elsewhere: another process, without the module that the reference was written in."""
        monkeypatch.setenv("TMPDIR", str(tmp_path))

        def stop(update: tunesmith.ProgressUpdate) -> None:
            if isinstance(update.event, Measured):
                raise KeyboardInterrupt

        with pytest.raises(tunesmith.Interrupted) as stopped:
            tunesmith.tune(
                built(),
                template=template(tmp_path),
                budget=3,
                listener=stop,
                out=tmp_path / "run",
                builders=1,
            )
        assert isinstance(stopped.value, KeyboardInterrupt)
        assert stopped.value.where == str(tmp_path / "run")
        assert "tunesmith resume" in (stopped.value.hint or "")
        assert wait_until_alone(tmp_path) == []
        assert not tunesmith.load_run(tmp_path / "run").result.finished
        command = [sys.executable, "-m", "tunesmith", "resume", "run", "--json"]
        place = environment(tmp_path)
        ended = subprocess.run(command, cwd=tmp_path, env=place, capture_output=True, timeout=100)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["finished"]
        again = tunesmith.retune(tmp_path / "run", budget=1, out=tmp_path / "again", library=False)
        assert again.result.finished
        assert again.result.origin

    def test_ctrl_c_counts_once(self) -> None:
        code = (
            "import os, signal, time\n"
            "from tunesmith.base.interrupts import interrupted_once\n"
            "try:\n"
            "    with interrupted_once():\n"
            "        try:\n"
            "            os.kill(os.getpid(), signal.SIGINT); time.sleep(5)\n"
            "        finally:\n"
            "            os.kill(os.getpid(), signal.SIGINT); time.sleep(0.05); print('clean')\n"
            "except KeyboardInterrupt:\n"
            "    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
        assert done.stdout.split() == ["clean", "True"], done.stderr


def schema(kind: type) -> object:
    return json.loads(json.dumps(msgspec.json.schema(kind)))


if __name__ == "__main__":
    SCHEMAS.mkdir(exist_ok=True)
    for name, kind in DESCRIBED.items():
        text = json.dumps(schema(kind), indent=1, ensure_ascii=False) + "\n"
        (SCHEMAS / f"{name}.json").write_text(text)
