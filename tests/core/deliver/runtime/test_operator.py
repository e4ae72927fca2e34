"""Which kernel serves a call, and what is refused; without any device."""

from __future__ import annotations

import struct
import warnings
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.deliver.runtime.dispatches import (
    SILU_ARGUMENTS,
    arrays,
    delivered,
    dispatch,
    entry,
    launch,
    operator,
)
from tunesmith.base.codec import encode_json
from tunesmith.deliver.runtime.binding import Array, Signature
from tunesmith.deliver.runtime.element_types import as_bytes
from tunesmith.deliver.runtime.manifest import BadDispatch, read_dispatch
from tunesmith.deliver.runtime.operator import Operator, delivered_in
from tunesmith.problem.dispatch import DispatchArgument, kernel_for
from tunesmith.problem.problem import SizeRule

HOPPER = ("sm_90", "NVIDIA H200")
APART = (1 << 20, 1 << 30)
TUNED = (struct.pack("<f", 1.5),)


def decided(own: Operator, given=None, pointers=APART, scalars=TUNED, device=HOPPER, sizes=None, **how):
    given = given or arrays()
    key = (tuple(given), tuple((sizes or {}).items()), device)
    call = own.call(key, lambda: given, sizes or {}, lambda: device)
    return call.decide(pointers, scalars, **how)


# -- choosing -----------------------------------------------------------------------------------------------


def test_the_first_entry_whose_condition_holds_serves():
    own = operator()
    assert decided(own).entry.file == "fast.cu"
    assert decided(own, arrays(17, 64)).entry.file == "general.cu"
    assert decided(own, arrays(17, 72)).entry.file == "original.cu"


@given(st.integers(1, 40), st.integers(1, 16).map(lambda n: 8 * n))
def test_it_is_the_entry_that_tunesmith_names(tokens, d):
    found = decided(operator(), arrays(tokens, d))
    named = kernel_for(dispatch(), {"tokens": tokens, "d": d})
    assert found.entry.file == named.file
    assert [(each.entry, each.grid[:1]) for each in found.launches] == [
        (e.entry, e.grid) for e in named.launches
    ]


def test_a_launch_is_left_out_where_its_condition_does_not_hold():
    launches = (launch(when="d % 16 != 0", grid="d % 16"), launch("rest"))
    made = dispatch(entries=(entry("1", "original.cu", None, launches=launches),))
    assert [one.entry for one in decided(operator(made), arrays(16, 72)).launches] == ["silu", "rest"]
    assert [one.entry for one in decided(operator(made), arrays(16, 64)).launches] == ["rest"]
    assert [one.entry for one in kernel_for(made, {"tokens": 16, "d": 64}).launches] == ["rest"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"given": arrays(2000, 64)}, "outside the contract"),
        ({"given": arrays(16, 4)}, "outside the contract"),
        ({"pointers": (1 << 20, (1 << 30) + 2)}, "input does not begin at a multiple of 16"),
        ({"pointers": (1 << 20, (1 << 20) + 64)}, "input and out overlap"),
        ({"pointers": (1 << 20, (1 << 20) - 16 * 128 * 2 + 16)}, "input and out overlap"),
        ({"scalars": (struct.pack("<f", 2.0),)}, "another value than it was tuned with"),
        ({"original": True}, "asked for"),
    ],
)
def test_the_original_serves_where_nothing_was_verified(changed, why):
    found = decided(operator(), **changed)
    assert found.entry.file == "original.cu"
    assert why in found.why


def test_arrays_side_by_side_do_not_overlap():
    assert decided(operator(), pointers=(1 << 20, (1 << 20) + 16 * 64 * 2)).entry.file == "fast.cu"


def test_two_inputs_may_be_one_array():
    three = (*SILU_ARGUMENTS, DispatchArgument("more", "float16", "input", ("tokens", "d")))
    own, place = operator(dispatch(arguments=three)), Array("float16", (16, 64), (64, 1), "cuda:0")
    assert decided(own, [*arrays(), place], (1 << 20, 1 << 30, 1 << 30)).entry.file == "fast.cu"


