"""What the runs of a comparison say together, as parts of a page: its `compare.md`, read again.

The file lies where others may have had a hand in it: whatever it holds becomes text, and of its pictures only
those that are handed over stand in the page, as images, in which nothing acts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tunesmith.deliver import page
from tunesmith.text import Inside, Markup, element, plain

MOST_ROWS = 2000  # of a table
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?:[\w.-]+/)*([\w.-]+)\)")
# No part of it reads past where it may begin anew: a hostile text takes as long as any of its length.
_INLINE = re.compile(r"`([^`]*)`|\\([!-/:-@\[-`{-~])|\[([^\[\]]{0,500})\]\(([^()]{0,500})\)|\*\*([^*]+)\*\*")
_RULE = re.compile(r":?-{3,}:?")
_BETWEEN = re.compile(r"(?<!\\)\|")


def comparison_parts(text: str, pictures: Mapping[str, bytes]) -> tuple[str, list[Markup]]:
    """The title, and a section for each of its headings. `pictures`: by the names of their files."""
    title, sections = "Comparison", list[tuple[str, list[str]]]()
    lines: list[str] = []
    for line in plain(text).split("\n"):
        if line.startswith("# ") and not sections and not any(lines):
            title = _words(line[2:].strip())
        elif line.startswith("## "):
            sections.append((line[3:].strip(), []))
        else:
            (sections[-1][1] if sections else lines).append(line)
    first = [element("section", *_blocks(lines, pictures), id="verified")]
    return title, first + [_section(name, own, pictures) for name, own in sections]


def _section(name: str, lines: Sequence[str], pictures: Mapping[str, bytes]) -> Markup:
    return element("section", element("h2", *_inline(name)), *_blocks(lines, pictures, name))


def _blocks(lines: Sequence[str], pictures: Mapping[str, bytes], name: str = "") -> Iterator[Markup]:
    for kind, group in groupby((line.strip() for line in lines), _kind):
        own = list(group)
        if kind == "table":
            yield _table(own, name or "What was compared")
        elif kind == "list":
            yield element("ul", *(element("li", *_inline(line[2:])) for line in own))
        elif kind == "heading":
            yield from (element("h3", *_inline(line.lstrip("# "))) for line in own)
        elif kind == "picture":
            found = filter(None, map(_PICTURE.fullmatch, own))
            yield from (page.picture_markup(m[1], pictures[m[2]]) for m in found if m[2] in pictures)
        elif kind == "text":
            yield element("p", *_inline(" ".join(own)))


def _kind(line: str) -> str:
    if not line:
        return ""
    starts = {"|": "table", "- ": "list", "###": "heading"}
    own = next((kind for start, kind in starts.items() if line.startswith(start)), "text")
    return "picture" if own == "text" and _PICTURE.fullmatch(line) else own


def _table(lines: Sequence[str], name: str) -> Markup:
    rows = [[cell.strip() for cell in _BETWEEN.split(line.strip("|"))] for line in lines[: MOST_ROWS + 2]]
    rules = rows[1] if len(rows) > 1 and all(map(_RULE.fullmatch, rows[1])) else []
    classes = ["n" if rule.endswith(":") else "" for rule in rules] + [""] * max(map(len, rows))
    cells = [
        element("tr", *(_cell(cell, classes[place], place) for place, cell in enumerate(row)))
        for row in rows[2 if rules else 1 :]
    ]
    heads = [
        element("th", *_inline(cell), scope="col", class_=own)
        for cell, own in zip(rows[0], classes, strict=False)
    ]
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *cells))
    return element("div", table, class_="scroll", role="region", aria_label=_words(name), tabindex="0")


def _cell(text: str, own: str, place: int) -> Markup:
    if place:
        return element("td", *_inline(text), class_=own)
    return element("th", *_inline(text), scope="row", class_=own)


def _words(text: str) -> str:
    """Without what marks them, for where nothing else can stand."""
    return _INLINE.sub(lambda m: next((g for g in (m[1], m[2], m[3], m[5]) if g is not None), ""), text)


def _inline(text: str) -> Iterator[Inside]:
    """Code and what stands out; of a link its words alone: nothing leads out of the page."""
    end = 0
    for found in _INLINE.finditer(text):
        yield text[end : found.start()]
        end = found.end()
        code, literal, words, _, strong = found.groups()
        if code is not None:
            yield element("code", code)
        elif strong is not None:
            yield element("strong", strong)
        else:
            yield literal if literal is not None else words
    yield text[end:]
