"""A kernel's source as the host's compiler takes it: line by line the same, but for what only a GPU has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tunesmith.backends import port
from tunesmith.backends.cpu.assembly import UnknownInstruction, as_code
from tunesmith.backends.cpu.casts import clamping
from tunesmith.csource.assembly import NotAssembly, sections_of
from tunesmith.csource.lex import blank

ELSEWHERE = "write it in C++, or check this kernel where a GPU is"
_ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\b")
_ALIGNED = r"(?:__align__|alignas|__attribute__)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_DYNAMIC = re.compile(
    rf"\bextern\s+(?:{_ALIGNED}\s*)?__shared__\s+((?:{_ALIGNED}|[\w:<>,\s])*?)(\w+)\s*(?:{_ALIGNED}\s*)?"
    r"\[\s*\]((?:\s*\[[^\]]*\])*)\s*;"
)
_ALIGNAS = re.compile(r"(?<=\b__shared__)(\s+)alignas\s*(\((?:[^()]|\([^()]*\))*\))")
_STATIC = re.compile(r"\bstatic\s+(?=__shared__\b)")
_DEPENDENT = re.compile(r">\s*::\s*(?=(?!template\b)\w+<[^<>;{}()]*>\s*\()")
# What would be built, and would not mean what it means on a GPU.
_UNKNOWN = {
    r"\bnvcuda\b|\bwmma\s*::": "tensor cores",
    r"\bcudaLaunchKernelEx\b|<<<": "launches from the device",
    r"\bthis_cluster\b|\bcluster_group\b|\bcluster\.sync\b": "clusters",
    r"\btex[123]D\w*\s*[<(]|\bcudaTextureObject_t\b": "textures",
}


def host_text(text: str, path: str) -> str:
    """BuildFailed where it has what is not known here."""
    plain = blank(text, ("comment", "string"))
    for pattern, what in _UNKNOWN.items():
        if found := re.search(pattern, plain):
            raise port.BuildFailed(f"{path}:{_line(text, found.start())}: {unknown(what)}")
    text = _changed(text, clamping(plain))
    plain = blank(text, ("comment", "string"))
    return _changed(text, [*_dynamic(plain), *_assembly(text, plain, path), *_spelt_otherwise(plain)])


def _changed(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + _newlines(text[start:end]) + text[end:]
    return text


def unknown(what: str) -> str:
    """In the words by which others know that the kernel is not to blame."""
    return f"the cpu device does not know {what}: {ELSEWHERE}"


def _line(text: str, place: int) -> int:
    """As `#line` counts it."""
    before = text[:place]
    markers = list(re.finditer(r"^[ \t]*#[ \t]*line[ \t]+(\d+)[^\n]*\n", before, re.MULTILINE))
    if not markers:
        return before.count("\n") + 1
    return before.count("\n", markers[-1].end()) + int(markers[-1][1])


def _newlines(text: str) -> str:
    """Those of what is replaced, so that lines keep their numbers."""
    return "".join(re.findall(r"\\?\n", text))


def _dynamic(plain: str) -> Iterator[tuple[int, int, str]]:
    for found in _DYNAMIC.finditer(plain):
        kind = re.sub(_ALIGNED, " ", found[1]).strip()
        depth = plain.count("{", 0, found.start()) - plain.count("}", 0, found.start())
        more = found[3].strip()
        pointer = f"{kind} (*{{}}){more}" if more else f"{kind} *{{}}"
        cast = f"({pointer.format('')})__tunesmith_dynamic()"
        name = found[2]
        if depth > 0 and not _in_namespace(plain, found.start()):
            yield found.start(), found.end(), f"{pointer.format(name)} = {cast};"
        else:  # it has its place only when a block runs
            own = f"typedef {pointer.format(f'__tunesmith_type_{name}')};"
            made = (
                f"static struct {{ operator __tunesmith_type_{name}() const {{ return {cast}; }} }} {name};"
            )
            yield found.start(), found.end(), own + made


def _spelt_otherwise(plain: str) -> Iterator[tuple[int, int, str]]:
    """What NVIDIA's compilers take and others do not."""
    for found in _STATIC.finditer(plain):
        yield found.start(), found.end(), ""
    dynamic = [found.span() for found in _DYNAMIC.finditer(plain)]
    for found in _ALIGNAS.finditer(plain):  # __shared__ stands for words that may not come before it
        if any(start <= found.start() < end for start, end in dynamic):
            continue
        yield found.start(1), found.end(), f" __attribute__((aligned{found[2]}))"
    for found in _DEPENDENT.finditer(plain):
        yield found.end(), found.end(), "template "


