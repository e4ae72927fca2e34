"""Drafts a problem folder from a kernel source, with FILL wherever only the user knows."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tunesmith.base.errors import BadInput, bug_text
from tunesmith.expert.drafts.bare import (
    NOTHING_KNOWN,
    BareFailure,
    BareKernel,
    BareReading,
    KnownFacts,
    not_said,
    read_bare,
)
from tunesmith.expert.drafts.headers import KernelSignature, SourceModel, elements_of, template_arguments
from tunesmith.expert.drafts.launches import (
    FILL,
    DraftArgument,
    DraftLaunch,
    DraftRole,
    draft_arguments,
    draft_launch,
    launches_of,
    possible_name,
)
from tunesmith.expert.drafts.shapes import ArrayShape
from tunesmith.expert.drafts.signature import read_with_headers
from tunesmith.expert.read.checks import other_obstacles, with_change
from tunesmith.expert.read.words import explain_lines, fact_lines
from tunesmith.problem.problem import TYPES, Problem
from tunesmith.problem.problem_file import TOLERANCES
from tunesmith.problem.problem_text import toml_string
from tunesmith.problem.toml_table import walk_texts
from tunesmith.source.preprocess import asked_names, assume_predefined
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.reader.templates import bind_kernel
from tunesmith.source.tree import Language, Unreadable
from tunesmith.space.expr import parse_expr


def accuracy_table(
    kernel: KernelSignature,
    arguments: Sequence[DraftArgument],
    reading: BareReading | None,
    known: KnownFacts,
) -> Iterator[str]:
    yield "[accuracy]"
    if known.reference is None:
        without = "without one, results are compared with the original's"
        yield with_remark('# reference = "reference.py:function"', without)
    elif known.reference:
        yield f"reference = {toml_string(known.reference)}"
    else:
        remove = "remove this line and reference.py: results are then compared with the original's"
        function = toml_string(f"reference.py:{possible_name(kernel.name)}")
        yield with_remark(f"reference = {function}", f"fill it in, or {remove}")
    if not known.deterministic:
        yield "deterministic = false"
    main = main_output(arguments)
    if main is None:
        for key, place in (("rtol", 0), ("atol", 1)):
            numbers = {name: _format_decimal(TOLERANCES[name][place]) for name in ("float32", "float16")}
            usual = ", ".join(f"{number} for {name}" for name, number in numbers.items())
            yield with_remark(f'{key} = "{FILL}"', f"without quotes, e.g. {usual}")
    elif main in TOLERANCES:
        yield from tolerance_lines(main)
    else:
        yield "# Integers are compared exactly: no tolerance."
    if reading is not None and reading.independent is not None:
        yield with_remark(f"independent = {toml_string(reading.independent)}", "none needs another's inputs")


def main_output(arguments: Sequence[DraftArgument]) -> str | None:
    """The type that sets the tolerance: the first float among the outputs; None where one is not known."""
    types = [argument.element for argument in arguments if argument.may_be_output]
    if None in types or not types:
        return None
    return next((name for name in types if name in TOLERANCES), types[0])


def tolerance_lines(element: str | None) -> Iterator[str]:
    for key, value in zip(("rtol", "atol"), TOLERANCES.get(element or "", ()), strict=False):
        yield f"{key} = {_format_decimal(value)}"


def _format_decimal(value: float) -> str:
    return f"{value:g}".replace("e-0", "e-")


def quoted_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(toml_string(text) for text in texts)}]"


def with_remark(line: str, text: str) -> str:
    """The line with a comment behind it, which is one line: TOML allows no control characters in it."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    clean = " ".join(clean.encode("utf-8", "replace").decode("utf-8").split())
    return f"{line}  # {clean}" if clean else line


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


