"""Problems with originals and candidates, right and wrong in every way, and the status each deserves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from tests.core.lab.labs import REFERENCE, scale_problem
from tests.core.lab.oracles import Judges, a_case
from tests.core.lab.python_kernels import Argument, Array, Kernel, elementwise, then
from tunesmith.problem.cases import Case
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem

OUT = 'name = "out"\ntype = "float32*"\nshape = ["rows", "d"]\nrole = "output"'
X = 'name = "x"\ntype = "float32*"\nshape = ["rows", "d"]\nrole = "input"'
TIGHT = "rtol = 1e-6\natol = 1e-6"
TWICE = elementwise(lambda x: 2 * x)


def out_of(type: str, *more: str) -> tuple[str, str]:
    """The output declared otherwise."""
    return OUT, "\n".join([OUT.replace("float32", type), *more])


def accuracy(*lines: str) -> tuple[str, str]:
    return TIGHT, "\n".join(lines)


def reference(text: str) -> str:
    return f"import numpy as np\ndef scale(x):\n    return {text}\n"


def add(amount: float, *places: int, type: str = "float32") -> Callable[[Argument, Argument], None]:
    def change(out: Argument, _: Argument) -> None:
        values = out.of(type)
        for place in places:
            values[place] += values.dtype.type(amount)

    return change


def scribble(start: int, nbytes: int = 4) -> Callable[[Argument, Argument], None]:
    def change(out: Argument, _: Argument) -> None:
        out.around(start, nbytes)[:] = 0x5A

    return change


def idle(*_: object) -> None:
    pass


def half_idle(out: Argument, x: Argument, *_: object) -> None:
    half = out.of("float32").size // 2
    out.of("float32")[:half] = 2 * x.of("float32")[:half]


def changes_x(out: Argument, x: Argument, *_: object) -> None:
    TWICE(out, x)
    x.of("float32")[3] += 1


def past_end(out: Argument, x: Argument, *_: object) -> None:
    TWICE(out, x)
    out.around(out.nbytes + 8, 4)[:] = 7


def varying(size: float) -> Kernel:
    """Off by `size` in every other run."""
    runs = count(1)
    return then(TWICE, lambda out, x: add(next(runs) % 2 * size, -1)(out, x))


IN_PLACE = (
    (OUT, 'name = "out"\ntype = "float32*"\nshape = ["rows", "d"]\nrole = "inout"'),
    ('reference = "reference.py:scale"', 'reference = "reference.py:grow"'),
)
GROW = "def grow(out, x):\n    return out + x\n"


def grow(out: Argument, x: Argument, *_: object) -> None:
    out.of("float32")[:] = out.of("float32").astype(np.float64) + x.of("float32")


# Poisoned before each run like an output, and nobody asks what became of it.
WORKSPACE = (
    "[launch]",
    '[[argument]]\nname = "w"\ntype = "float32*"\nshape = ["d"]\nrole = "workspace"\n[launch]',
)
# Rows lie 4 elements further apart than they are long.
COLUMNS = (OUT, OUT.replace('"d"]', '"d"]\nstrides = ["1", "rows"]'))
PADDED = (OUT, OUT.replace('"d"]', '"d"]\nstrides = ["d + 4", "1"]'))


def padded(out: Argument, x: Argument, rows: int, d: int) -> None:
    values, source = out.of("float32"), x.of("float32").reshape(rows, d)
    for row in range(rows):
        values[row * (d + 4) : row * (d + 4) + d] = 2 * source[row]


def columns(out: Argument, x: Argument, rows: int, d: int) -> None:
    out.of("float32")[:] = 2 * x.of("float32").reshape(rows, d).T.reshape(-1)


def padded_grow(out: Argument, x: Argument, rows: int, d: int) -> None:
    values, source = out.of("float32"), x.of("float32").reshape(rows, d)
    for row in range(rows):
        values[row * (d + 4) : row * (d + 4) + d] += source[row]


def whole(number: int) -> Kernel:
    return lambda out, *_: out.of("int64").fill(number)


def packed_codes(off: int = 0) -> Kernel:
    def kernel(out: Argument, x: Argument, *_: object) -> None:
        codes = np.clip(np.rint(4.0 * x.of("float32")), -8, 7).astype(np.int8)
        codes[0] += off if codes[0] < 0 else -off
        nibbles = codes.view(np.uint8) & 0xF
        out.of("uint8")[:] = nibbles[0::2] | nibbles[1::2] << 4

    return kernel


@dataclass(frozen=True)
class Scenario:
    """A problem, its original, and candidates with the status that each deserves."""

    changes: tuple[tuple[str, str], ...]
    original: Kernel
    candidates: dict[str, tuple[Kernel, Status]]
    reference: str | None = REFERENCE
    case: Case = field(default_factory=a_case)
    original_status: Status = Status.OK
    inputs: str | None = None
    rows: int | None = None  # so many the reference is asked for, at least

    @property
    def problem(self) -> Problem:
        return scale_problem(*self.changes, reference=self.reference, inputs=self.inputs)

    @property
    def judges(self) -> Judges:
        kernels = {name: kernel for name, (kernel, _) in self.candidates.items()}
        return Judges(self.problem, {**kernels, "original": self.original})


RIGHT, WRONG, UNSTABLE = Status.OK, Status.WRONG, Status.UNSTABLE


def rounded(
    function: Callable[[Array], Array], type: str, off: float = 1.0
) -> dict[str, tuple[Kernel, Status]]:
    right = elementwise(function, out=type)
    return {"right": (right, RIGHT), "wrong": (then(right, add(off, 17, type=type)), WRONG)}


def noisy(size: float, type: str = "float32") -> Kernel:
    """As wrong as a sum in another order: all over, up and down."""
    wave = np.resize([1.0, -1.0, 0.6, -0.3], 24 * 32)
    return elementwise(lambda x: 2 * x + size * wave, out=type)


def stuffed(values: dict[int, float], type: str = "float32") -> Kernel:
    def change(out: Argument, _: Argument) -> None:
        for place, value in values.items():
            out.of(type)[place] = value

    return then(elementwise(lambda x: 2 * x, out=type), change)


HUGE = "2.0 * x + np.where(x > 1, 1e6, 0.0) - np.where(x < -1, 1e6, 0.0)"  # more than float16 has


def huge(x: Array) -> Array:
    return 2 * x + np.where(x > 1, 1e6, 0.0) - np.where(x < -1, 1e6, 0.0)


SCENARIOS = {
    "plain": Scenario(
        (),
        TWICE,
        {
            "right": (TWICE, RIGHT),
            "first_wrong": (then(TWICE, add(1, 0)), WRONG),
            "last_wrong": (then(TWICE, add(1, -1)), WRONG),
            "nan": (then(TWICE, add(np.nan, 5)), WRONG),
            "past_end": (past_end, WRONG),
            "far_past_end": (then(TWICE, lambda out, x: scribble(out.nbytes + 60000)(out, x)), WRONG),
            "before_start": (then(TWICE, scribble(-4)), WRONG),
            "beside_x": (then(TWICE, lambda out, x: scribble(x.nbytes)(x, out)), WRONG),
            "changes_x": (changes_x, WRONG),
            "idle": (idle, WRONG),
            "half_idle": (half_idle, WRONG),
            "unstable": (varying(2e-6), UNSTABLE),
            "other": (elementwise(lambda x: x), WRONG),
        },
    ),
    "may_vary": Scenario(
        (accuracy(TIGHT, "deterministic = false"),),
        TWICE,
        {
            "right": (TWICE, RIGHT),
            "little": (varying(2e-6), RIGHT),
            "much": (varying(1.0), WRONG),
            "idle": (idle, WRONG),
        },
        case=a_case(errors=False),
    ),
    "bytes_may_vary": Scenario(
        (out_of("int8", 'compare = "codes"'), accuracy("deterministic = false")),
        elementwise(lambda x: np.rint(np.clip(9 * x, -128, 127)), out="int8"),
        {"idle": (idle, WRONG)},
        reference=reference("9.0 * x"),
    ),
    "worse_than_the_original": Scenario(
        (accuracy("rtol = 0.1", "atol = 0.1"),),
        noisy(1e-4),
        {
            "alike": (noisy(1.1e-4), RIGHT),
            "exact": (TWICE, RIGHT),
            "peak": (then(TWICE, add(3e-4, 3)), WRONG),  # above twice the largest
            "mean": (noisy(1.6e-4), WRONG),  # below it, but all over
        },
    ),
    "errors_not_compared": Scenario(
        (accuracy("rtol = 0.1", "atol = 0.1"),),
        noisy(1e-4),
        {"mean": (noisy(1.6e-4), RIGHT), "peak": (then(TWICE, add(3e-4, 3)), RIGHT)},
        case=a_case(errors=False),
    ),
    "few_elements": Scenario(
        (accuracy("rtol = 0.1", "atol = 0.1"),),
        then(TWICE, add(1e-4, 0)),
        {"peak": (then(TWICE, add(3e-4, 3)), RIGHT), "wrong": (then(TWICE, add(3, 3)), WRONG)},
        case=a_case(rows=1, d=8),
    ),
    "in_place": Scenario(
        IN_PLACE,
        grow,
        {
            "right": (grow, RIGHT),
            "wrong": (then(grow, add(1, 7)), WRONG),
            "idle": (idle, WRONG),
            "overwrites": (TWICE, WRONG),
        },
        reference=GROW,
    ),
    "no_reference": Scenario(
        (),
        TWICE,
        {
            "right": (TWICE, RIGHT),
            "an_ulp": (elementwise(lambda x: np.nextafter(np.float32(2 * x), np.float32(9))), RIGHT),
            "wrong": (then(TWICE, add(1e-3, 100)), WRONG),
            "idle": (idle, WRONG),
        },
        reference=None,
    ),
    "no_reference_codes": Scenario(
        (out_of("int8", 'compare = "codes"'),),
        elementwise(lambda x: 9 * x, out="int8"),
        {
            "right": (elementwise(lambda x: 9 * x, out="int8"), RIGHT),
            "one_off": (then(elementwise(lambda x: 9 * x, out="int8"), add(1, 3, type="int8")), RIGHT),
            "two_off": (then(elementwise(lambda x: 9 * x, out="int8"), add(2, 3, type="int8")), WRONG),
        },
        reference=None,
    ),
    "int8_codes": Scenario(
        (out_of("int8", 'compare = "codes"'),),
        elementwise(lambda x: np.rint(np.clip(60 * x, -128, 127)), out="int8"),
        {
            "right": (elementwise(lambda x: np.rint(np.clip(60 * x, -128, 127)), out="int8"), RIGHT),
            "cut": (elementwise(lambda x: np.rint(np.clip(60 * x, -127, 127)), out="int8"), WRONG),
            "down": (elementwise(lambda x: np.floor(np.clip(60 * x, -128, 127)), out="int8"), WRONG),
        },
        reference=reference("60.0 * x"),
    ),
    "exact_integers": Scenario(
        (out_of("int32"),),
        elementwise(lambda x: np.floor(1000 * x), out="int32"),
        rounded(lambda x: np.floor(1000 * x), "int32"),
        reference=reference("np.floor(1000.0 * x).astype(np.int64)"),
    ),
    "exact_from_floats": Scenario(
        (out_of("uint8"),),
        elementwise(lambda x: np.abs(np.rint(20 * x)), out="uint8"),
        rounded(lambda x: np.abs(np.rint(20 * x)), "uint8"),
        reference=reference("abs(20.0 * x)"),
    ),
    "exact_beyond_float64": Scenario(
        (out_of("int64"),),
        whole(2**53),
        {"right": (whole(2**53), RIGHT), "one_more": (whole(2**53 + 1), WRONG)},
        reference=reference("0.0 * x + 2.0**53"),
    ),
    "exact_floats": Scenario(
        (out_of("float32", 'compare = "exact"'),),
        TWICE,
        {"right": (TWICE, RIGHT), "an_ulp": (then(TWICE, add(1e-6, 0)), WRONG)},
    ),
    "close_integers": Scenario(
        (out_of("int16", 'compare = "close"', "atol = 2"),),
        elementwise(lambda x: np.rint(50 * x), out="int16"),
        rounded(lambda x: np.rint(50 * x), "int16", off=3),
        reference=reference("50.0 * x"),
    ),
    "overflow": Scenario(
        (out_of("float16"), accuracy("rtol = 1e-3", "atol = 1e-3")),
        elementwise(huge, out="float16"),
        {
            "right": (elementwise(huge, out="float16"), RIGHT),
            "saturates": (elementwise(lambda x: np.clip(huge(x), -65504, 65504), out="float16"), WRONG),
            "other_sign": (elementwise(lambda x: np.abs(huge(x)), out="float16"), WRONG),
        },
        reference=reference(HUGE),
    ),
    "original_may_fail": Scenario(
        (accuracy("rtol = 1e-5", "atol = 1e-5", "baseline_may_fail = true"),),
        stuffed({3: np.nan, 4: np.inf, 5: 1e30}),
        {
            "right": (TWICE, RIGHT),
            "as_wrong": (stuffed({3: np.nan, 4: np.inf, 5: 1e30}), WRONG),
            "less_wrong": (stuffed({5: 1e3}), WRONG),
        },
    ),
    "worse_than_a_failing_original": Scenario(
        (accuracy("rtol = 0.1", "atol = 0.1", "baseline_may_fail = true"),),
        then(noisy(1e-4), lambda out, x: out.of("float32").__setitem__(9, np.inf)),
        {"alike": (noisy(1e-4), RIGHT), "worse": (noisy(1e-2), WRONG)},
    ),
    "padded_rows": Scenario(
        (PADDED,),
        padded,
        {
            "right": (padded, RIGHT),
            "wrong": (lambda *args: (padded(*args), add(1, 5)(*args[:2])), WRONG),
            "in_the_gap": (lambda *args: (padded(*args), scribble(4 * args[3] + 4)(*args[:2])), WRONG),
            "idle": (idle, WRONG),
        },
    ),
    "column_by_column": Scenario(  # no gaps, and yet not in the order of the reference's elements
        (COLUMNS,),
        columns,
        {
            "right": (columns, RIGHT),
            "row_by_row": (TWICE, WRONG),
            "wrong": (lambda *args: (columns(*args), add(1, 5)(*args[:2])), WRONG),
            "worse": (lambda *args: (columns(*args), args[0].of("float32").__imul__(1 + 1e-5)), WRONG),
        },
    ),
    "promised_zeros": Scenario(
        (out_of("float32", "init = 0"),),
        lambda out, x, *_: np.add(out.of("float32"), 2 * x.of("float32"), out=out.of("float32")),
        {"right": (TWICE, RIGHT), "idle": (idle, WRONG)},
    ),
    "four_bits": Scenario(
        (out_of("int4", 'compare = "codes"'),),
        packed_codes(),
        {"right": (packed_codes(), RIGHT), "wrong": (packed_codes(3), WRONG)},
        reference=reference("4.0 * x"),
    ),
    "linked_inputs": Scenario(
        (),
        TWICE,
        {"right": (TWICE, RIGHT), "wrong": (then(TWICE, add(1, 0)), WRONG), "changes_x": (changes_x, WRONG)},
        inputs="def make(rng, rows, d):\n    return {'x': rng.integers(1, 9, (rows, d))}\n",
    ),
    "sampled_rows": Scenario(
        (accuracy(TIGHT, 'independent = "rows"'), WORKSPACE),
        TWICE,
        {
            "right": (TWICE, RIGHT),
            "an_ulp": (elementwise(lambda x: np.nextafter(np.float32(2 * x), np.float32(9))), RIGHT),
            **{f"row_{row}": (then(TWICE, add(1, 32 * row + 5)), WRONG) for row in range(24)},
            "past_end": (past_end, WRONG),
        },
        case=a_case(errors=False),
        rows=5,
    ),
    "contested_rows": Scenario(
        (accuracy("rtol = 0.0\natol = 0.1", 'independent = "rows"'),),
        elementwise(lambda x: 2 * x + 0.09),
        {
            "right": (TWICE, RIGHT),
            "the_other_side": (elementwise(lambda x: 2 * x - 0.09), RIGHT),
            "in_a_row": (then(elementwise(lambda x: 2 * x + 0.09), add(-0.18, 32 * 7 + 5)), RIGHT),
            **{f"row_{row}": (then(TWICE, add(-0.12, 32 * row + 5)), WRONG) for row in range(24)},
        },
        case=a_case(errors=False),
        rows=5,
    ),
    "padded_in_place": Scenario(
        (*IN_PLACE, (IN_PLACE[0][1], IN_PLACE[0][1].replace('"d"]', '"d"]\nstrides = ["d + 4", "1"]'))),
        padded_grow,
        {
            "right": (padded_grow, RIGHT),
            "in_the_gap": (lambda *args: (padded_grow(*args), scribble(4 * args[3] + 4)(*args[:2])), WRONG),
        },
        reference=GROW,
    ),
    "original_wrong": Scenario((), then(TWICE, add(1, 5)), {}, original_status=WRONG),
    "original_unstable": Scenario((), varying(2e-6), {}, original_status=UNSTABLE),
    "original_past_end": Scenario((), past_end, {}, original_status=WRONG),
    "original_idle": Scenario((), idle, {}, reference=None, original_status=WRONG),
    **{
        type: Scenario(
            (out_of(type), accuracy("")),
            elementwise(lambda x: 2 * x, out=type),
            rounded(lambda x: 2 * x, type),
        )
        for type in ("float16", "float64", "bfloat16", "float8_e4m3", "float8_e5m2")
    },
}
