"""A source text as a tree: its functions, and everything around them.

What cannot be read is said in `unread`, with a line number, and does not keep the rest from being read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tunesmith.csource import nodes as c
from tunesmith.csource.fold import fold, int_value
from tunesmith.csource.grammar import GrammarText, grammar_text, known_names
from tunesmith.csource.lex import MAX_TEXT, Token, closing_angle, layout, obstacle, squeeze
from tunesmith.csource.local_records import LocalRecord, taken_out
from tunesmith.csource.namespaces import flattened
from tunesmith.csource.parse_functions import KERNEL_WORDS
from tunesmith.csource.parse_lambdas import LambdaReader
from tunesmith.csource.parse_records import RECORDS, OutsideMethod, RecordReader, with_outside
from tunesmith.csource.predefined import Predefined
from tunesmith.csource.preprocess import HeaderAsked, Toolkit, preprocess
from tunesmith.csource.substitution import substitute
from tunesmith.csource.syntax import syntax_nodes, syntax_tree
from tunesmith.csource.types import canonical, integer, of_type

if TYPE_CHECKING:
    from tree_sitter import Node

_DEVICE_WORDS = KERNEL_WORDS | {"__device__", "constexpr"}


def read_source_tree(
    text: str,
    language: c.Language,
    defines: Iterable[tuple[str, str]] = (),
    headers: Sequence[tuple[str, str]] = (),
    toolkit: Toolkit = "unknown",
    predefined: Predefined | None = None,
) -> c.Source:
    """`defines`: macros given to the compiler, as name and text; `headers`: the user's own, as included ->
    text, which become part of the source; `toolkit`: whether its headers tell their version;
    `predefined`: the compiler's own macros, None: assumed ones. Never raises for what the text holds."""
    if len(text) + sum(len(header) for _, header in headers) > MAX_TEXT:
        return c.Source(language, (), unread=(f"the file is longer than {MAX_TEXT:,} characters",))
    try:
        prepared = preprocess(text, language, defines, headers, toolkit, predefined)
    except c.Unreadable as trouble:
        reason = f"line {trouble.line}: {trouble.reason}" if trouble.line else trouble.reason
        return c.Source(language, (), unread=(reason,), asks_toolkit=isinstance(trouble, HeaderAsked))
    if (fault := obstacle(prepared.tokens)) is not None:
        return c.Source(language, (), unread=(fault,))
    try:
        flat = flattened(prepared.tokens, language)
    except c.Unreadable as trouble:
        return c.Source(language, (), unread=(f"line {trouble.line}: {trouble.reason}",))
    tokens = flat.tokens
    known = known_names(tokens, language)
    place = grammar_text(tokens, language, known)
    root = syntax_tree(place.text, language)
    found = _Found()
    if root.type == "ERROR" or any(child.type == "ERROR" for child in root.children):
        for item in top_level_items(tokens):
            part = grammar_text(item, language, known)
            _FileReader(part, found).read(syntax_tree(part.text, language))
    else:
        _FileReader(place, found).read(root)
    pragmas = tuple(f"#{t.text}" for t in tokens if t.kind == "directive" and "OPENCL" in t.text)
    return c.Source(
        language,
        tuple(found.functions),
        includes=prepared.includes,
        preamble=(*pragmas, *found.preamble),
        constants=tuple(pair for pair in found.constants.items() if pair[0] not in found.doubtful),
        aliases=tuple(found.aliases.items()),
        shared=tuple(found.shared),
        records=with_outside(found.records, found.methods),
        prototypes=tuple(found.prototypes),
        operators=tuple(found.operators),
        of_records=frozenset(found.of_records),
        spellings=flat.spellings,
        unread=(*prepared.problems, *found.unread),
        decided=prepared.decided,
    )


def read_expression(text: str, language: c.Language = "cuda") -> c.Expr:
    """One expression by itself, such as a template argument; raises Unreadable."""
    source = read_source_tree(f"__device__ void expression() {{ return ({text}); }}", language)
    body = source.functions[0].body if len(source.functions) == 1 and not source.unread else ()
    if len(body) == 1 and isinstance(body[0], c.Return) and body[0].value is not None:
        return body[0].value
    raise c.Unreadable(f"`{text}` is not understood as an expression")


def read_type(text: str, language: c.Language = "cuda") -> c.Type:
    """One type by itself; raises Unreadable."""
    source = read_source_tree(f"__device__ void type({text} parameter) {{}}", language)
    if len(source.functions) == 1 and len(source.functions[0].parameters) == 1 and not source.unread:
        return source.functions[0].parameters[0].type
    raise c.Unreadable(f"`{text}` is not understood as a type")


