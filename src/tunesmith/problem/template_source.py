"""The text of a template: declaration, macros, headers, and whether a compiler may be given it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import CPP, C, blank, directives, joined
from tunesmith.csource.nodes import Unreadable
from tunesmith.errors import BadInput
from tunesmith.problem import languages

_OPEN = re.compile(r"\s*//\s*///\s*tunesmith\s*")
_CLOSE = re.compile(r"\s*//\s*///\s*")
_COMMENT_LINE = re.compile(r"\s*// ?(.*)")
_EXAMPLE = 'open the file with "// /// tunesmith", then e.g. "// [params]", and close with "// ///"'

_DEFINE = re.compile(r"(\w+)(\(?)[ \t]*(.*)")
_INTEGER = re.compile(r"[(\s]*[-+]?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*[)\s]*")
_DEFINED = re.compile(r"\bdefined\s*(?:\w+|\(\s*\w+\s*\))")
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class DeclarationBlock:
    toml: str
    line: int  # of the line that opens it


@dataclass(frozen=True)
class Define:
    """One `#define` of a macro without arguments."""

    name: str
    value: str
    line: int
    conditions: tuple[str, ...]  # of the #if, #ifdef and #ifndef around it, outermost first
    follows_ifndef: bool  # stands right under `#ifndef name`

    @property
    def is_guarded(self) -> bool:
        """Whether a definition made before the text can take its place."""
        return any(self.name in WORD.findall(condition) for condition in self.conditions)

    @property
    def is_default(self) -> bool:
        """`#ifndef X` / `#define X 1`; an include guard has no value."""
        return self.follows_ifndef and _INTEGER.fullmatch(self.value) is not None


def find_block(text: str, path: str) -> DeclarationBlock:
    """The TOML text between `// /// tunesmith` and `// ///`, with its comment signs off."""
    lines = text.replace("\r\n", "\n").split("\n")
    opens = [number for number, line in enumerate(lines, 1) if _OPEN.fullmatch(line)]
    if not opens:
        fault = "a template declares its parameters in a comment, there is none"
        raise BadInput(fault, hint=_EXAMPLE, where=path)
    if len(opens) > 1:
        fault = f"a template has one declaration, a second opens here and the first at line {opens[0]}"
        raise BadInput(fault, hint="join the two", where=f"{path}:{opens[1]}")
    start = opens[0]
    inside: list[str] = []
    for line in lines[start:]:
        if _CLOSE.fullmatch(line):
            return DeclarationBlock("\n".join(inside), start)
        comment = _COMMENT_LINE.fullmatch(line)
        if comment is None:
            break
        inside.append(comment[1])
    fault = f"the declaration opened at line {start} is not closed before line {start + len(inside) + 1}"
    hint = 'end it with a line "// ///"; every line in between starts with //'
    raise BadInput(fault, hint=hint, where=f"{path}:{start}")


def defines(code: str) -> Iterator[Define]:
    conditions: list[str] = []
    word, rest, before = "", "", 0  # the directive above, and where it ends
    for directive in directives(code):
        under_ifndef = word == "ifndef" and not code[before : directive.start].strip()
        name, (word, rest) = rest, directive[:2]
        before = directive.end
        if word in ("if", "ifdef", "ifndef"):
            conditions.append(rest)
        elif word == "elif" and conditions:
            conditions[-1] += f" {rest}"
        elif word == "endif" and conditions:
            conditions.pop()
        elif word == "define" and (found := _DEFINE.fullmatch(rest)) and not found[2]:
            under = under_ifndef and name == found[1]
            yield Define(found[1], found[3].strip(), directive.line, tuple(conditions), under)


def used_words(code: str) -> frozenset[str]:
    """Every identifier the code uses; to ask whether a macro is defined, or to define it, is no use of it."""
    words = set(WORD.findall(blank(code, ("directive",))))
    for word, rest, *_ in directives(code):
        if word == "define":
            words.update(WORD.findall(rest)[1:])
        elif word not in ("ifdef", "ifndef", "undef", "error", "warning"):
            words.update(WORD.findall(_DEFINED.sub("", rest)))
    return frozenset(words)


MOST_FILES = 500
MOST_BYTES = 4 << 20

_SPELLED = re.compile(r"(?:\"([^\"\n]+)\"|<([^>\n]+)>)")


@dataclass(frozen=True)
class HeaderFile:
    path: str  # tells two files apart, and where to look for what it includes itself
    text: str


FindHeader = Callable[[str, str | None, Sequence[str]], HeaderFile | None]
"""The header of that spelling, among the include folders of the problem file. One in quotes comes with the
path of the file that includes it, which is looked beside first; one in <> comes with None."""


def no_headers(_spelling: str, _includer: str | None, _folders: Sequence[str]) -> HeaderFile | None:
    """For sources that stand alone."""
    return None


def includes(text: str) -> Iterator[tuple[str, bool]]:
    """What a text includes, as it is spelled, and whether in quotes."""
    for word, rest, *_ in directives(joined(text)):
        if word == "include" and (found := _SPELLED.match(rest)):
            yield found[1] or found[2], found[1] is not None


def user_headers(
    text: str, path: str, find: FindHeader, folders: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Every header of the user's that the source reaches, as included -> text.

    A file has its text under its first spelling alone: compilers that know headers by spelling would take
    another one for another file, and read what says `#pragma once` twice.
    """
    found: dict[str, HeaderFile] = {}
    first: dict[str, str] = {}  # path -> its first spelling
    waiting = [HeaderFile(path, text)]
    read = {path}
    size = 0
    while waiting:
        file = waiting.pop(0)
        for spelling, quoted in includes(file.text):
            header = find(spelling, file.path if quoted else None, folders)
            if header is None:
                continue
            known = found.get(spelling)
            if known is None:
                found[spelling] = header
                first.setdefault(header.path, spelling)
                size += len(header.text.encode(errors="surrogatepass"))
                _refuse_too_much(len(found), size, spelling)
            elif known.text != header.text:
                files = f"{known.path} and {header.path} (included by {file.path})"
                hint = "include one of them by another path, for instance with its folder's name"
                raise BadInput(f'"{spelling}" means two different files: {files}', hint=hint)
            if header.path not in read:
                read.add(header.path)
                waiting.append(header)
    # In <>: in quotes, a file "../c.h" that means "c.h" would find itself beside it.
    return tuple(
        (spelling, header.text if (own := first[header.path]) == spelling else f"#include <{own}>\n")
        for spelling, header in found.items()
    )


