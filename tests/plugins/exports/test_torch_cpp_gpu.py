"""Operators in C++ for PyTorch, as vLLM takes them and as the package of the export `torch` builds them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import threading
from dataclasses import replace

import pytest

from tests.frameworks import absent, need
from tests.plugins.exports import operators, silu
from tests.plugins.exports.programs import ran
from tests.plugins.exports.torch_arrays import REFUSED, capability, close, empty, expected, given, torch
from tunesmith.plugins.exports import python_package, vllm

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
cpp_extension = need("torch.utils.cpp_extension")
if shutil.which("ninja") is None or shutil.which("g++") is None or cpp_extension.CUDA_HOME is None:
    absent("nvcc", "there is no ninja, no g++ or no CUDA toolkit here")


def imported(folder, name):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The module for vLLM, which builds what lies beside it."""
    folder = tmp_path_factory.mktemp("vllm")
    silu.written(vllm.TARGET.export(silu.artefact(silu.result(capability()))).files, folder)
    return imported(folder, "silu_and_mul_tuned")


@pytest.mark.parametrize(("tokens", "d", "bonus"), [(16, 64, 200), (33, 128, 100), (33, 12, 0), (1, 8, 100)])
def test_the_entry_for_the_sizes_serves(tuned, tokens, d, bonus):
    x = given(tokens, d)
    out = empty(tokens, d)
    assert tuned.silu_and_mul_tuned(out, x) is None
    close(out, expected(x, bonus))
    tuned.silu_and_mul_tuned_original(out, x)
    close(out, expected(x))


