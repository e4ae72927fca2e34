"""Drafts a problem folder from a kernel source, with FILL wherever only the user knows."""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tunesmith.csource.lex import split_at
from tunesmith.csource.nodes import Language
from tunesmith.errors import BadInput
from tunesmith.expert.reading.headers import elements_of, words
from tunesmith.expert.reading.launches import FILL, draft_launch, launches_of
from tunesmith.expert.reading.source import KernelParameter, KernelSignature, SourceModel, read_source
from tunesmith.problem.argument_tables import TOLERANCES
from tunesmith.problem.problem import TYPES
from tunesmith.problem.problem_text import toml_string
from tunesmith.problem.toml_table import texts
from tunesmith.space.expr import is_name

DraftRole = Literal["input", "output", "inout", "local", "FILL", "size", "scalar"]
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIZE_LETTERS = frozenset("bcdhklmntwBCDHKLMNSTW") | {"nx", "ny", "nz", "hw", "nnz"}
_SIZE_WORDS = frozenset({
    "size", "sz", "len", "length", "seqlen", "count", "cnt", "num", "dim", "dims", "row", "rows", "col",
    "cols", "column", "columns", "width", "height", "depth", "batch", "batches", "head", "heads",
    "token", "tokens", "hidden", "channel", "channels", "element", "elements", "elem", "elems", "vocab",
    "features", "classes", "experts", "groups", "bins", "points", "items", "samples", "nodes", "edges",
    "total",
})  # fmt: skip
# An integer with one of these in its name is no size, whatever else is there: row_stride, batch_idx.
_OTHER_WORDS = frozenset({
    "stride", "strides", "offset", "start", "begin", "end", "idx", "index", "id", "seed", "flag",
    "mode", "axis", "is", "has", "use", "pad", "padding", "step", "shift", "pos", "position", "mask",
    "ld", "lda", "ldb", "ldc",
})  # fmt: skip
_RESERVED_SIZES = frozenset({"weight", "cache", "require"})  # words that stand beside sizes in problem files


@dataclass(frozen=True)
class Draft:
    files: Mapping[str, str]  # name -> text
    fills: int  # places where it says FILL


def draft_problem(
    text: str, file_name: str, language: Language, entry: str | None = None, include: Sequence[str] = ()
) -> Draft:
    """`entry` chooses a kernel: "name", "space::name", or "name<__half>" to settle its template too;
    `include` are folders with headers of the user's own."""
    model = read_source(text, language, where=file_name)
    kernel = _choose(model.kernels, entry, file_name)
    chosen = _template_arguments(entry)
    bound = dict(zip(kernel.template_params, chosen, strict=False))
    arguments = draft_arguments(kernel, language, bound)
    blocks = (
        _head(kernel),
        _kernel_table(kernel, model, file_name, language, chosen, include),
        *(_argument_table(argument, arguments, language) for argument in arguments),
        _launch_table(kernel, arguments, model, language),
        _size_tables(arguments),
        _accuracy_table(kernel, arguments),
    )
    problem = "\n".join("\n".join(block) + "\n" for block in blocks)
    reference = draft_reference(kernel.name, arguments)
    # Comments speak of FILL too: of the problem file only its values count, as when it is read.
    fills = sum(FILL in text for _, text in texts(tomllib.loads(problem))) + reference.count(f'"{FILL}:')
    return Draft({"problem.toml": problem, "reference.py": reference}, fills)


def _choose(kernels: Sequence[KernelSignature], entry: str | None, file_name: str) -> KernelSignature:
    listed = ", ".join(kernel.qualified_name for kernel in kernels)
    if entry is None:
        if len(kernels) == 1:
            return kernels[0]
        raise BadInput(
            f"a problem is about one kernel; this file defines {len(kernels)}: {listed}",
            hint=f"choose one, for example: --entry {kernels[0].qualified_name}",
            where=file_name,
        )
    wanted = entry.split("<")[0].strip().removeprefix("::")
    found = [kernel for kernel in kernels if kernel.qualified_name == wanted]
    found += [kernel for kernel in kernels if kernel.name == wanted and kernel not in found]
    if not found:
        raise BadInput(
            f"--entry must name a kernel of this file; got {entry!r}, it defines {listed}",
            hint=f"for example: --entry {kernels[0].qualified_name}",
            where=file_name,
        )
    return found[0]


