"""Memory of this process as devices on the host use it: whole pages, which can be kept from being written."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tunesmith.backends import port


class HostPages:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        try:
            self.pages = mmap.mmap(-1, max(1, nbytes))
        except OSError as error:
            raise port.OutOfMemory(f"{nbytes} bytes: {error.strerror}") from error
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))

    def close(self) -> None:
        self.address = 0
        self.pages.close()

    def protect(self, offset: int, nbytes: int, how: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        start, length = ctypes.c_void_p(self.address + offset), ctypes.c_size_t(nbytes)
        if libc.mprotect(start, length, how):
            raise OSError(ctypes.get_errno(), "mprotect")


@contextmanager
def shield_spans(spans: Sequence[tuple[HostPages, int, int]]) -> Iterator[None]:
    with ExitStack() as stack:
        for pages, start, nbytes in spans:
            pages.protect(start, nbytes, mmap.PROT_READ)
            stack.callback(pages.protect, start, nbytes, mmap.PROT_READ | mmap.PROT_WRITE)
        yield
