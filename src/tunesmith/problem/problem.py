"""A problem as a value: element types, arguments, launches, contract, workloads, accuracy."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.text import digest_of, sha256_hex
from tunesmith.space.expr import Expr, RealExpr, Undefined
from tunesmith.space.space import Constraint

if TYPE_CHECKING:
    from tunesmith.source.preprocess import Predefined

Kind = Literal["float", "int", "uint"]


@dataclass(frozen=True)
class ElementType:
    """`bytes` is the size of what lies in memory: an element, or the byte that `packed` of them share."""

    name: str
    bytes: int
    kind: Kind
    mantissa: int = 0  # stored bits of the fraction; floats only
    min_exponent: int = 0  # exponent of the smallest normal number; floats only
    extension: bool = False  # NumPy has no such type; ml_dtypes does
    packed: int = 1  # elements in one byte, the first in its lowest bits

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """What NumPy computes with; packed elements are computed with one to a byte."""
        if self.packed > 1:
            return np.dtype(f"{self.kind}8")
        if not self.extension:
            return np.dtype(self.name)
        try:
            import ml_dtypes
        except ImportError as error:
            fault = f"element type {self.name} needs the package ml_dtypes, which is not installed"
            raise BadInput(fault, hint="install it with: pip install ml_dtypes") from error
        name = {"float8_e4m3": "float8_e4m3fn"}.get(self.name, self.name)
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found

    @property
    def memory(self) -> np.dtype[Any]:
        """What lies in memory, as NumPy sees it."""
        return np.dtype(np.uint8) if self.packed > 1 else self.numpy

    def nbytes(self, count: int) -> int:
        return -(-count // self.packed) * self.bytes

    @cached_property
    def largest(self) -> float:
        """The largest finite value."""
        if self.kind != "float":
            return self.bounds[1]
        if not self.extension:
            return float(np.finfo(self.numpy).max)
        # All there are: 65536 at most.
        every = np.arange(1 << 8 * self.bytes, dtype=f"u{self.bytes}").view(self.numpy)
        with np.errstate(invalid="ignore"):  # NaNs are among them
            values = every.astype(np.float64)
        return float(values[np.isfinite(values)].max())

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest value of an integer type."""
        bits = 8 * self.bytes // self.packed
        return (0, 2**bits - 1) if self.kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def holds(self, value: float) -> bool:
        """Whether an integer type has the value; floats round and are not asked."""
        return self.kind == "float" or (value == int(value) and self.bounds[0] <= value <= self.bounds[1])

    def ulp(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distance between neighbouring numbers of this type at each value (integers: 1)."""
        if self.kind != "float":
            return np.ones_like(values)
        _, exponent = np.frexp(np.abs(values))  # |v| = m * 2**e with m in [0.5, 1)
        floor = np.where(values == 0, self.min_exponent, np.maximum(exponent - 1, self.min_exponent))
        return np.asarray(np.ldexp(1.0, floor - self.mantissa), dtype=np.float64)


TYPES: dict[str, ElementType] = {
    t.name: t
    for t in (
        ElementType("float16", 2, "float", 10, -14),
        ElementType("bfloat16", 2, "float", 7, -126, extension=True),
        ElementType("float32", 4, "float", 23, -126),
        ElementType("float64", 8, "float", 52, -1022),
        ElementType("float8_e4m3", 1, "float", 3, -6, extension=True),
        ElementType("float8_e5m2", 1, "float", 2, -14, extension=True),
        *(ElementType(f"int{b}", b // 8, "int") for b in (8, 16, 32, 64)),
        *(ElementType(f"uint{b}", b // 8, "uint") for b in (8, 16, 32, 64)),
        ElementType("int4", 1, "int", packed=2),
        ElementType("uint4", 1, "uint", packed=2),
    )
}


def element_type(name: str) -> ElementType:
    """The type called `name`, or BadInput that lists what there is."""
    if name not in TYPES:
        hint = 'write e.g. type = "float32*" for an array or type = "int32" for a scalar'
        raise BadInput(f"unknown element type {name!r}; known are {', '.join(TYPES)}", hint=hint)
    return TYPES[name]


Role = Literal["input", "output", "inout", "workspace", "local", "scalar"]
Compare = Literal["close", "exact", "codes", "function"]  # the last: of the user's own
Distribution = Literal["normal", "uniform", "positive", "integers", "zeros", "ones"]

# What fields may hold: the files are read by these annotations.
MAX_AXES, MAX_EXTENTS = 8, 3
LARGEST_ALIGN = 65536  # beyond any caller's promise; every buffer is padded by as much
Tolerance = Annotated[float, Meta(ge=0, le=1e308)]
Axes = Annotated[tuple[Expr, ...], Meta(max_length=MAX_AXES)]
Extents = Annotated[tuple[Expr, ...], Meta(max_length=MAX_EXTENTS)]

ANY_ORDER = "any"  # of an output's elements; else one goes with another output, whose name is there

# The kinds of operations a problem may count; a multiply-add is two.
OPERATIONS = ("fp32", "fp16", "fp64", "tensor")


@dataclass(frozen=True)
class PythonFunction:
    """A function in one of the user's own Python files; the text travels with the run."""

    path: str
    function: str
    text: str


@dataclass(frozen=True)
class Kernel:
    path: str
    text: str
    entry: str
    language: str
    flags: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()  # the user's own: as included -> text
    compiler: str = ""  # nvrtc | nvcc; empty: the first that takes the source
    # What the compilers that may build it define, once they were asked. It says nothing of the problem.
    predefined: tuple[Predefined, ...] = field(default=(), repr=False)
    # Lanes of the device's waves, once it is known and the source asks; 0: what the language assumes.
    wave: int = field(default=0, repr=False)


@dataclass(frozen=True)
class Argument:
    """One argument in the kernel's own order. Arrays have a shape, scalars a value."""

    name: str
    type: str
    role: Role
    shape: Axes = ()
    strides: Axes = ()  # in elements; empty means dense, last axis fastest
    value: Expr | RealExpr | float | None = None
    values: Distribution | None = None  # None: the tester explores all of them
    range: tuple[float, float] | None = None
    init: float | None = None  # what the caller pre-fills an output with
    align: Annotated[int, Meta(ge=1, le=LARGEST_ALIGN)] | None = None
    alias: str | None = None
    rtol: Tolerance | None = None
    atol: Tolerance | None = None
    compare: Compare | None = None
    traffic: Expr | None = None
    order: str = ""  # of an output: empty, ANY_ORDER, or the output that it goes with
    along: int | None = None  # the axis whose order that is; None: the last
    keys: str = ""  # the input that an output's indices point into: equal keys are as good
    checker: PythonFunction | None = None  # where `compare` is "function"
    formula: Expr | None = None  # of an input: each element from its index and the sizes

    @property
    def element(self) -> ElementType:
        return element_type(self.type)

    @property
    def is_array(self) -> bool:
        return self.role not in ("scalar", "local")

    @property
    def is_written(self) -> bool:
        return self.role in ("output", "inout")

    @property
    def is_drawn(self) -> bool:
        """Whether its values are the tester's to choose."""
        return self.role in ("input", "inout") and self.formula is None

    @property
    def is_laid_out(self) -> bool:
        """Whether a host must lay it out element by element."""
        return bool(self.strides) or self.init is not None or self.formula is not None

    def bind(self, limits: Mapping[str, int]) -> Argument:
        """The same with a device's limits in place of their names."""
        return map_exprs(self, lambda expr: expr.bind(limits))


@dataclass(frozen=True)
class Launch:
    """One kernel launch; grid counts blocks (work-groups), block counts threads (work-items)."""

    entry: str
    grid: Extents
    block: Extents
    args: tuple[str, ...]
    shared: Expr | None = None
    cluster: Extents = ()
    cooperative: bool = False
    pdl: bool | Expr = False  # an expression only in a template, over its parameters
    when: Expr | None = None  # elsewhere it is left out


@dataclass(frozen=True)
class SizeRule:
    """What callers promise about one size."""

    name: str
    min: int
    max: int
    multiple_of: int = 1
    one_of: tuple[int, ...] = ()

    @property
    def span(self) -> tuple[int, int]:
        """The least and the largest value."""
        return (min(self.one_of), max(self.one_of)) if self.one_of else (self.min, self.max)

    def allows(self, value: int) -> bool:
        if self.one_of:
            return value in self.one_of
        return self.min <= value <= self.max and value % self.multiple_of == 0

    def describe(self) -> str:
        if self.one_of:
            return f"one of {', '.join(map(str, self.one_of))}"
        step = f" in steps of {self.multiple_of}" if self.multiple_of != 1 else ""
        return f"{self.min} to {self.max}{step}"


@dataclass(frozen=True)
class Contract:
    sizes: tuple[SizeRule, ...]
    require: tuple[Constraint, ...] = ()

    def violations(self, sizes: Mapping[str, int]) -> tuple[str, ...]:
        outside = [rule for rule in self.sizes if not rule.allows(sizes[rule.name])]
        broken = [f"{r.name} = {sizes[r.name]}, the contract allows {r.describe()}" for r in outside]
        known = [c for c in self.require if c.expr.names <= sizes.keys()]  # others ask for a device
        broken += [f"it breaks {c.expr.text!r}" for c in known if not c.expr.holds(sizes)]
        return tuple(broken)

    def bind(self, limits: Mapping[str, int]) -> Contract:
        """The same with a device's limits in place of their names."""
        return map_exprs(self, lambda expr: expr.bind(limits))


T = TypeVar("T")


def map_exprs(value: T, change: Callable[[Expr], Expr]) -> T:
    """An expression, or what has some, with each of them changed."""

    def changed(part: Any) -> Any:
        match part:
            case Expr():
                return change(part)
            case tuple():
                return tuple(map(changed, part))
            case Argument() | Launch() | Constraint() | Contract():
                return replace(part, **{f.name: changed(getattr(part, f.name)) for f in fields(part)})
        return part

    found: T = changed(value)
    return found


@dataclass(frozen=True)
class Workload:
    name: str
    sizes: tuple[tuple[str, int], ...]
    weight: float = 1.0
    cache: Literal["cold", "warm"] = "cold"

    def as_dict(self) -> dict[str, int]:
        return dict(self.sizes)


@dataclass(frozen=True)
class Accuracy:
    rtol: float
    atol: float
    reference: PythonFunction | None = None
    independent: str | None = None  # a size whose items do not influence each other: big cases are sampled
    deterministic: bool = True  # False: the original itself may differ from run to run
    baseline_may_fail: bool = False


@dataclass(frozen=True)
class Origin:
    """Where a problem was taken from. Files count from the repository's top; `digests` are of every file that
    it was made of, as text with plain line ends."""

    file: str  # that defines the kernel
    lines: tuple[int, int]  # the first and the last of its definition
    launches: tuple[str, ...]  # "file:line" of each launch that was seen
    digests: tuple[tuple[str, str], ...]
    repository: str = ""  # where it was
    capture: str = ""  # the folder of what a program launched, where one told
    kernel: str = ""  # the captured kernel's own name
    read: str = ""  # of the launches that from which promises were taken
    unread: tuple[str, ...] = ()  # what the host asks for there that no promise says
    alone: bool = False  # every other launch is of another instance of the kernel
    include: tuple[str, ...] = ()  # folders that headers were looked for in

    @property
    def launching_files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.rpartition(":")[0] for place in self.launches))