def _template_arguments(entry: str | None) -> tuple[str, ...]:
    if entry is None or "<" not in entry:
        return ()
    inside = words(entry[entry.index("<") + 1 : entry.rfind(">")] if ">" in entry else "")
    return tuple(" ".join(part).replace(" :: ", "::") for part in split_at(",", inside) if part)


def _head(kernel: KernelSignature) -> Iterator[str]:
    yield '# Drafted by `tunesmith init`. Replace every "FILL"; the comment beside it says what is wanted.'
    yield f"name = {toml_string(re.sub(r'[^A-Za-z0-9_.-]', '_', kernel.name))}"


def _kernel_table(
    kernel: KernelSignature,
    model: SourceModel,
    file_name: str,
    language: Language,
    chosen: Sequence[str],
    include: Sequence[str],
) -> Iterator[str]:
    yield "[kernel]"
    doubts = []
    if kernel.definitions > 1:
        doubts.append(
            f"{kernel.definitions} definitions of {kernel.name}; this is the one in line {kernel.line}"
        )
    if kernel.conditional:
        doubts.append("its header has #if: these are the arguments of the first branch")
    yield f"source = {toml_string(file_name)}" + _comment("; ".join(doubts))
    if kernel.template_params and not chosen:
        launched = [site for site in launches_of(kernel, model) if site.template_args]
        wanted = f"template arguments for {', '.join(kernel.template_params)}"
        if launched:
            wanted += f"; line {launched[0].line} launches {kernel.name}<{launched[0].template_args}>"
        yield f"entry = {toml_string(f'{kernel.qualified_name}<{FILL}>')}" + _comment(wanted)
    else:
        arguments = f"<{', '.join(chosen)}>" if chosen else ""
        yield f"entry = {toml_string(kernel.qualified_name + arguments)}"
    yield f"language = {toml_string(language)}"
    example = "-cl-fast-relaxed-math" if language == "opencl" else "-use_fast_math"
    yield "flags = []" + _comment(f'how production builds it, e.g. ["{example}"]')
    if include:
        yield f"include = [{', '.join(map(toml_string, include))}]" + _comment("where its own headers lie")


def _argument_table(
    argument: DraftArgument, arguments: Sequence[DraftArgument], language: Language
) -> Iterator[str]:
    parameter = argument.parameter
    is_float = argument.element is not None and TYPES[argument.element].kind == "float"
    yield "[[argument]]"
    renamed = f"{parameter.name} in the kernel, which cannot be a name in reference.py"
    yield f"name = {toml_string(argument.name)}" + _comment(
        "" if argument.name == parameter.name else renamed
    )
    yield _type_line(argument)
    if argument.role == "size":
        yield f"value = {toml_string(argument.name)}"
        return
    if argument.role == "scalar":
        of_float = "the number callers pass, without quotes"
        yield f'value = "{FILL}"' + _comment(
            of_float if is_float else "an integer, or an expression over the sizes"
        )
        return
    extents = "one entry per axis, over the sizes, outermost first"
    if argument.vector > 1:
        held = 4 if argument.vector == 3 and language == "opencl" else argument.vector
        extents += f"; in elements, {held} to each {parameter.base}"
    yield f'shape = ["{FILL}"]' + _comment(extents)
    yield f"role = {toml_string(argument.role)}" + _comment(_about_role(argument))
    if is_float and argument.role in ("input", "inout"):
        yield '# values = "normal"' + _comment("if like this; else 1e-3 to 1e3 is tested too")
    align = _alignment(argument, language)
    if align is not None and argument.role != "local":
        yield f"align = {align}" + _comment(f"a {parameter.base} must lie on a multiple of its size")
    main = _main_output(arguments)
    if argument.may_be_output and main in TOLERANCES and argument.element != main:
        yield from _tolerances(argument.element)


