"""A parameter with its finite domain, and a configuration: one value for each parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tunesmith.errors import BadInput
from tunesmith.space.expr import LIMIT, is_name
from tunesmith.text import named_values


@dataclass(frozen=True)
class Config:
    """Parameter values in the order the parameters are declared; equal only in the same order, and of the
    same template: `candidate` says which of a run's templates they belong to, empty for the one given."""

    items: tuple[tuple[str, int], ...]
    candidate: str = ""

    @classmethod
    def of(cls, values: Mapping[str, int]) -> Config:
        return cls(tuple(values.items()))

    def __getitem__(self, name: str) -> int:
        for key, value in self.items:
            if key == name:
                return value
        raise KeyError(name)

    def __str__(self) -> str:
        return named_values(self.items) or "as written"

    @property
    def label(self) -> str:
        """The values, and whose they are where a run may have several templates."""
        if self.candidate and not self.items:
            return f"kernel {self.candidate}"
        return f"{self} of template {self.candidate}" if self.candidate else str(self)

    def as_dict(self) -> dict[str, int]:
        return dict(self.items)

    def replace(self, name: str, value: int) -> Config:
        self[name]  # a name that is not there is an error, not an addition
        return replace(self, items=tuple((key, value if key == name else old) for key, old in self.items))


@dataclass(frozen=True)
class Param:
    """`values` in the declared order: neighbours are adjacent in it, unless the parameter is categorical."""

    name: str
    values: tuple[int, ...]
    categorical: bool = False

    def __post_init__(self) -> None:
        if not is_name(self.name):
            hint = "choose a name that can be a C macro and is no word of the expression language"
            fault = f"a parameter is named by letters, digits and underscores, got {self.name!r}"
            raise BadInput(fault, hint=hint)
        if not self.values:
            raise BadInput(f"parameter {self.name} has no values", hint=f"write {self.name} = [1, 2, 4]")
        for value in self.values:
            if type(value) is not int or abs(value) > LIMIT:
                fault = f"parameter {self.name} has the value {value!r}: values are integers up to 2**62"
                raise BadInput(fault, hint="number the choices, 0 and 1 for off and on")
        if repeated := sorted(value for value, times in Counter(self.values).items() if times > 1):
            fault = f"parameter {self.name} lists {', '.join(map(str, repeated))} more than once"
            raise BadInput(fault, hint="list every value once")

    @cached_property
    def positions(self) -> dict[int, int]:
        """Where each value stands in the declared order."""
        return {value: position for position, value in enumerate(self.values)}

    def neighbours(self, value: int) -> tuple[int, ...]:
        position = self.positions[value]
        if self.categorical:
            return self.values[:position] + self.values[position + 1 :]
        return self.values[max(position - 1, 0) : position] + self.values[position + 1 : position + 2]
