"""Who wrote a template: what a model once wrote is vetted for ever, whoever searches it again."""

from __future__ import annotations

from tunesmith.run.events import Started

UNKNOWN_AUTHOR = "an unknown author"  # may have been a model: what it wrote is vetted as a model's is
TEMPLATE_HEADER = "template-header:"  # begins the name of a file: a header of the template that was given


def author_of(started: Started, given: str) -> str:
    """Of a template that was given, the first one's name is empty; nobody: the user, or the expert."""
    return dict(started.authors).get(given, "")
