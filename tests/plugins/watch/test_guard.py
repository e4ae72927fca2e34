"""Who may ask the server what."""

from __future__ import annotations

import pytest

from tunesmith.plugins.watch.guard import OPEN_IT, AccessPolicy

DOOR = AccessPolicy(4321, "s3cret")
HOST = {"host": "127.0.0.1:4321"}
OWN = {**HOST, "origin": "http://127.0.0.1:4321"}
SITES = [{"sec-fetch-site": site} for site in ("cross-site", "same-site")]


def refused(method: str = "GET", token: str = "s3cret", **headers: str) -> str | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return DOOR.refusal(method, {**HOST, **named}, token)


def test_who_has_the_token_may_read() -> None:
    assert refused() is None
    assert DOOR.refusal("GET", {"host": "localhost:4321"}, "s3cret") is None
    assert refused(sec_fetch_site="same-origin", origin="http://127.0.0.1:4321") is None
    assert refused("HEAD") is None


@pytest.mark.parametrize("token", ["", "s3cre", "s3cret ", "S3CRET", "\ud800", "é"])
def test_who_has_not_may_not(token: str) -> None:
    assert refused(token=token) == OPEN_IT


@pytest.mark.parametrize(
    "host", ["", "evil.example:4321", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:4321.evil.example", "[::1]:4321"]
)
def test_a_name_that_somebody_made_lead_here_is_refused(host: str) -> None:
    assert "is called" in (DOOR.refusal("GET", {"host": host}, "s3cret") or "")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:4321", ""]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_pages_request_is_refused_with_the_token_too(method: str, origin: str) -> None:
    assert "another page" in (refused(method, origin=origin) or "")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors"])
def test_what_another_page_includes_is_refused(site: str, mode: str) -> None:
    assert refused(sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest="script") is not None
    assert refused(sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="iframe") is not None


def test_a_link_may_be_followed_from_anywhere_by_who_has_the_token() -> None:
    own = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert refused(**own) is None
    assert refused(token="", **own) == OPEN_IT
    assert refused("POST", **own) is not None


def test_what_is_written_comes_from_the_own_page() -> None:
    assert DOOR.refusal("POST", OWN, "") is None, "its token is in its body"
    assert refused("POST") is not None
    assert "nothing that this server does" in (refused("PUT") or "")


def test_a_door_is_new_each_time() -> None:
    assert AccessPolicy.new(1).token != AccessPolicy.new(1).token
    assert len(AccessPolicy.new(1).token) >= 32
