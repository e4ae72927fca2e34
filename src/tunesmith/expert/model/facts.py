"""What moves rely on, each with its ground: a proof, the kernel's own threads, or the contract's word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tunesmith.csource.effects import Effects, Program, effects_of
from tunesmith.csource.types import is_integer

if TYPE_CHECKING:
    from tunesmith.csource.nodes import Source
    from tunesmith.expert.model.kernel import Each

# On the model; what different threads of the kernel do with no order between them already; the problem file.
Ground = Literal["proved", "the kernel's own", "the contract's word"]


@dataclass(frozen=True)
class Fact:
    what: str
    ground: Ground
    where: str  # the line or the promise that it comes from


def order_free(line: int, *, shared: bool) -> Fact:
    """That a loop's turns may come in any order; `shared`: different threads take them today."""
    ground: Ground = "the kernel's own" if shared else "proved"
    return Fact("the turns of a loop may come in any order", ground, f"line {line}")


def facts_of(
    loops: Sequence[Each], source: Source, aliases: Mapping[str, str], arrays: Sequence[str]
) -> tuple[Fact, ...]:
    """Everything that a reading relies on, once each, in the order of the steps."""
    return tuple(dict.fromkeys([*_of_loops(loops, source), *_of_memory(aliases, arrays)]))


def _of_loops(loops: Sequence[Each], source: Source) -> Iterator[Fact]:
    program = Program.of(source)
    for loop in loops:
        where = f"line {loop.line}"
        if loop.order is not None:
            yield loop.order
        for total in loop.totals:
            what = f"'{total.name}' may be joined in another order"
            exact = is_integer(total.type) or total.operator in ("max", "min")
            yield Fact(what, "proved" if exact else "the contract's word", where if exact else "[accuracy]")
        if effects_of(loop.body, program) & Effects.STOPS:
            yield Fact("the kernel does not stop itself", "the contract's word", where)
        if loop.again:
            yield Fact("every element it stores has been stored before", "proved", where)


def _of_memory(aliases: Mapping[str, str], arrays: Sequence[str]) -> Iterator[Fact]:
    for array, other in aliases.items():
        yield Fact(f"'{array}' is the same memory as '{other}'", "the contract's word", "alias")
    apart = [array for array in arrays if array not in aliases]
    if len(apart) > 1:
        yield Fact(f"{', '.join(apart)} do not overlap", "the contract's word", "no alias")
