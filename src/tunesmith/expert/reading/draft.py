"""Drafts a problem folder from a kernel source, with FILL wherever only the user knows."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.nodes import Language
from tunesmith.errors import BadInput, bug_text
from tunesmith.expert.reading.arguments import DraftArgument, DraftRole, draft_arguments, possible_name
from tunesmith.expert.reading.bare import BareFailure, BareReading, read_bare
from tunesmith.expert.reading.bare_text import BareKernel
from tunesmith.expert.reading.headers import elements_of, template_arguments
from tunesmith.expert.reading.included import read_with_headers
from tunesmith.expert.reading.launches import FILL, draft_launch, launches_of
from tunesmith.expert.reading.shapes import ArrayShape
from tunesmith.expert.reading.source import KernelSignature, SourceModel
from tunesmith.problem.argument_tables import TOLERANCES
from tunesmith.problem.problem import TYPES
from tunesmith.problem.problem_text import toml_string
from tunesmith.problem.toml_table import texts

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Draft:
    files: Mapping[str, str]  # name -> text
    fills: int  # places where it says FILL


def draft_problem(
    text: str,
    file_name: str,
    language: Language,
    entry: str | None = None,
    include: Sequence[str] = (),
    defines: Pairs = (),
    headers: Pairs = (),
) -> Draft:
    """`entry` chooses a kernel: "name", "space::name", or "name<__half>" to settle its template too;
    `include` are folders with headers of the user's own, `headers` these, as included -> text."""
    bare = bare_kernel(text, file_name, language, entry, defines, headers)
    return draft_of(bare, read_safely(bare), include)


def read_safely(bare: BareKernel) -> BareReading | BareFailure | str:
    """What a text does to the expert keeps nobody from the rest."""
    try:
        return read_bare(bare)
    except Exception as error:
        return f"the expert failed, which is a bug in Tunesmith: {bug_text(error)}"


def draft_of(bare: BareKernel, found: BareReading | BareFailure | str, include: Sequence[str] = ()) -> Draft:
    reading = found if isinstance(found, BareReading) else None
    arguments = with_reading(bare.arguments, reading)
    shapes = {} if reading is None else reading.shapes
    blocks = (
        (*_head(bare.kernel), *_unread(found)),
        _kernel_table(bare, include),
        *(
            _argument_table(argument, arguments, bare.language, shapes.get(argument.name))
            for argument in arguments
        ),
        _launch_table(bare, reading),
        _size_tables(arguments, reading, bare.entry_sizes),
        _accuracy_table(bare.kernel, arguments, reading),
    )
    problem = "\n".join("\n".join(block) + "\n" for block in blocks)
    reference = draft_reference(bare.kernel.name, arguments, () if reading is None else reading.added)
    # Comments speak of FILL too: of the problem file only its values count, as when it is read.
    fills = sum(FILL in text for _, text in texts(tomllib.loads(problem))) + reference.count(f'"{FILL}:')
    return Draft({"problem.toml": problem, "reference.py": reference}, fills)


def bare_kernel(
    text: str,
    file_name: str,
    language: Language,
    entry: str | None,
    defines: Pairs = (),
    headers: Pairs = (),
) -> BareKernel:
    """The kernel that is meant, as far as its text goes."""
    found = bare_kernels(text, file_name, language, entry, defines, headers)
    if len(found) > 1:
        names = [bare.kernel.qualified_name for bare in found]
        raise BadInput(
            f"a draft is of one kernel; this file defines {len(found)}: {', '.join(names)}",
            hint=f"choose one, for example: --entry {names[0]}; where a call has several of them, add a "
            "[[launch]] for each to the draft",
            where=file_name,
        )
    return found[0]


def bare_kernels(
    text: str,
    file_name: str,
    language: Language,
    entry: str | None,
    defines: Pairs = (),
    headers: Pairs = (),
) -> tuple[BareKernel, ...]:
    """All kernels of a file, or the one that `entry` names."""
    model = read_with_headers(text, language, file_name, defines, headers)
    found = []
    for kernel in model.kernels if entry is None else (_named(model.kernels, entry, file_name),):
        chosen = template_arguments(entry) or _launched_arguments(kernel, model)
        bound = tuple(zip(kernel.template_params, chosen, strict=False))
        arguments = draft_arguments(kernel, language, dict(bound))
        inside = f"<{', '.join(chosen or (FILL,))}>" if chosen or kernel.template_params else ""
        launch = draft_launch(kernel, arguments, model, language)
        name = kernel.qualified_name + inside
        said = (name, kernel, arguments, model, launch, bound, defines, headers)
        found.append(BareKernel(text, file_name, language, *said))
    return tuple(found)


