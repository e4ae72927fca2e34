"""Target `opencl`: a C header and source that any OpenCL program takes, the kernels in it as strings.

Tables say what there is, functions what each expression is worth; the fixed part (`opencl_host.c`,
`opencl_serving.c`) reads them. Everything but the four public functions is static.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources

import numpy as np

from tunesmith.base.errors import BadInput
from tunesmith.deliver.artefact import (
    Artefact,
    DeviceResult,
    Target,
    argument_of,
    bytes_of,
    describe_argument,
    is_written,
    within_contract,
)
from tunesmith.deliver.expr_text import (
    c_function,
    c_names,
    c_real_function,
    format_comment,
    string_literal,
    string_literals,
)
from tunesmith.plugins.exports import export_texts, fixed_value
from tunesmith.plugins.exports.python_package import (
    call_text,
    module_text,
    package_files,
    usage_text,
)
from tunesmith.plugins.exports.readmes import opencl_readme
from tunesmith.problem.device import OPENCL
from tunesmith.problem.dispatch import Dispatch, DispatchArgument, DispatchEntry, DispatchLaunch, value_expr
from tunesmith.problem.problem import element_type
from tunesmith.space.expr import LIMIT, Expr, RealExpr, parse_expr

# A program that calls an exported operator once, and how its arguments are written in C.
# C has no type for the narrow floats: they are passed as they lie in memory.
C_TYPES = {
    "float16": "cl_half", "bfloat16": "cl_ushort", "float8_e4m3": "cl_uchar", "float8_e5m2": "cl_uchar",
    "float32": "cl_float", "float64": "cl_double", "int8": "cl_char", "int16": "cl_short", "int32": "cl_int",
    "int64": "cl_long", "uint8": "cl_uchar", "uint16": "cl_ushort", "uint32": "cl_uint", "uint64": "cl_ulong",
    "int4": "cl_char", "uint4": "cl_uchar",
}  # fmt: skip


def element_bytes(argument: DispatchArgument, value: float) -> bytes:
    """One element, lowest byte first; host and device of a pattern have the same order."""
    kind = element_type(argument.type).numpy
    with np.errstate(over="ignore"):
        return bytes(np.array(value).astype(kind).tobytes())


def opencl_example(artefact: Artefact, names: Mapping[str, str]) -> str:
    """A program that makes one call, with zeros, at the first workload's sizes."""
    name, dispatch = artefact.name, artefact.first.dispatch
    sizes = dispatch.workloads[0].sizes if dispatch.workloads else {s.name: s.min for s in dispatch.sizes}
    lengths = {a.name: max(1, bytes_of(a).evaluate(sizes)) for a in dispatch.arrays}
    made = "".join(f"    cl_mem {names[a]} = zeros(context, queue, {n});\n" for a, n in lengths.items())
    scalars = ((C_TYPES[a.type], names[a.name], _initial_literal(a)) for a in dispatch.literals)
    made += "".join(f"    {kind} {name_} = {value};\n" for kind, name_, value in scalars)
    given = [
        "self", "queue", *(names[a.name] for a in (*dispatch.arrays, *dispatch.literals)),
        *(str(sizes[s]) for s in [size.name for size in dispatch.sizes]), "0", "NULL", "NULL",
    ]  # fmt: skip
    return str(export_texts("opencl_texts.j2").example(name, made, given))


def _initial_literal(argument: DispatchArgument) -> str:
    number = fixed_value(argument)
    if number is None or not np.isfinite(number):
        return "0"
    if C_TYPES[argument.type] in ("cl_float", "cl_double"):
        return repr(float(number)) + ("f" if argument.type == "float32" else "")
    return f"{int.from_bytes(element_bytes(argument, number), 'little'):#x}"


# The Python form of the export `opencl`: a package whose function takes PyOpenCL's or NumPy's arrays.
RUNTIME = ("arguments", "binding", "element_types", "expressions", "manifest", "opencl_op", "operator")


def python_files(artefact: Artefact) -> dict[str, bytes]:
    module = module_text(artefact, "PyOpenCL", "opencl_op", "OpenclCalls", "build all that may serve")
    own = artefact.first.dispatch
    queue = "queue"
    while queue in {a.name for a in own.arguments} | {size.name for size in own.sizes}:
        queue += "_"
    named = f"`{queue}=`, a `CommandQueue`"
    usage = usage_text("opencl", artefact, call_text(artefact), queue=named)
    return package_files(artefact, RUNTIME, module, '"pyopencl"', usage)


