"""Texts: counted, named and cut; digests and seeds; keys cut out; foreign text is shown, never obeyed."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.base.text import (
    digest_of,
    escaped_json,
    format_count,
    named_values,
    names_secret,
    redact_secrets,
    seed_of,
    strip_controls,
    truncate_text,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 rounds"), (1, "1 round"), (1.0, "1 round"), (0.5, "0.5 rounds"), (10**7 + 1, "10000001 rounds")],
)
def test_a_number_and_its_noun(number: float, text: str) -> None:
    assert format_count(number, "round") == text


def test_a_plural_of_its_own() -> None:
    assert [format_count(n, "reply", "replies") for n in (1, 2)] == ["1 reply", "2 replies"]


def test_pairs_and_tables_read_alike() -> None:
    pairs = (("rows", 64), ("d", -1))
    assert named_values(pairs) == named_values(dict(pairs)) == "rows=64 d=-1"
    assert named_values(pairs, ", ") == "rows=64, d=-1"
    assert named_values({}) == ""


parts = st.lists(st.binary(max_size=4), max_size=4)


@given(parts, parts)
def test_equal_only_for_equal_parts(one: list[bytes], other: list[bytes]) -> None:
    assert (digest_of(*one) == digest_of(*other)) == (one == other)


def test_where_a_part_ends_matters() -> None:
    assert len({digest_of("ab", "c"), digest_of("a", "bc"), digest_of("abc"), digest_of("abc", "")}) == 4


@given(st.text())
def test_text_is_its_utf8(text: str) -> None:
    assert digest_of(text) == digest_of(text.encode())


def test_digests_are_the_same_in_every_version() -> None:
    # Run folders name their files by it, and a run that is resumed draws what it would have drawn.
    assert digest_of("abc") == hashlib.sha256(b"\3\0\0\0\0\0\0\0abc").hexdigest()
    assert seed_of(0, "ask") == int(digest_of("0", "'ask'")[:15], 16)


@given(st.lists(st.integers() | st.text(max_size=3), max_size=3))
def test_seeds_fit_a_signed_64_bit_integer(parts: list[int | str]) -> None:
    assert 0 <= seed_of(*parts) < 2**60
    assert seed_of(*parts) == seed_of(*parts)


def test_a_number_is_not_its_text() -> None:
    assert seed_of(1) != seed_of("1")


@pytest.mark.parametrize(
    "text",
    [
        "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv",
        "sk-proj-0123456789abcdef0123",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYz",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_key(text: str) -> None:
    assert redact_secrets(f"the log says {text}, and ends") == "the log says …, and ends"


def test_a_key_in_its_surroundings() -> None:
    assert redact_secrets("SOME_API_KEY=hunter22 x") == "SOME_API_KEY=… x"
    assert redact_secrets("https://me:pass@host/x") == "https://…@host/x"
    assert redact_secrets("Authorization: Bearer abcdefghijklmnop") == "Authorization: Bearer …"


def test_known_keys_whatever_they_look_like() -> None:
    assert redact_secrets("a hunter22 b hunter2 c", ["hunter2", "hunter22", "", "a"]) == "a … b … c"


@pytest.mark.parametrize(
    "text",
    [
        "kernel.cl:3:14: error: use of undeclared identifier 'key'",
        "sk - 1, pk-2 and risk-averse_kernels",
        "ptxas info: Used 32 registers, 380 bytes cmem[0]; -DKEY=4",
        "https://host/path@1.0:2",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert redact_secrets(text) == text


def test_names_of_secrets() -> None:
    secret = [
        "OPENAI_API_KEY",
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "SSH_AUTH_SOCK",
        "api_key",
    ]
    assert all(map(names_secret, secret))
    assert not any(map(names_secret, ["PATH", "CUDA_VISIBLE_DEVICES", "LC_ALL", "AUTHOR", "KEYBOARD"]))


UNKNOWN = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kernel.cl:3:5: error\n\tint x;", "kernel.cl:3:5: error\n\tint x;"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never closed", "0;never closed"),
        ("\x1bc reset \x1b(B", " reset "),
        ("half\x1b", f"half{UNKNOWN}"),
        ("\x9b31m", f"{UNKNOWN}31m"),
        ("over\rwritten\r\nline", "over\nwritten\nline"),
        ("one\x0btwo\x85three\u2028four", "one\ntwo\nthree\nfour"),
        ("bell\x07 back\x08 nul\0", f"bell{UNKNOWN} back{UNKNOWN} nul{UNKNOWN}"),
        ("right\u202eto left", f"right{UNKNOWN}to left"),
        ("a name of bytes \udcff", f"a name of bytes {UNKNOWN}"),
        ("µ × 你好 [bold]", "µ × 你好 [bold]"),
    ],
)
def test_text_as_it_is_shown(text: str, shown: str) -> None:
    assert strip_controls(text) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_that_acts_is_left(text: str) -> None:
    left = strip_controls(text)
    assert all(c in "\n\t" or c.isprintable() or c.isspace() or ord(c) > 0x9F for c in left)
    assert "\x1b" not in left
    assert strip_controls(left) == left
    left.encode()


@pytest.mark.parametrize(("text", "shown"), [("abcd", "abcd"), ("abcde", "abc…"), ("", "")])
def test_what_is_cut_says_so(text: str, shown: str) -> None:
    assert truncate_text(text, 4) == shown


@given(st.text())
def test_json_means_the_same(text: str) -> None:
    escaped = escaped_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(escaped) == text
    assert "\x9b" not in escaped
    assert "\u202e" not in escaped
