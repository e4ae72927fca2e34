"""Tuned kernels as PyTorch operators: eager, in torch.compile and in CUDA graphs, on the current stream.

Of each operator there are four: the functional one (inputs in, outputs back; what is changed in place is
declared so), `_out` (every array in the kernel's order), and the same two of the original. They have no
gradient.
"""

from __future__ import annotations

import contextlib
import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .arguments import passed
from .binding import Array
from .cuda_calls import CudaCalls
from .element_types import is_float
from .manifest import ManifestArgument
from .operator import KEPT, Operator

_NAMES = {
    "float16": "float16", "bfloat16": "bfloat16", "float32": "float32", "float64": "float64",
    "float8_e4m3": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
    **{name: name for bits in (8, 16, 32, 64) for name in (f"int{bits}", f"uint{bits}")},
}  # fmt: skip
DTYPES = {name: getattr(torch, own) for name, own in _NAMES.items() if hasattr(torch, own)}
DTYPES.update({"int4": torch.uint8, "uint4": torch.uint8})
_TYPES = {getattr(torch, own): name for name, own in _NAMES.items() if hasattr(torch, own)}
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def type_of(tensor: Any) -> str:
    return _TYPES.get(tensor.dtype, str(tensor.dtype))


def _stream(ordinal: int) -> int:
    """The number of the current stream, by the way that compiled code takes where there is one."""
    if _raw_stream is not None:
        return int(_raw_stream(ordinal))
    return int(torch.cuda.current_stream(ordinal).cuda_stream)


def _array(tensor: Any) -> Array:
    return Array(type_of(tensor), tuple(tensor.shape), tuple(tensor.stride()), str(tensor.device))


class TorchCalls:
    """Calls with tensors, without PyTorch's dispatcher."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.signature = operator.signature
        self.calls = CudaCalls(operator)
        self._layouts: dict[Any, list[Any]] = {}
        self._written = [n for n, a in enumerate(self.signature.arrays) if a.is_written]

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        return self._passed(arrays, named, False)

    def original(self, /, *arrays: Any, **named: Any) -> Any:
        return self._passed(arrays, named, True)

    def prepare(self, device: Any = None) -> None:
        """Load, or compile, all that may serve: before a capture, or to have the first call as fast."""
        torch.cuda.init()
        ordinal = None if device is None else torch.device(device).index
        self.calls.prepare(torch.cuda.current_device() if ordinal is None else ordinal)

    def _passed(self, arrays: Sequence[Any], named: Mapping[str, Any], original: bool) -> Any:
        for value in (*arrays, *named.values()):
            if not isinstance(value, (torch.Tensor, int, float)):
                raise TypeError(
                    f"{self.operator.name} takes tensors and numbers, got {type(value).__name__}: convert it"
                )
        own = passed(self.operator, arrays, named, lambda _, tensor: tuple(tensor.shape), self.allocate)
        self.run(own.arrays, own.sizes, own.scalars, original)
        return own.result

    def allocate(
        self, argument: ManifestArgument, shape: Sequence[Any], strides: Sequence[Any] | None, like: Any
    ) -> Any:
        device = like.device if like is not None else torch.device("cuda", torch.cuda.current_device())
        if argument.strides and strides is not None:
            return torch.empty_strided(
                tuple(shape), tuple(strides), dtype=DTYPES[argument.type], device=device
            )
        return torch.empty(tuple(shape), dtype=DTYPES[argument.type], device=device)

    def outputs(self, tensors: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        """New ones for these inputs, which are all that a caller gives."""
        key = (tuple(t.shape for t in tensors), tuple(sizes.items()))
        layouts = self._layouts.get(key)
        if layouts is None:
            shapes: dict[str, Any] = {}
            for argument, tensor in zip(self.signature.given, tensors):
                self.signature.check_kind(argument, type_of(tensor), tensor.shape)
                shapes[argument.name] = self.signature.elements(argument, tuple(tensor.shape))
            known = {name: int(size) for name, size in self.signature.sizes_of(shapes, sizes).items()}
            layouts = [(a, *self.signature.memory_layout(a, known)) for a in self.signature.outputs]
            if len(self._layouts) >= KEPT:
                self._layouts.clear()
            self._layouts[key] = layouts
        like = tensors[0] if tensors else None
        return [self.allocate(argument, shape, strides, like) for argument, shape, strides in layouts]

    def run(
        self, tensors: Sequence[Any], sizes: Mapping[str, int], scalars: Sequence[Any], original: bool
    ) -> Any:
        """Queue the call on the current stream; tensors are in the operator's order."""
        key = (
            tuple((t.dtype, t.shape, t.stride(), t.device) for t in tensors),
            tuple(sizes.items()),
        )
        call = self.operator.call(
            key, lambda: [self._described(t) for t in tensors], sizes, lambda: self._device_of(tensors)
        )
        ordinal = tensors[0].device.index if tensors else torch.cuda.current_device()
        here = ordinal == torch.cuda.current_device()
        with contextlib.nullcontext() if here else torch.cuda.device(ordinal):

            def allocate(nbytes: int) -> tuple[int, Any]:
                memory = torch.empty(nbytes, dtype=torch.uint8, device=torch.device("cuda", ordinal))
                return memory.data_ptr(), memory

            decision = self.calls.launch(
                call,
                [t.data_ptr() for t in tensors],
                self.operator.scalar_bytes(scalars),
                ordinal,
                _stream(ordinal),
                allocate,
                original,
            )
        for number in self._written:  # autograd must notice that what it may have saved has changed
            if not tensors[number].is_inference():
                torch.autograd.graph.increment_version(tensors[number])
        return decision

    def _described(self, tensor: Any) -> Array:
        if tensor.device.type != "cuda":
            raise ValueError(
                f"{self.operator.name} runs on a CUDA device, got a tensor on {tensor.device}: move it with "
                '.to("cuda")'
            )
        if tensor.layout is not torch.strided:
            raise ValueError(
                f"{self.operator.name} takes strided tensors, got {tensor.layout}: use .to_dense()"
            )
        return _array(tensor)

    def _device_of(self, tensors: Sequence[Any]) -> tuple[str, str]:
        return self.calls.device_of(tensors[0].device.index if tensors else torch.cuda.current_device())