def test_a_requirement_of_the_contract_decides():
    own = operator(dispatch(require=("tokens % 4 == 0", "1 // (d - 64) >= 0")))
    assert "contract" in decided(own).why  # 1 // 0 has no value


def test_the_device_decides_first_and_an_unknown_one_is_named_once():
    other = dispatch(
        architecture="sm_100",
        device="NVIDIA B200",
        entries=(entry("1", "b200.cu", {"V": 2}), entry("1", "o.cu", None)),
    )
    own = operator(dispatch(), other)
    assert decided(own, device=("sm_100", "NVIDIA B200")).entry.file == "b200.cu"
    with pytest.warns(
        RuntimeWarning, match=r"tuned on sm_90, sm_100; on NVIDIA A100 its original .*tunesmith retune"
    ):
        assert decided(own, device=("sm_80", "NVIDIA A100")).entry.file == "original.cu"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decided(own, arrays(17, 64), device=("sm_80", "NVIDIA A100")).entry.file == "original.cu"


def test_a_device_without_an_architecture_goes_by_its_name():
    own = operator(dispatch(architecture="", device="pthread-cpu"))
    assert decided(own, device=("", "pthread-cpu")).entry.file == "fast.cu"


def test_a_kind_of_call_is_described_once():
    own, asked = operator(), []

    def describe():
        asked.append(1)
        return arrays()

    calls = {own.call("key", describe, {}, lambda: HOPPER) for _ in range(3)}
    assert len(calls) == len(asked) == 1
    call = calls.pop()
    assert call.decide(APART, TUNED) is call.decide((1 << 21, 1 << 31), TUNED)


def test_launches_hold_what_the_sizes_say():
    how = {"shared": "4 * d", "cluster": ("2",), "cooperative": True, "pdl": True}
    made = entry(
        "1", "f.cu", {"V": 1},
        launches=(launch("silu<{d}>", "ceildiv(tokens, 2)", ("out", "ws", "d", "scale"), **how),),
        workspace=(DispatchArgument("ws", "float32", "workspace", ("tokens", "3"), align=256, init=0.5),),
    )  # fmt: skip
    found = decided(operator(dispatch(entries=(made, entry("1", "original.cu", None)))), arrays(7, 64))
    (only,) = found.launches
    assert (only.entry, only.grid, only.block) == ("silu<64>", (4, 1, 1), (128, 1, 1))
    assert (only.shared, only.cluster, only.cooperative, only.pdl) == (256, (2, 1, 1), True, True)
    assert only.args == (("array", 0), ("scratch", 0), ("value", struct.pack("<i", 64)), ("scalar", 0))
    assert found.scratch[0][:4] == ("ws", "float32", 84, 256)
    assert found.scratch[0].fill == struct.pack("<f", 0.5)


def test_an_alias_is_the_array_it_names():
    inplace = (
        DispatchArgument("x", "float32", "inout", ("n",)),
        DispatchArgument("y", "float32", "output", alias="x"),
    )
    made = entry("1", "original.cu", None, launches=(launch("k", "n", ("y", "x")),))
    own = operator(dispatch(arguments=inplace, sizes=(SizeRule("n", 1, 64),), entries=(made,)))
    assert [a.name for a in own.signature.arrays] == ["x"]
    found = decided(own, [Array("float32", (8,), (1,), "cuda:0")], (1 << 20,), ())
    assert found.launches[0].args == (("array", 0), ("array", 0))


