"""How a repository's host code launches a kernel: its launches, with launch macros written out.

Long, because what a host function says of a launch is one question with many forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from tunesmith.expert.drafts.bare import KnownFacts
from tunesmith.expert.drafts.headers import LaunchSite, blank_source, elements_of, unambiguous_names
from tunesmith.expert.drafts.launches import (
    CALLS,
    DraftArgument,
    looks_like_a_size,
    possible_name,
    read_constants,
    read_launches,
    translate_expr,
)
from tunesmith.plugins.repo.extract.flatten import split_arguments
from tunesmith.plugins.repo.extract.items import past_bracket, split_text
from tunesmith.plugins.repo.extract.slice import FoundKernel
from tunesmith.plugins.repo.extract.tree import (
    SUFFIXES,
    Includes,
    ReadSources,
    SourceTree,
    is_frameworks,
    read_sources,
)
from tunesmith.problem.problem import TYPES
from tunesmith.source.lex import Token, find_parse_obstacle, lay_out_tokens, lex
from tunesmith.source.macros import MAX_TOKENS, Expansion, Macro, read_macro
from tunesmith.source.reader.grammar import syntax_tree
from tunesmith.source.reader.templates import kernel_definitions, launched_scope, scopes_at
from tunesmith.source.text import first_word
from tunesmith.source.tree import Unreadable
from tunesmith.space.expr import Undefined, is_name, parse_expr

_MAX_FILES = 12
_FUNCTION = re.compile(r"&?\s*(?:\w+\s*::\s*)*([A-Za-z_]\w*)\s*(?:<(.*)>)?")
_ALIAS = re.compile(r"^using\s+(\w+)\s*=\s*([\w:]+)\s*;", re.MULTILINE)
_TYPEDEF = re.compile(r"^typedef\s+([\w:]+)\s+(\w+)\s*;", re.MULTILINE)
_POINTER = re.compile(
    r"(?<=[;{}])\s*(?:const\s+)?([\w:]+)\s*(?:const\s*)?\*\s*(?:const\s+|__restrict__\s+)*(\w+)\s*=(?!=)"
)
_HEAD = re.compile(r"\b([A-Za-z_]\w*)\s*\([^{};]*?\)\s*(?:const\s*)?\{")
_NO_FUNCTIONS = frozenset({"if", "for", "while", "switch", "catch"})
_MAX_MACROS = 200
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
            is_kernels = path == found.item.path
            sources = found.sources if is_kernels else read_sources(tree, (path,), includes, defines)
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
    if path == found.item.path:
        return list(_in_file(path, found.sources, None))
    return list(_in_file(path, read_sources(tree, (path,), Includes(tree, folders), defines), None))


def _files_that_launch(tree: SourceTree, found: FoundKernel) -> list[str]:
    word = re.compile(rf"\b{re.escape(found.item.name)}\b")
    others = (path for path in tree.paths if path.endswith(SUFFIXES) and path != found.item.path)
    named = []
    for path in others:
        text = tree.read(path)
        launches = ("<<<" in text or "LaunchKernel" in text) and word.search(text)
        # One that defines a kernel of this name launches its own.
        if launches and not ("__global__" in text and defines_kernel(text, found.item.name)):
            named.append(path)
    folder = found.item.path.rpartition("/")[0]
    named.sort(key=lambda path: (not path.startswith(folder), path))
    return [found.item.path, *named[:_MAX_FILES]]


def defines_kernel(text: str, name: str) -> bool:
    return bool(kernel_definitions(lex(text), name))


def _of_kernel(
    launches: Iterator[HostLaunch], path: str, sources: ReadSources, found: FoundKernel
) -> list[HostLaunch]:
    """Without those of kernels of the same name in other namespaces, or in other headers that it includes."""
    name, spaces = found.item.name, found.item.spaces
    defining = {file.path: kernel_definitions(file.tokens, name) for file in sources.files}
    defined = {scope for scopes in defining.values() for scope in scopes}
    if spaces in defined and spaces not in defining.get(found.item.path, ()):
        return []
    if defined <= {spaces}:
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
        if launched_scope(scopes[at], written, defined) not in (None, spaces):
            others.add(token.line)
    return [launch for launch in launches if launch.site.line not in others]


def _in_file(path: str, sources: ReadSources, kernel: str | None) -> Iterator[HostLaunch]:
    """`kernel`: None: of every one."""
    file = next(file for file in sources.files if file.path == path)
    macros = dict(sources.macros)  # with those that the file has undone again
    tokens = list(_written_out(file.tokens, macros))
    text = blank_source(lay_out_tokens(tokens, 1), "cuda").code
    if (trouble := find_parse_obstacle(lex(text))) is not None:
        raise Unreadable(trouble)
    root = syntax_tree(text, "cuda")
    constants = {**_object_macros(sources.macros), **unambiguous_names(read_constants(root))}
    for site in map(_by_its_own_name, read_launches(root, text)):
        if kernel in (None, site.kernel) and not _NEVER.intersection(site.conditions):
            name = site.function or _function_around_line(text, site.line)
            around = _host_function(text, name, file.tokens, replace(sources, macros=macros))
            site = replace(site, aliases=(*_file_aliases(text), *site.aliases))
            yield HostLaunch(path, site, tuple(constants.items()), macros, around)


def _file_aliases(text: str) -> list[tuple[str, str]]:
    return [*_ALIAS.findall(text), *((name, meaning) for meaning, name in _TYPEDEF.findall(text))]


def _written_out(tokens: Sequence[Token], macros: dict[str, Macro]) -> Iterator[Token]:
    """Words with macros that launch expanded, each as it is defined at its place; `macros` grows by them."""
    waiting: list[Token] = []

    def flushed() -> list[Token]:
        launching = _launching_macros(macros)
        launching |= _dispatching_macros(waiting, launching, macros)
        if any(token.text in launching for token in waiting):
            return Expansion(launching, MAX_TOKENS).expand(waiting, frozenset(), 0)
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


def _dispatching_macros(
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
                found.update(_macro_closure(token.text, macros))
                break
    return found


def _macro_closure(name: str, macros: Mapping[str, Macro]) -> dict[str, Macro]:
    """A macro and those that it calls."""
    found: dict[str, Macro] = {}
    waiting = [name]
    while waiting and len(found) < _MAX_MACROS:
        word = waiting.pop(0)
        if word in macros and word not in found:
            found[word] = macros[word]
            waiting += [token.text for token in macros[word].body if token.kind == "word"]
    return found


def _host_function(text: str, name: str, tokens: Sequence[Token], sources: ReadSources) -> LaunchingFunction:
    """The function around a launch, by its words: its template parameters, what it is instantiated for."""
    head = re.search(rf"\b{re.escape(name)}\s*\(([^{{}};]*?)\)\s*(?:const\s*)?\{{", text) if name else None
    if head is None:
        return LaunchingFunction()
    before = _template_header(text[max(0, head.start() - 400) : head.start()])
    listed = [part.split("=")[0].split() for part in before]
    params = [words[-1] for words in listed if words]
    kinds = frozenset(words[-1] for words in listed if words and words[0] in ("typename", "class"))
    switches = frozenset(words[-1] for words in listed if len(words) == 2 and words[0] == "bool")
    types = {name: kind for kind, name in _POINTER.findall(_braced_body(text, head.end() - 1))}
    for part in head[1].split(","):
        words = re.findall(r"[\w:]+", part.split("=")[0])
        plain = [word for word in words if word not in ("const", "__restrict__", "struct", "unsigned")]
        if len(plain) > 1:
            types[plain[-1]] = plain[0]
    made = tuple(dict.fromkeys(_template_instances(text, name, tokens, sources, params)))
    framework = any(is_frameworks(one.name) for one in sources.outside)
    return LaunchingFunction(tuple(params), tuple(types.items()), made, framework, kinds, switches)


def _function_around_line(text: str, line: int) -> str:
    """The function around a line, by its words, where a grammar has lost it."""
    place = sum(len(one) + 1 for one in text.split("\n")[: line - 1])
    for head in _HEAD.finditer(text, 0, place):
        if head[1] not in _NO_FUNCTIONS and head.end() + len(_braced_body(text, head.end() - 1)) > place:
            return head[1]
    return ""


def _braced_body(text: str, start: int) -> str:
    return text[start : past_bracket(text, start, "{}") or len(text)]


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


def _template_instances(
    text: str, function: str, tokens: Sequence[Token], sources: ReadSources, params: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Types that a template that launches is instantiated for, `template void invoke<half>(half* out);`, also
    by a macro."""
    word = re.escape(function)
    pattern = rf"\btemplate\s+void\s+{word}\s*(?:<([^<>;]*)>|\(\s*(?:const\s+)?([\w:]+)\s*\*)"
    for listed, first in re.findall(pattern, text):
        yield tuple(part.strip() for part in (listed or first).split(","))
    for called in re.findall(rf"(?<![\w:]){word}\s*<([^<>;(){{}}]*)>\s*\(", text):
        parts = tuple(part.strip() for part in called.split(","))
        # What a dispatch makes of a name is known there: here such a place stays open.
        concrete = tuple(part if _is_concrete(part, text, sources) else "" for part in parts)
        if any(concrete) and not set(params).intersection(concrete):
            yield concrete
    for name, macro in sources.macros.items():
        body = " ".join(map(str, macro.body))
        if macro.parameters and re.search(rf"template void {word}\b|\b{word} <", body):
            listed = re.search(rf"\b{word} < ([^<>]*) > \(", body)
            for given in _macro_calls(tokens, name):
                meant = dict(zip(macro.parameters, given, strict=False))
                words = [part.strip() for part in listed[1].split(",")] if listed else []
                if words and all(part in meant for part in words):
                    yield tuple(meant[part] for part in words)
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


