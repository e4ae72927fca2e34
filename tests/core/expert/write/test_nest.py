"""Helpers declared above the types that call them."""

from __future__ import annotations

from tunesmith.expert.write.page import forward_declare_helpers

TYPE = "struct Byte { uint8_t x; Byte(float v) : x(to_byte(v)) {} };"


def test_a_helper_is_declared_above_the_type_that_calls_it() -> None:
    helpers = ["inline uint8_t to_byte(float v) { return v; }", "float twice(float v) { return 2 * v; }"]
    lines = forward_declare_helpers(["#include <cstdint>", TYPE], helpers)
    assert lines == ["#include <cstdint>", "inline uint8_t to_byte(float v);", TYPE]


def test_what_nobody_calls_there_or_has_default_arguments_is_not() -> None:
    assert forward_declare_helpers([TYPE], ["uint8_t to_byte(float v, int how = 1) { return v; }"]) == [TYPE]
    assert forward_declare_helpers([TYPE], ["uint8_t to_bytes(float v) { return v; }"]) == [TYPE]