def _in_namespace(plain: str, place: int) -> bool:
    """Whether only braces of namespaces are open there."""
    opened: list[bool] = []
    for found in re.finditer(r"(\bnamespace\b[\s\w:]*|\bextern\s*\"\s*\"\s*)?\{|\}", plain[:place]):
        if found[0] == "}":
            if opened:
                opened.pop()
        else:
            opened.append(found[1] is not None)
    return all(opened)


def _assembly(text: str, plain: str, path: str) -> Iterator[tuple[int, int, str]]:
    for found in _ASSEMBLY.finditer(plain):
        end = _statement_end(plain, found.end())
        statement = re.sub(r"\\\n", " ", text[found.start() : end])
        try:
            sections = sections_of(statement)
            code = as_code(*_three(sections))
        except (NotAssembly, UnknownInstruction) as error:
            words = unknown(f"the instruction {str(error)!r}")
            raise port.BuildFailed(f"{path}:{_line(text, found.start())}: {words}") from error
        yield found.start(), end, f"do {{ {code} }} while (0)"


def _three(sections: Sequence[str]) -> tuple[str, str, str]:
    template, outputs, inputs, *_ = (*sections, "", "")
    return template, outputs, inputs


def _statement_end(plain: str, start: int) -> int:
    """Behind the parenthesis that closes it."""
    depth = 0
    for at in range(plain.find("(", start), len(plain)):
        depth += {"(": 1, ")": -1}.get(plain[at], 0)
        if depth == 0:
            return at + 1
    return len(plain)


ENTRIES = """
#line 1 "the entries"
namespace __tunesmith {{
struct __Entry {{ const char *__name; int __count; const unsigned *__sizes; void (*__call)(void **); }};
template <size_t... __I> struct __Places {{}};
template <size_t __N, size_t... __I> struct __Counted : __Counted<__N - 1, __N - 1, __I...> {{}};
template <size_t... __I> struct __Counted<0, __I...> {{ typedef __Places<__I...> __type; }};
template <typename __T> struct __Value {{ typedef __T __type; }};
template <typename __T> struct __Value<__T &> {{ typedef __T __type; }};
template <auto __F> struct __Called;
template <typename... __A, void (*__F)(__A...)> struct __Called<__F> {{
    static constexpr int __count = sizeof...(__A);
    static constexpr unsigned __sizes[__count + 1] = {{(unsigned)sizeof(__A)..., 0}};
    template <size_t... __I> TUNESMITH_UNWATCHED static void __go(void **__given, __Places<__I...>)
    {{
        __F(*(typename __Value<__A>::__type *)__given[__I]...);
    }}
    static void __call(void **__given) {{ __go(__given, typename __Counted<sizeof...(__A)>::__type()); }}
}};
}}
extern "C" __attribute__((visibility("default"))) const __tunesmith::__Entry __tunesmith_entries[] = {{
{entries}    {{nullptr, 0, nullptr, nullptr}}
}};
"""


def with_entries(text: str, entries: Sequence[str]) -> str:
    """A source with a table behind it of the kernels that are launched."""
    lines = ""
    for entry in entries:
        own = f"__tunesmith::__Called<({entry})>"
        lines += f'    {{"{entry}", {own}::__count, {own}::__sizes, {own}::__call}},\n'
    return f"{text}\n{ENTRIES.format(entries=lines)}"
