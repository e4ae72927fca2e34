"""Requests to try models with."""

from __future__ import annotations

from typing import Any

from tunesmith.run.events import Message, Request

SAID = (Message("system", "You plan."), Message("user", "What next?\n~~~~~\nkernel text\n~~~~~"))


def request(number: int = 1, **changes: Any) -> Request:
    fields: dict[str, Any] = {"role": "planner", "messages": SAID, "expects": "json", "example": '{"a": 1}'}
    return Request(number, **(fields | changes))
