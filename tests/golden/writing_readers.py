"""What the expert's writer makes of pieces of text on the way to a template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tests.core.expert.write.models import each, rmsnorm, statements
from tests.core.source.reading import source_of
from tests.golden.csource_readers import on_one_line
from tests.golden.model_readers import problem_of
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.author import excess_block_notes
from tunesmith.expert.write.given import Sizes
from tunesmith.expert.write.names import SourceNames, with_plain_names
from tunesmith.expert.write.packs import pack_accesses, split_final_conversion
from tunesmith.expert.write.several import defined_names, split_pieces
from tunesmith.source import tree as c
from tunesmith.source.printing import print_expr
from tunesmith.source.snippets import parse_snippet

Reader = Callable[..., Iterable[str]]
Told = object


def read_packs(text: str, most: int = 8, stop: str = "d", **_: Told) -> Iterator[str]:
    """Which accesses of a loop's body are packed, and what must divide for it."""
    arrays = {name: c.Type("__half", 1) for name in ("a", "b", "out")}
    for pack in pack_accesses(each(stop, text), arrays, (), Sizes.of(*rmsnorm()), most, True):
        ways = " and ".join(["loaded"] * pack.loads + ["stored"] * pack.stores)
        needs = ", ".join(sorted(map(print_expr, pack.needs)))
        places = len({node for node, _ in pack.sites})
        needed = f" where {needs} divide" if needs else ""
        yield f"{pack.array} × {pack.width} {ways}{needed}, {places} places"


def read_pairs(text: str, **_: Told) -> Iterator[str]:
    found = split_final_conversion(statements(text), "v", {"to_e4m3": "both({a}, {b})"})
    if found is None:
        yield "none"
    else:
        into, value = print_expr(found.into), print_expr(found.value)
        yield f"{value} into {into} by {found.form}, after {on_one_line(found.before) or 'nothing'}"


def read_plain_names(
    text: str, file_words: Sequence[str] = (), kept: Sequence[str] = (), **_: Told
) -> Iterator[str]:
    yield on_one_line(with_plain_names(parse_snippet(text), ["p"], file_words, kept))


def read_source_names(
    text: str, source: str, parameters: str = "int d", taken: Sequence[str] = (), **_: Told
) -> Iterator[str]:
    function = source_of(f"__global__ void f({parameters}, float *out) {{{source}}}").functions[-1]
    names = SourceNames.of(function)
    yield on_one_line(names.in_body(parse_snippet(text), frozenset(taken), {"DIVIDED": "/", "REST": "%"}))


def read_pieces(text: str, **_: Told) -> Iterator[str]:
    """What a text defines, and where it may be parted."""
    yield f"defines {', '.join(defined_names(text)) or 'nothing'}"
    pieces = list(split_pieces(text))
    if len(pieces) > 1:
        yield from (f"piece {number}: {' '.join(piece.split())}" for number, piece in enumerate(pieces, 1))


def read_excess_blocks(text: str, **told: Any) -> Iterator[str]:
    yield from excess_block_notes(problem_of(text, told), absent_device("H200")) or ["no more than it uses"]


WRITING: dict[str, Reader] = {
    "excess blocks": read_excess_blocks,
    "packs": read_packs,
    "pairs": read_pairs,
    "pieces": read_pieces,
    "plain names": read_plain_names,
    "source names": read_source_names,
}
