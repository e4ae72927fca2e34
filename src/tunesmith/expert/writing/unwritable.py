"""Why a draft cannot be written as a template, in words."""

from __future__ import annotations


class Unwritable(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
