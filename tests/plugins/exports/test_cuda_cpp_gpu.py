"""C++ exports, built here into a library and called on a GPU: which kernel served is seen in what it adds."""

from __future__ import annotations

import ctypes
import shutil
from dataclasses import replace

import pytest

from tests.frameworks import absent
from tests.plugins.exports import silu
from tests.plugins.exports.programs import ran
from tests.plugins.exports.torch_arrays import capability, close, empty, expected, given, torch
from tunesmith.plugins.exports.cuda_cpp import CPP, CUBIN

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
NVCC = shutil.which("nvcc")
if NVCC is None:
    absent("nvcc", "it is not on the PATH")

NO_BINARY_FOR_GPU = 209
SIZES = [(16, 64, 200), (40, 64, 100), (16, 63, 0)]  # tokens, d, and what the kernel that serves them adds


def built(target, made, folder):
    """The library that nvcc makes of what was exported."""
    silu.written(target.export(silu.artefact(made)).files, folder)
    sources = sorted(path.name for path in folder.iterdir() if path.suffix in (".cu", ".cpp"))
    sources = [name for name in sources if not name.startswith("example")]
    options = [f"-arch=sm_{capability()}", "-std=c++17", "-shared", "-Xcompiler", "-fPIC"]
    ran([NVCC, *options, *sources, "-o", "library.so", "-lcuda"], folder, 300)
    return ctypes.CDLL(str(folder / "library.so"))


@pytest.fixture(scope="module", params=[CPP, CUBIN], ids=["cpp", "cubin"])
def library(request, tmp_path_factory):
    return built(request.param, silu.result(capability()), tmp_path_factory.mktemp("library"))


def launch(library, out, x, stream=None):
    tokens, d = out.shape
    at = torch.cuda.current_stream().cuda_stream if stream is None else stream
    pointers = [ctypes.c_void_p(array.data_ptr()) for array in (out, x)]
    return library.silu_and_mul_launch(
        *pointers, ctypes.c_longlong(tokens), ctypes.c_longlong(d), ctypes.c_void_p(at)
    )


def arrays(tokens, d):
    return torch.zeros_like(empty(tokens, d)), given(tokens, d)


@pytest.mark.parametrize(("tokens", "d", "bonus"), SIZES)
def test_the_kernel_for_the_sizes_serves(library, tokens, d, bonus):
    out, x = arrays(tokens, d)
    assert launch(library, out, x) == 0
    close(out, expected(x, bonus))


def test_what_is_not_aligned_gets_the_original(library):
    whole, x = arrays(17, 64)
    out = whole.flatten()[1 : 1 + 16 * 64].view(16, 64)
    assert launch(library, out, x[:16]) == 0
    close(out, expected(x[:16]))


def test_a_graph_replays_it_with_new_inputs(library):
    out, x = arrays(16, 64)  # and with them a context, which the driver's own interface asks for
    assert library.silu_and_mul_prepare() == 1
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert launch(library, out, x) == 0
    for _ in range(2):
        x.normal_()
        graph.replay()
        close(out, expected(x, 200))


def test_on_a_device_that_no_run_was_made_on_the_driver_compiles_the_original(tmp_path, capfd):
    made = silu.result(80 if capability() > 80 else 75)
    library = built(CUBIN, made, tmp_path)
    for tokens, d, _ in SIZES:
        out, x = arrays(tokens, d)
        assert launch(library, out, x) == 0
        close(out, expected(x))
    assert capfd.readouterr().err.count("its original serves") == 1


def test_code_that_the_device_refuses_is_an_error(tmp_path):
    """That of another device under this one's name."""
    made, own = silu.result(75), f"sm_{capability()}"
    library = built(CUBIN, replace(made, dispatch=replace(made.dispatch, architecture=own)), tmp_path)
    out, x = arrays(16, 64)
    assert launch(library, out, x) == NO_BINARY_FOR_GPU
    assert not out.any()