LARGEST = 2**63 - 1  # of the bits of a float64, as an integer
LONGEST_NAME = 1024  # characters of a kernel's or a device's name
_COMPUTED = {
    "int8": "TS_INT8", "uint8": "TS_UINT8", "int16": "TS_INT16", "uint16": "TS_UINT16", "int32": "TS_INT32",
    "uint32": "TS_UINT32", "int64": "TS_INT64", "uint64": "TS_UINT64", "float32": "TS_FLOAT",
    "float64": "TS_DOUBLE",
}  # fmt: skip


def opencl_files(artefact: Artefact) -> dict[str, bytes]:
    """Raises BadInput where C has no way to say what a kernel takes."""
    writer = _OperatorTables(artefact)
    name = artefact.name
    files = {
        f"{name}.h": _format_header(artefact, writer),
        f"{name}.c": writer.source(),
        "example.c": opencl_example(artefact, writer.names),
        "CMakeLists.txt": _opencl_cmake(name, writer.has_root),
        "README.md": opencl_readme(artefact, [*writer.names.values(), *writer.size_parameters.values()]),
    }
    return {file: text.encode() for file, text in files.items()}


def _opencl_cmake(name: str, has_root: bool) -> str:
    linked = "target_link_libraries(@NAME@ PUBLIC OpenCL::OpenCL)\n"
    root = "if(UNIX)\n  target_link_libraries(@NAME@ PUBLIC m)\nendif()\n" if has_root else ""
    return _read_fixed_text("opencl_cmake.txt").replace(linked, linked + root).replace("@NAME@", name)


