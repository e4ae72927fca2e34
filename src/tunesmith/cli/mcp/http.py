"""HTTP on loopback: who does not know the token is refused, and so is a request for another host or from
another origin."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from tunesmith.session.loopback import HOST, listen

PATH = "/mcp"
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class TokenGuard:
    """Before everything else: no request without the token is looked at."""

    app: Callable[[Scope, Receive, Send], Awaitable[None]]
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_known(scope):
            await self.app(scope, receive, send)
            return
        text = b"the token is missing or wrong: send the header Authorization: Bearer TOKEN\n"
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    def _is_known(self, scope: Scope) -> bool:
        given = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        wanted = f"Bearer {self.token}".encode()
        return len(given) == 1 and hmac.compare_digest(given[0], wanted)


def application(server: Any, port: int, token: str) -> TokenGuard:
    """For exactly this address; pages of other origins are refused even if they know the token."""
    names = (f"{HOST}:{port}", f"localhost:{port}")
    checks = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=list(names),
        allowed_origins=[f"http://{name}" for name in names],
    )
    return TokenGuard(server.streamable_http_app(streamable_http_path=PATH, transport_security=checks), token)


def serve_http(server: Any, port: int, token: str, tell: Callable[[str], None]) -> None:
    """On a port of loopback, by default a free one, until it is interrupted."""
    with listen(port) as listening:
        own = listening.getsockname()[1]
        tell(f"http://{HOST}:{own}{PATH}")
        config = uvicorn.Config(
            application(server, own, token), log_level="warning", access_log=False, lifespan="on"
        )
        anyio.run(uvicorn.Server(config).serve, [listening])
