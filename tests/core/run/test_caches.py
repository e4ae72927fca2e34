"""What runs share: it may be lost or damaged at any time, which costs time and never truth."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tunesmith.backends.fake import FakeBackend
from tunesmith.profiles.facts import Ceilings, Point
from tunesmith.run.folder import CeilingsCache, SqliteCache
from tunesmith.run.outcome import Timing


def test_timings_are_cached_for_the_next_run(tmp_path: Path) -> None:
    path, notes = tmp_path / "deep" / "results.sqlite", list[str]()
    cache = SqliteCache(path, notes.append)
    assert cache.get("k") is None
    cache.put("k", Timing((1.0, 2.0)))
    cache.put("k", Timing((3.0,), paired=(4.0,)))
    cache.put("l", Timing((5.0,)))
    cache.close()
    again = SqliteCache(path, notes.append)
    assert again.get("k") == Timing((3.0,), paired=(4.0,))
    assert again.get("l") == Timing((5.0,))
    assert again.get("m") is None
    again.close()
    assert notes == []


def test_two_processes_share_a_cache(tmp_path: Path) -> None:
    notes: list[str] = []
    one, other = (SqliteCache(tmp_path / "results.sqlite", notes.append) for _ in range(2))
    one.put("k", Timing((1.0,)))
    other.put("l", Timing((2.0,)))
    assert (other.get("k"), one.get("l"), notes) == (Timing((1.0,)), Timing((2.0,)), [])
    one.close()
    other.close()


@pytest.mark.parametrize(
    "content", [b"this is no database at all, but long enough", b"SQLite format 3\0" + b"\7" * 500]
)
def test_a_damaged_cache_is_noted_once_and_done_without(tmp_path: Path, content: bytes) -> None:
    path, notes = tmp_path / "results.sqlite", list[str]()
    path.write_bytes(content)
    cache = SqliteCache(path, notes.append)
    cache.put("k", Timing((1.0,)))
    assert cache.get("k") is None
    cache.close()
    assert len(notes) == 1
    assert notes[0].startswith("going on without the result cache: ")


def test_a_cache_damaged_while_in_use(tmp_path: Path) -> None:
    path, notes = tmp_path / "results.sqlite", list[str]()
    cache = SqliteCache(path, notes.append)
    cache.put("k", Timing((1.0,)))
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE results")
    assert cache.get("k") is None
    cache.put("k", Timing((1.0,)))
    assert len(notes) == 1


@pytest.mark.parametrize("stored", [b"{}", b"", b"\xff", b'{"samples":[]}', b'{"samples":["fast"]}', b"null"])
def test_an_entry_that_another_version_wrote_is_absent(tmp_path: Path, stored: bytes) -> None:
    path, notes = tmp_path / "results.sqlite", list[str]()
    cache = SqliteCache(path, notes.append)
    with sqlite3.connect(path) as other:
        other.execute("INSERT INTO results VALUES ('k', ?)", (stored,))
    assert cache.get("k") is None
    cache.put("k", Timing((1.0,)))
    assert cache.get("k") == Timing((1.0,))
    cache.close()
    assert notes == []


@pytest.mark.parametrize("blocked", ["folder", "file"])
def test_a_cache_that_cannot_be_made(tmp_path: Path, blocked: str) -> None:
    notes: list[str] = []
    path = tmp_path / "cache" / "results.sqlite"
    if blocked == "folder":
        path.mkdir(parents=True)
    else:
        path.parent.write_text("in the way")
    cache = SqliteCache(path, notes.append)
    assert cache.get("k") is None
    assert len(notes) == 1


def test_ceilings_are_cached_by_device_and_driver(tmp_path: Path) -> None:
    device = FakeBackend().devices()[0]
    cache, ceilings = CeilingsCache(tmp_path / "cache"), Ceilings(copy=(Point(64, 1e-6),), fp32=1e12)
    assert cache.get(device) is None
    cache.put(device, ceilings, ("a note",))
    found = cache.get(device)
    assert found[0] == replace(ceilings, measured_on=found[0].measured_on)
    assert found[1] == ("a note",)
    assert cache.get(replace(device, driver="2")) is None
    (file,) = (tmp_path / "cache" / "ceilings").iterdir()
    assert json.loads(file.read_text())["device"] == "simulated device"


@pytest.mark.parametrize(
    ("whole", "spoilt"),
    [
        *((None, text) for text in ("", "{", '{"format":1}', "\0")),
        ('"format":1', '"format":999'),
        *(('"seconds":0.5', f'"seconds":{number}') for number in ("0.0", "-1.0", "1e999")),
    ],
)
def test_a_damaged_file_is_measured_again(tmp_path: Path, whole: str | None, spoilt: str) -> None:
    """Also one of another format, or with numbers that nobody measures."""
    device, cache = FakeBackend().devices()[0], CeilingsCache(tmp_path)
    cache.put(device, Ceilings(copy=(Point(64, 0.5),)))
    assert cache.get(device) is not None
    (file,) = (tmp_path / "ceilings").iterdir()
    file.write_text(spoilt if whole is None else file.read_text().replace(whole, spoilt))
    assert cache.get(device) is None


def test_a_file_from_before_dates_were_written_has_that_of_the_file(tmp_path: Path) -> None:
    device, cache = FakeBackend().devices()[0], CeilingsCache(tmp_path)
    cache.put(device, Ceilings(fp32=1e12))
    (file,) = (tmp_path / "ceilings").iterdir()
    old = file.read_text().replace(',"measured_on":""', "")
    assert "measured_on" not in old
    file.write_text(old)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert cache.get(device) == (Ceilings(fp32=1e12, measured_on="2023-11-14"), ())


def test_a_cache_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    notes: list[str] = []
    CeilingsCache(tmp_path / "file", notes.append).put(FakeBackend().devices()[0], Ceilings())
    assert notes == ["the ceilings are not stored: Not a directory"]
