"""Replies as servers stream them, event by event: in OpenAI's protocol and in Anthropic's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def data(value: object) -> bytes:
    return f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode()


DONE = data("[DONE]")


def openai_chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    own = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "test-model",
    }
    return data({**own, "choices": choices, **more})


def openai_words(pieces: Sequence[str]) -> list[bytes]:
    return [openai_chunk({"role": "assistant"}), *(openai_chunk({"content": piece}) for piece in pieces)]


def openai_frames(pieces: Sequence[str], finish: str | None = "stop", usage: Any = None) -> list[bytes]:
    ends = [openai_chunk({}, finish)] if finish else []
    counted = [openai_chunk(None, usage=usage)] if usage is not None else []
    return [*openai_words(pieces), *ends, *counted, DONE]


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\n".encode() + data({"type": kind, **fields})


def anthropic_begun(pieces: Sequence[str], usage: Any = None, thoughts: Sequence[str] = ()) -> list[bytes]:
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "test-model"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None}
    message |= {"usage": {"input_tokens": 11, "output_tokens": 1} if usage is None else usage}
    found = [event("message_start", message=message), event("ping")]
    at = 0
    if thoughts:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        found.append(event("content_block_start", index=at, content_block=block))
        for thought in thoughts:
            delta = {"type": "thinking_delta", "thinking": thought}
            found.append(event("content_block_delta", index=at, delta=delta))
        found.append(event("content_block_stop", index=at))
        at += 1
    found.append(event("content_block_start", index=at, content_block={"type": "text", "text": ""}))
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return [*found, *(event("content_block_delta", index=at, delta=delta) for delta in deltas)]


def anthropic_frames(
    pieces: Sequence[str],
    stop: str | None = "end_turn",
    usage: Any = None,
    thoughts: Sequence[str] = (),
    begins: Any = None,
) -> list[bytes]:
    at = 1 if thoughts else 0
    used = {"output_tokens": 7} if usage is None else usage
    return [
        *anthropic_begun(pieces, begins, thoughts),
        event("content_block_stop", index=at),
        event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=used),
        event("message_stop"),
    ]