def _macro_calls(tokens: Sequence[Token], name: str) -> Iterator[tuple[str, ...]]:
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


def _launching_macros(macros: Mapping[str, Macro]) -> dict[str, Macro]:
    """Macros that launch something, by themselves or by another one."""
    found: set[str] = set()
    launching = {"<<<", *CALLS}
    while more := {
        name
        for name, macro in macros.items()
        if name not in found and any(token.text in launching for token in macro.body)
    }:
        found |= more
        launching |= more
    return {name: macros[name] for name in found}


def _object_macros(macros: Mapping[str, Macro]) -> dict[str, str]:
    return {
        name: "".join(token.space + token.text for token in macro.body).strip()
        for name, macro in macros.items()
        if macro.parameters is None and 0 < len(macro.body) <= 12
    }


# -- Sizes as the host has them: which of its names are sizes, shapes of tensors, conditions, what is passed.


_ASKS = re.compile(r"\.\s*(?:size|sizes|numel|stride|strides|dim|nbytes|ndimension)\b")
_SIZE = re.compile(r"^\(*(\w+)\.(?:size\s*\(\s*(-?\d+)\s*\)|sizes\s*\(\s*\)\s*\[\s*(-?\d+)\s*\])\)*$")
_STRIDE = re.compile(r"^\(*(\w+)\.stride\s*\(\s*(-?\d+)\s*\)\)*$")
_OVER = re.compile(r"^\(*(\w+)\.numel\s*\(\s*\)\s*/\s*\(*(\w+(?:\.size\s*\(\s*-?\d+\s*\))?)\)*$")
_NUMEL = re.compile(r"^\(*(\w+)\.numel\s*\(\s*\)\)*$")
_EQUAL = re.compile(r"^\s*([^=<>!&|]+?)\s*==\s*([^=<>!&|]+?)\s*$")
_DIM = re.compile(r"^(\w+)\.(?:dim|ndimension)\s*\(\s*\)$")
_MADE = re.compile(r"\b(?:empty|zeros|ones|full)\s*\(\s*\{([^{}]*)\}")
_LIKE = re.compile(r"\b(?:empty_like|zeros_like|ones_like)\s*\(\s*(\w+)\s*[,)]")
_TENSOR = re.compile(r"\b(\w+)\s*\.\s*(?:(?:const|mutable)_)?data_ptr\b|\b(\w+)\s*\.\s*data\s*(?:<|\()")
_CASTS = re.compile(
    r"\b(?:static_cast|reinterpret_cast|const_cast)\s*<[^<>]*>\s*\(([^()]*)\)|\((?:u?int\d*(?:_t)?|float|size_t|long)\)\s*"
)
_NULL = re.compile(r"(?:\(\s*[\w\s:]+\*\s*\)\s*)?(?:nullptr|NULL|0)")
_MULTIPLE = re.compile(r"^(\w+) % (\d+) == 0$")
_COMPARES = re.compile(r"[<>=!&|]=?(?!\w*>)")
_GCD = re.compile(r"^(?:std::)?gcd\s*\(.*,\s*(\w+)\s*\)$")  # how widths of vectors are found
_LISTED = re.compile(r"\[([^\[\]]+)\]")


