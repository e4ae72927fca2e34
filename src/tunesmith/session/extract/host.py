"""How a repository's host code launches a kernel: its launches, with launch macros written out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.kernel_scopes import kernel_definitions, launched_scope, scopes_at
from tunesmith.csource.lex import Token, first_word, layout, lex, obstacle
from tunesmith.csource.macros import MOST_TOKENS, Expansion, Macro, read_macro
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.syntax import syntax_tree
from tunesmith.expert.reading.headers import LaunchSite, blank_source, elements_of, unambiguous
from tunesmith.expert.reading.launch_calls import CALLS
from tunesmith.expert.reading.launches import read_constants, read_launches
from tunesmith.session.extract.finding import FoundKernel
from tunesmith.session.extract.reading import ReadSources, read_sources
from tunesmith.session.extract.repository import SUFFIXES
from tunesmith.session.extract.tree import Includes, SourceTree, is_frameworks

_MOST_FILES = 12
_FUNCTION = re.compile(r"&?\s*(?:\w+\s*::\s*)*([A-Za-z_]\w*)\s*(?:<(.*)>)?")
_ALIAS = re.compile(r"^using\s+(\w+)\s*=\s*([\w:]+)\s*;", re.MULTILINE)
_TYPEDEF = re.compile(r"^typedef\s+([\w:]+)\s+(\w+)\s*;", re.MULTILINE)
_POINTER = re.compile(
    r"(?<=[;{}])\s*(?:const\s+)?([\w:]+)\s*(?:const\s*)?\*\s*(?:const\s+|__restrict__\s+)*(\w+)\s*=(?!=)"
)
_HEAD = re.compile(r"\b([A-Za-z_]\w*)\s*\([^{};]*?\)\s*(?:const\s*)?\{")
_NO_FUNCTIONS = frozenset({"if", "for", "while", "switch", "catch"})
_MOST_MACROS = 200
_LONGEST_CALL = 400  # tokens of what a macro is handed
_NEVER = frozenset({"false", "!(true)", "0", "!(1)"})  # a macro's own argument has decided


@dataclass(frozen=True)
class LaunchingFunction:
    """The function around a launch. `instances`: types for which it is instantiated, by its `params`."""

    params: tuple[str, ...] = ()
    types: tuple[tuple[str, str], ...] = ()  # of its own parameters, without const and *
    instances: tuple[tuple[str, ...], ...] = ()
    framework: bool = False  # its file includes a framework's headers
    kinds: frozenset[str] = frozenset()  # those of its params that are types
    switches: frozenset[str] = frozenset()  # and those that are true or false


@dataclass(frozen=True)
class HostLaunch:
    """One launch in the host's code, and what its file defines besides."""

    path: str
    site: LaunchSite
    constants: tuple[tuple[str, str], ...]
    macros: Mapping[str, Macro]
    around: LaunchingFunction = LaunchingFunction()

    @property
    def place(self) -> str:
        return f"{self.path}:{self.site.line}"


@dataclass(frozen=True)
class HostReading:
    launches: tuple[HostLaunch, ...]
    troubles: tuple[str, ...]  # files that could not be read, in words


def host_launches(
    tree: SourceTree,
    found: FoundKernel,
    folders: Sequence[str] = (),
    defines: tuple[tuple[str, str], ...] = (),
) -> HostReading:
    """Launches of the kernel, those in its own file first."""
    launches: list[HostLaunch] = []
    troubles: list[str] = []
    includes = Includes(tree, folders)
    for path in _files_that_launch(tree, found):
        try:
            own = path == found.item.path
            sources = found.sources if own else read_sources(tree, (path,), includes, defines)
            launches += _of_kernel(_in_file(path, sources, found.item.name), path, sources, found)
        except Unreadable as trouble:
            troubles.append(f"{path}: {trouble.reason}")
    return HostReading(tuple(launches), tuple(troubles))