# -- operators ----------------------------------------------------------------------------------------------


class TorchOperators:
    """The four operators, registered as NAMESPACE::NAME, NAME_out, NAME_original and NAME_original_out. With
    `native` an extension has registered them already, and only what compilers need is added."""

    def __init__(self, calls: TorchCalls, namespace: str, name: str, native: bool = False) -> None:
        self.calls = calls
        self._signature = calls.signature
        self._library = torch.library.Library(namespace, "FRAGMENT")
        self.functional, self.out = self._registered(namespace, name, False, native)
        self.functional_original, self.out_original = self._registered(
            namespace, f"{name}_original", True, native
        )

    def prepare(self, device: Any = None) -> None:
        self.calls.prepare(device)

    def _registered(self, namespace: str, name: str, original: bool, native: bool) -> tuple[Any, Any]:
        self._define(namespace, name, self._signature.given, self._signature.unshown, original, True, native)
        own = f"{name}_out"
        every = self._signature.arrays
        self._define(namespace, own, every, self._signature.unshown_by_all, original, False, native)
        ops = getattr(torch.ops, namespace)
        return getattr(ops, name).default, getattr(ops, own).default

    def _define(
        self,
        namespace: str,
        name: str,
        arrays: Sequence[ManifestArgument],
        unshown: Sequence[str],
        original: bool,
        allocates: bool,
        native: bool,
    ) -> None:
        def split(
            args: Sequence[Any], named: Mapping[str, Any]
        ) -> tuple[list[Any], dict[str, Any], list[Any]]:
            left = dict(named)
            tensors = list(args)
            tensors += [left.pop(plain_name(a.name)) for a in arrays[len(args) :]]
            scalars = [left.pop(plain_name(a.name), None) for a in self._signature.scalars]
            return tensors, {size: left[plain_name(size)] for size in unshown}, scalars

        def real(*args: Any, **named: Any) -> Any:
            tensors, sizes, scalars = split(args, named)
            if not allocates:
                self.calls.run(tensors, sizes, scalars, original)
                return None
            outputs = self.calls.outputs(tensors, sizes)
            made = iter(outputs)
            given = iter(tensors)
            every = [next(made if a.role == "output" else given) for a in self._signature.arrays]
            self.calls.run(every, sizes, scalars, original)
            return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

        def fake(*args: Any, **named: Any) -> Any:
            tensors, sizes, _ = split(args, named)
            shapes: dict[str, Any] = {}
            for argument, tensor in zip(arrays, tensors):
                self._signature.check_kind(argument, type_of(tensor), tensor.shape)
                shapes[argument.name] = self._signature.elements(argument, tuple(tensor.shape))
            if not allocates:
                return None
            known = self._signature.sizes_of(shapes, sizes)
            like = tensors[0] if tensors else None
            outputs = [self._fake_output(argument, known, like) for argument in self._signature.outputs]
            return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

        if not native:
            schema = schema_of(name, arrays, self._signature.scalars, unshown, self._outputs(allocates))
            self._library.define(schema, tags=_tags())
            for key in ("CUDA", "CPU"):  # the latter refuses in words
                self._library.impl(name, real, key)
        torch.library.register_fake(f"{namespace}::{name}", fake, lib=self._library)

    def _outputs(self, allocates: bool) -> int:
        return len(self._signature.outputs) if allocates else 0

    def _fake_output(self, argument: ManifestArgument, known: Mapping[str, Any], like: Any) -> Any:
        shape = self._signature.symbolic_shape(argument, known)
        strides = tuple(e.symbolic(known) for e in argument.strides) or None
        return self.calls.allocate(argument, shape, strides, like)


def plain_name(name: str) -> str:
    """As it may stand in a schema and before an equals sign."""
    return f"{name}_" if keyword.iskeyword(name) or name == "self" else name


def schema_of(
    name: str,
    arrays: Sequence[ManifestArgument],
    scalars: Sequence[ManifestArgument],
    sizes: Sequence[str],
    outputs: int,
) -> str:
    """Of the names in it each was checked to be a name of C."""
    parts: list[str] = []
    for number, argument in enumerate(arrays):
        written = f"(a{number}!)" if argument.is_written else ""
        parts.append(f"Tensor{written} {plain_name(argument.name)}")
    named = [f"SymInt {plain_name(size)}" for size in sizes]
    for scalar in scalars:
        kind, value = ("float", float(scalar.value)) if is_float(scalar.type) else ("int", int(scalar.value))
        named.append(f"{kind} {plain_name(scalar.name)}={value!r}")
    returned = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    return f"{name}({', '.join([*parts, *(['*', *named] if named else [])])}) -> {returned}"


def _tags() -> tuple[Any, ...]:
    """Compilers must bring arrays in the layout in which they were traced."""
    wanted = ["pt2_compliant_tag"]
    wanted.append(
        "needs_exact_strides" if hasattr(torch.Tag, "needs_exact_strides") else "needs_fixed_stride_order"
    )
    return tuple(getattr(torch.Tag, name) for name in wanted if hasattr(torch.Tag, name))
