"""Which paths a client may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.plugins.mcp.folders import allowed_folders, folder_of


def refused(named: list[str] | None, bounds: list[Path], path: str) -> BadInput:
    with pytest.raises(BadInput) as error:
        allowed_folders(named, bounds).inside(path)
    assert error.value.hint
    return error.value


def test_a_path_counts_from_the_first_and_may_be_in_any(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two words"
    one.mkdir()
    two.mkdir()
    folders = allowed_folders([one.as_uri(), two.as_uri()], [])
    assert folders.folders == (one, two)
    assert folders.inside("new/file") == one / "new" / "file"
    assert folders.inside(str(two)) == two
    assert folders.root_of(two / "x") == two


@pytest.mark.parametrize("path", ["/etc/passwd", "../two", "a/../../two", "link/file", "linked", "", "a\0b"])
def test_what_leads_outside_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "file").write_text("")
    (tmp_path / "one" / "link").symlink_to(tmp_path / "two")
    (tmp_path / "one" / "linked").symlink_to(tmp_path / "two" / "file")
    error = refused([(tmp_path / "one").as_uri()], [], path)
    if path and "\0" not in path:
        says(str(error), "only the folders that the client names are touched", path)
        says(error.hint, str(tmp_path / "one"))


def test_a_name_that_begins_alike_is_another_folder(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one-more").mkdir()
    refused([(tmp_path / "one").as_uri()], [], str(tmp_path / "one-more"))


def test_links_in_a_circle_are_no_path(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    try:
        found = allowed_folders([tmp_path.as_uri()], []).inside("a")
    except BadInput as error:
        says(str(error), "cannot be followed")
    else:
        assert found.parent == tmp_path


def test_whoever_starts_the_server_sets_bounds(tmp_path: Path) -> None:
    inner, other = tmp_path / "work" / "inner", tmp_path / "other"
    inner.mkdir(parents=True)
    other.mkdir()
    work = tmp_path / "work"
    assert allowed_folders(None, [work]).folders == (work,), "a client that cannot say has them all"
    assert allowed_folders([inner.as_uri(), other.as_uri()], [work]).folders == (inner,)
    assert allowed_folders([tmp_path.as_uri()], [work]).folders == (work,), "and no more than they are"
    says(str(refused([other.as_uri()], [work], "x")), "outside of --root")


def test_without_a_word_nothing_may_be_touched(tmp_path: Path) -> None:
    says(str(refused(None, [], str(tmp_path))), "started without --root")
    says(str(refused([], [], str(tmp_path))), "it names none")
    says(str(refused(["file:///no/such/folder"], [], "x")), "none is a folder here", "file:///no/such/folder")


@pytest.mark.parametrize(
    "address", ["http://host/tmp", "file://elsewhere/tmp", "file:relative", "nonsense", "file://["]
)
def test_an_address_of_another_place_is_no_folder(address: str) -> None:
    assert folder_of(address) is None


def test_an_address_is_unquoted(tmp_path: Path) -> None:
    folder = tmp_path / "ä b%c"
    folder.mkdir()
    assert folder_of(folder.as_uri()) == folder
