"""Build flags: written as for nvcc, checked, and told to NVRTC or nvcc in its own words.

Only flags that shape device code pass. Those that speak of host code or linking mean nothing to a cubin and
are dropped; anything else is refused, so that a mistake is not silently without effect.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.backends.port import BuildFailed
from tunesmith.problem.device import Device

STANDARD = "--std=c++17"

_SWITCHES = {
    "use_fast_math": "--use_fast_math",
    "lineinfo": "--generate-line-info",
    "generate-line-info": "--generate-line-info",
    "restrict": "--restrict",
    "extra-device-vectorization": "--extra-device-vectorization",
    "expt-relaxed-constexpr": "--expt-relaxed-constexpr",
    "extended-lambda": "--extended-lambda",
    "expt-extended-lambda": "--extended-lambda",
    "w": "--disable-warnings",
    "disable-warnings": "--disable-warnings",
    "default-device": "--device-as-default-execution-space",
    "device-as-default-execution-space": "--device-as-default-execution-space",
    "device-int128": "--device-int128",
}
_VALUES = {
    "std": r"c\+\+\d\d",
    "maxrregcount": r"\d{1,3}",
    "ftz": r"true|false",
    "prec-div": r"true|false",
    "prec-sqrt": r"true|false",
    "fmad": r"true|false",
    "diag-suppress": r"\d+(,\d+)*",
}
_EXAMPLES = {
    r"c\+\+\d\d": "a standard such as c++17",
    r"\d{1,3}": "a number up to 255",
    r"true|false": "true or false",
    r"\d+(,\d+)*": "numbers of warnings, with commas between them",
}
_PTXAS = ("Xptxas", "ptxas-options")
# What tunes; nothing that would write, or build, something else.
_PTXAS_ALLOWED = re.compile(
    r"-O\d|-{1,2}(v|verbose|w|opt-level|dlcm|dscm|flcm|fscm|def-load-cache|def-store-cache|force-load-cache"
    r"|force-store-cache|allow-expensive-optimizations|fmad|maxrregcount|register-usage-level|warn-spills"
    r"|warn-lmem-usage|warn-double-usage|disable-warnings|disable-optimizer-constants)(=[\w.]+)?"
)
_ARCHITECTURE = ("arch", "gpu-architecture", "code", "gpu-code")
_SEVERAL_ARCHITECTURES = ("gencode", "generate-code")
_NAMED = re.compile(r"\b(?:sm|compute)_(\d+)([af]?)\b")
# Host code, linking, and how the compiler goes about it: dropped, the second kind with its value.
_DROPPED = re.compile(
    r"-{1,2}(O\d|g|m64|res-usage|resource-usage|Wno-deprecated-gpu-targets|allow-unsupported-compiler|rdc=false"
    r"|relocatable-device-code=false|U__CUDA_NO_\w+)"
)
_DROPPED_VALUES = (
    *("Xcompiler", "compiler-options", "Xlinker", "linker-options", "Xcudafe", "cudart", "default-stream"),
    *("t", "threads", "split-compile", "ccbin", "compiler-bindir"),
)
_ELSEWHERE = {
    "D": "defines",
    "U": "defines",
    "define-macro": "defines",
    "undefine-macro": "defines",
    "I": "include",
    "include-path": "include",
}

_FOR_NVRTC = {
    # NVRTC knows no host functions that it could relax for.
    "--expt-relaxed-constexpr": "--device-as-default-execution-space",
    "--extended-lambda": "",
}
_FOR_NVCC = {"--device-as-default-execution-space": "", "--device-int128": ""}
# The same for a file that has the host's part, too.
_WITH_HOST = {**_FOR_NVCC, "--device-as-default-execution-space": "--expt-relaxed-constexpr"}


@dataclass(frozen=True)
class Flags:
    architecture: str  # "sm_90", "sm_90a"; a virtual one is "compute_90"
    common: tuple[str, ...]
    ptxas: tuple[str, ...]

    @property
    def is_virtual(self) -> bool:
        return self.architecture.startswith("compute_")

    @property
    def nvrtc(self) -> tuple[str, ...]:
        return self._spelled(_FOR_NVRTC)

    @property
    def nvcc(self) -> tuple[str, ...]:
        return self._spelled(_FOR_NVCC)

    def _spelled(self, words: dict[str, str]) -> tuple[str, ...]:
        standard = () if any(f.startswith("--std=") for f in self.common) else (STANDARD,)
        common = dict.fromkeys(spelled for f in self.common if (spelled := words.get(f, f)))
        ptxas = (f"--ptxas-options={option}" for option in ("-v", *self.ptxas))
        return (f"--gpu-architecture={self.architecture}", *standard, *common, *ptxas)


def read_flags(flags: Sequence[str], capability: int) -> Flags:
    tokens = _split_flags(flags)
    common: list[str] = []
    ptxas: list[str] = []
    suffixes = {""}
    several: list[set[str] | None] = []
    while tokens:
        token = tokens.pop(0)
        name, value = _name_of(token)
        if name in _SWITCHES and value is None:
            common.append(_SWITCHES[name])
        elif _DROPPED.fullmatch(token):
            continue
        elif name in _VALUES:
            common.append(f"--{name}={_flag_value(token, value, tokens, _VALUES[name])}")
        elif name in _PTXAS:
            ptxas += _ptxas_options(_flag_value(token, value, tokens))
        elif name in _ARCHITECTURE:
            given = _flag_value(token, value, tokens)
            found = {""} if given == "native" else _own_variants(given, capability)
            if found is None:
                raise _other_architecture(f"{token} {'' if value else given}".strip(), capability)
            suffixes |= found
        elif name in _SEVERAL_ARCHITECTURES:
            several.append(_own_variants(_flag_value(token, value, tokens), capability))
        elif name in _DROPPED_VALUES:
            _flag_value(token, value, tokens)
        else:
            raise _unknown_flag_error(token, name)
    variants = [found for found in several if found is not None]
    if several and not variants:
        raise _other_architecture("-gencode, all of them", capability)
    suffix = _fullest_variant(suffixes.union(*variants))
    return Flags(f"sm_{capability}{suffix}", tuple(common), tuple(ptxas))


def _fullest_variant(suffixes: set[str]) -> str:
    """Of a GPU's own variants."""
    return max(suffixes, key=("", "f", "a").index)