def is_inside(path: str) -> bool:
    """Whether a path names something below the folder that it counts from."""
    found = PurePosixPath(path)
    return not found.is_absolute() and ".." not in found.parts and bool(found.name)


@dataclass(frozen=True)
class Problem:
    name: str
    kernel: Kernel
    arguments: tuple[Argument, ...]
    launches: tuple[Launch, ...]
    contract: Contract
    workloads: tuple[Workload, ...]
    accuracy: Accuracy
    inputs: PythonFunction | None = None
    traffic: Expr | None = None
    operations: tuple[tuple[str, Expr], ...] = ()  # what must be computed, by kind, where the user says so
    recorded: tuple[RecordedCase, ...] = ()  # of a program's own launches
    # Where it was taken from. It says nothing of the problem: neither its digest nor equality has it.
    origin: Origin | None = field(default=None, repr=False, compare=False)

    @property
    def size_names(self) -> tuple[str, ...]:
        return tuple(rule.name for rule in self.contract.sizes)

    @property
    def digest(self) -> str:
        return digest_of(repr(self))

    def on(self, limits: Mapping[str, int]) -> Problem:
        """Of a device: contract and arguments over sizes alone."""
        arguments = tuple(a.bind(limits) for a in self.arguments)
        return replace(self, contract=self.contract.bind(limits), arguments=arguments)

    def beyond(self, limits: Mapping[str, int]) -> str | None:
        """Why a workload is outside the contract on this device; None: none is."""
        contract = self.contract.bind(limits)
        broken = ((w.name, v) for w in self.workloads for v in contract.violations(w.as_dict()))
        return next((f"workload '{name}' is outside the contract here: {why}" for name, why in broken), None)

    @property
    def own_rules(self) -> str:
        """How outputs are compared otherwise than element by element, for people; empty: none is."""
        outputs = [a for a in self.arguments if a.is_written and not a.alias]
        checked = [(a.name, a.checker) for a in outputs if a.checker]
        rules = [f"{name} compared by the user's own {f.path}:{f.function}" for name, f in checked]
        free = [a.name for a in outputs if a.order]
        rules += [f"{' and '.join(free)} in any order"] if free else []
        return "; ".join([*rules, *(f"{a.name} by the keys in {a.keys}" for a in outputs if a.keys)])

    def recorded_case(self, distribution: str) -> RecordedCase | None:
        """The one whose values are called so."""
        return next((one for one in self.recorded if one.distribution == distribution), None)

    def workload(self, name: str) -> Workload:
        return next(w for w in self.workloads if w.name == name)

    def argument(self, name: str) -> Argument:
        return next(a for a in self.arguments if a.name == name)


