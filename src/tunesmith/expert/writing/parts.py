"""C as text that lies in the files beside this one, with words in its places."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources


def part(file: str, name: str, **words: str) -> str:
    """A part of a file, with words in the places of @WORD@."""
    return re.sub(r"@([A-Z]+)@", lambda found: words[found.group(1)], _parts(file)[name])


@cache
def _parts(file: str) -> dict[str, str]:
    text = resources.files("tunesmith.expert.writing").joinpath(file).read_text(encoding="utf-8")
    return dict(one.split("\n", 1) for one in text.split("//= ")[1:])
