"""The smallest problems that can be checked and tuned, simulated and for OpenCL, made to be spoilt."""

from __future__ import annotations

from pathlib import Path

PROBLEM = """\
name = "tiny"

[kernel]
source = "{source}"
entry = "scale"

[[argument]]
name = "out"
type = "float32*"
shape = ["n"]
role = "output"
[[argument]]
name = "x"
type = "float32*"
shape = ["n"]
role = "input"
[[argument]]
name = "n"
type = "int32"
value = "n"

[launch]
grid = ["ceildiv(n, 64)"]
block = ["64"]

[contract]
n = {{ one_of = [8, 64] }}

[workloads]
only = {{ n = 64, cache = "warm" }}

[accuracy]
reference = "reference.py:scale"
"""
REFERENCE = "def scale(x):\n    return 2.0 * x\n"

DECLARATION = """\
// /// tunesmith
// [params]
// BLOCK = [32, 64, 128, 256]
// [default]
// BLOCK = 64
// [launch]
// grid = ["ceildiv(n, BLOCK)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 64
#endif
"""
FAKE_KERNEL = """\
// /// fake
// args = ["out", "x", "n"]
// op = "scale"
// time = "20000"
// ///
"""
FAKE_TEMPLATE = DECLARATION + FAKE_KERNEL.replace('"20000"', '"100 * BLOCK"') + "int block = BLOCK;\n"

KERNEL = """\
__kernel void scale(__global float* out, __global const float* x, int n) {
    int i = get_global_id(0);
    if (i < n) {
        out[i] = 2.0f * x[i];
    }
}
"""
TEMPLATE = DECLARATION + KERNEL.replace("get_global_id(0)", "get_group_id(0) * BLOCK + get_local_id(0)")


def fake(folder: Path) -> Path:
    """A problem of 4 configurations, the smaller BLOCK the faster."""
    return _write(folder, {"kernel.fake": FAKE_KERNEL, "template.fake": FAKE_TEMPLATE})


def fake_many(folder: Path) -> Path:
    """The same with 2304 configurations: more to try than anybody waits for."""
    names, values = ("DEPTH", "WIDTH"), ", ".join(map(str, range(24)))
    params = "".join(f"// {name} = [{values}]\n" for name in names)
    defaults = "".join(f"// {name} = 0\n" for name in names)
    defines = "".join(f"#ifndef {name}\n#define {name} 0\n#endif\n" for name in names)
    text = FAKE_TEMPLATE.replace("// [default]\n", f"{params}// [default]\n{defaults}")
    text = text.replace("int block", f"{defines}int depth = DEPTH + 100 * WIDTH; int block")
    return _write(folder, {"kernel.fake": FAKE_KERNEL, "template.fake": text})


def opencl(folder: Path) -> Path:
    return _write(folder, {"kernel.cl": KERNEL, "template.cl": TEMPLATE})


def spoil(file: Path, old: str, new: str) -> int:
    """Replace the first occurrence; the number of its line."""
    text = file.read_text()
    assert old in text, f"{old!r} is not in {file.name}"
    file.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


def _write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "problem.toml").write_text(PROBLEM.format(source=next(iter(files))))
    (folder / "reference.py").write_text(REFERENCE)
    return folder
