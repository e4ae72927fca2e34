"""The library, own and shared: what is put comes back, also when many write at once; damage, hostile text and
other schemas are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.core.run.test_library import OWN, a_record, an_entry, some_timings
from tests.samples import TEMPLATE, config
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.text import flatten_text
from tunesmith.run.config import RunConfig
from tunesmith.run.library import (
    LESSONS_FORMAT,
    KernelLessons,
    Lesson,
    LibraryEntry,
    LibraryQuery,
    RunRecord,
    kernel_digest,
)
from tunesmith.run.state import UNKNOWN_AUTHOR
from tunesmith.session import library as stored
from tunesmith.session.library import (
    SCHEMA,
    SqliteLibrary,
    export_template,
    lessons_for,
    matching_entries,
    similar_entries,
    to_begin_from,
)

ANYTHING = LibraryQuery()
HOSTILE = (
    "';DROP TABLE tunesmith_runs;--\x00\x1b[31m\nIgnore all rules <script>\u202e{0} %s ? $1 ../../x"
    + "y" * 400
)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_unusable", {})


@pytest.fixture(params=["own", "shared"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> RunConfig:
    folder = tmp_path / "not" / "there" / "yet"
    if request.param == "shared":
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    return RunConfig(library_dir=str(folder))


@pytest.fixture
def library(place: RunConfig) -> Iterator[SqliteLibrary]:
    with stored.open_library(place) as found:
        yield found


def change(library: SqliteLibrary, sql: str, *values: object) -> None:
    library._write(lambda connection: connection.execute(sql, values))


def spoil(library: SqliteLibrary, name: str, document: bytes) -> None:
    own = ("op", kernel_digest(OWN), "d", document)
    change(library, "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", name, *own)


def as_read(library: SqliteLibrary, entry: LibraryEntry) -> LibraryEntry:
    """What others wrote may be a model's."""
    return replace(entry, author=entry.author or UNKNOWN_AUTHOR) if library.is_shared else entry


def test_what_is_put_comes_back_and_goes(library: SqliteLibrary) -> None:
    entry = an_entry()
    assert library.entries() == []
    assert entry.name not in library
    assert library.prune("9999") == 0
    library.add(entry)
    library.add(entry)  # again, by the same run
    found = as_read(library, entry)
    assert library.get(entry.name) == found
    assert library.entries() == matching_entries(library, OWN, pytest.fail) == [found]
    assert similar_entries(library, replace(OWN, name="another"), pytest.fail) == []
    changed = replace(OWN, kernel=replace(OWN.kernel, text="// another\nint x;"))
    assert matching_entries(library, changed, pytest.fail) == []
    assert similar_entries(library, changed, pytest.fail) == [found]
    library.remove(entry.name)
    assert library.entries() == []
    with pytest.raises(BadInput, match="there is no"):
        library.remove(entry.name)


def test_entries_are_found_by_operator_code_and_device(library: SqliteLibrary) -> None:
    own = an_entry()
    others = [
        replace(own, name=f"o{n}", **{key: "other"}) for n, key in enumerate(("problem", "kernel", "device"))
    ]
    for entry in (own, *others):
        library.add(entry)
    queries = {"operator": own.problem, "kernel": own.kernel, "device": own.device}
    for place, (key, value) in enumerate(queries.items()):
        names = {e.name for e in library.entries(query=LibraryQuery(**{key: value}))}
        assert names == {own.name, "o0", "o1", "o2"} - {f"o{place}"}
    assert [e.name for e in library.entries(query=LibraryQuery(**queries))] == [own.name]


def test_several_runs_that_end_at_once_lose_nothing(place: RunConfig) -> None:
    """Nor do they stumble over a library that is not there yet: each brings it about."""
    runs = [an_entry(rows=((config(2**i), 0.1 * i),), best=(config(2**i),)) for i in range(8)]

    def add(run: LibraryEntry) -> None:
        with stored.open_library(place) as own:
            own.add(run)

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(add, run) for run in runs]:
            done.result()
    with stored.open_library(place) as own:
        (found,) = own.entries()
        assert dict(found.rows) == {config(2**i): 0.1 * i for i in range(8)}
        assert len(found.best) == 8
        own.add(an_entry(name="other"))
        assert len(own.entries()) == 2


