"""What a kernel's text alone says of its problem: shapes, launch, roles, and what it leaves to say."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tunesmith.expert.drafts.bare import BareFailure, read_bare
from tunesmith.expert.drafts.draft import bare_kernel, draft_problem
from tunesmith.source.tree import Language

ZOO = Path(__file__).parents[3] / "fixtures" / "zoo"
LANGUAGES: dict[str, Language] = {".cu": "cuda", ".cl": "opencl", ".hip": "hip"}


def draft(text: str, language: Language = "cuda", entry: str | None = None) -> dict[str, Any]:
    return tomllib.loads(draft_problem(text, "kernel.cu", language, entry).files["problem.toml"])


def shapes(problem: dict[str, Any]) -> dict[str, list[str]]:
    return {one["name"]: one["shape"] for one in problem["argument"] if "shape" in one}


def test_a_kernel_beyond_reading_is_drafted_as_before() -> None:
    text = (ZOO / "argmax" / "kernel.cu").read_text()
    found = read_bare(bare_kernel(text, "kernel.cu", "cuda", None))
    assert isinstance(found, BareFailure)
    assert "is carried from one element to the next" in found.reason.reason
    assert set(map(tuple, shapes(draft(text)).values())) == {("FILL",)}


BY_HAND = (
    "bias_relu_2d", "cl_softmax", "hip_silu", "int8_dynamic_quant", "layernorm", "matvec_in_memory",
    "moe_top2", "rope_interleaved", "split_parts", "stencil2d", "stencil5_rows",
)  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.few(5)
def test_drafts_agree_with_problems_written_by_hand(name: str) -> None:
    """Where something is said, it is the same; kernels' names for arrays may differ from the problem's."""
    [source] = (path for path in (ZOO / name).glob("kernel.*"))
    problem = tomllib.loads((ZOO / name / "problem.toml").read_text())
    made = draft_problem(
        source.read_text(), source.name, LANGUAGES[source.suffix], problem["kernel"]["entry"]
    )
    drafted = tomllib.loads(made.files["problem.toml"])
    for mine, theirs in zip(drafted["argument"], problem["argument"], strict=True):
        assert mine.get("role") == theirs.get("role")
        axes = zip(mine.get("shape", ()), theirs.get("shape", ()), strict=True)
        assert all(one in ("FILL", other) for one, other in axes)
    axes = zip(drafted["launch"]["grid"], problem["launch"]["grid"], strict=True)
    assert all(one.split(",")[0] == other.split(",")[0] for one, other in axes)
