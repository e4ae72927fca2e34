"""How the three languages spell what every kernel needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    kernel: str  # before a kernel's bounds and name
    thread_x: str
    thread_y: str
    block_x: str
    block_y: str
    block_z: str
    grid_x: str
    grid_y: str
    grid_z: str
    wide: str  # a 64-bit integer
    truth: str  # a truth value


_CUDA = Dialect(
    kernel='extern "C" __global__ void',
    thread_x="threadIdx.x",
    thread_y="threadIdx.y",
    block_x="blockIdx.x",
    block_y="blockIdx.y",
    block_z="blockIdx.z",
    grid_x="gridDim.x",
    grid_y="gridDim.y",
    grid_z="gridDim.z",
    wide="long long",
    truth="bool",
)
_OPENCL = Dialect(
    kernel="__kernel",
    thread_x="get_local_id(0)",
    thread_y="get_local_id(1)",
    block_x="get_group_id(0)",
    block_y="get_group_id(1)",
    block_z="get_group_id(2)",
    grid_x="get_num_groups(0)",
    grid_y="get_num_groups(1)",
    grid_z="get_num_groups(2)",
    wide="long",
    truth="int",
)


def dialect(language: str) -> Dialect:
    return _OPENCL if language == "opencl" else _CUDA
