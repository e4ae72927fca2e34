"""What a compiler defines of its own accord: asked of the one that will be used, or else assumed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tunesmith.csource.lex import first_word, lex
from tunesmith.csource.nodes import Unreadable

# Which of the toolkit's headers have, not all compilers: `preprocess` decides these by itself.
OF_HEADERS = frozenset({"CUDART_VERSION", "CUDA_VERSION"})
# Every CUDA compiler has these: a source that asks which version it is must mean the same to all versions.
TELL_VERSION = ("__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "__CUDACC_VER_BUILD__")
_LISTED = re.compile(r"^#define (\w+(?:\([^)]*\))?)(?:[ \t]+(.*))?$", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?\.?\d[\w.]*")
_OWN = re.compile(
    r"__(?:CUDA|NV|HIP|OPENCL|GNUC|clang|AMD|GFX|gfx|x86_64|aarch64|linux|cplusplus|SIZEOF_|FAST_RELAXED)\w*"
    r"|_(?:MSC_VER|WIN32|WIN64)|cl_khr_\w+|CL_VERSION_\d_\d|__ENDIAN_LITTLE__|__IMAGE_SUPPORT__|NDEBUG"
)
_CONDITIONS = ("if", "ifdef", "ifndef", "elif")


@dataclass(frozen=True)
class Predefined:
    """`macros` that are numbers, or nothing at all, take part in everything; of the `others`, which headers
    define as text, only that they are defined is of use."""

    macros: tuple[tuple[str, str], ...]
    said_by: str  # whom to believe, in words
    others: tuple[str, ...] = ()

    def knows(self, name: str) -> bool:
        """Whether it is the compiler's to define, or not to."""
        return is_compilers(name) or name in self.others or any(name == own for own, _ in self.macros)


NOTHING = Predefined((), "")


def is_compilers(name: str) -> bool:
    return _OWN.fullmatch(name) is not None


def listed(text: str) -> tuple[tuple[str, str], ...]:
    """Macros with their values, of the #define directives that a compiler prints for `-dM`."""
    return tuple((name, value.strip()) for name, value in _LISTED.findall(text))


def sorted_out(macros: Iterable[tuple[str, str]], said_by: str) -> Predefined:
    """Of what a compiler says, as name (with its parameters, if it has any) and text."""
    numbers: list[tuple[str, str]] = []
    others: list[str] = []
    for name, value in macros:
        plain = name.partition("(")[0]
        if plain in OF_HEADERS:
            continue
        if plain == name and (not value or _NUMBER.fullmatch(value)):
            numbers.append((name, value))
        else:
            others.append(plain)
    return Predefined(tuple(numbers), said_by, tuple(others))


def assumed(language: str, capability: int = 0, why: str = "no compiler was asked") -> Predefined:
    """Where nobody can be asked."""
    arch = capability or 90
    if language == "cuda":
        versions = (("MAJOR", 13), ("MINOR", 0), ("BUILD", 0))
        macros = [("__CUDACC__", "1"), ("__CUDACC_RTC__", "1"), ("__CUDA_ARCH__", f"{arch}0")]
        macros += [("__cplusplus", "201703L"), *((f"__CUDACC_VER_{n}__", str(v)) for n, v in versions)]
        return Predefined(tuple(macros), f"assumed, since {why}: NVRTC, C++17, sm_{arch}")
    if language == "hip":
        names = ("__HIPCC__", "__HIP__", "__HIP_DEVICE_COMPILE__", "__HIP_PLATFORM_AMD__")
        macros = [*((name, "1") for name in names), ("__cplusplus", "201703L")]
        return Predefined(tuple(macros), f"assumed, since {why}: hipcc for AMD, C++17")
    if language == "opencl":
        return opencl(120, (), f"assumed, since {why}: OpenCL C 1.2")
    return Predefined((), f"assumed, since {why}")


def opencl(version: int, extensions: Iterable[str], said_by: str, c_version: int = 120) -> Predefined:
    """Of a device: 300 for OpenCL 3.0; `c_version`: of the language, 1.2 unless -cl-std says otherwise."""
    known = [n for n in (100, 110, 120, 200, 300) if n <= version]
    macros = [("__OPENCL_VERSION__", str(version)), ("__OPENCL_C_VERSION__", str(c_version))]
    macros += [(f"CL_VERSION_{n // 100}_{n // 10 % 10}", str(n)) for n in known]
    macros += [("__ENDIAN_LITTLE__", "1"), *((name, "1") for name in extensions)]
    return Predefined(tuple(macros), said_by)


def asked_names(texts: Iterable[str]) -> tuple[str, ...]:
    """The names in sources that a compiler may have defined: those in conditions, and those only it has."""
    found: set[str] = set()
    for text in texts:
        try:
            tokens = lex(text)
        except Unreadable:
            continue  # which is said where it is read
        for place, token in enumerate(tokens):
            if token.kind == "word" and is_compilers(token.text):
                found.add(token.text)
            elif token.kind == "directive":
                word, rest = first_word(token.text)
                following = tokens[place + 1].text.split() if place + 1 < len(tokens) else []
                is_guard = word == "ifndef" and following == ["define", rest]
                inside = {t.text for t in lex(rest) if t.kind == "word"} if word != "include" else set()
                asks = word in _CONDITIONS and not is_guard
                found |= {name for name in inside if asks or is_compilers(name)}
    return tuple(sorted(found - OF_HEADERS - {"defined"}))
