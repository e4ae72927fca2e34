"""The Python packages that exports write: their files, the runtime in them, and names of others."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.golden.archive import archive_of, read_archive
from tests.plugins.exports.programs import ran
from tests.plugins.exports.silu import ENTRY, artefact, result, written
from tunesmith.base.errors import BadInput
from tunesmith.deliver import runtime
from tunesmith.plugins.exports import python_package
from tunesmith.plugins.exports.python_package import runtime_text
from tunesmith.problem.dispatch import DispatchArgument

TARGETS = {"torch": python_package.TORCH, "cupy": python_package.CUPY, "cuda.core": python_package.CUDA_CORE}
MODULES = sorted(path.stem for path in Path(runtime.__file__).parent.glob("*.py"))
FRAMEWORKS = {
    "torch_op": {"torch"}, "cupy_op": {"cupy"}, "cuda_core_op": {"cuda"}, "opencl_op": {"numpy", "pyopencl"},
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_the_runtime_needs_nothing_but_python_and_what_its_name_says(name):
    tree = ast.parse(runtime_text(name), feature_version=(3, 9))
    allowed = sys.stdlib_module_names | FRAMEWORKS.get(name, set())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= allowed
        if isinstance(node, ast.ImportFrom):
            if node.level == 0:
                assert node.module.split(".")[0] in allowed
            else:
                assert node.level == 1
                assert {node.module, *(alias.name for alias in node.names)} & set(MODULES)


@pytest.mark.parametrize("name", TARGETS)
def test_a_package_holds_the_runtime_as_it_is(name):
    files = TARGETS[name].write(artefact(result(90, binaries=False)))
    held = {Path(path).stem: data.decode() for path, data in files.items() if "/_runtime/" in path}
    assert "operator" in held
    assert held == {name: runtime_text(name) for name in held}


def test_all_python_that_exports_write_is_python():
    """Of all exports that are kept: modules, and the calls that READMEs of packages show."""
    seen = Counter()
    for name, data in read_archive(archive_of("exports")).items():
        # The output of `sum` is called class, which a README shows as it is.
        is_readme = name.endswith(".md") and name.split("/")[0] in TARGETS and "/sum/" not in name
        code = re.findall(r"```python\n(.*?)```", data.decode(), re.DOTALL) if is_readme else []
        for text in [data.decode()] if name.endswith(".py") else code:
            ast.parse(text)
            seen["code"] += 1
        if name.endswith("pyproject.toml"):
            assert tomllib.loads(data.decode())["project"]["name"]
            seen["projects"] += 1
    assert seen["code"] > 40
    assert seen["projects"] > 10


def test_modules_that_need_no_framework_load_beside_nothing_else(tmp_path):
    files = python_package.CUPY.write(artefact(result(90, binaries=False)))
    written(files, tmp_path)
    code = (
        "import sys; sys.path.insert(0, '.'); import importlib.util as u, types\n"
        "p = types.ModuleType('own'); p.__path__ = ['tuned_silu_and_mul/_runtime']; sys.modules['own'] = p\n"
        "from own.operator import Operator, delivered_in; from own import cuda_calls\n"
        "o = Operator([delivered_in('tuned_silu_and_mul/data/0')]); cuda_calls.CudaCalls(o)\n"
        "assert 'tunesmith' not in sys.modules and 'numpy' not in sys.modules; print(o.signature.sizes)"
    )
    assert ran([sys.executable, "-S", "-c", code], tmp_path).stdout.strip() == "('tokens', 'd')"


@pytest.mark.parametrize("name", TARGETS)
def test_names_of_others_stay_text(name):
    own = result(90, binaries=False)
    hostile = replace(own.dispatch, problem='a"""\nimport os # {x}', device="`<b>*x*\n# y")
    files = TARGETS[name].write(artefact(replace(own, dispatch=hostile)))
    (package,) = {path.split("/")[0] for path in files if path.endswith("/__init__.py")}
    assert package.isidentifier()
    module = files[f"{package}/__init__.py"]
    assert b"import os #" not in module
    compile(module, "m", "exec")
    tomllib.loads(files["pyproject.toml"].decode())
    assert "\n# y" not in files["README.md"].decode()


def test_a_name_that_python_does_not_take_is_refused():
    own = result(90, binaries=False)
    wrong = (*own.dispatch.arguments, DispatchArgument("a b", "int32", "scalar", value=1))
    with pytest.raises(BadInput, match="'a b', which is no name in Python"):
        python_package.TORCH.write(artefact(replace(own, dispatch=replace(own.dispatch, arguments=wrong))))


@needs_nvrtc
def test_the_layout_of_a_launch_is_the_drivers():
    """Sizes and offsets by cuda.h: 56 bytes with the stream at 32, attributes of 72 with their value at 8."""
    import ctypes

    from cuda.bindings import driver as cu

    from tunesmith.deliver.runtime import cuda_driver as own

    config, attribute = own.LaunchConfig, own.LaunchAttribute
    places = [getattr(config, field).offset for field, _ in config._fields_]
    assert (ctypes.sizeof(config), places) == (56, [0, 12, 24, 32, 40, 48])
    assert (ctypes.sizeof(attribute), attribute.value.offset) == (72, 8)
    numbers = cu.CUlaunchAttributeID
    assert own.CLUSTER_DIMENSION == numbers.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    assert own.COOPERATIVE == numbers.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    serial = numbers.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    assert serial == own.PROGRAMMATIC_STREAM_SERIALIZATION
    of_function = cu.CUfunction_attribute
    shared = of_function.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    cluster = of_function.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    assert shared == own.MAX_DYNAMIC_SHARED_SIZE_BYTES
    assert cluster == own.NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    assert cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED == own._RELAXED
    theirs = cu.CUlaunchConfig()
    theirs.gridDimX, theirs.blockDimZ, theirs.sharedMemBytes, theirs.numAttrs = 7, 5, 3, 0
    mine = config.from_address(theirs.getPtr())
    assert (mine.grid[0], mine.block[2], mine.shared, mine.count) == (7, 5, 3, 0)


@needs_nvrtc
def test_the_runtime_compiles_what_has_no_binary():
    from tunesmith.deliver.cuda.original_ptx import builds_of
    from tunesmith.deliver.runtime import cuda_calls, cuda_driver
    from tunesmith.deliver.runtime.manifest import read_dispatch
    from tunesmith.deliver.runtime.operator import Delivered

    own = result(90, binaries=True)
    read = read_dispatch(own.files["dispatch.json"])
    delivered = Delivered(read, own.files.__getitem__, builds_of(own.dispatch.entries, own.files, "sm_90"))
    before = cuda_driver.driver_version
    cuda_driver.driver_version = lambda: (99, 0)  # there is no driver here to ask
    try:
        code, symbols = cuda_calls.compiled(delivered, read.original, (ENTRY,), "sm_90")
    finally:
        cuda_driver.driver_version = before
    assert code.startswith(b"\x7fELF")
    assert symbols == read.original.symbols
    assert symbols[ENTRY].encode() in code


@needs_nvrtc
def test_a_source_that_does_not_compile_is_shown_with_its_log():
    from tunesmith.deliver.runtime.nvrtc import CompileError, compile_source

    with pytest.raises(CompileError, match=r"(?s)does not compile k\.cu for sm_90.*nonsense"):
        compile_source("nonsense;", "k.cu", (), "sm_90")