class _OperatorTables:
    """The generated part of the source."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact
        self.dispatch = artefact.first.dispatch
        self.arrays, self.scalars = self.dispatch.arrays, self.dispatch.literals
        self.size_names = [size.name for size in self.dispatch.sizes]
        self.sizes = {name: f"size[{number}]" for number, name in enumerate(self.size_names)}
        self.names = c_names([a.name for a in (*self.arrays, *self.scalars)], "arg")
        self.size_parameters = c_names(self.size_names, "size")
        self.expressions: dict[str, str] = {}
        self.functions: list[str] = []
        self.programs: dict[tuple[str, tuple[str, ...]], int] = {}
        self.kernels = 0
        self.launches = 1
        self.workspaces = 0
        self.has_root = False

    def source(self) -> str:
        contract = self.expression(within_contract(self.dispatch))
        arrays = [f"{{{int(is_written(a))}, {a.align}, {self.expression(bytes_of(a))}}}" for a in self.arrays]
        tables, devices = self.devices()
        name = self.artefact.name
        counts = {
            "ARRAYS": len(self.arrays), "SIZES": len(self.size_names), "PROGRAMS": len(self.programs),
            "KERNELS": self.kernels, "LAUNCHES": self.launches, "WORKSPACES": max(1, self.workspaces),
            "DEVICES": len(devices), "LONGEST_NAME": LONGEST_NAME,
        }  # fmt: skip
        names = [string_literal(size) for size in self.size_names]
        return "".join(
            [
                format_comment([*self.about(), f"What calls it needs {name}.h alone."]),
                f'#include "{name}.h"\n\n#include <ctype.h>\n#include <stdint.h>\n#include <stdio.h>\n'
                "#include <stdlib.h>\n#include <string.h>\n",
                "#include <math.h>\n\n" if self.has_root else "\n",
                f"#define TS_OPERATOR {name}_operator\n",
                *(f"#define TS_{key} {value}\n" for key, value in counts.items()),
                f"\n{_read_fixed_text('opencl_host.c')}\n",
                "/* ---- Expressions over the sizes. ---- */\n\n",
                *self.functions,
                "\n/* ---- Kernels. ---- */\n\n",
                self.program_table(),
                _format_c_table("static const char *const ts_size_names", names or ["NULL"]),
                _format_c_table("static const struct ts_array ts_arrays", arrays or ["{0, 1, NULL}"]),
                f"static const ts_expression ts_contract = {contract};\n\n",
                *tables,
                _format_c_table("static const struct ts_device ts_devices", devices),
                f"\n{_read_fixed_text('opencl_serving.c')}\n",
                self.public(),
            ]
        )

    def about(self) -> list[str]:
        devices = ", ".join(result.dispatch.device for result in self.artefact.results)
        return [f"{self.artefact.problem}, tuned by Tunesmith on {devices}."]

    def devices(self) -> tuple[list[str], list[str]]:
        tables: list[str] = []
        rows: list[str] = []
        for number, result in enumerate(self.artefact.results):
            listed = result.dispatch.entries
            entries = [self.entry(result, e, f"{number}_{k}", tables) for k, e in enumerate(listed)]
            tables.append(_format_c_table(f"static const struct ts_entry ts_entries_{number}", entries))
            rows.append(f"{{{string_literal(result.dispatch.device)}, ts_entries_{number}, {len(entries)}}}")
        last = f"ts_entries_0 + {len(self.dispatch.entries) - 1}"
        return tables, [*rows, f"{{NULL, {last}, 1}}"]

    def entry(self, result: DeviceResult, entry: DispatchEntry, label: str, tables: list[str]) -> str:
        source = result.source(entry)
        if "\0" in source:
            raise BadInput(f"{entry.file} has a zero byte, where a string of C would end")
        program = self.programs.setdefault((source, entry.flags), len(self.programs))
        spaces = [a for a in entry.workspace if a.is_array]
        launches = [
            self.launch(result.dispatch, entry, launch, f"{label}_{number}", tables)
            for number, launch in enumerate(entry.launches)
        ]
        tables.append(_format_c_table(f"static const struct ts_launch ts_launches_{label}", launches))
        work = "NULL"
        if spaces:
            work = f"ts_workspaces_{label}"
            rows = [self.workspace(argument) for argument in spaces]
            tables.append(_format_c_table(f"static const struct ts_workspace {work}", rows))
        fields = [
            string_literal(entry.file), str(int(entry.config is not None)),
            self.expression(parse_expr(entry.when)),
            str(program), f"ts_launches_{label}", str(len(launches)), str(self.kernels), work,
            str(len(spaces)),
        ]  # fmt: skip
        self.kernels += len(launches)
        self.launches = max(self.launches, len(launches))
        self.workspaces = max(self.workspaces, len(spaces))
        return f"{{{', '.join(fields)}}}"

    def launch(
        self, dispatch: Dispatch, entry: DispatchEntry, launch: DispatchLaunch, label: str, tables: list[str]
    ) -> str:
        if launch.shared is not None and parse_expr(launch.shared).names | {launch.shared} != {"0"}:
            fault = f"{launch.entry} asks for shared memory by its launch, which OpenCL does not have"
            raise BadInput(fault, hint="use an argument of role local")
        if len(launch.entry) >= LONGEST_NAME // 2:
            raise BadInput(f"{entry.file}: a kernel's name has {len(launch.entry)} characters")
        args = [self.argument(entry, argument_of(dispatch, entry, name)) for name in launch.args]
        table = f"ts_arguments_{label}"
        rows = args or [_argument_row("TS_BUFFER")]
        tables.append(_format_c_table(f"static const struct ts_argument {table}", rows))
        grid, block = (self.three(each) for each in (launch.grid, launch.block))
        when = self.expression(parse_expr(launch.when)) if launch.when is not None else "NULL"
        return f"{{{string_literal(launch.entry)}, {grid}, {block}, {table}, {len(args)}, {when}}}"

    def argument(self, entry: DispatchEntry, argument: DispatchArgument) -> str:
        if argument.role == "local":
            return _argument_row("TS_LOCAL", expression=self.expression(bytes_of(argument)))
        if argument.role != "scalar":
            spaces = [a.name for a in entry.workspace if a.is_array]
            if argument.name in spaces:
                return _argument_row("TS_WORKSPACE", spaces.index(argument.name))
            own = [a.name for a in self.arrays]
            return _argument_row("TS_BUFFER", own.index(argument.alias or argument.name))
        if not argument.follows_sizes:
            return _argument_row("TS_GIVEN", [a.name for a in self.scalars].index(argument.name))
        if argument.type not in _COMPUTED:
            fault = f"{argument.name} is a {argument.type} that follows the sizes, which C cannot compute"
            raise BadInput(fault, hint="export the Python form, or pass it as an integer or a float32")
        expr, element = value_expr(argument), element_type(argument.type)
        if isinstance(expr, RealExpr):  # a float's bits are passed as those of an integer
            kind = f"TS_INT{8 * element.bytes}"
            return _argument_row("TS_COMPUTED", 0, kind, self.real(expr, argument.type), -LARGEST, LARGEST)
        low, high = max(-LIMIT, element.bounds[0]), min(LIMIT, element.bounds[1])
        return _argument_row("TS_COMPUTED", 0, _COMPUTED[argument.type], self.expression(expr), low, high)

    def workspace(self, argument: DispatchArgument) -> str:
        pattern = b""
        if argument.init is not None:
            pattern = element_bytes(argument, argument.init)
            if (packed := element_type(argument.type).packed) > 1:
                bits = 8 // packed
                one = pattern[0] & ((1 << bits) - 1)
                pattern = bytes([sum(one << bits * place for place in range(packed))])
        listed = ", ".join(str(byte) for byte in pattern.ljust(8, b"\0"))
        return f"{{{self.expression(bytes_of(argument))}, {len(pattern)}, {{{listed}}}}}"

    def three(self, axes: Sequence[str]) -> str:
        made = [self.expression(parse_expr(text)) for text in axes[:3]]
        return f"{{{', '.join([*made, 'NULL', 'NULL', 'NULL'][:3])}}}"

    def expression(self, expr: Expr) -> str:
        """The function that has its value."""
        return self._function(repr(expr.tree), expr.text, lambda name: c_function(name, expr, self.sizes))

    def real(self, expr: RealExpr, kind: str) -> str:
        """The same for a float."""
        self.has_root |= expr.has_root
        made = partial(c_real_function, expr=expr, kind=kind, names=self.sizes)
        return self._function(f"{kind} {expr.tree!r}", expr.text, made)

    def _function(self, key: str, text: str, made: Callable[[str], str]) -> str:
        if key not in self.expressions:
            self.expressions[key] = f"ts_value_{len(self.expressions)}"
            self.functions.append(format_comment([text]) + made(self.expressions[key]))
        return self.expressions[key]

    def program_table(self) -> str:
        parts, rows = [], []
        for (source, flags), number in self.programs.items():
            lines = string_literals(source) or ['""']
            parts.append(_format_c_table(f"static const char *const ts_text_{number}", lines))
            rows.append(f"{{ts_text_{number}, {len(lines)}, {string_literal(' '.join(flags))}}}")
        return "".join([*parts, _format_c_table("static const struct ts_program ts_programs", rows)])

    def declarations(self) -> dict[str, str]:
        name = self.artefact.name
        given = [f"cl_mem {self.names[a.name]}" for a in self.arrays]
        given += [f"{C_TYPES[a.type]} {self.names[a.name]}" for a in self.scalars]
        given += [f"long long {size}" for size in self.size_parameters.values()]
        waits = ["cl_uint num_events_in_wait_list", "const cl_event *event_wait_list", "cl_event *event"]
        taken = [f"{name}_operator *self", "cl_command_queue queue", *given, *waits]
        made = f"cl_context context, cl_device_id device, {name}_operator **self"
        return {
            "create": f"cl_int {name}_create({made})",
            "enqueue": f"cl_int {name}_enqueue({', '.join(taken)})",
            "served": f"const char *{name}_served(const {name}_operator *self)",
            "destroy": f"cl_int {name}_destroy({name}_operator *self)",
        }

    def public(self) -> str:
        declared = self.declarations()
        tests = [self.as_tuned(a) for a in self.scalars]
        memory = ", ".join(self.names[a.name] for a in self.arrays) or "NULL"
        given = ", ".join(f"{{&{(n := self.names[a.name])}, sizeof {n}}}" for a in self.scalars)
        sizes = ", ".join(self.size_parameters.values()) or "0"
        return str(export_texts("opencl_texts.j2").functions(declared, memory, given, sizes, tests))

    def as_tuned(self, argument: DispatchArgument) -> str:
        """To the bit, as the kernel would get it: a kernel may have the value in its code."""
        number = fixed_value(argument)
        if number is None or not element_type(argument.type).holds(number):
            return "0"
        bits = int.from_bytes(element_bytes(argument, number), "little")
        name = self.names[argument.name]
        return f"ts_same_bits(&{name}, {bits:#x}ULL, sizeof {name})"


def _argument_row(
    kind: str, index: int = 0, type: str = "0", expression: str = "NULL", low: int = 0, high: int = 0
) -> str:
    return f"{{{kind}, {index}, {type}, {expression}, {low}LL, {high}LL}}"


def _format_c_table(declared: str, rows: Sequence[str]) -> str:
    return f"{declared}[] = {{\n{''.join(f'    {row},' + chr(10) for row in rows)}}};\n"


def _read_fixed_text(name: str) -> str:
    return resources.files("tunesmith.plugins.exports").joinpath(name).read_text("utf-8")


def _format_header(artefact: Artefact, writer: _OperatorTables) -> str:
    name, declared = artefact.name, writer.declarations()
    taken = [f"  {writer.names[a.name]}: {describe_argument(a)}" for a in (*writer.arrays, *writer.scalars)]
    taken += [
        f"  {parameter}: {size.describe()}"
        for parameter, size in zip(writer.size_parameters.values(), writer.dispatch.sizes, strict=True)
    ]
    about = [*writer.about(), "", f"{name}_enqueue takes", "", *taken, ""]
    return str(export_texts("opencl_texts.j2").header(name, about, list(declared.values())))


def _export_opencl(artefact: Artefact) -> dict[str, bytes]:
    own = {f"python/{name}": data for name, data in python_files(artefact).items()}
    return opencl_files(artefact) | own


TARGET = Target(
    name="opencl",
    about="C for any OpenCL program, with an example and CMakeLists.txt; and a package for PyOpenCL",
    languages=(OPENCL.name,),
    write=_export_opencl,
)
