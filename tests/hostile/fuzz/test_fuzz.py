"""Readers refuse in words what they cannot read: a few changed inputs of each, and those once found."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.hostile.fuzz.driver import Reader, TooSlow, attempt, fuzz
from tests.hostile.fuzz.mutations import text_mutation
from tests.hostile.fuzz.readers import READERS
from tunesmith.space.expr import ExprError, parse_expr

BY_NAME = {reader.name: reader for reader in READERS}
FEW = {"expression": 60, "config": 30, "reply": 10, "problem": 10, "events": 20, "vetting": 100}


@pytest.mark.parametrize("name", FEW)
def test_a_few_changed_inputs_of_what_is_read_quickly(name: str) -> None:
    found = fuzz(BY_NAME[name], seed=18, count=FEW[name])
    assert found.tried == FEW[name]
    assert found.lines > 20, "nothing of ours was reached"
    assert found.faults == {}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [reader.name for reader in READERS])
def test_many_changed_inputs_of_every_reader(name: str) -> None:
    found = fuzz(BY_NAME[name], seed=18, seconds=20)
    assert found.faults == {}


DEEP = 4_000
# Once a fault, by reader: what was wrong with it is said beside it.
FOUND = (
    ("hosts", b'[[worker]]\nname = "a"\ncommand = "c"\ndevice = "0-' + b"7" * 5000 + b'"\n'),
    ("config", b"evals = " + b"9" * 5000),  # Python reads no number of so many digits
    ("config", b"evals = " + b"[" * 5000),
    ("kernel", b"cuda\n__global__ void k(float* x) { x[0] = " + b"(" * DEEP + b"1" + b")" * DEEP + b"; }\n"),
    ("kernel", b"cuda\n" + b"#if 1\n" * 20_000),
    ("vetting", b"opencl\n#line " + b"7" * 5000 + b"\n"),  # Python reads no number of so many digits
    ("kernel", b"opencl\n__kernel void k(__global float* x) { x[0] = " + b"-" * DEEP + b"x[1]; }\n"),
    ("kernel", b"cuda\n__global__ void k(float* x) { x[0] = " + b"[" * 30_000 + b"; }\n"),  # 11 s
    ("kernel", b"cuda\n__global__ void k(float* x) { x[0] = " + b"[]" * 45_000 + b"; }\n"),  # 35 s
    ("kernel", b"opencl\n__kernel void k(__global float* x) { x[0] " + b"+=" * 20_000 + b"; }\n"),  # 23 s
    ("kernel", b"cuda\n" + b"'" * 100_000),  # 100 s
    ("kernel", b"cuda\n__global__ void k(float* x) { " + b"a<b<" * 8_000 + b"; }\n"),  # 22 s
)


@pytest.mark.parametrize(("name", "data"), FOUND)
@pytest.mark.few(4)
def test_what_was_found_is_refused_now(name: str, data: bytes) -> None:
    assert attempt(BY_NAME[name], data) is None


# -- the fuzzer itself ----------------------------------------------------------------------------------


def made_up(read: Callable[[bytes], object]) -> Reader:
    return Reader("made up", lambda: [b"BLOCK % 4 == 0"], read, text_mutation, (ExprError,))


def test_a_fault_is_found_and_told_by_its_kind() -> None:
    def read(data: bytes) -> None:
        if "BLOCK % 4" not in str(parse_expr(data.decode("utf-8", "replace"))):
            raise ValueError("planted")

    found = fuzz(made_up(read), seed=1, count=150)
    assert [place.split()[0] for place in found.faults] == ["ValueError"]
    assert found.pool > 1, "what reached new lines was kept"


def test_the_same_seed_tries_the_same_inputs() -> None:
    def tried(seed: int) -> list[bytes]:
        seen: list[bytes] = []
        fuzz(made_up(lambda data: None), seed=seed, count=50, before=seen.append)
        return seen

    assert tried(3) == tried(3) != tried(4)


def test_what_takes_too_long_and_what_goes_too_deep_are_faults() -> None:
    def spin(_data: bytes) -> None:
        end = time.process_time() + 20
        while time.process_time() < end:
            pass

    def dig(data: bytes) -> None:
        dig(data)

    assert isinstance(attempt(made_up(spin), b"", seconds=0.1), TooSlow)
    assert isinstance(attempt(made_up(dig), b""), RecursionError)
