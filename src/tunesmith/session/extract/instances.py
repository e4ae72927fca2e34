"""Which launches of the host's are of the same kernel: a template has one for each list of arguments."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.expert.reading.headers import elements_of
from tunesmith.session.extract.dispatching import ChosenLaunch
from tunesmith.session.extract.host import HostLaunch
from tunesmith.session.extract.records import split_arguments


def is_alone(meant: ChosenLaunch, launches: Sequence[HostLaunch]) -> bool:
    """Whether every other launch is surely of another instance than the one that is meant."""
    own = meant.chosen.arguments
    return meant.launch is not None and all(one is meant.launch or _differs(one, own) for one in launches)


def _differs(launch: HostLaunch, arguments: Sequence[str]) -> bool:
    aliases = (name for name, _ in launch.site.aliases)
    unsure = {*launch.around.params, *launch.macros, *launch.site.local, *aliases}
    parts = [part.strip() for part in split_arguments(launch.site.template_args or "")]
    pairs = [(_fixed(a), _fixed(b)) for a, b in zip(parts, arguments, strict=False) if a not in unsure]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _fixed(argument: str) -> tuple[str, int] | None:
    """What it means wherever it stands: a number, or a type of the language; None: that depends."""
    text = " ".join(argument.split())
    if text.isdecimal():
        return "", int(text)
    if text in ("true", "false"):
        return "", int(text == "true")
    element, count = elements_of(text, "cuda")
    return None if element is None or "::" in text else (element, count)
