"""What holds back the processes that run code which is not ours, as far as it is in force."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

AUTO, REQUIRED, OFF = MODES = ("auto", "required", "off")
ENVIRONMENT, NETWORK, FILES, CALLS, LIMITS = "environment", "network", "files", "system calls", "limits"
NEEDED = (NETWORK, FILES)  # without these `required` refuses


@dataclass(frozen=True)
class ProtectionLayer:
    name: str
    in_force: bool
    detail: str  # by what, or why not


@dataclass(frozen=True)
class Protection:
    """Of a worker, in its own words before anything else ran in it."""

    layers: tuple[ProtectionLayer, ...]

    def missing(self, names: Iterable[str]) -> tuple[ProtectionLayer, ...]:
        held = {layer.name for layer in self.layers if layer.in_force}
        by_name = {layer.name: layer for layer in self.layers}
        absent = (name for name in names if name not in held)
        return tuple(by_name.get(name, ProtectionLayer(name, False, "nobody says")) for name in absent)

    @property
    def sentence(self) -> str:
        held = ", ".join(layer.name for layer in self.layers if layer.in_force)
        without = "; ".join(f"{layer.name}: {layer.detail}" for layer in self.layers if not layer.in_force)
        return f"workers are sandboxed ({held or 'nothing'})" + (f", but not in {without}" if without else "")
