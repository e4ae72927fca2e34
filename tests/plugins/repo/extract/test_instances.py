"""Whether a launch is the only one of its kernel: other arguments of the template make another."""

from __future__ import annotations

import pytest

from tunesmith.plugins.repo.extract.host import ChosenEntry, ChosenLaunch, host_launches, is_alone
from tunesmith.plugins.repo.extract.slice import find_kernel
from tunesmith.plugins.repo.extract.tree import TextTree

KERNEL = """
template <typename T, int N> __global__ void scale(T* x) { x[threadIdx.x] *= N; }
#define WIDTH 4
#define LAUNCH(T, N) scale<T, N><<<1, 32>>>((T*)x)
template <typename T> void any(T* x) { scale<T, 4><<<1, 32>>>(x); }
"""


def alone(body: str, meant: int = 0, arguments: tuple[str, ...] = ("float", "4"), more: str = "") -> bool:
    kernel = KERNEL if "any" in body else KERNEL[: KERNEL.index("template <typename T> void any")]
    tree = TextTree((("a.cu", f"{kernel}{more}void go(void* x, int half) {{ {body} }}\n"),))
    launches = host_launches(tree, find_kernel(tree, "scale")).launches
    launch = ChosenLaunch(launches[meant], ChosenEntry(arguments, (), ()), len(launches))
    return is_alone(launch, launches)


@pytest.mark.parametrize(
    ("body", "meant", "is_so"),
    [
        ("scale<float, 4><<<1, 32>>>((float*)x);", 0, True),
        ("if (half) { LAUNCH(__half, 4); } else { LAUNCH(float, 4); }", 1, True),
        ("if (half) { LAUNCH(float, 8); } else { LAUNCH(float, 4); }", 1, True),
        ("if (half) { LAUNCH(float, 4); } else { LAUNCH(float, 4); }", 1, False),
        ("if (half) { LAUNCH(float, WIDTH); } else { LAUNCH(float, 4); }", 1, False),
        ("using T = float; if (half) { LAUNCH(T, 4); } else { LAUNCH(float, 4); }", 1, False),
        ("const int n = half; if (half) { LAUNCH(float, n); } else { LAUNCH(float, 4); }", 1, False),
        ("if (half) { LAUNCH(mine::half, 4); } else { LAUNCH(float, 4); }", 1, False),
    ],
)
def test_other_arguments_are_another_kernel(body: str, meant: int, is_so: bool) -> None:
    assert alone(body, meant) is is_so


def test_a_template_around_a_launch_may_be_of_any_type() -> None:
    assert not alone("any((float*)x); LAUNCH(float, 4);", meant=-1)


def test_without_a_launch_nothing_is_known() -> None:
    assert not is_alone(ChosenLaunch(None, ChosenEntry((), (), ()), 0), ())