def half(shape, strides, *, type="float16", device="cuda:0") -> Array:
    return Array(type, shape, strides, device)


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"input": half((16, 128), (128, 1), type="float32")}, TypeError, "float16, got float32: convert"),
        ({"input": half((16, 2, 64), (128, 64, 1))}, ValueError, "2 axes, got 3: reshape"),
        ({"out": half((16, 32), (32, 1))}, ValueError, r"\[tokens, 2 \* d\], which is \[16, 64\]"),
        ({"out": half((15, 64), (64, 1))}, ValueError, "for tokens = 15, d = 64; got"),
        ({"input": half((16, 128), (1, 16))}, ValueError, r"dense.*strides \[1, 16\].*contiguous"),
        ({"input": half((16, 128), (256, 1))}, ValueError, "dense, the last axis fastest"),
        (
            {"input": half((16, 128), (128, 1), device="cuda:1")},
            ValueError,
            "one device, got out on cuda:0, input on cuda:1: move",
        ),
    ],
)  # fmt: skip
def test_a_wrong_array_is_refused_in_words(changed, error, words):
    with pytest.raises(error, match=words):
        decided(operator(), arrays(**changed))


def test_strides_of_an_axis_of_one_do_not_count():
    one = Array("float16", (1, 128), (77, 1), "cuda:0")
    assert decided(operator(), arrays(1, 64, input=one)).entry.file == "general.cu"


def test_declared_strides_are_asked_for():
    strided = (DispatchArgument("x", "float32", "inout", ("n", "4"), ("8", "1")),)
    made = entry("1", "original.cu", None, launches=(launch("k", "n", ("x",)),))
    own = operator(dispatch(arguments=strided, sizes=(SizeRule("n", 1, 64),), entries=(made,)))
    assert decided(own, [Array("float32", (3, 4), (8, 1), "cuda:0")], (64,), ()).entry.file == "original.cu"
    with pytest.raises(ValueError, match=r"strides \[8, 1\], got strides \[4, 1\]"):
        decided(own, [Array("float32", (3, 4), (4, 1), "cuda:0")], (64,), ())


def test_a_size_that_no_shape_tells_is_passed_by_name():
    flat = (DispatchArgument("x", "float32", "inout", ("n * m",)),)
    made = entry("1", "original.cu", None, launches=(launch("k", "n", ("x",)),))
    sizes = (SizeRule("n", 1, 64), SizeRule("m", 1, 64))
    own = operator(dispatch(arguments=flat, sizes=sizes, entries=(made,)))
    assert own.signature.unshown == ("n", "m")
    x = [Array("float32", (12,), (1,), "cuda:0")]
    with pytest.raises(TypeError, match=r"no shape tells the size n: pass it by name, n=\.\.\."):
        decided(own, x, (64,), ())
    call = own.call("k", lambda: x, {"n": 3}, lambda: HOPPER)
    assert call.sizes == {"n": 3, "m": 4}
    with pytest.raises(ValueError, match=r"\[n \* m\], which is \[10\] for n = 5"):
        own.call("l", lambda: x, {"n": 5}, lambda: HOPPER)
    with pytest.raises(TypeError, match=r"the size n is an integer, got 3\.0"):
        own.call("f", lambda: x, {"n": 3.0, "m": 4}, lambda: HOPPER)


def test_a_size_that_is_named_must_agree():
    with pytest.raises(ValueError, match="d = 32 is passed, the shapes say d = 64: leave d out"):
        decided(operator(), sizes={"d": 32})


@pytest.mark.parametrize(
    ("shape", "unshown"), [(("d // 2",), ("d",)), (("2 * d + 2",), ()), (("d", "d - 1"), ())]
)
def test_only_what_can_be_turned_round_exactly_tells_a_size(shape, unshown):
    made = dispatch(
        arguments=(DispatchArgument("x", "int8", "input", shape),),
        sizes=(SizeRule("d", 1, 9),),
        entries=(entry("1", "original.cu", None, launches=(launch("k", "d", ("x",)),)),),
    )
    assert Signature(read_dispatch(encode_json(made))).unshown == unshown


