"""The export for PyTorch, from its files, on a GPU: eager, compiled, captured, and what it refuses."""

from __future__ import annotations

import importlib
import sys
import threading
import warnings

import pytest

from tests.frameworks import absent, need
from tests.plugins.exports.programs import ran
from tests.plugins.exports.silu import artefact, result, written
from tests.plugins.exports.torch_arrays import REFUSED, capability, close, empty, expected, given, torch
from tunesmith.deliver.runtime.operator import Operator, delivered_in
from tunesmith.plugins.exports import python_package

pytestmark = pytest.mark.gpu


def exported(target, folder, made=None) -> str:
    """Where the data of the one result lie."""
    written(target.write(artefact(made or result(capability()))), folder)
    return str(folder / "tuned_silu_and_mul" / "data" / "0")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    written(python_package.TORCH.write(artefact(result(capability()))), folder)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("tuned_silu_and_mul")
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize(
    ("tokens", "d", "bonus"), [(16, 64, 200), (33, 128, 100), (33, 12, 0), (2048, 1024, 0), (1, 8, 100)]
)
def test_the_entry_for_the_sizes_serves(package, tokens, d, bonus):
    x = given(tokens, d)
    close(package.silu_and_mul(x), expected(x, bonus))
    close(package.original(x), expected(x))
    out = empty(tokens, d)
    assert package.silu_and_mul_out(out, x) is None
    close(out, expected(x, bonus))
    package.original_out(out, x)
    close(out, expected(x))


def test_the_same_by_its_name_in_torch_ops(package):
    x = given()
    close(torch.ops.tuned_silu_and_mul.silu_and_mul(input=x), expected(x, 200))


def test_repeated_calls_with_other_arrays(package):
    for _ in range(5):
        x = torch.randn(16, 128, device="cuda", dtype=torch.float16)
        close(package.silu_and_mul(x), expected(x, 200))


def test_it_is_queued_on_the_current_stream(package):
    stream = torch.cuda.Stream()
    x = given(4096, 64)
    package.prepare()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late = x * 1
        found = package.silu_and_mul(late)
        ended = torch.cuda.Event()
        ended.record()
    assert not ended.query()
    stream.synchronize()
    close(found, expected(x, 100))


def test_a_graph_replays_it_with_new_inputs(package):
    x = given(64, 256)
    out = empty(64, 256)
    package.prepare()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        package.silu_and_mul_out(out, x)
        again = package.silu_and_mul(x)
    x.copy_(given(64, 256) + 1)
    graph.replay()
    torch.cuda.synchronize()
    close(out, expected(x, 100))
    close(again, expected(x, 100))


def test_what_is_not_loaded_yet_may_be_captured(tmp_path):
    """In a process of its own, with nothing prepared."""
    written(python_package.TORCH.write(artefact(result(capability(), binaries=False))), tmp_path)
    code = (
        "import torch, tuned_silu_and_mul as t\n"
        "x = torch.ones(8, 64, device='cuda', dtype=torch.float16); torch.cuda.synchronize()\n"
        "g = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(g):\n    y = t.silu_and_mul(x)\n"
        "g.replay(); torch.cuda.synchronize(); print(round(float(y[0, 0])))"
    )
    assert ran([sys.executable, "-c", code], tmp_path).stdout.strip() == "101"


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_code_calls_it(package, dynamic):
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, dynamic=dynamic)
    def layer(x):
        return package.silu_and_mul(x * 2) + 1

    for tokens in (16, 32, 48):
        x = given(tokens, 64)
        close(layer(x), expected(x * 2, 201 if tokens == 16 else 101))