def draft_of(
    bare: BareKernel,
    found: BareReading | BareFailure | str,
    include: Sequence[str] = (),
    known: KnownFacts = NOTHING_KNOWN,
) -> Draft:
    """`known`: what somebody says besides, which goes before what follows from the text."""
    reading = found if isinstance(found, BareReading) else None
    arguments = with_reading(bare.arguments, reading)
    shapes = dict(_merge_shapes(arguments, reading, known))
    geometry = _draft_geometry(bare, reading, known)
    sizes = _used_sizes(arguments, reading, known, shapes, geometry)
    blocks = (
        (*_header_lines(bare.kernel, known), *_unread_comment(found)),
        _kernel_table(bare, include, known),
        *(
            _argument_table(argument, arguments, bare.language, shapes.get(argument.name), known)
            for argument in arguments
        ),
        _launch_table(bare, geometry),
        _size_tables(sizes, reading, known, bare.entry_sizes),
        accuracy_table(bare.kernel, arguments, reading, known),
    )
    problem = "\n".join("\n".join(block) + "\n" for block in blocks)
    files = {"problem.toml": problem}
    if known.reference == "":
        added = () if reading is None else reading.added
        files["reference.py"] = draft_reference(bare.kernel.name, arguments, added)
    # Comments speak of FILL too: of the problem file only its values count, as when it is read.
    fills = sum(FILL in text for _, text in walk_texts(tomllib.loads(problem)))
    return Draft(files, fills + files.get("reference.py", "").count(f'"{FILL}:'))


def _merge_shapes(
    arguments: Sequence[DraftArgument], reading: BareReading | None, known: KnownFacts
) -> Iterator[tuple[str, ArrayShape]]:
    read = {} if reading is None else reading.shapes
    for argument in arguments:
        shape, said = read.get(argument.name), known.shapes.get(argument.name)
        if shape is not None and FILL not in shape.extents and said is None:
            yield argument.name, replace(shape, extents=known.renamed(shape.extents))
        elif said is not None:
            yield argument.name, replace(shape or ArrayShape(said), extents=known.renamed(said))
        elif shape is not None:
            yield argument.name, shape


def _used_sizes(
    arguments: Sequence[DraftArgument],
    reading: BareReading | None,
    known: KnownFacts,
    shapes: Mapping[str, ArrayShape],
    launch: DraftLaunch,
) -> list[str]:
    """Those of the kernel's parameters, and whatever else expressions are made of."""
    parameters = [
        a.name for a in arguments if a.role == "size" and known.values.get(a.name, a.name) == a.name
    ]
    added = () if reading is None else reading.added
    if known is NOTHING_KNOWN:
        return [*added, *parameters]
    said = [text for name in shapes for text in shapes[name].extents]
    said += [*launch.grid, *launch.block, launch.shared or "1", *known.requires]
    said += [known.values[a.name] for a in arguments if a.is_integer and a.name in known.values]
    used = [name for text in said if FILL not in text for name in sorted(parse_expr(text).names)]
    used = [name for name in used if not name.startswith("device.")]
    kept = [name for name in parameters if name in used or name not in known.values]
    return list(dict.fromkeys([*(name for name in added if name in used), *kept, *used]))


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
    for kernel in model.kernels if entry is None else (_find_kernel(model.kernels, entry, file_name),):
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


def _find_kernel(kernels: Sequence[KernelSignature], entry: str, file_name: str) -> KernelSignature:
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


def _header_lines(kernel: KernelSignature, known: KnownFacts) -> Iterator[str]:
    by = known.head or "Drafted by `tunesmith init`."
    yield f'# {by} Replace every "FILL"; the comment beside it says what is wanted.'
    yield from (with_remark("", note).strip() for note in known.notes)
    yield f"name = {toml_string(re.sub(r'[^A-Za-z0-9_.-]', '_', kernel.name))}"


def _unread_comment(found: BareReading | BareFailure | str) -> Iterator[str]:
    """Why less is filled in than there could be."""
    if not isinstance(found, BareReading):
        reason = found if isinstance(found, str) else found.reason.reason
        yield with_remark("", f"The expert could not read the kernel: {reason}").strip()


