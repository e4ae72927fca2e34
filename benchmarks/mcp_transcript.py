"""The transcript in docs/mcp.md: an agent brings an OpenCL kernel and leaves with a verified one.

    python -m benchmarks.mcp_transcript          writes it between the marks of the page

The agent is the SDK's own client and a fixed script; the server is `tunesmith mcp` in a process of its own.
Needs the extras `mcp` and `opencl`, and a few minutes.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import ListRootsResult, Root

PAGE = Path(__file__).parents[1] / "docs" / "mcp.md"
BEGIN, END = "<!-- transcript -->", "<!-- end of the transcript -->"
EXAMPLE = Path(__file__).parents[1] / "examples" / "opencl" / "transpose"
MOST_LINES = 2  # of an answer


class Transcript:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.lines: list[str] = []

    def called(self, tool: str, arguments: dict[str, Any], text: str, most: int = MOST_LINES) -> None:
        given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        given, text = (t.replace(f"{self.root}/", "").replace(str(self.root), ".") for t in (given, text))
        shown = text.splitlines()
        left = len(shown) - most
        shown = [*shown[:most], f"… {left} more lines"] if left > 1 else shown
        self.lines += [f"> {tool}({given})", *(line[:118].rstrip() for line in shown), ""]


async def drive(root: Path) -> Transcript:
    """Calls as an agent makes them; in between it edits files in its own folder."""
    said = Transcript(root)

    async def folders(_context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=root.as_uri())])

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "tunesmith", "mcp"], cwd=root, env=dict(os.environ)
    )
    async with Client(server, list_roots_callback=folders) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            found = await client.call_tool(tool, arguments)
            said.called(tool, arguments, found.content[0].text)
            value: dict[str, Any] = found.structured_content or {}
            return value

        await call("inspect", path="transpose.cl")
        await call("draft", kernel="transpose.cl", folder="problem")
        fill_in(root / "problem")
        said.lines += ["(the agent fills in problem/problem.toml and problem/reference.py)", ""]
        await call("check", problem="/etc")
        await call("check", problem="problem")
        job = await call("tune", problem="problem", evals=60, rounds=2, seed=1)
        while job["state"] == "running":
            found = await client.call_tool("wait", {"handle": job["handle"], "seconds": 600})
            job = found.structured_content or {}
        said.called("wait", {"handle": job["handle"], "seconds": 600}, found.content[0].text, most=9)
        await call("export", run=job["run"]["run"], to="opencl", out="exported")
    return said


def fill_in(folder: Path) -> None:
    """What only the owner of the kernel knows, as the example has it."""
    text = (EXAMPLE / "problem.toml").read_text()
    (folder / "problem.toml").write_text(text.replace("kernel.cl", "transpose.cl"))
    (folder / "reference.py").write_text((EXAMPLE / "reference.py").read_text())


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        (root / "transpose.cl").write_text((EXAMPLE / "kernel.cl").read_text())
        said = anyio.run(drive, root)
    place = f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, PoCL; shortened"
    made = f"Made by `python -m benchmarks.mcp_transcript` ({place}):"
    text = "\n".join([BEGIN, "", made, "", "```", *said.lines[:-1], "```", "", END])
    page = PAGE.read_text(encoding="utf-8")
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    PAGE.write_text(between.sub(lambda _: text, page), encoding="utf-8")


if __name__ == "__main__":
    main()
