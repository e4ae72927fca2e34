"""The operator as code over tensors: sizes from shapes, checks in words, scratch memory, and the launch.

What is written here knows no framework. `NAME_tensors.h` takes views of tensors and throws `Refused`; the
bindings make views of a framework's tensors, and the framework's errors of what is thrown.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import numpy as np

from tunesmith.base.errors import BadInput
from tunesmith.base.text import strip_controls
from tunesmith.deliver.artefact import Artefact
from tunesmith.deliver.cuda.host import DRIVER_AT_RUN_TIME, read_cuda_resource
from tunesmith.deliver.expr_text import C_TYPES, c_code, c_identifier, c_text
from tunesmith.plugins.exports import export_texts, fixed_value
from tunesmith.plugins.exports.cuda_cpp import HostFiles, embedded_host
from tunesmith.problem.dispatch import DispatchArgument
from tunesmith.problem.problem import element_type
from tunesmith.space import expr as n
from tunesmith.space.expr import Expr, Undefined, parse_expr

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LENGTH = 720720  # stands for any length: whether a size follows from shapes does not depend on it
# What else may lie under a tensor that stands for the type: its bits.
STAND_INS: dict[str, tuple[str, ...]] = {
    "bfloat16": ("uint16", "int16"),
    **dict.fromkeys(("float8_e4m3", "float8_e5m2", "int4", "uint4"), ("uint8", "int8")),
}


def read_export_text(name: str) -> str:
    return resources.files("tunesmith.plugins.exports").joinpath(name).read_text("utf-8")


def strip_markup(text: str) -> str:
    """Text of others in Markdown, between backticks or not: nothing in it is markup."""
    return re.sub(r"[`|<>\[\]\\]", "", " ".join(strip_controls(text).split()))


def plain_name(name: str) -> str:
    """As it may stand in a schema and before an equals sign."""
    return f"{name}_" if keyword.iskeyword(name) or name == "self" else name


def is_float(argument: DispatchArgument) -> bool:
    return element_type(argument.type).kind == "float"


def scalar_value(argument: DispatchArgument) -> float | int:
    value = fixed_value(argument) or 0
    return float(value) if is_float(argument) else int(value)


def given_sizes(sizes: Sequence[str]) -> list[str]:
    """The variables of sizes that no shape tells."""
    return [f"given_{c_identifier(size)}" for size in sizes]


@dataclass(frozen=True)
class ScratchMemory:
    """Memory that a kernel needs beside the caller's: bytes for some sizes."""

    variable: str  # of the launch
    type: str  # of the pointer
    uses: tuple[tuple[str, DispatchArgument], ...]  # under which condition; what it is there

    @property
    def filled(self) -> DispatchArgument | None:
        """One of the uses, where all are filled alike; None: not filled."""
        fills = {(a.type, a.init) for _, a in self.uses if a.init is not None}
        if len(fills) > 1:
            name = self.uses[0][1].name
            fault = f"the workspace {name!r} is filled with other values by other kernels"
            raise BadInput(fault, hint="export with --to cubin, and fill it yourself")
        return next((a for _, a in self.uses if a.init is not None), None)


