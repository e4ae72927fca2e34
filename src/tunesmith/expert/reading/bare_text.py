"""A kernel as far as its text alone goes, and what that leaves open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tunesmith.csource.binding import sizes_of_entry
from tunesmith.csource.nodes import Language
from tunesmith.expert.reading.arguments import DraftArgument
from tunesmith.expert.reading.headers import KernelSignature, SourceModel
from tunesmith.expert.reading.launches import FILL, DraftLaunch, launches_of
from tunesmith.space.expr import is_name


@dataclass(frozen=True)
class BareKernel:
    """A kernel as far as its text alone goes; `entry` with its template arguments."""

    text: str
    file: str
    language: Language
    entry: str
    kernel: KernelSignature
    arguments: tuple[DraftArgument, ...]
    source: SourceModel
    launch: DraftLaunch  # of a launch in the file, or with FILL
    bound: tuple[tuple[str, str], ...] = ()  # template parameters with their arguments
    defines: tuple[tuple[str, str], ...] = ()  # macros given to the compiler
    headers: tuple[tuple[str, str], ...] = ()  # the user's own, as included -> text

    @property
    def entry_sizes(self) -> tuple[str, ...]:
        """Sizes that template arguments follow: `kernel<{head_dim}>`."""
        return tuple(dict.fromkeys(sizes_of_entry(self.entry)))

    @property
    def sizes(self) -> tuple[str, ...]:
        """Every integer parameter, and those."""
        return tuple(dict.fromkeys((*integers_of(self.arguments), *self.entry_sizes)))

    @property
    def host_grid(self) -> tuple[str, ...]:
        """As the file's first launch writes it; by the kernel's own name where the host passes the same."""
        sites = launches_of(self.kernel, self.source)
        own = [text if text in integers_of(self.arguments) else "" for text in self.launch.grid]
        return tuple(said or text for text, said in zip_longest(sites[0].grid, own)) if sites else ()


def integers_of(arguments: Sequence[DraftArgument]) -> list[str]:
    return [a.name for a in arguments if not a.parameter.pointer and a.is_integer]


def not_said(bare: BareKernel) -> list[str]:
    """What the text leaves open, without which it cannot be read."""
    found = []
    if FILL in bare.entry:
        sites = [(s.template_args, s.line, "launches") for s in launches_of(bare.kernel, bare.source)]
        own = (one for one in bare.source.instantiations if one.kernel == bare.kernel.name)
        sites += [(one.template_args, one.line, "instantiates") for one in own]
        arguments, line, how = next((site for site in sites if site[0]), ("", 0, ""))
        said = f"{bare.kernel.qualified_name}<{arguments or _examples(bare)}>"
        told = f"; line {line} {how} it so" if how else ""
        found.append(f"its template arguments are not known: say them, as in --entry '{said}'{told}")
    for argument in bare.arguments:
        parameter = argument.parameter
        if argument.element is None and parameter.base in bare.kernel.template_params and FILL in bare.entry:
            continue  # that is what the entry leaves open
        if argument.element is None or (argument.vector > 1 and not parameter.pointer):
            found.append(f"the type of {parameter.name}, {parameter.type}, is not known")
    wrong = [name for name in bare.sizes if not is_name(name)]
    return found + [f"'{name}' cannot be the name of a size" for name in wrong]


def _examples(bare: BareKernel) -> str:
    """Template arguments of the right kind: numbers where the text declares integers."""

    def example(name: str) -> str:
        kind = re.search(rf"\b(bool|int|unsigned|size_t|long|short|char|u?int\d+_t)\s+{name}\b", bare.text)
        return "float" if kind is None else "true" if kind[1] == "bool" else "128"

    return ", ".join(map(example, bare.kernel.template_params))
