"""How many threads share a task: a whole block, a warp, a part of a warp, or one thread alone."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.packing import widest_vector
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.shape import Shape, is_map, loops, shape_of

WIDTHS = (32, 64, 128, 192, 256, 384, 512, 768, 1024)
PARTS = (4, 8, 16)  # of a warp, for rows that a warp would not be busy with
SHORT = 1024  # elements: such a row may do with a part of a warp
WARP = 32
SHUFFLED = 256  # threads whose totals meet mostly by shuffles; more wait for more warps
TURNS = (1, 2, 4)
MOST_EVEN = 4
ON_CPU = (1, 8, 64)  # a CPU runs a group's work-items one after the other


class Lanes:
    name = "lanes"
    remedies = (Remedy.BLOCK_SIZE, Remedy.WARP_PER_ROW, Remedy.SHUFFLE_REDUCTION, Remedy.SHARE_SERIAL_WORK)
    parameters = ("LANES",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        kernel = draft.kernel
        if not loops(kernel):  # the writer has to know: a task is one thread's work
            alone = Choice(context.macro("LANES"), (1,), 1, "a task is one thread's work")
            return extend(draft, self, {"lanes": alone})
        shape = shape_of(draft, context)
        limits = context.device.limits
        name = context.macro("LANES")
        most = widest_vector(draft, context, "VEC")
        values = _domain(shape, context, 1 if isinstance(most, str) else most[0])
        default = nearest(values, shape.lanes)
        answers = [(Remedy.BLOCK_SIZE, f"{name} != {default}")]
        if not context.on_cpu:
            answers.append((Remedy.WARP_PER_ROW, f"{name} <= {limits.warp or 32}"))
        if kernel.team == "thread":
            answers.append((Remedy.SHARE_SERIAL_WORK, f"{name} > 1"))
        if not is_map(kernel) and not context.on_cpu:
            answers.append((Remedy.SHUFFLE_REDUCTION, f"{name} <= {SHUFFLED}"))
        prefer = []
        if shape.extent and not context.on_cpu:
            prefer.append(("no_idle_lanes", f"{name} < 2 * {term(shape.extent)}"))
        return extend(
            draft,
            self,
            {"lanes": Choice(name, values, default, "threads to a task")},
            prefer=prefer,
            answers=answers,
        )


def _domain(shape: Shape, context: Context, vector: int) -> tuple[int, ...]:
    most = context.device.limits.max_threads
    if context.on_cpu:
        return tuple(sorted(v for v in {*ON_CPU, shape.lanes} if v <= most))
    longest = shape.longest
    parts = PARTS if longest is not None and longest <= SHORT else ()
    reach = longest if longest is not None else most
    # One value beyond the row is of use: that is where a row is one turn.
    widths = [v for v in WIDTHS if v <= most]
    fitting = {v for v in widths if v < reach} | set([v for v in widths if v >= reach][:1])
    own = {shape.lanes} if shape.lanes % WARP == 0 and shape.lanes <= max(fitting) else set()
    return (*(p for p in parts if p < reach), *sorted(fitting | own | _even(shape, vector, most)))


def _even(shape: Shape, vector: int, most: int) -> set[int]:
    """Widths with which a row of vectors is a few whole turns, with no thread idle in the last."""
    found: list[int] = []
    for extent in sorted(set(shape.extents)):
        for turns in TURNS:
            width = -(-extent // (vector * turns * WARP)) * WARP
            if 2 * WARP <= width <= most and width not in (*WIDTHS, *found):
                found.append(width)
    return set(found[:MOST_EVEN])


def nearest(values: tuple[int, ...], wanted: int) -> int:
    """The value next to what the original has; of two as near, the larger."""
    return min(values, key=lambda value: (abs(value - wanted), -value))


def term(text: str) -> str:
    """A size's text as a factor."""
    whole = text.startswith(("max(", "(")) and text.endswith(")")
    return text if text.isidentifier() or text.isdigit() or whole else f"({text})"