@dataclass(frozen=True)
class HostFacts:
    """What the host's code says of a kernel's arguments, over sizes. `passed`: its own words for each."""

    sizes: tuple[str, ...]
    values: Mapping[str, str]  # scalar argument -> expression over sizes, or a number
    shapes: Mapping[str, tuple[str, ...]]
    shapes_from: Mapping[str, str]
    nulls: frozenset[str]
    multiples: Mapping[str, int]
    requires: tuple[str, ...]
    unread: tuple[str, ...]  # conditions that are not over sizes
    passed: Mapping[str, str]
    leaves: Mapping[str, str]  # the host's words -> the size that they are
    decided: Mapping[str, str]  # variables on which its dispatch decides


class HostFactReader:
    """`comments`: what stands beside each parameter in the kernel's header; `chosen`: variables on which the
    host's dispatch decides, with what they are for this instance."""

    def __init__(
        self,
        launch: HostLaunch,
        arguments: Sequence[DraftArgument],
        comments: Mapping[str, str],
        chosen: Mapping[str, str],
    ) -> None:
        self._site, self._arguments, self._comments = launch.site, arguments, comments
        said = {name: _strip_host_casts(value) for name, value in launch.site.settled}
        self._divided = {_GCD.match(said.get(name, "")): number for name, number in chosen.items()}
        self._settled, self._chosen = {**said, **chosen}, chosen
        pairs = zip(launch.site.arguments, arguments, strict=False)
        self._passed = {argument.name: _strip_host_casts(text) for text, argument in pairs}
        self._passed_sizes = self._find_passed_sizes()
        self._leaves = dict(self._found_leaves())
        constants = {n: v for n, v in launch.constants if n not in launch.site.local}
        plain = {n: v for n, v in self._settled.items() if n not in self._leaves}
        self._constants = {**constants, **plain}

    def facts(self) -> HostFacts:
        dims = _Dimensions(self._site, self._settled, self._translate_expr)
        shapes, sources = self._shapes(dims)
        values = dict(self._values(dims))
        requires, multiples, unread = self._read_conditions()
        return HostFacts(
            tuple(dict.fromkeys(self._leaves.values())),
            values,
            shapes,
            sources,
            frozenset(a.name for a in self._arguments if a.parameter.pointer and self._is_null(a.name)),
            multiples,
            requires,
            unread,
            self._passed,
            self._leaves,
            self._chosen,
        )

    def _find_passed_sizes(self) -> dict[str, str]:
        """The host's name for what is passed as it is -> the kernel's."""
        found: dict[str, str] = {}
        for argument in self._arguments:
            text = self._passed.get(argument.name, "")
            if argument.is_integer and not argument.parameter.pointer and is_name(text):
                found.setdefault(text, argument.name)
        return found

    def _found_leaves(self) -> Iterator[tuple[str, str]]:
        """Names and whole expressions that are sizes by themselves."""
        for name, value in self._settled.items():
            is_no_size = _COMPARES.search(value) or _STRIDE.match(value) or _DIM.match(value) or "?" in value
            if _ASKS.search(value) and not is_no_size:
                size = self._size_name(name)
                yield name, size
                yield value, size
        integers = {
            self._passed.get(a.name) for a in self._arguments if a.is_integer and a.parameter.base != "bool"
        }
        for name in sorted(self._site.local - self._settled.keys()):
            if name in integers and is_name(name) and looks_like_a_size(self._size_name(name)):
                yield name, self._size_name(name)
        for argument in self._arguments:
            text = self._passed.get(argument.name, "")
            if argument.is_integer and _SIZE.match(text):
                yield text, argument.name

    def _size_name(self, name: str) -> str:
        return self._passed_sizes.get(name, possible_name(name))

    def _translate_expr(self, text: str) -> str | None:
        found = translate_expr(_strip_host_casts(text), self._leaves, self._constants)
        return None if found is None or "." in found.replace("device.", "") else found

    def _is_null(self, name: str) -> bool:
        return _NULL.fullmatch(self._passed.get(name, "")) is not None

    def _values(self, dims: _Dimensions) -> Iterator[tuple[str, str]]:
        for argument in self._arguments:
            text = self._passed.get(argument.name)
            if text is None or argument.parameter.pointer or argument.element is None:
                continue
            if TYPES[argument.element].kind == "float":
                number = self._number(text)
                if number is not None:
                    yield argument.name, number
            else:
                stride = _STRIDE.match(self._settled.get(text, text))
                found = dims.stride(stride[1], int(stride[2])) if stride else self._translate_expr(text)
                if found is not None:
                    yield argument.name, found

    def _number(self, text: str) -> str | None:
        text = self._constants.get(text, text).strip().rstrip("fF")
        try:
            return repr(float(text))
        except ValueError:
            return None

    def _shapes(self, dims: _Dimensions) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        found: dict[str, tuple[str, ...]] = {}
        sources: dict[str, str] = {}
        for argument in self._arguments:
            if not argument.parameter.pointer or self._is_null(argument.name):
                continue
            tensor = self._passed_tensor(argument.name)
            shape = dims.shape(tensor) if tensor else None
            source = f"{tensor} in line {self._site.line}"
            written = self._commented_shape(argument.name, dims, tensor)
            if written is not None and (shape is None or len(written) > len(shape)):
                shape, source = written, "as the kernel's own comment says"
            if shape is not None:
                found[argument.name], sources[argument.name] = shape, source
        return found, sources

    def _passed_tensor(self, name: str) -> str:
        text = self._passed.get(name, "")
        for one in (text, self._settled.get(text, "")):
            match = _TENSOR.search(one)
            if match:
                return match[1] or match[2]
        return text if is_name(text) else ""

    def _commented_shape(self, name: str, dims: _Dimensions, tensor: str) -> tuple[str, ...] | None:
        """`// [rows, hidden]`, where all of its names are known sizes."""
        listed = _LISTED.search(self._comments.get(name, ""))
        if listed is None:
            return None
        axes: list[str] = []
        parts = [part.strip() for part in listed[1].split(",")]
        for part in parts:
            if part == "...":
                leading = dims.leading(tensor, len(parts) - 1)
                if leading is None:
                    return None
                axes.append(leading)
                continue
            said = self._translate_expr(part)
            if said is None or not set(parse_expr(said).names) <= {*self._leaves.values(), *self._integers()}:
                return None
            axes.append(said)
        return tuple(axes)

    def _integers(self) -> set[str]:
        return {a.name for a in self._arguments if a.is_integer and not a.parameter.pointer}

    def _read_conditions(self) -> tuple[tuple[str, ...], dict[str, int], tuple[str, ...]]:
        requires: dict[str, None] = {}
        multiples: dict[str, int] = {}
        for asked, number in self._divided.items():
            if asked is not None and (said := self._translate_expr(asked[1])) and is_name(said):
                multiples[said] = int(number)
        unread: dict[str, None] = {}
        for text in (*self._site.checks, *self._site.conditions):
            for part in _split_conjuncts(self._spelled(_strip_host_casts(text))):
                said = self._translate_expr(part)
                if said is None or not parse_expr(said).names:
                    if said is None and not _is_idle(part) and not _is_of_shapes(part):
                        unread[part] = None
                    continue
                multiple = _MULTIPLE.match(said)
                if multiple:
                    multiples[multiple[1]] = max(int(multiple[2]), multiples.get(multiple[1], 1))
                elif not _is_tautology(said):
                    requires[said] = None
        return tuple(requires), multiples, tuple(unread)

    def _spelled(self, text: str) -> str:
        """A condition that has a name of its own, as what it stands for."""
        for _ in range(4):
            if text not in self._settled:
                break
            text = self._settled[text]
        return text


