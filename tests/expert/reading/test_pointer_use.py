"""What kernel bodies do through their pointers: the sources of every role in a drafted problem."""

from __future__ import annotations

from tunesmith.csource.nodes import Language
from tunesmith.expert.reading.source import read_source


def access(body: str, *, declared: str = "float* p", language: Language = "cuda", before: str = "") -> str:
    """ "r", "w", "rw", "" for a parameter p of a kernel with this body; ? where a part is not known."""
    marker = "__kernel" if language == "opencl" else "__global__"
    model = read_source(f"{before}\n{marker} void k({declared}, int n) {{ {body} }}", language)
    p = model.kernels[0].parameters[0]
    return {True: "r", False: "", None: "?"}[p.read] + {True: "w", False: "", None: "?"}[p.written]


def test_a_long_chain_of_helpers_ends_in_doubt() -> None:
    helpers = "\n".join(f"__device__ void f{i}(float* q) {{ f{i + 1}(q); }}" for i in range(2000))
    assert access("f0(p);", before=helpers) == "??"
