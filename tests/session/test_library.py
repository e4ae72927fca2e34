"""The library on disk: entries come back as they were, damage is told, no name leads out of the folder."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.run.test_library import OWN, an_entry
from tests.samples import config
from tunesmith.errors import BadInput
from tunesmith.problem.codec import encode
from tunesmith.run.authors import UNKNOWN_AUTHOR
from tunesmith.run.config import RunConfig
from tunesmith.run.lessons import FORMAT as LESSONS_FORMAT
from tunesmith.run.lessons import KernelLessons, Lesson
from tunesmith.run.library import kernel_digest
from tunesmith.session.library import LARGEST, Library, export, lessons_for, to_begin_from


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "not" / "there" / "yet")


def test_what_is_put_comes_back_and_goes(library: Library) -> None:
    entry = an_entry()
    assert library.entries() == []
    assert entry.name not in library
    library.put(entry)
    library.put(entry)  # again, by the same run
    assert library.get(entry.name) == entry
    assert library.entries() == library.matching(OWN) == [entry]
    assert [p.name for p in library.folder.iterdir()] == [f"{entry.name}.json"]
    library.remove(entry.name)
    assert library.entries() == []


def test_an_entry_of_an_older_format_opens_and_may_be_a_models(library: Library) -> None:
    library.put(an_entry(format=1))
    (found,) = library.entries()
    assert found == an_entry(author=UNKNOWN_AUTHOR)
    library.add(an_entry())
    assert library.get(found.name).author == UNKNOWN_AUTHOR


def test_several_runs_that_end_at_once_lose_nothing(library: Library) -> None:
    runs = [an_entry(rows=((config(2**i), 0.1 * i),), best=(config(2**i),)) for i in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(library.add, run) for run in runs]:
            done.result()
    (found,) = library.entries()
    assert dict(found.rows) == {config(2**i): 0.1 * i for i in range(8)}
    assert len(found.best) == 8
    library.add(an_entry(name="other"))
    assert len(library.entries()) == 2


def test_what_cannot_be_read_is_skipped_and_reported(library: Library) -> None:
    good = an_entry()
    library.put(good)
    data = encode(good)
    (library.folder / "torn.json").write_bytes(data[: len(data) // 2])
    (library.folder / "renamed.json").write_bytes(data)
    (library.folder / "newer.json").write_bytes(encode(replace(good, name="newer", format=99)))
    (library.folder / "big.json").touch()
    os.truncate(library.folder / "big.json", LARGEST + 1)
    (library.folder / ".hidden.json").write_bytes(data)
    (library.folder / "left.json.123.part").write_bytes(b"{")
    notes: list[str] = []
    assert library.entries(notes.append) == [good]
    assert len(notes) == 5
    text = "\n".join(notes)
    assert all(name in text for name in ("torn.json", "renamed.json", "newer.json", "big.json", ".hidden"))
    with pytest.raises(BadInput, match=r"torn\.json: cannot be read"):
        library.get("torn")
    library.remove("torn")  # also what cannot be read can be removed


def test_entries_of_other_kernels_are_not_read_further(library: Library) -> None:
    own = an_entry()
    library.put(own)
    other = encode(replace(own, name="other", kernel="f" * len(own.kernel)))
    (library.folder / "other.json").write_bytes(other[:-9])  # damaged, and of no concern here
    (library.folder / "torn.json").write_bytes(encode(own)[:-9])
    notes: list[str] = []
    assert library.matching(OWN, notes.append) == [own]
    assert [note for note in notes if "other.json" in note] == []
    assert len([note for note in notes if "torn.json" in note]) == 1


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", ".x", "/etc/passwd", "a\nb", "x" * 200])
def test_no_name_leads_out_of_the_folder(library: Library, name: str) -> None:
    (library.folder.parent).mkdir(parents=True)
    (library.folder.parent / "x.json").write_bytes(encode(an_entry()))
    assert name not in library
    for act in (library.get, library.remove):
        with pytest.raises(BadInput):
            act(name)
    assert (library.folder.parent / "x.json").exists()


def test_a_template_is_exported_with_its_headers_and_over_nothing(tmp_path: Path) -> None:
    entry = an_entry(headers=(("own/part.h", "int part;\n"),))
    written = export(entry, tmp_path / "out" / "t.cl")
    assert [p.read_text() for p in written] == [entry.template, "int part;\n"]
    assert written[1] == tmp_path / "out" / "own" / "part.h"
    with pytest.raises(BadInput, match="would be overwritten"):
        export(entry, tmp_path / "out" / "t.cl")
    with pytest.raises(BadInput, match="outside its own folder"):
        export(an_entry(headers=(("../part.h", ""),)), tmp_path / "new.cl")
    assert not (tmp_path / "new.cl").exists()


def test_a_run_begins_from_a_template_that_stands_alone(library: Library) -> None:
    config = RunConfig(library_dir=str(library.folder))

    def found() -> list[str]:
        return [entry.name for entry in to_begin_from(OWN, None, config, print)]

    with pytest.raises(BadInput, match="has no template of scale's kernel"):
        found()
    library.put(an_entry(name="tied", headers=(("part.h", ""),)))
    with pytest.raises(BadInput, match="tied of the library has headers of its own"):
        found()
    library.put(an_entry(name="alone"))
    assert found() == ["alone"]


def lessons(*what: str) -> KernelLessons:
    found = tuple(Lesson(one, "no gain") for one in what)
    return KernelLessons(LESSONS_FORMAT, "scale", kernel_digest(OWN), ("scale",), "a GPU", "2026", found)


def test_lessons_are_kept_beside_entries_and_are_none_themselves(library: Library) -> None:
    library.learn(lessons("split"))
    library.learn(lessons("tile"))
    (found,) = library.lessons()
    assert [one.what for one in found.lessons] == ["split", "tile"]
    assert library.entries(note=pytest.fail) == []


def test_damaged_lessons_are_told_and_written_anew(library: Library) -> None:
    library.learn(lessons("split"))
    (file,) = (library.folder / "lessons").iterdir()
    file.write_text("{")
    noted: list[str] = []
    assert library.lessons(noted.append) == []
    assert file.name in noted[0]
    library.learn(lessons("tile"))
    assert [one.what for one in library.lessons()[0].lessons] == ["tile"]


def test_planners_are_told_unless_the_library_is_switched_off(library: Library) -> None:
    library.learn(lessons("moves split"))
    config = RunConfig(library_dir=str(library.folder))
    assert "moves split: no gain" in lessons_for(OWN, "a GPU", config, pytest.fail)
    assert lessons_for(OWN, "another GPU", config, pytest.fail) == ""
    assert lessons_for(OWN, "a GPU", replace(config, library=False), pytest.fail) == ""
