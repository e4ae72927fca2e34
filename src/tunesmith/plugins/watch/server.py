"""The server itself: what is asked is refused, or answered from the runs folder, and from nothing else."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import os
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request as WebRequest
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tunesmith.base.codec import encode_json
from tunesmith.base.errors import TunesmithError
from tunesmith.base.files import is_locked
from tunesmith.base.text import escape_html, html_element
from tunesmith.deliver.pages.page import content_security_policy, report_page
from tunesmith.plugins.watch.following import FollowedRun, ProcessorShare, RunFilter, RunsBelow
from tunesmith.plugins.watch.guard import TOKEN, AccessPolicy, open_listener
from tunesmith.plugins.watch.pages import (
    comparison_page,
    index_page,
    live_fields,
    live_part,
    run_url,
    watch_script,
    watch_style,
    whole_page,
)
from tunesmith.run.events import InstructionKind
from tunesmith.run.folder import (
    FLEET,
    LOCK,
    LONGEST_HINT,
    MAX_WAITING,
    PLAN,
    FolderInbox,
    RunFolder,
    has_begun,
)

POLL = 1.0  # seconds between two looks at a journal that somebody follows,
MAX_POLLS = 4  # or so many times as long while the server has taken more than it may
LEAST_LOOK = 0.002  # seconds of a processor that a look needs
BEAT = 15.0  # seconds after which a stream says that it is still there
LARGEST_BODY = 8 * LONGEST_HINT
MAX_STREAMS = 32
# What can be asked of a run, and what is answered.
_ANSWERS: dict[InstructionKind, str] = {
    "stop": "It stops after this batch.", "finish": "It finishes.", "hint": "It will look at that.",
}  # fmt: skip
T = TypeVar("T")


_HEADERS = {
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}  # fmt: skip


class Guarded:
    """Around the whole application: nothing is looked at that the door refuses, and no answer may be framed,
    stored, or read by another page."""

    def __init__(self, app: ASGIApp, door: AccessPolicy) -> None:
        self._app = app
        self._door = door
        self._policy = f"{content_security_policy(watch_style(), watch_script())}; frame-ancestors 'none'"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is nothing that this server does")
        headers = dict(Headers(scope=scope).items())
        asked = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        why = self._door.refusal(scope["method"], headers, (asked.get(TOKEN) or [""])[-1])

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update({**_HEADERS, "Content-Security-Policy": self._policy})
            await send(message)

        app = self._app if why is None else PlainTextResponse(f"refused: {why}\n", 403)
        await app(scope, receive, guarded)


@dataclass
class WatchServer:
    """What is asked about runs is read in one thread, one after another."""

    runs: RunsBelow
    door: AccessPolicy
    ending: Callable[[], bool] = lambda: False
    allowance: ProcessorShare = field(default_factory=ProcessorShare)
    _followed: dict[str, FollowedRun] = field(default_factory=dict)
    _streams: int = 0
    _reader: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, max_workers=1))

    def app(self) -> ASGIApp:
        routes = [
            Route("/", self.index),
            Route("/comparisons/{name:path}", self.comparison),
            Route("/runs/{name:path}/events", self.events),
            Route("/runs/{name:path}/instructions", self.instruct, methods=["POST"]),
            Route("/runs/{name:path}", self.run),
        ]
        return Guarded(Starlette(routes=routes), self.door)

    def close(self) -> None:
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def _read(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reader, call)

    async def index(self, request: WebRequest) -> Response:
        wanted = RunFilter(*(request.query_params.get(one.name, "") for one in fields(RunFilter)))

        def made() -> str:
            return index_page(self.runs.runs(), self.runs.comparisons(), wanted, self.door.token)

        return HTMLResponse(await self._read(made))

    async def comparison(self, request: WebRequest) -> Response:
        name = request.path_params["name"]

        def made() -> Response:
            text = self.runs.comparison_text(name)
            if text is None:
                return PlainTextResponse("there is no such comparison, or it says nothing yet\n", 404)
            pictures = self.runs.comparison_pictures(name)
            return HTMLResponse(comparison_page(name, text, pictures, self.door.token))

        return await self._read(made)

    async def run(self, request: WebRequest) -> Response:
        name = request.path_params["name"]
        said = "It is asked for." if request.query_params.get("said") else ""
        return await self._read(partial(self._render_run, name, said))

    def _render_run(self, name: str, said: str) -> Response:
        followed = self._follow(name)
        if followed is None:
            return PlainTextResponse("there is no such run here\n", 404)
        followed.pace.begin()
        try:
            seen = followed.look(self.allowance.seconds())
            if seen.is_behind and not seen.live:
                seen = followed.look()
            run = followed.report(seen)
            live = live_part(name, live_fields(seen), self.door.token, said)
            page = report_page(run.result, run.texts, live)
            followed.pace.end(costs_a_run=seen.live)
            return HTMLResponse(page)
        except TunesmithError as error:
            hint = [html_element("p", error.hint)] if error.hint else []
            fault = html_element("p", f"It cannot be read: {error.message}")
            return HTMLResponse(whole_page(name, [fault, *hint]), 500)

    def _follow(self, name: str) -> FollowedRun | None:
        path = self.runs.run(name)
        if path is None:
            self._followed.pop(name, None)
            return None
        return self._followed.setdefault(name, FollowedRun(path))

    async def events(self, request: WebRequest) -> Response:
        followed = await self._read(partial(self._follow, request.path_params["name"]))
        if followed is None:
            return PlainTextResponse("there is no such run here\n", 404)
        if self._streams >= MAX_STREAMS:
            return PlainTextResponse("too many follow runs here already\n", 503)
        return StreamingResponse(self._stream(followed), media_type="text/event-stream")

    async def _stream(self, followed: FollowedRun) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            before, quiet = None, 0.0
            while not self.ending():
                seen = await self._read(partial(followed.look, self.allowance.seconds()))
                if not seen.live or seen.fault:  # with its last event a run still writes its results
                    yield _encode_event("ended", encode_json(live_fields(seen)))
                    return
                told = seen.state.events, seen.live, seen.waiting  # not that time goes by
                if told != before:
                    before, quiet = told, 0.0
                    yield _encode_event("standing", encode_json(live_fields(seen)))
                elif quiet >= BEAT:
                    quiet = 0.0
                    yield b": still there\n\n"
                if followed.report_is_due and not seen.ended:
                    yield _encode_event("report", b"{}")
                    await asyncio.sleep(POLL)
                quiet += await self._wait_for_allowance()
        finally:
            self._streams -= 1

    async def _wait_for_allowance(self) -> float:
        """Until there is something to look with; the seconds that this took, about."""
        waited = 0.0
        while waited < MAX_POLLS * POLL:
            await asyncio.sleep(POLL)
            waited += POLL
            if self.allowance.seconds() >= LEAST_LOOK:
                break
        return waited

    async def instruct(self, request: WebRequest) -> Response:
        form = await _read_form(request)
        if form is None or not self.door.is_token(form.get(TOKEN, "")):
            return PlainTextResponse("refused: nothing is written without the token\n", 403)
        name, what = request.path_params["name"], next((w for w in _ANSWERS if w == form.get("what")), None)
        path = await self._read(partial(self.runs.run, name))
        if path is None or what is None:
            return PlainTextResponse("there is no such run here, or nothing that it can be asked\n", 404)
        said = await self._read(partial(_put_instruction, path, what, form.get("text", "")))
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(f"{run_url(name, self.door.token)}&said=1", 303)
        return PlainTextResponse(said)


def _encode_event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


async def _read_form(request: WebRequest) -> dict[str, str] | None:
    """None: it is no form, or too long."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return None
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            return None
    found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=8)
    return {name: values[-1] for name, values in found.items()}


