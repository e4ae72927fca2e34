"""The export for Kernel Tuner: a script that says what the template says, T4 files, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.deliver.shown.deliveries import cuda_for_tuner, referenced
from tests.frameworks import need
from tests.opencl_here import needs_opencl
from tests.plugins.exports.tuner_results import OWN, before_launch, changed, export, problem_with, won, won_as
from tests.running import EXAMPLES
from tests.samples import DEVICE, TEMPLATE, a_template, config, outcome, state_of
from tunesmith.backends.opencl import pocl_environment
from tunesmith.base.errors import BadInput
from tunesmith.problem.template import Template, configs_of
from tunesmith.run.events import Attached, Stopped
from tunesmith.run.t4 import rows_of_t4
from tunesmith.session.problems import load_problem, load_template
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import Constraint


def script(files: dict[str, bytes], folder: Path) -> dict[str, Any]:
    """The names of the script, run as a module: nothing of it needs Kernel Tuner until something is tuned."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    namespace: dict[str, Any] = {"__file__": str(folder / "tune.py"), "__name__": "tune"}
    exec(compile(files["tune.py"], "tune.py", "exec"), namespace)
    return namespace


def accepted(own: dict[str, Any], workload: str) -> set[tuple[int, ...]]:
    """As Kernel Tuner finds them: all combinations that the restrictions let pass."""
    parameters = own["with_block_parameters"](workload, own["PARAMETERS"])
    allowed = own["restrictions_at"](workload, list(parameters))
    count = len(own["PARAMETERS"])
    found = [values[:count] for values in product(*parameters.values()) if allowed(*values)]
    assert len(found) == len(set(found)), "the block follows from the parameters"
    return set(found)


def test_t4_files_are_read_back(tmp_path: Path) -> None:
    rows = dict(rows_of_t4(export()["t4-results-wide.json"].decode(), a_template(OWN), "f").rows)
    assert rows[config(128)] is None
    assert rows[config(32)] == pytest.approx(np.log(4.0) + rows[config(64)])  # type: ignore[operator]


def test_the_script_leaves_out_what_failed(tmp_path: Path) -> None:
    own = script(export(), tmp_path)
    assert own["sides"](own["GRID"], {"rows": 16, "d": 256, "BLOCK": 64, "VEC": 2}) == [32, 1, 1]
    assert (128, 1) not in accepted(own, "wide")
    assert (256, 1) in accepted(own, "wide")


@pytest.mark.parametrize("name", ["rmsnorm", "silu_and_mul", "softmax", "transpose"])
def test_restrictions_accept_what_the_space_accepts(name: str, tmp_path: Path) -> None:
    problem, files = load_problem(EXAMPLES / "opencl" / name)
    template = load_template(EXAMPLES / "opencl" / name / "template.cl", problem, files)
    first = {w.name: 0.5 for w in problem.workloads}
    state = state_of(outcome(0, template.default, first), Stopped("done"), original=dict.fromkeys(first, 1.0))
    own = script(export(problem, template, state), tmp_path)
    for workload in problem.workloads:
        one = replace(problem, workloads=(workload,))
        legal = {tuple(v for _, v in c.items) for c in configs_of(one, template, DEVICE)}
        assert legal
        assert accepted(own, workload.name) == legal


def test_what_has_no_value_or_asks_the_device_is_restricted_alike(tmp_path: Path) -> None:
    space = a_template(OWN).space
    for text in ("BLOCK // (VEC - 1) > 32", "d % (BLOCK - 64) == 0 or VEC == 2", "BLOCK <= device.sms * 8"):
        template = replace(
            a_template(OWN), space=replace(space, constraints=(Constraint("odd", parse_expr(text)),))
        )
        legal = template.space.configs([{"rows": 16, "d": 256}], DEVICE.limits.names())
        own = script(export(template=template), tmp_path)
        failed = set(own["FAILED"]["small"])
        assert accepted(own, "small") == {tuple(v for _, v in c.items) for c in legal} - failed


