"""What the expert can do to a kernel, so that somebody else can choose: names, places, parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tunesmith.csource.printing import print_expr
from tunesmith.expert.author import ExpertAuthor, read
from tunesmith.expert.model.kernel import Each, KernelModel, ParameterChoice, TemplateDraft
from tunesmith.expert.model.words import explain_lines
from tunesmith.expert.moves import LOCAL_MOVES, MOVES, PARAMETERS, REMEDIES
from tunesmith.expert.moves.local import find_site
from tunesmith.expert.moves.packing import packs_in, planned, widest_vector
from tunesmith.expert.moves.port import Context
from tunesmith.expert.moves.settings import is_short
from tunesmith.expert.moves.shape import fast_forms, index_divisions, inner_loops, loops
from tunesmith.expert.writing.rules import Baked
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template_source import WORD, find_block
from tunesmith.run.ports import Catalogue, Declined, Offer, Refactoring

# -- where in a kernel a move would act, in words: its arrays, its loops with their lines, its sizes


def where(move: str, draft: TemplateDraft, context: Context) -> str:
    """`draft` is what the move would be applied to; empty: the kernel as a whole."""
    place = _PLACES.get(move)
    return place(draft, context) if place is not None else ""


def lines_text(lines: Iterable[int]) -> str:
    found = sorted({line for line in lines if line})
    return f"line{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}" if found else ""


def _tasks(draft: TemplateDraft, _context: Context) -> str:
    tasks = " and ".join(f"{t.name} below {t.size or print_expr(t.extent)}" for t in draft.kernel.tasks)
    return f"a task is one {tasks}" if tasks else ""


def _loops(draft: TemplateDraft, _context: Context) -> str:
    return _of_loops(loops(draft.kernel))


def _of_loops(found: Iterable[Each]) -> str:
    named = [f"{each.index} below {print_expr(each.stop)} (line {each.line})" for each in found]
    return f"loop{'s' if len(named) > 1 else ''} over {', '.join(named)}" if named else ""


def _vectors(draft: TemplateDraft, context: Context) -> str:
    found = widest_vector(draft, context, context.macro("VEC"))
    return "" if isinstance(found, str) else _arrays(p.array for p in packs_in(found[1]))


def _hinted(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context)
    return "" if isinstance(found, str) else _arrays(p.array for p in packs_in(found))


def _kept(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context, keep=ParameterChoice(context.macro("KEEP"), (0, 1), 0))
    if isinstance(found, str):
        return ""
    pairs = [(group, each) for group in found.keeps for each in group.loops]
    kept = [p.array for group, each in pairs for p in each.packs if p.key in group.shared]
    return _arrays(kept) + f"; {_of_loops(each.each for _, each in pairs)}"


def _baked(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context, bake=ParameterChoice(context.macro("BAKE"), (0, 1), 0))
    return "" if isinstance(found, str) else ", ".join(s.parameter.name for s in Baked.of(found).sizes)


def _quotients(draft: TemplateDraft, context: Context) -> str:
    count = fast_forms(draft.kernel, context.language).by_invariants
    return f"{count} of the divisors in {_loops(draft, context)}"


def _unrolled(draft: TemplateDraft, _context: Context) -> str:
    own = [loop for loop in inner_loops(draft.kernel) if loop.unroll is None and not is_short(loop)]
    return f"inner loops, {lines_text(loop.line for loop in own)}"


def _arrays(names: Iterable[str]) -> str:
    return f"arrays {', '.join(dict.fromkeys(names))}"


_PLACES: Mapping[str, Callable[[TemplateDraft, Context], str]] = {
    "redundant": lambda draft, _: _of_loops(each for each in loops(draft.kernel) if each.again),
    "rows": _loops,
    "lanes": lambda draft, context: "; ".join(filter(None, [_tasks(draft, context), _loops(draft, context)])),
    "tasks": _tasks,
    "vector": _vectors,
    "items": _loops,
    "split": _loops,
    "keep": _kept,
    "convert": lambda draft, _: ", ".join(name for name, _ in draft.hardware),
    "reciprocal": _quotients,
    "fast": lambda draft, context: ", ".join(fast_forms(draft.kernel, context.language).functions),
    "divide": lambda d, context: f"{index_divisions(d.kernel)} of the divisions in {_loops(d, context)}",
    "hints": _hinted,
    "bake": _baked,
    "unroll": _unrolled,
}


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
    model = {move.name: move.about for move in MOVES}
    text = {move.name: move.about for move in LOCAL_MOVES}
    return {**model, **text} if on_text else {**text, **model}


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
        if changed is None or isinstance(changed, str):
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
