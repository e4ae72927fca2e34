"""Whose launches are whose, whether one is alone, how far its promises go, and how that is written down."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from tunesmith.expert.drafts.bare import KnownFacts, KnownWorkload
from tunesmith.plugins.repo.extract.draft import origin_text
from tunesmith.plugins.repo.extract.host import (
    ChosenEntry,
    ChosenLaunch,
    host_launches,
    is_alone,
    with_limits,
)
from tunesmith.plugins.repo.extract.slice import find_kernel
from tunesmith.plugins.repo.extract.tree import TextTree
from tunesmith.problem.problem import Origin

OWN = """
static __global__ void scale(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
void run(float* x, int n) { scale<<<1, 64>>>(x, n); }
"""
DECLARES = """
__global__ void scale(float* x, int n);
void far(float* x, int n) { scale<<<1, 64>>>(x, n); }
"""
SPACES = """
namespace fwd {
__global__ void scale(float* x, int n) { x[threadIdx.x] *= 2; }
void run(float* x, int n) {
  scale<<<1, 64>>>(x, n);
}
}
namespace bwd {
__global__ void scale(float* x, int n) { x[threadIdx.x] *= 3; }
void run(float* x, int n) {
  scale<<<1, 64>>>(x, n);
  fwd::scale<<<1, 32>>>(x, n);
  ::bwd::scale<<<1, 32>>>(x, n);
}
}
"""


def places(tree: TextTree, kernel: str, file: str | None = None) -> list[str]:
    return [launch.place for launch in host_launches(tree, find_kernel(tree, kernel, file)).launches]


def test_a_file_that_defines_its_own_launches_its_own() -> None:
    tree = TextTree((("a/n.cu", OWN), ("b/n.cu", OWN), ("c/n.cu", DECLARES)))
    assert places(tree, "scale", "a/n.cu") == ["a/n.cu:3", "c/n.cu:3"]


def test_namespaces_tell_kernels_apart() -> None:
    tree = TextTree((("n.cu", SPACES),))
    assert places(tree, "fwd::scale") == ["n.cu:5", "n.cu:12"]
    assert places(tree, "bwd::scale") == ["n.cu:11", "n.cu:13"]


def test_a_header_found_through_a_folder_may_define_another_one() -> None:
    header = OWN.split("void run")[0]
    launches = "#include <own/k.cuh>\nvoid far(float* x, int n) { scale<<<1, 64>>>(x, n); }\n"
    texts = (("a/n.cu", OWN), ("one/own/k.cuh", header), ("two/own/k.cuh", header), ("z/m.cu", launches))
    tree = TextTree(texts)

    def asked(file: str, folder: str) -> list[str]:
        found = find_kernel(tree, "scale", file, (folder,))
        return [launch.place for launch in host_launches(tree, found, (folder,)).launches]

    assert asked("a/n.cu", "one") == ["a/n.cu:3"]
    assert asked("one/own/k.cuh", "one") == ["z/m.cu:2"]
    assert asked("one/own/k.cuh", "two") == []
    assert asked("two/own/k.cuh", "two") == ["z/m.cu:2"]


def test_it_is_written_behind_the_origin() -> None:
    tree = TextTree((("a.cu", OWN),))
    (launch,) = host_launches(tree, find_kernel(tree, "scale")).launches
    asked = ('name ==\n "a\\b"',)
    origin = Origin("a.cu", (2, 2), (launch.place,), (("a.cu", "0"),), read=launch.place, unread=asked)
    table = tomllib.loads(origin_text(origin))["origin"]
    assert table["read"] == {"launch": "a.cu:3", "unread": ['name == "a\\b"']}
    assert table["digests"] == {"a.cu": "0"}
    assert "include" not in table
    more = tomllib.loads(origin_text(replace(origin, include=("a/in", 'b"c'), alone=True)))["origin"]
    assert more["include"] == ["a/in", 'b"c']
    assert more["read"]["alone"] is True
    assert "read" not in tomllib.loads(origin_text(Origin("a.cu", (2, 2), (), ())))["origin"]


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


SEEN = (
    KnownWorkload("one", (("rows", 100), ("hidden", 4096))),
    KnownWorkload("other", (("rows", 3000), ("hidden", 1024))),
)


def test_the_largest_that_was_seen_and_no_guess() -> None:
    found = with_limits(KnownFacts(workloads=SEEN), "seen")
    assert found.limits == {"rows": (1, 3000), "hidden": (1, 4096)}
    assert found.limits_from == dict.fromkeys(("rows", "hidden"), "the largest that was seen")


def test_what_the_host_checks_goes_first() -> None:
    requires = ("hidden <= 8192", "rows < 65536", "rows > 3", "heads <= 64", "hidden % heads == 0")
    known = KnownFacts(workloads=SEEN, requires=requires, multiples={"hidden": 8, "rows": 5})
    found = with_limits(known, "given")
    assert found.limits == {"rows": (5, 65535), "hidden": (8, 8192), "heads": (1, 64)}
    assert set(found.limits_from.values()) == {"as the host checks"}
    assert found.requires == ("hidden % heads == 0",)


def test_a_check_that_what_was_seen_contradicts_is_of_another_instance() -> None:
    found = with_limits(KnownFacts(workloads=SEEN, requires=("hidden <= 1024",)), "seen")
    assert found.limits["hidden"] == (1, 4096)
    assert found.limits_from["hidden"] == "the largest that was seen"


def test_a_least_size_alone_stays_a_condition() -> None:
    found = with_limits(KnownFacts(requires=("n >= 4",)), "given")
    assert (found.limits, found.requires) == ({}, ("n >= 4",))
