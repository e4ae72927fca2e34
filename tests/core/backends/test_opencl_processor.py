"""The processor's clock, as systems tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith.backends.opencl import processor_clocks
from tunesmith.problem.device import Clock

CPUINFO = "processor : 0\nmodel name : x\ncpu MHz\t\t: 2499.998\nprocessor : 1\ncpu MHz : 3100.1\n"


def core(system: Path, number: int, **khz: str) -> None:
    folder = system / f"sys/devices/system/cpu/cpu{number}/cpufreq"
    folder.mkdir(parents=True)
    for name, text in khz.items():
        (folder / name).write_text(text)


def test_of_the_fastest_core_with_its_limit(tmp_path: Path) -> None:
    core(tmp_path, 0, scaling_cur_freq="1200000\n", scaling_max_freq="3600000\n")
    core(tmp_path, 1, scaling_cur_freq="3400000\n", scaling_max_freq="3600000\n")
    assert processor_clocks(tmp_path) == (Clock("processor", 3400, 3600),)


def test_where_only_the_list_of_processors_says(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text(CPUINFO)
    assert processor_clocks(tmp_path) == (Clock("processor", 3100),)


@pytest.mark.parametrize("text", ["", "<unknown>\n", "-1", "9" * 5000])
def test_unknown(tmp_path: Path, text: str) -> None:
    core(tmp_path, 0, scaling_cur_freq=text)
    assert processor_clocks(tmp_path) == ()