def _type_line(argument: DraftArgument) -> str:
    parameter = argument.parameter
    star = "*" if parameter.pointer else ""
    if argument.element is None:
        wanted = f'{parameter.type} in the kernel; an element type such as "float32{star}"'
        return f'type = "{FILL}{star}"' + _comment(wanted)
    if argument.vector > 1 and not parameter.pointer:
        wanted = f"{parameter.type} in the kernel; a vector passed by value is not supported"
        return f'type = "{FILL}"' + _comment(wanted)
    vector = f"{parameter.base} in the kernel" if argument.vector > 1 else ""
    return f"type = {toml_string(argument.element + star)}" + _comment(vector)


def _about_role(argument: DraftArgument) -> str:
    parameter = argument.parameter
    if argument.role == FILL:
        known = "written" if parameter.written else "read" if parameter.read else "used"
        return f"output, inout, input or workspace: {known}, but part of its use could not be followed"
    if argument.role == "inout":
        return "read and written; output, if each element is written before it is read"
    if argument.role == "input" and not parameter.read:
        return "the kernel does not seem to use it"
    if argument.role == "input" and argument.element is not None and TYPES[argument.element].kind != "float":
        return (
            "tested with 0 to 100: if they are others (negative, indices), say range = [low, high], "
            'or inputs = "inputs.py:make"'
        )
    return ""


def _alignment(argument: DraftArgument, language: Language) -> int | None:
    if argument.vector == 1 or argument.element is None or (argument.vector == 3 and language != "opencl"):
        return None
    size = TYPES[argument.element].bytes * (4 if argument.vector == 3 else argument.vector)
    return size if language == "opencl" else min(size, 16)


def _launch_table(
    kernel: KernelSignature, arguments: Sequence[DraftArgument], model: SourceModel, language: Language
) -> Iterator[str]:
    launch = draft_launch(kernel, arguments, model, language)
    yield "[launch]" + _comment(launch.about)
    yield f"grid = {_list(launch.grid)}" + _comment(launch.about_grid if FILL in launch.grid else "")
    yield f"block = {_list(launch.block)}" + _comment(launch.about_block if FILL in launch.block else "")
    if launch.shared is not None:
        yield f"shared = {toml_string(launch.shared)}" + _comment(
            launch.about_shared if FILL in launch.shared else ""
        )


def _size_tables(arguments: Sequence[DraftArgument]) -> Iterator[str]:
    sizes = [argument.name for argument in arguments if argument.role == "size"]
    yield "[contract]" + _comment(
        "what callers promise: the smallest and the largest, and multiple_of where true; "
        "add sizes that only shapes or the launch have"
    )
    if not sizes:
        yield "# No parameter looks like a size: name one here, for the shapes and the launch."
    for name in sizes or [toml_string(FILL)]:
        yield f'{name} = {{ min = 1, max = "{FILL}" }}' + _comment("the largest that callers send")
    yield ""
    yield "[workloads]" + _comment("where it must be fast: one line each, with real sizes")
    values = ", ".join(f'{name} = "{FILL}"' for name in sizes or [toml_string(FILL)])
    yield f"example = {{ {values} }}" + _comment("integers, without quotes; rename it")


def _accuracy_table(kernel: KernelSignature, arguments: Sequence[DraftArgument]) -> Iterator[str]:
    yield "[accuracy]"
    yield f"reference = {toml_string(f'reference.py:{_possible_name(kernel.name)}')}" + _comment(
        "fill it in, or remove this line and reference.py: results are then compared with the original's"
    )
    main = _main_output(arguments)
    if main is None:
        for key, place in (("rtol", 0), ("atol", 1)):
            usual = ", ".join(f"{_decimal(TOLERANCES[t][place])} for {t}" for t in ("float32", "float16"))
            yield f'{key} = "{FILL}"' + _comment(f"without quotes, e.g. {usual}")
    elif main in TOLERANCES:
        yield from _tolerances(main)
    else:
        yield "# Integers are compared exactly: no tolerance."


def _main_output(arguments: Sequence[DraftArgument]) -> str | None:
    """The type that sets the tolerance: the first float among the outputs; None where one is not known."""
    types = [argument.element for argument in arguments if argument.may_be_output]
    if None in types or not types:
        return None
    return next((name for name in types if name in TOLERANCES), types[0])


