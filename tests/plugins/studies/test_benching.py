"""`bench`: what is timed where something is missing, fails or takes too long, and how it is told."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tunesmith
from tests.opencl_here import needs_opencl
from tests.plugins.exports.silu import result
from tests.plugins.studies.test_calling import folder_with, opencl_folder, way  # noqa: F401 (a fixture)
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.deliver.runtime.operator import Delivered, Operator, read_dispatch
from tunesmith.plugins.studies import bench_calls
from tunesmith.plugins.studies import commands as command
from tunesmith.plugins.studies.bench_calls import BenchedWorkload, BenchMessage, BenchResult, FailedWay
from tunesmith.session.progress import listener_of

DISPATCH = result(90, binaries=False, device="NVIDIA H200").dispatch
WORKLOAD = DISPATCH.workloads[0]
H200, H100, A100 = ("sm_90", "NVIDIA H200"), ("sm_90", "NVIDIA H100"), ("sm_80", "NVIDIA A100")


# -- the device ---------------------------------------------------------------------------------------------


def test_the_runs_own_device_is_taken_or_one_like_it() -> None:
    assert bench_calls.chosen_device(DISPATCH, [A100, H100, H200]) == 2
    assert bench_calls.chosen_device(DISPATCH, [A100, H100]) == 1
    assert bench_calls.device_notes(DISPATCH, "NVIDIA H200") == ()
    (note,) = bench_calls.device_notes(DISPATCH, "NVIDIA H100")
    assert note == (
        "these are times of NVIDIA H100; what was verified is of NVIDIA H200, of the same architecture"
    )


def test_a_run_of_another_device_is_not_timed_and_both_are_named() -> None:
    with pytest.raises(bench_calls.Missing) as caught:
        bench_calls.chosen_device(DISPATCH, [A100])
    assert str(caught.value) == (
        "the run was made on NVIDIA H200 (sm_90), here is NVIDIA A100 (sm_80): the original would serve "
        "every call, and there is nothing to compare"
    )
    with pytest.raises(DeviceMissing) as told:
        bench_calls._bench_result([BenchMessage(missing=str(caught.value))], "", "")
    assert (told.value.exit_code, told.value.message) == (5, str(caught.value))
    assert "tunesmith retune RUN" in (told.value.hint or "")


@needs_opencl
@pytest.mark.long
def test_an_opencl_run_of_another_device_ends_with_exit_code_5(tmp_path: Path) -> None:
    own = result(90, binaries=False)
    opencl = replace(own.dispatch, language="opencl", device="no such device", architecture="")
    folder = folder_with({**own.files, "dispatch.json": encode_json(opencl)}, tmp_path / "run")
    with pytest.raises(DeviceMissing, match="the run was made on no such device, here is "):
        bench_calls.bench_run(folder, listener_of(None), 60)


@needs_opencl
def test_what_fails_in_the_worker_is_a_sentence(opencl_folder: Path) -> None:  # noqa: F811
    with pytest.raises(TunesmithError, match=r"^timing failed: BadInput: .*journal") as caught:
        bench_calls.bench_run(opencl_folder, listener_of(None), 60)
    assert "Traceback" not in str(caught.value)


# -- ways that fail -----------------------------------------------------------------------------------------


class FakePlace:
    """`broken`: the ways that fail, and with what."""

    name = "NVIDIA H200"

    def __init__(self, broken: Mapping[str, str], refused: Mapping[str, str] | None = None) -> None:
        self.broken, self.refused = broken, refused or {}

    def finish(self) -> None:
        pass

    def ways(self, sizes: Mapping[str, int], drawn: Any) -> bench_calls.Ways:
        def making(name: str) -> Callable[[], bench_calls.Pair]:
            def make() -> bench_calls.Pair:
                if name in self.broken:
                    raise RuntimeError(self.broken[name])
                return lambda: sum(range(3000)), lambda: sum(range(30))

            return make

        return [(name, making(name)) for name in ("eager PyTorch", "torch.compile")]


def drawn() -> Any:
    return None


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_calls, "SECONDS", 0.0005)
    monkeypatch.setattr(bench_calls, "ROUNDS", 6)
    monkeypatch.setattr(bench_calls, "_write_message", lambda message: None)


def test_a_way_that_fails_leaves_the_others_and_has_its_reason() -> None:
    broken = FakePlace({"torch.compile": "\n  no Triton here\nand a long story"})
    found = bench_calls.bench_workload(broken, DISPATCH, WORKLOAD, drawn)
    assert [each.way for each in found.ways] == ["eager PyTorch"]
    assert found.ways[0].ratio > 1.5
    assert found.failed == (FailedWay("torch.compile", "RuntimeError: no Triton here"),)
    assert (found.verified, found.notes) == (1.5, ())


def test_a_workload_whose_arrays_cannot_be_made_fails_alone() -> None:
    def too_large() -> Any:
        raise MemoryError("no room for 3 GB")

    found = bench_calls.bench_workload(FakePlace({}), DISPATCH, WORKLOAD, too_large)
    assert (found.ways, found.failed) == ((), (FailedWay("", "MemoryError: no room for 3 GB"),))


def test_a_tuned_kernel_that_the_machine_refuses_is_not_called_verified() -> None:
    refusing = FakePlace({}, {"silu-200.cu": "the driver is too old"})
    found = bench_calls.bench_workload(refusing, DISPATCH, WORKLOAD, drawn)
    assert found.verified is None
    assert found.notes == (
        "small: silu-200.cu cannot be used here: the driver is too old",
        "small: the original serves, there is no win to reach anybody",
    )


def test_an_operator_remembers_what_it_refused() -> None:
    own = result(90, binaries=False)
    manifest = read_dispatch(own.files["dispatch.json"])
    operator = Operator([Delivered(manifest, own.files.__getitem__)])
    with pytest.warns(RuntimeWarning, match="silu-200.cu cannot be used here"):
        operator.warn_refused(manifest.entries[0], "too\n old")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operator.warn_refused(manifest.entries[0], "again")
    assert operator.refused == {"silu-200.cu": "too old"}


# -- what a worker has said ---------------------------------------------------------------------------------

START = BenchMessage(start=BenchResult("silu_and_mul", "NVIDIA H200", (), ("a note",)))
GOOD = BenchedWorkload("small", {"d": 64}, 1.5, (way("eager PyTorch", 6, 4, 3, 1.4),))
BAD = BenchedWorkload("large", {"d": 99}, None, (), failed=(FailedWay("CUDA graph", "not captured"),))


def test_what_was_timed_before_the_end_is_the_result() -> None:
    done = BenchMessage(done=True)
    timed, failed = BenchMessage(workload=GOOD), BenchMessage(workload=BAD)
    assert bench_calls._bench_result([START, timed, failed, done], "", "").workloads == (GOOD, BAD)
    for told, late, why in (
        ([START, timed], "took longer than 9 s and was ended", "took longer than 9 s and was ended"),
        ([START, timed, BenchMessage(failed="CudaError: gone")], "", "failed: CudaError: gone"),
        ([START, timed], "", "failed: Segmentation fault"),
    ):
        part = bench_calls._bench_result(told, late, "Segmentation fault")
        assert part.workloads == (GOOD,)
        assert part.notes == ("a note", f"this is not all: timing {why}")
    with pytest.raises(TunesmithError, match="timing failed: CUDA graph: not captured"):
        bench_calls._bench_result([START, failed, done], "", "")
    with pytest.raises(BadInput, match="timing took longer than 9 s and was ended"):
        bench_calls._bench_result([START], "took longer than 9 s and was ended", "")


def test_lines_that_are_no_messages_are_passed_over() -> None:
    lines = [
        b"a library prints\n",
        *(encode_json(m) + b"\n" for m in (START, BenchMessage(done=True), START)),
    ]
    assert bench_calls._follow_messages(lines, listener_of(None)) == [START, BenchMessage(done=True)]


def test_the_table_says_what_is_verified_and_what_is_measured(monkeypatch, capsys):
    both = replace(GOOD, failed=(FailedWay("torch.compile", "no Triton here"),))
    found = BenchResult(
        "silu_and_mul", "NVIDIA H200", (both, replace(BAD, failed=(FailedWay("", "no room"),)))
    )
    monkeypatch.setattr(tunesmith, "bench", lambda *args, **named: found, raising=False)
    command.bench(None, 600.0, False)
    shown = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in shown.splitlines()]
    head = next(line for line in shown.splitlines() if "workload" in line)
    names = [cell.strip() for cell in head.strip("┃").split("┃")]
    assert names[:7] == ["workload", "verified", "called by", "original", "tuned", "measured", "interval"]
    assert ["small", "1.50×", "eager PyTorch", "6.0 µs", "4.0 µs", "1.50×"] in [row[:6] for row in cells]
    assert ["small", "1.50×", "torch.compile", "–", "–", "–"] in [row[:6] for row in cells]
    lines = shown.splitlines()
    assert "verified         the speed-up of the kernel alone, by the run" in lines
    assert "not timed        small, torch.compile: no Triton here" in lines
    assert "not timed        large: no room" in lines
