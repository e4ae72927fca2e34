"""Profiles of kernels that are bad in one known way, and of healthy ones: tests/fixtures/profiles."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith.base.codec import decode_json
from tunesmith.profiles.facts import Ceilings, Experiments, Profile

_FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = tuple(sorted(path.stem for path in (_FIXTURES / "profiles").glob("*.json")))
HEALTHY = tuple(name for name in NAMES if name.startswith("healthy"))
BAD = tuple(name for name in NAMES if name not in HEALTHY)


@dataclass(frozen=True)
class Recorded:
    origin: dict[str, str]  # where each part comes from
    profile: Profile


def recorded(name: str) -> Profile:
    return decode_json((_FIXTURES / "profiles" / f"{name}.json").read_bytes(), Recorded).profile


def origin(name: str) -> dict[str, str]:
    return decode_json((_FIXTURES / "profiles" / f"{name}.json").read_bytes(), Recorded).origin


def planted(name: str) -> list[str]:
    """The kinds of findings that name the fault."""
    expected = json.loads((_FIXTURES / "bad_cuda" / name / "expected.json").read_text("utf-8"))
    return list(expected["names"])


def without_counters(profile: Profile) -> Profile:
    return replace(profile, counters=None, no_counters="the driver keeps them to the administrator")


def code_alone(profile: Profile) -> Profile:
    """As it is known where there is no device."""
    return replace(without_counters(profile), seconds=None, experiments=Experiments(), ceilings=Ceilings())