def launches_in(
    tree: SourceTree,
    path: str,
    found: FoundKernel,
    folders: Sequence[str] = (),
    defines: tuple[tuple[str, str], ...] = (),
) -> list[HostLaunch]:
    """Of all kernels, in one file; `found`: a kernel whose file may be that one."""
    own = path == found.item.path
    sources = found.sources if own else read_sources(tree, (path,), Includes(tree, folders), defines)
    return list(_in_file(path, sources, None))


def _files_that_launch(tree: SourceTree, found: FoundKernel) -> list[str]:
    word = re.compile(rf"\b{re.escape(found.item.name)}\b")
    others = (path for path in tree.paths if path.endswith(SUFFIXES) and path != found.item.path)
    named = []
    for path in others:
        text = tree.read(path)
        launches = ("<<<" in text or "LaunchKernel" in text) and word.search(text)
        # One that defines a kernel of this name launches its own.
        if launches and not ("__global__" in text and kernel_definitions(lex(text), found.item.name)):
            named.append(path)
    folder = found.item.path.rpartition("/")[0]
    return [
        found.item.path,
        *sorted(named, key=lambda path: (not path.startswith(folder), path))[:_MOST_FILES],
    ]


def _of_kernel(
    launches: Iterator[HostLaunch], path: str, sources: ReadSources, found: FoundKernel
) -> list[HostLaunch]:
    """Without those of kernels of the same name in other namespaces, or in other headers that it includes."""
    name, own = found.item.name, tuple(part for part in found.item.scope if part)
    defining = {file.path: kernel_definitions(file.tokens, name) for file in sources.files}
    defined = {scope for scopes in defining.values() for scope in scopes}
    if own in defined and own not in defining.get(found.item.path, ()):
        return []
    if defined <= {own}:
        return list(launches)
    tokens = next(file.tokens for file in sources.files if file.path == path)
    scopes = scopes_at(tokens)
    others = set()
    for at, token in enumerate(tokens):
        if token.text != name or token.kind != "word":
            continue
        first = at
        while first > 0 and tokens[first - 1].text == "::":
            first -= 2 if first > 1 and tokens[first - 2].kind == "word" else 1
        written = "".join(one.text for one in tokens[first : at + 1]).split("::")[:-1]
        if launched_scope(scopes[at], written, defined) not in (None, own):
            others.add(token.line)
    return [launch for launch in launches if launch.site.line not in others]


def _in_file(path: str, sources: ReadSources, kernel: str | None) -> Iterator[HostLaunch]:
    """`kernel`: None: of every one."""
    file = next(file for file in sources.files if file.path == path)
    macros = dict(sources.macros)  # with those that the file has undone again
    tokens = list(_written_out(file.tokens, macros))
    text = blank_source(layout(tokens, 1), "cuda").code
    if (trouble := obstacle(lex(text))) is not None:
        raise Unreadable(trouble)
    root = syntax_tree(text, "cuda")
    constants = {**_plain(sources.macros), **unambiguous(read_constants(root))}
    for site in map(_by_its_own_name, read_launches(root, text)):
        if kernel in (None, site.kernel) and not _NEVER.intersection(site.conditions):
            name = site.function or _enclosing(text, site.line)
            around = _host_function(text, name, file.tokens, replace(sources, macros=macros))
            site = replace(site, aliases=(*_file_aliases(text), *site.aliases))
            yield HostLaunch(path, site, tuple(constants.items()), macros, around)


def _file_aliases(text: str) -> list[tuple[str, str]]:
    found = [(name, meaning) for name, meaning in _ALIAS.findall(text)]
    return found + [(name, meaning) for meaning, name in _TYPEDEF.findall(text)]


def _written_out(tokens: Sequence[Token], macros: dict[str, Macro]) -> Iterator[Token]:
    """Words with macros that launch expanded, each as it is defined at its place; `macros` grows by them."""
    waiting: list[Token] = []

    def flushed() -> list[Token]:
        launching = _launching(macros)
        launching |= _handed(waiting, launching, macros)
        if any(token.text in launching for token in waiting):
            return Expansion(launching, MOST_TOKENS).expand(waiting, frozenset(), 0)
        return waiting

    for token in tokens:
        if token.kind != "directive":
            waiting.append(token)
            continue
        word, rest = first_word(token.text)
        macro = read_macro(rest) if word == "define" else None
        if isinstance(macro, Macro):
            if macro.name in macros and macros[macro.name].body != macro.body:
                yield from flushed()
                waiting = []
            macros[macro.name] = macro
    yield from flushed()