# A recorded case is what a program's own launch read and what it left, kept beside a problem as JSON: sizes,
# and arrays with their contents compressed, each with the digest of its bytes. To the laboratory it is inputs
# that a function makes and results that a reference gives; both functions are written here, around the same
# data.

FORMAT = 1
MAX_BYTES = 64 << 20  # of one case's arrays
MAX_TEXT = 24_000_000  # characters of one file
MAX_CASES = 8
DISTRIBUTION = "recorded "  # how such a case's values are called, before its name
When = Literal["before", "after"]


@dataclass(frozen=True)
class RecordedArray:
    """Dense, last axis fastest, whatever strides the kernel's own had."""

    name: str
    when: When
    type: str
    shape: tuple[int, ...]
    sha256: str  # of its bytes
    data: str = field(repr=False)  # these, by zlib, in base64

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * TYPES[self.type].bytes


@dataclass(frozen=True)
class RecordedFile:
    format: int
    about: str  # where it was recorded
    sizes: tuple[tuple[str, int], ...]
    arrays: tuple[RecordedArray, ...]


@dataclass(frozen=True)
class RecordedCase:
    """`name` is the file's, without its ending; `digest` that of its text."""

    name: str
    sizes: tuple[tuple[str, int], ...]  # in the contract's order
    digest: str
    arrays: tuple[RecordedArray, ...] = field(repr=False)

    @property
    def distribution(self) -> str:
        return DISTRIBUTION + self.name

    @cached_property
    def inputs(self) -> PythonFunction:
        return self._function("before", "recorded_inputs")

    @cached_property
    def results(self) -> PythonFunction:
        return self._function("after", "recorded_results")

    def _function(self, when: When, name: str) -> PythonFunction:
        arrays = [array for array in self.arrays if array.when == when]
        return PythonFunction(f"{self.name}.json", name, _arrays_module(arrays, name))


