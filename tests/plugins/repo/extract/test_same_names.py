"""Kernels of one name in several files or namespaces: whose launches are whose."""

from __future__ import annotations

from tunesmith.plugins.repo.extract.host import host_launches
from tunesmith.plugins.repo.extract.slice import find_kernel
from tunesmith.plugins.repo.extract.tree import TextTree

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
