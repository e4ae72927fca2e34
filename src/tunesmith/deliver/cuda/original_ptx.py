"""The original for devices that no run was made on: as PTX, which their driver compiles, and by NVRTC."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from tunesmith.backends.cuda.compile import COMPILERS, cuda_compilers
from tunesmith.backends.cuda.cubin import Refused, check_entries
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.backends.cuda.toolkit import pre_included, standard_headers
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, Unsupported
from tunesmith.deliver.artefact import DeviceResult
from tunesmith.problem.dispatch import DispatchEntry, headers_of

_CAPABILITIES = (75, 80, 89, 90, 100, 120)  # at which devices learnt something that sources ask for
_TARGET = re.compile(rb"^\.target .*$", re.MULTILINE)
_LANGUAGE = re.compile(rb"^\.version (\d+)\.(\d+)", re.MULTILINE)
_REGISTERS = re.compile(r"-*maxrregcount=(\d+)")  # PTX does not say it
# A compiler writes the newest version of the language into its PTX, and older drivers refuse it for that
# alone. All that devices up to sm_90 can do is in the version of CUDA 12.8.
_OLD_LANGUAGE, _OLD_DRIVER, _OLD_DEVICES = (8, 7), "12.8", 90


@dataclass(frozen=True)
class OriginalPtx:
    capability: int  # the oldest that takes it
    driver: str  # the CUDA version of the oldest driver that takes it
    text: bytes
    symbols: Mapping[str, str]  # entry -> the kernel's symbol
    registers: int  # a thread has no more of them; 0: nobody says


def original_ptx(
    result: DeviceResult, entries: Sequence[DispatchEntry]
) -> tuple[tuple[OriginalPtx, ...], str]:
    """The newest first, and why there is none. `entries` are of one source.

    A source may ask for the architecture, and do less on an older one: there is a text for each up to the
    run's own that it compiles to something else for.
    """
    dispatch, first = result.dispatch, entries[0]
    own, compiler = dispatch.capability, "nvcc" if dispatch.compiler.startswith("nvcc") else "nvrtc"
    if not own:
        return (), "the run does not say the architecture of its device"
    names = tuple(dict.fromkeys(launch.entry for entry in entries for launch in entry.launches))
    headers = headers_of(first, result.files)
    unit = Unit(first.file, result.source(first), "cuda", first.flags, names, headers, compiler)
    found: dict[bytes, OriginalPtx] = {}
    why = ""
    try:
        check_entries(unit)
        flags, version = read_flags(unit.flags, own), dict(cuda_compilers()).get(compiler, "")
        caps = (_REGISTERS.fullmatch(option) for option in (*flags.common, *flags.ptxas))
        most = max((int(cap[1]) for cap in caps if cap), default=0)
        for capability in (*(c for c in _CAPABILITIES if c < own), own):
            try:
                made = COMPILERS[compiler](unit, replace(flags, architecture=f"compute_{capability}"))
            except Refused as refused:
                why = refused.log.partition("\n")[0]
                continue
            text, driver = _for_older_drivers(made.ptx, capability, version)
            ptx = OriginalPtx(capability, driver, text, made.symbols, most)
            found.setdefault(_TARGET.sub(b"", text), ptx)
    except (BuildFailed, Unsupported) as error:
        return (), str(error).partition("\n")[0]
    return tuple(reversed(found.values())), why


def _for_older_drivers(text: bytes, capability: int, version: str) -> tuple[bytes, str]:
    language = _LANGUAGE.search(text)
    if language is None or capability > _OLD_DEVICES or (int(language[1]), int(language[2])) < _OLD_LANGUAGE:
        return text, ".".join(version.split(".")[:2])
    older = b".version %d.%d" % _OLD_LANGUAGE
    return text[: language.start()] + older + text[language.end() :], _OLD_DRIVER


class EntryBuild(TypedDict):
    """How NVRTC is called for an entry: its options, headers beside the entry's own, and what an architecture
    has behind its number."""

    options: list[str]
    headers: dict[str, str]
    suffix: str


def builds_of(
    entries: Sequence[DispatchEntry], files: Mapping[str, bytes], architecture: str
) -> list[EntryBuild]:
    """How NVRTC compiles each entry where no binary fits: the runtime knows neither nvcc's flags nor the
    standard's headers that NVRTC lacks."""
    capability = int(re.sub(r"\D", "", architecture) or 0)
    builds: list[EntryBuild] = []
    for entry in entries:
        source = files[entry.file].decode(errors="surrogatepass")
        headers = headers_of(entry, files)
        try:
            flags = read_flags(entry.flags, capability)
        except BuildFailed:  # they name another device's architecture: as they are
            builds.append({"options": list(entry.flags), "headers": {}, "suffix": ""})
            continue
        options = [o for o in flags.nvrtc if "gpu-architecture" not in o and o != "--ptxas-options=-v"]
        options += [f"--pre-include={name}" for name in pre_included(source, headers)]
        suffix = flags.architecture.removeprefix(f"sm_{capability}")
        added = dict(standard_headers(source, headers))
        builds.append({"options": options, "headers": added, "suffix": suffix})
    return builds
