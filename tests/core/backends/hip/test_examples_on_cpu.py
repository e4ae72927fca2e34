"""HIP kernels of the examples and of the zoo on the cpu device, at sizes that are small."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.cpu_here import needs_cpu
from tests.running import EXAMPLES, FIXTURES, tunesmith

pytestmark = [pytest.mark.long, needs_cpu]
FOLDERS = (EXAMPLES / "hip" / "bias_gelu", EXAMPLES / "hip" / "layernorm", FIXTURES / "zoo" / "hip_silu")
LARGEST = 600  # more than two blocks of 256


def small(folder: Path, into: Path) -> Path:
    """The same problem, of at most so much in every size."""
    copy = Path(shutil.copytree(folder, into / folder.name))
    file = copy / "problem.toml"
    head, contract, rest = file.read_text().partition("[contract]")
    sizes, accuracy, tail = rest.partition("[accuracy]")
    sizes = re.sub(r"(?<== )\d+", lambda found: str(min(int(found[0]), LARGEST)), sizes)
    file.write_text(head + contract + sizes + accuracy + tail)
    return copy


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_kernel_is_right_there(folder: Path, tmp_path: Path) -> None:
    ended = tunesmith(tmp_path, "check", small(folder, tmp_path), "--device", "cpu")
    assert ended.code == 0, ended
    assert re.search(r"is right on \d\d+ cases on cpu \(.*waves of 64\)", ended.out)


def test_one_that_leaves_lanes_out_is_wrong(tmp_path: Path) -> None:
    """As a kernel does that was written for waves of 32."""
    copy = small(EXAMPLES / "hip" / "softmax", tmp_path)
    kernel = copy / "kernel.hip"
    text = kernel.read_text()
    assert text.count("step = warpSize / 2") == 2
    kernel.write_text(text.replace("step = warpSize / 2", "step = 16"))
    ended = tunesmith(tmp_path, "check", copy, "--device", "cpu")
    assert ended.code != 0, ended
    assert "wrong" in ended.out + ended.err