class TensorCall:
    def __init__(self, artefact: Artefact, about: str = "") -> None:
        words = "Its kernels are the machine code that was verified. The driver is found at the first call."
        self.artefact = artefact
        self.name = artefact.name
        self.host: HostFiles = embedded_host(artefact, about or words, DRIVER_AT_RUN_TIME)
        self.program = self.host.program
        # Those that a caller brings.
        self.arrays = tuple(a for a in self.program.dispatch.arrays if a.role != "workspace")
        self.given = tuple(a for a in self.arrays if a.role != "output")
        self.outputs = tuple(a for a in self.arrays if a.role == "output")
        self.written = tuple(a for a in self.arrays if a.role != "input")
        self.scalars = self.program.dispatch.literals
        self._check_names()
        self.unshown = self._unshown(self.given)  # sizes that a call without outputs must name
        self.unshown_by_all = self._unshown(self.arrays)

    def _check_names(self) -> None:
        sizes = [size.name for size in self.artefact.first.dispatch.sizes]
        names = [a.name for a in (*self.arrays, *self.scalars)]
        for name in (*names, *sizes):
            if not _NAME.fullmatch(name) or name.startswith("_tunesmith"):
                fault = f"an argument or size is called {name!r}, which is no name for an operator's argument"
                raise BadInput(fault, hint="rename it in the problem file, and tune again")
        shown = [plain_name(name) for name in (*names, *self._unshown(self.given))]
        if twice := next((name for name in shown if shown.count(name) > 1), None):
            fault = f"two arguments or sizes of the operator are called {twice!r}"
            raise BadInput(fault, hint="rename one in the problem file, and tune again")

    @cached_property
    def scratch(self) -> tuple[ScratchMemory, ...]:
        own = [
            ScratchMemory(self.program.pointers[a.name], _pointer_type(a), (("1", a),))
            for a in self.program.dispatch.arrays
            if a.role == "workspace"
        ]
        for name, uses in self.program.workspaces.items():
            found = tuple((entry.when, argument) for entry, argument in uses)
            own.append(ScratchMemory(self.program.pointers[name], _pointer_type(found[0][1]), found))
        return tuple(own)

    @property
    def python_taken(self) -> str:
        """The parameters of a function that takes every array."""
        taken = [f"{plain_name(a.name)}: torch.Tensor" for a in self.arrays]
        taken += [f"{plain_name(size)}: int" for size in self.unshown_by_all]
        for a in self.scalars:
            kind = "float" if is_float(a) else "int"
            taken.append(f"{plain_name(a.name)}: {kind} = {scalar_value(a)!r}")
        return ", ".join(taken)

    @property
    def python_passed(self) -> str:
        names = (*(a.name for a in self.arrays), *self.unshown_by_all, *(a.name for a in self.scalars))
        return ", ".join(map(plain_name, names))

    @property
    def scalar_variables(self) -> list[str]:
        return [f"scalar_{c_identifier(a.name)}" for a in self.scalars]

    def scalars_taken(self, integer: str) -> list[str]:
        """As parameters in C++, integers of this type."""
        kinds = ("double" if is_float(a) else integer for a in self.scalars)
        return [f"{kind} {name}" for kind, name in zip(kinds, self.scalar_variables, strict=True)]

    @property
    def readme_words(self) -> dict[str, str]:
        """What READMEs say of devices, arrays, and what is left out."""
        shapes = [(a, strip_markup(", ".join(a.shape))) for a in self.arrays]
        return {
            "devices": strip_markup(", ".join(r.dispatch.device for r in self.artefact.results)),
            "arrays": "\n".join(f"- `{plain_name(a.name)}`: {a.role}, {a.type}, `{s}`" for a, s in shapes),
            "elsewhere": strip_markup(self.host.elsewhere),
            "left_out": "".join(f"\n- left out: {strip_markup(text)}" for text in self.host.left_out),
        }

    def _unshown(self, arrays: Sequence[DispatchArgument]) -> tuple[str, ...]:
        known = self._infer_sizes(arrays)
        return tuple(name for name in self.program.sizes if name not in known)

    def _infer_sizes(
        self, arrays: Sequence[DispatchArgument], named: Sequence[str] = ()
    ) -> dict[str, tuple[int, str]]:
        """Each size that shapes tell -> a value, if every length were the same, and the C++ that finds it.
        Bare names first, then what can be turned round, until nothing new is found."""
        pairs = [
            (parse_expr(text), _axis_length(argument, axis, self.program.pointers[argument.name]))
            for argument in arrays
            for axis, text in enumerate(argument.shape)
        ]
        known: dict[str, tuple[int, str]] = {}
        for expr, length in pairs:
            if isinstance(expr.tree, n.Variable) and expr.tree.id in self.program.sizes:
                known.setdefault(expr.tree.id, (_LENGTH, length))
        known |= {name: (_LENGTH, f"given_{c_identifier(name)}") for name in named if name not in known}
        count = -1
        while count < len(known):
            count = len(known)
            for expr, length in pairs:
                unknown = expr.names - known.keys()
                if len(unknown) == 1 and unknown <= self.program.sizes.keys():
                    (name,) = unknown
                    answer = self._solve_for_size(expr.tree, name, known, (_LENGTH, length))
                    known |= {name: answer} if answer is not None else {}
        return known

    def _solve_for_size(
        self, node: n.Node, name: str, known: Mapping[str, tuple[int, str]], result: tuple[int, str]
    ) -> tuple[int, str] | None:
        """What the name is where the node has this result; None where that is not one value."""
        value, text = result
        if isinstance(node, n.Variable):
            return result if node.id == name else None
        if isinstance(node, n.Neg):
            negated = -value, f"subtract(0LL, {text}, undefined)"
            return self._solve_for_size(node.operand, name, known, negated)
        if not isinstance(node, n.Arithmetic):
            return None
        left, right = self._valued(node.left, name, known), self._valued(node.right, name, known)
        if left is not None and right is None:
            inner, other, is_left = node.right, left, False
        elif right is not None and left is None:
            inner, other, is_left = node.left, right, True
        else:
            return None
        amount, code = other
        if node.op == "+":
            undone = (value - amount, f"subtract({text}, {code}, undefined)")
        elif node.op == "-" and is_left:
            undone = (value + amount, f"add({text}, {code}, undefined)")
        elif node.op == "-":
            undone = (amount - value, f"subtract({code}, {text}, undefined)")
        elif node.op == "*" and amount != 0:
            undone = (value // amount, f"divide({text}, {code}, undefined)")
        else:
            return None
        return self._solve_for_size(inner, name, known, undone)

    def _valued(
        self, node: n.Node, name: str, known: Mapping[str, tuple[int, str]]
    ) -> tuple[int, str] | None:
        """The value of a part without the name; None where it has the name, or no value."""
        expr = Expr(n.unparse(node), node)
        if name in expr.names:
            return None
        try:
            value = expr.evaluate({key: number for key, (number, _) in known.items()})
        except Undefined:
            return None
        return value, c_code(expr, self.program.sizes)

    @property
    def header(self) -> bytes:
        """NAME_tensors.h."""
        devices = ", ".join(r.dispatch.architecture or r.dispatch.device for r in self.artefact.results)
        devices = f"Its machine code is for {devices}. {self.host.elsewhere}"
        names = ("arithmetic.cuh", "launch_checks.h", "driver_at_run_time.h", "tensor_checks.h")
        fixed = "\n".join(map(read_cuda_resource, names))
        texts = export_texts("tensors.j2", c_text=c_text)
        return str(texts.header(self, devices, fixed)).encode()

    def view(self, argument: DispatchArgument) -> str:
        return self.program.pointers[argument.name]

    def parameters(self, arrays: Sequence[DispatchArgument], unshown: Sequence[str] = ()) -> list[str]:
        views = [f"const View& {self.view(argument)}" for argument in arrays]
        return views + [f"long long {size}" for size in given_sizes(unshown)]

    @property
    def sizes_shown(self) -> str:
        names = ((c_text(f"{name} = "), size) for name, size in self.program.sizes.items())
        parts = [f"{shown} + std::to_string(sizes.{size})" for shown, size in names]
        return ' + ", " + '.join(parts) or 'std::string("every call")'

    def inferred_sizes(
        self, arrays: Sequence[DispatchArgument], unshown: Sequence[str]
    ) -> list[tuple[str, str]]:
        """Each size's variable and value, in an order in which each is found from those before it."""
        inferred = self._infer_sizes(arrays, unshown)
        return [(self.program.sizes[size], code) for size, (_, code) in inferred.items()]

    def layout(self, argument: DispatchArgument) -> tuple[list[str], list[str]]:
        """Shape and strides in memory."""
        axes, packed = len(argument.shape), element_type(argument.type).packed
        shape = [f"larger({c_code(parse_expr(e), self.program.sizes)}, 0LL)" for e in argument.shape]
        strides = [c_code(parse_expr(e), self.program.sizes) for e in argument.strides or ()] or [
            "1LL"
        ] * axes
        for axis in reversed(range(0 if argument.strides else axes - 1)):
            strides[axis] = f"multiply({strides[axis + 1]}, {shape[axis + 1]}, undefined)"
        if packed > 1 and axes:
            shape[-1] = f"ceildiv({shape[-1]}, {packed}LL, undefined)"
            strides[:-1] = [f"divide({stride}, {packed}LL, undefined)" for stride in strides[:-1]]
        return shape, strides

    def scratch_bytes(self, scratch: ScratchMemory) -> list[tuple[str, str]]:
        """When each of its uses serves, and the bytes that it has."""
        sizes, uses = self.program.sizes, scratch.uses
        return [(c_code(parse_expr(when), sizes), self.program.bytes_of(a)) for when, a in uses]

    @property
    def fills(self) -> str:
        """What fills arrays that begin with a value."""
        given = [a for a in self.outputs if a.init is not None]
        fills = "".join(self._fill(a, f"{self.view(a)}.data", self.program.bytes_of(a)) for a in given)
        for scratch in self.scratch:
            if scratch.filled is not None:
                fills += self._fill(scratch.filled, scratch.variable, f"bytes_{scratch.variable}(sizes)")
        return f"    bool undefined = false;\n{fills}" if fills else ""

    def _fill(self, argument: DispatchArgument, place: str, nbytes: str) -> str:
        """Of elements that share a byte, all in it."""
        element = element_type(argument.type)
        bits = np.array(argument.init).astype(element.numpy).tobytes()
        pattern = (bits[0] & 15) * 17 if element.packed > 1 else int.from_bytes(bits, "little")
        count = f"divide({nbytes}, {element.bytes}LL, undefined)"
        return f"    fill({place}, {pattern:#x}ULL, {element.bytes}, {count}, stream);\n"

    @property
    def passed(self) -> str:
        """In the order of `launch`, of the types that it takes."""
        values = {self.program.pointers[a.name]: f"{self.view(a)}.data" for a in self.arrays}
        values |= {s.variable: s.variable for s in self.scratch}
        scalars = {name.replace("scalar_", "arg_", 1): name for name in self.scalar_variables}
        given = []
        for parameter in self.program.parameters:
            if parameter.name in values:
                given.append(f"static_cast<{parameter.type}>({values[parameter.name]})")
            elif parameter.name in scalars:
                name = c_text(parameter.name.removeprefix("arg_"))
                given.append(f"as_scalar<{parameter.type}>({name}, {scalars[parameter.name]})")
            else:
                given.append(parameter.name)
        return ", ".join(given)


def _pointer_type(argument: DispatchArgument) -> str:
    return f"{C_TYPES[argument.type][0]}*"


def _axis_length(argument: DispatchArgument, axis: int, view: str) -> str:
    packed = element_type(argument.type).packed if axis == len(argument.shape) - 1 else 1
    length = f"static_cast<long long>({view}.shape[{axis}])"
    return f"multiply({length}, {packed}LL, undefined)" if packed > 1 else length