def test_packed_elements_come_as_bytes():
    packed = (DispatchArgument("x", "uint4", "inout", ("n", "2 * k")),)
    made = entry("1", "original.cu", None, launches=(launch("k", "n", ("x",)),))
    own = operator(
        dispatch(arguments=packed, sizes=(SizeRule("n", 1, 9), SizeRule("k", 1, 9)), entries=(made,))
    )
    call = own.call("k", lambda: [Array("uint8", (3, 4), (4, 1), "cuda:0")], {}, lambda: HOPPER)
    assert (call.sizes, call.nbytes) == ({"n": 3, "k": 4}, [12])


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ({"out_stride": 3}, TypeError, "no argument 'out_stride': known are out, input, scale, tokens, d"),
        ({"scale": "big"}, TypeError, "scale is a number of type float32, got 'big'"),
        ({"scale": 1e300}, ValueError, "scale: 1e\\+300 does not fit float32"),
    ],
)
def test_wrong_names_and_scalars_are_refused(named, error, words):
    own = operator()
    with pytest.raises(error, match=words):
        own.scalar_bytes(own.named(named)[1])


def test_a_scalar_that_the_sizes_decide_is_not_passed():
    more = (*SILU_ARGUMENTS, DispatchArgument("pitch", "int64", "scalar", value="2 * d"))
    with pytest.raises(TypeError, match="the sizes decide pitch: leave it out"):
        operator(dispatch(arguments=more)).named({"pitch": 3})


# -- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"{}", b'{"version": 1}', b'{"version": 2}', b"\xff", b"[" * 100_000,
        encode_json(dispatch(entries=())),
        encode_json(dispatch(require=("__import__('os').system('true')",))),
        encode_json(dispatch(entries=(entry("x", "a.cu", None),))),
        encode_json(dispatch(arguments=(DispatchArgument("x", "complex64", "input"),))),
    ],
)  # fmt: skip
def test_what_is_no_dispatch_is_refused(text):
    with pytest.raises(BadDispatch):
        read_dispatch(text)


def test_a_file_outside_the_folder_is_not_read(tmp_path):
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "tuned"
    folder.mkdir()
    (folder / "dispatch.json").write_bytes(encode_json(dispatch()))
    (folder / "link").symlink_to(tmp_path / "secret")
    own = delivered_in(str(folder))
    assert own.dispatch.problem == "silu"
    for name in ("../secret", "link", "/etc/passwd"):
        with pytest.raises(BadDispatch, match="is not in"):
            own.read(name)


def test_delivered_reads_the_files_it_is_given():
    assert delivered(files={"a.cu": b"x"}).read("a.cu") == b"x"


# -- numbers as bytes ---------------------------------------------------------------------------------------

_FLOATS = {
    "float16": np.float16, "float32": np.float32, "float64": np.float64, "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


@given(st.sampled_from(sorted(_FLOATS)), st.floats(-448, 448) | st.floats(-0.1, 0.1))
def test_floats_are_rounded_as_numpy_rounds_them(name, value):
    value = float(np.float32(value))  # ml_dtypes goes by way of it
    assert as_bytes(name, value) == _FLOATS[name](value).tobytes()


def test_integers_must_fit():
    assert as_bytes("int32", -2) == b"\xfe\xff\xff\xff"
    assert as_bytes("int4", -1) == b"\xff"
    for name, value in (("int8", 128), ("uint8", -1), ("int32", 1.5), ("uint4", 16), ("float16", 1e6)):
        with pytest.raises(ValueError, match=r"does not fit|integer is needed"):
            as_bytes(name, value)


def test_a_float_that_follows_the_sizes_is_computed_and_asked_of_nobody():
    arguments = [replace(a, value="2 / sqrt(d)") if a.name == "scale" else a for a in dispatch().arguments]
    made = operator(dispatch(arguments=tuple(arguments)))
    assert [a.name for a in made.signature.scalars] == []
    follows = next(a for a in made.results[0].dispatch.arguments if a.name == "scale")
    assert follows.value.evaluate({"d": 64, "tokens": 1}) == 0.25
