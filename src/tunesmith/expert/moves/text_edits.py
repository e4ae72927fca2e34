"""Local moves: edits of the original's own text, for kernels that could not be read as tasks and steps.

Nothing is known of what such a kernel computes, so only what is right for any kernel is done: qualifiers,
pragmas and compiler settings, and the size of the block where the kernel provably does not look at it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import cast

from tunesmith.expert.drafts.headers import Blanked, blank_source, read_headers
from tunesmith.expert.moves.move import Context
from tunesmith.expert.read.model import ParameterChoice
from tunesmith.expert.write.page import Heading, declared_params, default_lines, fixed_values, settled_pairs
from tunesmith.problem.problem import Launch, Problem
from tunesmith.problem.template import fill_placeholders, find_defines
from tunesmith.problem.template_file import expression_list_lines, shared_line
from tunesmith.source.lex import lex, split_at
from tunesmith.source.text import without_comments
from tunesmith.source.tree import Language
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import bind_and_simplify

_WORD = re.compile(r"[^\W\d]\w*")
_PRAGMA = re.compile(r"#[ \t]*pragma[^\n]*(unroll|nounroll|ivdep|loop)[^\n]*\s*\Z")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.MULTILINE)


@dataclass(frozen=True)
class PointerParameter:
    """A pointer parameter: `at` is where its name begins."""

    name: str
    at: int
    restrict: bool


@dataclass(frozen=True)
class SourceLoop:
    at: int  # where its `for` begins
    line: int
    marked: bool  # a pragma stands before it already


@dataclass(frozen=True)
class EditSite:
    """The one kernel of a launch, in the text."""

    text: str
    name: str
    marker_end: int  # behind __global__, or __kernel
    line: int
    after_includes: int  # the start of the line behind the last #include, outside every #if
    has_bounds: bool
    pointers: tuple[PointerParameter, ...]
    inner_loops: tuple[SourceLoop, ...]  # loops in which there is no other


def find_site(problem: Problem) -> EditSite | str:
    """The kernel of the problem's launches, or why its text is not edited."""
    kernel = problem.kernel
    entries = {launch.entry.split("<")[0].split("::")[-1].strip() for launch in problem.launches}
    if len(entries) != 1:
        return f"there are {len(entries)} kernels to a call: their texts are left as they are"
    (entry,) = entries
    source = blank_source(kernel.text, cast("Language", kernel.language))
    found = [h for h in read_headers(source, cast("Language", kernel.language)) if h.name == entry]
    defined = [h for h in found if h.body is not None]
    if len(defined) != 1:
        count = len(defined) or "no"
        return f"{kernel.path} has {count} definitions of {entry} that can be seen without the preprocessor"
    header = defined[0]
    if header.conditional:
        return f"an #if stands inside the header of {entry}: what its parameters are depends on flags"
    text, body = kernel.text, header.body or ""
    body_at = source.code.find(body, header.offset)
    marker = _WORD.match(source.plain, header.offset)
    head = source.plain[:body_at].rstrip()
    if body_at < 0 or marker is None or not head.endswith(")"):
        return f"the header of {header.name} does not end with its parameters"
    return EditSite(
        text=text,
        name=header.name,
        marker_end=marker.end(),
        line=text.count("\n", 0, header.offset) + 1,
        after_includes=_after_includes(text, source),
        has_bounds=header.launch_bounds is not None or "__launch_bounds__" in text[header.offset : body_at],
        pointers=_pointer_parameters(head),
        inner_loops=_inner_loops(text, source, body_at, body_at + len(body)),
    )


def whole_text(problem: Problem) -> EditSite:
    """The text without a kernel of its own: for moves that look at nothing else."""
    kernel = problem.kernel
    source = blank_source(kernel.text, cast("Language", kernel.language))
    return EditSite(kernel.text, kernel.path, 0, 0, _after_includes(kernel.text, source), False, (), ())


def _after_includes(text: str, source: Blanked) -> int:
    places = [m.end() for m in _INCLUDE.finditer(text)]
    place = places[-1] if places else 0
    depth = sum((m.text == "#if") - (m.text == "#endif") for m in source.marks if m.offset < place)
    for mark in source.marks:
        if depth > 0 and mark.offset >= place:
            depth += (mark.text == "#if") - (mark.text == "#endif")
            if depth == 0:
                place = mark.offset
    if places and place:
        end = text.find("\n", place)
        return len(text) if end < 0 else end + 1
    return 0