def _split_flags(flags: Sequence[str]) -> list[str]:
    """One entry of the list may hold several flags, as they stand on a command line."""
    try:
        return [token for flag in flags for token in shlex.split(flag)]
    except ValueError as error:
        raise BuildFailed(f"flags are written as on a command line, got {list(flags)}: {error}") from error


def _name_of(token: str) -> tuple[str, str | None]:
    name, has_value, value = token.partition("=")
    plain = name.removeprefix("-").removeprefix("-") if name.startswith("-") else ""
    return plain, value if has_value else None


def _flag_value(token: str, value: str | None, following: list[str], pattern: str = r".+") -> str:
    if value is None:
        if not following:
            raise BuildFailed(f"the flag {token} takes a value, got none: write {token}=VALUE")
        value = following.pop(0)
    if not re.fullmatch(pattern, value):
        raise BuildFailed(f"the flag {token} takes {_EXAMPLES.get(pattern, 'a value')}, got {value!r}")
    return value


def _ptxas_options(value: str) -> list[str]:
    options = value.split(",")
    for option in options:
        if not _PTXAS_ALLOWED.fullmatch(option):
            raise BuildFailed(
                f"ptxas gets only options that tune, such as -O2 or -dlcm=ca, got {option!r}: take it out"
            )
    return [option for option in options if option not in ("-v", "--verbose")]


def _own_variants(value: str, capability: int) -> set[str] | None:
    """The variants of the device's own architecture that are named; None where another is, or none at all."""
    names = _NAMED.findall(value)
    return {suffix for _, suffix in names} if names and {int(n) for n, _ in names} == {capability} else None


def _other_architecture(got: str, capability: int) -> BuildFailed:
    return BuildFailed(
        f"a kernel is built for the device it is tuned on, sm_{capability} (or sm_{capability}a), got {got}: "
        "leave the architecture out of flags, or choose the device with --device"
    )


def _unknown_flag_error(token: str, name: str) -> BuildFailed:
    for start, key in _ELSEWHERE.items():
        if name == start or (len(start) == 1 and token.startswith(f"-{start}")):
            return BuildFailed(f"macros and folders are not flags, got {token!r}: write it in `{key}`")
    known = (*_SWITCHES, *_VALUES, "ptxas-options", "gpu-architecture")
    listed = ", ".join(sorted(f"--{n}" for n in known if len(n) > 1))
    return BuildFailed(f"not a flag that shapes device code: {token!r}. Take it out; known are {listed}")


def host_command(flags: Sequence[str], device: Device) -> str:
    """How nvcc compiles a file that has the host's part, too."""
    capability = device.limits.capability
    arch = f"-arch={f'sm_{capability}' if capability else 'native'}"
    words = host_flags(flags)
    return shlex.join(("nvcc", "-O3", *(() if any("arch" in flag for flag in flags) else (arch,)), *words))


def host_flags(flags: Sequence[str]) -> list[str]:
    """For a file that has the host's part, too. One flag may be several words of a command line, and some are
    NVRTC's own."""
    words: list[str] = []
    for flag in flags:
        try:
            words += shlex.split(flag)
        except ValueError:  # a quote that does not end
            words.append(flag)
    spelled = ((word, _WITH_HOST.get(_SWITCHES.get(word.lstrip("-"), ""), word)) for word in words)
    # What two words come to is said once; what the user repeats, such as -gencode, has its reasons.
    known = set(words)
    return [said for word, said in spelled if said and (said == word or said not in known)]


def architecture_apart(flags: Sequence[str], capability: int) -> tuple[list[str], str]:
    """As `host_flags`, without those that name an architecture; and the suffix of the device's own: "a"."""
    left: list[str] = []
    suffixes = {""}
    words = iter(host_flags(flags))
    for word in words:
        name, value = _name_of(word)
        if name in (*_ARCHITECTURE, *_SEVERAL_ARCHITECTURES):
            suffixes |= _own_variants(next(words, "") if value is None else value, capability) or set()
        else:
            left.append(word)
    return left, _fullest_variant(suffixes)
