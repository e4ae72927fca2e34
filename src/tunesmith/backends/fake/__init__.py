"""The simulated device: kernels that say what they compute, cost and do wrong.

Their templates stand in the kernel's own comments, one for each move:

    //draft: wide
    //| // /// tunesmith
    //| // [params]
    //| // BLOCK = [64, 128]
    //| ...

So everything around an author is tested without one. Values it is told to leave out go; with `//refuses:` in
place of `//draft:` the rest of the line is why there is no template. `//mended:` is what a second try gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tunesmith.backends.backend_kind import BackendKind, DoctorFinding
from tunesmith.backends.fake.simulated import FakeBackend
from tunesmith.problem.device import Device
from tunesmith.problem.languages import FAKE
from tunesmith.problem.problem import Problem
from tunesmith.run.ports import Declined, Refactoring, Written

_HEADING = re.compile(r"//(draft|refuses|mended): *(\w+) *(.*)")
_LINE = re.compile(r"//\| ?(.*)")


@dataclass(frozen=True)
class Scripted:
    text: str
    refusal: str = ""


def drafts_in(source: str) -> dict[str, Scripted]:
    """By the name of the move that they add."""
    return {name: script for kind, name, script in _read(source) if kind != "mended"}


class FakeAuthor:
    reading: tuple[str, ...] = ("a simulated kernel says itself what it does",)

    def moves_in(self, problem: Problem) -> tuple[str, ...]:
        return tuple(drafts_in(problem.kernel.text))

    def available(
        self, problem: Problem, device: Device
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        del device
        found = drafts_in(problem.kernel.text)
        names = tuple(name for name, script in found.items() if not script.refusal)
        return names, tuple((name, script.refusal) for name, script in found.items() if script.refusal)

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        del device
        if not task.moves:
            return Declined("the kernel has no draft of a template in its comments")
        wanted = task.moves[-1]
        found = [(kind, script) for kind, name, script in _read(problem.kernel.text) if name == wanted]
        mended = [script for kind, script in found if kind == "mended"]
        script = mended[0] if task.failure and mended else found[0][1]
        if script.refusal:
            return Declined(script.refusal)
        text = script.text
        for name, value in task.without:
            text = re.sub(rf"^(// {name} = \[.*?)\b{value}\b,? ?(.*)$", r"\1\2", text, flags=re.MULTILINE)
        return Written(text, task.moves)


def _read(source: str) -> Iterator[tuple[str, str, Scripted]]:
    kind = name = refusal = ""
    lines: list[str] = []
    for line in [*source.splitlines(), "//draft: end"]:
        if heading := _HEADING.fullmatch(line):
            if name:
                yield kind, name, Scripted("\n".join([*lines, ""]), refusal)
            kind, name, refusal = heading[1], heading[2], heading[3]
            lines = []
        elif (own := _LINE.fullmatch(line)) and name:
            lines.append(own[1])


KIND = BackendKind(
    name="fake",
    languages=(FAKE,),
    make=lambda _argument: FakeBackend(),
    plays_absent=True,
    check=lambda _devices: [DoctorFinding("simulated device (fake, replay)", True, "always there")],
    no_profiles="a simulated device has nothing to profile",
    no_counters="a simulated device has no counters",
    author=FakeAuthor,
)
