"""Many kernels in one program for the host: compiled at once, run one by one, held against their original."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.core.expert.write.emulator import c_type, device
from tests.hostile.random_kernels import opencl
from tests.hostile.random_kernels.program import Case, Outcome, Trial
from tunesmith.backends.port import BuildFailed
from tunesmith.plugins.cpu_device import build
from tunesmith.plugins.cpu_device.build import HostCompiler, compiler_by_title
from tunesmith.plugins.cpu_device.source import host_text
from tunesmith.problem.plan import Plan
from tunesmith.problem.problem import element_type

Array = NDArray[Any]
HARNESS = Path(__file__).with_name("harness.cpp")
HEAD = "batch.h"
# Of what kernels include, all that the generator's do.
_INCLUDED = ("tunesmith_cpu.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cmath")
_FLAGS = (
    *("-std=c++17", "-Og", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-fsigned-char"),
    *("-fsanitize=alignment,bounds", "-fsanitize-undefined-trap-on-error", "-fno-threadsafe-statics"),
    # Some distributions check every longjmp, and abort at one to another thread's stack.
    *("-U_FORTIFY_SOURCE", "-D__CUDACC__=1", "-D__CUDA_ARCH__=900", "-D__CUDACC_VER_MAJOR__=13"),
)
_KINDS = {"float32": 1, "float64": 2, "float16": 3, "bfloat16": 4}  # the others are compared byte by byte


class DoesNotCompile(Exception):
    """The host's compiler refuses a kernel."""