def _launched_arguments(kernel: KernelSignature, model: SourceModel) -> tuple[str, ...]:
    """Template arguments of the only way in which the file launches it, or instantiates it where it does not
    launch it, where they are types and numbers."""
    ways = {site.template_args for site in launches_of(kernel, model)}
    ways = ways or {one.template_args for one in model.instantiations if one.kernel == kernel.name}
    if len(ways) != 1 or not kernel.template_params or not (said := ways.pop()):
        return ()
    chosen = template_arguments(f"<{said}>")
    known = all(elements_of(one, "cuda")[0] or one.isdecimal() or one in ("true", "false") for one in chosen)
    return chosen if known and len(chosen) == len(kernel.template_params) else ()


def with_reading(
    arguments: Sequence[DraftArgument], reading: BareReading | None
) -> tuple[DraftArgument, ...]:
    """Roles as the reading knows them: what is stored and loaded, and which integers are sizes."""
    if reading is None:
        return tuple(arguments)
    sizes = reading.used
    found = []
    for argument in arguments:
        shape = reading.shapes.get(argument.name)
        role = argument.role
        if role == "scalar" and argument.is_integer and argument.name in sizes:
            role = "size"
        elif shape is not None and role in (FILL, "inout", "output", "input"):
            again = shape.scattered or shape.read
            stored: DraftRole = "inout" if again else "output"
            role = stored if shape.written else "input"
        found.append(replace(argument, role=role))
    return tuple(found)


def _named(kernels: Sequence[KernelSignature], entry: str, file_name: str) -> KernelSignature:
    wanted = entry.split("<")[0].strip().removeprefix("::")
    found = [kernel for kernel in kernels if kernel.qualified_name == wanted]
    found += [kernel for kernel in kernels if kernel.name == wanted and kernel not in found]
    if not found:
        names = [kernel.qualified_name for kernel in kernels]
        close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
        raise BadInput(
            f"--entry must name a kernel of this file; got {entry!r}, it defines {', '.join(names)}",
            hint=f"did you mean: --entry {close[0]}" if close else f"for example: --entry {names[0]}",
            where=file_name,
        )
    return found[0]


def _head(kernel: KernelSignature) -> Iterator[str]:
    yield '# Drafted by `tunesmith init`. Replace every "FILL"; the comment beside it says what is wanted.'
    yield f"name = {toml_string(re.sub(r'[^A-Za-z0-9_.-]', '_', kernel.name))}"


def _unread(found: BareReading | BareFailure | str) -> Iterator[str]:
    """Why less is filled in than there could be."""
    if not isinstance(found, BareReading):
        reason = found if isinstance(found, str) else found.reason.reason
        yield _comment(f"The expert could not read the kernel: {reason}").strip()


def _kernel_table(bare: BareKernel, include: Sequence[str]) -> Iterator[str]:
    kernel, language = bare.kernel, bare.language
    yield "[kernel]"
    doubts = []
    if kernel.definitions > 1:
        doubts.append(
            f"{kernel.definitions} definitions of {kernel.name}; this is the one in line {kernel.line}"
        )
    if kernel.conditional:
        doubts.append("its header has #if: these are the arguments of the first branch")
    yield f"source = {toml_string(bare.file)}" + _comment("; ".join(doubts))
    wanted = ""
    if FILL in bare.entry:
        wanted = f"template arguments for {', '.join(kernel.template_params)}"
        launched = [site for site in launches_of(kernel, bare.source) if site.template_args]
        if launched:
            wanted += f"; line {launched[0].line} launches {kernel.name}<{launched[0].template_args}>"
    yield f"entry = {toml_string(bare.entry)}" + _comment(wanted)
    yield f"language = {toml_string(language)}"
    example = "-cl-fast-relaxed-math" if language == "opencl" else "-use_fast_math"
    yield "flags = []" + _comment(f'how production builds it, e.g. ["{example}"]')
    if bare.defines:
        pairs = ", ".join(f"{name} = {toml_string(value)}" for name, value in bare.defines)
        yield f"defines = {{ {pairs} }}"
    if include:
        yield f"include = [{', '.join(map(toml_string, include))}]" + _comment("where its own headers lie")


