"""A template in another language: the expert's from what it read of the kernel; others by their names alone.

What a kernel computes has no language once it is read. Left to translate are names of types, functions and
headers; a text that has more of its language in it (masks of lanes, assembler, builtins) is refused, with the
word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tunesmith.expert.drafting import best_page, sort_refusals
from tunesmith.expert.moves.move import Context
from tunesmith.expert.read.contract import language_of, with_entry_sizes
from tunesmith.expert.read.model import KernelModel, all_steps, own_parts, with_functions_called
from tunesmith.problem import device as languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import find_block
from tunesmith.run.ports import Declined, Refactoring, Written
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.text import without_comments

Pair = tuple[str, str]
DIALECTS = ("cuda", "hip", "opencl")
_HEADERS = {
    "cuda_runtime.h": "hip/hip_runtime.h",
    "cuda_fp16.h": "hip/hip_fp16.h",
    "cuda_bf16.h": "hip/hip_bf16.h",
    "cooperative_groups.h": "hip/hip_cooperative_groups.h",
}
_TYPES = {"__nv_bfloat16": "__hip_bfloat16", "__nv_bfloat162": "__hip_bfloat162"}
_INDICES = {
    f"hip{word[0].upper()}{word[1:]}_{axis}": f"{word}.{axis}" for word in c.INDICES for axis in "xyz"
}
WORDS: Mapping[Pair, Mapping[str, str]] = {
    ("cuda", "hip"): _TYPES,
    ("hip", "cuda"): {**{new: old for old, new in _TYPES.items()}, **_INDICES},
}
# What has no word in the other language, and why.
_LANES = "the width of a wave is in it"
_ALONE: Mapping[Pair, tuple[tuple[str, str], ...]] = {
    ("cuda", "hip"): (
        (r"\w+_sync", _LANES),
        (r"asm|__asm__", "it is NVIDIA's assembler"),
        (r"__ld(?:cg|cs|ca|lu|cv)|__st(?:cg|cs|wb|wt)", "AMD's hints are others"),
        (r"cub|nvcuda|wmma|cute|cutlass", "it is a library of NVIDIA's"),
        (
            r"__nv_\w+|__pipeline_\w+|__cluster_\w+|cudaGrid\w+|cudaTrigger\w+|__CUDA\w+|CUDA_VERSION",
            "it is CUDA's",
        ),
    ),
    ("hip", "cuda"): (
        (r"__shfl(?:_\w+)?|__ballot|__any|__all", _LANES),
        (r"asm|__asm__", "it is AMD's assembler"),
        (r"__builtin_\w+|__amdgcn_\w+|ext_vector_type|amdgpu_\w+", "it is clang's for AMD"),
        (r"rocprim|hipcub|rocwmma", "it is a library of AMD's"),
        (r"__hip_\w+|hip_\w+|__HIP\w+|__AMDGCN\w+", "it is HIP's"),
    ),
}
_LEFT = {"hip": r"\b__nv_\w+", "cuda": r"\b__hip_\w+|\bhip_\w+", "opencl": r"\b__(?:nv|hip)_\w+"}
_FUNCTIONS = {
    f"{name}f": name
    for name in (
        *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "fabs", "tanh", "pow", "erf", "sin", "cos", "fma"),
        *("fmax", "fmin", "floor", "ceil", "fmod", "log1p", "expm1", "cosh", "sinh", "round", "rint"),
        "trunc",
    )
}
_NUMBERS = frozenset(("float", "int", "unsigned int", "char", "unsigned char", "short", "unsigned short"))


def write_in(
    task: Refactoring, problem: Problem, device: Device, kernel: KernelModel, to: str
) -> Written | Declined:
    """The expert's template for another language, with the moves that apply there."""
    target = language_of(to)
    if len(problem.launches) != 1:
        return Declined(f"a call of {len(problem.launches)} launches is written in its own language alone")
    moved = _model_in(kernel, target)
    if isinstance(moved, str):
        return Declined(moved)
    there = with_entry_sizes(problem_in(problem, to), kernel.pinned)
    page = best_page(task, Context(there, device), moved)
    if isinstance(page, str):
        return Declined(page)
    text, draft, refused = page
    text = _with_names(text, kernel.source.language, to)
    if (left := re.search(_LEFT[to], without_comments(text))) is not None:
        return Declined(f"'{left.group()}' has no word in {to} that the expert knows")
    return Written(text, draft.moves, sort_refusals(refused), kernel.notes)


