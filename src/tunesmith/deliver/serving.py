"""Delivered kernels read back: which of them serves a call of given sizes, and how it is launched there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tunesmith.core.codec import Malformed, decode
from tunesmith.core.errors import BadInput
from tunesmith.core.expr.expression import Undefined, parse
from tunesmith.core.expr.grammar import ExprError
from tunesmith.deliver.tuned import Dispatch, DispatchEntry

Three = tuple[int, int, int]


@dataclass(frozen=True)
class KernelLaunch:
    """One launch in numbers. `grid` counts blocks (work-groups), `shared` bytes; `args` are the names of the
    problem's arguments, in the kernel's order."""

    entry: str
    grid: Three
    block: Three
    shared: int
    args: tuple[str, ...]


@dataclass(frozen=True)
class TunedKernel:
    file: Path
    flags: tuple[str, ...]
    config: dict[str, int] | None  # None: the original
    launches: tuple[KernelLaunch, ...]

    @property
    def source(self) -> str:
        return self.file.read_text(encoding="utf-8")


class TunedKernels:
    """A run's folder `tuned`, whose `dispatch.json` says what serves which sizes."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / "dispatch.json"
        try:
            self.dispatch = decode(path.read_bytes(), Dispatch, "dispatch")
        except OSError as error:
            raise BadInput(f"{path}: cannot be read: {error.strerror}; name a run's folder `tuned`") from None
        except Malformed as error:
            raise BadInput(f"{path}: {error}") from None

    def for_sizes(self, **sizes: int) -> TunedKernel:
        """The first entry whose condition holds; the last is the original, whose condition always does."""
        for entry in self.dispatch.entries:
            if self._value(entry.when, sizes):
                return self._kernel(entry, sizes)
        raise BadInput(f"{self.folder}: no entry serves {sizes}; a dispatch ends with the original")

    def _kernel(self, entry: DispatchEntry, sizes: dict[str, int]) -> TunedKernel:
        launches = tuple(
            KernelLaunch(
                each.entry,
                self._three(each.grid, sizes),
                self._three(each.block, sizes),
                self._value(each.shared, sizes) if each.shared else 0,
                each.args,
            )
            for each in entry.launches
        )
        flags = entry.flags
        if entry.headers is not None:
            flags = (*flags, f"-I{self.folder / entry.headers.folder}")
        return TunedKernel(self.folder / entry.file, flags, entry.config, launches)

    def _three(self, texts: tuple[str, ...], sizes: dict[str, int]) -> Three:
        values = [*(self._value(text, sizes) for text in texts), 1, 1]
        return values[0], values[1], values[2]

    def _value(self, text: str, sizes: dict[str, int]) -> int:
        try:
            return int(parse(text).evaluate(sizes))
        except (ExprError, Undefined) as error:
            given = ", ".join(f"{name}={value}" for name, value in sizes.items()) or "no sizes"
            raise BadInput(f"{self.folder}: {text!r} has no value with {given}: {error}") from None