def run(cases: Sequence[Case], folder: Path, seconds: int = 5) -> list[Outcome]:
    """Of every trial, in order. What does not compile is compiled piece by piece, to find out which."""
    on_driver = [case for case in cases if case.trials[0].variant.path.endswith(".cl")]
    cases = [case for case in cases if case not in on_driver]
    if not cases:
        return opencl.run(on_driver)
    if on_driver:
        return run(cases, folder, seconds) + opencl.run(on_driver)
    try:
        program, numbers = _built(cases, folder)
    except DoesNotCompile as error:
        if len(cases) > 1:
            groups: dict[str, list[Case]] = {}
            for case in cases:
                groups.setdefault(case.name, []).append(case)
            parts = list(groups.values()) if len(groups) > 1 else [[case] for case in cases]
            return [outcome for part in parts for outcome in run(part, folder, seconds)]
        (case,) = cases
        if len(case.trials) > 1:
            alone = [replace(case, trials=(trial,)) for trial in case.trials]
            bad = {o.trial for one in alone for o in run([one], folder, seconds) if o.verdict == "build"}
            good = tuple(trial for trial in case.trials if trial not in bad)
            told = [Outcome(case, trial, "build", str(error)) for trial in case.trials if trial in bad]
            if case.trials[0] in bad:
                return told
            return told + run([replace(case, trials=good)], folder, seconds)
        return [Outcome(case, case.trials[0], "build", str(error))]
    job = folder / "job"
    job.write_bytes(_job(cases, numbers))
    try:
        done = subprocess.run(
            [str(program), str(job), str(seconds)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    finally:
        program.unlink()
    found = dict[tuple[int, int], str]()
    for line in done.stdout.splitlines():
        place, number, text = line.split(" ", 2)
        found[int(place), int(number)] = text
    outcomes = []
    for place, case in enumerate(cases):
        for number, trial in enumerate(case.trials):
            verdict, _, detail = found.get((place, number), "crash the harness ended").partition(" ")
            outcomes.append(Outcome(case, trial, verdict, _named(detail, trial.plan)))
    return outcomes


def _named(detail: str, plan: Plan) -> str:
    """Arrays by their names."""
    return re.sub(r"^array (\d+)", lambda found: plan.buffers[int(found[1])].name, detail)


# -- the program


def _built(cases: Sequence[Case], folder: Path) -> tuple[Path, dict[str, int]]:
    """The program, and the number of every kernel in it."""
    numbers: dict[str, int] = {}
    texts = []
    for case in cases:
        for trial in case.trials:
            key = _key(trial)
            if key not in numbers:
                numbers[key] = len(numbers)
                texts.append(_in_a_namespace(trial, numbers[key]))
    table = ", ".join(f"kernel_{number}::call" for number in range(len(numbers)))
    head = (
        f'#include "{HEAD}"\n'
        "struct pass { void *p; template <typename T> operator T *() const { return (T *)p; } };\n"
    )
    whole = head + "\n".join(texts) + f"extern void (*const entries[])(void **) = {{{table}}};\n"
    program = folder / sha256(whole.encode()).hexdigest()[:16]
    parts = _prepared(folder)
    with tempfile.TemporaryDirectory() as name, _refusals():
        place = Path(name)
        (place / "batch.cpp").write_text(whole)
        source, made = (f"-I{parts}", "batch.cpp"), ("-c", "-o", "batch.o")
        build.compile_clamped(_compiler(), (*_FLAGS, *_compiler().fills), source, made, place)
        objects = ("batch.o", *map(str, sorted(parts.glob("*.o"))))
        _compiler().run((*_FLAGS, *objects, "-o", str(program)), place)
    return program, numbers


def _prepared(folder: Path) -> Path:
    """The headers of the cpu device, compiled beforehand, which takes longer than any of the kernels; its
    runtime, and the harness. All processes of one run of tests share them."""
    whole = Path(os.environ.get("TESTS_SHARED_FOLDER", folder))
    texts = (*build.host_headers().values(), HARNESS.read_text(), *_FLAGS)
    place = whole / f"headers-{sha256(''.join(texts).encode()).hexdigest()[:8]}"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            for name, text in build.host_headers().items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(text)
            (place / HEAD).write_text("".join(f"#include <{name}>\n" for name in _INCLUDED))
            run = partial(_compiler().run, folder=place)
            run((*_FLAGS, "-w", "-I.", "-x", "c++-header", HEAD, "-o", f"{HEAD}.gch"))
            run((*_FLAGS, "-w", "-c", str(HARNESS), "-o", "harness.o"))
            for name, data in build.compile_runtime(
                compiler_by_title(device().driver), device().limits.warp, False
            ).items():
                (place / name).write_bytes(data)
            (place / "ready").touch()
    return place


def _compiler() -> HostCompiler:
    return replace(compiler_by_title(device().driver), seconds=800)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except BuildFailed as error:
        errors = [line for line in str(error).splitlines() if "error" in line]
        raise DoesNotCompile("\n".join(errors[:3]) or str(error)[:500]) from error


def _key(trial: Trial) -> str:
    types = ",".join(f"{s.name}:{s.type}" for s in trial.plan.scalars)
    return f"{trial.launch.entry}({','.join(trial.launch.args)}){types}\n{trial.variant.source}"


def _in_a_namespace(trial: Trial, number: int) -> str:
    try:
        text = host_text(trial.variant.source, trial.variant.path)
    except BuildFailed as error:
        raise DoesNotCompile(str(error)) from error
    text = re.sub(r"^#include <.*$|^#line.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r'extern "C"\s*', "", text)
    macros = dict.fromkeys(re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE))
    scalars = {scalar.name: scalar for scalar in trial.plan.scalars}
    given = [
        f"*({c_type(scalars[name].type)} *)given[{place}]" if name in scalars else f"pass{{given[{place}]}}"
        for place, name in enumerate(trial.launch.args)
    ]
    call = f"static void call(void **given) {{ {trial.launch.entry}({', '.join(given)}); }}"
    undone = "".join(f"#undef {name}\n" for name in macros)
    return f"namespace kernel_{number} {{\n{text}\n{call}\n}}\n{undone}"


# -- the job


def _job(cases: Sequence[Case], numbers: Mapping[str, int]) -> bytes:
    words = array("q", [len(cases)])
    for case in cases:
        words.extend(_of_case(case, numbers))
    return words.tobytes()


def _of_case(case: Case, numbers: Mapping[str, int]) -> Iterator[int]:
    plan = case.trials[0].plan
    yield len(plan.buffers)
    for buffer in plan.buffers:
        values = case.inputs.get(buffer.name)
        yield from (buffer.nbytes, buffer.align, _KINDS.get(buffer.type, 0), int(buffer.role == "input"))
        yield int(values is not None)
        if values is not None:
            yield from _whole_words(np.ascontiguousarray(values).tobytes())
    yield len(plan.scalars)
    for scalar in plan.scalars:
        yield from _whole_words(np.array([scalar.value], element_type(scalar.type).numpy).tobytes())
    yield len(case.trials)
    places = {name: place for place, name in enumerate([b.name for b in plan.buffers])}
    places |= {s.name: len(plan.buffers) + place for place, s in enumerate(plan.scalars)}
    places |= {name: places[other] for name, other in plan.aliases}
    for trial in case.trials:
        launch = trial.launch
        yield numbers[_key(trial)]
        yield from (*launch.grid, *launch.block, launch.shared, trial.seed, len(launch.args))
        yield from (places[name] for name in launch.args)


def _whole_words(data: bytes) -> array[int]:
    words = array("q")
    words.frombytes(data + bytes(-len(data) % 8))
    return words