def problem_in(problem: Problem, to: str) -> Problem:
    """The same call of a kernel in another language; flags are the compiler's own."""
    kernel, suffix = problem.kernel, languages.find_language(to).suffixes[0]
    path = f"{kernel.path.rpartition('.')[0] or kernel.path}{suffix}"
    changed = replace(kernel, language=to, path=path, flags=(), compiler="", predefined=(), wave=0)
    return replace(problem, kernel=changed)


def _model_in(kernel: KernelModel, to: c.Language) -> KernelModel | str:
    """What was read with another language's words; why it has none."""
    source = kernel.source
    if "opencl" not in (source.language, to):
        return replace(kernel, source=replace(source, language=to))
    if source.preamble or source.records or source.aliases:
        return "types and constants of the file are not translated between OpenCL C and C++"
    parameters = []
    for parameter in kernel.function.parameters:
        if parameter.type.base not in (*_NUMBERS, "long long", "long"):
            return f"{parameter.type.base} of '{parameter.name}' has no word in both languages"
        base = {"long long": "long"} if to == "opencl" else {"long": "long long"}
        type_ = replace(parameter.type, base=base.get(parameter.type.base, parameter.type.base))
        space = "global" if to == "opencl" and type_.is_pointer else ""
        parameters.append(replace(parameter, type=replace(type_, space=space)))
    words = _FUNCTIONS if to == "opencl" else {name: cuda for cuda, name in _FUNCTIONS.items()}
    function = replace(kernel.function, parameters=tuple(parameters))
    source = replace(source, language=to, includes=())
    parts = [part for step in all_steps(kernel.steps) for part in own_parts(step)]
    calls = {call.function for part in parts for call in walk.calls_in(part)}
    if unknown := sorted(calls - words.keys() - set(words.values())):
        return f"{unknown[0]}() has no word in {to} that the expert knows"
    return replace(with_functions_called(kernel, words), function=function, source=source)


def translate_names(text: str, source: str, to: str) -> Written | Declined:
    """A text by its names alone, or the first word that is more than a name."""
    if "opencl" in (source, to):
        return Declined("between OpenCL C and C++ more than names differ: address spaces, indices, barriers")
    left = without_comments(text)
    known = (*WORDS[source, to], *(_HEADERS if to == "hip" else _HEADERS.values()))
    for pattern, why in _ALONE[source, to]:
        for found in re.finditer(rf"\b(?:{pattern})\b", left):
            if found.group() not in known and f"hip/{found.group()}.h" not in known:
                line = left[: found.start()].count("\n") + 1
                return Declined(f"'{found.group()}' (line {line}) is more than a name: {why}")
    return Written(_with_names(text, source, to), ())


def _with_names(text: str, source: str, to: str) -> str:
    done = _with_headers(text, to) if "opencl" not in (source, to) else text
    for old, new in WORDS.get((source, to), {}).items():
        done = re.sub(rf"\b{re.escape(old)}\b", new, done)
    return done


def _with_headers(text: str, to: str) -> str:
    names = _HEADERS if to == "hip" else {new: old for old, new in _HEADERS.items()}

    def header(found: re.Match[str]) -> str:
        name = names.get(found[2])
        return f"#include <{name}>" if name else found[0]

    done = re.sub(r"#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]", header, text)
    if to == "cuda":
        return re.sub(r"#include <cuda_runtime\.h>\n", "", done)
    first = "#include <hip/hip_runtime.h>\n"
    if first.strip() in done:
        return done
    block = find_block(done, "template") if "/// tunesmith" in done else None
    lines = done.splitlines(keepends=True)
    at = block.line + len(block.toml.splitlines()) + 1 if block is not None else 0
    return "".join((*lines[:at], first, *lines[at:]))