def test_a_block_that_is_an_expression_becomes_a_parameter(tmp_path: Path) -> None:
    text = changed('block = ["BLOCK"]', 'block = ["BLOCK // 32", "VEC", "VEC"]')
    own = script(export(template=text), tmp_path)
    parameters = own["with_block_parameters"]("small", own["PARAMETERS"])
    assert parameters["block_size_x"] == [1, 2, 4, 8]
    assert parameters["block_size_z"] == [1, 2, 4]
    assert len(accepted(own, "small")) == 10


def test_kernel_tuner_may_call_the_restrictions_in_any_of_its_ways(tmp_path: Path) -> None:
    own = script(export(), tmp_path)
    parameters = own["with_block_parameters"]("small", own["PARAMETERS"])
    allowed = own["restrictions_at"]("small", list(parameters))
    for values in product(*parameters.values()):
        named = dict(zip(parameters, values, strict=True))
        assert allowed(*values) == allowed(named) == allowed(**named)


def test_sizes_that_are_baked_in_become_defines(tmp_path: Path) -> None:
    text = before_launch("[defines]", 'D = "d // (VEC - 2)"')
    own = script(export(template=changed("int k =", "int k = D +", text)), tmp_path)
    assert own["DEFINES"]["D"]({"d": 2048, "VEC": 4}) == 1024
    assert {vec for _, vec in accepted(own, "wide")} == {1, 4}, "where it has no value nothing runs"


def test_names_from_outside_stay_texts(tmp_path: Path) -> None:
    evil = '"""\nraise SystemExit(7)\n"""'
    problem = replace(OWN, name=evil)
    assert script(export(problem), tmp_path)["PROBLEM"] == evil


def test_arguments_are_made_as_the_problem_says(tmp_path: Path) -> None:
    problem = problem_with(
        'shape = ["rows", "d"]', 'shape = ["rows", "d"]\nstrides = ["d + 8", "1"]\ninit = 3'
    )
    own = script(export(problem), tmp_path)
    found, arrays = own["host_values"]("small")
    assert found["out"].size == 15 * 264 + 256
    assert set(found["out"]) == {3.0}
    assert arrays["out"].shape == (16, 256)
    assert (found["x"].dtype, found["x"].size) == (np.float32, 4096)
    assert (found["rows"], type(found["d"])) == (16, np.int32)


def judged(own: dict[str, Any], name: str, got: Any, expected: Any, **others: Any) -> bool:
    rules = next(a for a in own["ARGUMENTS"] if a["name"] == name) | others
    return bool(own["is_right"](rules, np.asarray(got, np.float32), np.asarray(expected)))


def test_outputs_are_judged_by_the_problem_s_tolerance(tmp_path: Path) -> None:
    own = script(export(), tmp_path)
    rule = {"rtol": 1e-3, "atol": 0.0}
    assert judged(own, "out", [1.0, np.nan, np.inf], [1.0005, np.nan, 1e300], **rule)
    assert not judged(own, "out", [1.0], [1.002], **rule)
    assert not judged(own, "out", [np.nan], [1.0], **rule)
    assert not judged(own, "out", [np.inf], [1.0], **rule)
    assert not judged(own, "out", [1.0], [np.inf], **rule)
    assert not judged(own, "out", [1.0], [1.0000001], compare="exact")
    codes = {"compare": "codes", "kind": "int", "bounds": (-8, 7), "atol": 0.01, "rtol": 0.0}
    assert judged(own, "out", [3, 7, 4], [3.4, 90.0, 3.495], **codes)
    assert not judged(own, "out", [4], [3.4], **codes)


def test_a_reference_is_called_with_what_it_asks_for(tmp_path: Path) -> None:
    files = export(referenced())
    assert "original.cl" not in files
    own = script(files, tmp_path)
    found, arrays = own["host_values"]("small")
    wanted = own["expected_at"]("small", found, arrays, {})
    assert np.array_equal(wanted["out"].ravel(), 2 * found["x"].astype(np.float64))


