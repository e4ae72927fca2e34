"""Run.kernel over a run's own folder, and `bench` where there is nothing to time with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tunesmith
from tests.core.deliver.runtime.test_opencl_op import ARGUMENTS, SOURCE, expected, one
from tests.opencl_here import needs_opencl
from tests.plugins.exports.silu import result
from tests.samples import DEVICE
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.base.text import sha256_hex
from tunesmith.deliver.certificate import Certificate
from tunesmith.plugins.studies import bench_calls
from tunesmith.plugins.studies.bench_calls import BenchedWay, notes_of
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.problem import SizeRule
from tunesmith.run.figures import Figure
from tunesmith.run.journal import ChainHead
from tunesmith.session.progress import listener_of
from tunesmith.session.result import Run


def folder_with(files: dict[str, bytes], folder: Path) -> Path:
    (folder / "tuned").mkdir(parents=True)
    for name, data in files.items():
        (folder / "tuned" / name).write_bytes(data)
    digests = {f"tuned/{name}": sha256_hex(data) for name, data in files.items()}
    known: dict[str, Any] = dict.fromkeys(Certificate.__dataclass_fields__, "")
    known |= {
        "claims": (), "general": None, "verified": (), "journal": ChainHead(0, ""), "inputs": {},
        "templates": {},
        "files": digests, "seed": 0, "device": DEVICE, "versions": {}, "version": 1,
    }  # fmt: skip
    (folder / "certificate.json").write_bytes(encode_json(Certificate(**known)))
    return folder


def a_run(
    folder: Path, *, finished: bool = True, gained: float | None = 1.5, language: str = "opencl"
) -> Run:
    report: Any = SimpleNamespace(
        finished=finished, tuned=("tuned/k.cl",), general=None, workloads=(),
        figure=Figure(gained, gained, gained) if gained is not None else None,
        problem="scaled", language=language,
    )  # fmt: skip
    return Run(report, folder, "tunesmith resume x")


@pytest.fixture
def opencl_folder(tmp_path: Path) -> Path:
    cl = pytest.importorskip("pyopencl")
    names = [d.name.strip() for p in cl.get_platforms() for d in p.get_devices()]
    entries = (one("n <= 500", 100, {"B": 1}), one("1", 0, None))
    sizes = (SizeRule("n", 1, 1000),)
    made = Dispatch("scaled", "opencl", names[0], entries, arguments=ARGUMENTS, sizes=sizes)
    return folder_with({"dispatch.json": encode_json(made), "k.cl": SOURCE.encode()}, tmp_path / "run")


@needs_opencl
def test_the_tuned_operator_is_called(opencl_folder):
    run, x = a_run(opencl_folder), np.arange(100, dtype=np.float32)
    np.testing.assert_allclose(run.kernel(x), expected(x))
    y = np.zeros_like(x)
    assert run.kernel(y, x=x, scale=3.0) is y
    np.testing.assert_allclose(y, expected(x, 3.0, bonus=0))


@needs_opencl
def test_a_run_without_winners_gives_the_original_and_says_so(opencl_folder):
    x = np.arange(600, dtype=np.float32)
    with pytest.warns(RuntimeWarning, match="found nothing better, the original serves every call"):
        np.testing.assert_allclose(a_run(opencl_folder, gained=None).kernel(x), expected(x, bonus=0))


def test_a_run_that_is_not_finished_is_refused(tmp_path):
    with pytest.raises(BadInput, match="not finished") as caught:
        a_run(tmp_path, finished=False).kernel(np.zeros(3))
    assert caught.value.hint == "go on with: tunesmith resume x"


@pytest.mark.parametrize("name", ["dispatch.json", "original.cu"])
def test_a_file_that_was_changed_is_not_used(tmp_path, name):
    folder = folder_with(dict(result(90, binaries=False).files), tmp_path / "run")
    with (folder / "tuned" / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(BadInput, match=f"tuned/{name} was changed: it is not what the run's cert"):
        a_run(folder).kernel(np.zeros(3))
    (folder / "tuned" / name).unlink()
    with pytest.raises(BadInput, match=f"tuned/{name} is missing"):
        a_run(folder).kernel(np.zeros(3))


def test_a_run_without_a_certificate_is_refused(tmp_path):
    with pytest.raises(BadInput, match="certificate cannot be read"):
        a_run(tmp_path).kernel(np.zeros(3))


def test_arrays_of_another_kind_are_refused(tmp_path):
    folder = folder_with(dict(result(90, binaries=False).files), tmp_path / "run")
    with pytest.raises(TypeError, match="silu_and_mul is a cuda kernel: pass PyTorch tensors or CuPy arrays"):
        a_run(folder).kernel(np.zeros(3))
    with pytest.raises(TypeError, match="no array is passed"):
        a_run(folder).kernel(3, [4.0])


# -- bench --------------------------------------------------------------------------------------------------


def way(name: str, before: float, after: float, host: float, low: float) -> BenchedWay:
    return BenchedWay(name, before, after, before / after, (low, low + 0.1), host, host)


def test_a_win_smaller_than_the_cost_of_a_call_is_said_plainly():
    ways = (way("eager PyTorch", 12.0, 12.0, 12.0, 0.95), way("CUDA graph", 6.0, 4.0, 1.0, 1.4))
    (note,) = notes_of("small", 1.5, ways)
    assert note == (
        "small: the kernel's win of 2.0 µs is smaller than the 12.0 µs that the host needs for a call "
        "(eager PyTorch): it is not seen there"
    )
    assert notes_of("small", 1.5, (way("eager PyTorch", 60.0, 40.0, 12.0, 1.4), ways[1])) == ()
    assert (
        "no gain is seen with CUDA graph, 1.00×"
        in notes_of("small", 1.5, (way("CUDA graph", 9, 9, 1, 0.9),))[0]
    )
    assert "the original serves" in notes_of("small", None, ways)[0]


def test_without_pytorch_or_a_gpu_the_device_is_missing(tmp_path):
    pytest.importorskip("numpy")
    if _has_torch_and_cuda():
        pytest.skip("there is a GPU here")
    folder = folder_with(dict(result(90, binaries=False).files), tmp_path / "run")
    with pytest.raises(DeviceMissing, match=r"PyTorch") as caught:
        bench_calls.bench_run(folder, listener_of(None))
    assert caught.value.exit_code == 5


def _has_torch_and_cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def test_a_run_that_is_not_finished_is_not_benched(tmp_path):
    with pytest.raises(BadInput, match="not finished"):
        tunesmith.bench(a_run(tmp_path, finished=False))


def test_a_worker_that_takes_too_long_is_ended(tmp_path):
    folder = folder_with(dict(result(90, binaries=False).files), tmp_path / "run")
    with pytest.raises(BadInput, match="longer than 0 s and was ended"):
        bench_calls.bench_run(folder, listener_of(None), 0.01)


@pytest.mark.long
def test_pairs_are_compared_in_alternation():
    from tunesmith.plugins.studies import bench_calls

    order: list[str] = []

    def busy(name: str, turns: int):
        def call() -> None:
            order.append(name)
            sum(range(turns))

        return call

    before, after = busy("a", 20_000), busy("b", 5_000)
    found = bench_calls._compare_calls("here", before, after, lambda: None)
    assert found.ratio > 1.5
    assert found.interval[0] <= found.ratio <= found.interval[1]
    assert found.original_us > found.tuned_us > 0
    assert 0 < found.tuned_host_us <= 2 * found.tuned_us