class _Dimensions:
    """Extents of tensors, from what the host asks of them and checks."""

    def __init__(
        self, site: LaunchSite, settled: Mapping[str, str], translate: Callable[[str], str | None]
    ) -> None:
        self._settled, self._translate_expr = settled, translate
        self._known: dict[tuple[str, int], str] = {}
        self._rows: dict[str, tuple[str, str]] = {}  # tensor -> numel / last, last
        self._ranks: dict[str, int] = {}
        equal = [m.groups() for text in site.checks if (m := _EQUAL.match(_strip_host_casts(text)))]
        for name, value in settled.items():
            self._learn_dimension(value, name)
        both_ways = (*equal, *((right, left) for left, right in equal))
        for left, right in both_ways:
            self._learn_dimension(_strip_host_casts(left), _strip_host_casts(right))
        for left, right in both_ways:
            one, other = _SIZE.match(_strip_host_casts(left)), _SIZE.match(_strip_host_casts(right))
            if one and other and (key := _dimension_key(other)) in self._known:
                self._known.setdefault(_dimension_key(one), self._known[key])

    def _learn_dimension(self, value: str, name: str) -> None:
        said = self._translate_expr(name)
        size, over, rank = _SIZE.match(value), _OVER.match(value), _DIM.match(value)
        if rank and name.isdecimal():
            self._ranks[rank[1]] = int(name)
        if said is None:
            return
        if size:
            self._known.setdefault(_dimension_key(size), said)
        elif over and (other := self._translate_expr(over[2])) is not None:
            size = _SIZE.match(self._settled.get(over[2], over[2]))
            is_last = size is not None and _dimension_key(size)[1] == -1
            self._rows[over[1]] = (said, other) if is_last else (other, said)
        elif whole := _NUMEL.match(value):
            self._known.setdefault((whole[1], 99), said)

    def shape(self, tensor: str) -> tuple[str, ...] | None:
        made = self._settled.get(tensor, "")
        if listed := _MADE.search(made):
            axes = [self._translate_expr(part) for part in listed[1].split(",")]
            return tuple(axis for axis in axes if axis) if all(axes) else None
        if like := _LIKE.search(made):
            return self.shape(like[1]) if like[1] != tensor else None
        first = [at for name, at in self._known if name == tensor and 0 <= at < 99]
        rank = self._ranks.get(tensor)
        if first and sorted(first) == list(range(max(first) + 1)) and rank in (None, len(first)):
            axes = [self._known[tensor, at] for at in sorted(first)]
            if (tensor, -1) in self._known and rank is None and self._known[tensor, -1] != axes[-1]:
                axes.append(self._known[tensor, -1])
            return tuple(axis for axis in axes if axis)
        if tensor in self._rows:
            return self._rows[tensor]
        if (tensor, 99) in self._known:
            return (self._known[tensor, 99],)
        return None

    def leading(self, tensor: str, others: int) -> str | None:
        """What `...` before so many axes stands for: as many rows as any tensor of the call has."""
        rows = self._rows.get(tensor) or next(iter(self._rows.values()), None)
        if rows is not None:
            return rows[0]
        shape = self.shape(tensor)
        return " * ".join(shape[: len(shape) - others]) if shape and len(shape) > others else None

    def stride(self, tensor: str, at: int) -> str | None:
        """Of a dense array."""
        shape = self.shape(tensor)
        if shape is None or not -len(shape) <= at < len(shape):
            return None
        inner = shape[len(shape) + at + 1 :] if at < 0 else shape[at + 1 :]
        return " * ".join(axis if is_name(axis) else f"({axis})" for axis in inner) or "1"