def test_compiled_code_sees_what_is_written(tuned):
    torch._dynamo.reset()

    @torch.compile(fullgraph=True)
    def layer(x):
        out = torch.zeros(x.shape[0], x.shape[1] // 2, device="cuda", dtype=torch.float16)
        tuned.silu_and_mul_tuned(out, x * 2)
        return out + 1

    for tokens in (16, 32, 48):
        x = given(tokens)
        close(layer(x), expected(x * 2, 201 if tokens == 16 else 101))


def test_a_graph_replays_it_with_new_inputs(tuned):
    x, out = given(64, 256), empty(64, 256)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tuned.silu_and_mul_tuned(out, x)
    x.copy_(given(64, 256) + 1)
    graph.replay()
    torch.cuda.synchronize()
    close(out, expected(x, 100))


def test_what_is_not_loaded_yet_may_be_captured(tuned):
    """In a process of its own: nothing was called before."""
    folder = os.path.dirname(tuned.__file__)
    code = (
        "import torch, silu_and_mul_tuned as t\n"
        "x = torch.ones(8, 64, device='cuda', dtype=torch.float16)\n"
        "y = torch.empty(8, 32, device='cuda', dtype=torch.float16); torch.cuda.synchronize()\n"
        "g = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(g):\n    t.silu_and_mul_tuned(y, x)\n"
        "g.replay(); torch.cuda.synchronize(); print(round(float(y[0, 0])))"
    )
    assert ran([sys.executable, "-c", code], folder).stdout.strip() == "101"


def test_it_is_queued_on_the_current_stream(tuned):
    x, out = given(4096), empty(4096)
    tuned.silu_and_mul_tuned(out, x)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda._sleep(50_000_000)
        tuned.silu_and_mul_tuned(out, x)
        ended = torch.cuda.Event()
        ended.record()
    assert not ended.query()
    torch.cuda.synchronize()


def test_a_new_thread_may_call_it(tuned):
    x, out = given(), empty()
    failed = []

    def work():
        try:
            tuned.silu_and_mul_tuned(out, x)
        except RuntimeError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failed
    torch.cuda.synchronize()
    close(out, expected(x, 200))


def test_arrays_as_they_were_not_verified_get_the_original(tuned):
    flat = torch.randn(16 * 128 + 1, device="cuda", dtype=torch.float16)
    x, out = flat[1:].view(16, 128), empty()
    tuned.silu_and_mul_tuned(out, x)
    close(out, expected(x))


def test_autograd_notices_what_is_written(tuned):
    out = empty()
    before = out._version
    tuned.silu_and_mul_tuned(out, given())
    assert out._version > before


def test_nothing_to_do_is_done(tuned):
    tuned.silu_and_mul_tuned(empty(0), empty(0, 128))


def test_pytorchs_own_check_passes(tuned):
    out = empty(24)
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(torch.ops._C.silu_and_mul_tuned.default, (out, given(24)), test_utils=tests)


@pytest.mark.parametrize(("make", "error", "words"), REFUSED)
def test_what_does_not_fit_is_refused(tuned, make, error, words):
    out = empty()
    with pytest.raises(error, match=words):
        tuned.silu_and_mul_tuned(out, make())
    tuned.silu_and_mul_tuned(out, given())
    close(out, expected(given(), 200))  # and the next call is as good as any


def test_on_a_device_that_no_run_was_made_on_the_original_serves_and_a_note_is_given_once(tmp_path, capfd):
    made = silu.result(80 if capability() > 80 else 75)
    artefact = silu.artefact(replace(made, dispatch=replace(made.dispatch, problem="silu_elsewhere")))
    silu.written(vllm.TARGET.export(artefact).files, tmp_path)
    module = imported(tmp_path, "silu_elsewhere_tuned")
    out = empty()
    for x in (given(), given() + 1):
        module.silu_elsewhere_tuned(out, x)
        close(out, expected(x))
        module.silu_elsewhere_tuned_original(out, x)
        close(out, expected(x))
    note = (
        f"silu_elsewhere was tuned on {made.dispatch.architecture}; on sm_{capability()} its original serves"
    )
    assert capfd.readouterr().err.count(note) == 1


def renamed():
    """Another name: what is registered stays, and other tests register the package."""
    made = silu.result(capability())
    return silu.artefact(replace(made, dispatch=replace(made.dispatch, problem="silu_native")))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """`_native` of both operators, built as `pip install` builds it."""
    folder = tmp_path_factory.mktemp("native")
    for artefact in (renamed(), operators.artefact(capability())):
        package = f"tuned_{artefact.name}"
        own = folder / artefact.name
        (own / package).mkdir(parents=True)
        (own / package / "__init__.py").write_text("import torch\nfrom . import _native\n")
        silu.written(python_package.native_files(artefact), own)
        ran([sys.executable, "setup.py", "build_ext", "--inplace"], own, 500, TUNESMITH_NATIVE="1")
        sys.path.insert(0, str(own))
    import tuned_silu_native
    import tuned_sum

    assert tuned_silu_native._native.prepare(torch.cuda.current_device())
    assert tuned_sum._native.prepare(torch.cuda.current_device())
    return torch.ops


def test_the_native_operators_serve(built):
    x = given()
    close(built.tuned_silu_native.silu_native(x), expected(x, 200))
    close(built.tuned_silu_native.silu_native_original(input=x), expected(x))
    out = empty()
    built.tuned_silu_native.silu_native_out(out, x)
    close(out, expected(x, 200))
    built.tuned_silu_native.silu_native_original_out(out, x)
    close(out, expected(x))


@pytest.mark.parametrize(("rows", "add"), [(4, 10), (100, 0)])
def test_workspaces_packed_types_sizes_and_scalars(built, rows, add):
    x = torch.full((rows, 5), 0x21, device="cuda", dtype=torch.uint8)  # 10 numbers: d = 4, the sum is 15
    seen = torch.zeros(1, device="cuda", dtype=torch.int32)
    out = built.tuned_sum.sum(x, seen, extra=3)
    assert out.dtype == torch.float32
    assert bool((out == 0.5 + 30 + 3 + add).all())
    assert int(seen) == rows
    assert bool((built.tuned_sum.sum(x, seen, extra=3, by=4.0) == 0.5 + 60 + 3).all())
    assert bool((built.tuned_sum.sum_original(x, seen, extra=3) == 0.5 + 30 + 3).all())
    with pytest.raises(ValueError, match="does not fit its type"):
        built.tuned_sum.sum(x, seen, extra=3, unused=1 << 40)
    with pytest.raises(RuntimeError, match="extra"):
        built.tuned_sum.sum(x, seen)


def test_without_what_it_needs_the_package_is_installed_without_it(tmp_path):
    silu.written(python_package.native_files(silu.artefact(silu.result(capability()))), tmp_path)
    (tmp_path / "tuned_silu_and_mul").mkdir()
    (tmp_path / "csrc" / "torch_op.cpp").write_text("#error not here\n")
    done = ran([sys.executable, "setup.py", "build_ext", "--inplace"], tmp_path, 500)
    assert "installed without _native" in done.stderr
