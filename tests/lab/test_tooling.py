"""What models may ask of the lab, on the fake backend: right before fast here too, and nothing is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.labs import Harness, fault_template, lab, scale_problem
from tests.lab.test_lab import DictCache
from tunesmith.backends.fake import FAULTS
from tunesmith.backends.messages import RunCase, TimeRuns
from tunesmith.lab.tooling import HostBench
from tunesmith.run.tools import ToolFound, ToolTask


def ask(harness: Harness, tool: str, kind: int = 0, **more: object) -> ToolFound:
    assert harness.template is not None
    config = harness.template.default.replace("KIND", kind)
    task = ToolTask(tool, harness.template, config, "small")  # type: ignore[arg-type]
    return harness.lab.use(replace(task, **more))  # type: ignore[arg-type]


def test_a_build_is_told_without_running_anything() -> None:
    with lab(scale_problem(), fault_template()) as harness:
        before = len(harness.log.served)
        found = ask(harness, "compile", listing=(1, 3))
        kinds = {type(s.request) for s in harness.log.served[before:]}
        broken = ask(harness, "compile", FAULTS.index("build"))
    assert found.text.startswith("It builds, with KIND=0. At small:\n- scale: 16 blocks of 64;")
    assert "There is no listing" in found.text
    assert (found.seconds, found.evals) == (0.0, 0)
    assert not kinds & {RunCase, TimeRuns}
    assert broken.text.startswith("It does not build:\n")
    assert broken.text.endswith("Mend this, then ask again or send your answer.")


def test_a_time_comes_after_the_smoke_check_and_is_kept_nowhere() -> None:
    cache = DictCache()
    with lab(scale_problem(), fault_template(time="10000 + rows * d"), cache=cache) as harness:
        before = len(harness.log.served)
        found = ask(harness, "time")
        kinds = [type(s.request) for s in harness.log.served[before:]]
        assert not cache.timings
        assert harness.lab._timer._best == {}
        assert harness.lab._timer._timed == {}
    assert kinds.index(RunCase) < kinds.index(TimeRuns)
    assert "× as fast as the original" in found.text
    assert found.evals == 1
    assert found.seconds > 0


@pytest.mark.parametrize("tool", ["time", "profile"])
def test_what_is_wrong_is_never_timed(tool: str) -> None:
    with lab(scale_problem(), fault_template()) as harness:
        harness.lab._bench._onlooker = object()  # type: ignore[assignment]
        before = len(harness.log.of(TimeRuns))
        found = ask(harness, tool, FAULTS.index("wrong"))
        assert len(harness.log.of(TimeRuns)) == before
    assert found.text.startswith("It was not timed: wrong (workload small)")
    assert found.evals == 1


def test_the_original_is_timed_as_it_is() -> None:
    with lab(scale_problem(), fault_template()) as harness:
        found = harness.lab.use(ToolTask("time", workload="small"))
    assert "at small, 1.00× as fast" in found.text


def test_without_a_profiler_the_reason_is_told() -> None:
    with lab(scale_problem(), fault_template()) as harness:
        found = ask(harness, "profile")
    words = "Nothing can be profiled: this lab was given no profiler. Ask for `time` or `compile`."
    assert found == ToolFound(words)


def test_what_the_reference_says_of_a_small_input() -> None:
    with lab(scale_problem()) as harness:
        found = harness.lab.use(
            ToolTask("reference", workload="small", sizes=(("d", 8), ("rows", 2)), values="ones")
        )
        outside = harness.lab.use(ToolTask("reference", workload="small", sizes=(("rows", 2), ("d", 9))))
        strange = harness.lab.use(ToolTask("reference", workload="small", sizes=(("n", 2),)))
    assert found.text.splitlines() == [
        "At rows=2, d=8, values ones:",
        "- x [2, 8]: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1",
        "- out, by the reference [2, 8]: 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2",
    ]
    assert "This is no case of the problem" in outside.text
    assert "it must give every size, rows, d" in strange.text


def test_without_a_reference_the_original_says_what_is_right() -> None:
    task = ToolTask("reference", workload="small", sizes=(("rows", 2), ("d", 8)), values="ones")
    with lab(scale_problem(reference=None)) as harness:
        found = harness.lab.use(task)
        bench = harness.lab._bench
        own = (bench._problem, bench._device, bench._builders, bench._plans, bench._original)
        without = HostBench(*own, bench._references, 0, None, None).use(task)
    assert found.text.splitlines() == [
        "At rows=2, d=8, values ones:",
        "- x [2, 8]: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1",
        "There is no reference: what is right is what the original gives.",
        "- out, by the original [2, 8]: 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2",
    ]
    assert found.seconds > 0
    assert found.evals == 0
    assert without.text.splitlines()[-2:] == [
        "There is no reference: what is right is what the original gives.",
        "What that is cannot be had here, because the device is absent: `compile` can, `time` waits for it.",
    ]


def test_a_failing_function_of_the_user_is_told() -> None:
    bad = "def scale(x):\n    assert x.shape != (3, 8), 'not here'\n    return 2.0 * x\n"
    with lab(scale_problem(reference=bad), baseline=False) as harness:
        found = harness.lab.use(ToolTask("reference", workload="small", sizes=(("rows", 3), ("d", 8))))
    assert found.text.startswith("This was not done: ")
    assert "not here" in found.text
