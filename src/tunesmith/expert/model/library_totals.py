"""Totals that libraries make (csource/library): over whom, and who has them afterwards.

The first thread of a block or warp has what CUB gives, the others nothing that may be used; of a tile of
cooperative groups all have it. Every thread of the group must come, in a block no larger than was told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunesmith.expert.model import team_memory as tv
from tunesmith.expert.model.kernel import Operator
from tunesmith.expert.model.team_memory import BlockMemory

_JOINED: Mapping[str, Operator] = {"add": "+", "max": "max", "min": "min"}
# Of the languages: over a block or a warp, for all of its threads.
GROUP_TOTALS: Mapping[str, Operator] = {
    "work_group_reduce_add": "+", "work_group_reduce_max": "max", "work_group_reduce_min": "min",
    "sub_group_reduce_add": "+", "sub_group_reduce_max": "max", "sub_group_reduce_min": "min",
    "__reduce_add_sync": "+", "__reduce_max_sync": "max", "__reduce_min_sync": "min",
    "__reduce_or_sync": "|", "__reduce_and_sync": "&", "__reduce_xor_sync": "^",
}  # fmt: skip
LIBRARY_TOTALS: Mapping[str, tuple[str, Operator]] = {
    f"__{of}_total_{word}": (of, operator)
    for of in ("block", "warp", "tile")
    for word, operator in _JOINED.items()
}


@dataclass(frozen=True)
class LibraryTotal:
    memory: BlockMemory
    operator: Operator
    span: int  # threads that make one total
    active: tv.Threads
    for_all: bool

    def seen(self, total: tv.Vec) -> tv.Vec:
        """What each thread has of it."""
        if self.for_all:
            return total
        nothing = tv.Poison("only the first thread has what the library's total gives", self.memory.line)
        return self.memory.vector(self.active, lambda t: nothing if t % self.span else total.at(t))


def library_total(
    memory: BlockMemory, name: str, sizes: Sequence[tv.Vec], active: tv.Threads
) -> LibraryTotal:
    """`sizes`: the threads that the library was told of, and how many of them have a value."""
    of, operator = LIBRARY_TOTALS[name]
    numbers = [tv.one_value(size, active) for size in sizes]
    known = [number.value for number in numbers if isinstance(number, tv.Int)]
    threads = memory.threads
    if not known or len(known) != len(sizes) or (of == "block" and len(active) != threads):
        raise memory.refusal("the library's total is not called by all threads, or with sizes not known")
    told, valid = known[0], known[-1]
    span = threads if of == "block" else told
    everybody = valid == threads or (told == threads and valid > told)  # a full block asks for no more
    if of == "block" and (not everybody or told < threads):
        raise memory.refusal(f"a total over {valid} of {threads} threads, in a block of {told}")
    if of != "block" and (len(known) > 1 or not 0 < span <= memory.warp or span & (span - 1)):
        raise memory.refusal("a total over a part of a warp that is not understood")
    firsts = {thread - thread % span for thread in active}
    if of != "block" and any(t not in active for f in firsts for t in range(f, min(f + span, threads))):
        raise memory.refusal("the library's total is not called by all threads of a group")
    return LibraryTotal(memory, operator, span, active, for_all=of == "tile")