def _pointer_parameters(head: str) -> tuple[PointerParameter, ...]:
    """Of the parameter list that `head` ends with."""
    tokens = lex(head)
    first, depth = len(tokens), 0
    while first == len(tokens) or depth:
        first -= 1
        depth += (tokens[first].text == ")") - (tokens[first].text == "(")
    found: list[PointerParameter] = []
    for part in split_at(",", tokens[first + 1 : -1]):
        words = [token.text for token in split_at("=", part)[0]]
        # A name right behind the last star, and no brackets: what else a declarator may be is left alone.
        names = [place for place, word in enumerate(words) if _WORD.fullmatch(word)]
        star = len(words) - 1 - words[::-1].index("*") if "*" in words else -1
        if star < 0 or not names or names[-1] < star or any(mark in word for word in words for mark in "[(&"):
            continue
        restrict = any("restrict" in word for word in words[star + 1 : names[-1]])
        found.append(PointerParameter(words[names[-1]], part[names[-1]].offset, restrict))
    return tuple(found)


def _inner_loops(text: str, source: Blanked, start: int, end: int) -> tuple[SourceLoop, ...]:
    """In one pass: a loop is open until the braces of its body end, or its one statement."""
    is_inner: dict[int, bool] = {}  # where a loop begins -> whether no other is in it
    open_loops: list[tuple[int, int]] = []  # where one begins, and how deep in brackets
    heads: set[int] = set()  # of those that have had their head
    depth = 0
    for mark in re.compile(r"\bfor\b|[(){};]").finditer(source.plain, start + 1, end):
        word = mark.group()
        if word == "for":
            is_inner |= {at: False for at, _ in open_loops[-1:]}  # those around it are known to have one
            is_inner[mark.start()] = True
            open_loops.append((mark.start(), depth))
            continue
        depth += (word in "({") - (word in ")}")
        while open_loops and open_loops[-1][1] >= depth:
            at, outside = open_loops[-1]
            if word == ")" and outside == depth:
                heads.add(at)
            if word in "()" or (outside == depth and word == ";" and at not in heads):
                break
            open_loops.pop()
    inner = [at for at, alone in is_inner.items() if alone]
    lines = accumulate((text.count("\n", a, b) for a, b in pairwise([0, *inner])), initial=1)
    marked = [_PRAGMA.search(text[max(0, at - 200) : at]) is not None for at in inner]
    return tuple(SourceLoop(*loop) for loop in zip(inner, list(lines)[1:], marked, strict=True))


@dataclass(frozen=True)
class Edit:
    """Text to be inserted before a place of the original, or in place of some characters there; edits of one
    place follow each other."""

    offset: int
    text: str
    length: int = 0  # characters of the original that go


@dataclass(frozen=True)
class LaunchText:
    """A launch of the template: the original's own, with another grid and block where a move has set them."""

    launch: Launch
    grid: tuple[str, ...]
    block: tuple[str, ...]


