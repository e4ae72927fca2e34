"""What a message for people says, without how it says it."""

from __future__ import annotations

import re


def says(text: object, *parts: str) -> None:
    """Asserts that one line of a text, or one item of a list, has all the parts, in this order and each as
    whole words: `8` is not in `18` or `8.5`."""
    assert all(parts), "a part must say something"
    pattern = re.compile(".*?".join(map(_whole, parts)), re.DOTALL)
    lines = text if isinstance(text, list | tuple) else str(text).splitlines()
    assert any(pattern.search(str(line)) for line in lines), f"no line says {parts}:\n{text}"


def _whole(part: str) -> str:
    before = r"(?<!\w)(?<!\d\.)" if re.match(r"\w", part) else ""
    after = r"(?!\w)(?!\.\d)" if re.match(r"\w", part[-1]) else ""
    return before + re.escape(part) + after