def test_compiled_code_sees_what_is_changed_in_place(package):
    torch._dynamo.reset()

    @torch.compile(fullgraph=True)
    def layer(x):
        out = torch.zeros(x.shape[0], x.shape[1] // 2, device="cuda", dtype=torch.float16)
        package.silu_and_mul_out(out, x)
        return out * 2

    x = given(32, 64)
    close(layer(x), 2 * expected(x, 100))


def test_operators_pass_pytorchs_own_check(package):
    x = given(24, 64)
    out = empty(24)
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(torch.ops.tuned_silu_and_mul.silu_and_mul.default, (x,), test_utils=tests)
    torch.library.opcheck(torch.ops.tuned_silu_and_mul.silu_and_mul_out.default, (out, x), test_utils=tests)


def test_a_misaligned_view_gets_the_original(package):
    flat = torch.randn(16 * 128 + 1, device="cuda", dtype=torch.float16)
    x = flat[1:].view(16, 128)
    assert x.data_ptr() % 16
    close(package.silu_and_mul(x), expected(x))


def test_arrays_that_overlap_get_the_original(package):
    memory = torch.randn(23 * 128, device="cuda", dtype=torch.float16)
    x, out = memory[: 16 * 128].view(16, 128), memory[15 * 128 : 15 * 128 + 16 * 64].view(16, 64)
    before = x[:15].clone()  # rows that are not written before they are read
    package.silu_and_mul_out(out, x)
    torch.cuda.synchronize()
    close(out[2:15], expected(before)[2:15])


def test_sizes_outside_the_contract_get_the_original(package):
    x = given(65537, 8)
    close(package.silu_and_mul(x), expected(x))


def test_nothing_to_do_is_done(package):
    assert package.silu_and_mul(empty(0, 128)).shape == (0, 64)


@pytest.mark.parametrize(("make", "error", "words"), REFUSED)
def test_what_does_not_fit_is_refused(package, make, error, words):
    with pytest.raises(error, match=words):
        package.silu_and_mul(make())
    x = given()
    close(package.silu_and_mul(x), expected(x, 200))  # and the next call is as good as any


def test_an_output_of_another_shape_is_refused(package):
    with pytest.raises(ValueError, match="shapes agree"):
        package.silu_and_mul_out(empty(16, 63), given())


def test_threads_may_call_it_at_once(package):
    faults = []

    def work(number):
        try:
            x = given(16 + number, 64)
            for _ in range(50):
                close(package.silu_and_mul(x), expected(x, 100 if number else 200))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_an_unknown_device_gets_the_original_compiled_here(tmp_path):
    """As where the result is another architecture's: what is compiled is the original, and one warning."""
    from tunesmith.deliver.runtime.torch_op import TorchCalls

    other = 100 if capability() != 100 else 90
    folder = exported(python_package.TORCH, tmp_path, result(other, binaries=False))
    calls = TorchCalls(Operator([delivered_in(folder)]))
    x = given()
    with pytest.warns(RuntimeWarning, match="its original serves"):
        close(calls(x), expected(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(calls(given(32, 64)), expected(given(32, 64)))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is one GPU")
def test_a_second_device_is_used_where_the_arrays_lie(package):
    x = given().to("cuda:1")
    close(package.silu_and_mul(x).to("cuda:0"), expected(given(), 200))


def test_cupys_arrays(tmp_path):
    cupy = need("cupy")
    from tunesmith.deliver.runtime.cupy_op import CupyCalls

    folder = exported(python_package.CUPY, tmp_path)
    calls = CupyCalls(Operator([delivered_in(folder)]))
    x = given()
    found = calls(cupy.from_dlpack(x))
    close(torch.from_dlpack(found), expected(x, 200))
    with pytest.raises(TypeError, match=r"cupy\.asarray"):
        calls(x)


def test_arrays_on_a_stream_of_cuda_core(tmp_path):
    core = need("cuda.core")
    if not hasattr(core, "Device"):
        absent("cuda.core", "before 0.5 it is elsewhere")
    from tunesmith.deliver.runtime.cuda_core_op import CudaCoreCalls

    folder = exported(python_package.CUDA_CORE, tmp_path)
    calls = CudaCoreCalls(Operator([delivered_in(folder)]))
    device = core.Device()
    device.set_current()
    x, out = given(), empty()
    torch.cuda.synchronize()
    stream = device.create_stream()
    calls(stream, out, x)
    stream.sync()
    close(out, expected(x, 200))
