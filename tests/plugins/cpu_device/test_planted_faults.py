"""Faults that results need not show are found with their lines, and what is right is not accused.

They lie in `kernels/`: a line at which one is found ends with `// here`, and its other with `// other`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cpu_here import needs_cpu
from tests.plugins.cpu_device.watched_kernels import watched
from tunesmith.run.events import SanitizerFinding

pytestmark = needs_cpu


@dataclass(frozen=True)
class Planted:
    text: str
    fault: str  # its kind; empty: nothing is wrong
    words: str
    here: int  # lines of what the compiler is given
    other: int

    def places_in(self, found: SanitizerFinding) -> bool:
        places = f"{found.place} {found.words}"
        return all(f"kernel.cu:{line}" in places for line in (self.here, self.other) if line)


def read_planted(file: str, first: int = 1) -> dict[str, Planted]:
    """By name; `first`: the number of the first line of a text."""
    kernels = {}
    for part in (Path(__file__).parent / "kernels" / file).read_text().split("// ==== ")[1:]:
        name, *lines = part.rstrip("\n").split("\n")
        about = [line for line in lines if line.startswith(("// fault: ", "// words: "))]
        told = dict(line.removeprefix("// ").split(": ", 1) for line in about)
        text = lines[len(about) :]
        marked = {line.rpartition("  // ")[2]: number for number, line in enumerate(text, first)}
        places = marked.get("here", 0), marked.get("other", 0)
        kernels[name] = Planted("\n".join(text) + "\n", told.get("fault", ""), told.get("words", ""), *places)
    return kernels


def names(kernels: dict[str, Planted], faulty: bool) -> list[str]:
    return [name for name, kernel in kernels.items() if bool(kernel.fault) == faulty]


PLANTED, HIDDEN = read_planted("planted.cu", 4), read_planted("hidden.cu", 4)  # bodies, behind three lines
SOURCES = read_planted("sources.cu")


def test_every_fault_has_its_line() -> None:
    found = {
        name: one for kernels in (PLANTED, HIDDEN, SOURCES) for name, one in kernels.items() if one.fault
    }
    assert (len(found), [name for name, one in found.items() if not one.here]) == (37, [])


@pytest.mark.parametrize("name", names(PLANTED, True))
@pytest.mark.few(4)
def test_a_fault_is_found_with_its_line(name: str, tmp_path: Path) -> None:
    kernel = PLANTED[name]
    found = {finding.kind: finding for finding in watched(kernel.text, tmp_path)}
    assert kernel.fault in found, found
    own = found[kernel.fault]
    assert (own.place, own.kernel) == (f"kernel.cu:{kernel.here}", "k")
    assert kernel.places_in(own), own


@pytest.mark.parametrize("name", names(HIDDEN, True))
@pytest.mark.few(5)
def test_a_fault_that_a_gpu_hides_is_found_with_its_line(name: str, tmp_path: Path) -> None:
    """In atomics, groups of threads, barriers of a part of a block and casts."""
    kernel = HIDDEN[name]
    found = {finding.kind: finding for finding in watched(kernel.text, tmp_path, seeds=2)}
    assert kernel.fault in found, found
    own = found[kernel.fault]
    assert own.kernel == "k"
    assert own.place in {f"kernel.cu:{kernel.here}", f"kernel.cu:{kernel.other}"}, own
    assert kernel.places_in(own), own
    assert kernel.words in own.words


@pytest.mark.parametrize("name", names(SOURCES, True))
@pytest.mark.few(2)
def test_a_fault_in_functions_and_templates_is_found_with_its_line(name: str, tmp_path: Path) -> None:
    kernel = SOURCES[name]
    found = {finding.kind: finding for finding in watched("", tmp_path, kernel.text, seeds=2)}
    assert kernel.fault in found, found
    assert kernel.places_in(found[kernel.fault]), found[kernel.fault]


@pytest.mark.parametrize("name", names(PLANTED, False))
@pytest.mark.few(2)
def test_what_is_right_is_not_accused(name: str, tmp_path: Path) -> None:
    assert watched(PLANTED[name].text, tmp_path) == ()


@pytest.mark.parametrize("name", [*names(HIDDEN, False), *names(SOURCES, False)])
@pytest.mark.few(3)
def test_what_is_right_in_these_is_not_accused(name: str, tmp_path: Path) -> None:
    body, source = (HIDDEN[name].text, "") if name in HIDDEN else ("", SOURCES[name].text)
    language = "hip" if "hip/" in source else "cuda"
    assert watched(body, tmp_path, source, seeds=6, language=language) == ()
