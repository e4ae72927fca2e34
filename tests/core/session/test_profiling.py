"""`tunesmith profile` as a user sees it: on the simulated device, on a CPU, where there is no device."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.end_to_end import tiny
from tests.end_to_end.asking import quickly, refused, tune
from tests.opencl_here import needs_opencl
from tests.running import EXAMPLES, FIXTURES, expect_success, tunesmith
from tests.wording import says

TEMPLATE = ("--template", FIXTURES / "scale" / "template.fake")


def test_original_and_configuration_stand_side_by_side(tmp_path: Path) -> None:
    ended = expect_success(tmp_path, "profile", FIXTURES / "scale", *TEMPLATE, "--config", "BLOCK=128, VEC=8")
    assert "original" in ended.out
    assert "BLOCK=128 VEC=8 MODE=0" in ended.out
    for words in (
        "small, rows=16 d=256",
        "wide, rows=4 d=2048",
        "time",
        "floor",
        "distance",
        "experiments",
        "half the grid",
    ):
        assert words in ended.out
    assert "no counters   a simulated device has no counters" in ended.out
    assert "were not checked" in ended.out
    assert "\x1b" not in ended.out
    assert max(map(len, ended.out.splitlines())) <= 110
    assert "scale-roofline.svg" in ended.out
    ElementTree.parse(tmp_path / "scale-roofline.svg")


def test_json_has_all_of_it(tmp_path: Path) -> None:
    out = tmp_path / "plots"
    ended = expect_success(
        tmp_path, "profile", FIXTURES / "scale", "--workload", "wide", "--json", "--out", out
    )
    page = ended.json
    assert [w["name"] for w in page["workloads"]] == ["wide"]
    (view,) = page["workloads"][0]["views"]
    assert view["profile"]["seconds"] > 0
    assert view["profile"]["work"]["read"] == 4 * 4 * 2048
    assert view["diagnosis"]["bound"]
    assert page["plot"] == str(out / "scale-roofline.svg")
    assert (out / "scale-roofline.svg").exists()


@pytest.mark.long
def test_a_run_shows_its_original_and_its_winners(tmp_path: Path) -> None:
    tiny.fake(tmp_path / "problem")
    assert tune(tmp_path, "--out", "run").code == 0
    before = (tmp_path / "run" / "journal.jsonl").read_bytes()
    ended = expect_success(tmp_path, "profile", "run", "--json")
    views = ended.json["workloads"][0]["views"]
    assert [v["profile"]["kernel"] for v in views] == ["original", "BLOCK=32"]
    assert views[1]["profile"]["seconds"] < views[0]["profile"]["seconds"]
    assert (tmp_path / "run" / "roofline.svg").exists()
    assert (tmp_path / "run" / "journal.jsonl").read_bytes() == before


@pytest.mark.long
def test_a_configuration_of_a_run_stands_beside_its_original_and_its_winner(tmp_path: Path) -> None:
    tiny.fake(tmp_path / "problem")
    assert tune(tmp_path, "--out", "run").code == 0
    ended = expect_success(tmp_path, "profile", "run", "--config", "BLOCK=256", "--json")
    views = ended.json["workloads"][0]["views"]
    assert [v["profile"]["kernel"] for v in views] == ["original", "BLOCK=32", "BLOCK=256"]
    assert any("were not checked" in note for note in ended.json["notes"])
    same = tunesmith(tmp_path, "profile", "run", "--config", "BLOCK=32", "--json")
    assert [v["profile"]["kernel"] for v in same.json["workloads"][0]["views"]] == ["original", "BLOCK=32"]
    assert not any("were not checked" in note for note in same.json["notes"])
    said = "BLOCK=7 is not in its domain: allowed are 32, 64, 128, 256"
    refused(quickly(tmp_path, "profile", "run", "--config", "BLOCK=7"), 2, said, "template.fake")
    for name in ("backend", "device"):
        named = quickly(tmp_path, "profile", "run", f"--{name}", "fake")
        refused(named, 2, f"a run has its own template, backend and device: {name} goes with a problem")
    # Where they come from a file or the environment they are for other commands.
    (tmp_path / "tunesmith.toml").write_text('backend = "fake"\n')
    assert tunesmith(tmp_path, "profile", "run", "--json").code == 0


@pytest.mark.long
def test_a_run_elsewhere_shows_what_builds_tell(tmp_path: Path) -> None:
    tiny.fake(tmp_path / "problem")
    assert tune(tmp_path, "--out", "run").code == 0
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"driver":"1"', '"driver":"2"'))
    ended = tunesmith(tmp_path, "profile", "run")
    assert ended.code == 5, ended.err
    assert "registers" in ended.out
    says(ended.err, "the run's device", "simulated device (2)", "not here")


def test_where_the_device_is_absent_static_facts_are_shown_and_that_is_said(tmp_path: Path) -> None:
    ended = tunesmith(tmp_path, "profile", FIXTURES / "scale", "--backend", "fake:absent")
    assert ended.code == 5
    assert "32 registers" in ended.out
    assert "What follows is" in ended.out
    assert "is not here" in ended.err
    assert "\nhint: " in ended.err
    assert not list(tmp_path.glob("*.svg"))
    as_json = tunesmith(tmp_path, "profile", FIXTURES / "scale", "--backend", "fake:absent", "--json")
    assert as_json.code == 5
    assert as_json.json["profile"]["workloads"][0]["views"][0]["profile"]["seconds"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--workload", "huge"), "--workload 'huge' is none of the problem's; they are small, wide"),
        (("--config", "BLOCK=64"), "--config needs the template"),
        ((*TEMPLATE, "--config", "BLOKC=64"), "no parameter 'BLOKC'; it has BLOCK, VEC, MODE"),
        ((*TEMPLATE, "--config", "BLOCK=65"), "BLOCK=65 is not in its domain: allowed are 32, 64"),
        ((*TEMPLATE, "--config", "BLOCK=65"), "template.fake"),
        ((*TEMPLATE, "--config", "BLOCK=32 VEC=1 BLOCK=64"), "--config: BLOCK is set twice"),
        ((*TEMPLATE, "--config", "BLOCK=many"), "a parameter's value is an integer, got 'BLOCK=many'"),
        ((*TEMPLATE, "--config", "BLOCK"), "got 'BLOCK' without a value"),
        (("--backend", "opencl"), "backend opencl runs opencl kernels, this one is fake"),
    ],
)
def test_bad_input_is_refused_with_the_next_step(
    tmp_path: Path, arguments: tuple[object, ...], said: str
) -> None:
    refused(quickly(tmp_path, "profile", FIXTURES / "scale", *arguments), 2, said)


@pytest.mark.long
def test_a_configuration_that_runs_nowhere_is_refused_and_one_that_runs_somewhere_is_not(
    tmp_path: Path,
) -> None:
    template = tmp_path / "template.fake"
    text = (FIXTURES / "scale" / "template.fake").read_text()
    template.write_text(text.replace('"d % VEC == 0"', '"d // 256 >= VEC"'))
    command = ("profile", FIXTURES / "scale", "--template", template, "--config", "VEC=8")
    small = tunesmith(tmp_path, *command, "--workload", "small")
    refused(small, 2, "BLOCK=64 VEC=8 MODE=0 cannot run at small: ", "requires d // 256 >= 8")
    both = expect_success(tmp_path, *command, "--json")
    views = {w["name"]: w["views"][1] for w in both.json["workloads"]}
    assert views["wide"]["profile"]["seconds"] > 0
    assert views["small"]["diagnosis"]["summary"].startswith("cannot run: ")
    assert views["small"]["diagnosis"]["notes"] == []


def test_a_folder_that_cannot_be_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = quickly(tmp_path, "profile", FIXTURES / "scale", "--out", "file/plots")
    refused(ended, 2, "cannot make the folder for the plot")


@pytest.mark.long
def test_a_plot_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "scale-roofline.svg").mkdir()
    ended = expect_success(tmp_path, "profile", FIXTURES / "scale", "--workload", "wide")
    says(ended.out, "not written", "scale-roofline.svg")


def test_a_run_has_its_own_template(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "journal.jsonl").write_text("")
    refused(quickly(tmp_path, "profile", "run", *TEMPLATE), 2, "a run has its own template")


@pytest.mark.long
def test_a_kernel_that_crashes_is_a_note_and_the_rest_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "problem"
    shutil.copytree(FIXTURES / "scale", folder)
    kernel = folder / "kernel.fake"
    kernel.write_text(kernel.read_text().replace("// op", '// fault = "3"\n// op'))
    ended = expect_success(tmp_path, "profile", "problem")
    assert ended.out.count("could not be timed: crashed, killed by SIGABRT") == 2
    assert not list(tmp_path.glob("*.svg"))


@needs_opencl
@pytest.mark.slow
@pytest.mark.long
def test_a_cpu_has_a_roofline_and_is_measured_once(tmp_path: Path) -> None:
    example = EXAMPLES / "opencl" / "rmsnorm"
    command = ("profile", example, "--template", example / "template.cl", "--workload", "decode")
    ended = expect_success(tmp_path, *command)
    assert "must move" in ended.out
    assert "by memory bandwidth" in ended.out
    assert "OpenCL has no counters" in ended.out
    (file,) = (tmp_path / "user-cache" / "ceilings").iterdir()
    before = file.stat().st_mtime_ns
    again = expect_success(tmp_path, *command, "--json")
    assert again.json["ceilings"]["copy"]
    assert again.json["ceilings"]["measured_on"] in ended.out
    assert file.stat().st_mtime_ns == before
    assert tunesmith(tmp_path, *command, "--remeasure").code == 0
    assert file.stat().st_mtime_ns > before
    views = again.json["workloads"][0]["views"]
    assert all(v["profile"]["seconds"] > 0 and v["diagnosis"]["distance"] for v in views)


@pytest.mark.gpu
def test_a_gpu_has_a_roofline_with_counters_or_a_reason(tmp_path: Path) -> None:
    example = EXAMPLES / "cuda" / "silu_and_mul"
    workload = ("--workload", "prefill_4096x14336")
    ended = expect_success(
        tmp_path, "profile", example, "--template", example / "template.cu", *workload, "--json"
    )
    for view in ended.json["workloads"][0]["views"]:
        profile, diagnosis = view["profile"], view["diagnosis"]
        assert profile["static"]["instructions"] is not None
        assert 0.9 < diagnosis["distance"] < 100
        counters = profile["counters"]
        if counters is None:
            assert profile["no_counters"]
            continue
        moved = profile["work"]["read"] + profile["work"]["written"]
        assert 0.8 * moved < counters["dram_read"] + counters["dram_written"] < 1.5 * moved
        assert 0 < counters["dram"] <= 1
        assert 0 < counters["occupancy"] <= 1
        assert counters["stalls"]
