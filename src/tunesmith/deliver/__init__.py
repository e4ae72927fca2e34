"""What the user takes home. Returns names and bytes; who writes them is not its business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tunesmith.base import plugins
from tunesmith.base.errors import BadInput

if TYPE_CHECKING:
    from tunesmith.deliver.artefact import Target


def names_for(language: str) -> list[str]:
    """The targets that a kernel in this language can have; all where it is not known: empty."""
    offered = {name: _languages_of(name) for name in plugins.plugin_names("exports")}
    return [name for name, known in offered.items() if language in known or (known and not language)]


def no_target_takes(language: str) -> str:
    return f"no export takes {language} kernels"


def _languages_of(name: str) -> Sequence[str]:
    """None of one that cannot be used."""
    if words := plugins.plugin_words("exports", name):  # of one of ours, which need not be loaded
        return words.split()
    found = _target_or_fault(name)
    return () if isinstance(found, BadInput) else found.languages


def _target_or_fault(name: str) -> Target | BadInput:
    from tunesmith.deliver.artefact import Target

    return plugins.load_or_fault("exports", name, Target)


def target_named(name: str, language: str = "") -> Target:
    """`language`: of the run that is to be exported, where that is known."""
    if not plugins.is_known("exports", name):
        faults = [f"there is no export {name!r}" if name else "an export needs a target"]
        names = names_for(language)
        strange = [one for one in plugins.plugin_names("exports") if not plugins.plugin_words("exports", one)]
        looks = map(_target_or_fault, strange)
        faults += [look.message for look in looks if isinstance(look, BadInput)]
        hint = f"name one of these with --to: {', '.join(names)}" if names else no_target_takes(language)
        raise BadInput("\n".join(faults), hint=hint)
    found = _target_or_fault(name)
    if isinstance(found, BadInput):
        raise found
    return found
