"""What the user takes home. Returns names and bytes; who writes them is not its business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tunesmith.base import plugins
from tunesmith.base.errors import BadInput

if TYPE_CHECKING:
    from tunesmith.deliver.artefact import Target


def names_for(language: str) -> list[str]:
    """The targets that a kernel in this language can have; of an unknown one all."""
    every = list(plugins.plugin_names("exports"))
    return [name for name in every if language in _languages_of(name)] or every


def _languages_of(name: str) -> Sequence[str]:
    return plugins.plugin_words("exports", name).split() or target_named(name).languages


def target_named(name: str, language: str = "") -> Target:
    """`language`: of the run that is to be exported, where that is known."""
    if not plugins.is_known("exports", name):
        fault = f"there is no export {name!r}" if name else "an export needs a target"
        raise BadInput(fault, hint=f"name one of these with --to: {', '.join(names_for(language))}")
    found: Target = plugins.load_plugin("exports", name)
    return found
