"""PyTorch operators in C++ over the embedded kernels: one writer for all exports that have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.deliver.expr_text import c_text, format_comment
from tunesmith.plugins.exports.tensor_call import (
    STAND_INS,
    TensorCall,
    given_sizes,
    is_float,
    plain_name,
    read_export_text,
    scalar_value,
)
from tunesmith.problem.dispatch import DispatchArgument

_TYPES = {
    "float16": "kHalf", "bfloat16": "kBFloat16", "float32": "kFloat", "float64": "kDouble",
    "float8_e4m3": "kFloat8_e4m3fn", "float8_e5m2": "kFloat8_e5m2", "int4": "kByte", "uint4": "kByte",
    "int8": "kChar", "int16": "kShort", "int32": "kInt", "int64": "kLong",
    "uint8": "kByte", "uint16": "kUInt16", "uint32": "kUInt32", "uint64": "kUInt64",
}  # fmt: skip
_HEADERS = (
    *("torch/types.h", "torch/library.h", "torch/version.h", "ATen/ATen.h", "ATen/cuda/CUDAContext.h"),
    *("c10/cuda/CUDAGuard.h", "initializer_list", "tuple"),
)


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
        """The whole file but for what `own` adds at its end; the registration may be left to another file."""
        name = self.call.name
        text = format_comment([about]) + first_include
        text += "".join(f"#include <{header}>\n" for header in _HEADERS) + f'#include "{name}_tensors.h"\n'
        fixed = read_export_text("torch_tensors.h")
        text += f"\nnamespace {name}_tensors {{\nnamespace {{\n\n{fixed}\n"
        text += self._run() + f"}}  // namespace\n}}  // namespace {name}_tensors\n\n"
        text += f"namespace {name}_tuned {{\n\n"
        text += "".join(
            self._allocating_function(op) if op.allocates else self._passing_function(op) for op in self.ops
        )
        text += f"}}  // namespace {name}_tuned\n\n"
        text += "#ifndef TUNESMITH_REGISTERED_ELSEWHERE\n"
        text += f"TORCH_LIBRARY_FRAGMENT({self.namespace}, ops) {{\n"
        tags = f", {{at::Tag::pt2_compliant_tag, {name}_tensors::layout_tag}}"
        lines = self.definitions(f"{name}_tuned::", tags)
        return text + f"{lines}}}\n#endif\n{own}"

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

    def _run(self) -> str:
        """Every array is there: check, allocate scratch memory, queue."""
        call = self.call
        tensors = [call.view(a) for a in call.arrays]
        taken = ["bool original", *(f"const torch::Tensor& tensor_{t}" for t in tensors)]
        taken += [f"int64_t {size}" for size in given_sizes(call.unshown_by_all)]
        taken += call.scalars_taken("int64_t")
        given = [*tensors, *given_sizes(call.unshown_by_all)]
        empty = ", ".join(call.view(a) for a in call.written)
        body = self._tensor_checks(call.arrays) + self._tensor_views(call.arrays)
        body += (
            f"  const Sizes sizes = sizes_of_all({', '.join(given)});\n"
            f"  check_all({', '.join([*tensors, 'sizes'])});\n"
            f"  if (is_empty({empty})) return;\n"
            f"  const c10::cuda::OptionalCUDAGuard device_guard(at::device_of(tensor_{tensors[0]}));\n"
            f"  const int device = static_cast<int>(tensor_{tensors[0]}.get_device());\n"
            "  const CurrentDevice current(device);\n"
        )
        passed = []
        for scratch in call.scratch:
            own = scratch.variable
            body += (
                f"  const long long wanted_{own} = bytes_{own}(sizes);\n"
                f"  const torch::Tensor memory_{own} = at::empty(\n"
                f"      {{wanted_{own}}}, tensor_{tensors[0]}.options().dtype(at::kByte));\n"
            )
            passed.append(f"wanted_{own} > 0 ? memory_{own}.mutable_data_ptr() : nullptr")
        written = ", ".join(f"&tensor_{call.view(a)}" for a in call.written)
        listed = ", ".join(["original", *tensors, *call.scalar_variables, "sizes", *passed, "stream"])
        body += (
            "  const cudaStream_t stream = at::cuda::getCurrentCUDAStream(device).stream();\n"
            f"  run({listed});\n"
            f"  note_written({{{written}}});\n"
        )
        return f"void call({', '.join(taken)}) {{\n{body}}}\n\n"

    def _tensor_checks(self, arrays: Sequence[DispatchArgument]) -> str:
        text = ""
        for argument in arrays:
            kinds = dict.fromkeys(_TYPES[t] for t in (argument.type, *STAND_INS.get(argument.type, ())))
            listed = ", ".join(f"at::{kind}" for kind in kinds)
            text += (
                f"  check_tensor(tensor_{self.call.view(argument)}, {c_text(argument.name)}, "
                f"{c_text(argument.type)}, {{{listed}}}, tensor_{self.call.view(arrays[0])});\n"
            )
        return text

    def _tensor_views(self, arrays: Sequence[DispatchArgument]) -> str:
        text = ""
        for argument in arrays:
            own, is_written = self.call.view(argument), "false" if argument.role == "input" else "true"
            rule = c_text(f"[{', '.join(argument.shape)}]")
            name = c_text(argument.name)
            text += f"  const View {own} = view_of(tensor_{own}, {name}, {rule}, {is_written});\n"
        return text

    def _passing_function(self, op: TorchOp) -> str:
        return self._function(op, self._call_text(op, given_sizes(self.call.unshown_by_all)))

    def _call_text(self, op: TorchOp, sizes: Sequence[str]) -> str:
        tensors = [f"tensor_{self.call.view(a)}" for a in self.call.arrays]
        passed = ["true" if op.original else "false", *tensors, *sizes, *self.call.scalar_variables]
        return f"    call({', '.join(passed)});\n"

    def _allocating_function(self, op: TorchOp) -> str:
        own = self.call
        body = self._tensor_checks(own.given).replace("\n  ", "\n    ").replace("  check", "    check", 1)
        body += self._tensor_views(own.given).replace("  const View", "    const View")
        given = [*(own.view(a) for a in own.given), *given_sizes(own.unshown)]
        body += f"    const Sizes sizes = sizes_given({', '.join(given)});\n    (void)sizes;\n"
        for argument in own.outputs:
            body += self._allocated(argument)
        body += self._call_text(op, [f"sizes.{own.program.sizes[size]}" for size in own.unshown_by_all])
        outputs = [f"tensor_{own.view(a)}" for a in own.outputs]
        returned = outputs[0] if len(outputs) == 1 else f"std::make_tuple({', '.join(outputs)})"
        if outputs:
            body += f"    return {returned};\n"
        return self._function(op, body)

    def _allocated(self, argument: DispatchArgument) -> str:
        own, axes, options = (
            self.call.view(argument),
            len(argument.shape),
            "at::TensorOptions().device(at::kCUDA)",
        )
        if self.call.given:
            options = f"tensor_{self.call.view(self.call.given[0])}.options()"
        dtype = f"{options}.dtype(at::{_TYPES[argument.type]})"
        shape = ", ".join(f"shape_{own}[{axis}]" for axis in range(axes))
        made = f"at::empty({{{shape}}}, {dtype})"
        if argument.strides:
            strides = ", ".join(f"strides_{own}[{axis}]" for axis in range(axes))
            made = f"at::empty_strided({{{shape}}}, {{{strides}}}, {dtype})"
        return (
            f"    long long shape_{own}[{axes + 1}] = {{}}, strides_{own}[{axes + 1}] = {{}};\n"
            f"    layout_{own}(sizes, shape_{own}, strides_{own});\n"
            f"    torch::Tensor tensor_{own} = {made};\n"
        )

    def _result(self, op: TorchOp) -> str:
        count = len(self.call.outputs) if op.allocates else 0
        if count < 2:
            return "torch::Tensor" if count else "void"
        return f"std::tuple<{', '.join(['torch::Tensor'] * count)}>"

    def _function(self, op: TorchOp, body: str) -> str:
        return (
            f"{self._result(op)} {op.function}({self._parameters(op)}) {{\n"
            f"  using namespace {self.call.name}_tensors;\n"
            f"  try {{\n{body}"
            "  } catch (const Refused& refused) {\n    raise_refused(refused);\n  }\n}\n\n"
        )
