"""The folders that a client names: a path, with all its links followed, leads into one or is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tunesmith.errors import BadInput

_RULE = "only the folders that the client names are touched"


@dataclass(frozen=True)
class ClientFolders:
    """Resolved, the first the one that relative paths count from. Empty: nothing may be touched."""

    folders: tuple[Path, ...]
    why_none: str = "the client names none, and the server was started without --root"

    @property
    def first(self) -> Path:
        if not self.folders:
            hint = "have the client name its folders (roots), or start the server with --root DIR"
            raise BadInput(f"{_RULE}: {self.why_none}", hint=hint)
        return self.folders[0]

    def inside(self, given: str) -> Path:
        """The path as it is once every link is followed; BadInput where that is not in one of them."""
        if not given or "\0" in given:
            raise BadInput(f"a path is a text with at least one letter, got {given!r}", hint="name a path")
        try:
            path = (self.first / given).resolve()
        except (OSError, RuntimeError) as error:  # links in a circle, a name that is too long
            hint = "name another path"
            raise BadInput(f"the path cannot be followed: {error}", where=given, hint=hint) from error
        if not any(path.is_relative_to(folder) for folder in self.folders):
            named = ", ".join(map(str, self.folders))
            own = "" if str(path) == given else f", which is {path}"
            hint = f"name a path in one of them: {named}; or have the client name that folder too"
            raise BadInput(f"{_RULE}; got {given}{own}", hint=hint)
        return path

    def root_of(self, path: Path) -> Path:
        """The one that a path lies in, the innermost."""
        around = [folder for folder in self.folders if path.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=self.first)


def allowed(named: Iterable[str] | None, bounds: Iterable[Path]) -> ClientFolders:
    """What the client names as addresses (None: it cannot say), within the bounds that whoever started the
    server set; without bounds all that it names, and without its word the bounds."""
    limits = tuple(bound.resolve() for bound in bounds)
    if named is None:
        return ClientFolders(limits)
    listed = list(named)
    wanted = tuple(folder for address in listed if (folder := folder_of(address)) is not None)
    if not limits:
        none_of = (
            f"of what it names none is a folder here: {', '.join(listed)}" if listed else "it names none"
        )
        return ClientFolders(wanted, none_of)
    inner = [folder for folder in wanted if any(folder.is_relative_to(limit) for limit in limits)]
    inner += [limit for limit in limits if any(limit.is_relative_to(folder) for folder in wanted)]
    outside = f"what it names ({', '.join(listed) or 'nothing'}) is outside of --root"
    return ClientFolders(tuple(dict.fromkeys(inner)), outside)


def folder_of(address: str) -> Path | None:
    """Of `file:///home/me/project`; None where it is no folder of this machine."""
    try:
        parts = urlsplit(address)
        path = Path(unquote(parts.path))
        is_here = parts.scheme == "file" and parts.netloc in ("", "localhost") and path.is_absolute()
        return path.resolve() if is_here and path.is_dir() else None
    except (OSError, ValueError):
        return None
