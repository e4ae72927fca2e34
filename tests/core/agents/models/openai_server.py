"""A server that speaks OpenAI's protocol, or Anthropic's, over real HTTP, and misbehaves as it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.core.agents.models.frames import anthropic_frames, openai_frames

STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


@dataclass(frozen=True)
class Answer:
    """What is sent back. `hangs`: nothing, until the server ends. `drops`: the connection breaks half-way.
    `frames`: these pieces of a stream, a number being seconds of silence; `cut` without its end."""

    text: str = ""
    status: int = 200
    body: bytes | None = None  # instead of a proper one
    headers: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"
    usage: tuple[int, int] | None = (11, 7)
    hangs: bool = False
    drops: bool = False
    frames: Iterable[bytes | float] | None = None
    cut: bool = False
    kind: str = "text/event-stream"

    def payload(self, path: str) -> bytes:
        if self.body is not None:
            return self.body
        if self.status != 200:
            fields = {"message": self.text, "type": "error"}
            if path.endswith("/messages"):
                return json.dumps({"type": "error", "error": fields}).encode()
            return json.dumps({"error": {**fields, "code": None}}).encode()
        pieces = [self.text[at : at + 20_000] for at in range(0, len(self.text), 20_000)]
        if path.endswith("/messages"):
            return b"".join(anthropic_frames(pieces, STOPS.get(self.finish, self.finish)))
        used: dict[str, int] | None = None
        if self.usage:
            sent, received = self.usage
            used = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
        return b"".join(openai_frames(pieces, self.finish, used))


@dataclass
class Server:
    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[dict[str, Any]], Answer]) -> Iterator[Server]:
    """`answer` is given each request's JSON."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append(asked)
            server.paths.append(self.path)
            server.keys.append(self.headers.get("Authorization", "") or self.headers.get("X-Api-Key", ""))
            found = answer(asked)
            self.close_connection = True
            with suppress(BrokenPipeError, ConnectionResetError):
                self._send(found)

        def _send(self, found: Answer) -> None:
            if found.hangs:
                ended.wait(30)
                return
            self.send_response(found.status)
            self.send_header("Content-Type", found.kind if found.status == 200 else "application/json")
            for name, value in found.headers:
                self.send_header(name, value)
            if found.frames is not None:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self._stream(found)
                return
            body = found.payload(self.path)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if found.drops else body)

        def _stream(self, found: Answer) -> None:
            for frame in found.frames or ():
                if isinstance(frame, float):
                    ended.wait(frame)
                elif frame:
                    self.wfile.write(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
                    self.wfile.flush()
                if ended.is_set():
                    return
            if not found.cut:
                self.wfile.write(b"0\r\n\r\n")

        def do_GET(self) -> None:
            server.paths.append(self.path)
            server.keys.append(self.headers.get("Authorization", "") or self.headers.get("X-Api-Key", ""))
            self.send_error(405)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = Server(f"http://127.0.0.1:{http.server_port}/v1")
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        ended.set()
        http.shutdown()
        http.server_close()
