"""What sanitizers say of a kernel: faults that its results need not show, and which tools looked for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tunesmith.text import counted

NOT_IN_FORCE = "not in force"
NOTE = "sanitizer: "  # what a run's note on them begins with
_OF_ONE = re.compile(r"\s+(?:at )?(?:address )?0x[0-9a-f]+|\s+of size \d+(?: bytes?)?", re.IGNORECASE)
MOST_FINDINGS = 12  # of one kernel; one is enough to convict


@dataclass(frozen=True)
class SanitizerFinding:
    """One fault, as often as it was seen. The same tool and kind in the original judges nobody."""

    tool: str
    kind: str  # what is wrong, without addresses and threads
    kernel: str = ""
    place: str = ""  # in the source or the code, as far as the tool says
    words: str = ""  # the tool's own, in one line
    shared: bool = False  # the original has it too
    doubted: bool = False  # of a kind that a tool is known to imagine, and a second look did not confirm it

    @property
    def sentence(self) -> str:
        of = f" in {self.kernel}" if self.kernel else ""
        at = f" at {self.place}" if self.place else ""
        said = f": {self.words}" if self.words else ""
        return f"{self.tool} finds {self.kind}{of}{at}{said}"


@dataclass(frozen=True)
class Sanitized:
    """What was in force for a kernel, and what it found."""

    by: str = ""  # program and version; empty: none
    tools: tuple[str, ...] = ()  # that watched it to the end
    absent: tuple[tuple[str, str], ...] = ()  # those that did not, and why; all of them have an empty name
    cases: tuple[tuple[tuple[str, int], ...], ...] = ()  # sizes at which it ran
    findings: tuple[SanitizerFinding, ...] = ()
    disagreement: str = ""  # of two that watched the same kernel, in one sentence

    @property
    def own(self) -> tuple[SanitizerFinding, ...]:
        """Those that convict: nobody doubts them, and the original does not have them."""
        return tuple(finding for finding in self.findings if not finding.shared and not finding.doubted)

    @property
    def sentence(self) -> str:
        """What was in force, or why nothing was."""
        missing = "; ".join(f"{tool} was not: {why}" if tool else why for tool, why in self.absent)
        if not self.tools:
            return f"{NOT_IN_FORCE}: {missing}" if missing else NOT_IN_FORCE
        held = f"{self.by} ({', '.join(self.tools)}), on {counted(len(self.cases), 'small case')}"
        return "; ".join(part for part in (held, missing, self.disagreement) if part)


def kind_of(words: str) -> str:
    """A fault's first line without what differs from thread to thread and with the width of a load."""
    kind = _OF_ONE.sub("", words.strip().rstrip("."))
    return kind[:1].lower() + kind[1:]


def distinct(findings: Iterable[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
    """The first of each kind in each kernel: a fault is reported for every thread that commits it."""
    found: dict[tuple[str, str, str], SanitizerFinding] = {}
    for finding in findings:
        found.setdefault((finding.tool, finding.kind, finding.kernel), finding)
    return tuple(found.values())[:MOST_FINDINGS]


def compared(
    own: Iterable[SanitizerFinding], original: Iterable[SanitizerFinding]
) -> tuple[SanitizerFinding, ...]:
    """Those of a kernel, marked where the original has the same."""
    known = {(finding.tool, finding.kind) for finding in original}
    return tuple(replace(f, shared=(f.tool, f.kind) in known) for f in own)


def merged(parts: Sequence[Sanitized]) -> Sanitized | None:
    """Of several builds of one configuration: a tool was in force where it was for all of them."""
    if not parts:
        return None
    absent = dict(pair for part in parts for pair in part.absent)
    tools = dict.fromkeys(tool for part in parts for tool in part.tools if tool not in absent)
    return Sanitized(
        next((part.by for part in parts if part.by), ""),
        tuple(tools) if "" not in absent else (),
        tuple(absent.items()),
        tuple(dict.fromkeys(sizes for part in parts for sizes in part.cases)),
        distinct(f for part in parts for f in part.findings),
        "; ".join(dict.fromkeys(part.disagreement for part in parts if part.disagreement)),
    )


def together(device: Sanitized, host: Sanitized) -> Sanitized:
    """What two say of one kernel: the device's own tools, and the host's watch of the same text. What either
    of them finds counts; where only one of two that saw all finds anything, that is said."""
    words = ""
    if device.tools and host.tools and bool(device.own) != bool(host.own):
        finder, other = (device, host) if device.own else (host, device)
        words = f"{other.by} does not find what {finder.by} finds, which counts"
    missing = [(tool or "the device's sanitizer", why) for tool, why in device.absent]
    missing += [(f"the cpu device's {tool or 'watch'}", why) for tool, why in host.absent]
    return Sanitized(
        " and ".join(part.by for part in (device, host) if part.by and part.tools),
        (*device.tools, *host.tools),
        tuple(missing),
        tuple(dict.fromkeys((*device.cases, *host.cases))),
        distinct((*device.findings, *host.findings)),
        words,
    )


def told(watched: Iterable[tuple[str, Sanitized | None]]) -> tuple[str, ...]:
    """Of configurations by name: what was in force for those that were verified, and what it found."""
    known = [(name, one) for name, one in watched if one is not None]
    lines = dict.fromkeys(f"sanitizers in force: {one.sentence}" for _, one in known if one.tools)
    lines |= dict.fromkeys(f"sanitizers were {one.sentence}" for _, one in known if not one.tools)
    lines |= dict.fromkeys(f"{name}: {one.disagreement}" for name, one in known if one.disagreement)
    for name, one in known:
        for finding in one.findings:
            also = "; so in the original: that judges nobody" if finding.shared else ""
            doubt = "; a second look did not confirm it: that judges nobody" if finding.doubted else ""
            lines[f"{name}: {finding.sentence}{also or doubt}"] = None
    return tuple(lines)


def notes_beside(notes: Sequence[str], lines: Sequence[str]) -> tuple[str, ...]:
    """A run's notes, each once; what was expected of sanitizers gives way to `lines` on what came of it."""
    return tuple(dict.fromkeys(note for note in notes if not lines or not note.startswith(NOTE)))
