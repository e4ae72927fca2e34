"""Files of a repository by their path, and which of them an #include means."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# What a framework brings is not taken where types and macros of ours stand for it.
_FRAMEWORKS = ("torch/", "c10/", "caffe2/", "ATen/", "pybind11/", "THC/")
_TAKEN = ("ATen/native/",)  # kernels' own headers, which happen to live there
# In the framework's own repository, headers with device code are read: for what we have nothing for.
_OWN = ("c10/", "ATen/")
_NEVER = ("c10/macros/",)
_DETAIL = ("ATen/cuda/detail/",)
_DEVICE = re.compile(r"\b(?:__device__|C10_DEVICE|C10_HOST_DEVICE|C10_HOST_DEVICE_NOINLINE)\b")
_OWN_PATH = re.compile(r"(?:^|/)(?:c10|ATen)/(?!native/)")


class SourceTree(Protocol):
    """A repository's files; paths have forward slashes and count from its top."""

    @property
    def paths(self) -> Sequence[str]: ...

    def read(self, path: str) -> str: ...


@dataclass(frozen=True)
class TextTree:
    """A repository that is held in memory."""

    texts: tuple[tuple[str, str], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.texts)

    def read(self, path: str) -> str:
        return dict(self.texts)[path]


def is_frameworks_own(path: str) -> bool:
    """Whether a file of a repository is one of a framework's, whose repository it then is."""
    return _OWN_PATH.search(path) is not None


def is_frameworks(spelling: str) -> bool:
    return spelling.startswith(_FRAMEWORKS) and not spelling.startswith(_TAKEN)


class Includes:
    """`folders`: where headers in <> and "" are looked for besides the folder of whoever includes them."""

    def __init__(self, tree: SourceTree, folders: Sequence[str] = ()) -> None:
        self._tree = tree
        self._paths = frozenset(tree.paths)
        self._folders = tuple(folders)
        self._by_name: dict[str, list[str]] = {}
        for path in tree.paths:
            self._by_name.setdefault(posixpath.basename(path), []).append(path)

    def find(self, spelling: str, includer: str) -> str | None:
        """The file that is meant; where no folder is known, the one whose path ends so, the nearest first."""
        if is_frameworks(spelling):
            return self._frameworks_own(spelling)
        for folder in (posixpath.dirname(includer), *self._folders, ""):
            path = posixpath.normpath(posixpath.join(folder, spelling))
            if path in self._paths:
                return path
        ending = posixpath.normpath(spelling)
        while ending.startswith("../"):
            ending = ending[3:]
        alike = self._by_name.get(posixpath.basename(ending), ())
        found = [path for path in alike if path.endswith(f"/{ending}")]
        return min(found, key=lambda path: (-_shared(path, includer), len(path), path), default=None)

    def _frameworks_own(self, spelling: str) -> str | None:
        if not spelling.startswith(_OWN) or spelling.startswith(_NEVER):
            return None
        alike = self._by_name.get(posixpath.basename(spelling), ())
        found = min((path for path in alike if f"/{path}".endswith(f"/{spelling}")), key=len, default=None)
        if found is None or found.endswith(".cuh") or spelling.startswith(_DETAIL):
            return found
        return found if _DEVICE.search(self._tree.read(found)) else None


def _shared(left: str, right: str) -> int:
    parts = zip(left.split("/"), right.split("/"), strict=False)
    count = 0
    for one, other in parts:
        if one != other:
            break
        count += 1
    return count
