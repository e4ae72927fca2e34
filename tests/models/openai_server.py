"""A server that speaks OpenAI's protocol over real HTTP, and misbehaves as it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What is sent back. `hangs`: nothing, until the server ends. `drops`: the connection breaks half-way."""

    text: str = ""
    status: int = 200
    body: bytes | None = None  # instead of a proper one
    headers: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"
    usage: tuple[int, int] | None = (11, 7)
    hangs: bool = False
    drops: bool = False

    def payload(self) -> bytes:
        if self.body is not None:
            return self.body
        if self.status != 200:
            return json.dumps({"error": {"message": self.text, "type": "error", "code": None}}).encode()
        message = {"role": "assistant", "content": self.text}
        reply: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1700000000,
            "model": "test-model",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
        }
        if self.usage:
            sent, received = self.usage
            reply["usage"] = {
                "prompt_tokens": sent,
                "completion_tokens": received,
                "total_tokens": sent + received,
            }
        return json.dumps(reply).encode()


@dataclass
class Server:
    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[dict[str, Any]], Answer]) -> Iterator[Server]:
    """`answer` is given each request's JSON."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append(asked)
            server.keys.append(self.headers.get("Authorization", ""))
            found = answer(asked)
            if found.hangs:
                ended.wait(30)
                return
            body = found.payload()
            self.send_response(found.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in found.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if found.drops else body)
            self.close_connection = found.drops

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
