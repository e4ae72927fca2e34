"""Kernels in CUDA graphs, recorded from streams or added node by node, beside a played driver."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.plugins.repo.capture.played import needs_compiler, with_played_gpu
from tests.plugins.repo.capture.test_watching import only, seen

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_played_gpu(monkeypatch)


def test_kernels_of_a_graph_are_counted_as_often_as_it_is_launched(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
scale, x = function(*SCALE), memory(64)
launch(scale, 1, 32, P(x), I(3), F(1.0))
cuda.played_begin()
launch(scale, 2, 32, P(x), I(3), F(1.0)); launch(scale, 3, 32, P(x), I(4), F(1.0))
cuda.played_end()
cuda.played_instantiate()
for _ in range(7):
    cuda.played_graph()
"""
    capture = seen(tmp_path, text)
    launches = {launch.grid[0]: launch for launch in only(capture).launches}
    assert {grid: launch.count for grid, launch in launches.items()} == {1: 1, 2: 7, 3: 7}
    assert [launches[grid].in_graph for grid in (1, 2, 3)] == [False, True, True]
    assert launches[3].seconds == pytest.approx(21e-6)
    assert struct.unpack("<i", launches[3].arguments[1].value) == (4,)
    assert capture.graphs == 7
    assert any("graphs" in note for note in capture.notes)


def test_kernels_that_a_program_adds_to_a_graph_node_by_node_are_counted(tmp_path: Path) -> None:
    text = """
cuda.cuInit(0)
scale, x = function(*SCALE), memory(64)
class Node(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int * 4), ("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3),
                ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("params", ctypes.c_void_p),
                ("extra", ctypes.c_void_p), ("kernel", ctypes.c_void_p), ("rest", ctypes.c_char * 200)]
def node(grid, n, function=None, kernel=None, kind=0):
    values = [P(x), I(n), F(1.0)]
    params = (ctypes.c_void_p * 3)(*[ctypes.addressof(value) for value in values])
    sizes = (grid, 1, 1), (32, 1, 1), 0
    made = Node((kind, 0, 0, 0), function, *sizes, ctypes.addressof(params), None, kernel)
    kept.append((values, params, made))
    return made
kept, none = [], ctypes.c_size_t(0)
assert cuda.cuGraphAddNode(None, None, None, none, ctypes.byref(node(2, 3, scale))) == 0
assert cuda.cuGraphAddNode_v2(None, None, None, None, none, ctypes.byref(node(3, 4, None, scale))) == 0
specific = ctypes.byref(node(4, 5, scale), Node.function.offset)
assert cuda.cuGraphAddKernelNode_v2(None, None, None, none, specific) == 0
assert cuda.cuGraphAddNode_v2(None, None, None, None, none, ctypes.byref(node(9, 9, kind=2))) == 0   # a fill
cuda.played_instantiate()
for _ in range(7):
    cuda.played_graph()
"""
    capture = seen(tmp_path, text)
    launches = {launch.grid[0]: launch for launch in only(capture).launches}
    assert {grid: launch.count for grid, launch in launches.items()} == {2: 7, 3: 7, 4: 7}
    assert all(launch.in_graph for launch in launches.values())
    given = {grid: struct.unpack("<i", launch.arguments[1].value)[0] for grid, launch in launches.items()}
    assert given == {2: 3, 3: 4, 4: 5}