def _by_its_own_name(site: LaunchSite) -> LaunchSite:
    """`auto kernel = &scale<float>; kernel<<<...>>>(...)` launches scale<float>."""
    meant = _FUNCTION.fullmatch(dict(site.settled).get(site.kernel, ""))
    return site if meant is None else replace(site, kernel=meant[1], template_args=meant[2])


def _handed(
    tokens: Sequence[Token], launching: Mapping[str, Macro], macros: Mapping[str, Macro]
) -> dict[str, Macro]:
    """Macros that are handed another one that launches, `DISPATCH(type, LAUNCH)`, and those they call."""
    found: dict[str, Macro] = {}
    for at, token in enumerate(tokens):
        macro = macros.get(token.text) if token.kind == "word" else None
        if macro is None or not macro.parameters or token.text in launching:
            continue
        depth, last, is_lambda = 0, "", False
        for inner in tokens[at + 1 : at + _LONGEST_CALL]:
            depth += (inner.text == "(") - (inner.text == ")")
            is_lambda = is_lambda or (last == "[" and inner.text in ("&", "=", "]"))
            last = inner.text
            if depth <= 0:
                break
            # The code itself, where it is no lambda's: `DISPATCH(type, using T = ...; k<T><<<...>>>(...));`
            bare = not is_lambda and (inner.text == "<<<" or inner.text in CALLS)
            if (inner.text in launching or bare) and token.text not in found:
                found.update(_called(token.text, macros))
                break
    return found


def _called(name: str, macros: Mapping[str, Macro]) -> dict[str, Macro]:
    found: dict[str, Macro] = {}
    waiting = [name]
    while waiting and len(found) < _MOST_MACROS:
        word = waiting.pop()
        if word in macros and word not in found:
            found[word] = macros[word]
            waiting += [token.text for token in macros[word].body if token.kind == "word"]
    return found


def _host_function(text: str, name: str, tokens: Sequence[Token], sources: ReadSources) -> LaunchingFunction:
    """The function around a launch, by its words: its template parameters, what it is instantiated for."""
    own = re.escape(name)
    head = re.search(rf"\b{own}\s*\(([^{{}};]*?)\)\s*(?:const\s*)?\{{", text) if name else None
    if head is None:
        return LaunchingFunction()
    before = _template_header(text[max(0, head.start() - 400) : head.start()])
    listed = [part.split("=")[0].split() for part in before]
    params = [words[-1] for words in listed if words]
    kinds = frozenset(words[-1] for words in listed if words and words[0] in ("typename", "class"))
    switches = frozenset(words[-1] for words in listed if len(words) == 2 and words[0] == "bool")
    types = {name: kind for kind, name in _POINTER.findall(_body(text, head.end() - 1))}
    for part in head[1].split(","):
        words = re.findall(r"[\w:]+", part.split("=")[0])
        plain = [word for word in words if word not in ("const", "__restrict__", "struct", "unsigned")]
        if len(plain) > 1:
            types[plain[-1]] = plain[0]
    made = tuple(dict.fromkeys(_instances(text, name, tokens, sources, params)))
    framework = any(is_frameworks(one.name) for one in sources.outside)
    return LaunchingFunction(tuple(params), tuple(types.items()), made, framework, kinds, switches)


def _enclosing(text: str, line: int) -> str:
    """The function around a line, by its words, where a grammar has lost it."""
    place = sum(len(one) + 1 for one in text.split("\n")[: line - 1])
    for head in _HEAD.finditer(text, 0, place):
        if head[1] not in _NO_FUNCTIONS and head.end() + len(_body(text, head.end() - 1)) > place:
            return head[1]
    return ""


def _body(text: str, start: int) -> str:
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return text[start : found.end()]
    return text[start:]


