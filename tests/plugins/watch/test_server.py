"""The server: what it answers, what it refuses, and a run that is followed, told things, and read."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

import pytest

from tests.end_to_end import tiny
from tests.end_to_end.killing import simulated
from tests.frameworks import need
from tests.running import Begun, journal, start, tunesmith, wait_for_events
from tunesmith.base.errors import BadInput
from tunesmith.plugins.watch import following, guard
from tunesmith.plugins.watch.following import RunsBelow
from tunesmith.plugins.watch.guard import AccessPolicy
from tunesmith.plugins.watch.server import open_browser, resolve_served
from tunesmith.run.candidates import Templates
from tunesmith.run.folder import RunFolder
from tunesmith.run.state import State
from tunesmith.session.result import Run, as_it_stands, run_of

need("starlette")
need("uvicorn")
testclient = need("starlette.testclient")
server = need("tunesmith.plugins.watch.server")

DOOR = AccessPolicy(4321, "s3cret")
OWN = {"origin": DOOR.address}
TOKEN = {"token": DOOR.token}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a finished run of the simulated device."""
    folder = tmp_path_factory.mktemp("watched")
    problem = tiny.fake(folder / "tiny")
    ended = tunesmith(folder, "tune", problem, "--template", problem / "template.fake")
    assert ended.code == 0, ended.err
    return folder / "tunesmith-runs"


@pytest.fixture
def client(root: Path) -> Iterator[Any]:
    yield from clients(root)


def clients(root: Path) -> Iterator[Any]:
    with closing(server.WatchServer(RunsBelow(root), DOOR)) as watching:
        yield testclient.TestClient(watching.app(), base_url=DOOR.address, follow_redirects=False)


def test_the_index_and_the_page_of_a_run(client: Any) -> None:
    index = client.get("/", params=TOKEN)
    assert index.status_code == 200
    assert "tiny-1" in index.text
    page = client.get("/runs/tiny-1", params=TOKEN)
    assert page.status_code == 200
    assert "What was verified" in page.text
    assert "finished" in page.text
    assert "<form" not in page.text, "nothing can be asked of a run that has ended"


def test_every_answer_is_for_its_own_page_alone(client: Any) -> None:
    for path, params in (("/", TOKEN), ("/", {}), ("/nothing", TOKEN), ("/runs/tiny-1", TOKEN)):
        headers = client.get(path, params=params).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/runs/tiny-1", "/runs/tiny-1/events", "/comparisons/x", "/nothing"])
def test_nothing_is_read_without_the_token_or_by_another_page(client: Any, path: str) -> None:
    refused = [
        client.get(path),
        client.get(path, params={"token": "wrong"}),
        client.get(path, params=TOKEN, headers={"host": "evil.example"}),
        client.get(path, params=TOKEN, headers={"origin": "http://evil.example"}),
        client.get(path, params=TOKEN, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}),
        client.options(path, params=TOKEN, headers={"origin": "http://evil.example"}),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert all(DOOR.token not in answer.text for answer in refused)


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../tiny/problem.toml",
        "/runs/%2e%2e/tiny",
        "/runs/tiny-1/journal.jsonl",
        "/runs/tiny-1/report.md",
        "/runs//etc/passwd",
        "/comparisons/../tiny-1",
        "/comparisons/tiny-1",
        "/report.html",
    ],
)
def test_nothing_else_is_served(client: Any, path: str) -> None:
    assert client.get(path, params=TOKEN).status_code == 404


def asked(client: Any, headers: dict[str, str] = OWN, name: str = "tiny-1", **form: str) -> Any:
    return client.post(f"/runs/{name}/instructions", data=form, headers=headers)


