"""CUDA's driver through ctypes: modules, launches, devices. No package is needed, only the driver."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

CLUSTER_DIMENSION, COOPERATIVE, PROGRAMMATIC_STREAM_SERIALIZATION = 4, 2, 6  # CUlaunchAttributeID
MAX_DYNAMIC_SHARED_SIZE_BYTES, NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 8, 14  # CUfunction_attribute
_MAJOR, _MINOR = 75, 76  # CUdevice_attribute
_RELAXED = 2  # CUstreamCaptureMode
_NO_CONTEXT = (3, 201, 709)  # not initialized, no context is current, the context is destroyed
# An invalid value (more shared memory than there is), image, PTX or version of it; no binary for the device;
# an unknown symbol.
_ABOUT_CODE = (1, 200, 209, 218, 220, 221, 222, 223, 300, 500)
PORTABLE_CLUSTER = 8  # blocks


class CudaError(RuntimeError):
    """The driver refused a call."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_about_code(self) -> bool:
        """Whether it refuses this code, and would so again: no memory left is no word on it."""
        return self.status in _ABOUT_CODE


class AttributeValue(ctypes.Union):
    _fields_ = [
        ("pad", ctypes.c_char * 64),
        ("cluster", ctypes.c_uint * 3),
        ("flag", ctypes.c_int),
        ("align", ctypes.c_uint64),
    ]


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", AttributeValue)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint),
    ]