def _dimension_key(match: re.Match[str]) -> tuple[str, int]:
    return match[1], int(match[2] or match[3])


def _strip_host_casts(text: str) -> str:
    for _ in range(4):
        plain = _CASTS.sub(lambda m: m[1] if m[1] is not None else "", text)
        if plain == text:
            break
        text = plain
    return text.strip().replace("->", ".")


def _split_conjuncts(text: str) -> list[str]:
    parts = (part.strip() for part in split_text(text, "&&", "([{", ")]}"))
    return [_strip_parentheses(part) for part in parts if part]


def _strip_parentheses(text: str) -> str:
    """Without parentheses around the whole."""
    while text.startswith("(") and text.endswith(")") and past_bracket(text, 0, "()") in (0, len(text)):
        text = text[1:-1].strip()
    return text


def _is_idle(text: str) -> bool:
    """What a problem file need not say: devices, types and layouts that arrays have by being described."""
    return bool(
        re.search(r"is_cuda|is_contiguous|scalar_type|dtype|device|defined\(\)|has_value|is_privateuse", text)
    )


def _is_of_shapes(text: str) -> bool:
    """Extents of two tensors that are the same: their shapes say so."""
    sides = _EQUAL.match(text)
    asked = (_SIZE, _NUMEL, _DIM, _STRIDE)
    return sides is not None and all(
        side.isdecimal() or any(pattern.match(_strip_host_casts(side)) for pattern in asked)
        for side in sides.groups()
    )


