"""The SDK's own client, as an agent uses it: calls that are answered, calls that are refused."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fewer_calls import IN_A_PROCESS
from tests.running import environment

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed: pip install -e '.[mcp]'")

from mcp_types import ListRootsResult, Root  # noqa: E402

from tunesmith.plugins.mcp.jobs import Jobs  # noqa: E402
from tunesmith.plugins.mcp.server import make_server  # noqa: E402
from tunesmith.plugins.mcp.tools import ToolService  # noqa: E402

WORKER = ("-c", f"{IN_A_PROCESS}from tunesmith.plugins.mcp.jobs import run_job_worker\nrun_job_worker()\n")


@dataclass
class Agent:
    client: Any
    progress: list[str] = field(default_factory=list)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        async def note(_progress: float, _total: float | None, message: str | None) -> None:
            self.progress.append(message or "")

        found = await self.client.call_tool(tool, arguments, progress_callback=note)
        assert "Traceback" not in found.content[0].text
        return found

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        value: dict[str, Any] = (await self.called(tool, **arguments)).structured_content
        return value

    async def called(self, tool: str, **arguments: Any) -> Any:
        found = await self._call(tool, arguments)
        assert not found.is_error, found.content[0].text
        return found

    async def refused(self, tool: str, **arguments: Any) -> str:
        found = await self._call(tool, arguments)
        assert found.is_error, found.content[0].text
        return str(found.content[0].text)

    async def read(self, address: str) -> str:
        return str((await self.client.read_resource(address)).contents[0].text)


def desk_in(folder: Path, *bounds: Path) -> ToolService:
    """Of a server whose jobs keep their caches in the folder."""
    return ToolService(bounds, jobs=Jobs({**os.environ, **environment(folder)}, WORKER))


def talk(
    server: Any, roots: Sequence[Path] | None, script: Callable[[Agent], Awaitable[None]], mode: str = "auto"
) -> None:
    """`roots` None: a client that cannot say. In mode legacy it speaks the protocol of 2025."""

    async def named(_context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=root.as_uri()) for root in roots or ()])

    async def main() -> None:
        asks = {"list_roots_callback": named} if roots is not None else {}
        async with mcp.Client(server, mode=mode, **asks) as client:
            await script(Agent(client))

    anyio.run(main)


def serve(folder: Path, roots: Sequence[Path] | None, script: Callable[[Agent], Awaitable[None]],
          *bounds: Path, mode: str = "auto") -> None:  # fmt: skip
    """In this process."""
    desk = desk_in(folder, *bounds)
    try:
        talk(make_server(desk), roots, script, mode)
    finally:
        desk.jobs.close()
