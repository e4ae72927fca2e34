"""Installs the toy plugin without pip: the package and its metadata, in a folder for `sys.path`."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

HERE = Path(__file__).parent


def install_toy(folder: Path) -> Path:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    name = project["name"].replace("-", "_")
    shutil.copytree(HERE / name, folder / name)
    metadata = folder / f"{name}-{project['version']}.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(head)
    lines: list[str] = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{entry} = {target}" for entry, target in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder
