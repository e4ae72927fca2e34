"""Git in a repository that is not ours: nothing that the repository itself has set up is run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tunesmith.run.config import passed_on

SECONDS = 60
_INHERITED = ("HOME", "XDG_CONFIG_HOME", "TMPDIR")  # for what the user has configured, which holds
_SAFE = {
    "GIT_ALLOW_PROTOCOL": "none",  # objects that are missing are fetched from nowhere
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_OVERRIDDEN = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.external=", "core.pager=cat")
# Programs that attributes of files name.
_NO_FILTER = {"clean": "", "smudge": "", "process": "", "required": "false"}
_OWN_SCOPES = (b"system", b"global")  # the user's


def run_git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes] | None:
    """None: it ran past its deadline."""
    listed = _run_git_command(
        folder, {}, "config", "--list", "--show-scope", "--name-only", "--includes", "-z"
    )
    if listed is None or listed.returncode:  # then it does nothing else there either
        return listed
    return _run_git_command(folder, _without_filters(listed.stdout), *words)


def _without_filters(listed: bytes) -> dict[str, str]:
    """Variables that empty each filter of which the repository says anything."""
    fields = listed.split(b"\0")
    names = {name for scope, name in zip(fields[::2], fields[1::2], strict=False) if scope not in _OWN_SCOPES}
    filters = {os.fsdecode(name.rpartition(b".")[0]) for name in names if name.startswith(b"filter.")}
    emptied = [(f"{one}.{what}", value) for one in sorted(filters) for what, value in _NO_FILTER.items()]
    variables = {"GIT_CONFIG_COUNT": str(len(emptied))}
    for number, (name, value) in enumerate(emptied):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _run_git_command(
    folder: Path, more: dict[str, str], *words: str
) -> subprocess.CompletedProcess[bytes] | None:
    options = [part for setting in _OVERRIDDEN for part in ("-c", setting)]
    # `git apply` would leave out, without a word, what it takes for another folder of a repository above.
    ceiling = {"GIT_CEILING_DIRECTORIES": str(folder.resolve().parent)} if words[0] == "apply" else {}
    try:
        return subprocess.run(
            ["git", "--no-pager", *options, *words],
            cwd=folder,
            env={**passed_on(_INHERITED), **_SAFE, **more, **ceiling},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None