@dataclass(frozen=True)
class LocalDraft:
    """A template to be: the original's text, edited."""

    site: EditSite
    launches: tuple[LaunchText, ...]
    edits: tuple[Edit, ...] = ()
    preamble: tuple[str, ...] = ()  # lines that stand before the original's first
    after_includes: tuple[str, ...] = ()  # lines that stand behind the original's last #include
    choices: tuple[ParameterChoice, ...] = ()
    flags: tuple[str, ...] = ()
    require: tuple[tuple[str, str], ...] = ()
    prefer: tuple[tuple[str, str], ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()  # by kernel's number: threads of one, for the usual rules
    moves: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # for the reader of the report

    def choice(self, name: str) -> ParameterChoice | None:
        return next((c for c in self.choices if c.name == name), None)

    def noted(self, notes: Mapping[str, str]) -> LocalDraft:
        return replace(self, choices=tuple(choice.noted(notes) for choice in self.choices))


def start_draft(site: EditSite, problem: Problem) -> LocalDraft:
    launches = tuple(
        LaunchText(launch, tuple(e.text for e in launch.grid), tuple(e.text for e in launch.block))
        for launch in problem.launches
    )
    return LocalDraft(site, launches)


def add_choice(
    draft: LocalDraft,
    move: str,
    choice: ParameterChoice,
    *,
    edits: tuple[Edit, ...] = (),
    preamble: tuple[str, ...] = (),
    after_includes: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    blocks: tuple[tuple[str, str], ...] = (),
) -> LocalDraft:
    return replace(
        draft,
        edits=(*draft.edits, *edits),
        preamble=(*draft.preamble, *preamble),
        after_includes=(*draft.after_includes, *after_includes),
        choices=(*draft.choices, choice),
        flags=(*draft.flags, *flags),
        blocks=(*draft.blocks, *blocks),
        moves=(*draft.moves, *(() if move in draft.moves else (move,))),
    )


def template_text(draft: LocalDraft, context: Context) -> str:
    about = f"// The original, {context.problem.kernel.path}, with its own text and a few choices left open."
    lines = [*local_heading(draft).lines(), "//", about, *local_defaults(draft)]
    return "\n".join(lines) + "\n" + apply_edits(draft)


def local_heading(draft: LocalDraft) -> Heading:
    fixed = fixed_values(draft.choices)
    conditions = (("require", draft.require), ("prefer", draft.prefer), ("answers", draft.answers))
    insert = {name: str(value) for name, value in fixed.items()}
    tables = [(f"shape.{n}" if n else "shape", [("block", f'"{block}"')]) for n, block in draft.blocks]
    return Heading(
        tuple(declared_params(draft.choices)),
        tuple((table, settled_pairs(pairs, fixed)) for table, pairs in conditions),
        flags=tuple(fill_placeholders(flag, insert) for flag in draft.flags),
        launches=tuple(tuple(_local_launch_lines(item, fixed)) for item in draft.launches),
        shape=tables or [("shape", [])],
        in_code=frozenset(choice.name for choice in draft.choices),
    )


def local_defaults(draft: LocalDraft) -> list[str]:
    """What stands before the original's text: values of the parameters where a build gives none, switches."""
    fixed = fixed_values(draft.choices)
    lines = [f"#define {name} {value}" for name, value in fixed.items()]
    for choice in draft.choices:
        lines += default_lines(choice.name, choice.default) if choice.name not in fixed else ()
    return [*lines, *draft.preamble]


def apply_edits(draft: LocalDraft) -> str:
    """The original's text with the edits of the moves."""
    text = draft.site.text
    changed = [(edit.offset, place, edit.text, edit.length) for place, edit in enumerate(draft.edits)]
    if draft.after_includes:
        changed.append((draft.site.after_includes, -1, "\n".join(draft.after_includes) + "\n", 0))
    for offset, _, addition, length in sorted(changed, reverse=True):
        text = text[:offset] + addition + text[offset + length :]
    return _no_parameters(text)


def _no_parameters(text: str) -> str:
    """Defaults of the original's own, `#ifndef N` and `#define N 4`, in a form that declares no parameter."""
    for define in find_defines(without_comments(text)):
        if define.is_default:
            behind = r"(?=[ \t]*(?:/[/*][^\n]*)?\r?\n\s*#[ \t]*define[ \t])"
            form = rf"^([ \t]*#[ \t]*)ifndef[ \t]+{define.name}{behind}"
            text = re.sub(form, rf"\1if !defined({define.name})", text, flags=re.MULTILINE)
    return text


def _local_launch_lines(item: LaunchText, fixed: Mapping[str, int]) -> Iterator[str]:
    launch, insert = item.launch, {name: str(value) for name, value in fixed.items()}

    def simplified(texts: Iterable[str]) -> list[str]:
        return [bind_and_simplify(parse_expr(text), fixed).text for text in texts]

    yield f"entry = {json.dumps(fill_placeholders(launch.entry, insert))}"
    yield from expression_list_lines("grid", simplified(item.grid))
    yield from expression_list_lines("block", simplified(item.block))
    if launch.shared is not None:
        yield from shared_line(*simplified([launch.shared.text]))
    if launch.cluster:
        yield from expression_list_lines("cluster", simplified(e.text for e in launch.cluster))
    if launch.cooperative:
        yield "cooperative = true"
    if launch.pdl:
        yield "pdl = true"
    if launch.when is not None:
        yield f"when = {json.dumps(*simplified([launch.when.text]))}"
    yield from expression_list_lines("args", launch.args)