def _argument_table(
    argument: DraftArgument,
    arguments: Sequence[DraftArgument],
    language: Language,
    shape: ArrayShape | None,
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
    axes = (FILL,) if shape is None else shape.extents
    extents = "one entry per axis, over the sizes, outermost first"
    if argument.vector > 1:
        held = 4 if argument.vector == 3 and language == "opencl" else argument.vector
        extents += f"; in elements, {held} to each {parameter.base}"
    if FILL in axes[1:] or axes[0] == FILL != axes[-1]:
        extents = "its other axes follow from the indices; this one only callers know"
    yield f"shape = {_list(axes)}" + _comment(extents if FILL in axes else "")
    yield f"role = {toml_string(argument.role)}" + _comment(_about_role(argument))
    if is_float and argument.role in ("input", "inout"):
        yield '# values = "normal"' + _comment("if like this; else 1e-3 to 1e3 is tested too")
    align = _alignment(argument, language)
    if align is not None and argument.role != "local":
        yield f"align = {align}" + _comment(f"a {parameter.base} must lie on a multiple of its size")
    elif shape is not None and shape.align is not None and argument.role != "local":
        yield f"align = {shape.align}" + _comment("bytes of its widest access")
    elif argument.role != "local" and language != "opencl":
        yield "# align = 16" + _comment("if so: what is not promised is not loaded in vectors")
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


def _launch_table(bare: BareKernel, reading: BareReading | None) -> Iterator[str]:
    launch = bare.launch
    grid, block, about = launch.grid, launch.block, launch.about
    if reading is not None and reading.grid:
        # A block that the file says, in words that could not be followed, is not replaced by another one.
        said = bool(launches_of(bare.kernel, bare.source))
        if FILL in block and not said:
            block = reading.block
            own = "the block follows from the kernel's text"
            about = (
                own
                if reading.own_block
                else "say what callers launch, the measure of what is tuned: the file has no launch"
            )
        if FILL in grid and FILL not in block:
            grid = reading.grid
    others = [kernel.name for kernel in bare.source.kernels if kernel is not bare.kernel]
    if others:
        named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        yield f"# Does a call launch other kernels of the file too ({named})? Then write [[launch]] for each,"
        yield "# in their order, with entry and args: all are tuned together."
    yield "[launch]" + _comment(about)
    yield f"grid = {_list(grid)}" + _comment(launch.about_grid if FILL in grid else "")
    yield f"block = {_list(block)}" + _comment(launch.about_block if FILL in block else "")
    if launch.shared is not None:
        yield f"shared = {toml_string(launch.shared)}" + _comment(
            launch.about_shared if FILL in launch.shared else ""
        )


def _size_tables(
    arguments: Sequence[DraftArgument], reading: BareReading | None, of_entry: Sequence[str]
) -> Iterator[str]:
    added = () if reading is None else reading.added
    own = [argument.name for argument in arguments if argument.role == "size"]
    sizes = list(dict.fromkeys((*added, *own, *of_entry)))
    multiples = {} if reading is None else reading.multiples
    yield "[contract]" + _comment(
        "what callers promise: the smallest and the largest, and multiple_of where true; "
        "add sizes that only shapes or the launch have"
    )
    if not sizes:
        yield "# No parameter looks like a size: name one here, for the shapes and the launch."
    for name in sizes or [toml_string(FILL)]:
        step = multiples.get(name, 1)
        whole = f", multiple_of = {step}" if step > 1 else ""
        about = "the largest that callers send" + ("; the name is the draft's" if name in added else "")
        if name in of_entry:
            about += "; where they are few, one_of = [64, 128] in place of min and max: each is a build"
        yield f'{name} = {{ min = {step}, max = "{FILL}"{whole} }}' + _comment(about)
    yield ""
    yield "[workloads]" + _comment("where it must be fast: one line each, with real sizes")
    values = ", ".join(f'{name} = "{FILL}"' for name in sizes or [toml_string(FILL)])
    yield f"example = {{ {values} }}" + _comment("integers, without quotes; rename it")


def _accuracy_table(
    kernel: KernelSignature, arguments: Sequence[DraftArgument], reading: BareReading | None
) -> Iterator[str]:
    yield "[accuracy]"
    yield f"reference = {toml_string(f'reference.py:{possible_name(kernel.name)}')}" + _comment(
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
    if reading is not None and reading.independent is not None:
        yield f"independent = {toml_string(reading.independent)}" + _comment("none needs another's inputs")


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


def draft_reference(kernel: str, arguments: Sequence[DraftArgument], added: Sequence[str] = ()) -> str:
    name = possible_name(kernel)
    inputs = [a.name for a in arguments if a.role in ("input", "inout", FILL)]
    scalars = [a.name for a in arguments if a.role == "scalar"]
    sizes = [*added, *(a.name for a in arguments if a.role == "size")]
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