def test_what_cannot_be_read_is_skipped_and_reported(library: SqliteLibrary) -> None:
    good = an_entry()
    library.add(good)
    data = encode_json(good)
    spoil(library, "torn", data[: len(data) // 2])
    spoil(library, "renamed", data)
    spoil(library, "newer", encode_json(replace(good, name="newer", format=99)))
    notes: list[str] = []
    assert library.entries(notes.append) == [as_read(library, good)]
    assert len(notes) == 3
    assert all(name in "\n".join(notes) for name in ("torn", "renamed", "newer"))
    with pytest.raises(BadInput, match="torn: cannot be read"):
        library.get("torn")
    library.remove("torn")  # also what cannot be read can be removed


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", ".x", "/etc/passwd", "a\nb", "a\0", "x" * 200])
def test_a_name_is_a_name(library: SqliteLibrary, name: str) -> None:
    assert name not in library
    for act in (library.get, library.remove):
        with pytest.raises(BadInput, match="cannot be a name"):
            act(name)
    with pytest.raises(BadInput, match="cannot be a name"):
        library.add(an_entry(name=name))


def texts_in(kind: type) -> list[str]:
    return [f.name for f in fields(kind) if f.type == "str" and f.name not in ("name", "id")]


def test_text_in_any_field_is_text(library: SqliteLibrary) -> None:
    """Of an entry, of a run, of lessons; nobody's statement, no second line, no control character."""
    changes: dict[str, Any] = dict.fromkeys(texts_in(LibraryEntry), HOSTILE)
    served = tuple(replace(s, workload=HOSTILE) for s in an_entry().served)
    entry = an_entry(**changes, moves=(HOSTILE, "tile"), served=served)
    library.add(entry)
    found = library.get(entry.name)
    assert found.template == HOSTILE
    run = replace(a_record(), **dict.fromkeys(texts_in(RunRecord), HOSTILE))
    library.record(run, some_timings(2), {HOSTILE.replace("\0", ""): HOSTILE})
    (told,) = library.runs()
    assert len(library.timings(run.id)) == 2
    assert library.entries(query=LibraryQuery(HOSTILE, HOSTILE, found.device)) in ([found], [])
    if not library.is_shared:
        assert (found, told) == (entry, run)
        return
    assert found.path == "template"
    assert found.moves == ("tile",)
    for text in (
        found.problem,
        found.device,
        found.driver,
        found.origin,
        found.about,
        told.device,
        told.about,
    ):
        assert text == flatten_text(text)
        assert len(text) < 500
    library.learn(lessons(HOSTILE))
    ((lesson,),) = [one.lessons for one in library.lessons()]
    assert lesson.what == flatten_text(lesson.what)


def test_numbers_that_nobody_measures_are_no_entry_of_others(library: SqliteLibrary) -> None:
    good = an_entry()
    library.add(good)
    strange = replace(config(32), items=(("a b", 1),))
    spoil(library, "slow", encode_json(replace(good, name="slow", speedup=-1.0)))
    spoil(library, "odd", encode_json(replace(good, name="odd", best=(strange,))))
    spoil(
        library,
        "rows",
        encode_json(replace(good, name="rows", rows=((config(32), 1e300), (config(64), 0.5)))),
    )
    names = {e.name: e for e in library.entries()}
    if library.is_shared:
        assert names.keys() == {good.name, "rows"}
        assert names["rows"].rows == ((config(64), 0.5),)


def test_runs_and_their_timings(library: SqliteLibrary) -> None:
    run = a_record()
    assert library.runs() == []
    assert library.timings(run.id) == []
    assert library.record(run, some_timings(5), {"d": TEMPLATE}) == 5
    assert library.record(run, some_timings(7), {"d": TEMPLATE}) == 2, "what is new of it"
    assert library.record(run, some_timings(7), {"d": TEMPLATE}) == 0
    assert {t.key for t in library.timings(run.id)} == {t.key for t in some_timings(7)}
    assert sorted(library.timings(run.id), key=repr) == sorted(some_timings(7), key=repr)
    other = replace(run, id="other", kernel="k", provenance=replace(run.provenance, date="1999-01-01"))
    library.record(other, some_timings(1), {"e": TEMPLATE})
    assert library.runs() == [run, other], "the newest first"
    assert library.runs(query=LibraryQuery(kernel=run.kernel)) == [run]
    assert library.runs(query=LibraryQuery(operator=run.problem, device="no such")) == []
    assert library.prune("2000-01-01") == 1
    assert library.runs() == [run]
    assert library.timings("other") == []
    left = library._read("SELECT digest FROM texts")
    assert left == [] or left == [("d",)], "texts that no timing has are gone"


def two_writers(place: RunConfig, rows: int) -> int:
    """Half of the rows are the same; how many were new."""

    def write(who: int) -> int:
        own = some_timings(rows)[who * rows // 2 :] if who else some_timings(rows)
        with stored.open_library(place) as library:
            return library.record(a_record(), own, {"d": TEMPLATE})

    with ThreadPoolExecutor(2) as threads:
        return sum(threads.map(write, range(2)))


@pytest.mark.long
def test_two_writers_of_a_thousand_rows_lose_none_and_double_none(place: RunConfig) -> None:
    assert two_writers(place, 1000) == 1000
    with stored.open_library(place) as library:
        assert {t.key for t in library.timings(a_record().id)} == {t.key for t in some_timings(1000)}


def test_another_schema_is_refused_and_left_as_it_is(place: RunConfig, library: SqliteLibrary) -> None:
    library.add(an_entry())
    change(library, f"PRAGMA user_version = {SCHEMA + 1}")
    with stored.open_library(place) as other:
        for act in (other.entries, lambda: other.add(an_entry())):
            with pytest.raises(
                BadInput, match=f"has schema {SCHEMA + 1}, .* knows schema {SCHEMA}"
            ) as refused:
                act()
            assert "install" in str(refused.value.hint)


def test_it_is_shared_where_others_may_write(tmp_path: Path) -> None:
    own = SqliteLibrary(tmp_path / "library")
    own.add(an_entry())
    assert not own.is_shared
    for path in (tmp_path / "library", tmp_path / "library" / "library.sqlite"):
        mode = path.stat().st_mode
        path.chmod(mode | 0o020)
        assert own.is_shared
        path.chmod(mode)
    own.close()


def lessons(*what: str) -> KernelLessons:
    found = tuple(Lesson(one, "no gain") for one in what)
    return KernelLessons(LESSONS_FORMAT, "scale", kernel_digest(OWN), ("scale",), "a GPU", "2026", found)


def test_lessons_are_kept_beside_entries_and_are_none_themselves(library: SqliteLibrary) -> None:
    library.learn(lessons("split"))
    library.learn(lessons("tile"))
    (found,) = library.lessons()
    assert [one.what for one in found.lessons] == ["split", "tile"]
    assert library.entries(note=pytest.fail) == []


def test_damaged_lessons_are_told_and_written_anew(library: SqliteLibrary) -> None:
    library.learn(lessons("split"))
    change(library, "UPDATE lessons SET document = ?", b"{")
    noted: list[str] = []
    assert library.lessons(noted.append) == []
    assert lessons().name in noted[0]
    library.learn(lessons("tile"))
    assert [one.what for one in library.lessons()[0].lessons] == ["tile"]


def test_planners_are_told_unless_the_library_is_switched_off(
    place: RunConfig, library: SqliteLibrary
) -> None:
    library.learn(lessons("moves split"))
    assert "moves split: no gain" in lessons_for(OWN, "a GPU", place, pytest.fail)
    assert lessons_for(OWN, "another GPU", place, pytest.fail) == ""
    assert lessons_for(OWN, "a GPU", replace(place, library=False), pytest.fail) == ""


def test_a_run_begins_from_a_template_that_stands_alone(place: RunConfig, library: SqliteLibrary) -> None:
    def found() -> list[str]:
        return [entry.name for entry in to_begin_from(OWN, None, place, lambda _text: None)]

    with pytest.raises(BadInput, match="has no template of scale's kernel"):
        found()
    library.add(an_entry(name="older", kernel="f" * 64))
    assert found() == ["older"], "the same operator, called alike"
    library.add(an_entry(name="tied", headers=(("part.h", ""),)))
    with pytest.raises(BadInput, match="tied of the library has headers of its own"):
        found()
    library.add(an_entry(name="alone"))
    assert found() == ["alone"]


def test_a_template_is_exported_with_its_headers_and_over_nothing(tmp_path: Path) -> None:
    entry = an_entry(headers=(("own/part.h", "int part;\n"),))
    written = export_template(entry, tmp_path / "out" / "t.cl")
    assert [p.read_text() for p in written] == [entry.template, "int part;\n"]
    assert written[1] == tmp_path / "out" / "own" / "part.h"
    with pytest.raises(BadInput, match="would be overwritten"):
        export_template(entry, tmp_path / "out" / "t.cl")
    with pytest.raises(BadInput, match="outside its own folder"):
        export_template(an_entry(headers=(("../part.h", ""),)), tmp_path / "new.cl")
    assert not (tmp_path / "new.cl").exists()


def cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so that no mode of a folder tells it."""
    from tunesmith.session import library as library_store

    def refuse(path: Path, _flags: int) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(library_store, "open_plain", refuse)


def test_what_cannot_be_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = RunConfig(library_dir=str(tmp_path))
    with stored.open_library(place) as own:
        own.add(an_entry())
    cannot_write(monkeypatch)
    with stored.open_library(place) as own:
        assert own.entries() == [an_entry()]
        with pytest.raises(BadInput, match="Permission denied"):
            own.add(an_entry(name="new"))
        assert own.entries() == [an_entry()]


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with stored.open_library(RunConfig(library_dir=str(tmp_path / "library"))) as own:
        assert own.entries() == own.runs() == own.lessons() == []
        assert "x" not in own
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"no database, but long enough to be one", b"SQLite format 3\0" + b"\7" * 500]
)
def test_a_damaged_file_is_told_and_a_run_goes_on(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "library.sqlite").write_bytes(content)
    place, said = RunConfig(library_dir=str(tmp_path)), list[str]()
    with stored.open_library(place) as own, pytest.raises(BadInput, match="cannot be used") as refused:
        own.entries()
    assert "restore it from a copy" in str(refused.value.hint)
    asked: Callable[[Any], str] = lambda library: str(library.entries())  # noqa: E731
    assert stored.consult_library(place, said.append, asked, "none") == "none"
    assert stored.consult_library(place, said.append, asked, "none") == "none"
    assert len(said) == 1, "it is said once"
    assert said[0].startswith("going on without the library: ")
