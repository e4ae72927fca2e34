"""What a model might send for a CUDA kernel and must not reach a compiler: judged by reading, with no GPU."""

from __future__ import annotations

import pytest

from tests.core.run.test_loop import MemoryTexts
from tests.running import EXAMPLES
from tests.wording import says
from tunesmith.agents.roles import ModelAuthor
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.run.candidates import Templates
from tunesmith.run.ports import MoveCatalogue
from tunesmith.session.problems import load_problem
from tunesmith.session.roles import signature_fault

PROBLEM, _ = load_problem(EXAMPLES / "cuda" / "silu_and_mul")
DEVICE = absent_device("H200")
TEMPLATES = Templates(PROBLEM, DEVICE, None, MemoryTexts())
AUTHOR = ModelAuthor(
    PROBLEM,
    TEMPLATES,
    MoveCatalogue,
    "Write.",
    "a model",
    lambda template: signature_fault(PROBLEM, template),
)
HONEST = (EXAMPLES / "cuda" / "silu_and_mul" / "template.cu").read_text()


def fault(text: str) -> str | None:
    return AUTHOR.faults(TEMPLATES.parse(text, "1"))


def test_an_honest_one_passes() -> None:
    assert fault(HONEST) is None


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ("#include </etc/passwd>", "#include </etc/passwd> is not among the original's"),
        ('#include "/proc/self/environ"', "is not among the original's"),
        ("#include <cstdlib>", "is not among the original's"),
        ("int main() { return 0; }", "host code"),
        ("void f() { silu_and_mul<<<1, 1>>>(0, 0, 0); }", "host code"),
        ('struct S { S() { system("id"); } } s;', "system() is host code"),
        ('__device__ void f() { asm(".incbin \\"/etc/passwd\\";"); }', "the directive .incbin"),
        ('asm(".globl f");', "asm outside of a function"),
    ],
)
def test_what_reaches_out_is_refused(added: str, words: str) -> None:
    found = fault(f"{HONEST}\n{added}\n")
    assert found is not None
    assert words in found


@pytest.mark.parametrize(("old", "new"), [("const __half", "const float"), ("int d", "int d, int more")])
def test_a_changed_signature_is_refused(old: str, new: str) -> None:
    start = HONEST.index("__global__")
    end = HONEST.index("{", start)
    header = HONEST[start:end]
    assert old in header, header
    found = fault(HONEST[:start] + header.replace(old, new, 1) + HONEST[end:])
    says(found, "callers", "not call it")