def _kernel_table(bare: BareKernel, include: Sequence[str], known: KnownFacts) -> Iterator[str]:
    kernel, language = bare.kernel, bare.language
    yield "[kernel]"
    doubts = []
    if kernel.definitions > 1:
        doubts.append(
            f"{kernel.definitions} definitions of {kernel.name}; this is the one in line {kernel.line}"
        )
    if kernel.conditional:
        doubts.append("its header has #if: these are the arguments of the first branch")
    yield with_remark(f"source = {toml_string(bare.file)}", "; ".join(doubts))
    wanted = ""
    if FILL in bare.entry:
        wanted = f"template arguments for {', '.join(kernel.template_params)}"
        launched = [site for site in launches_of(kernel, bare.source) if site.template_args]
        if launched:
            wanted += f"; line {launched[0].line} launches {kernel.name}<{launched[0].template_args}>"
    yield with_remark(f"entry = {toml_string(bare.entry)}", wanted)
    yield f"language = {toml_string(language)}"
    example = "-cl-fast-relaxed-math" if language == "opencl" else "-use_fast_math"
    yield with_remark(f"flags = {quoted_list(known.flags)}", f'how production builds it, e.g. ["{example}"]')
    if known.compiler:
        yield f"compiler = {toml_string(known.compiler)}"
    if bare.defines:
        pairs = ", ".join(f"{name} = {toml_string(value)}" for name, value in bare.defines)
        yield f"defines = {{ {pairs} }}"
    if include:
        yield with_remark(f"include = [{', '.join(map(toml_string, include))}]", "where its own headers lie")


def _argument_table(
    argument: DraftArgument,
    arguments: Sequence[DraftArgument],
    language: Language,
    shape: ArrayShape | None,
    known: KnownFacts,
) -> Iterator[str]:
    parameter, name = argument.parameter, argument.name
    yield "[[argument]]"
    renamed = f"{parameter.name} in the kernel, which cannot be a name in reference.py"
    yield with_remark(f"name = {toml_string(name)}", "" if name == parameter.name else renamed)
    if name in known.nulls:
        yield with_remark('type = "uint64"', f"{parameter.type} in the kernel, which callers pass as null")
        yield "value = 0"
        return
    yield _type_line(argument)
    if argument.role in ("size", "scalar"):
        yield _value_line(argument, known)
        return
    yield _shape_line(argument, language, shape, known)
    if name in known.strides:
        yield f"strides = {quoted_list(known.strides[name])}"
    role = known.roles.get(name, argument.role)
    yield with_remark(f"role = {toml_string(role)}", _about_role(argument) if role == argument.role else "")
    if argument.is_float and argument.role in ("input", "inout"):
        yield with_remark('# values = "normal"', "if like this; else 1e-3 to 1e3 is tested too")
    if argument.role != "local":
        yield from _align_line(argument, language, shape, known)
    main = main_output(arguments)
    if argument.may_be_output and main in TOLERANCES and argument.element != main:
        yield from tolerance_lines(argument.element)


def _value_line(argument: DraftArgument, known: KnownFacts) -> str:
    said = known.values.get(argument.name)
    if said is not None:
        return f"value = {said if argument.is_float or said.isdecimal() else toml_string(said)}"
    if argument.role == "size":
        return f"value = {toml_string(argument.name)}"
    of_float = "the number callers pass, without quotes"
    wanted = of_float if argument.is_float else "an integer, or an expression over the sizes"
    beside = known.beside(argument.name)
    return with_remark(f'value = "{FILL}"', f"{wanted}; {beside}" if beside else wanted)


