"""What stands in the way of a reading: all of it, with lines. And launches that overlap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem
from tunesmith.expert.author import read, reading_lines

_BEFORE = "struct B {}; struct S : B { float a; __device__ float go() { return a; } };"
_MAP = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i];"
_ALL = ("ceildiv(rows * d, 256)",)


def test_every_obstacle_is_told_with_its_line_and_what_would_have_to_change() -> None:
    body = """unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l));
        S s; float v = s.go();
        v += far_away(v);
        long long t = clock64();
        out[threadIdx.x] = v * t * l;"""
    problem = row_problem(body, before=_BEFORE)
    first, *others = reading_lines(problem, read(problem))

    assert "the structure S is not understood: it inherits" in first
    assert [line.split(":")[0].strip() for line in others] == ["also line 3", "also line 5", "also line 6"]
    assert (
        "far_away is called, whose text is not in the file (to change: put its text into the file)"
        in others[1]
    )


@pytest.mark.parametrize(
    "vote",
    [
        "__ballot_sync(0xffffffffu, v > 0)",
        "__any_sync(0xffffffffu, v > 0)",
        "__all_sync(0xffffffffu, v > 0)",
        "__match_any_sync(0xffffffffu, (int)v)",
        "__match_all_sync(0xffffffffu, (int)v, &some)",
        "__reduce_add_sync(0xffffffffu, (int)v)",
        "__activemask()",
    ],
)
def test_a_vote_is_among_the_obstacles(vote: str) -> None:
    body = f"""int some = 0; float v = x[threadIdx.x];
        v += far_away(v);
        v += helper(v) + {vote};
        out[threadIdx.x] = v;"""
    helper = f"__device__ float helper(float v) {{ int some; return {vote}; }}"
    problem = row_problem(body, before=helper)
    lines = reading_lines(problem, read(problem))

    assert any(f"{vote.partition('(')[0]} depends on other threads of the warp" in line for line in lines)


def test_obstacles_have_the_names_of_the_source() -> None:
    pair = "struct Two { float a, b; __device__ Two(float v) : a(v), b(v) {} };"
    body = "Two t(x[0]); for (int i = threadIdx.x; i < d; i += 256) { t.a = x[i] - t.a; out[i] = t.a; }"
    reason = refusal(row_problem(body, before=pair))

    assert "'t.a' is carried" in reason
    assert "t_a" not in reason


def test_a_kernel_with_one_obstacle_has_no_others() -> None:
    problem = row_problem("out[threadIdx.x] = x[0] * clock64();")

    assert len(reading_lines(problem, read(problem))) == 1


def test_the_next_launch_may_start_when_this_one_ends() -> None:
    text = (
        'asm volatile("griddepcontrol.wait;" ::: "memory");'
        + _MAP
        + ('asm volatile("griddepcontrol.launch_dependents;");')
    )
    problem = row_problem(text, grid=_ALL)
    overlapping = replace(problem, launches=(replace(problem.launches[0], pdl=True),))

    assert not lifted(problem).waits
    assert lifted(overlapping).waits


def test_memory_that_is_touched_before_the_wait_is_refused() -> None:
    problem = row_problem("const float v = x[0]; cudaGridDependencySynchronize();" + _MAP, grid=_ALL)
    overlapping = replace(problem, launches=(replace(problem.launches[0], pdl=True),))

    assert "touched before the launch ahead has ended" in refusal(overlapping)