def _put_instruction(path: Path, what: InstructionKind, text: str) -> str:
    if not is_locked(path / LOCK):
        return "nobody is at work on this run: resume it first"
    inbox = FolderInbox(path)
    if len(inbox.waiting()) >= MAX_WAITING:
        return "too much was asked of this run already: wait until it is taken up"
    try:
        inbox.put(what, text if what == "hint" else "")
    except OSError as error:
        return f"it cannot be written: {error.strerror}"
    return _ANSWERS[what]


async def _wait_for_end(server: uvicorn.Server) -> None:
    """Instead of uvicorn's own ten looks a second, which cost more than all that is told."""
    await run_in_threadpool(gc.collect)  # loads what streams need, which takes as long as many pages
    gc.freeze()  # what is loaded stays: it is not looked through again whenever a state has grown
    gc.set_threshold(20_000, 50, 50)  # events are made to stay: hardly anything of them is ever found
    tick = 0
    while not await server.on_tick(tick):  # at every tenth tick it writes the date anew
        tick = (tick + 5) % 10
        await asyncio.sleep(0.5)


def serve_runs(runs: RunsBelow, first: str, port: int, told: Callable[[str], None]) -> None:
    """Until it is interrupted. `first`: the run to begin with, empty: the index. `told` gets the address."""
    own = open_listener(port)
    door = AccessPolicy.new(own.getsockname()[1])
    watching = WatchServer(runs, door)
    settings = uvicorn.Config(watching.app(), log_config=None, access_log=False, lifespan="off", ws="none")
    settings.server_header, settings.timeout_graceful_shutdown = False, 1
    server = uvicorn.Server(settings)
    server.main_loop = partial(_wait_for_end, server)
    watching.ending = lambda: server.should_exit
    told(f"{door.address}{run_url(first, door.token) if first else f'/?{TOKEN}={door.token}'}")
    try:
        server.run(sockets=[own])
    finally:
        watching.close()
        own.close()


# What `tunesmith watch` serves, by what it is called with.
NICENESS = 10  # a run has the processor before those who watch it


def watch_runs(root: Path, run: Path | None, port: int, told: Callable[[str], None]) -> None:
    """Serve what is below the runs folder until Ctrl-C; a run that lies elsewhere, alone."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    runs, first = resolve_served(root, run)
    try:
        serve_runs(runs, first, port, told)
    except KeyboardInterrupt:
        return  # how a server ends


def resolve_served(root: Path, run: Path | None) -> tuple[RunsBelow, str]:
    """The runs, and which of them to begin with; empty: the index."""
    if run is None:
        return RunsBelow(root.resolve()), ""
    path = run.resolve()
    has_several = _has_several(path) and not has_begun(path)
    if not has_several:
        RunFolder.open(path)  # a fault in words where it is none
    below = root.resolve()
    if path.is_relative_to(below) and path != below:
        name, only = path.relative_to(below).as_posix(), ""
    else:
        within = path.parent.name == "runs" and _has_several(path.parents[1])
        below = path.parents[2] if within else path.parent
        name = only = path.relative_to(below).as_posix()
    return RunsBelow(below, only), "" if has_several else name


def _has_several(folder: Path) -> bool:
    """A comparison's, or a fleet's."""
    return (folder / PLAN).is_file() or (folder / FLEET).is_file()


def open_browser(address: str) -> None:
    """By a file that only this user can read: what a process is called with all users can. Where there is no
    browser, the address is on the screen."""
    folder = tempfile.TemporaryDirectory(prefix="tunesmith-watch-")
    atexit.register(folder.cleanup)
    page = Path(folder.name) / "open.html"
    page.write_text(f'<meta http-equiv="refresh" content="0; url={escape_html(address)}">', encoding="utf-8")
    webbrowser.open(page.as_uri())
