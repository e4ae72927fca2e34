"""A benchmark's result file: JSON with device, compiler, date and command beside the figures."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from tunesmith import __version__, backends

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "cuda"
PACKAGES = ("numpy", "cuda-bindings", "nvidia-cuda-nvrtc", "kernel_tuner", "cupy-cuda13x")
SMI = ("name", "driver_version", "clocks.max.sm", "power.limit")


def machine() -> dict[str, Any]:
    """What the figures hold for. Nothing that names this one machine among its kind."""
    asked = ["nvidia-smi", f"--query-gpu={','.join(SMI)}", "--format=csv,noheader"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, timeout=30).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        told = []
    device = dict(zip(SMI, told[0].split(", "), strict=False)) if told else {}
    return {
        "device": device.get("name", "unknown"),
        "driver": device.get("driver_version", "unknown"),
        "max_clock": device.get("clocks.max.sm", "unknown"),
        "power_limit": device.get("power.limit", "unknown"),
        "compilers": [" ".join(pair) for pair in backends.list_compilers("cuda") or ()],
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {
            "tunesmith": __version__,
            **{name: version for name in PACKAGES if (version := version_of(name))},
        },
    }


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def command(module: str, arguments: Sequence[str]) -> str:
    """What was typed; of absolute paths only the last name, since this machine's say nothing elsewhere."""
    parts = [shown(part) for part in arguments]
    return " ".join(["python", "-m", f"benchmarks.cuda.{module}", *parts])


def shown(part: str) -> str:
    name, equals, value = part.partition("=")
    if equals and value.startswith("/"):
        return f"{name}={Path(value).name}"
    return Path(part).name if part.startswith("/") else part


def write(
    out: Path,
    name: str,
    figures: dict[str, Any],
    *,
    adds: bool = False,
    measured_on: Mapping[str, Any] | None = None,
) -> Path:
    """`out/name.json`: the figures with everything that says where they come from.

    `adds`: the figures include those of an earlier call, so its commands stay as well. `measured_on`: the
    machine, where it is not this one.
    """
    out.mkdir(parents=True, exist_ok=True)
    earlier = (read(out, name) or {}).get("commands", []) if adds else []
    facts = {
        "commands": list(dict.fromkeys([*earlier, command(name, sys.argv[1:])])),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine() if measured_on is None else dict(measured_on),
    }
    path = out / f"{name}.json"
    path.write_text(json.dumps({**facts, **figures}, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}")
    return path


def read(out: Path, name: str) -> dict[str, Any] | None:
    """What an earlier part has written, None where it has not run."""
    path = out / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def share_of_copy(row: Mapping[str, Any], copies: Mapping[str, Any]) -> float | None:
    """The time a plain copy of the same bytes takes, over the kernel's."""
    copy = copies.get(str(row.get("bytes")))
    return 1e6 * copy["seconds"] / row["tuned_us"] if copy else None
