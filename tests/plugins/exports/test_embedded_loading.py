"""Machine code in a program is loaded when it can be, while a stream is captured too, by either interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.deliver.programs import read_program
from tests.plugins.exports.programs import ran
from tests.plugins.exports.silu import artefact, result, without_compiler
from tests.plugins.exports.test_tensor_call import CXX, INCLUDE, needs_compiler
from tunesmith.deliver.cuda.host import DRIVER, RUNTIME, CudaApi
from tunesmith.plugins.exports.cuda_cpp import embedded_host

pytestmark = [needs_compiler]

_DRIVER = read_program("loading-driver.cpp")
_RUNTIME = read_program("loading-runtime.cpp")
_MAIN = read_program("loading-program.cpp")
MEMORY, NO_CODE, NO_IMAGE = 2, 209, "error 209"  # the same numbers by both interfaces


@pytest.fixture(scope="module", params=["driver", "runtime"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    api: CudaApi = {"driver": DRIVER, "runtime": RUNTIME}[request.param]
    stub = {"driver": _DRIVER, "runtime": _RUNTIME}[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    with without_compiler():
        made = embedded_host(artefact(result(90)), api=api)
    (folder / "silu_and_mul.h").write_bytes(made.header)
    (folder / "silu_and_mul.cpp").write_bytes(made.source)
    (folder / "main.cpp").write_text(stub + _MAIN)
    command = [str(CXX), "-std=c++14", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
    ran([*command, "main.cpp", "silu_and_mul.cpp", "-o", "program"], folder)
    return folder / "program"


def told(program: Path, faults: int = 0, **errors: int) -> list[str]:
    given = {"FAULTS": str(faults), **{name: str(error) for name, error in errors.items()}}
    return ran([program], **given).stdout.splitlines()


LOAD = ["relaxed", "load", "as before"]
LAUNCH = "launch 17 of a kernel"


@pytest.mark.few(1)
def test_code_is_loaded_once_and_while_a_stream_is_captured(program: Path) -> None:
    # The general winner at the first call; what else may serve when it is prepared.
    assert told(program) == [*LOAD, LAUNCH, LAUNCH, LAUNCH, *LOAD, *LOAD, "ready"]


@pytest.mark.few(1)
def test_a_failure_that_may_pass_is_tried_again(program: Path) -> None:
    # The original serves once, or nothing; then the winner does.
    assert told(program, 1, LOADING=MEMORY) == [*LOAD, *LOAD, LAUNCH, *LOAD, LAUNCH, LAUNCH, *LOAD, "ready"]
    tried = told(program, 4, LOADING=MEMORY)
    twice = [*LOAD, *LOAD, NO_IMAGE]
    assert tried == [*twice, *twice, *LOAD, LAUNCH, *LOAD, *LOAD, "ready"]


@pytest.mark.few(1)
def test_a_library_without_a_use_is_not_kept(program: Path) -> None:
    unloaded = ["relaxed", "load", "unload", "as before"]
    tried = told(program, 1, LOOKING=MEMORY)
    assert tried == [*unloaded, *LOAD, LAUNCH, *LOAD, LAUNCH, LAUNCH, *LOAD, "ready"]


@pytest.mark.few(1)
def test_code_that_is_not_for_the_device_is_tried_once(program: Path) -> None:
    tried = told(program, 1, LOADING=NO_CODE)
    assert tried == [*LOAD, *LOAD, LAUNCH, LAUNCH, LAUNCH, *LOAD, "not ready"]
