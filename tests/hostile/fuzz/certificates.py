"""Certificates that somebody changed, beside the run they were made of: refused, or found not to hold."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.hostile.fuzz.driver import Reader
from tests.hostile.fuzz.journals import refused, temporary, tiny_run
from tests.hostile.fuzz.mutations import text_mutation, tree_mutation
from tunesmith import api
from tunesmith.base.codec import decode_json
from tunesmith.base.errors import BadInput
from tunesmith.deliver.certificate import Certificate
from tunesmith.run.folder import CERTIFICATE
from tunesmith.session.certify import read_report


@functools.cache
def run() -> Path:
    return tiny_run(temporary())


@functools.cache
def as_written() -> bytes:
    return (run() / CERTIFICATE).read_bytes()


def read_certificate(data: bytes) -> None:
    """All that reads one: `verify`, the reports of its run, and `diff` of a report beside it."""
    original = decode_json(as_written(), Certificate)
    (run() / CERTIFICATE).write_bytes(data)
    shown = api.load_run(run())
    for form in ("text", "md", "json"):
        shown.report(form)  # type: ignore[arg-type]
    refused(lambda: read_report(run() / "report.json"))
    checked = api.verify(run())
    # One that names fewer files says less, and nothing else.
    is_same = replace(decode_json(data, Certificate), files=original.files) == original
    assert is_same or not checked.holds, "a certificate that says something else holds"


def certificate_mutation(rng: Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Mostly one that can still be read."""
    if rng.random() < 0.2:
        return text_mutation(rng, data, pool)
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return rng.choice(pool)
    return json.dumps(tree_mutation(rng, tree, [tree])).encode()


CERTIFICATES = Reader(
    "certificate", lambda: [as_written()], read_certificate, certificate_mutation, (BadInput,)
)
