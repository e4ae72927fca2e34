"""What a reading rests on is told with its ground."""

from __future__ import annotations

from tests.expert.model.kernels import lifted, problem_in, row_problem
from tunesmith.expert.model.facts import Fact
from tunesmith.expert.model.words import fact_lines

_ANY = "the turns of a loop may come in any order"


def test_turns_of_different_threads_are_free_by_the_kernel_itself() -> None:
    kernel = lifted(problem_in("examples/cuda/rmsnorm"))
    assert Fact(_ANY, "the kernel's own", "line 19") in kernel.facts
    assert Fact("'sum' may be joined in another order", "the contract's word", "[accuracy]") in kernel.facts
    assert Fact("out, input, weight do not overlap", "the contract's word", "no alias") in kernel.facts


def test_turns_of_one_thread_are_free_by_proof() -> None:
    body = (
        "const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;\nfloat m = 0;\n"
        "for (int i = 0; i < d; i++) m = fmaxf(m, x[row * d + i]);\n"
        "for (int i = 0; i < d; i++) { assert(m > 0); out[row * d + i] = x[row * d + i] / m; }"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows, 64)",), block=("64",)))
    assert fact_lines(kernel) == [
        "It rests on:",
        f"  {_ANY}: proved (line 5, line 6)",
        "  'm' may be joined in another order: proved (line 5)",
        "  the kernel does not stop itself: the contract's word (line 6)",
        "  x, out do not overlap: the contract's word (no alias)",
    ]
