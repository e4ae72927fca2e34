"""The simulated device: what a kernel's few lines mean."""

from __future__ import annotations

import pytest

from tests.core.lab.labs import fake_kernel
from tunesmith.backends.fake import FAULTS, FakeBackend, FakeKernel
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed


def unit(source: str) -> Unit:
    return Unit("kernel.fake", source, "fake", (), ("scale",))


def test_the_first_definition_of_a_macro_counts() -> None:
    """A rendered template stands before its own defaults."""
    kernel = FakeKernel.read(
        unit("#define A 5\n#ifndef A\n#define A 1\n#endif\n" + fake_kernel(time="A * 100"))
    )
    assert kernel.seconds({}) == pytest.approx(500e-9)


def test_time_depends_on_scalars_and_is_never_negative() -> None:
    kernel = FakeKernel.read(unit(fake_kernel(time="rows * d - 100")))
    assert kernel.seconds({"rows": 20, "d": 10}) == pytest.approx(100e-9)
    assert kernel.seconds({"rows": 1, "d": 1}) == 0, "which nobody believes"


def test_a_fault_that_depends_on_sizes_is_no_build_failure() -> None:
    kernel = FakeKernel.read(unit(fake_kernel(fault="1 if rows > 5 else 2")))
    assert kernel.fault_with({}) == "none"
    assert kernel.fault_with({"rows": 3}) == "wrong"


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_but_one_builds(fault: str) -> None:
    source = unit(fake_kernel(fault=str(FAULTS.index(fault))))
    if fault == "build":
        with pytest.raises(BuildFailed):
            FakeBackend().build(source, FakeBackend().devices()[0])
    else:
        FakeBackend().build(source, FakeBackend().devices()[0])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("int x;", "no '// /// fake' block"),
        ("// /// fake\n// args = [\n// ///\n", "bad fake block"),
        ("// /// fake\n// op = 'scale'\n// ///\n", "bad fake block: 'args'"),
        ("// /// fake\n// args = []\n// time = 'a b'\n// ///\n", "bad fake block"),
    ],
)
def test_a_source_it_cannot_read_does_not_compile(source: str, words: str) -> None:
    with pytest.raises(BuildFailed, match=words):
        FakeKernel.read(unit(source))


def test_code_that_differs_has_another_digest() -> None:
    device = FakeBackend().devices()[0]
    sources = [fake_kernel(), fake_kernel(time="1"), fake_kernel(fault="2"), "#define A 1\n" + fake_kernel()]
    digests = [FakeBackend().build(unit(s), device).code_digest for s in sources]
    assert len(set(digests)) == len(digests)