def _shape_line(
    argument: DraftArgument, language: Language, shape: ArrayShape | None, known: KnownFacts
) -> str:
    axes = (FILL,) if shape is None else shape.extents
    extents = "one entry per axis, over the sizes, outermost first"
    if argument.vector > 1:
        held = 4 if argument.vector == 3 and language == "opencl" else argument.vector
        extents += f"; in elements, {held} to each {argument.parameter.base}"
    if FILL in axes[1:] or axes[0] == FILL != axes[-1]:
        extents = "its other axes follow from the indices; this one only callers know"
    if FILL in axes and (beside := known.beside(argument.name)):
        extents += f"; {beside}"
    about = known.shapes_from.get(argument.name, "")
    return with_remark(f"shape = {quoted_list(axes)}", extents if FILL in axes else about)


def _align_line(
    argument: DraftArgument, language: Language, shape: ArrayShape | None, known: KnownFacts
) -> Iterator[str]:
    of_vector = _vector_alignment(argument, language)
    if argument.name in known.aligned:
        yield with_remark(f"align = {known.aligned[argument.name] or of_vector}", "as it was seen")
    elif of_vector is not None:
        reason = f"a {argument.parameter.base} must lie on a multiple of its size"
        yield with_remark(f"align = {of_vector}", reason)
    elif shape is not None and shape.align is not None:
        yield with_remark(f"align = {shape.align}", "bytes of its widest access")
    elif language != "opencl":
        yield with_remark("# align = 16", "if so: what is not promised is not loaded in vectors")


def _type_line(argument: DraftArgument) -> str:
    parameter = argument.parameter
    star = "*" if parameter.pointer else ""
    if argument.element is None:
        wanted = f'{parameter.type} in the kernel; an element type such as "float32{star}"'
        return with_remark(f'type = "{FILL}{star}"', wanted)
    if argument.vector > 1 and not parameter.pointer:
        wanted = f"{parameter.type} in the kernel; a vector passed by value is not supported"
        return with_remark(f'type = "{FILL}"', wanted)
    vector = f"{parameter.base} in the kernel" if argument.vector > 1 else ""
    return with_remark(f"type = {toml_string(argument.element + star)}", vector)


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


def _vector_alignment(argument: DraftArgument, language: Language) -> int | None:
    if argument.vector == 1 or argument.element is None or (argument.vector == 3 and language != "opencl"):
        return None
    size = TYPES[argument.element].bytes * (4 if argument.vector == 3 else argument.vector)
    return size if language == "opencl" else min(size, 16)


def _draft_geometry(bare: BareKernel, reading: BareReading | None, known: KnownFacts) -> DraftLaunch:
    """The launch, with what follows from the reading where nobody says it."""
    launch = bare.launch
    grid, block, about = launch.grid, launch.block, launch.about
    if reading is not None and reading.grid:
        # A block that the file says, in words that could not be followed, is not replaced by another one.
        said = bool(launches_of(bare.kernel, bare.source))
        if FILL in block and not said:
            block = reading.block
            about = "say what callers launch, the measure of what is tuned: the file has no launch"
            if reading.own_block:
                about = "the block follows from the kernel's text"
        if FILL in grid and FILL not in block:
            grid = reading.grid
    shared = None if launch.shared is None else known.renamed((launch.shared,))[0]
    return replace(launch, grid=known.renamed(grid), block=known.renamed(block), shared=shared, about=about)


def _launch_table(bare: BareKernel, launch: DraftLaunch) -> Iterator[str]:
    others = [kernel.name for kernel in bare.source.kernels if kernel is not bare.kernel]
    if others:
        named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        yield f"# Does a call launch other kernels of the file too ({named})? Then write [[launch]] for each,"
        yield "# in their order, with entry and args: all are tuned together."
    yield with_remark("[launch]", launch.about)
    lines = [("grid", quoted_list(launch.grid), launch.about_grid)]
    lines.append(("block", quoted_list(launch.block), launch.about_block))
    if launch.shared is not None:
        lines.append(("shared", toml_string(launch.shared), launch.about_shared))
    for name, value, about in lines:
        yield with_remark(f"{name} = {value}", about if f'"{FILL}"' in value else "")


