"""Everything that is found to stand in the way of reading a kernel, not only what was met first.

Each with its line and what would have to change. What comes of an obstacle that was met before (an object
that could not be taken apart, say) may be among them: the first ones are the surest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, function_effects, is_function
from tunesmith.csource.inline import Inlined, inline
from tunesmith.csource.spoken import in_words_of, words_of
from tunesmith.expert.model.kernel import NotReadable
from tunesmith.expert.model.sight import out_of_sight

_MOST = 12
_CHANGES = (
    (
        r"\b(?:cooperative_groups|cub|hipcub|rocprim|thrust)::[\w:]* is called",
        "a sum, maximum or minimum of the library, or shuffles written out",
    ),
    (
        r"blocks would do the same work",
        "say its launch, in a problem file: with that it may be read",
    ),
    (r"a barrier where not all threads", "put the barrier outside of what only some threads come to"),
    (r"with no barrier between", "put a barrier between"),
    (r"whose text is not in the file", "put its text into the file"),
    (r"\basm\b|assembly", "use the intrinsic for it, or a helper whose instructions only compute"),
    (r"stays a call", "call it in a statement of its own, with arguments whose types are written"),
    (r"is not understood: |the structure", "a plainer structure: fields, and methods that set or read them"),
    (r"object", "use its fields one by one"),
    (r"volatile|static|prints|allocat", "leave it out"),
    (r"depends on|says which thread", "leave it out, or compute it from threadIdx and blockIdx"),
    (r"a variable, is called|lambda", "call a function by its name"),
    (r"could not be read", "if it compiles, write it in plain C++"),
    (r"is not understood", "write it as plain statements"),
)


def _votes(function: c.Function) -> Iterator[tuple[int, str]]:
    """What asks other threads of a warp, but for shuffles, which may be part of a total."""
    for stmt in walk.statements_in(function.body):
        parts = [part for part in walk.children(stmt) if isinstance(part, c.Expr)]
        for call in (call for part in parts for call in walk.calls_in(part)):
            is_vote = is_function(call.function) and function_effects(call.function) == Effects.MASK
            if is_vote and not call.function.startswith("__shfl"):
                yield stmt.line, f"{call.function} depends on other threads of the warp"


def with_change(reason: str) -> str:
    """The reason, and what would have to change, where that is known."""
    change = next((change for pattern, change in _CHANGES if re.search(pattern, reason)), "")
    return f"{reason} (to change: {change})" if change else reason


def told_in(text: str, found: NotReadable) -> NotReadable:
    """Why it is not read, with the names that the text has in place of those that were made on the way."""
    words = words_of(text)
    others = tuple(in_words_of(words, reason) for reason in found.others)
    return replace(found, reason=in_words_of(words, found.reason), others=others)


def other_obstacles(function: c.Function, source: c.Source, first: str) -> tuple[str, ...]:
    """Besides the first, in the order of the text; `function` has its template's arguments filled in."""
    met: list[tuple[int, str]] = []
    try:
        inlined = inline(function, source, met)
    except c.Unreadable as stop:
        met.append((stop.line, stop.reason))
        inlined = Inlined(function, (), source)
    met += list(_all(inlined))
    found: dict[str, None] = {}
    for line, reason in sorted(met, key=lambda pair: pair[0]):
        said = reason if reason.startswith("line ") or not line else f"line {line}: {reason}"
        if reason not in first and first not in said:
            found.setdefault(with_change(said))
    return tuple(found)[:_MOST]


def _all(inlined: Inlined) -> Iterator[tuple[int, str]]:
    for reason in (*inlined.source.unread, *inlined.notes):
        number = re.match(r"line (\d+): ", reason)
        yield int(number[1]) if number else 0, reason
    hidden = list(out_of_sight(inlined, inlined.source))
    yield from hidden
    yield from _votes(inlined.function)
    lines = {line for line, _ in hidden}
    for stmt in walk.statements_in(inlined.function.body):
        if isinstance(stmt, c.Verbatim) and stmt.line not in lines:
            yield stmt.line, f"'{' '.join(stmt.text.split())[:60]}' is not understood"
