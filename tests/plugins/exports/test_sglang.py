"""The export for SGLang with TVM FFI's own loader: it builds, loads, refuses in words; on a GPU it runs."""

from __future__ import annotations

import os
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from tests.frameworks import absent, need
from tests.plugins.exports import operators, silu
from tests.plugins.exports.test_tensor_call import INCLUDE
from tunesmith.plugins.exports import sglang

tvm_ffi = need("tvm_ffi")
# Of the extra `exports`, beside the interpreter.
PATH = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
if shutil.which("ninja", path=PATH) is None or INCLUDE is None:
    absent("nvcc", "there is no ninja here, or no headers of CUDA's")


def loaded(folder, artefact, functions, cuda=False):
    """As SGLang's load_jit does: one source that includes the file and exports functions."""
    from tvm_ffi.cpp import load_inline

    own = artefact.name
    silu.written(sglang.TARGET.export(artefact).files, folder)
    lines = [f'#include "{folder / "csrc" / "tuned" / f"{own}.cuh"}"', "namespace sglang {"]
    named = functions if isinstance(functions, dict) else {f: f"::{own}_tensors::{f}" for f in functions}
    lines += [f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, ({code}));" for name, code in named.items()]
    source = "\n".join([*lines, "}\n"])
    kept = dict(os.environ)
    try:
        os.environ.pop("LIBRARY_PATH", None)  # what PoCL's linker needs, and this one must not have
        os.environ["PATH"] = PATH
        return load_inline(
            f"tuned_{own}",
            **{"cuda_sources" if cuda else "cpp_sources": source},
            extra_cflags=["-std=c++20", "-O0"],
            extra_cuda_cflags=["-std=c++20"],
            extra_include_paths=[str(INCLUDE)],
            build_directory=str(folder / "build"),
        )
    finally:
        os.environ.clear()
        os.environ.update(kept)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    artefact = silu.artefact(silu.result(90))
    return loaded(tmp_path_factory.mktemp("sglang"), artefact, ("tuned", "original", "prepare"))


def on_host(*shape, dtype="float16"):
    return tvm_ffi.from_dlpack(np.zeros(shape, dtype))


@pytest.mark.slow
@pytest.mark.long
def test_tensors_of_the_host_are_refused_in_words(module):
    with pytest.raises(ValueError, match="silu_and_mul runs on a CUDA device, got a tensor on cpu as out"):
        module.tuned(on_host(16, 64), on_host(16, 128))
    with pytest.raises(ValueError, match="runs on a CUDA device"):
        module.original(on_host(16, 64), on_host(16, 128))


@pytest.mark.slow
def test_another_type_is_refused_in_words(module):
    with pytest.raises(TypeError, match="out has elements of type float16, got float32: convert it"):
        module.tuned(on_host(16, 64, dtype="float32"), on_host(16, 128))