def _size_tables(
    sizes: Sequence[str], reading: BareReading | None, known: KnownFacts, of_entry: Sequence[str]
) -> Iterator[str]:
    sizes = list(dict.fromkeys((*sizes, *of_entry)))
    added = () if reading is None else reading.added
    multiples = {**({} if reading is None else reading.multiples), **known.multiples}
    yield with_remark(
        "[contract]",
        "what callers promise: the smallest and the largest, and multiple_of where true; "
        "add sizes that only shapes or the launch have",
    )
    if not sizes:
        yield "# No parameter looks like a size: name one here, for the shapes and the launch."
    for name in sizes or [toml_string(FILL)]:
        step = multiples.get(name, 1)
        whole = f", multiple_of = {step}" if step > 1 else ""
        least, most = known.limits.get(name, (step, None))
        about = "the largest that callers send" + ("; the name is the draft's" if name in added else "")
        if name in of_entry:
            about += "; where they are few, one_of = [64, 128] in place of min and max: each is a build"
        if most is not None:
            who = known.limits_from.get(name, "")
            yield with_remark(f"{name} = {{ min = {least}, max = {most}{whole} }}", who)
        else:
            yield with_remark(f'{name} = {{ min = {step}, max = "{FILL}"{whole} }}', about)
    if known.requires:
        yield f"require = {quoted_list(known.requires)}"
    yield ""
    yield with_remark("[workloads]", "where it must be fast: one line each, with real sizes")
    for workload in known.workloads:
        given = dict(workload.sizes)
        said = [f"{name} = {given[name]}" if name in given else f'{name} = "{FILL}"' for name in sizes]
        said += [f"weight = {workload.weight:.4g}"] if workload.weight != 1.0 else []
        yield with_remark(f"{workload.name} = {{ {', '.join(said)} }}", workload.about)
    if not known.workloads:
        values = ", ".join(f'{name} = "{FILL}"' for name in sizes or [toml_string(FILL)])
        yield with_remark(f"example = {{ {values} }}", "integers, without quotes; rename it")


_TABLE = re.compile(r"\[+([\w.]+)\]+")
_OPEN = re.compile(rf"(\w+) = .*{FILL}.*?(?:  # (.*))?")
_UNKNOWN_TYPE = re.compile(r"the type of \w+, (?:const )?(\w+)\**, is not known")


@dataclass(frozen=True)
class ExplainedText:
    """One kernel of a file, as far as its text alone goes."""

    entry: str
    line: int
    is_read: bool
    lines: tuple[str, ...]  # what it computes
    obstacles: tuple[str, ...]  # all that stands in the way, each with what would have to change
    filled: tuple[str, ...]  # what a draft of its problem would say
    left: tuple[str, ...]  # and what it would leave to the user
    problem: Problem | None  # with made-up numbers, to ask for moves; None: not even that can be made


def explain_text(bare: BareKernel) -> ExplainedText:
    found = read_safely(bare)
    drafted = draft_of(bare, found).files["problem.toml"]
    left = (
        *_open_fields(drafted),
        "reference: the expected result in NumPy, or none, to compare with the original",
    )
    known = (bare.entry, bare.kernel.line)
    said = (tuple(_filled_lines(tomllib.loads(drafted))), left)
    if not isinstance(found, BareReading):
        problem = None if isinstance(found, str) else found.problem
        return ExplainedText(*known, False, (), tuple(_reading_obstacles(bare, found)), *said, problem)
    lines = (
        *explain_lines(found.kernel),
        *fact_lines(found.kernel),
        _about_block(found),
        *_compiler_note(bare),
    )
    return ExplainedText(*known, True, lines, (), *said, found.problem)


def _about_block(reading: BareReading) -> str:
    block = " x ".join(str(expr) for expr in reading.problem.launches[0].block)
    whose = "which the file says" if reading.own_block else "a usual number: the file says none"
    return f"Read with blocks of {block} threads, {whose}; every integer argument is taken for a size."


