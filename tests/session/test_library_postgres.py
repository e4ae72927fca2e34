"""A team's library when something is wrong: the URL, the server, the password, rights, the network; and
killed in the middle. No message has a password."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

from tests.postgres_server import GUARDED, PASSWORD, STRANGER, Server, networked_server, own_server, server
from tests.run.test_library import a_record, an_entry, some_timings
from tests.run.test_loop import MemoryTexts
from tests.samples import TEMPLATE, a_problem, state_of
from tunesmith.errors import BadInput
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Settings
from tunesmith.run.store import RunFolder
from tunesmith.session import library as stored
from tunesmith.session import library_store
from tunesmith.session.library import open_library
from tunesmith.session.library_store import SqlLibrary


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_unusable", {})


def at(url: str, patience: float = 0.0) -> SqlLibrary:
    return open_library(RunConfig(library_url=url), patience=patience)


def refused(url: str, secret: str = "") -> BadInput:
    with pytest.raises(BadInput) as caught:
        at(url).add(an_entry())
    error = caught.value
    assert error.hint
    if secret:
        assert secret not in f"{error} {error.hint} {error!r} {error.__cause__ and error.where}"
    return error


# -- what needs no server ---------------------------------------------------------------------------------


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "tunesmith.session.library_postgres", raising=False)
    with pytest.raises(BadInput, match="needs psycopg") as caught:
        at("postgresql://u:geheim7@h/d")
    assert caught.value.hint == "pip install 'tunesmith[postgres]'"


@pytest.mark.parametrize(
    ("url", "secret", "says"),
    [
        ("postgresql://u:geheim7@h:port/d", "geheim7", "a port that is no number"),
        ("postgresql://u:geh@eim7@h/d", "eim7", "an @ where"),
        ("postgresql://u:1234/eim7@h/d", "eim7", "an @ where"),
        ("postgresql://h/d?sslmod=require", "", "sslmod"),
        ("postgresql://u@h/d?password=geheim7&sslmod=x", "geheim7", "no URL"),
    ],
)
def test_a_wrong_url_is_told_without_its_password(url: str, secret: str, says: str) -> None:
    pytest.importorskip("psycopg")
    assert says in refused(url, secret).message


def test_no_server_is_told_at_once_and_once_to_a_run(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    url = f"postgresql://u:geheim7@/d?host={tmp_path}"
    error = refused(url, "geheim7")
    assert "pg_isready" in str(error.hint)
    assert error.where == f"postgresql://u@{str(tmp_path).replace('/', '%2F')}/d"
    config, said = RunConfig(library_url=url), list[str]()
    for _ in range(3):
        assert stored.consult(config, said.append, lambda library: len(library.entries(print)), -1) == -1
    (line,) = said
    assert line.startswith("going on without the library: ")
    assert "geheim7" not in line
    assert "geheim7" not in repr(config)


class FakeClock:
    """In place of `time`: what sleeps loses no time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def keep(url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a run's end says. It has three timings."""

    def store(library: SqlLibrary, *_: object) -> stored.StoredRun:
        return stored.StoredRun("r", 3, library.record(a_record(), some_timings(3), {"d": TEMPLATE}), ())

    monkeypatch.setattr(stored, "store_run", store)
    problem, texts = a_problem(), MemoryTexts()
    return stored.keep_run(
        RunConfig(library_url=url),
        RunFolder(Path("run")),
        problem,
        Templates(problem, None, None, texts),
        state_of(settings=Settings(library=True)),
    )


def test_a_server_that_is_gone_when_a_run_ends_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    url, clock = f"postgresql://u:geheim7@/d?host={tmp_path}", FakeClock()
    monkeypatch.setattr(library_store, "time", clock)
    (said,) = keep(url, monkeypatch)
    assert said.startswith("not stored: ")
    assert said.endswith("put it in later: tunesmith library add run")
    assert library_store.PATIENCE - 2 < clock.now <= library_store.PATIENCE
    clock.now = 0
    assert not stored.finding(RunConfig(library_url=url))[0]
    with pytest.raises(BadInput):
        open_library(RunConfig(library_url=url)).entries()
    assert clock.now == 0, "nobody else waits for a server that was never there"


def test_a_refusal_by_the_server_is_not_waited_for_when_a_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")

    def refuse(**_: object) -> None:
        raise psycopg.OperationalError('connection failed: FATAL:  database "d" does not exist')

    clock = FakeClock()
    monkeypatch.setattr(library_store, "time", clock)
    monkeypatch.setattr(psycopg, "connect", refuse)
    (said,) = keep("postgresql://u@h/d", monkeypatch)
    assert "does not exist" in said
    assert clock.now == 0


# -- rights -----------------------------------------------------------------------------------------------

long = pytest.mark.long


@long
def test_a_wrong_password_no_rights_and_no_database() -> None:
    name = server().database()
    wrong = refused(server().url(name, GUARDED, "geheim-but-wrong"), "geheim-but-wrong")
    assert "password authentication failed" in wrong.message
    assert "PGPASSFILE" in str(wrong.hint)
    assert "create, read and write" in str(refused(server().url(name, STRANGER)).hint)
    assert "createdb" in str(refused(server().url("no_such_database")).hint)


@long
@pytest.mark.parametrize("how", ["url", "variable", "file"])
def test_a_password_is_taken_from_where_libpq_looks(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = server().database(GUARDED)
    if how == "variable":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    if how == "file":
        file = tmp_path / "pass"
        file.write_text(f"*:*:*:*:{PASSWORD.replace(':', chr(92) + ':')}\n")
        file.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(file))
    own = at(server().url(name, GUARDED, PASSWORD if how == "url" else ""))
    own.add(an_entry())
    assert an_entry().name in own
    assert PASSWORD not in own.where
    own.close()


@long
def test_who_may_only_read_reads() -> None:
    name = server().database()
    owner = at(server().url(name))
    owner.add(an_entry())
    with server().connect(name) as connection:
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {STRANGER}")
    stranger = at(server().url(name, STRANGER))
    assert [e.name for e in stranger.entries()] == [an_entry().name]
    with pytest.raises(BadInput, match="permission denied"):
        stranger.add(an_entry(name="new"))
    stranger.close()
    owner.close()


# -- in the middle ----------------------------------------------------------------------------------------


@pytest.fixture
def mortal() -> Iterator[Server]:
    server()  # or a skip
    found = own_server()
    yield found
    found.stop()


class DyingAt:
    """Kills the server before the batch of that number; it comes back later, or not."""

    def __init__(self, library: SqlLibrary, mortal: Server, batch: int, back_after: float | None) -> None:
        self.count, self._real = 0, library._write
        self._mortal, self._batch, self._back_after = mortal, batch, back_after
        library._write = self  # type: ignore[method-assign, assignment]

    def __call__(self, work, mode="write"):  # type: ignore[no-untyped-def]
        self.count += 1
        if self.count == self._batch:
            self._mortal.kill()
            if self._back_after is not None:
                self.back = Timer(self._back_after, self._mortal.start, [False])
                self.back.start()
        return self._real(work, mode)


@long
def test_a_server_that_is_killed_in_the_middle_and_comes_back_has_every_row_once(
    mortal: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_store, "BATCH", 50)
    own = at(mortal.url(mortal.database()), patience=60.0)
    dying = DyingAt(own, mortal, 5, back_after=1.0)
    own.record(a_record(), some_timings(1000), {"d": TEMPLATE})
    dying.back.join()
    found = own.timings(a_record().id)
    assert sorted(t.key for t in found) == sorted(t.key for t in some_timings(1000))
    own.close()


@long
def test_a_run_that_ends_while_the_server_starts_again_is_stored(
    mortal: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = mortal.url(mortal.database())
    mortal.kill()
    back = Timer(1.0, mortal.start, [False])
    back.start()
    (said,) = keep(url, monkeypatch)
    back.join()
    assert said.startswith("3 timings in postgresql://")
    assert said.endswith("3 of them new")


@long
def test_what_was_not_written_when_the_server_was_killed_is_put_in_later(
    mortal: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_store, "BATCH", 50)
    url = mortal.url(mortal.database())
    own = at(url, patience=1.0)
    DyingAt(own, mortal, 5, back_after=None)
    with pytest.raises(BadInput, match="the library cannot be used") as caught:
        own.record(a_record(), some_timings(1000), {"d": TEMPLATE})
    assert "try again" in str(caught.value.hint)
    mortal.start()
    again = at(url)
    there = len(again.timings(a_record().id))
    assert 0 < there < 1000
    assert again.record(a_record(), some_timings(1000), {"d": TEMPLATE}) == 1000 - there
    again.close()


@long
def test_a_server_that_hangs_is_cut_off(mortal: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    name = mortal.database()
    own = at(mortal.url(name))
    own.add(an_entry())
    own._database._deadline = -4.0  # type: ignore[attr-defined]
    stopped, began = mortal.hang(name), time.monotonic()
    try:
        with pytest.raises(BadInput, match="the library cannot be used"):
            own.entries()
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert time.monotonic() - began < 30
    own.close()


# -- over the network -------------------------------------------------------------------------------------


@pytest.fixture
def networked() -> Iterator[Server]:
    found = networked_server()
    yield found
    found.stop()


@pytest.mark.long
def test_over_the_network_by_tls(networked: Server) -> None:
    """The server is who its certificate says, or nothing is sent to it."""
    database = networked.database(owner=GUARDED)
    library = at(networked.network_url(database, "verify-full"))
    library.add(an_entry())
    assert len(library.entries(print)) == 1
    with networked.connect(database) as connection:
        (users,) = connection.execute("SELECT count(*) FROM pg_stat_ssl WHERE ssl").fetchone()
    assert users >= 1
    stranger = refused(networked.network_url(database, "verify-full", root="other.crt"), PASSWORD)
    assert "certificate" in stranger.message
    assert "sslrootcert" in str(stranger.hint)
    open_line = refused(networked.network_url(database, "disable"), PASSWORD)
    assert "no encryption" in open_line.message
    assert open_line.hint == "see sslmode and sslrootcert in the URL"
    for mode in ("verify-full", "prefer"):
        unwelcome = refused(networked.network_url(database, mode, user=STRANGER), PASSWORD)
        assert unwelcome.hint == "ask who runs the server to let this role in from this host"


@pytest.mark.long
def test_over_the_network_a_server_that_comes_back_is_waited_for(networked: Server) -> None:
    database = networked.database(owner=GUARDED)
    library = at(networked.network_url(database, "verify-full"), patience=20.0)
    library.add(an_entry())
    networked.kill()
    back = Timer(1.0, networked.start, kwargs={"tied": False})
    back.start()
    try:
        assert len(library.entries(print)) == 1
    finally:
        back.join()
