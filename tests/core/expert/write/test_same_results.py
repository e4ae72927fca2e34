"""Written CUDA kernels give what the originals give: the cases of `same_results.toml`, emulated here."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.expert.write import models
from tests.core.expert.write.building import DEVICE
from tests.core.expert.write.comparing import SMALL_MAP, SMALL_ROWS, compare, of_the_zoo
from tests.core.expert.write.emulator import needs_emulator
from tests.core.expert.write.models import BESIDE, Model, choice
from tests.core.expert.write.test_blocked import BLOCKED, BLOCKED_MAP
from tests.core.expert.write.test_bulk import BULK
from tests.core.expert.write.test_entry_sizes import KEPT
from tests.core.expert.write.test_index_division import DIVIDING
from tests.core.expert.write.test_ring import ROWS, STAGES, made
from tests.core.expert.write.test_tiles import TILED
from tunesmith.expert.moves.convert import FORMATS
from tunesmith.expert.read.model import Schedule

TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("same_results.toml").read_text("utf-8"))
RING_MAP = SMALL_MAP.having(ring=STAGES)
FLAT = RING_MAP.without("tasks", "split").having(persistent=choice("PERSIST", 0, 1))
SCHEDULES: dict[str, Schedule] = {
    "rows": SMALL_ROWS,
    "rows that end": SMALL_ROWS.without("persistent"),
    "converting": SMALL_ROWS.having(convert=choice("CONVERT", 0, 1)),
    "map": SMALL_MAP,
    "flat map": SMALL_MAP.without("split", "tasks"),
    "beside": BESIDE,
    "beside without packs": BESIDE.without("vector", "store_hint"),
    "dividing": DIVIDING,
    "blocked rows": SMALL_ROWS.having(blocking=BLOCKED),
    "blocked map": BLOCKED_MAP,
    "ring of rows": ROWS,
    "ring of a map": RING_MAP,
    "flat ring": FLAT,
    "bulk rows": ROWS.having(bulk=BULK),
    "bulk map": RING_MAP.having(bulk=BULK),
    "flat bulk": FLAT.having(bulk=BULK),
    "kept": KEPT,
    "tiled": TILED,
}
assert DEVICE.limits.sms == 132, "the table counts on an H200"


def cases() -> Iterator[Any]:
    for name, table in TABLES.items():
        for number, _case in enumerate(table["cases"]):
            is_long = table.get("long", False) or number
            marks = [pytest.mark.long] if is_long else []
            yield pytest.param(name, number, marks=marks, id=f"{name}-{number}")


def model_named(name: str) -> Model:
    zoo = name.removeprefix("zoo/")
    return of_the_zoo(zoo) if zoo != name else getattr(models, name)


@needs_emulator
@pytest.mark.parametrize(("name", "number"), list(cases()))
def test_what_is_written_gives_what_the_original_gives(name: str, number: int, emulated: Path) -> None:
    table = TABLES[name]
    sizes = {**table.get("sizes", {}), **table["cases"][number]}
    values = sizes.pop("with")
    model, schedule = model_named(table["model"]), SCHEDULES[table["schedule"]]
    assert table.get("has", "") in made(model, schedule, sizes, **values).source
    hardware = None
    if table.get("hardware"):
        form = next(form for form in FORMATS if form.name == "float8_e4m3")
        hardware = ("to_e4m3", form.statement.format(x="value"), form.pair)
    compare(model, schedule, sizes, emulated, hardware, **values)
