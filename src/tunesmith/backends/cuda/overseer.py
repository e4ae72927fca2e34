"""A kernel that reads on a stream of its own while another runs: whether what nobody may write stays."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tunesmith.backends.cuda.devices import checked, driver

THREADS, BLOCKS = 256, 4  # so few that another kernel has room beside them
MOST_PAIRS = 32
NANOSECONDS = 2_000_000  # and then it ends: a launch that needs all of the device waits no longer
BEGIN_SECONDS = 0.002  # for it to begin


class LaunchWords:
    """The arguments of a kernel, each 8 bytes wide, and their addresses. A launch copies them."""

    def __init__(self, words: Sequence[int | float]) -> None:
        self._format = struct.Struct("<" + "".join("d" if isinstance(word, float) else "q" for word in words))
        self._values = np.zeros(len(words), dtype=np.uint64)
        self._addresses = self._values.ctypes.data + 8 * np.arange(len(words), dtype=np.uint64)
        self._pointers = int(self._addresses.ctypes.data)

    def hold(self, words: Sequence[int | float]) -> int:
        self._format.pack_into(self._values.data, 0, *words)
        return self._pointers


class Overseer:
    def __init__(self, function: Any) -> None:
        cu = driver()
        self._function = function
        self._stream = checked(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
        # What the host says last, what the kernel says, and the number of the launch.
        host = checked(cu.cuMemHostAlloc(64, cu.CU_MEMHOSTALLOC_DEVICEMAP))
        self._words = (ctypes.c_uint32 * 3).from_address(int(host))
        ctypes.memset(self._words, 0, ctypes.sizeof(self._words))
        self._address = int(checked(cu.cuMemHostGetDevicePointer(host, 0)))
        self._memory = int(checked(cu.cuMemAlloc(8 + 24 * MOST_PAIRS)))
        self._arguments = LaunchWords([0] * 5)

    def begin(self, pairs: Sequence[tuple[int, int, int]]) -> None:
        """Two addresses and a number of bytes of each; the launch that is overseen comes after."""
        cu, shown = driver(), pairs[:MOST_PAIRS]
        table = np.array([0, *(word for pair in shown for word in pair)], dtype=np.uint64)
        # On its stream: a plain copy returns before it has arrived, and this stream does not wait for it.
        checked(cu.cuMemcpyHtoDAsync(self._memory, table.ctypes.data, table.nbytes, self._stream))
        number = self._words[2] = self._words[2] % 0x7FFFFFFF + 1
        words = (self._memory + 8, len(shown), self._address, NANOSECONDS, self._memory)
        shape = (BLOCKS, 1, 1, THREADS, 1, 1, 0)
        checked(cu.cuLaunchKernel(self._function, *shape, self._stream, self._arguments.hold(words), 0))
        end = time.perf_counter() + BEGIN_SECONDS
        while self._words[1] != number and time.perf_counter() < end:
            pass

    def end(self) -> int | None:
        """The number of a pair that was seen to differ."""
        cu, found = driver(), np.zeros(1, dtype=np.uint64)
        self._words[0] = self._words[2]
        checked(cu.cuStreamSynchronize(self._stream))
        checked(cu.cuMemcpyDtoH(found.ctypes.data, self._memory, found.nbytes))
        return int(found[0]) - 1 if found[0] else None