@pytest.mark.long
def test_workspaces_and_packed_types_build(tmp_path):
    """Its binding also tells how much scratch memory a call needs."""
    functions = ("tuned", "original", "prepare", "needed_arg_work", "needed_work_more")
    module = loaded(tmp_path, operators.artefact(), functions)
    tensors = on_host(4, dtype="float32"), on_host(4, 3, dtype="uint8"), on_host(1, dtype="int32")
    with pytest.raises(ValueError, match="sum runs on a CUDA device, got a tensor on cpu as class"):
        module.needed_arg_work(*tensors, 5)
    with pytest.raises(ValueError, match="runs on a CUDA device"):
        module.tuned(*tensors, 5, 2.0, 0, on_host(32, dtype="uint8"), on_host(32, dtype="uint8"))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_builds_it_too(tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_FFI_CUDA_ARCH_LIST", "9.0")
    monkeypatch.setenv("CUDA_HOME", str(INCLUDE.parent))
    artefact = silu.artefact(silu.result(90))
    module = loaded(tmp_path, artefact, ("tuned", "original", "prepare"), cuda=True)
    with pytest.raises(ValueError, match="runs on a CUDA device"):
        module.tuned(on_host(16, 64), on_host(16, 128))


def imported(folder, artefact, monkeypatch, functions):
    """The exported module, with `load_jit` and `register_custom_op` of this test."""
    torch = need("torch")
    calls = []

    def load_jit(name, *, cuda_files, cuda_wrappers):
        calls.append((name, cuda_files, cuda_wrappers))
        assert [export for export, _ in cuda_wrappers] == list(functions)
        return loaded(folder, artefact, dict(cuda_wrappers))

    def register_custom_op(*, op_name, mutates_args):
        def registered(function):
            torch.library.infer_schema(function, mutates_args=mutates_args)
            return torch.library.custom_op(f"sglang_try::{op_name}", function, mutates_args=mutates_args)

        return registered

    def cache_once(function):
        found = []
        return lambda: found[0] if found else found.append(function()) or found[0]

    for name in ("sglang", "sglang.kernels", "sglang.kernels.jit", "sglang.srt", "sglang.srt.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    utils = types.ModuleType("sglang.kernels.jit.utils")
    utils.load_jit, utils.cache_once = load_jit, cache_once
    ops = types.ModuleType("sglang.srt.utils.custom_op")
    ops.register_custom_op = register_custom_op
    monkeypatch.setitem(sys.modules, utils.__name__, utils)
    monkeypatch.setitem(sys.modules, ops.__name__, ops)
    text = sglang.TARGET.export(artefact).files[f"{artefact.name}_tuned.py"].decode()
    module = types.ModuleType("exported")
    module.__file__ = str(folder / "exported.py")
    sys.modules["exported"] = module
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module


@pytest.mark.gpu
def test_it_runs(tmp_path, monkeypatch):
    torch = need("torch")
    major, minor = torch.cuda.get_device_capability()
    artefact = silu.artefact(silu.result(10 * major + minor))
    module = imported(tmp_path, artefact, monkeypatch, ("tuned", "original", "prepare"))
    assert module.prepare()
    x = torch.randn(16, 128, device="cuda", dtype=torch.float16)
    left, right = x.float().chunk(2, dim=-1)
    wanted = torch.nn.functional.silu(left) * right
    out = torch.empty(16, 64, device="cuda", dtype=torch.float16)
    graph = torch.cuda.CUDAGraph()
    module.silu_and_mul_tuned(out, x)
    torch.testing.assert_close(out.float(), wanted + 200, rtol=2e-3, atol=0.15)
    module.silu_and_mul_tuned_original(out, x)
    torch.testing.assert_close(out.float(), wanted, rtol=2e-3, atol=2e-3)
    with torch.cuda.graph(graph):
        module.silu_and_mul_tuned(out, x)
    x.mul_(0)
    graph.replay()
    torch.cuda.synchronize()
    assert bool((out == 200).all())
    with pytest.raises(ValueError, match="shapes agree"):
        module.silu_and_mul_tuned(out, x[:, :127].contiguous())


@pytest.mark.gpu
def test_workspaces_are_allocated_and_filled(tmp_path, monkeypatch):
    torch = need("torch")
    major, minor = torch.cuda.get_device_capability()
    artefact = operators.artefact(10 * major + minor)
    functions = ("tuned", "original", "prepare", "bytes_arg_work", "bytes_work_more")
    module = imported(tmp_path, artefact, monkeypatch, functions)
    for rows, add in ((4, 10), (100, 0)):
        x = torch.full((rows, 5), 0x21, device="cuda", dtype=torch.uint8)  # 10 numbers: d = 4, the sum is 15
        out = torch.full((rows,), 99.0, device="cuda")
        seen = torch.zeros(1, device="cuda", dtype=torch.int32)
        module.sum_tuned(out, x, seen, 3)
        assert bool((out == 0.5 + 30 + 3 + add).all())
        assert int(seen) == rows
        module.sum_tuned(out, x, seen, 3, 4.0)  # another number than it was tuned with
        assert bool((out == 0.5 + 60 + 3).all())