def _refuse_too_much(count: int, size: int, spelling: str) -> None:
    if count <= MOST_FILES and size <= MOST_BYTES:
        return
    rule = f"a kernel's own headers are at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB"
    hint = "take folders of libraries out of include, or include only the headers that the kernel uses"
    raise BadInput(f'{rule}, got {count} files and {size:,} bytes up to "{spelling}"', hint=hint)


_DIRECTIVE = re.compile(r"^[ \t\v]*(?:\#|%:)[ \t\v]*(?P<word>\w*)[ \t\v]*(?P<rest>[^\n]*)$", re.MULTILINE)
_NAMED = re.compile(r'(<[^>\n]+>|"[^"\n]+")')
_WORDS = re.compile(r"[^\W\d]\w*")
_PROTOTYPE = re.compile(r"(?:^|(?<=[;{}]))\s*(?:[^\W\d]\w*[\s*]+)+(?P<name>[^\W\d]\w*)\s*\([^(){};]*\)\s*;")
_DEFINITION = re.compile(r"\b(?P<name>[^\W\d]\w*)\s*\([^(){};]*\)\s*\{")
_ATTRIBUTE = re.compile(r"\b__attribute(?:__)?\b(?:\s*\(\s*\((?P<words>[^;{}]{0,200}?)\)\s*\))?")