def _is_tautology(text: str) -> bool:
    left, mark, right = text.partition(" == ")
    return bool(mark) and left == right


# -- Which instance of a template a launch asks for: what dispatch makes of names, and types of arguments.


_SCALARS = {
    "Float": "float", "Double": "double", "Half": "c10::Half", "BFloat16": "c10::BFloat16",
    "Byte": "uint8_t", "Char": "int8_t", "Short": "int16_t", "Int": "int", "Long": "int64_t", "Bool": "bool",
    "UInt16": "uint16_t", "UInt32": "uint32_t", "UInt64": "uint64_t",
    "Float8_e4m3fn": "c10::Float8_e4m3fn", "Float8_e5m2": "c10::Float8_e5m2",
}  # fmt: skip
_BUILT_IN = (
    ("FLOATING", ("float", "double")),
    ("INTEGRAL", ("uint8_t", "int8_t", "int16_t", "int", "int64_t")),
    ("ALL_TYPES", ("float", "double", "uint8_t", "int8_t", "int16_t", "int", "int64_t")),
)
_PREFERRED = ("c10::BFloat16", "c10::Half", "__half", "half", "__nv_bfloat16", "float")
_USING = re.compile(r"\busing\s+(\w+)\s*=\s*([\w:]+)\s*;")
_CONSTANT = re.compile(r"\bconstexpr\s+(?:static\s+)?[\w:]+\s+(\w+)\s*=\s*(\d+|true|false)\s*;")


def dispatch_choices(launch: HostLaunch) -> dict[str, tuple[str, ...]]:
    """What the dispatch around a launch may make of names: `scalar_t` -> float, c10::Half, ..."""
    found: dict[str, dict[str, None]] = {}
    for name, *arguments in launch.site.around:
        text = _macro_bodies(name, launch.macros)
        types = [_SCALARS[word] for word in _scalar_words(f"{text} {' '.join(arguments)}")]
        if "DISPATCH" in name and not types:
            types = [one for part, listed in _BUILT_IN if part in name for one in listed]
        if "DISPATCH" in name and "HALF" in name:
            types.append("c10::Half")
        if "DISPATCH_INDEX_TYPES" in name and not types:
            found.setdefault("index_t", {}).update({"int": None, "int64_t": None})
        elif types:
            found.setdefault(_type_name(text), {}).update(dict.fromkeys(types))
        macro = launch.macros.get(name)
        given = dict(zip(macro.parameters or (), arguments, strict=False)) if macro is not None else {}
        for pattern in (_USING, _CONSTANT):
            for word, value in pattern.findall(text):
                found.setdefault(given.get(word, word), {})[value] = None
    for at, name in enumerate(launch.around.params):
        said = dict.fromkeys(one[at] for one in launch.around.instances if at < len(one) and one[at])
        if said and name not in found:
            found[name] = said
    return {name: tuple(values) for name, values in found.items()}


def preferred_choice(name: str, values: Sequence[str], widest: int = 16) -> str:
    """What is most likely run in production: the narrow float, the widest vector, the feature switched on.

    `widest`: elements that 16 bytes hold.
    """
    for one in _PREFERRED:
        if one in values:
            return one
    if re.search("index|idx", name, re.IGNORECASE):
        values = [one for one in ("int64_t", "int") if one in values] or values
    numbers = sorted((value for value in values if value.isdecimal()), key=int)
    if numbers and re.search("vec|width", name, re.IGNORECASE):
        return max((value for value in numbers if int(value) <= widest), key=int, default=numbers[0])
    if numbers:
        return numbers[0] if re.search("rank|dim", name, re.IGNORECASE) else numbers[-1]
    return "true" if "true" in values else values[0]


def _scalar_words(text: str) -> Iterator[str]:
    for spelled in re.findall(r"\bScalarType\s*::\s*(\w+)|\bk([A-Z]\w+)\b", text):
        word = next(filter(None, spelled))
        if word in _SCALARS:
            yield word


def _type_name(text: str) -> str:
    hinted = re.search(r"_USING_HINT\s*\([^,()]*,\s*(\w+)", text)
    return hinted[1] if hinted else "scalar_t"


def _macro_bodies(name: str, macros: Mapping[str, Macro]) -> str:
    return " ".join(str(token) for macro in _macro_closure(name, macros).values() for token in macro.body)


_NUMBER = re.compile(r"\d+")
_CAST_TO = re.compile(
    r"(?:(?:reinterpret|static|const)_cast\s*<\s*|\(\s*)(?:const\s+)?([\w:]+)(?:\s+const)?\s*\*\s*[>)]"
)
_NUMBER_CAST = re.compile(r"static_cast\s*<\s*([\w:]+)\s*>\s*\(")
_POINTED = re.compile(r"data_ptr\s*<\s*([^<>]+?)\s*>")


