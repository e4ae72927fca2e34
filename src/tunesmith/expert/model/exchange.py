"""Whether steps hand elements to each other through global memory, between different threads.

An element that a loop stores may be read or stored again by a later loop only where the same turn does it:
the same range, the same place. Anything else needs a barrier between the loops, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.nodes import Name, Type
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model.affine import number, same_value
from tunesmith.expert.model.independence import Touch, touches
from tunesmith.expert.model.kernel import Each, Step
from tunesmith.expert.model.reach import OutOfReach
from tunesmith.expert.model.step_tree import all_steps, parts_of


@dataclass(frozen=True)
class _Seen:
    touch: Touch
    step: Step


def check_exchange(
    steps: Sequence[Step], arrays: Mapping[str, Type], aliases: Mapping[str, str], has_barriers: bool
) -> None:
    seen: dict[str, list[_Seen]] = {}
    for step in all_steps(steps):
        if getattr(step, "then", None) is not None:
            continue  # its parts are met on their own
        found = [
            touch for part in parts_of(step) if isinstance(part, tuple) for touch in touches(part, arrays)
        ]
        for touch in found:
            array = aliases.get(touch.place.array, touch.place.array)
            for earlier in seen.get(array, []):
                _check(earlier, _Seen(touch, step), array, has_barriers)
        for touch in found:
            array = aliases.get(touch.place.array, touch.place.array)
            seen.setdefault(array, []).append(_Seen(touch, step))


def _check(earlier: _Seen, later: _Seen, array: str, has_barriers: bool) -> None:
    if not (earlier.touch.writes or later.touch.writes) or (earlier.touch.atomic and later.touch.atomic):
        return
    if _same_turn(earlier, later):
        return
    both_store = earlier.touch.writes and later.touch.writes
    only_store = both_store and not (earlier.touch.reads or later.touch.reads)
    if only_store and not has_barriers and not _same_thread(earlier, later):
        return  # the kernel itself leaves the order open
    line = later.step.line
    raise OutOfReach(
        f"line {line}: '{print_expr(later.touch.node)}' is touched here by other threads than in line "
        f"{earlier.step.line} ('{print_expr(earlier.touch.node)}'): '{array}' passes values between threads",
        line,
    )


def _same_turn(earlier: _Seen, later: _Seen) -> bool:
    a, b = earlier.step, later.step
    if not isinstance(a, Each) or not isinstance(b, Each) or not same_value(a.stop, b.stop):
        return False
    return _same_thread(earlier, later)


def _same_thread(earlier: _Seen, later: _Seen) -> bool:
    """Whether the same thread of the original comes to an element in both: its order is no accident."""
    a, b = earlier.step, later.step
    if not isinstance(a, Each) or not isinstance(b, Each) or not same_value(a.start, b.start):
        return False
    one, two = earlier.touch.place, later.touch.place
    if (one.as_type.base if one.as_type else "") != (two.as_type.base if two.as_type else ""):
        return False
    names = {a.index: Name(b.index)}
    return same_value(substitute(one.index, names), two.index) and same_value(
        substitute(one.offset or number(0), names), two.offset or number(0)
    )
