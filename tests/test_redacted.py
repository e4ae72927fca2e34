"""Keys cut out of what we repeat."""

from __future__ import annotations

import pytest

from tunesmith.base.text import names_secret, redact_secrets


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


def test_in_its_surroundings() -> None:
    assert redact_secrets("SOME_API_KEY=hunter22 x") == "SOME_API_KEY=… x"
    assert redact_secrets("https://me:pass@host/x") == "https://…@host/x"
    assert redact_secrets("Authorization: Bearer abcdefghijklmnop") == "Authorization: Bearer …"


def test_known_ones_whatever_they_look_like() -> None:
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
def test_the_rest_stays(text: str) -> None:
    assert redact_secrets(text) == text


def test_names() -> None:
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