@dataclass(frozen=True)
class ChosenEntry:
    """Template arguments of a launch. `open_names`: what nobody says; `offered`: names that have several
    meanings, with all of them."""

    arguments: tuple[str, ...]
    open_names: tuple[str, ...]
    offered: tuple[tuple[str, tuple[str, ...]], ...]
    decided: tuple[tuple[str, str], ...] = ()  # the host's variable that dispatch asks for -> its value
    guessed: tuple[tuple[str, str], ...] = ()  # types of a template that nobody says, and what was taken


@dataclass(frozen=True)
class ChosenLaunch:
    """The launch that is meant, of so many others, and its instance."""

    launch: HostLaunch | None
    chosen: ChosenEntry
    others: int


def chosen_entry(
    launch: HostLaunch, template_params: Sequence[str], parameter_types: Sequence[str], known: frozenset[str]
) -> ChosenEntry:
    """The instance that a launch asks for; `parameter_types`: what kernel parameters point to, in order;
    `known`: names that device code may use as they are."""
    options = dispatch_choices(launch)
    open_types = [n for n in launch.around.params if n in launch.around.kinds and n not in options]
    guesses = {name: _guess_type(name, launch) for name in open_types}
    unset = [n for n in launch.around.params if n in launch.around.switches and n not in options]
    guesses |= dict.fromkeys(unset, "false")
    options |= {name: (guess,) for name, guess in guesses.items()}
    said = launch.site.template_args
    if said is None:
        texts = _deduce_types(launch, template_params, parameter_types)
    else:
        texts = [text.strip() for text in split_text(said)]
        rest = template_params[len(texts) :]
        texts += _deduce_types(launch, rest, parameter_types)
    aliases = dict(launch.site.aliases)
    constants = {**dict(launch.constants), **dict(launch.site.settled)}
    resolved, left, offered = [], list[str](), dict[str, tuple[str, ...]]()
    widest, taken = 16, dict[str, str]()
    for text in texts:
        words: list[Token] = []
        for token in _spelled_out(text, aliases, constants, options):
            if token.kind == "word" and token.text in options:
                if len(options[token.text]) > 1:
                    offered[token.text] = options[token.text]
                chosen = preferred_choice(token.text, options[token.text], widest)
                element = elements_of(chosen, "cuda")[0]
                widest = 16 // TYPES[element].bytes if element in TYPES else widest
                taken[token.text] = chosen
                words += lex(chosen)
            else:
                words.append(token)
        left += _unknown_words(words, known)
        resolved.append(_join_argument(words))
    decided = tuple(_decided_values(launch, taken))
    named = (tuple(resolved), tuple(dict.fromkeys(left)), tuple(offered.items()))
    taken_for = tuple((name, guess) for name, guess in guesses.items() if name in taken)
    return ChosenEntry(*named, decided, taken_for)


def _guess_type(name: str, launch: HostLaunch) -> str:
    """Sums and statistics are kept in float, indices are integers, data is in half precision."""
    if re.search(r"index|idx|offset", name, re.IGNORECASE):
        return "int"
    if re.search(r"acc|comp|float|^U$", name, re.IGNORECASE):
        return "float"
    return "c10::Half" if launch.around.framework else "__half"


