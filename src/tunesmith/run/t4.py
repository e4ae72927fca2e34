"""T4, the results format of auto-tuners: what a run measured, written, and earlier measurements, read. Pure.

A file has one search space at one problem size: a configuration, whether it is valid, and its time. Fields
that are not known are left out, as the schema allows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tunesmith.base.errors import BadInput
from tunesmith.base.text import format_count
from tunesmith.problem.plan import Status
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Row, rows_for
from tunesmith.run.outcome import Result, median
from tunesmith.space.configset import Config
from tunesmith.space.expr import LIMIT

VERSION = "1.0.0"
Invalidity = Literal["timeout", "compile", "runtime", "correctness", "constraints", "correct"]
INVALIDITY: dict[Status, Invalidity] = {
    Status.OK: "correct",
    Status.INFEASIBLE: "constraints",
    Status.OVER_LIMITS: "constraints",
    Status.BUILD_FAILED: "compile",
    Status.WRONG: "correctness",
    Status.UNSTABLE: "correctness",
    Status.SUSPECT: "correctness",
    Status.CRASHED: "runtime",
    Status.TIMED_OUT: "timeout",
}
TIME = "time"
_SECONDS = {
    "s": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "µs": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip
_HINT = "name a T4 results file, as Kernel Tuner's store_output_file or `tunesmith export` writes it"


def t4_results(found: Sequence[tuple[Config, Result]], about: Mapping[str, object]) -> bytes:
    """What was measured at one workload; `about` says of what."""
    metadata = {"timeunit": "milliseconds", **about}
    whole = {
        "schema_version": VERSION,
        "metadata": metadata,
        "results": [_t4_entry(config, result) for config, result in found],
    }
    return json.dumps(whole, indent=1).encode() + b"\n"


def _t4_entry(config: Config, result: Result) -> dict[str, object]:
    timing = result.timing
    invalidity = INVALIDITY[result.status] if timing is not None or not result.ok else "runtime"
    samples = [1e3 * sample for sample in timing.samples] if timing is not None else []
    measured = [{"name": TIME, "value": 1e3 * timing.seconds, "unit": "ms"}] if timing is not None else []
    return {
        "configuration": config.as_dict(),
        "objectives": [TIME],
        "times": {"runtimes": samples},
        "invalidity": invalidity,
        "correctness": int(invalidity == "correct"),
        "measurements": measured,
    }


def t4_metadata(
    system: str, hardware: Mapping[str, object], device: Mapping[str, object], packages: Sequence[str]
) -> bytes:
    metadata = {
        "hardware": {"hardware_description": [dict(hardware)], "operating_system": system},
        "environment": {"device_query": dict(device), "requirements": list(packages)},
    }
    return json.dumps({"schema_version": VERSION, "metadata": metadata}, indent=1).encode() + b"\n"


@dataclass(frozen=True)
class T4Measurement:
    name: str
    value: Any = None
    unit: str = ""


@dataclass(frozen=True)
class T4Times:
    runtimes: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class T4Entry:
    configuration: dict[str, object]
    times: T4Times
    invalidity: Invalidity
    measurements: list[T4Measurement] = field(default_factory=list)


@dataclass(frozen=True)
class T4File:
    results: list[T4Entry]
    schema_version: str = VERSION
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class EarlierRows:
    """What a file says of a template: scores of its configurations, and what of the file was left out."""

    rows: tuple[Row, ...]
    of: int  # results in the file
    left_out: tuple[tuple[str, int], ...] = ()  # why -> how many of them

    def __str__(self) -> str:
        failed = sum(score is None for _, score in self.rows)
        parts = [f"{format_count(len(self.rows), 'configuration')} known, {failed} of them failed"]
        if self.left_out:
            reasons = ", ".join(f"{count} {why}" for why, count in self.left_out)
            parts.append(f"{sum(n for _, n in self.left_out)} of {self.of} results left out: {reasons}")
        return "; ".join(parts)


def rows_of_t4(text: str, template: Template | None, where: str) -> EarlierRows:
    """Scores are log speed-ups over the file's median time, None where a configuration failed. Without a
    template, one that is still to be written, every configuration of integers is kept."""
    file = _parse_t4_file(text, where)
    kept: dict[Config, list[float | None]] = {}
    left: Counter[str] = Counter()
    for number, entry in enumerate(file.results, 1):
        place = f"{where}: result {number}"
        seconds = _entry_seconds(entry, file, place) if entry.invalidity == "correct" else None
        config = _of_template(entry.configuration, template)
        if isinstance(config, str):
            left[config] += 1
        else:
            kept.setdefault(config, []).append(seconds)
    # What failed once is not believed.
    times = {c: median([t for t in seen if t is not None]) for c, seen in kept.items() if None not in seen}
    middle = median(list(times.values())) if times else 1.0
    rows = tuple((c, math.log(middle / times[c]) if c in times else None) for c in kept)
    return EarlierRows(rows, len(file.results), tuple(sorted(left.items())))


def _of_template(values: Mapping[str, object], template: Template | None) -> Config | str:
    names = [p.name for p in template.space.params] if template is not None else list(values)
    if unknown := sorted(set(values) - set(names)):
        return f"with parameters that the template has not ({', '.join(unknown[:3])})"
    if missing := sorted(set(names) - set(values)):
        return f"without parameters of the template ({', '.join(missing[:3])})"
    numbers = {name: n for name, n in values.items() if type(n) is int and abs(n) <= LIMIT}
    if not names or len(numbers) < len(names):
        return "with values outside the space"
    config = Config(tuple((name, numbers[name]) for name in names))
    is_inside = template is None or bool(rows_for(template, [(config, None)]))
    return config if is_inside else "with values outside the space"


def _parse_t4_file(text: str, where: str) -> T4File:
    try:
        # Kernel Tuner may write NaN and Infinity, which JSON has not.
        whole = json.loads(text, parse_constant=lambda _: None)
        file = msgspec.convert(whole, T4File)
    except msgspec.ValidationError as error:
        raise BadInput(f"this is no T4 results file: {error}", where=where, hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"a T4 results file is JSON, this is not: {error}", where=where, hint=_HINT) from error
    if file.schema_version.partition(".")[0] != VERSION.partition(".")[0]:
        fault = f"T4 results are read in version {VERSION}, this file has {file.schema_version[:40]!r}"
        raise BadInput(fault, where=where, hint="write it again in that version")
    return file


def _entry_seconds(entry: T4Entry, file: T4File, place: str) -> float:
    """The time of a valid configuration: the measurement of that name, else the median of the run times."""
    usual = str(file.metadata.get("timeunit", "ms"))
    unit, values = usual, [m.value for m in entry.measurements if m.name == TIME]
    if values:
        unit = next(m.unit for m in entry.measurements if m.name == TIME) or usual
    else:
        values = list(entry.times.runtimes)
    if not values:
        fault = f"a correct configuration has a measurement {TIME!r} or runtimes, this has neither"
        raise BadInput(fault, where=place, hint=_HINT)
    for value in values:
        if type(value) not in (int, float) or not 0 < value < math.inf:
            fault = f"a time is a positive number, got {json.dumps(value)[:60]}"
            raise BadInput(fault, where=place, hint="correct it, or leave the result out")
    if unit not in _SECONDS:
        fault = f"the unit of a time is one of {', '.join(_SECONDS)}, got {unit[:40]!r}"
        raise BadInput(fault, where=place, hint="correct the unit")
    return float(median([float(value) for value in values])) * _SECONDS[unit]
