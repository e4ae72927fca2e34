"""What is usable on this machine, and the one command that enables what is not."""

from __future__ import annotations

import platform
from functools import partial

from tunesmith import backends, machine, registry
from tunesmith.backends.backend_kind import Finding, module_finding
from tunesmith.core import languages
from tunesmith.core.device import Device


def examine() -> list[Finding]:
    """Each backend speaks for itself; then the languages that none of them runs."""
    findings = [
        Finding("Python", True, platform.python_version()),
        module_finding("tree_sitter", "reading kernel sources (init)", "pip install tree-sitter"),
    ]
    for kind in backends.kinds():
        findings += kind.check(partial(_devices, kind.name))
    unrun = (language for language in languages.known() if backends.kind_for(language.name) is None)
    return [*findings, *(Finding(one.title, False, "no backend in this version") for one in unrun)]


def _devices(backend: str) -> tuple[Device, ...]:
    with machine.temporary_scratch() as scratch:
        return registry.list_devices(backend, scratch)
