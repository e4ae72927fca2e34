"""What the expert can do to a kernel, so that somebody else can choose: names, places, parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tunesmith.csource.nodes import Assign, Binary, Declare, Evaluate, Expr, For, If, Name, Stmt, While
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import calls_in, nodes_in
from tunesmith.expert.author import ExpertAuthor, read
from tunesmith.expert.model.affine import head_of, trips
from tunesmith.expert.model.kernel import (
    ArrayAccess,
    Each,
    KernelModel,
    Let,
    Once,
    ParameterChoice,
    Repeat,
    Step,
    TemplateDraft,
    When,
    all_steps,
    own_parts,
)
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


# -- a reading in words, with line numbers: what `tunesmith explain` shows -----------------------------------

_TEAMS = {
    "grid": "Its elements are independent: any thread may take any of them.",
    "block": "A block of {lanes} threads works on each.",
    "warp": "A warp works on each, several to a block.",
    "part of a warp": "{lanes} threads of a warp work on each, several tasks to a block.",
    "thread": "One thread works on each, alone.",
}
_TOTALS = {
    "+": "adds up", "*": "multiplies up", "max": "finds the largest as", "min": "finds the smallest as",
    "&": "joins by &", "|": "joins by |", "^": "joins by ^",
}  # fmt: skip
_VERBS = {"load": "read", "store": "written", "update": "updated", "atomic": "updated by atomics"}
_NEAR = {
    None: "neighbours at no constant distance", 0: "the same for neighbours", 1: "neighbours side by side",
}  # fmt: skip
_LONGEST = 100


def explain_lines(reading: KernelModel) -> list[str]:
    lines = [_about_tasks(reading), *_about_steps(reading.steps, reading, 1)]
    lines += [
        f"Shared memory '{array.name}' keeps {array.width if array.width > 1 else 'one'} {array.type.base} "
        "of every element for a later loop."
        for array in reading.kept
    ]
    lines += _about_arrays(reading) + _again_read(reading)
    if reading.barriers:
        lines.append(
            f"Its threads meet at {reading.barriers} barriers for a task; only totals are exchanged there."
        )
    parts = [part for step in all_steps(reading.steps) for part in own_parts(step)]
    calls = sorted({call.function for part in parts for call in calls_in(part)})
    if calls:
        lines.append(f"It calls {', '.join(calls)}.")
    return lines + [f"Note: {note}." for note in reading.notes]


def _about_tasks(kernel: KernelModel) -> str:
    lanes = "some" if kernel.lanes is None else _short(kernel.lanes)
    team = _TEAMS[kernel.team].format(lanes=lanes)
    if not kernel.tasks:
        return f"{kernel.function.name}: one loop over all elements. {team}"
    of = ", ".join(f"{task.name} below {task.size or _short(task.extent)}" for task in kernel.tasks)
    return f"{kernel.function.name}: independent tasks, one for each {of}. {team}"


def _about_steps(steps: Sequence[Step], kernel: KernelModel, depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for step in steps:
        match step:
            case Each():
                lines.append(pad + _each(step, kernel))
            case Let(body=body):
                for stmt in body:
                    what = "computes the same"
                    if isinstance(stmt, Declare) and stmt.init is not None:
                        what = f"knows {stmt.name} = {_short(stmt.init)}"
                    lines.append(f"{pad}line {stmt.line}: the whole team {what}")
            case Once(body=body):
                stores = ", ".join(dict.fromkeys(_target(stmt) for stmt in body))
                lines.append(f"{pad}line {step.line}: one thread of the team stores {stores}")
            case When():
                lines.append(f"{pad}line {step.line}: if {_short(step.condition)}, the whole team:")
                lines += _about_steps(step.then, kernel, depth + 1)
                if step.otherwise:
                    lines.append(f"{pad}otherwise:")
                    lines += _about_steps(step.otherwise, kernel, depth + 1)
            case Repeat():
                span = f"{_short(step.start)} to {_short(step.stop)}"
                lines.append(f"{pad}line {step.line}: in turn, for {step.index} from {span}:")
                lines += _about_steps(step.body, kernel, depth + 1)
    return lines


def _each(step: Each, kernel: KernelModel) -> str:
    shared = {"grid": "over all threads", "thread": "by one thread, though no turn needs another"}.get(
        kernel.team, "shared by the team"
    )
    span = f"from {_short(step.start)} to {_short(step.stop)}"
    text = f"line {step.line}: for each {step.index} {span}, {shared}"
    if step.totals:
        totals = (f"{_TOTALS[t.operator]} {t.name} (from {_short(t.start)})" for t in step.totals)
        text += "; " + ", ".join(totals)
    inner = [node for node in nodes_in(step.body) if isinstance(node, For | While)]
    if inner:
        text += f"; inside it {_about_loops(inner)}"
    branches = sum(1 for node in nodes_in(step.body) if isinstance(node, If))
    if branches:
        text += f"; {branches} {'branches' if branches > 1 else 'branch'} by element"
    return text


def _about_loops(inner: Sequence[For | While]) -> str:
    words: list[str] = []
    for loop in inner:
        head = head_of(loop) if isinstance(loop, For) else None
        count = trips(head) if head is not None else None
        kind = f"of {count} turns" if count is not None else "whose turns sizes or data decide"
        words.append(f"a loop {kind} (line {loop.line})")
    return " and ".join(words)


def _target(stmt: Stmt) -> str:
    if isinstance(stmt, Evaluate) and isinstance(stmt.expr, Assign):
        return _short(stmt.expr.target)
    return "a value"


def _about_arrays(kernel: KernelModel) -> list[str]:
    lines: list[str] = []
    for parameter in kernel.function.parameters:
        found = [access for access in kernel.accesses if access.array == parameter.name]
        if found:
            ways = "; ".join(dict.fromkeys(_access(access) for access in found))
            lines.append(f"{parameter.name}: {ways}")
    return lines


def _access(access: ArrayAccess) -> str:
    where = _short(access.index if access.offset is None else Binary("+", access.offset, access.index))
    near = _NEAR.get(access.stride, f"neighbours {access.stride} apart") if access.loop else "once for a task"
    if access.loop and access.stride is not None and access.within:
        near += f" (within stretches of {', '.join(_short(expr) for expr in access.within)})"
    return f"{_VERBS[access.kind]} as {access.type.base} at [{where}], {near}"


def _again_read(kernel: KernelModel) -> list[str]:
    """Loops that read what an earlier one has read, at the same places."""
    lines: list[str] = []
    before: list[tuple[Each, frozenset[tuple[str, Expr, Expr | None]]]] = []
    for step in all_steps(kernel.steps):
        if not isinstance(step, Each):
            continue
        names = {step.index: Name("")}
        mine = frozenset(
            (a.array, substitute(a.index, names), None if a.offset is None else substitute(a.offset, names))
            for a in kernel.accesses
            if a.loop == step.index and a.kind in ("load", "update")
        )
        for other, theirs in before:
            if (other.start, other.stop) == (step.start, step.stop) and mine & theirs:
                arrays = ", ".join(sorted({array for array, _, _ in mine & theirs}))
                lines.append(f"Line {step.line} reads again what line {other.line} has read: {arrays}.")
                break
        before.append((step, mine))
    return lines


def _short(expr: Expr) -> str:
    text = print_expr(expr)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
