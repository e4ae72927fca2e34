"""Symbols and cubin go into one binary and come out of it; a damaged one is told as such."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.backends.cuda.cubin import MAGIC, pack, unpack
from tunesmith.base.codec import Malformed

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(texts, texts), st.binary())
def test_what_is_packed_comes_out(symbols: dict[str, str], cubin: bytes) -> None:
    assert unpack(pack(symbols, cubin)) == (symbols, cubin)


@given(st.data())
def test_no_byte_can_change_unnoticed(data: st.DataObject) -> None:
    packed = bytearray(pack({"k<float>": "_Z1kIfEvv"}, b"\x7fELF some code"))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Malformed):
        unpack(bytes(packed))


@given(st.integers(0, 79))
def test_no_byte_can_be_missing(length: int) -> None:
    whole = pack({"k": "k"}, b"\x7fELF" * 8)
    assert len(whole) == 85
    with pytest.raises(Malformed):
        unpack(whole[:length])


@pytest.mark.parametrize("data", [b"", MAGIC, b"\x7fELF" * 30])
def test_other_bytes_are_not_taken_for_one(data: bytes) -> None:
    with pytest.raises(Malformed, match="not a CUDA binary"):
        unpack(data)