def recorded_array(name: str, when: When, type_: str, values: NDArray[Any]) -> RecordedArray:
    data = np.ascontiguousarray(values).tobytes()
    text = base64.b64encode(zlib.compress(data, 6)).decode()
    return RecordedArray(name, when, type_, values.shape, sha256_hex(data), text)


def recorded_text(
    about: str, sizes: Sequence[tuple[str, int]], arrays: Sequence[RecordedArray]
) -> str | None:
    """The file; None where it would be larger than what is read."""
    if sum(array.nbytes for array in arrays) > MAX_BYTES:
        return None
    text = encode_json(RecordedFile(FORMAT, about, tuple(sizes), tuple(arrays))).decode() + "\n"
    return text if len(text) <= MAX_TEXT else None


def read_recorded(
    name: str, text: str, arguments: Sequence[Argument], contract: Contract
) -> RecordedCase | str:
    """The case, or what is wrong with the file."""
    if len(text) > MAX_TEXT:
        return f"it has {len(text):,} characters, at most {MAX_TEXT:,} are read"
    try:
        found = decode_json(text.encode(), RecordedFile, "recorded case")
    except Malformed as error:
        return str(error)
    if found.format != FORMAT:
        return f"it has format {found.format}, and this version reads format {FORMAT}"
    sizes = dict(found.sizes)
    names = [rule.name for rule in contract.sizes]
    if sorted(sizes) != sorted(names) or len(sizes) != len(found.sizes):
        return f"its sizes are {', '.join(sizes) or 'none'}, the contract's {', '.join(names)}"
    if outside := contract.violations(sizes):
        return f"it is outside the contract: {outside[0]}"
    if fault := _arrays_fault(found.arrays, arguments, sizes):
        return fault
    ordered = tuple((size, sizes[size]) for size in names)
    digest = sha256_hex(text.encode())
    return RecordedCase(name.rpartition("/")[2].removesuffix(".json"), ordered, digest, found.arrays)


