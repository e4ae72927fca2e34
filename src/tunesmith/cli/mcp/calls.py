"""How tools are called: what they are given and in which words, what they answer, and errors as sentences."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, ParamSpec

import anyio.to_thread
import msgspec
from mcp.server.mcpserver import Context, ListRoots, Resolve
from mcp_types import CallToolResult, ListRootsResult, TextContent
from pydantic import Field

from tunesmith.cli.mcp.answers import foreign
from tunesmith.cli.mcp.folders import ClientFolders
from tunesmith.errors import TunesmithError, bug_text
from tunesmith.problem.codec import encode
from tunesmith.session.problems import readable_folders

MOST_WAIT = 3600.0
_P = ParamSpec("_P")


def ask_roots(context: Context) -> ListRoots | None:
    """The client's folders, asked for again with every call: they may change."""
    can_say = context.client_capabilities
    return ListRoots() if can_say is not None and can_say.roots is not None else None


Roots = Annotated[ListRootsResult | None, Resolve(ask_roots)]
ProblemPath = Annotated[str, Field(description="problem.toml or its folder; relative: from the first root")]
RunPath = Annotated[str, Field(description="the folder of a run")]
TemplatePath = Annotated[str | None, Field(description="a template file of the kernel")]
DeviceWish = Annotated[str | None, Field(description="id or part of the name; by default the first")]
Wait = Annotated[float, Field(ge=0, le=MOST_WAIT, description="seconds; then a handle is returned")]
Handle = Annotated[str, Field(description="as tune, check, profile, compare, resume or reply returned it")]


def refusal(message: str, hint: str | None = None) -> CallToolResult:
    """An error of the tool: the rule and the value, then the next step."""
    words = f"{message}\nnext: {hint}" if hint else message
    return CallToolResult(content=[TextContent(type="text", text=foreign(words))], is_error=True)


def answer(value: object, lines: Sequence[str], failed: bool = False) -> CallToolResult:
    text = "\n".join(lines)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=msgspec.json.decode(encode(value)),
        is_error=failed,
    )


def told(function: Callable[_P, Awaitable[CallToolResult]]) -> Callable[_P, Awaitable[CallToolResult]]:
    """Errors as sentences; a traceback is for nobody."""

    @functools.wraps(function)
    async def call(*given: _P.args, **named: _P.kwargs) -> CallToolResult:
        try:
            return await function(*given, **named)
        except TunesmithError as error:
            return refusal(str(error), error.hint)
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            return refusal(f"{name}{error.strerror or error}", "name another path")
        except Exception as error:
            return refusal(f"a bug in Tunesmith: {bug_text(error)}", "please report it")

    return call


async def in_thread(folders: ClientFolders, call: Callable[[], Any]) -> Any:
    with readable_folders(folders.folders, only=True):
        return await anyio.to_thread.run_sync(call)