def _tolerances(element: str | None) -> Iterator[str]:
    for key, value in zip(("rtol", "atol"), TOLERANCES.get(element or "", ()), strict=False):
        yield f"{key} = {_decimal(value)}"


def _decimal(value: float) -> str:
    return f"{value:g}".replace("e-0", "e-")


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(toml_string(text) for text in texts)}]"


def _comment(text: str) -> str:
    """A comment is one line, and TOML allows no control characters in it."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    clean = " ".join(clean.encode("utf-8", "replace").decode("utf-8").split())
    return f"  # {clean}" if clean else ""


def draft_reference(kernel: str, arguments: Sequence[DraftArgument]) -> str:
    name = _possible_name(kernel)
    inputs = [a.name for a in arguments if a.role in ("input", "inout", FILL)]
    scalars = [a.name for a in arguments if a.role == "scalar"]
    sizes = [a.name for a in arguments if a.role == "size"]
    outputs = [a.name for a in arguments if a.may_be_output]
    parameters = [*inputs, *scalars, *sizes]
    signature = f"*, {', '.join(parameters)}" if parameters else ""
    named = ", ".join(f"'{output}': ..." for output in outputs)
    wanted = " and ".join(outputs) or "the output"
    returned = f"the array {outputs[0]}" if len(outputs) == 1 else f"the arrays by name, {{{named}}}"
    lines = [
        f'"""The expected result of {name}, in float64."""',
        "",
        "import numpy as np  # noqa: F401",
        "",
        "",
        f"def {name}({signature}):",
        f'    """Return {returned}, shaped as in problem.toml.',
        "",
        "    Float arrays arrive as float64, integers as they are; drop the arguments you do not need.",
        '    """',
        f'    raise NotImplementedError("FILL: compute {wanted} of {name} with NumPy here, in reference.py")',
    ]
    return "\n".join(lines) + "\n"


# -- arguments -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DraftArgument:
    parameter: KernelParameter
    name: str  # as in the problem file, where a few names of C are not possible
    element: str | None
    vector: int
    role: DraftRole

    @property
    def may_be_output(self) -> bool:
        return self.role in ("output", "inout", FILL)


def draft_arguments(
    kernel: KernelSignature, language: Language, bound: Mapping[str, str]
) -> tuple[DraftArgument, ...]:
    """`bound` gives the template parameters that the user has chosen already."""
    taken: set[str] = set()
    arguments = []
    for parameter in kernel.parameters:
        element, vector = parameter.element, parameter.vector
        if element is None and parameter.base in bound and parameter.type.count("*") <= 1:
            element, vector = elements_of(bound[parameter.base], language)
        name = _possible_name(parameter.name, taken)
        taken.add(name)
        arguments.append(
            DraftArgument(parameter, name, element, vector, _role(parameter, name, element, vector))
        )
    return tuple(arguments)


def looks_like_a_size(name: str) -> bool:
    if name in _SIZE_LETTERS:
        return True
    parts = [part.lower() for part in _PART.findall(name)]
    if any(part in _OTHER_WORDS for part in parts):
        return False
    counted = len(parts) > 1 and parts[0] in ("n", "num", "nr")  # n_rows, nRows, num_warps
    return counted or any(part in _SIZE_WORDS for part in parts)


def _role(parameter: KernelParameter, name: str, element: str | None, vector: int) -> DraftRole:
    if not parameter.pointer:
        integer = element is not None and vector == 1 and TYPES[element].kind != "float"
        usable = is_name(name) and name not in _RESERVED_SIZES
        return "size" if integer and usable and looks_like_a_size(name) else "scalar"
    if parameter.space == "local":
        return "local"
    if parameter.written is None or (parameter.written and parameter.read is None):
        return "FILL"
    if parameter.written:
        return "inout" if parameter.read else "output"
    return "input"


def _possible_name(name: str, taken: Container[str] = ()) -> str:
    """An ASCII name that also does as a keyword argument in Python: `in` is no such name."""
    possible = re.sub(r"[^A-Za-z0-9_]", "_", name)
    while keyword.iskeyword(possible) or possible in taken:
        possible += "_"
    return possible
