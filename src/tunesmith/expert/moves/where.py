"""Where in a kernel a move would act, in words: its arrays, its loops with their lines, its sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tunesmith.expert.c.printing import print_expr
from tunesmith.expert.model.kernel import Each, ParameterChoice, TemplateDraft
from tunesmith.expert.moves.packing import packs_in, planned, widest_vector
from tunesmith.expert.moves.port import Context
from tunesmith.expert.moves.settings import is_short
from tunesmith.expert.moves.shape import fast_forms, index_divisions, inner_loops, loops
from tunesmith.expert.writing.rules import Baked


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


def _shared(draft: TemplateDraft, context: Context) -> str:
    return "; ".join(filter(None, [_tasks(draft, context), _loops(draft, context)]))


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
    found = planned(draft, context, {"keep": ParameterChoice(context.macro("KEEP"), (0, 1), 0)})
    if isinstance(found, str):
        return ""
    kept = [
        p.array for group in found.keeps for each in group.loops for p in each.packs if p.key in group.shared
    ]
    return _arrays(kept) + f"; {_of_loops(e.each for group in found.keeps for e in group.loops)}"


def _baked(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context, {"bake": ParameterChoice(context.macro("BAKE"), (0, 1), 0)})
    return "" if isinstance(found, str) else ", ".join(s.parameter.name for s in Baked.of(found).sizes)


def _converted(draft: TemplateDraft, _context: Context) -> str:
    return ", ".join(name for name, _ in draft.hardware)


def _fast(draft: TemplateDraft, context: Context) -> str:
    return ", ".join(fast_forms(draft.kernel, context.language).functions)


def _quotients(draft: TemplateDraft, context: Context) -> str:
    count = fast_forms(draft.kernel, context.language).by_invariants
    return f"{count} of the divisors in {_loops(draft, context)}"


def _divided(draft: TemplateDraft, context: Context) -> str:
    return f"{index_divisions(draft.kernel)} of the divisions in {_loops(draft, context)}"


def _unrolled(draft: TemplateDraft, _context: Context) -> str:
    own = [loop for loop in inner_loops(draft.kernel) if loop.unroll is None and not is_short(loop)]
    return f"inner loops, {lines_text(loop.line for loop in own)}"


def _again(draft: TemplateDraft, _context: Context) -> str:
    return _of_loops(each for each in loops(draft.kernel) if each.again)


def _arrays(names: Iterable[str]) -> str:
    return f"arrays {', '.join(dict.fromkeys(names))}"


_PLACES: Mapping[str, Callable[[TemplateDraft, Context], str]] = {
    "redundant": _again,
    "rows": _loops,
    "lanes": _shared,
    "tasks": _tasks,
    "vector": _vectors,
    "items": _loops,
    "split": _loops,
    "keep": _kept,
    "convert": _converted,
    "reciprocal": _quotients,
    "fast": _fast,
    "divide": _divided,
    "hints": _hinted,
    "bake": _baked,
    "unroll": _unrolled,
}
