"""The examples on the page about problem files are read as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.core.lab.labs import read_problem
from tunesmith.problem.problem import Problem
from tunesmith.problem.toml_table import load_toml

PAGE = Path(__file__).parents[3] / "docs" / "problem-file.md"
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
FILES = {
    "scale.cl": "__kernel void scale(__global float *out, __global const float *x, int count) {}",
    "reference.py": "def scale(x):\n    return 2 * x\n",
    "kernel.fake": "void op();",
}


def test_the_whole_one_is_whole() -> None:
    problem = read_problem(BLOCKS[0], FILES)
    assert problem.size_names == ("rows", "d")
    assert [a.name for a in problem.arguments] == ["out", "x", "count"]


def within(arguments: str, sizes: str, more: str = "") -> Problem:
    """An example as part of a problem with these sizes."""
    names = sizes.split()
    launch = "" if "[[launch]]" in arguments else '[launch]\ngrid = ["1"]\nblock = ["1"]\n'
    contract = "\n".join(f"{name} = {{ min = 1, max = 99 }}" for name in names)
    workload = ", ".join(f"{name} = 7" for name in names)
    head = '[kernel]\nsource = "kernel.fake"\nentry = "op"\n'
    rest = f"{launch}[contract]\n{contract}\n[workloads]\nonly = {{ {workload} }}\n"
    return read_problem(f'name = "op"\n{head}{more}{arguments}{rest}', FILES)


def array(name: str, role: str, shape: str) -> str:
    return f'[[argument]]\nname = "{name}"\ntype = "float32*"\nrole = "{role}"\nshape = [{shape}]\n'


def test_the_parts_are_parts() -> None:
    by_word = {word: block for block in BLOCKS[1:] for word in ("logits", "block_table", "rest", "kv_heads")
               if re.search(rf"\b{word}\b", block)}  # fmt: skip
    top = within(by_word["logits"], "n rows k", array("logits", "input", '"rows", "n"'))
    assert top.argument("indices").keys == "logits"
    table = within(by_word["block_table"], "requests pages length", array("out", "output", '"pages"'))
    assert table.argument("offsets").formula is not None
    parts = within(by_word["rest"], "n", array("out", "output", '"n"'))
    assert [launch.entry for launch in parts.launches] == ["body", "rest"]
    assert len(BLOCKS) == 6, "each is read by a test"
    for block in BLOCKS:
        load_toml(block, path="example")
