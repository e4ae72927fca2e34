"""Texts that are broken, or end their lines otherwise."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.core.expert.knobs.problems import NAMES, asked, made, opened, problem_of
from tunesmith.run.ports import Declined, Written

SUM = """#define BLOCK 128
constexpr int WIDE = 64;
__global__ void work(float *out, const float *x, int n)
{
    for (int k = 0; k < WIDE; k++) n += 0;
    __shared__ float part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[BLOCK - 1 - threadIdx.x];
}
"""


def test_lines_may_end_as_on_windows() -> None:
    written, template = opened(made(SUM.replace("\n", "\r\n"), "ceildiv(n, 128)", "128"))
    assert template.default.as_dict() == {"KNOB_BLOCK": 128, "KNOB_WIDE": 64}
    assert "#define BLOCK KNOB_BLOCK\r\n" in written.text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(4)
def test_broken_texts_are_refused_or_read_in_words(name: str) -> None:
    """Whatever a text has lost, repeated or mixed up, there is an answer."""
    problem, draw = problem_of(name), random.Random(name)
    for _ in range(12):
        text = problem.kernel.text
        for _ in range(draw.randrange(1, 5)):
            a, b = sorted(draw.randrange(len(text)) for _ in range(2))
            piece = text[a : min(b, a + 40)]
            text = (
                draw.choice([text[:a] + text[a + len(piece) :], text[:b] + piece + text[b:], text[:b]]) or "x"
            )
        found = asked(replace(problem, kernel=replace(problem.kernel, text=text)))
        assert isinstance(found, Written | Declined)
