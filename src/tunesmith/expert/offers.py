"""What the expert can do to a kernel, so that somebody else can choose: names, places, parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunesmith.core.device import Device
from tunesmith.core.files.template_source import WORD, find_block
from tunesmith.core.offers import Catalogue, Offer
from tunesmith.core.ports import Declined, Refactoring
from tunesmith.core.problem import Problem
from tunesmith.expert.author import ExpertAuthor, read
from tunesmith.expert.model.kernel import KernelModel, TemplateDraft
from tunesmith.expert.model.words import explain_lines
from tunesmith.expert.moves import LOCAL_MOVES, MOVES, PARAMETERS, REMEDIES, Context, NotApplicable
from tunesmith.expert.moves.local import find_site
from tunesmith.expert.moves.where import lines_text, where


def catalogue(problem: Problem, device: Device) -> Catalogue:
    """Every move at once is what tells which go together, and with which values."""
    written = ExpertAuthor().write(Refactoring(tuple(PARAMETERS)), problem, device)
    kernel, context = read(problem), Context(problem, device)
    reading = reading_lines(problem, kernel)
    if isinstance(written, Declined):
        return Catalogue(reading, (), tuple((name, written.reason) for name in PARAMETERS))
    if isinstance(kernel, str) or _is_local(written.moves):
        about, places = _about(on_text=True), _local_places(problem, written.moves)
    else:
        about, places = _about(on_text=False), _places(kernel, context, written.moves)
    declared = _declared(written.text)
    offers = tuple(
        Offer(
            name,
            about.get(name, ""),
            places.get(name, ""),
            tuple(line for own, line in declared if own.rstrip("_") in PARAMETERS[name]),
            tuple(str(remedy) for remedy in REMEDIES[name]),
        )
        for name in written.moves
    )
    return Catalogue(reading, offers, written.refused)


def reading_lines(problem: Problem, kernel: KernelModel | str) -> tuple[str, ...]:
    """What the expert makes of a kernel, in words."""
    if isinstance(kernel, str):
        return (f"{problem.kernel.path} is beyond the expert: {kernel}",)
    return tuple(explain_lines(kernel))


def _is_local(moves: Sequence[str]) -> bool:
    """A kernel that was read and cannot be written again gets the local moves."""
    return bool(set(moves) & ({m.name for m in LOCAL_MOVES} - {m.name for m in MOVES}))


def _about(on_text: bool) -> Mapping[str, str]:
    """What each does. A name may stand for a move on the model and for one on the text."""
    model = {move.name: _first_line(type(move)) for move in MOVES}
    text = {move.name: _first_line(type(move)) for move in LOCAL_MOVES}
    return {**model, **text} if on_text else {**text, **model}


def _first_line(kind: type) -> str:
    words = (kind.__doc__ or "").strip()
    return " ".join(words.split("\n\n")[0].split())


def _declared(text: str) -> list[tuple[str, str]]:
    """Name and line of each parameter, with the remark behind it."""
    found, title = [], ""
    for line in find_block(text, "template").toml.splitlines():
        title = line.strip() if line.startswith("[") else title
        if title == "[params]" and not line.startswith("["):
            found += [(name, " ".join(line.split())) for name in WORD.findall(line)[:1]]
    return found


def _places(kernel: KernelModel, context: Context, moves: Sequence[str]) -> Mapping[str, str]:
    draft, found = TemplateDraft(kernel), dict[str, str]()
    for move in MOVES:
        changed = move.apply(draft, context) if move.name in moves else None
        if changed is None or isinstance(changed, NotApplicable):
            continue
        found[move.name] = where(move.name, draft, context) or where(move.name, changed, context)
        draft = changed
    return found


def _local_places(problem: Problem, moves: Sequence[str]) -> Mapping[str, str]:
    site = find_site(problem)
    if isinstance(site, str):
        return {}
    loops = lines_text(loop.line for loop in site.inner_loops if not loop.marked)
    pointers = ", ".join(pointer.name for pointer in site.pointers if not pointer.restrict)
    known = {"unroll": f"inner loops, {loops}", "restrict": f"pointers {pointers}", "block": "the launch"}
    return {name: place for name, place in known.items() if name in moves}
