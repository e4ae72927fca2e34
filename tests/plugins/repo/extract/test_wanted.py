"""Kernels of a capture that are meant, and those that cannot be extracted: what is said, what can be had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tunesmith
from tests.plugins.repo.extract.compiling import here
from tests.plugins.repo.extract.test_seen import NAME, capture, kernel, rows_kernel
from tests.running import FIXTURES
from tunesmith.base.errors import BadInput
from tunesmith.plugins.repo.capture.records import read_capture
from tunesmith.plugins.repo.extract.draft import ExtractionWish
from tunesmith.plugins.repo.extract.extract import extract_kernel
from tunesmith.plugins.repo.extract.seen import captured_kernel
from tunesmith.plugins.repo.extract.tree import TextTree

H200 = FIXTURES / "captures" / "h200"
TREE = TextTree((("a.cu", "__global__ void other(float* x) { x[0] = 1; }\n"),))


def refused(name: str) -> BadInput:
    """What is said of a kernel that ran on an H200 and that these sources do not have."""
    wish = ExtractionWish(name, trim=False, seen=captured_kernel(read_capture(H200), name))
    with pytest.raises(BadInput) as error:
        extract_kernel(TREE, wish, compilers=here)
    return error.value


def test_a_kernel_that_was_not_launched_is_said() -> None:
    seen = capture(rows_kernel(), kernel("void other<int>(int*)"))
    assert captured_kernel(seen, "scale_rows_kernel").shown == NAME
    with pytest.raises(BadInput, match="no kernel called missing") as error:
        captured_kernel(seen, "missing")
    assert error.value.hint == "it launched own::scale_rows_kernel, other"


def test_a_program_that_launched_nothing() -> None:
    with pytest.raises(BadInput, match="has no kernels: the program launched none"):
        captured_kernel(capture(), "scale")


def test_stripped_names_are_said_and_a_symbol_helps() -> None:
    nameless = replace(rows_kernel("_ZN12fd9a"), name="_ZN12fd9a")
    seen = capture(nameless, kernel("void other<int>(int*)"))
    with pytest.raises(BadInput) as error:
        captured_kernel(seen, "scale_rows_kernel")
    assert error.value.message == (
        "the capture has no kernel called scale_rows_kernel; 1 kernel of it has no readable name"
    )
    assert "--symbol SYMBOL, one of _ZN12fd9a (" in (error.value.hint or "")
    assert "leave --capture out" in (error.value.hint or "")
    assert captured_kernel(seen, "scale_rows_kernel", "_ZN12fd9a") is nameless
    with pytest.raises(BadInput, match="no kernel whose symbol is _Zother"):
        captured_kernel(seen, "scale_rows_kernel", "_Zother")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "a vendor's library, whose source nobody has"),
        ("triton_add", "it is Triton's, compiled from Python"),
        ("at::native::vectorized_elementwise_kernel", "it is PyTorch's own"),
    ],
)
def test_kernels_of_libraries_have_no_source(name: str, words: str) -> None:
    said = refused(name)
    assert "ran, and its source is not there: " in said.message
    assert words in said.message
    assert "its launches, arguments and times: tunesmith capture --show --kernel" in (said.hint or "")


def test_an_own_kernel_that_is_elsewhere() -> None:
    said = refused("scale_rows")
    assert said.message == "scale_rows ran, and the repository defines no kernel called scale_rows"
    assert "its module's line table names own.cu" in (said.hint or "")


def test_a_symbol_is_of_a_capture(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--symbol names a kernel of a capture"):
        tunesmith.extract(tmp_path, kernel="k", symbol="_Z1kv")


def test_a_capture_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="this is not a capture"):
        tunesmith.extract(tmp_path, kernel="k", capture=tmp_path)