_DIRECTIVES = frozenset({
    "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif", "pragma",
    "error", "warning", "line",
})  # fmt: skip
# Of the host, whatever a compiler for devices would make of it.
_HOST = re.compile(
    r"<<<|\bint\s+main\s*\(|\b(?:cuda|hip)(?:Malloc|Memcpy|Free|Launch|SetDevice|Stream)\w*\s*\("
)
_READS_FILES = frozenset({"__has_include", "__has_include_next", "__has_embed", "_Pragma", "__pragma"})
_ASSEMBLER = frozenset({"asm", "__asm", "__asm__"})
_HARMLESS = frozenset({
    "aligned", "__aligned__", "packed", "__packed__", "always_inline", "noinline", "unused", "const", "pure",
    "vec_type_hint", "work_group_size_hint", "reqd_work_group_size", "opencl_unroll_hint", "overloadable",
})  # fmt: skip
# Of the C library, which is in the process a kernel runs in. A macro could hide how they are declared.
_LIBRARY = frozenset({
    "system", "popen", "execl", "execle", "execlp", "execv", "execve", "execvp", "fork", "vfork", "clone",
    "syscall", "open", "openat", "creat", "fopen", "freopen", "fdopen", "unlink", "unlinkat", "remove",
    "rename", "rmdir", "mkdir", "chmod", "chown", "link", "symlink", "socket", "connect", "bind", "dlopen",
    "dlsym", "mmap", "mprotect", "kill", "ptrace", "setenv", "putenv", "getenv", "write", "read", "exit",
    "_exit", "abort", "raise", "signal", "sigaction", "longjmp", "malloc", "free", "memfd_create",
    "posix_spawn", "pthread_create",
})  # fmt: skip
_ON_DEVICE = frozenset({"malloc", "free", "abort"})  # which CUDA has for kernels, too
_ASM = re.compile(
    r"\b(?:asm|__asm__|__asm)\b(?:\s|volatile\b|__volatile__\b|goto\b)*\("
    r"(?P<argument>(?:[^()\"]|\"(?:\\.|[^\"\\\n])*\"|\([^()]*\))*)"
)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_STRINGISED = re.compile(r"^[ \t]*#[ \t]*define\b[^\n]*[^#\n]#[ \t]*[^\W\d]", re.MULTILINE)
# With a dot where an instruction might begin: `.reg .pred p;` declares, `.incbin` does not belong there.
_PTX_WORD = re.compile(r"(?:^|[\s;{}]|\\[nt])\.(\w+)")
_PTX_TYPES = frozenset({
    "reg", "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64",
    "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "v2", "v4",
})  # fmt: skip
_RAW_STRING = re.compile(r"(?:u8|[uUL])?R\"")
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NO_TYPE = frozenset({"return", "else", "goto", "case", "do", "sizeof"})


def vet(source: str, original: str, language: str) -> str | None:
    """Why a source that nobody here wrote must not be compiled; None where it may. `original` is what it was
    made from, whose includes it may have.

    It must be device code, and name no file but its own. The text is read as a compiler reads it; whether
    the kernel is right is the oracle's business. On a CPU a kernel is native code: there nothing may be
    called that the source does not define itself and OpenCL does not bring. On a GPU assembler may stand in
    functions, as instructions."""
    is_c = languages.named(language).is_native
    try:
        text, known = _bare(source, is_c), _includes(_bare_of_user(original, is_c))
    except Unreadable as error:
        return f"line {error.line}: {error.reason}"
    for directive in _DIRECTIVE.finditer(text):
        word, rest = directive["word"], directive["rest"]
        line = f"line {_line_at(text, directive.start())}"
        if word == "include":
            named = _NAMED.match(rest.strip())
            if named is None or named[0] not in known:
                have = ", ".join(sorted(known)) or "none"
                return f"{line}: #include {rest.strip()[:80]} is not among the original's, which are: {have}"
        elif word not in _DIRECTIVES and (word or rest.strip()):
            return f"{line}: #{word or rest.strip()[:40]} is not allowed in a template"
    code = _without_strings(text, is_c)
    words = set(_WORDS.findall(code))
    if reads := words & _READS_FILES:
        return f"{min(reads)} is not allowed in a template"
    host = _HOST.search(code)
    if host is not None:
        return f"{' '.join(host[0].split())!r} is host code; a template holds device code alone"
    return _vet_native(code, words, original) if is_c else _vet_device(text, code, words, original)


def vet_flags(flags: Sequence[str], language: str) -> str | None:
    """Why a build must not be given these. CUDA's own reader takes only what shapes device code; OpenCL's
    drivers take folders and files as well."""
    rules = languages.named(language)
    strange = [flag for flag in flags if rules.flags and not re.fullmatch(rules.flags, flag)]
    if not strange:
        return None
    allowed = f"in {rules.title} {rules.allowed_flags}"
    return f"the build flag {strange[0]!r} is not allowed in a template: {allowed}"


def _vet_device(text: str, code: str, words: set[str], original: str) -> str | None:
    """For a GPU's own compilers, which take device code alone: what is meant for the host is told as such."""
    known = set(_WORDS.findall(original))
    defined = {match["name"] for match in _DEFINITION.finditer(code)}
    called = {name for name in words & _LIBRARY if re.search(rf"\b{name}\b\s*\(", code)}
    if foreign := called - known - defined - _ON_DEVICE:
        return f"{min(foreign)}() is host code; a template holds device code alone"
    if not words & _ASSEMBLER:
        return None
    if _STRINGISED.search(code) and not _STRINGISED.search(
        _without_strings(_bare_of_user(original, is_c=False), is_c=False)
    ):
        return "# in a macro makes strings, which is not allowed beside asm: write instructions as they are"
    if sum(word in _ASSEMBLER for word in _WORDS.findall(code)) > sum(1 for _ in _ASM.finditer(code)):
        return "asm is not followed by its instructions: write them where it stands, in parentheses"
    at = depth = 0
    for match in _ASM.finditer(text):
        depth += code.count("{", at, match.start()) - code.count("}", at, match.start())
        at = match.start()
        if depth <= 0:
            return "asm outside of a function is not allowed in a template"
        written = "".join(part[1:-1] for part in _STRING.findall(match["argument"]))
        if strange := [word for word in _PTX_WORD.findall(written) if word not in _PTX_TYPES]:
            return f"asm with the directive .{strange[0]} is not allowed: instructions alone"
    return None


