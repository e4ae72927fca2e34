"""Calls on a CUDA device: a driver that only writes down what it is asked, frameworks stood in for."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tests.core.deliver.runtime.dispatches import arrays, delivered, dispatch, entry, operator
from tunesmith.deliver.runtime import cuda_calls, cuda_driver
from tunesmith.deliver.runtime.operator import Operator
from tunesmith.problem.dispatch import DispatchBinary

NO_BINARY, OUT_OF_MEMORY, INVALID_IMAGE = 209, 2, 200
FUNCTIONS = {b"fast": 1, b"original": 2}


class Driver:
    """Contexts are 100 + the number of their device; a stream is of the context it is divided by 10."""

    def __init__(self) -> None:
        self.refused: dict[bytes, int] = {}
        self.current, self.loaded, self.launched = 100, list[tuple[bytes, int]](), list[tuple[int, int]]()

    def cuGetErrorName(self, status, text):
        text._obj.value = b"A_DRIVERS_WORD"

    def cuDeviceGet(self, device, ordinal):
        device._obj.value = ordinal
        return 0

    def cuDeviceGetAttribute(self, value, attribute, device):
        value._obj.value = {75: 9, 76: 0}[attribute]
        return 0

    def cuDeviceGetName(self, name, *_):
        name.value = b"NVIDIA H200"
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device):
        context._obj.value = 100 + device.value
        return 0

    def cuCtxGetCurrent(self, context):
        context._obj.value = self.current
        return 0

    def cuCtxSetCurrent(self, context):
        self.current = getattr(context, "value", context) or 0
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode):
        return 0

    def cuStreamGetCtx(self, stream, context):
        context._obj.value = stream // 10 or self.current
        return 0

    def cuModuleLoadData(self, module, code):
        self.loaded.append((code, self.current))
        module._obj.value = FUNCTIONS[code]
        return self.refused.get(code, 0)

    def cuModuleGetFunction(self, function, module, symbol):
        function._obj.value = module.value
        return 0

    def cuLaunchKernelEx(self, config, function, *_):
        self.launched.append((function, self.current))
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(cuda_driver, "driver", lambda: made)
    for cached in (cuda_driver.device_of, cuda_driver.primary_context):
        monkeypatch.setattr(cuda_driver, cached.__name__, cached.__wrapped__)
    return made


def binary(name: str) -> DispatchBinary:
    return DispatchBinary(name, "cubin", "", {"silu": "silu"})


def two_kernels() -> Operator:
    entries = (
        entry("d == 64", "fast.cu", {"V": 8}, binary=binary("fast")),
        entry("1", "original.cu", None, binary=binary("original")),
    )
    files = {"fast": b"fast", "original": b"original"}
    return Operator([delivered(dispatch(entries=entries), files)])


def called(calls: cuda_calls.CudaCalls, tokens: int = 16, stream: int = 0):
    own = calls.operator
    call = own.call((tokens,), lambda: arrays(tokens), {}, lambda: calls.device_of(0))
    return calls.launch(call, [0, 1 << 20], own.scalar_bytes([None]), 0, stream, lambda n: (0, None))


def test_what_was_tuned_is_launched(driver: Driver) -> None:
    assert called(cuda_calls.CudaCalls(two_kernels())).why == ""
    assert driver.launched == [(1, 100)]


@pytest.mark.parametrize("status", [NO_BINARY, INVALID_IMAGE])
def test_where_a_binary_is_refused_the_original_serves(driver: Driver, status: int) -> None:
    driver.refused = {b"fast": status}
    calls = cuda_calls.CudaCalls(two_kernels())
    with pytest.warns(RuntimeWarning, match=r"fast\.cu cannot be used here .*: its original serves"):
        decisions = [called(calls)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        decisions += [called(calls, 17), called(calls)]
        calls.prepare(0)
    assert [d.entry.file for d in decisions] == ["original.cu"] * 3
    assert [function for function, _ in driver.launched] == [2, 2, 2]


def test_no_memory_left_is_no_reason_to_give_a_kernel_up(driver: Driver) -> None:
    driver.refused = {b"fast": OUT_OF_MEMORY}
    calls = cuda_calls.CudaCalls(two_kernels())
    for attempt in (lambda: called(calls), lambda: calls.prepare(0)):
        with pytest.raises(cuda_driver.CudaError, match="A_DRIVERS_WORD"):
            attempt()
    driver.refused = {}
    assert called(calls).entry.file == "fast.cu"


def test_an_original_that_is_refused_is_an_error(driver: Driver) -> None:
    driver.refused = {b"fast": NO_BINARY, b"original": NO_BINARY}
    calls = cuda_calls.CudaCalls(two_kernels())
    with pytest.warns(RuntimeWarning, match="fast.cu"), pytest.raises(cuda_driver.CudaError):
        called(calls)


# -- frameworks ---------------------------------------------------------------------------------------------


def with_modules(monkeypatch: pytest.MonkeyPatch, module: str, **stand_ins: ModuleType):
    """A module of the runtime over frameworks that are stood in for."""
    from importlib import import_module

    name = f"tunesmith.deliver.runtime.{module}"
    for own, stand_in in stand_ins.items():
        monkeypatch.setitem(sys.modules, own.replace("__", "."), stand_in)
    monkeypatch.delitem(sys.modules, name, raising=False)
    found = import_module(name)
    monkeypatch.delitem(sys.modules, name)  # put back as it was; nobody gets this one
    return found


def module(name: str, **members) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(members)
    return made


@pytest.mark.parametrize(
    ("given", "ordinal"), [(None, 3), ("cuda", 3), ("cuda:0", 0), ("cuda:2", 2)]
)  # fmt: skip
def test_pytorchs_current_device_is_prepared_where_none_is_numbered(monkeypatch, given, ordinal) -> None:
    def device(text: str):
        number = text.partition(":")[2]
        return SimpleNamespace(index=int(number) if number else None)

    cuda = SimpleNamespace(init=lambda: None, current_device=lambda: 3)
    torch = module("torch", _C=SimpleNamespace(), cuda=cuda, device=device, uint8="uint8")
    own = with_modules(monkeypatch, "torch_op", torch=torch)
    prepared: list[int] = []
    monkeypatch.setattr(cuda_calls.CudaCalls, "prepare", lambda _, number: prepared.append(number))
    own.TorchCalls(operator()).prepare(given)
    assert prepared == [ordinal]


PACKED = np.dtype([("a", np.float16), ("tag", np.uint8)])


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (np.zeros((4, 16), ">f2"), TypeError, "input has its bytes in this machine's order, got >f2"),
        (np.zeros((4, 16), PACKED)["a"], ValueError, "input has steps of whole elements of 2 bytes"),
    ],
)  # fmt: skip
def test_cupys_arrays_that_elements_cannot_describe_are_refused(monkeypatch, x, error, words) -> None:
    class Array(np.ndarray):
        device = SimpleNamespace(id=0)

    own = with_modules(monkeypatch, "cupy_op", cupy=module("cupy", ndarray=np.ndarray))
    out = np.zeros((4, 8), np.float16).view(Array)
    with pytest.raises(error, match=words):
        own.CupyCalls(operator())(out, x.view(Array))


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch, driver: Driver):
    def view(array, stream_ptr):
        assert stream_ptr == -1
        known = {"dtype": "float16", "is_device_accessible": True, "ptr": array.place, "strides": None}
        return SimpleNamespace(shape=array.shape, device_id=array.device, **known)

    device = SimpleNamespace(device_id=1)
    core = module("cuda.core", Device=lambda: device, Stream=object)
    utils = module("cuda.core.utils", StridedMemoryView=view)
    stand_ins = {"cuda": module("cuda", core=core), "cuda__core": core, "cuda__core__utils": utils}
    return with_modules(monkeypatch, "cuda_core_op", **stand_ins)


def on_device(number: int) -> list[SimpleNamespace]:
    shapes = ((16, 64), (16, 128))
    return [SimpleNamespace(shape=s, device=number, place=n << 20) for n, s in enumerate(shapes)]


def stream_of(context: int) -> SimpleNamespace:
    """0: the default stream."""
    return SimpleNamespace(handle=10 * context)


@pytest.mark.parametrize("stream", [101, 0])
def test_a_stream_of_cuda_core_runs_in_the_arrays_context(core, driver: Driver, stream: int) -> None:
    calls = core.CudaCoreCalls(two_kernels())
    calls(stream_of(stream), *on_device(1))
    assert driver.launched == [(1, 101)]
    assert driver.current == 100


@pytest.mark.parametrize("context", [100, 777])
def test_a_stream_of_another_device_or_context_is_refused(core, driver: Driver, context: int) -> None:
    calls = core.CudaCoreCalls(two_kernels())
    with pytest.raises(ValueError, match=r"the arrays lie on device 1, the stream .*Device\(1\)\.create_str"):
        calls(stream_of(context), *on_device(1))
    assert (driver.launched, driver.current) == ([], 100)


def test_a_size_may_be_called_stream(core, driver: Driver) -> None:
    from dataclasses import replace

    from tunesmith.problem.problem import SizeRule

    own = dispatch(entries=(entry("1", "original.cu", None, binary=binary("original")),))
    own = replace(own, sizes=(*own.sizes, SizeRule("stream", 1, 9)))
    calls = core.CudaCoreCalls(Operator([delivered(own, {"original": b"original"})]))
    calls(stream_of(101), *on_device(1), stream=3)
    assert driver.launched == [(2, 101)]


def test_cuda_cores_current_device_is_prepared(core, driver: Driver) -> None:
    core.CudaCoreCalls(two_kernels()).prepare()
    assert driver.loaded == [(b"fast", 101), (b"original", 101)]
    assert driver.current == 100
