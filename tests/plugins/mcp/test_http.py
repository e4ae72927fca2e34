"""HTTP on loopback: the token, the host and the origin; then as on stdio."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tests.plugins.mcp.agents import Agent, talk
from tests.running import environment, tunesmith
from tests.wording import says
from tunesmith.base.errors import BadInput
from tunesmith.plugins.mcp.commands import serve_agents, token_of

httpx = pytest.importorskip("httpx2")
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

TOKEN = "f" * 40


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    tiny.fake(tmp_path / "tiny")
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    command = [sys.executable, "-m", "tunesmith", "mcp", "--http", "--token-file", str(token)]
    server = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    assert TOKEN not in line
    yield line.split()[-1]
    server.terminate()
    server.wait(30)
    server.stdout.close()


def status(address: str, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **named}
    request = urllib.request.Request(address, b"{}", named)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_token_opens_it_and_nothing_else_does(address: str, tmp_path: Path) -> None:
    known = f"Bearer {TOKEN}"
    assert status(address) == 401
    assert status(address, Authorization="Bearer " + "e" * 40) == 401
    assert status(address, Authorization=TOKEN) == 401
    assert status(address, Authorization=known, Host="evil.example") == 421
    assert status(address, Authorization=known, Host="127.0.0.1:1") == 421
    assert status(address, Authorization=known, Origin="http://evil.example") == 403
    assert status(address, Authorization=known, Origin="http://localhost:1") == 403
    assert status(address, Authorization=known) == 400, "let in, and told that this is no message"
    port = int(address.rpartition(":")[2].partition("/")[0])
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex((own_address(), port)) != 0, "on loopback alone"

    async def script(agent: Agent) -> None:
        assert (await agent.call("inspect", path="tiny"))["kind"] == "problem"
        says(await agent.refused("inspect", path="/etc"), "only the folders")

    for mode in ("auto", "legacy"):
        client = httpx.AsyncClient(headers={"Authorization": known})
        talk(streamable_http_client(address, http_client=client), [tmp_path / ""], script, mode)


def own_address() -> str:
    """Of this machine on some network; where there is none, one that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            found = str(probe.getsockname()[0])
        except OSError:
            found = "192.0.2.1"
    return found if not found.startswith("127.") else "192.0.2.1"


def test_a_token_that_others_can_read_or_guess_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with pytest.raises(BadInput, match="cannot be read"):
        token_of(token)
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o644)
    with pytest.raises(BadInput, match="can be read by others"):
        token_of(token)
    token.chmod(0o600)
    assert token_of(token) == TOKEN
    token.write_text("short")
    with pytest.raises(BadInput, match=r"at least 32 .* got 5 characters"):
        token_of(token)
    assert token_of(None) != token_of(None), "a new one each time"
    with pytest.raises(BadInput, match="--root names a folder"):
        serve_agents([tmp_path / "none"], [], None, False)


@pytest.mark.parametrize("option", ["--port", "--token-file"])
def test_what_only_http_has_is_refused_on_stdio(option: str) -> None:
    ended = tunesmith(Path(), "mcp", option, "1")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {option} goes with --http: on stdio there is neither\nhint: add --http\n"
