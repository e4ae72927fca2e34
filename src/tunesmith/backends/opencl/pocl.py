"""The PoCL that set-up unpacks where no wheel of it serves: how a process comes to see it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def environment(prefix: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """What a process must be started with to see the PoCL under `prefix`; empty where there is none, or where
    the user points the loader elsewhere. The loader of libraries reads its variable only at the start."""
    folder = prefix / "pocl"
    if not (folder / "vendors" / "pocl.icd").is_file() or inherited.get("OCL_ICD_VENDORS"):
        return {}
    libraries = filter(None, [str(folder / "lib"), inherited.get("LD_LIBRARY_PATH")])
    return {"OCL_ICD_VENDORS": str(folder / "vendors"), "LD_LIBRARY_PATH": os.pathsep.join(libraries)}