def test_nothing_is_written_without_the_token_or_by_another_page(root: Path, client: Any) -> None:
    evil = {"origin": "http://evil.example"}
    refused = [
        asked(client, what="stop"),
        asked(client, what="stop", token="wrong"),
        asked(client, {}, what="stop", token=DOOR.token),
        asked(client, evil, what="stop", token=DOOR.token),
        asked(client, {**OWN, "sec-fetch-site": "same-site"}, what="stop", token=DOOR.token),
        client.post("/runs/tiny-1/instructions", json={"what": "stop", **TOKEN}, headers=OWN),
        client.post("/runs/tiny-1/instructions", params={"what": "stop", **TOKEN}, headers=OWN),
        asked(client, what="hint", text="x" * 100_000, token=DOOR.token),
        client.get("/runs/tiny-1/instructions", params={"what": "stop", **TOKEN}),
    ]
    assert [answer.status_code for answer in refused] == [403] * 8 + [404]
    assert not (root / "tiny-1" / "inbox").exists()


def test_a_run_that_nobody_works_on_is_asked_nothing(root: Path, client: Any) -> None:
    answer = asked(client, what="finish", token=DOOR.token)
    assert "nobody is at work" in answer.text
    assert not (root / "tiny-1" / "inbox").exists()
    assert asked(client, what="erase", token=DOOR.token).status_code == 404
    assert asked(client, name="other", what="stop", token=DOOR.token).status_code == 404


def test_without_a_script_the_page_is_loaded_again(root: Path, client: Any) -> None:
    answer = asked(client, {**OWN, "accept": "text/html"}, what="stop", token=DOOR.token)
    assert answer.status_code == 303
    assert client.get(answer.headers["location"]).status_code == 200


def test_the_stream_of_a_run_that_is_over_says_so_and_ends(client: Any) -> None:
    answer = client.get("/runs/tiny-1/events", params=TOKEN)
    assert answer.headers["content-type"].startswith("text/event-stream")
    name, data = answer.text.strip().split("\n")
    assert name == "event: ended"
    told = json.loads(data.removeprefix("data: "))
    assert (told["status"], told["live"]) == ("finished", False)
    assert told["phase"].startswith("ended")


def test_a_damaged_run_is_told_of_in_words(root: Path, client: Any) -> None:
    bad = root / "bad"
    bad.mkdir()
    (bad / "journal.jsonl").write_bytes(b'{"<script>alert(1)</script>": 1}\n')
    try:
        page = client.get("/runs/bad", params=TOKEN)
        assert page.status_code == 500
        assert "cannot be read" in page.text
        assert "<script>alert" not in page.text
        assert "unreadable" in client.get("/", params=TOKEN).text
    finally:
        (bad / "journal.jsonl").unlink()
        bad.rmdir()