def _decided_values(launch: HostLaunch, taken: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """`DISPATCH(width, [&] { ... constexpr int W = 8; ... })` with W for 8: width is 8."""
    for name, *arguments in launch.site.around:
        made = dict(_CONSTANT.findall(_macro_bodies(name, launch.macros)))
        for word, value in taken.items():
            if word in made and value.isdecimal() and arguments and arguments[0].isidentifier():
                yield arguments[0], value


def _deduce_types(launch: HostLaunch, params: Sequence[str], types: Sequence[str]) -> list[str]:
    """A kernel launched without them: what its pointers are cast to, or are by their declaration."""
    found: dict[str, str] = {}
    settled = dict(launch.site.settled)
    declared = dict(launch.around.types)
    for text, base in zip(launch.site.arguments, types, strict=False):
        value = settled.get(text, "")
        casts = (pattern.search(words) for words in (text, value) for pattern in (_POINTED, _CAST_TO))
        numbers = (_NUMBER_CAST.match(words) for words in (text, value))
        pointed = next(filter(None, (*casts, *numbers)), None)
        said = pointed[1].replace("const ", "").strip() if pointed else declared.get(text)
        if base in params and said:
            found.setdefault(base, said)
    return [found[name] for name in takewhile(found.__contains__, params)]


def _spelled_out(
    text: str,
    aliases: Mapping[str, str],
    constants: Mapping[str, str],
    options: Mapping[str, tuple[str, ...]],
) -> list[Token]:
    tokens = lex(text)
    for _ in range(8):
        done: list[Token] = []
        changed = False
        for token in tokens:
            meaning = aliases.get(token.text) if token.kind == "word" else None
            if meaning is None and token.text not in options:
                value = constants.get(token.text, "")
                meaning = value if _NUMBER.fullmatch(value) or value in ("true", "false") else None
                meaning = meaning or _evaluate_sizeof(value, aliases, options)
            changed = changed or meaning is not None
            done += lex(meaning) if meaning is not None else [token]
        tokens = done
        if not changed:
            break
    return tokens


_PLAIN_WORDS = frozenset({
    "true", "false", "float", "double", "int", "unsigned", "char", "short", "long", "bool", "const", "void",
    "typename",
})  # fmt: skip
_PLAIN_TYPE = re.compile(r"u?int\d+_t|__?nv_\w+|__half2?|half2?|size_t")


def _evaluate_sizeof(
    value: str, aliases: Mapping[str, str], options: Mapping[str, tuple[str, ...]]
) -> str | None:
    """A number by sizes of types: `sizeof(float4) / sizeof(scalar_t)`."""
    if "sizeof" not in value:
        return None
    chosen = {name: preferred_choice("", values) for name, values in options.items() if values}
    for _ in range(4):
        value = " ".join(aliases.get(t.text) or chosen.get(t.text) or t.text for t in lex(value))
    said = translate_expr(value.replace(" :: ", "::"), {}, {})
    try:
        return str(parse_expr(said).evaluate({})) if said is not None and not parse_expr(said).names else None
    except Undefined:
        return None


def _unknown_words(tokens: Sequence[Token], known: frozenset[str]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        if token.kind != "word" or token.text in _PLAIN_WORDS or token.text in known:
            continue
        beside = (*tokens[max(at - 1, 0) : at], *tokens[at + 1 : at + 2])
        is_qualified = any(mark.text == "::" for mark in beside)
        if not is_qualified and not _PLAIN_TYPE.fullmatch(token.text):
            yield token.text


def _join_argument(tokens: Sequence[Token]) -> str:
    text = "".join(f" {token}" if re.match(r"\w", token.text) else token.text for token in tokens)
    return re.sub(r"(?<!\w) (?=\w)", "", text).replace(",", ", ")


# -- Which launches of the host's are of the same kernel: a template has one for each list of arguments.


def is_alone(meant: ChosenLaunch, launches: Sequence[HostLaunch]) -> bool:
    """Whether every other launch is surely of another instance than the one that is meant."""
    return meant.launch is not None and all(
        one is meant.launch or _has_other_arguments(one, meant.chosen.arguments) for one in launches
    )


def _has_other_arguments(launch: HostLaunch, arguments: Sequence[str]) -> bool:
    aliases = (name for name, _ in launch.site.aliases)
    unsure = {*launch.around.params, *launch.macros, *launch.site.local, *aliases}
    for part, argument in zip(split_arguments(launch.site.template_args or ""), arguments, strict=False):
        pair = _fixed_meaning(part), _fixed_meaning(argument)
        if part not in unsure and None not in pair and pair[0] != pair[1]:
            return True
    return False


def _fixed_meaning(argument: str) -> tuple[str, int] | None:
    """What it means wherever it stands: a number, or a type of the language; None: that depends."""
    text = " ".join(argument.split())
    if text.isdecimal():
        return "", int(text)
    if text in ("true", "false"):
        return "", int(text == "true")
    element, count = elements_of(text, "cuda")
    return None if element is None or "::" in text else (element, count)


# -- How far a contract goes: as the host's own checks say, else as far as sizes were seen or given.


# Conditions that are a bound by themselves: those of the contract, and no longer conditions.
_BOUND = re.compile(r"(\w+) (<=|<|>=|>) (\d+)")


def with_limits(known: KnownFacts, how: str) -> KnownFacts:
    """`how`: sizes of workloads are "seen" or "given"; what nobody says stays open."""
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    others: list[str] = []
    for text in known.requires:
        bound = _BOUND.fullmatch(text)
        if bound is None:
            others.append(text)
        elif bound[2] in ("<=", "<"):
            value = int(bound[3]) - (bound[2] == "<")
            most[bound[1]] = min(value, most.get(bound[1], value))
        else:
            value = int(bound[3]) + (bound[2] == ">")
            least[bound[1]] = max(value, least.get(bound[1], value))
    limits: dict[str, tuple[int, int]] = {}
    said: dict[str, str] = {}
    largest = _largest_sizes(known)
    for name in dict.fromkeys((*largest, *most)):
        step = int(known.multiples.get(name, 1))
        end = most[name] // step * step if name in most else -(-largest[name] // step) * step
        start = max(step, -(-least.get(name, 1) // step) * step)
        if end < start or end < largest.get(name, 0):  # a check of another instance
            end, start = -(-largest[name] // step) * step if name in largest else start, step
            most.pop(name, None)
        limits[name] = (start, end)
        said[name] = "as the host checks" if name in most else f"the largest that was {how}"
    unused = [f"{name} >= {value}" for name, value in least.items() if name not in limits]
    return replace(known, limits=limits, limits_from=said, requires=(*others, *unused))


def _largest_sizes(known: KnownFacts) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in (size for workload in known.workloads for size in workload.sizes):
        found[name] = max(value, found.get(name, 0))
    return found
