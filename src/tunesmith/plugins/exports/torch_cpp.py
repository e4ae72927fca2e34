"""PyTorch operators in C++ over the embedded kernels: one writer for all exports that have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.deliver.expr_text import c_text
from tunesmith.plugins.exports import export_texts
from tunesmith.plugins.exports.tensor_call import (
    STAND_INS,
    TensorCall,
    given_sizes,
    is_float,
    plain_name,
    scalar_value,
)
from tunesmith.problem.dispatch import DispatchArgument

_TYPES = {
    "float16": "kHalf", "bfloat16": "kBFloat16", "float32": "kFloat", "float64": "kDouble",
    "float8_e4m3": "kFloat8_e4m3fn", "float8_e5m2": "kFloat8_e5m2", "int4": "kByte", "uint4": "kByte",
    "int8": "kChar", "int16": "kShort", "int32": "kInt", "int64": "kLong",
    "uint8": "kByte", "uint16": "kUInt16", "uint32": "kUInt32", "uint64": "kUInt64",
}  # fmt: skip


@dataclass(frozen=True)
class TorchOp:
    """An operator to register: with `allocates` it gives outputs back, else every array is passed in."""

    name: str  # in its namespace
    function: str  # in C++
    original: bool
    allocates: bool


@dataclass(frozen=True)
class TorchBinding:
    call: TensorCall
    namespace: str
    ops: Sequence[TorchOp]
    by_keyword: bool  # sizes and scalars, as in Python; else in order

    def schema(self, op: TorchOp) -> str:
        arrays, unshown = self._taken(op)
        parts = [
            f"Tensor{f'(a{number}!)' if a.role != 'input' else ''} {plain_name(a.name)}"
            for number, a in enumerate(arrays)
        ]
        named = [f"SymInt {plain_name(size)}" for size in unshown]
        for scalar in self.call.scalars:
            kind = "float" if is_float(scalar) else "int"
            named.append(f"{kind} {plain_name(scalar.name)}={scalar_value(scalar)!r}")
        outputs = len(self.call.outputs) if op.allocates else 0
        returned = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
        star = ["*"] if named and self.by_keyword else []
        return f"{op.name}({', '.join([*parts, *star, *named])}) -> {returned}"

    def definitions(self, functions: str, tags: str) -> str:
        """The lines of a registration; `functions` is put before the functions' names."""
        text = ""
        for op in self.ops:
            text += f"  ops.def({c_text(self.schema(op))}{tags});\n"
            for device in ("kCUDA", "kCPU"):  # for the latter it refuses in words
                text += f"  ops.impl({c_text(op.name)}, torch::{device}, &{functions}{op.function});\n"
        return text

    def declarations(self) -> list[str]:
        return [f"{self._result(op)} {op.function}({self._parameters(op)});" for op in self.ops]

    def source(self, about: str, own: str = "", first_include: str = "") -> str:
        call = self.call
        views = [[self._view(a) for a in arrays] for arrays in (call.arrays, call.given, call.outputs)]
        sizes, tags = given_sizes(call.unshown_by_all), "{at::Tag::pt2_compliant_tag, %s_tensors::layout_tag}"
        lines = self.definitions(f"{call.name}_tuned::", f", {tags % call.name}")
        texts = export_texts("torch_binding.j2")
        ops = [self._described(op) for op in self.ops]
        return str(texts.source(about, first_include, call, *views, sizes, ops, self.namespace, lines, own))

    def _described(self, op: TorchOp) -> dict[str, object]:
        sizes = given_sizes(self.call.unshown_by_all)
        if op.allocates:
            sizes = [f"sizes.{self.call.program.sizes[size]}" for size in self.call.unshown_by_all]
        signature: dict[str, object] = {
            "result": self._result(op),
            "function": op.function,
            "taken": self._parameters(op),
        }
        original, unshown = "true" if op.original else "false", given_sizes(self.call.unshown)
        return {
            **signature,
            "original": original,
            "allocates": op.allocates,
            "sizes": sizes,
            "unshown": unshown,
        }

    def _view(self, argument: DispatchArgument) -> dict[str, object]:
        kinds = dict.fromkeys(_TYPES[kind] for kind in (argument.type, *STAND_INS.get(argument.type, ())))
        return {
            "view": self.call.view(argument),
            "name": c_text(argument.name),
            "type": c_text(argument.type),
            "rule": c_text(f"[{', '.join(argument.shape)}]"),
            "kinds": ", ".join(f"at::{kind}" for kind in kinds),
            "is_written": argument.role != "input",
            "axes": len(argument.shape),
            "made": self._allocation(argument),
        }

    def _allocation(self, argument: DispatchArgument) -> str:
        options = "at::TensorOptions().device(at::kCUDA)"
        if self.call.given:
            options = f"tensor_{self.call.view(self.call.given[0])}.options()"
        view, dtype = self.call.view(argument), f"{options}.dtype(at::{_TYPES[argument.type]})"
        shape, strides = (
            ", ".join(f"{what}_{view}[{axis}]" for axis in range(len(argument.shape)))
            for what in ("shape", "strides")
        )
        if argument.strides:
            return f"at::empty_strided({{{shape}}}, {{{strides}}}, {dtype})"
        return f"at::empty({{{shape}}}, {dtype})"

    def _taken(self, op: TorchOp) -> tuple[tuple[DispatchArgument, ...], tuple[str, ...]]:
        if op.allocates:
            return self.call.given, self.call.unshown
        return self.call.arrays, self.call.unshown_by_all

    def _parameters(self, op: TorchOp) -> str:
        arrays, unshown = self._taken(op)
        kinds = (f"{'const ' if a.role == 'input' else ''}torch::Tensor&" for a in arrays)
        parts = [f"{kind} tensor_{self.call.view(a)}" for kind, a in zip(kinds, arrays, strict=True)]
        parts += [f"int64_t {size}" for size in given_sizes(unshown)]
        return ", ".join([*parts, *self.call.scalars_taken("int64_t")])

    def _result(self, op: TorchOp) -> str:
        count = len(self.call.outputs) if op.allocates else 0
        if count < 2:
            return "torch::Tensor" if count else "void"
        return f"std::tuple<{', '.join(['torch::Tensor'] * count)}>"
