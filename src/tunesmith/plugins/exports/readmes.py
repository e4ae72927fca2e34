"""README.md of the exports `patch` and `opencl`: what is there, how it is used, and what serves."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tunesmith import __version__
from tunesmith.backends.cuda.flags import host_flags
from tunesmith.base.text import escape_markdown, strip_controls
from tunesmith.deliver.artefact import Artefact
from tunesmith.plugins.exports import export_texts
from tunesmith.problem.device import OPENCL

_ARCHITECTURE = ("-arch", "--gpu-architecture", "-gencode", "--generate-code")


def patch_readme(artefact: Artefact, path: str, files: Sequence[str], told: Sequence[str]) -> str:
    """`files` are the export's; `told`: how much of the result is in the patch, and what is not."""
    windows = f"{artefact.name}.crlf.patch"
    first = artefact.first.dispatch
    flags = " ".join(first.original.flags)
    about = (
        [escape_markdown(line) for line in told],
        artefact.name,
        _code_span(path),
        windows if windows in files else "",
        first.language == OPENCL.name,
        list(_check_commands(artefact, path, files)),
        _code_span(flags) if flags else "",
    )
    return str(export_texts("readmes.j2").patch(_readme_head(artefact), *about))


def _check_commands(artefact: Artefact, path: str, files: Sequence[str]) -> Iterator[str]:
    for dispatch in (result.dispatch for result in artefact.results):
        folder = f"verified/{dispatch.architecture}"
        if any(PurePosixPath(file).parent == PurePosixPath(folder) for file in files):
            flags = host_flags(dispatch.original.flags)
            if not any(flag.startswith(_ARCHITECTURE) for flag in flags):
                flags = [f"-arch={dispatch.architecture}", *flags]
            given = " ".join(shlex.quote(word) for word in [path, f"FOLDER/{folder}", *flags])
            command = f"python3 FOLDER/check_code.py --strict {given}"
            yield strip_controls(command).replace("\n", " ")


def opencl_readme(artefact: Artefact, taken: Sequence[str]) -> str:
    """`taken`: the names of what the function takes between the queue and the events."""
    gains = [
        f"{escape_markdown(w.name)} on {escape_markdown(r.dispatch.device)}: {w.speedup:.2f}×"
        for r in artefact.results
        for w in r.dispatch.workloads
        if w.speedup is not None
    ]
    return str(export_texts("readmes.j2").opencl(_readme_head(artefact), gains, artefact.name, taken))


def _readme_head(artefact: Artefact) -> str:
    devices = ", ".join(escape_markdown(result.dispatch.device) for result in artefact.results)
    return str(export_texts("readmes.j2").head(escape_markdown(artefact.problem), devices, __version__))


def _code_span(text: str) -> str:
    return f"`{strip_controls(text).replace('`', '').replace(chr(10), ' ')}`"
