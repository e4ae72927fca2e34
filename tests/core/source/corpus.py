"""Every kernel of the repository with the entry its problem names: what the reader must understand."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_ROOT = Path(__file__).parents[3]
_LANGUAGES: dict[str, Literal["cuda", "hip", "opencl"]] = {".cu": "cuda", ".hip": "hip", ".cl": "opencl"}


@dataclass(frozen=True)
class Example:
    path: Path
    entry: str

    @property
    def language(self) -> Literal["cuda", "hip", "opencl"]:
        return _LANGUAGES[self.path.suffix]

    @property
    def text(self) -> str:
        return self.path.read_text()

    def __str__(self) -> str:
        return str(self.path.parent.relative_to(_ROOT))


def _found() -> list[Example]:
    problems = [
        *sorted(_ROOT.glob("examples/*/*/problem.toml")),
        *sorted(_ROOT.glob("tests/fixtures/zoo/*/problem.toml")),
        *sorted(_ROOT.glob("tests/fixtures/bad_cuda/*/problem.toml")),
        *sorted(_ROOT.glob("tests/fixtures/hostile_*/problem.toml")),
    ]
    found = []
    for problem in problems:
        sources = [path for path in sorted(problem.parent.glob("kernel.*")) if path.suffix in _LANGUAGES]
        table = tomllib.loads(problem.read_text())
        entry = table.get("kernel", {}).get("entry")
        if entry and "{" in entry:  # a size in it: as the first workload has it
            entry = entry.format(**next(iter(table["workloads"].values())))
        found += [Example(source, entry) for source in sources if entry]
    return found


EXAMPLES = _found()