def _template_header(text: str) -> list[str]:
    """Parameters of the last `template <...>` that nothing but a return type follows."""
    begun = text.rfind("template")
    while begun > 0 and text[:begun].rstrip().endswith(("<", ",")):  # one of a template's own parameters
        begun = text.rfind("template", 0, begun)
    if begun < 0 or not re.match(r"template\s*<", text[begun:]):
        return []
    start = text.index("<", begun)
    parts, depth, last = [], 0, start + 1
    for at in range(start, len(text)):
        depth += (text[at] == "<") - (text[at] == ">")
        if (text[at] == "," and depth == 1) or depth == 0:
            parts.append(text[last:at])
            last = at + 1
        if depth == 0:
            return parts if re.fullmatch(r"[\w\s:&*<>,]*", text[at + 1 :]) else []
    return []


def _instances(
    text: str, function: str, tokens: Sequence[Token], sources: ReadSources, params: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Types that a template that launches is instantiated for, `template void invoke<half>(half* out);`, also
    by a macro."""
    own = re.escape(function)
    own_names = frozenset(params)
    pattern = rf"\btemplate\s+void\s+{own}\s*(?:<([^<>;]*)>|\(\s*(?:const\s+)?([\w:]+)\s*\*)"
    for listed, first in re.findall(pattern, text):
        yield tuple(part.strip() for part in (listed or first).split(","))
    for called in re.findall(rf"(?<![\w:]){own}\s*<([^<>;(){{}}]*)>\s*\(", text):
        parts = tuple(part.strip() for part in called.split(","))
        # What a dispatch makes of a name is known there: here such a place stays open.
        concrete = tuple(part if _is_concrete(part, text, sources) else "" for part in parts)
        if any(concrete) and not own_names.intersection(concrete):
            yield concrete
    for name, macro in sources.macros.items():
        body = " ".join(map(str, macro.body))
        if macro.parameters and re.search(rf"template void {own}\b|\b{own} <", body):
            listed = re.search(rf"\b{own} < ([^<>]*) > \(", body)
            for given in _calls(tokens, name):
                meant = dict(zip(macro.parameters, given, strict=False))
                words = [part.strip() for part in listed[1].split(",")] if listed else []
                if words and all(word in meant for word in words):
                    yield tuple(meant[word] for word in words)
                elif given and f"template void {function}" in body:
                    yield given


def _is_concrete(part: str, text: str, sources: ReadSources) -> bool:
    """A number, or a type, a class or a function that is one wherever it is named; not what dispatch makes of
    a name."""
    if part.isdecimal() or part in ("true", "false") or "::" in part:
        return True
    if elements_of(part, "cuda")[0] is not None:
        return True
    defined = rf"\b(?:struct|class|enum)\b[^;{{}}()]*\b{part}\b"
    if not part.isidentifier():
        return False
    function = re.compile(rf"\b(?:__device__|\w+_DEVICE)\b[^;{{}}()]*\b{part}\s*\(")
    return re.search(defined, text) is not None or any(function.search(file.text) for file in sources.files)


def _calls(tokens: Sequence[Token], name: str) -> Iterator[tuple[str, ...]]:
    for at, token in enumerate(tokens):
        follows = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.text != name or token.kind != "word" or follows != "(":
            continue
        inside: list[str] = []
        for inner in tokens[at + 2 : at + 40]:
            if inner.text == ")":
                break
            inside.append(inner.text)
        yield tuple(part.strip() for part in "".join(inside).split(","))


def _launching(macros: Mapping[str, Macro]) -> dict[str, Macro]:
    """Macros that launch something, by themselves or by another one."""
    found = {
        name for name, macro in macros.items() if any(t.text == "<<<" or t.text in CALLS for t in macro.body)
    }
    grown = True
    while grown:
        more = {
            name
            for name, macro in macros.items()
            if name not in found and any(token.text in found for token in macro.body)
        }
        found |= more
        grown = bool(more)
    return {name: macros[name] for name in found}


def _plain(macros: Mapping[str, Macro]) -> dict[str, str]:
    return {
        name: "".join(token.space + token.text for token in macro.body).strip()
        for name, macro in macros.items()
        if macro.parameters is None and 0 < len(macro.body) <= 12
    }