def _arrays_fault(
    arrays: Sequence[RecordedArray], arguments: Sequence[Argument], sizes: Mapping[str, int]
) -> str | None:
    arguments = [a for a in arguments if a.alias is None]
    wanted = {(a.name, "before"): a for a in arguments if a.is_drawn}
    wanted |= {(a.name, "after"): a for a in arguments if a.is_written}
    there = [(array.name, array.when) for array in arrays]
    missing = [key for key in wanted if key not in there]
    beyond = [key for key in there if key not in wanted]
    if missing or beyond or len(set(there)) != len(there):
        name, when = (missing or beyond or there)[0]
        return f"it holds what is read, before, and what is written, after, each once; not so {name} {when}"
    total = 0
    for array in arrays:
        argument = wanted[array.name, array.when]
        try:
            shape = tuple(axis.evaluate(sizes) for axis in argument.shape)
        except Undefined as error:
            return f"{array.name} has no shape there: {error}"
        if array.type != argument.type or array.shape != shape:
            got, meant = (f"{t} of shape {s}" for t, s in ((array.type, array.shape), (argument.type, shape)))
            return f"{array.name} is {got}, the problem has {meant}"
        if TYPES[array.type].packed > 1:
            return f"{array.name} is of a packed type, which cannot be recorded"
        total += array.nbytes
        if total > MAX_BYTES:
            return f"its arrays have more than {MAX_BYTES >> 20} MiB"
        if decode_array(array) is None:
            return f"the contents of {array.name} are not those that were recorded"
    return None


def decode_array(array: RecordedArray) -> bytes | None:
    """Its bytes; None where they are not what the digest says."""
    try:
        packed = base64.b64decode(array.data, validate=True)
        data = zlib.decompressobj().decompress(packed, array.nbytes + 1)
    except (binascii.Error, zlib.error, ValueError):
        return None
    return data if len(data) == array.nbytes and sha256_hex(data) == array.sha256 else None


def _arrays_module(arrays: Sequence[RecordedArray], function: str) -> str:
    """Python that gives these arrays; it is run in a worker, as a user's own function is."""
    extension = "import ml_dtypes\n" if any(TYPES[array.type].extension for array in arrays) else ""
    entries = ""
    for one in arrays:
        element = TYPES[one.type]
        type_ = f"ml_dtypes.{element.numpy.name}" if element.extension else f'"{element.numpy.name}"'
        entries += f'        "{one.name}": array({type_}, {one.shape!r}, "{one.data}"),\n'
    return f"""\
import base64
import zlib

{extension}import numpy as np


def array(type_, shape, data):
    memory = zlib.decompress(base64.b64decode(data))
    found = np.frombuffer(memory, type_).reshape(shape)
    return found if found.dtype.kind in "iu" else found.astype(np.float64)


def {function}():
    return {{
{entries}    }}
"""