@dataclass
class _Found:
    functions: list[c.Function] = field(default_factory=list)
    preamble: list[str] = field(default_factory=list)
    constants: dict[str, c.Expr] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    shared: list[c.Declare] = field(default_factory=list)
    records: list[c.Record] = field(default_factory=list)
    prototypes: list[c.Function] = field(default_factory=list)
    operators: list[c.Function] = field(default_factory=list)
    methods: list[OutsideMethod] = field(default_factory=list)
    of_records: list[str] = field(default_factory=list)  # among the preamble
    unread: list[str] = field(default_factory=list)
    doubtful: set[str] = field(default_factory=set)  # constants of one name with several values


class _FileReader:
    def __init__(self, place: GrammarText, found: _Found) -> None:
        self.place = place
        self.found = found
        self.reader = LambdaReader(place)

    def read(self, root: Node) -> None:
        pending = list(reversed(root.named_children))
        if root.type == "ERROR":  # the whole file: what is around its functions means nothing
            self._unread(root, "this could not be read")
            pending = [
                node for node in pending if node.type in ("function_definition", "template_declaration")
            ]
        while pending:
            node = pending.pop()
            match node.type:
                case "function_definition" | "template_declaration":
                    self._function_or_template(node)
                case "namespace_definition" | "linkage_specification":
                    body = node.child_by_field_name("body")
                    if body is None:
                        continue
                    pending += reversed(body.named_children) if body.type == "declaration_list" else [body]
                case "ERROR":
                    # A broken head may hide whole functions below it.
                    self._unread(node, "this could not be read")
                    pending += reversed([n for n in node.named_children if n.type == "function_definition"])
                case "comment" | "preproc_call" | "template_instantiation":
                    pass  # what is asked for by name is instantiated by that
                case _:
                    self._other(node)

    def _unread(self, node: Node, reason: str) -> None:
        error = next((n for n in syntax_nodes(node) if n.type == "ERROR" or n.is_missing), node)
        line = self.place.line(error)
        shown = " ".join(self.place.written(error).split())[:60]
        self.found.unread.append(f"line {line}: {reason}" + (f": `{shown}`" if shown else ""))

    def _other(self, node: Node) -> None:
        text = self._whole_text(node)
        if not text.strip(" ;"):
            return
        if node.type == "declaration" and not node.has_error:
            if self._file_shared(node):
                return
            self._file_constants(node)
            parts = (n for part in node.children_by_field_name("declarator") for n in syntax_nodes(part))
            if any(part.type == "function_declarator" for part in parts):
                return  # a prototype: functions are put in order by who calls whom
        elif node.type == "alias_declaration" or node.type == "type_definition":
            self._alias(node)
            named = node.child_by_field_name("type")
            if named is not None and named.type == "enum_specifier":  # typedef enum mode { FAST } mode_t;
                self._enumerators(named)
        elif node.type == "enum_specifier":
            self._enumerators(node)
        elif node.has_error:
            self._unread(node, "this could not be read")
        elif node.type in RECORDS:
            self._record(node, ())
            self._static_functions(node)
        self.found.preamble.append(text)
        if node.type in RECORDS or (
            node.type == "template_declaration" and node.named_children[-1].type in RECORDS
        ):
            self.found.of_records.append(text)

    def _record(self, node: Node, template: tuple[c.TemplateParameter, ...]) -> None:
        if self.place.language == "opencl":
            return
        records, friends = RecordReader(self.place, self.reader).records(node, template)
        self.found.records += records
        self.found.operators += friends

    def _without_local_records(self, function: c.Function, node: Node, start: int) -> c.Function:
        """Its plain structures among those of the file; `start`: the first token of its template."""
        body = node.child_by_field_name("body")
        inside = [part for part in body.named_children if part.type in RECORDS] if body is not None else []
        if not inside or self.place.language == "opencl" or not function.is_kernel:
            return function
        found: list[LocalRecord] = []
        for part in inside:
            records, _ = RecordReader(self.place, self.reader).records(part, ())
            if len(records) == 1:
                found.append(LocalRecord(records[0], self.place.written(part), self.place.line(part)))
        end = closing_angle(self.place.tokens, start + 1) if function.template else None
        head = "" if end is None else squeeze(self.place.tokens[start : end + 1])
        if function.template and not head.startswith("template"):
            return function
        function, done = taken_out(function, head, found)
        for record, text in done:
            self.found.records.append(record)
            self.found.preamble.append(text)
            self.found.of_records.append(text)
        return function

    def _static_functions(self, node: Node) -> None:
        """`Op::apply` of a struct: read to be put in place; its text stays in the struct."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        for member in body.named_children:
            words = [child.text for child in member.children if child.type == "storage_class_specifier"]
            if member.type != "function_definition" or b"static" not in words:
                continue
            try:
                found = self.reader.function(member, (), set(), "")
            except c.Unreadable:
                continue  # it stays a call of something that is not known
            if found is not None:
                self.found.functions.append(replace(found, name=f"{self.place.short(name)}::{found.name}"))

    def _whole_text(self, node: Node) -> str:
        """With the qualifiers the grammar was not shown, and the semicolon that it may leave out."""
        start, end = self._token_range(node)
        text = layout(self.place.tokens[start:end])
        following = self.place.tokens[end].text if end < len(self.place.tokens) else ""
        return text.strip() + (";" if following == ";" and not text.rstrip().endswith(";") else "")

    def _token_range(self, node: Node) -> tuple[int, int]:
        tokens, starts = self.place.tokens, self.place.starts
        start = self.place.at(node.start_byte)
        while start and starts[start - 1] == starts[start]:
            start -= 1
        while (
            start and tokens[start - 1].text not in (";", "{", "}") and tokens[start - 1].kind != "directive"
        ):
            start -= 1
        while start < len(tokens) and tokens[start].kind == "directive":
            start += 1
        end = self.place.at(max(node.end_byte - 1, 0)) + 1
        return start, end

    # -- what is no function ------------------------------------------------------------------------

    def _file_shared(self, node: Node) -> bool:
        """Shared memory declared outside of the kernels that use it."""
        if "__shared__" not in {token.text for token in self.place.words(node.start_byte, node.end_byte)}:
            return False
        parts = self.reader.declaration(node, self.place.line(node))
        declares = [part for part in parts if isinstance(part, c.Declare) and "shared" in part.storage]
        self.found.shared += declares
        return len(declares) == len(parts)

    def _file_constants(self, node: Node) -> None:
        try:
            specifiers = self.reader.specifiers(node)
            if not (specifiers.type.const or "constexpr" in specifiers.words):
                return
            for part in self.reader.declaration(node, self.place.line(node)):
                if isinstance(part, c.Declare) and part.init is not None and not part.is_array:
                    self._constant(part.name, of_type(part.init, part.type))
        except c.Unreadable:
            return  # it stays in the preamble as text; nothing was promised about its value

    def _alias(self, node: Node) -> None:
        name, type_ = node.child_by_field_name("name"), node.child_by_field_name("type")
        if node.type == "type_definition":
            declarators = node.children_by_field_name("declarator")
            is_plain = len(declarators) == 1 and declarators[0].type == "type_identifier"
            is_struct = type_ is not None and type_.child_by_field_name("body") is not None
            name = declarators[0] if is_plain and not is_struct else None
        if name is not None and type_ is not None:
            text = canonical(self.place.short(type_), self.place.language)
            self.found.aliases[self.place.short(name)] = text

    def _enumerators(self, node: Node) -> None:
        """`Mode::FAST` keeps its name where it is printed; what an unscoped list has is a number besides."""
        body, named = node.child_by_field_name("body"), node.child_by_field_name("name")
        scoped = any(child.type in ("class", "struct") for child in node.children)
        following: int | None = 0
        for item in body.named_children if body is not None else []:
            name, value = item.child_by_field_name("name"), item.child_by_field_name("value")
            if name is None:
                continue
            if value is not None:
                following = int_value(fold(substitute(self.reader.expr(value), self.found.constants)))
            if following is not None:
                short = self.place.short(name)
                if named is not None:
                    whole = f"{self.place.short(named)}::{short}"
                    self._constant(whole, c.Number(whole, following))
                if not scoped:
                    self._constant(short, integer(following))
                following += 1

    def _constant(self, name: str, value: c.Expr) -> None:
        """Two constants of one name, in namespaces that are read as one, are told by nobody."""
        if self.found.constants.setdefault(name, value) != value:
            self.found.doubtful.add(name)

    # -- functions ----------------------------------------------------------------------------------

    def _prototype(self, node: Node, template: tuple[c.TemplateParameter, ...]) -> None:
        """What is written for some of its arguments may stand elsewhere: `template <> f<16>(...) {...}`."""
        declarators = node.children_by_field_name("declarator")
        if len(declarators) == 1 and not node.has_error:
            try:
                found = self.reader.function(node, template, set(), "")
            except c.Unreadable:
                return  # no function, or one that nothing here can be chosen by
            self.found.prototypes += [found] if found is not None else []

    def _function_or_template(self, node: Node) -> None:
        inner = node
        template: tuple[c.TemplateParameter, ...] = ()
        try:
            while inner.type == "template_declaration":
                template += self.reader.template_parameters(inner.child_by_field_name("parameters"))
                inner = inner.named_children[-1]
            if inner.type != "function_definition":
                if inner.type in RECORDS and not inner.has_error:
                    self._record(inner, template)
                elif inner.type == "declaration" and template:
                    self._prototype(inner, template)
                    start, end = self._token_range(node)
                    if any(token.text == "__global__" for token in self.place.tokens[start:end]):
                        return  # a kernel that stands elsewhere: nobody calls it from here
                self._other(node)
                return
            start, end = self._token_range(node)
            body = inner.child_by_field_name("body")
            head_end = self.place.at(body.start_byte) if body is not None else end
            words = {token.text for token in self.place.tokens[start:head_end]}
            if self.place.language != "opencl" and not words & _DEVICE_WORDS:
                return  # host code
            if inner.has_error:
                self._unread(inner, f"{self.reader.function_name(inner)} could not be read, it stumbles here")
                return
            outside = RecordReader(self.place, self.reader).outside(inner, template)
            if outside is not None:
                self.found.methods.append(outside)
                self.found.preamble.append(layout(self.place.tokens[start:end]).strip())
                self.found.of_records.append(self.found.preamble[-1])
                return
            tokens = self.place.tokens[start:end]
            text, commented = layout(tokens), layout(tokens, with_comments=True).strip()
            found = self.reader.function(inner, template, words, text)
            if found is None:
                operator = self.reader.function(inner, template, words, "", operators=True)
                self.found.operators += [operator] if operator is not None else []
                self.found.preamble.append(text.strip())
                self.found.of_records.append(self.found.preamble[-1])
            else:
                found = replace(found, commented=commented, comments=tokens[0].comments)
                found = self._without_local_records(found, inner, start)
                self.found.functions += [*self.reader.taken(), found]
        except c.Unreadable as trouble:
            line = trouble.line or self.place.line(inner)
            self.found.unread.append(
                f"line {line}: {self.reader.function_name(inner)} could not be read: {trouble.reason}"
            )
            parts = [n.type for n in syntax_nodes(node)]
            if "function_declarator" not in parts and not node.has_error:  # a constant of types
                self.found.preamble.append(self._whole_text(node))


# -- a file cut into its items, where one of them spoils the whole ------------------------------------


def top_level_items(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Functions, declarations and directives in order; namespaces and extern "C" are opened."""
    items: list[list[Token]] = [[]]
    depth, opened = 0, 0
    for token in tokens:
        if depth == 0 and token.kind == "directive":
            items += [[token], []]
        elif depth == 0 and token.text == "{" and _opens_names(items[-1]):
            opened += 1
            items[-1] = []
        elif depth == 0 and token.text == "}" and opened:
            opened -= 1
            items.append([])
        else:
            items[-1].append(token)
            depth = max(depth + {"{": 1, "}": -1}.get(token.text, 0), 0)
            if depth == 0 and (token.text == ";" or (token.text == "}" and not _is_type(items[-1]))):
                items.append([])
    return (tuple(item) for item in items if item)


def _opens_names(item: list[Token]) -> bool:
    words = [token.text for token in item]
    return words[:1] == ["namespace"] or words == ["extern", '"C"'] or words[:2] == ["inline", "namespace"]


def _is_type(item: list[Token]) -> bool:
    """`struct S { ... }` goes on to its semicolon; so does a list of values after `=`."""
    head = []
    for token in item:
        if token.text in ("{", "("):
            break
        head.append(token.text)
    return bool({"struct", "class", "union", "enum", "typedef", "="} & set(_after_template(head)))


def _after_template(words: list[str]) -> list[str]:
    """`template <class T>` says nothing about what follows it."""
    if words[:1] != ["template"]:
        return words
    depth = 0
    for at, word in enumerate(words):
        depth += {"<": 1, ">": -1, ">>": -2}.get(word, 0)
        if at and depth <= 0:
            return words[at + 1 :]
    return words