LAUNCH = '// [launch]\n// grid = ["ceildiv(rows * d, BLOCK * VEC)"]\n// block = ["BLOCK"]\n'
TWICE = "".join(f"// [[launch]]\n{LAUNCH.partition(chr(10))[2]}" for _ in range(2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: export(template=changed(LAUNCH, TWICE)), "tunes one launch, this has 2"),
        (
            lambda: export(template=before_launch('few = "resources.registers < 9"')),
            "requires 'resources.registers < 9', which only a build can tell",
        ),
        (lambda: export(template=launched(cluster=())), "has no launches in clusters"),
        (lambda: export(template=launched(cooperative=True)), "has no cooperative launches"),
        (
            lambda: export(template=before_launch("[build]", 'flags = ["-cl-x={VEC}"]')),
            "with the same flags",
        ),
        (
            lambda: export(problem_with('"x"\ntype = "float32*"', '"x"\ntype = "int4*"')),
            "argument x has packed elements, int4",
        ),
        (
            lambda: export(template=replace(a_template(OWN), workspace=(replace(OUT, init=0.0),))),
            "workspace out is filled before every call",
        ),
        (lambda: export(template=TEMPLATE.replace("VEC", "time"), state=won_as("time")), "called time"),
        (lambda: export(state=state_of(outcome(0, config(32), {"small": 1.0}))), "has not finished"),
        (lambda: export(replace(OWN, kernel=replace(OWN.kernel, language="fake"))), "this kernel is fake"),
        (
            lambda: export(state=won(Attached(DEVICE, "nvcc 13.0", 0))),
            "compiles with NVRTC, this run compiled with nvcc 13.0",
        ),
        (
            lambda: export(template=changed('"d % (8 * VEC) == 0"', f'"d * {2**50} * VEC > 0"')),
            "may exceed 2**62",
        ),
    ],
)  # fmt: skip
def test_what_kernel_tuner_has_no_words_for_is_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(BadInput) as told:
        make()
    assert words in told.value.message
    assert told.value.hint


OUT = replace(OWN.argument("out"), role="workspace")


def launched(**others: Any) -> Template:
    """OpenCL has no such launches, so that a file cannot ask for them."""
    template = a_template(OWN)
    (launch,) = template.launches
    own = {key: launch.block if key == "cluster" else value for key, value in others.items()}
    return replace(template, launches=(replace(launch, **own),))


def test_cuda_has_its_options_headers_and_shared_memory(tmp_path: Path) -> None:
    problem, own, state = cuda_for_tuner()
    names = script(files := export(problem, own, state), tmp_path)
    assert "include/cstdint" in files
    assert names["INCLUDE"] == ["include"]
    assert names["OPTIONS"] == ["--std=c++17", "--use_fast_math"]
    assert names["LANGUAGE"] == "NVCUDA"
    assert {block for block, _ in accepted(names, "wide")} == {32}, "more than 48 KiB are not to be had"
    with pytest.raises(BadInput, match="takes 65536 bytes of dynamic shared memory"):
        export(problem, own.replace("1024 *", "2048 *"), state)


REAL = """\
__kernel void scale(__global float* out, __global const float* x, int rows, int d) {
    for (int i = get_global_id(0); i < rows * d; i += get_global_size(0)) out[i] = 2 * x[i];
}
"""


@needs_opencl
@pytest.mark.long
@pytest.mark.parametrize("factor", ["2", "BLOCK == 64 ? 3 : 2"])
def test_kernel_tuner_tunes_it_and_checks_against_the_original(factor: str, tmp_path: Path) -> None:
    jsonschema, file_utils = need("jsonschema"), need("kernel_tuner.file_utils")
    problem = problem_with('name = "scale"', 'name = "scale"', REAL)
    head = TEMPLATE[: TEMPLATE.index("__kernel")]
    files = export(problem, head + REAL.replace("= 2 *", f"= ({factor}) *"))
    script(files, tmp_path)
    for name, target in (("t4-results-small.json", "results"), ("t4-metadata.json", "metadata")):
        jsonschema.validate(json.loads(files[name]), file_utils.output_file_schema(target)[1])
    environment = {**os.environ, **pocl_environment(Path(sys.prefix), os.environ)}
    ended = subprocess.run(
        [sys.executable, "tune.py", "small"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if factor != "2":
        assert ended.returncode != 0
        assert "small: out is wrong" in ended.stdout
        return
    assert ended.returncode == 0, ended.stderr
    found = rows_of_t4((tmp_path / "kernel-tuner-small.json").read_text(), a_template(OWN), "f")
    assert (len(found.rows), found.left_out) == (10, ())
