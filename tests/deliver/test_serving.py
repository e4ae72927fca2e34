"""A delivered folder read back as a program does that launches what is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tunesmith.core.errors import BadInput
from tunesmith.deliver.serving import KernelLaunch, TunedKernels

LAUNCH = {
    "entry": "scale",
    "grid": ["ceildiv(d, 64)", "rows"],
    "block": ["8"],
    "shared": "4 * d",
    "args": ["out", "x"],
    "cluster": None,
    "cooperative": False,
    "pdl": False,
}
ORIGINAL = {**LAUNCH, "grid": ["rows"], "shared": None}


def entry(when: str, file: str, launch: dict[str, object], **more: object) -> dict[str, object]:
    return {
        "when": when,
        "file": file,
        "digest": "",
        "config": None,
        "flags": ["-O3"],
        "launches": [launch],
        **more,
    }


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    headers = {"folder": "include", "files": ["a.h"], "left_out": []}
    entries = [
        entry("rows == 3 and d == 128", "special.cl", LAUNCH, config={"VEC": 4}, headers=headers),
        entry("1", "original.cl", ORIGINAL),
    ]
    table = {"problem": "scale", "language": "opencl", "device": "cpu", "entries": entries}
    (tmp_path / "dispatch.json").write_text(json.dumps(table))
    (tmp_path / "special.cl").write_text("// special")
    return tmp_path


def test_the_first_entry_that_holds_serves(tuned: Path) -> None:
    kernel = TunedKernels(tuned).for_sizes(rows=3, d=128)
    assert (kernel.source, kernel.config) == ("// special", {"VEC": 4})
    assert kernel.launches == (KernelLaunch("scale", (2, 3, 1), (8, 1, 1), 512, ("out", "x")),)
    assert kernel.flags == ("-O3", f"-I{tuned / 'include'}")


def test_the_original_serves_the_rest(tuned: Path) -> None:
    kernel = TunedKernels(tuned).for_sizes(rows=5, d=128)
    assert (kernel.file.name, kernel.config, kernel.flags) == ("original.cl", None, ("-O3",))
    assert kernel.launches[0].grid == (5, 1, 1)
    assert kernel.launches[0].shared == 0


@pytest.mark.parametrize("sizes", [{}, {"rows": 3}])
def test_a_size_is_missing(tuned: Path, sizes: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="has no value with"):
        TunedKernels(tuned).for_sizes(**sizes)


def test_no_dispatch_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"dispatch\.json: cannot be read"):
        TunedKernels(tmp_path)
    (tmp_path / "dispatch.json").write_text("{}")
    with pytest.raises(BadInput, match="not a dispatch"):
        TunedKernels(tmp_path)