async def followed(watching: Any, path: Path) -> list[tuple[str, dict[str, Any]]]:
    """What a stream tells until it ends."""
    run, found = server.FollowedRun(path), []
    async for part in watching._stream(run):
        if part.startswith(b"event"):
            head, data = part.decode().strip().split("\n")
            found.append((head.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_live_run_is_followed_told_things_stopped_resumed_and_read(tmp_path: Path) -> None:
    (tmp_path / "tunesmith-runs").mkdir()
    command = [*simulated(tmp_path)]
    command[command.index("run")] = "tunesmith-runs/run"
    path = tmp_path / "tunesmith-runs" / "run"
    process = Begun(tmp_path, *command)
    wait_for_events(path, 4, process)
    for client in clients(path.parent):
        page = client.get("/runs/run", params=TOKEN).text
        assert ">live<" in page
        assert 'value="stop"' in page
        assert "live" in client.get("/", params=TOKEN).text
        bad = asked(client, name="run", what="hint", text="<script>alert(1)</script>", token=DOOR.token)
        assert (bad.status_code, bad.text) == (200, "It will look at that.")
        assert asked(client, name="run", what="stop", token=DOOR.token).text == "It stops after this batch."
        with closing(server.WatchServer(RunsBelow(path.parent), DOOR)) as watching:
            told = asyncio.run(followed(watching, path))
        ended = process.end(timeout=60)
        assert ended.code == 130, ended.err
        assert "stopped by whoever watches; nothing is lost" in ended.err
        assert told[-1][0] == "ended"
        assert (told[-1][1]["status"], told[-1][1]["live"]) == ("stopped", False)
        instructed = [line["event"] for line in journal(path) if line["type"] == "Instructed"]
        assert "stop" in [event["what"] for event in instructed]
        assert journal(path)[-1]["type"] != "Stopped"
        page = client.get("/runs/run", params=TOKEN).text
        assert ">stopped<" in page
        assert "not finished, after" in page, "the report is that of the run that has stopped"
        assert "<script>alert" not in page
        resumed = tunesmith(tmp_path, "resume", path)
        assert resumed.code == 0, resumed.err
        assert "What was verified" in client.get("/runs/run", params=TOKEN).text
        assert tunesmith(tmp_path, "verify", path).code == 0


def test_a_report_of_a_live_run_is_the_same_read_bit_by_bit(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_bits: list[int] = []

    def counted(folder: RunFolder, templates: Templates, state: State) -> Run:
        by_bits.append(state.events)
        return run_of(folder, templates, state)

    monkeypatch.setattr(following, "run_of", counted)
    lines = (root / "tiny-1" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    shutil.copytree(root / "tiny-1", tmp_path / "run")
    (tmp_path / "run" / "certificate.json").unlink()
    run, clock = RunFolder(tmp_path / "run"), itertools.count(0, 1000)
    run.lock()
    bit_by_bit = server.FollowedRun(run.path, clock=lambda: float(next(clock)))
    counts = (1, 3, 5, len(lines) // 2, len(lines) - 1, len(lines))
    for count in counts:
        (run.path / "journal.jsonl").write_bytes(b"".join(lines[:count]))
        found, whole = bit_by_bit.report(bit_by_bit.look()), as_it_stands(run)
        assert replace(found.result, seconds=0.0) == replace(whole.result, seconds=0.0)
        assert found.texts == whole.texts
    assert by_bits == list(counts[:-1]), "of all but the last, which is read as a whole"
    run.unlock()
    changed = lines[3].replace(b'"at":', b'"at": ', 1)
    (run.path / "journal.jsonl").write_bytes(b"".join([*lines[:3], changed, *lines[4:6]]))
    run.lock()
    changed_run = server.FollowedRun(run.path)
    broken = changed_run.report(changed_run.look()).result.unproven
    run.unlock()
    assert "the journal was changed at line 4" in broken


def test_what_is_served_by_what_is_named(root: Path, tmp_path: Path) -> None:
    runs, first = resolve_served(root, None)
    assert (runs.root, first, len(runs.runs())) == (root.resolve(), "", 1)
    assert resolve_served(root, root / "tiny-1")[1] == "tiny-1"
    alone, first = resolve_served(tmp_path, root / "tiny-1")
    assert (first, [run.name for run in alone.runs()]) == ("tiny-1", ["tiny-1"])
    with pytest.raises(BadInput, match="no journal"):
        resolve_served(root, tmp_path)


def test_a_port_that_is_taken_is_told_of() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadInput, match="cannot be had"):
            guard.open_listener(taken.getsockname()[1])


def test_a_browser_gets_the_address_in_a_file_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    open_browser("http://127.0.0.1:1/?token=s3cret&x=1")
    page = Path(unquote(urlsplit(opened[0]).path))
    assert "s3cret" not in opened[0]
    assert "url=http://127.0.0.1:1/?token=s3cret&amp;x=1" in page.read_text()
    assert page.parent.stat().st_mode & 0o077 == 0


@pytest.mark.slow
@pytest.mark.long
def test_the_command_prints_an_address_serves_it_and_ends_by_ctrl_c(root: Path) -> None:
    process = start(root.parent, "watch", "tunesmith-runs/tiny-1")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address, timeout=60) as answer:
            assert b"What was verified" in answer.read()
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert RunFolder.open(root / "tiny-1").held_for() is None
