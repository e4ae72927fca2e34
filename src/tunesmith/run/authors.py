"""Who wrote a template: what a model once wrote is vetted for ever, whoever searches it again."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.run.events import Decided, Drafted, Started

UNKNOWN_AUTHOR = "an unknown author"  # may have been a model: what it wrote is vetted as a model's is
TEMPLATE_HEADER = "template-header:"  # begins the name of a file: a header of the template that was given


def author_of(started: Started, given: str) -> str:
    """Of a template that was given, the first one's name is empty; nobody: the user, or the expert. An older
    run that searches again what a run or the library had does not say."""
    if started.authors is not None:
        return dict(started.authors).get(given, "")
    is_users = not started.origin or started.origin.startswith("template ")
    # No model has headers of its own.
    is_users |= not given and any(name.startswith(TEMPLATE_HEADER) for name, _ in started.files)
    return "" if is_users else UNKNOWN_AUTHOR


def with_author(drafted: Drafted, started: Started | None, decided: Decided | None) -> Drafted:
    """Older runs lost the author of what they took from the library."""
    is_old = started is not None and started.authors is None
    if drafted.author or not is_old or decided is None or not decided.is_stored:
        return drafted
    return replace(drafted, author=UNKNOWN_AUTHOR)
