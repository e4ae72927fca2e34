"""What is said of an extraction: what was found, what was taken for granted, what is missing and where."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tunesmith.capture.records import CapturedKernel
from tunesmith.session.extract.building import KERNEL_FILE
from tunesmith.session.extract.dispatching import ChosenLaunch
from tunesmith.session.extract.finding import FoundKernel
from tunesmith.session.extract.host import HostReading
from tunesmith.session.extract.host_sizes import HostFacts
from tunesmith.session.extract.slicing import FRAMEWORK
from tunesmith.session.extract.system import is_system
from tunesmith.session.extract.tree import is_frameworks
from tunesmith.session.extract.trimming import BuildAttempt, FittedSlice
from tunesmith.text import counted, cut


def report_of(
    found: FoundKernel,
    host: HostReading,
    instance: ChosenLaunch,
    facts: HostFacts | None,
    fitted: FittedSlice,
    entry: str,
) -> tuple[str, ...]:
    files = dict.fromkeys(item.path for item in fitted.slice.items if item.path != FRAMEWORK)
    said = [
        f"found in {found.item.place}",
        f"the slice has {counted(len(fitted.slice.items), 'declaration')} of {', '.join(files)}",
    ]
    if fitted.left_out:
        said.append(
            f"{fitted.left_out} more by name were left out: the machine code is the same without them"
        )
    if fitted.slice.uses_framework:
        said.append(f"a framework's types and macros are ours, in {FRAMEWORK}")
    if instance.launch is None:
        said.append("no launch of it was found in the repository's host code")
    else:
        more = f", one of {instance.others} launches" if instance.others > 1 else ""
        said.append(f"launched in {instance.launch.place}{more}: {entry}")
    for name, values in instance.chosen.offered:
        said.append(f"{name} may be {', '.join(values)}; choose another with --entry")
    for name, guess in instance.chosen.guessed:
        said.append(
            f"nobody says what {name} is where it is launched: {guess} was taken, another with --entry"
        )
    if instance.chosen.open_names:
        names = ", ".join(instance.chosen.open_names)
        said.append(f"nobody says what {names} is: say it with --entry '{found.item.name}<...>'")
    if facts is not None:
        said += [f"not over sizes, so left to you: {text}" for text in facts.unread]
    asked = [f"{name} ({place})" for name, place in found.sources.undefined if _is_a_flag(name)]
    if asked:
        said.append(f"taken as not defined: {', '.join(asked[:8])}; --define NAME if your build does")
    said += [f"unreadable host code: {trouble}" for trouble in host.troubles]
    if fitted.attempt.ok:
        said.append(f"compiled with {fitted.attempt.compiler}")
    return tuple(said)


def _is_a_flag(name: str) -> bool:
    return not name.startswith("_") and name.isupper() and "ROCM" not in name and "HIP" not in name


def missing_in(found: FoundKernel, fitted: FittedSlice) -> tuple[str, ...]:
    """What the slice lacks, with the line of the repository that asks for it."""
    said: list[str] = []
    named = dict.fromkeys(re.findall(r'identifier "(\w+)" is undefined', fitted.attempt.log))
    for name in named:
        places = [
            f"{item.path}:{token.line}"
            for item in fitted.slice.items
            for token in item.tokens
            if token.text == name
        ]
        where = f", used in {places[0]}," if places else ""
        said.append(f"{name}{where} is defined nowhere in what {found.item.path} includes")
    lost = [
        f"{one.name} ({one.path}:{one.line})"
        for one in found.sources.outside
        if one.spelling.startswith('"') and not is_frameworks(one.name) and not is_system(one.name)
    ]
    if lost:
        said.append(f"not in the repository: {', '.join(lost[:6])}; say where headers lie with -I DIR")
    if not named or not fitted.attempt.log.startswith(KERNEL_FILE):
        said.append(cut(fitted.attempt.log.strip(), 2000))
    return tuple(said)


def compared_code(kernel: CapturedKernel, attempt: BuildAttempt) -> Iterator[str]:
    """Whether what was built is what ran."""
    if not attempt.ok:
        return
    if not kernel.code:
        yield "whether these sources are what ran is not known: the machine code that ran was not to be had"
    elif not attempt.code:
        yield "whether these sources are what ran is not known: nothing was compiled to compare"
    elif kernel.code == attempt.code:
        yield "its machine code is that of the kernel that ran"
    else:
        ran, built = kernel.binary_version, attempt.capability
        other = f"sm_{built} instead of sm_{ran}, " if ran and built and ran != built else ""
        yield (
            f"its machine code differs from that of the kernel that ran: {other}another compiler, other "
            "flags (--flag), or other sources; captured memory (capture --keep) tells which"
        )
