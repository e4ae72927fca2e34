"""A simulated problem whose template has 12 configurations, none of them at fault, to be retuned."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end import tiny
from tests.end_to_end.written import draft, scripted

SIZES = "[workloads.tall]\nn = 128\n[workloads.flat]\nn = 16\nweight = 2.0\n"


def problem(folder: Path) -> Path:
    """The best configuration depends on the size, a little: UNROLL pays where n is large."""
    tiny.fake(folder)
    _widen(folder, 'big = { n = 64, cache = "warm" }\nsmall = { n = 8, cache = "warm" }')
    text = draft(
        "20 * (60 + BLOCK // VEC + (12 // UNROLL if n > 32 else 3 * UNROLL))",
        BLOCK=[64, 32],
        VEC=[1, 4, 8],
        UNROLL=[1, 4],
    )
    (folder / "template.fake").write_text(text)
    return folder


def of_two_templates(folder: Path) -> Path:
    """The kernel's author writes two: one is the better in general, the other at the small size."""
    tiny.fake(folder)
    (folder / "template.fake").unlink()
    _widen(folder, 'big = { n = 64, cache = "warm", weight = 3.0 }\nsmall = { n = 8, cache = "warm" }')
    big = draft("20 * (60 + BLOCK) if n > 32 else 16000", BLOCK=[64, 32, 16])
    small = draft("20 * (60 + BLOCK) if n <= 32 else 18000", BLOCK=[64, 32, 16])
    kernel = tiny.FAKE_KERNEL + scripted("draft", "big", big) + scripted("draft", "small", small)
    (folder / "kernel.fake").write_text(kernel)
    return folder


def _widen(folder: Path, workloads: str) -> None:
    tiny.spoil(folder / "problem.toml", "one_of = [8, 64]", "one_of = [8, 16, 64, 128]")
    tiny.spoil(folder / "problem.toml", 'only = { n = 64, cache = "warm" }', workloads)
