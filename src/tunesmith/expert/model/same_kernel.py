"""Whether two readings of a text, by different conditions, are of one kernel."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.expert.model.kernel import KernelModel, NotReadable


def is_same(one: KernelModel, other: KernelModel | NotReadable) -> bool:
    """Whether two readings are of the same kernel, with what it calls, whatever is noted of them."""
    if isinstance(other, NotReadable):
        return False
    called = [_called(model.function, model.source) for model in (one, other)]
    plain = replace(other, source=one.source, function=one.function, notes=one.notes)
    return called[0] == called[1] and plain == one


def _called(function: c.Function, source: c.Source) -> tuple[str, ...]:
    """The text of all that a function calls in the file."""
    found, pending = dict[str, str](), [function]
    while pending:
        for call in walk.calls_in(pending.pop().body):
            own = [f for f in source.functions if f.name == call.function and f.text not in found]
            found |= {f.text: f.name for f in own}
            pending += own
    return tuple(sorted(found))
