"""The kernel as it was read, bound and inlined, compiles to the very instructions of the original."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.core.source.corpus import EXAMPLES, Example
from tests.core.source.reading import helpers_needed
from tests.cuda_here import needs_nvrtc
from tunesmith.backends.cuda.toolkit import header_folders, pre_included, standard_headers
from tunesmith.source.inline import inline_calls
from tunesmith.source.printing import print_function
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.reader.templates import BoundKernel, bind_kernel

_CUDA = [example for example in EXAMPLES if example.language == "cuda"]
# Launch bounds are no part of the tree; they change how registers are given out.
_BOUNDS = re.compile(r"__launch_bounds__\s*\([^)]*\)")


@needs_nvrtc
@pytest.mark.slow
@pytest.mark.parametrize("example", _CUDA, ids=str)
@pytest.mark.few(5)
def test_reading_a_kernel_changes_none_of_its_instructions(example: Example):
    original = _BOUNDS.sub("", example.text)

    assert _instructions(_rewritten(original, example.entry), "") == _instructions(original, example.entry)


def _rewritten(text: str, entry: str) -> str:
    source = read_source_tree(text, "cuda")
    bound = bind_kernel(source, entry)
    assert isinstance(bound, BoundKernel), bound
    function = inline_calls(bound.function, source).function
    helpers = [helper.text for helper in helpers_needed(function, source)]
    includes = [f"#include {name}" for name in source.includes]
    return "\n".join([*includes, *source.preamble, *helpers, print_function(function)])


def _instructions(text: str, entry: str) -> list[str]:
    """The PTX of one kernel without the names of symbols, which differ."""
    from cuda.bindings import nvrtc

    (major, minor) = _checked(nvrtc.nvrtcVersion())
    folders = header_folders(None, (int(major), int(minor)))
    options = [b"--gpu-architecture=sm_90", b"--std=c++17", *(f"-I{folder}".encode() for folder in folders)]
    options += [f"--pre-include={name}".encode() for name in pre_included(text, ())]
    given = standard_headers(text, ())
    texts, names = [own.encode() for _, own in given], [name.encode() for name, _ in given]
    program = _checked(nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", len(given), texts, names))
    if entry:
        _checked(nvrtc.nvrtcAddNameExpression(program, entry.encode()))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert int(status) == 0, _filled(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    name = _checked(nvrtc.nvrtcGetLoweredName(program, entry.encode())).decode() if entry else None
    ptx = _filled(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    bodies = {
        found[1]: found[2] for found in re.finditer(r"\.entry\s+(\S+?)\((.*?)\n}\n", ptx + "\n", re.DOTALL)
    }
    name = name or next(iter(bodies))
    body = bodies[name].partition("{")[2].replace(name, "KERNEL")
    lines = (line.strip() for line in re.sub(r"_Z\w+", "SYMBOL", body).split("\n"))
    return [line for line in lines if line and not line.startswith((".shared", ".extern", ".reg", "//"))]


def _filled(program: Any, size: Any, fill: Any) -> str:
    text = b" " * _checked(size(program))
    _checked(fill(program, text))
    return text.rstrip(b"\0").decode(errors="replace")


def _checked(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    assert int(status) == 0
    return values[0] if len(values) == 1 else tuple(values)
