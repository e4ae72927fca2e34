"""Who may ask the server what: by the host it is called by, the page that asks, and the token."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.base.errors import BadInput

TOKEN = "token"
OPEN_IT = "open the address that `tunesmith watch` has printed, with its token"


@dataclass(frozen=True)
class AccessPolicy:
    port: int
    token: str

    @staticmethod
    def new(port: int) -> AccessPolicy:
        return AccessPolicy(port, secrets.token_urlsafe(24))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of this machine's loopback: whoever makes another name lead here calls us by that."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}"

    def is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(errors="replace"), self.token.encode())

    def refusal(self, method: str, headers: Mapping[str, str], token: str) -> str | None:
        """Why it is not answered; names of headers in small letters. What is written has its token in its
        body, so `token` is only asked for where something is read."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return f"this server is called {self.hosts[0]}"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "another page asks: only the server's own may"
        site = headers.get("sec-fetch-site", "none")
        visits = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        is_whole = headers.get("sec-fetch-dest", "document") == "document"
        if site not in ("none", "same-origin") and not (visits and is_whole):
            return "another page asks: only the server's own may"
        if method == "POST":
            return None if origin is not None else "what is asked of a run comes from the server's own page"
        if method not in ("GET", "HEAD"):
            return f"{method} is nothing that this server does"
        return None if self.is_token(token) else OPEN_IT


# Where our servers listen: on the loopback, and nowhere else.
HOST = "127.0.0.1"


def open_listener(port: int) -> socket.socket:
    """On that port, or for 0 on any that is free; whoever is told the address can call at once."""
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((HOST, port))
        own.listen(64)
    except OSError as error:
        own.close()
        fault = f"port {port} of {HOST} cannot be had: {error.strerror}"
        raise BadInput(fault, hint="choose another with --port, or none for any that is free") from error
    return own
