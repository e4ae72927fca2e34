"""An operator of tuned kernels: which of them serves a call, decided once for each kind of call.

The device decides first, then the sizes. The original serves where nothing was verified: on another device,
at sizes outside the contract, with scalars other than those tuned with, where an array does not begin at the
multiple of bytes it was verified at, and where an array that is written overlaps another.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from .binding import Array, Signature, extent
from .element_types import as_bytes, is_float, nbytes
from .expressions import Expression, NoValue, RealExpression
from .manifest import BadDispatch, Entry, Manifest, ManifestArgument, ManifestLaunch, read_dispatch

KEPT = 4096  # kinds of calls that are remembered
_WORDS = 300  # of what a driver says
BUILDS = "builds.json"


class Delivered:
    """What one run delivered: its dispatch, and the files it names. `builds` tells how NVRTC compiles each
    entry: options, headers that it lacks, and the architecture's suffix."""

    def __init__(
        self, dispatch: Manifest, read: Callable[[str], bytes], builds: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.dispatch, self.read, self.builds = dispatch, read, tuple(builds)


def delivered_in(folder: str) -> Delivered:
    """A folder with dispatch.json and what it names."""
    root = os.path.realpath(folder)

    def read(name: str) -> bytes:
        path = os.path.realpath(os.path.join(root, name))
        if os.path.commonpath([root, path]) != root:
            raise BadDispatch(f"{name!r} is not in {folder}: use the files that the run wrote")
        with open(path, "rb") as file:
            return file.read()

    builds: Sequence[Mapping[str, Any]] = ()
    if os.path.exists(os.path.join(root, BUILDS)):
        builds = json.loads(read(BUILDS))
    return Delivered(read_dispatch(read("dispatch.json")), read, builds)


class Scratch(NamedTuple):
    """Memory that an entry needs beside the caller's."""

    name: str
    type: str
    nbytes: int
    align: int
    fill: bytes | None  # of one element; None: whatever is there


class BoundLaunch(NamedTuple):
    """A launch with the sizes put in. What it takes, in the kernel's order, is (kind, value): "array" and
    "scratch" with a number, "scalar" with the number of a scalar of the caller's, "value" with bytes, "local"
    with a number of bytes."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cluster: tuple[int, int, int] | None
    cooperative: bool
    pdl: bool
    args: tuple[tuple[str, Any], ...]


class Decision(NamedTuple):
    """What serves one kind of call."""

    delivered: Delivered
    entry: Entry
    launches: tuple[BoundLaunch, ...]
    scratch: tuple[Scratch, ...]
    why: str  # the original serves, where it does


class BoundCall:
    """One kind of call: arrays of these types, shapes, strides and this device."""

    def __init__(
        self,
        operator: Operator,
        delivered: Delivered,
        known: bool,
        sizes: dict[str, int],
        arrays: list[Array],
    ) -> None:
        signature = operator.signature
        self.sizes = sizes
        self._operator, self._delivered = operator, delivered
        self._aligned = tuple((n, a.align) for n, a in enumerate(signature.arrays) if a.align > 1)
        self.nbytes = [
            nbytes(a.type, extent(signature.shape_of(a, sizes), signature.strides_of(a, sizes)))
            for a in signature.arrays
        ]
        written = [a.is_written for a in signature.arrays]
        count = len(arrays)
        pairs = [(i, j) for i in range(count) for j in range(i) if written[i] or written[j]]
        self._pairs = tuple((i, j, self.nbytes[i], self.nbytes[j]) for i, j in pairs)
        self._why = ""
        if not known:
            self._why = "nothing was tuned on this device"
        elif not delivered.dispatch.allows(sizes):
            self._why = "the sizes are outside the contract"
        self._decisions: dict[str, Decision] = {}
        # What an output is filled with before each call, by its number.
        self.fills = tuple((n, a.fill) for n, a in enumerate(signature.arrays) if a.fill is not None)

    def decide(self, pointers: Sequence[int], scalars: Sequence[bytes], original: bool = False) -> Decision:
        why = self._why
        if original:
            why = "the original is asked for"
        elif not why:
            why = self._refusal(pointers, scalars)
        if why not in self._decisions:
            self._decisions[why] = self._operator.decision(self._delivered, self.sizes, why)
        return self._decisions[why]

    def _refusal(self, pointers: Sequence[int], scalars: Sequence[bytes]) -> str:
        """Why the original serves, or nothing."""
        for number, align in self._aligned:
            if pointers[number] % align:
                name = self._operator.signature.arrays[number].name
                return f"{name} does not begin at a multiple of {align} bytes"
        for i, j, size_i, size_j in self._pairs:
            if pointers[i] < pointers[j] + size_j and pointers[j] < pointers[i] + size_i:
                own = self._operator.signature.arrays
                return f"{own[i].name} and {own[j].name} overlap"
        if tuple(scalars) != self._operator.tuned_scalars:
            return "a scalar has another value than it was tuned with"
        return ""


def untuned_note(name: str, tuned_on: str, label: str, what: str = "its original serves") -> str:
    """Said once, on a device that no run was made on."""
    return (
        f"{name} was tuned on {tuned_on}; on {label} {what}. To tune it there run: tunesmith retune RUN; "
        "then export both runs together: tunesmith export RUN NEW_RUN --to ..."
    )


class Operator:
    """The results of one problem, one for each device."""

    def __init__(self, results: Sequence[Delivered]) -> None:
        if not results:
            raise BadDispatch("an operator needs a dispatch: export a run again")
        self.results = tuple(results)
        self.signature = Signature(results[0].dispatch)
        self.name = results[0].dispatch.problem
        self.tuned_scalars = tuple(
            as_bytes(a.type, float(a.value or 0) if is_float(a.type) else int(a.value or 0))
            for a in self.signature.scalars
        )
        self._calls: dict[Hashable, BoundCall] = {}
        self._warned: set[str] = set()
        self.refused: dict[str, str] = {}  # tuned kernels that this machine does not take, by file, and why

    def result_for(self, architecture: str, device: str = "") -> tuple[Delivered, bool]:
        """By architecture (sm_90), or by name where a dispatch has none; any of them, for its original,
        where none is for this device."""
        for result in self.results:
            own = result.dispatch
            if own.architecture == architecture if own.architecture else own.device == device:
                return result, True
        label = device or architecture
        if label not in self._warned:
            self._warned.add(label)
            tuned_on = ", ".join(r.dispatch.architecture or r.dispatch.device for r in self.results)
            warnings.warn(untuned_note(self.name, tuned_on, label), RuntimeWarning, stacklevel=3)
        return self.results[0], False

    def warn_refused(self, entry: Entry, why: object) -> None:
        """A tuned kernel that this machine does not take: once for each of them."""
        if entry.file in self.refused:
            return
        words = self.refused[entry.file] = " ".join(str(why).split())[:_WORDS]
        warnings.warn(
            f"{self.name}: {entry.file} cannot be used here ({words}): its original serves. Update the "
            "driver to that of the run, or tune here and export again",
            RuntimeWarning,
            stacklevel=4,
        )

    def call(
        self,
        key: Hashable,
        describe: Callable[[], Sequence[Array]],
        named: Mapping[str, int],
        device: Callable[[], tuple[str, str]],
    ) -> BoundCall:
        """The kind of call with this key. `describe` gives its arrays in the operator's order, `device` the
        architecture and name of theirs; both are asked where the kind is new."""
        found = self._calls.get(key)
        if found is None:
            arrays = list(describe())
            own = {argument.name: array for argument, array in zip(self.signature.arrays, arrays)}
            sizes = self.signature.bind(own, named)
            delivered, known = self.result_for(*device())
            if len(self._calls) >= KEPT:
                self._calls.clear()
            found = self._calls[key] = BoundCall(self, delivered, known, sizes, arrays)
        return found

    def scalar_bytes(self, given: Sequence[Any]) -> tuple[bytes, ...]:
        """The caller's scalars, in the operator's order; None: as tuned."""
        return tuple(
            tuned if value is None else self._scalar(argument, value)
            for argument, value, tuned in zip(self.signature.scalars, given, self.tuned_scalars)
        )

    def _scalar(self, argument: ManifestArgument, value: Any) -> bytes:
        if not isinstance(value, (int, float)):
            try:  # NumPy's own numbers, arrays of one element
                value = value.item()
            except AttributeError:
                fault = f"{self.name}: {argument.name} is a number of type {argument.type}, got {value!r}"
                raise TypeError(f"{fault}: pass a number") from None
        try:
            return as_bytes(argument.type, value)
        except ValueError as error:
            raise ValueError(f"{self.name}: {argument.name}: {error}: pass a value of its type") from error

    def named(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """What is passed by name, as sizes and as scalars in the operator's order."""
        left = dict(given)
        scalars = [left.pop(argument.name, None) for argument in self.signature.scalars]
        sizes = {name: left.pop(name) for name in self.signature.sizes if name in left}
        if left:
            name = next(iter(left))
            known = [a.name for a in (*self.signature.arrays, *self.signature.scalars)]
            listed = ", ".join([*known, *self.signature.sizes])
            own = self.signature.arguments.get(name)
            if own is not None and own.role == "scalar":
                raise TypeError(f"{self.name}: the sizes decide {name}: leave it out")
            raise TypeError(f"{self.name} has no argument {name!r}: known are {listed}")
        return sizes, scalars

    # -- deciding -------------------------------------------------------------------------------------------

    def decision(self, delivered: Delivered, sizes: dict[str, int], why: str) -> Decision:
        dispatch = delivered.dispatch
        entry = dispatch.original if why else dispatch.entry_for(sizes)
        scratch: dict[str, Scratch] = {}
        arguments = {a.name: a for a in (*dispatch.arguments, *entry.workspace)}
        for argument in arguments.values():
            if argument.role == "workspace" and not argument.alias:
                shape, strides = self.signature.shape_of, self.signature.strides_of
                count = nbytes(argument.type, extent(shape(argument, sizes), strides(argument, sizes)))
                scratch[argument.name] = Scratch(
                    argument.name, argument.type, count, argument.align, argument.fill
                )
        order = list(scratch)
        wanted = [one for one in entry.launches if one.when is None or self._number(one.when, sizes)]
        launches = tuple(self._launch(launch, arguments, order, sizes) for launch in wanted)
        return Decision(delivered, entry, launches, tuple(scratch.values()), why)

    def _launch(
        self,
        launch: ManifestLaunch,
        arguments: dict[str, ManifestArgument],
        scratch: list[str],
        sizes: dict[str, int],
    ) -> BoundLaunch:
        arrays = [a.name for a in self.signature.arrays]
        scalars = [a.name for a in self.signature.scalars]

        def taken(name: str) -> tuple[str, Any]:
            argument = arguments[name]
            if argument.role == "scalar":
                if argument.follows_sizes:
                    return "value", self._scalar(argument, self._value(argument.value, sizes))
                return "scalar", scalars.index(name)
            if argument.role == "local":
                count = 1
                for expression in argument.shape:
                    count *= max(0, self._number(expression, sizes))
                return "local", nbytes(argument.type, count)
            name = argument.alias or name
            return ("array", arrays.index(name)) if name in arrays else ("scratch", scratch.index(name))

        return BoundLaunch(
            launch.entry_for(sizes),
            self._three(launch.grid, sizes),
            self._three(launch.block, sizes),
            self._number(launch.shared, sizes) if launch.shared is not None else 0,
            self._three(launch.cluster, sizes) if launch.cluster else None,
            launch.cooperative,
            launch.pdl,
            tuple(taken(name) for name in launch.args),
        )

    def _three(self, expressions: Sequence[Expression], sizes: dict[str, int]) -> tuple[int, int, int]:
        values = [self._number(e, sizes) for e in expressions] + [1, 1, 1]
        return values[0], values[1], values[2]

    def _number(self, expression: Expression, sizes: dict[str, int]) -> int:
        return int(self._value(expression, sizes))

    def _value(self, expression: Expression | RealExpression, sizes: dict[str, int]) -> Any:
        try:
            return expression.evaluate(sizes)
        except NoValue as error:
            raise ValueError(
                f"{self.name}: {expression.text!r} has no value for these sizes ({error}): pass arrays of "
                "another size"
            ) from error