def _vet_native(code: str, words: set[str], original: str) -> str | None:
    if found := words & _ASSEMBLER:
        return f"{min(found)} is not allowed in OpenCL C: a template has no assembler"
    called = {name for name in words & _LIBRARY if re.search(rf"\b{name}\b\s*[(,)]", code)}
    if foreign := called - set(_WORDS.findall(original)):
        return (
            f"{min(foreign)} is a function of the C library; a template calls what it defines and built-ins"
        )
    if "##" in code and "##" not in original:
        return "## is not allowed in a template: names stand as they are"
    for attribute in _ATTRIBUTE.finditer(code):
        if attribute["words"] is None:
            return "__attribute__ is not followed by ((words)), at most 200 characters of them"
        strange = [word for word in _WORDS.findall(attribute["words"]) if word not in _HARMLESS]
        # Sizes are harmless, as in aligned(VEC * 4).
        if not all(word.isupper() or word in ("sizeof", "float", "int", "half") for word in strange):
            return f"__attribute__(({strange[0]})) is not allowed in a template"
    defined = {match["name"] for match in _DEFINITION.finditer(code)}
    for prototype in _prototypes(code):
        if prototype not in defined:
            return f"{prototype} is declared and not defined: a template calls what it defines and built-ins"
    return None


def _prototypes(code: str) -> Iterator[str]:
    """Functions that are declared, wherever that is."""
    for match in _PROTOTYPE.finditer(_DIRECTIVE.sub("", code)):
        before = _WORDS.findall(match[0][: match.start("name") - match.start()])
        if not _NO_TYPE.intersection(before):
            yield match["name"]


def _bare_of_user(original: str, is_c: bool) -> str:
    """The user's own source is compiled whatever is thought of it: where it cannot be read, as it stands."""
    try:
        return _bare(original, is_c)
    except Unreadable:
        return original


def _includes(text: str) -> frozenset[str]:
    found = (_NAMED.match(d["rest"].strip()) for d in _DIRECTIVE.finditer(text) if d["word"] == "include")
    return frozenset(match[0] for match in found if match is not None)


# -- the text as a compiler sees it when it looks for directives ---------------------------------------


def _bare(source: str, is_c: bool) -> str:
    """Spliced lines are one, comments are blanks; newlines that are gone stand as vertical tabs.

    What compilers read in more than one way is refused: a reader that goes astray there would take code for
    a comment.
    """
    text = source.replace("\r\n", "\n")
    if (found := _CONTROL.search(text) or _TRIGRAPH.search(text)) is not None:
        shown = found[0] if found[0].isprintable() else f"a control character ({found[0]!a})"
        reason = f"{shown} is not allowed in a template: compilers disagree on it"
        raise Unreadable(reason, text.count("\n", 0, found.start()) + 1)
    text = joined(text)
    parts: list[str] = []
    for element in (C if is_c else CPP).finditer(text):
        kind, word = element.lastgroup, element[0]
        if word in ('"', "'") or (kind == "comment" and word[1] == "*" and not word[2:].endswith("*/")):
            reason = f"{word[:2]} is opened and not closed"
            raise Unreadable(reason, _line_at(text, element.start()))
        if not is_c and _RAW_STRING.match(text, element.start()):
            reason = "raw strings are not allowed in a template: write an ordinary one"
            raise Unreadable(reason, _line_at(text, element.start()))
        gone = "\v" * (word.count("\n") + word.count("\v"))
        parts.append(f" {gone}" if kind == "comment" else word)
    return "".join(parts)


def _without_strings(text: str, is_c: bool) -> str:
    """A bare text with blanks in its strings: everything else stays where it is."""

    def blank(element: re.Match[str]) -> str:
        return f'"{" " * (len(element[0]) - 2)}"' if element.lastgroup == "string" else element[0]

    return (C if is_c else CPP).sub(blank, text)


def _line_at(text: str, place: int) -> int:
    return 1 + text.count("\n", 0, place) + text.count("\v", 0, place)
