"""What others wrote into a library that is shared, made harmless: short words on one line, numbers that can
be, templates that are vetted as a model's text is. Whether it is true is found out here, by measuring."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tunesmith.problem.codec import Malformed
from tunesmith.run.authors import UNKNOWN_AUTHOR
from tunesmith.run.candidates import Row
from tunesmith.run.lessons import KernelLessons, Lesson
from tunesmith.run.library import (
    FIRST,
    NAME,
    ROWS,
    STORED_ROWS,
    LibraryEntry,
    Provenance,
    RunRecord,
    ServedWorkload,
    TimedConfig,
)
from tunesmith.space.params import Config
from tunesmith.text import cut, flat

LONGEST_WORD = 200  # characters of a name or a device in what others wrote
FARTHEST = 50.0  # log speed-up: nothing is faster or slower by more
MOST_PARAMETERS, LARGEST_VALUE = 64, 1 << 62
_PARAMETER = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)


def foreign_entry(entry: LibraryEntry) -> LibraryEntry:
    """As it may be used here: vetted as a model's text is, whoever it says has written it; words short and on
    one line, numbers that can be. Malformed: it is no entry of any run."""
    numbers = [
        entry.speedup,
        *(entry.interval or ()),
        *(n for s in entry.served for n in (s.speedup, *s.interval, s.weight)),
    ]
    if not all(math.isfinite(number) and number >= 0 for number in numbers) or not entry.speedup:
        raise Malformed(f"not a library entry: speed-ups of {entry.speedup}")
    configs = [*entry.best, *(s.config for s in entry.served)]
    if not NAME.fullmatch(entry.name) or not all(map(_is_sound, configs)):
        raise Malformed("not a library entry: names or values that no template has")
    word: dict[str, Any] = {
        key: _word(getattr(entry, key)) for key in ("problem", "language", "device", "driver", "date")
    }
    word |= {key: _word(getattr(entry, key)) for key in ("compiler", "origin", "run", "certificate")}
    return replace(
        entry,
        **word,
        signature=flat(entry.signature),
        path=entry.path if NAME.fullmatch(entry.path) else "template",
        moves=tuple(move for move in entry.moves if NAME.fullmatch(move))[:MOST_PARAMETERS],
        author=_word(entry.author) or UNKNOWN_AUTHOR,
        served=tuple(_served(one) for one in entry.served[:STORED_ROWS]),
        best=entry.best[:FIRST],
        rows=_sound_rows(entry.rows)[:ROWS],
    )


def _served(one: ServedWorkload) -> ServedWorkload:
    return replace(one, workload=_word(one.workload), sizes=tuple((_word(n), v) for n, v in one.sizes))


def foreign_record(run: RunRecord) -> RunRecord:
    said = run.provenance
    own = Provenance(*map(_word, (said.date, said.who, said.host, said.origin, said.certificate)))
    names = ("id", "problem", "entry", "kernel", "language", "device", "driver", "compiler", "architecture")
    more = ("backend", "device_key", "strategy", "models")
    word: dict[str, Any] = {name: _word(getattr(run, name)) for name in (*names, *more)}
    return replace(run, provenance=own, **word)


def foreign_timings(timings: Sequence[TimedConfig]) -> list[TimedConfig]:
    """Without those that nobody can have measured."""
    return [t for t in timings if _is_sound(t.config) and _is_score(t.score)]


def _sound_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple((config, score) for config, score in rows if _is_sound(config) and _is_score(score))


def _is_sound(config: Config) -> bool:
    named = all(_PARAMETER.fullmatch(name) and abs(value) <= LARGEST_VALUE for name, value in config.items)
    return named and not config.candidate and len(config.items) <= MOST_PARAMETERS


def _is_score(score: float | None) -> bool:
    return score is None or abs(score) <= FARTHEST  # so that a NaN is none


def _word(text: str) -> str:
    return cut(flat(text), LONGEST_WORD)


def foreign_lessons(found: KernelLessons) -> KernelLessons:
    told = tuple(Lesson(_word(one.what), _word(one.why)) for one in found.lessons[:STORED_ROWS])
    names = ("problem", "kernel", "device", "date")
    word: dict[str, Any] = {name: _word(getattr(found, name)) for name in names}
    return replace(found, lessons=told, **word)