@cache
def driver() -> Any:
    """The driver's library, ready to be used."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise CudaError(f"CUDA's driver, {name}, cannot be loaded here ({error}): install it") from error
    # What is passed as a plain number must not be cut to 32 bits.
    pointer = ctypes.c_void_p
    library.cuModuleLoadData.argtypes = [ctypes.POINTER(pointer), ctypes.c_char_p]
    library.cuModuleGetFunction.argtypes = [ctypes.POINTER(pointer), pointer, ctypes.c_char_p]
    library.cuFuncSetAttribute.argtypes = [pointer, ctypes.c_int, ctypes.c_int]
    library.cuCtxSetCurrent.argtypes = [pointer]
    library.cuStreamGetCtx.argtypes = [pointer, ctypes.POINTER(pointer)]
    library.cuLaunchKernelEx.argtypes = [pointer, pointer, pointer, pointer]
    library.cuMemsetD8Async.argtypes = [pointer, ctypes.c_ubyte, ctypes.c_size_t, pointer]
    library.cuMemsetD16Async.argtypes = [pointer, ctypes.c_ushort, ctypes.c_size_t, pointer]
    library.cuMemsetD32Async.argtypes = [pointer, ctypes.c_uint, ctypes.c_size_t, pointer]
    checked(library.cuInit(0), library)
    return library


def checked(status: int, library: Any = None) -> None:
    if status:
        text = ctypes.c_char_p()
        (library or driver()).cuGetErrorName(status, ctypes.byref(text))
        name = (text.value or b"an unknown error").decode()
        raise CudaError(f"CUDA's driver refuses: {name} ({status})", status)


@cache
def driver_version() -> tuple[int, int]:
    version = ctypes.c_int()
    checked(driver().cuDriverGetVersion(ctypes.byref(version)))
    return version.value // 1000, version.value % 1000 // 10


@cache
def device_of(ordinal: int) -> tuple[str, str]:
    """Architecture (sm_90) and name."""
    cu, device, major, minor = driver(), ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    checked(cu.cuDeviceGet(ctypes.byref(device), ordinal))
    checked(cu.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device))
    checked(cu.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device))
    name = ctypes.create_string_buffer(256)
    checked(cu.cuDeviceGetName(name, 256, device))
    return f"sm_{major.value}{minor.value}", name.value.decode(errors="replace")


@cache
def primary_context(ordinal: int) -> int:
    """The context that PyTorch, CuPy and the runtime share. It is held from now on."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    checked(driver().cuDeviceGet(ctypes.byref(device), ordinal))
    checked(driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    return context.value or 0


@contextlib.contextmanager
def in_context(ordinal: int) -> Iterator[None]:
    """Work that is not a launch: in the device's own context, and allowed while a stream is captured."""
    cu, before, mode = driver(), ctypes.c_void_p(), ctypes.c_int(_RELAXED)
    checked(cu.cuCtxGetCurrent(ctypes.byref(before)))
    checked(cu.cuCtxSetCurrent(primary_context(ordinal)))
    checked(cu.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
    try:
        yield
    finally:
        cu.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        if before.value:
            cu.cuCtxSetCurrent(before)


@contextlib.contextmanager
def on_device(ordinal: int) -> Iterator[None]:
    """The device's own context is current meanwhile: work of a default stream is the current context's."""
    before, own = ctypes.c_void_p(), primary_context(ordinal)
    checked(driver().cuCtxGetCurrent(ctypes.byref(before)))
    if before.value == own:
        yield
        return
    checked(driver().cuCtxSetCurrent(own))
    try:
        yield
    finally:
        driver().cuCtxSetCurrent(before)


def is_stream_of(stream: int, ordinal: int) -> bool:
    """Whether what is queued there runs in the device's own context, which is current."""
    context = ctypes.c_void_p()
    checked(driver().cuStreamGetCtx(stream, ctypes.byref(context)))
    return context.value == primary_context(ordinal)


class Module:
    """Machine code, loaded on a device; as long as the process lives."""

    def __init__(self, code: bytes, ordinal: int) -> None:
        self.ordinal = ordinal
        self._code = code
        self._module = ctypes.c_void_p()
        self._functions: dict[str, int] = {}
        self._shared: dict[int, int] = {}
        self._lock = threading.Lock()
        with in_context(ordinal):
            checked(driver().cuModuleLoadData(ctypes.byref(self._module), code))

    def function(self, symbol: str, shared: int, cluster: Sequence[int] | None) -> int:
        """Loaded whole, so that its first launch has nothing left to load, and allowed what it needs."""
        cu, found = driver(), ctypes.c_void_p()
        with self._lock, in_context(self.ordinal):
            if symbol not in self._functions:
                checked(cu.cuModuleGetFunction(ctypes.byref(found), self._module, symbol.encode()))
                if hasattr(cu, "cuFuncLoad"):
                    checked(cu.cuFuncLoad(found))
                self._functions[symbol] = found.value or 0
            function = self._functions[symbol]
            if shared > self._shared.get(function, 0):
                checked(cu.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, shared))
                self._shared[function] = shared
            if cluster and cluster[0] * cluster[1] * cluster[2] > PORTABLE_CLUSTER:
                checked(cu.cuFuncSetAttribute(function, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
        return function


class Parameters:
    """Memory for what one launch passes. The driver copies it before it returns."""

    def __init__(self, words: Sequence[int], config: LaunchConfig) -> None:
        count = len(words)
        self.words = (ctypes.c_uint64 * max(count, 1))(*words)
        start = ctypes.addressof(self.words)
        self.pointers = (ctypes.c_void_p * max(count, 1))(*(start + 8 * n for n in range(count)))
        self.config = LaunchConfig()
        ctypes.memmove(ctypes.byref(self.config), ctypes.byref(config), ctypes.sizeof(config))


class Launcher:
    """A launch made ready once; a call puts in its pointers and stream. Any number of threads may launch."""

    def __init__(
        self,
        function: int,
        ordinal: int,
        config: LaunchConfig,
        words: Sequence[int],
        attributes: Any,
    ) -> None:
        self._function, self._ordinal = function, ordinal
        self._config, self._words, self._attributes = config, list(words), attributes
        self._free: list[Parameters] = []  # taken and given back whole, which the interpreter does atomically
        self._launch = driver().cuLaunchKernelEx

    def __call__(self, changes: Sequence[tuple[int, int]], stream: int) -> None:
        """`changes`: words of the kernel's arguments, by number."""
        try:
            own = self._free.pop()
        except IndexError:
            own = Parameters(self._words, self._config)
        words = own.words
        for number, word in changes:
            words[number] = word
        own.config.stream = stream
        status = self._launch(ctypes.addressof(own.config), self._function, own.pointers, None)
        if status in _NO_CONTEXT:  # a thread in which nothing has used the device yet
            checked(driver().cuCtxSetCurrent(primary_context(self._ordinal)))
            status = self._launch(ctypes.addressof(own.config), self._function, own.pointers, None)
        self._free.append(own)
        if status:
            checked(status)


def launcher(
    module: Module,
    symbol: str,
    grid: Sequence[int],
    block: Sequence[int],
    shared: int,
    cluster: Sequence[int] | None,
    cooperative: bool,
    pdl: bool,
    words: Sequence[int],
) -> Launcher:
    attributes = (LaunchAttribute * 3)()
    count = 0
    if cluster:
        attributes[count].id = CLUSTER_DIMENSION
        attributes[count].value.cluster = (ctypes.c_uint * 3)(*cluster)
        count += 1
    for wanted, kind in ((cooperative, COOPERATIVE), (pdl, PROGRAMMATIC_STREAM_SERIALIZATION)):
        if wanted:
            attributes[count].id = kind
            attributes[count].value.flag = 1
            count += 1
    config = LaunchConfig()
    config.grid, config.block = (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block)
    config.shared, config.count = shared, count
    config.attributes = ctypes.cast(attributes, ctypes.POINTER(LaunchAttribute)) if count else None
    function = module.function(symbol, shared, cluster)
    return Launcher(function, module.ordinal, config, words, attributes)


def have_context(ordinal: int) -> None:
    """For work that is no launch: in a thread in which nothing has used the device yet."""
    current = ctypes.c_void_p()
    checked(driver().cuCtxGetCurrent(ctypes.byref(current)))
    if not current.value:
        checked(driver().cuCtxSetCurrent(primary_context(ordinal)))


def fill(pointer: int, nbytes: int, element: bytes, stream: int) -> None:
    """Queue the writing of one element over all of it; its bytes are those of a type of 1, 2, 4 or 8."""
    cu, word = driver(), int.from_bytes(element, "little")
    if not nbytes:
        return
    if len(element) == 1 or element == element[:1] * len(element):
        checked(cu.cuMemsetD8Async(pointer, element[0], nbytes, stream))
    elif len(element) == 2:
        checked(cu.cuMemsetD16Async(pointer, word, nbytes // 2, stream))
    elif len(element) == 4:
        checked(cu.cuMemsetD32Async(pointer, word, nbytes // 4, stream))
    else:  # both halves in turn, each as a column of a table of 32-bit words
        memset = cu.cuMemsetD2D32Async
        size, whole = ctypes.c_size_t, ctypes.c_void_p
        for half in (0, 1):
            value = ctypes.c_uint(word >> 32 * half & 0xFFFFFFFF)
            start = whole(pointer + 4 * half)
            checked(memset(start, size(8), value, size(1), size(nbytes // 8), whole(stream)))
