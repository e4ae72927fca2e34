"""What the reference is given: whole arrays or rows of them, however the inputs are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.samples import DEVICE, a_problem
from tunesmith.backends.messages import Draw, Refer
from tunesmith.lab import references as reference
from tunesmith.lab.references import UserCodeFailed
from tunesmith.problem import inputs as draws
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Argument, PythonFunction
from tunesmith.problem.template import original_variant
from tunesmith.space.expr import parse_expr

SIZES = {"rows": 40, "d": 24}
ROWS = (0, 7, 39)
SUM = PythonFunction(
    "reference.py",
    "total",
    "def total(x, w, q, rows):\n    assert len(x) == len(q) == rows\n    return x * w + q\n",
)


def plan() -> Plan:
    wide = (parse_expr("rows"), parse_expr("d"))
    arguments = (
        Argument("out", "float32", "output", wide),
        Argument("x", "float16", "input", wide, strides=(parse_expr("d + 5"), parse_expr("1"))),
        Argument("w", "float32", "input", (parse_expr("d"),)),
        Argument("q", "int4", "input", wide),
    )
    problem = a_problem()
    launches = tuple(replace(launch, args=()) for launch in problem.launches)
    variant = replace(original_variant(problem), arguments=arguments, launches=launches)
    found = plan_launch(problem, variant, SIZES, DEVICE, None)
    assert isinstance(found, Plan), found
    return found


def asked(digests: bool, rows: tuple[int, ...] = ROWS, inputs: PythonFunction | None = None) -> Refer:
    names = ("out", "x", "q") if rows else ()
    return Refer(SUM, plan(), Draw("normal", 3, inputs), rows, "rows", names, digests)


def answer(request: Refer) -> np.ndarray:
    expected, (blob,) = reference.compute_expected(request)
    return np.frombuffer(blob, dtype=expected.arrays[0].dtype).reshape(expected.arrays[0].shape)


def test_rows_alone_are_those_of_whole_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "BLOCK", 1 << 6)  # so that arrays repeat
    whole = answer(asked(True, ()))
    some = answer(asked(True))
    alone = answer(asked(False))
    assert whole.shape == (40, 24)
    assert (whole[list(ROWS)] == some).all()
    assert (some == alone).all()
    assert (answer(asked(False, ())) == whole).all()


def test_without_digests_no_array_with_rows_is_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def draw(buffer: object, distribution: str, seed: int) -> np.ndarray:
        drawn.append(buffer.name)  # type: ignore[attr-defined]
        return draws.draw_array(buffer, distribution, seed)  # type: ignore[arg-type]

    monkeypatch.setattr(reference, "draw_array", draw)
    reference.compute_expected(asked(False))
    assert drawn == ["w"]
    drawn.clear()
    reference.compute_expected(replace(asked(False), reference=None))
    assert drawn == []
    reference.compute_expected(asked(True))
    assert drawn == ["x", "w", "q"]


def test_digests_are_given_where_they_are_asked_for() -> None:
    with_them, _ = reference.compute_expected(asked(True))
    without, _ = reference.compute_expected(asked(False))
    assert [name for name, _ in with_them.input_digests] == ["x", "w", "q"]
    assert (without.input_digests, without.gap_digests) == ((), ())
    assert without.arrays == with_them.arrays


def test_gaps_of_what_is_changed_in_place_have_a_digest() -> None:
    request = asked(True)
    in_place = tuple(replace(b, role="inout") if b.name == "x" else b for b in request.plan.buffers)
    changed = replace(request, reference=None, plan=replace(request.plan, buffers=in_place))
    assert [name for name, _ in reference.compute_expected(changed)[0].gap_digests] == ["x"]
    assert reference.compute_expected(replace(changed, digests=False))[0].gap_digests == ()


def linked(body: str) -> PythonFunction:
    return PythonFunction("inputs.py", "make", f"import numpy as np\ndef make(rng, rows, d):\n    {body}\n")


def test_linked_values_are_packed() -> None:
    inputs = linked("return {'q': rng.integers(-8, 8, (rows, d)), 'x': np.zeros((rows, d))}")
    memory = reference.draw_inputs(plan(), Draw("normal", 3, inputs))
    assert (memory["q"].dtype, memory["q"].size) == (np.dtype(np.uint8), 40 * 24 // 2)
    made = np.random.default_rng(3).integers(-8, 8, (40, 24))
    for digests in (True, False):
        assert (answer(asked(digests, inputs=inputs)) == made[list(ROWS)]).all()


@pytest.mark.parametrize("value", [8, -9])
def test_linked_values_that_four_bits_cannot_hold_are_refused(value: int) -> None:
    inputs = linked(f"return {{'q': np.full((rows, d), {value})}}")
    with pytest.raises(UserCodeFailed, match="make gave q values outside int4, -8 to 7"):
        reference.draw_inputs(plan(), Draw("normal", 3, inputs))


@pytest.mark.parametrize("type_", ["float8_e5m2", "float8_e4m3", "bfloat16"])
def test_linked_values_may_be_small_floats(type_: str) -> None:
    pytest.importorskip("ml_dtypes")
    made = plan()
    size = {"bfloat16": 2}.get(type_, 1)
    x = replace(made.buffer("x"), type=type_, itemsize=size)
    inputs = linked("return {'x': np.arange(rows * d).reshape(rows, d) % 4}")
    memory = reference.draw_inputs(replace(made, buffers=(x,)), Draw("normal", 3, inputs))["x"]
    assert (draws.shaped_view(memory, x).astype(np.float64) == np.arange(960).reshape(40, 24) % 4).all()