def _compiler_note(bare: BareKernel) -> tuple[str, ...]:
    """What is assumed of the compiler where the text asks for it."""
    if not asked_names((bare.text, *(text for _, text in bare.headers))):
        return ()
    which = assume_predefined(bare.language).said_by.rpartition(": ")[2]
    said = "a run asks the one that builds it, which `compiler` in [kernel] may name"
    return (f"What compilers define is assumed to be that of {which}: no compiler was asked; {said}.",)


def _reading_obstacles(bare: BareKernel, found: BareFailure | str) -> Iterator[str]:
    if isinstance(found, BareFailure):
        reason, line = found.reason.reason, found.reason.line
        yield with_change(reason if not line or f"line {line}" in reason else f"line {line}: {reason}")
        yield from found.reason.others
        return
    missing = not_said(bare)
    if found not in missing:
        yield found
    yield from (f"line {bare.kernel.line}: {_with_word(one, bare)}" for one in missing)
    if FILL not in bare.entry:
        yield from _of_the_text(bare)


def _with_word(reason: str, bare: BareKernel) -> str:
    """What could be said of a type that is not known."""
    unknown = _UNKNOWN_TYPE.match(reason)
    if unknown is None:
        return reason
    name = unknown[1]
    is_structure = re.search(rf"\b(?:struct|class|union)\s+{name}\b|\}}\s*{name}\s*;", bare.text) is not None
    change = (
        "pass its fields as arguments of their own"
        if is_structure
        else f"say it, as in --define {name}=float"
    )
    return f"{reason} (to change: {change})"


def _of_the_text(bare: BareKernel) -> tuple[str, ...]:
    try:
        source = read_source_tree(bare.text, bare.language, bare.defines, bare.headers)
        bound = bind_kernel(source, bare.entry)
        if isinstance(bound, str):
            return ()
        return other_obstacles(bound.function, bound.source, bound.function.name)
    except (Unreadable, RecursionError) as error:
        return (str(error) or "its expressions are nested too deeply",)


def _filled_lines(problem: Mapping[str, Any]) -> Iterator[str]:
    for argument in problem["argument"]:
        words = [argument["type"]] if FILL not in argument["type"] else []
        words += [argument["role"]] if argument.get("role", FILL) != FILL else []
        shape = argument.get("shape", [FILL])
        words += [f"shape [{', '.join(shape)}]"] if FILL not in shape else []
        words += [f"align {argument['align']}"] if "align" in argument else []
        words += [f"value {argument['value']}"] if argument.get("value", FILL) != FILL else []
        if words:
            yield f"{argument['name']}: {', '.join(words)}"
    launch = problem["launch"]
    texts = {
        key: value if isinstance(value, str) else f"[{', '.join(value)}]" for key, value in launch.items()
    }
    said = [f"{key} {texts[key]}" for key, value in launch.items() if FILL not in value]
    if said:
        yield f"launch: {', '.join(said)}"
    sizes = problem["contract"]
    steps = {name: rule["multiple_of"] for name, rule in sizes.items() if "multiple_of" in rule}
    whole = [f"{name} a multiple of {step}" for name, step in steps.items()]
    if names := [name for name in sizes if name != FILL]:
        yield f"sizes: {', '.join([*names, *whole])}"
    if "independent" in problem["accuracy"]:
        yield f"independent: {problem['accuracy']['independent']}"


def _open_fields(drafted: str) -> Iterator[str]:
    """Every place that says FILL, with the comment beside it."""
    table, name, sizes = "", "", False
    for line in drafted.splitlines():
        if header := _TABLE.match(line):
            table, name = header[1], ""
        elif line.startswith("name = "):
            name = line.split('"')[1]
        elif not line.startswith("#") and (place := _OPEN.fullmatch(line)):
            if table in ("contract", "workloads"):
                sizes = True
                continue
            where = f"{name or table}, " if table else ""
            yield f"{where}{place[1]}" + (f": {place[2]}" if place[2] else "")
    if sizes:
        yield "sizes: the largest of each that callers send, and workloads, where it must be fast"
