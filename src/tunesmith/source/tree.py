"""The tree of a kernel's source: types, expressions, statements, functions. Plain frozen values.

Only what kernels use. What the reader does not know becomes `Opaque`: text that is kept, never interpreted.
Operators are spelled as in C. Every statement knows its line in the user's file, and the comments there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

Language = Literal["opencl", "cuda", "hip"]

INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")  # each of three axes: "threadIdx.x"
OPENCL_INDICES = dict(
    zip(("get_local_id", "get_group_id", "get_local_size", "get_num_groups"), INDICES, strict=True)
)

# -- types ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Type:
    """`const __half *`: base "__half", pointers 1, const (of what is pointed to, or of the value itself)."""

    base: str  # canonical where the language has several spellings: "unsigned int", "long long"
    pointers: int = 0
    const: bool = False
    reference: bool = False
    restrict: bool = False
    volatile: bool = False
    space: str = ""  # "global" | "local" | "constant" of OpenCL; "" elsewhere

    @property
    def is_pointer(self) -> bool:
        return self.pointers > 0


# -- expressions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A literal, or a constant that was folded. `text` is what is printed."""

    text: str
    value: int | float

    @property
    def is_unsigned(self) -> bool:
        """By its suffix, or a hexadecimal too large for int."""
        match = _INTEGER_LITERAL.fullmatch(self.text.replace("'", ""))
        suffix = match[2].lower() if match is not None else ""
        is_hexadecimal = match is not None and match[1][:2] in ("0x", "0X")
        return "u" in suffix or (is_hexadecimal and "l" not in suffix and 2**31 <= self.value < 2**32)


_INTEGER_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)")
_FLOAT_LITERAL = re.compile(r"(\d*\.\d+(?:[eE][+-]?\d+)?|\d+\.?(?:[eE][+-]?\d+)?)(f16|bf16|[fFlLhH]?)")
_HEX_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)([fFlLhH]?)")
_CHARACTERS = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34}
_MAX_LITERAL = 400


def read_number(text: str) -> int | float | None:
    """The value of a numeric, character or boolean literal; None where it is none that is known."""
    text = text.replace("'", "") if text[:1].isdigit() else text
    if len(text) > _MAX_LITERAL:
        return None
    if text in ("true", "false"):
        return int(text == "true")
    if found := _INTEGER_LITERAL.fullmatch(text):
        digits = found[1]
        if digits[:2] in ("0x", "0X", "0b", "0B"):
            return int(digits, 0)
        if digits.startswith("0") and len(digits) > 1:
            return int(digits, 8) if not set(digits) & set("89") else None
        return int(digits)
    if found := _FLOAT_LITERAL.fullmatch(text):
        return float(found[1])
    if found := _HEX_LITERAL.fullmatch(text):
        return float.fromhex(found[1])
    if len(text) == 3 and text[0] == text[2] == "'":
        return ord(text[1])
    if len(text) == 4 and text[:2] == "'\\" and text[3] == "'":
        return _CHARACTERS.get(text[2])
    return None


@dataclass(frozen=True)
class Name:
    """A variable, parameter or constant. Built-in indices are names too: "threadIdx.x", "blockDim.y",
    "gridDim.x", "blockIdx.z"; OpenCL's get_local_id(0) and its like are read into the same names."""

    name: str


@dataclass(frozen=True)
class Unary:
    op: str  # - + ! ~ * & ++ --
    operand: Expr
    postfix: bool = False


@dataclass(frozen=True)
class Binary:
    op: str  # + - * / % << >> < > <= >= == != & | ^ && || ,
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Assign:
    op: str  # = += -= *= /= %= &= |= ^= <<= >>=
    target: Expr
    value: Expr


@dataclass(frozen=True)
class Ternary:
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class Call:
    """Of a function by its name; casts are `Cast`, also those written as functions or static_cast.

    `of`: the object whose method it is.
    """

    function: str
    args: tuple[Expr, ...] = ()
    template_args: tuple[str, ...] = ()
    of: Expr | None = None


@dataclass(frozen=True)
class Index:
    """base[index]; `*p` and `*(p + i)` are read into it as well."""

    base: Expr
    index: Expr


@dataclass(frozen=True)
class Member:
    base: Expr
    field: str  # x y z w, or any other
    arrow: bool = False


@dataclass(frozen=True)
class Cast:
    """A value conversion; between pointer types, the same bytes read as another type."""

    type: Type
    value: Expr


@dataclass(frozen=True)
class Braces:
    """{a, b, c}; with a type: float2{a, b}."""

    items: tuple[Expr, ...]
    type: Type | None = None


@dataclass(frozen=True)
class SizeOf:
    type: Type


@dataclass(frozen=True)
class Opaque:
    """Text that is kept as it is; `names` are the identifiers in it."""

    text: str
    names: frozenset[str] = frozenset()


Expr = (
    Number | Name | Unary | Binary | Assign | Ternary | Call | Index | Member | Cast
    | Braces | SizeOf | Opaque
)  # fmt: skip

# -- statements -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comment:
    """Words about a statement: lines of plain text, without the signs that make a comment of them.

    Somebody else may have written them, so a line that would be more than a comment is none: one that goes on
    with the next (`??/` is a backslash to old compilers), or that opens the declaration of a template.
    """

    text: str
    line: int = 0  # in the user's file; 0: ours
    behind: bool = False  # at the end of the statement's first line, not on lines before it

    def __post_init__(self) -> None:
        for words in self.text.split("\n"):
            if words.endswith(("\\", "??/")) or words.startswith("/") or not words.isprintable():
                raise ValueError(f"no line of a comment: {words!r}")

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")


BLANK = Comment("")  # an empty line


Storage = Literal["", "shared", "dynamic shared", "constexpr", "static"]


@dataclass(frozen=True)
class Declare:
    """One variable; `int a = 1, *b;` becomes two. `dims` for arrays; dynamic shared memory has dims ()."""

    type: Type
    name: str
    init: Expr | None = None
    dims: tuple[Expr, ...] = ()
    storage: Storage = ""
    align: Expr | None = None
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)

    @property
    def is_array(self) -> bool:
        return bool(self.dims) or self.storage == "dynamic shared"


@dataclass(frozen=True)
class Evaluate:
    """An expression for its effect: an assignment, a call, a barrier."""

    expr: Expr
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    constexpr: bool = False
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class For:
    """`init`: one declaration or assignment each; `unroll` is what a pragma says: None, 0 (full), a count, or
    a macro that has it."""

    init: tuple[Declare | Evaluate, ...]
    condition: Expr | None
    step: tuple[Expr, ...]
    body: tuple[Stmt, ...]
    unroll: int | str | None = None
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class While:
    condition: Expr
    body: tuple[Stmt, ...]
    after: bool = False  # do { } while ()
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Return:
    value: Expr | None = None
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Jump:
    word: Literal["break", "continue"]
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Scope:
    """{ ... } for its own sake."""

    body: tuple[Stmt, ...]
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Verbatim:
    """A statement that the reader does not know: asm, switch, goto, a local class."""

    text: str
    names: frozenset[str] = frozenset()
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Alternative:
    """A choice of the preprocessor, over macros: `#if` ... `#else` ... `#endif`, in a function or a file.

    Another choice alone in `otherwise` is an `#elif`. `inside`: the last statement of either branch is a loop
    or a block, and this follows in it, so that two heads have one body. Never read, only made.
    """

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    inside: tuple[Stmt, ...] = ()
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class MacroDefinition:
    """`#define name(parameters) value`; without parameters an object-like macro. Never read, only made.

    In the value a parameter is a name like any other: it is printed so that any argument may take its place.
    """

    name: str
    value: Expr
    parameters: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


Stmt = (
    Declare | Evaluate | If | For | While | Return | Jump | Scope | Verbatim | Alternative | MacroDefinition
)  # fmt: skip

# -- functions --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    type: Type
    name: str
    default: Expr | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TemplateParameter:
    """`typename T` has kind "type"; `int N` has kind "value"; `default` as text, "" where there is none."""

    name: str
    kind: Literal["type", "value"]
    type: Type | None = None
    default: str = ""


@dataclass(frozen=True)
class Function:
    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Stmt, ...]
    result: Type
    is_kernel: bool = False
    template: tuple[TemplateParameter, ...] = ()
    specialises: tuple[str, ...] = ()  # template<> f<float>: the arguments it is written for
    sets: int = 0  # of a constructor: how many statements at its start are its list of initialisers
    text: str = ""  # as it stands in the source, with its qualifiers
    commented: str = field(default="", compare=False)  # the same with its comments, from those before it on
    line: int = field(default=0, compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Record:
    """A structure, class or union. Methods are functions whose first parameter is `this`, a reference to the
    object; constructors bear the record's name, conversions that of their type: "operator float"."""

    name: str
    fields: tuple[Declare, ...] = ()
    methods: tuple[Function, ...] = ()
    template: tuple[TemplateParameter, ...] = ()
    specialises: tuple[str, ...] = ()  # vec<half, N>: the arguments it is written for
    constants: tuple[tuple[str, Expr], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    is_union: bool = False
    align: Expr | None = None  # what it says of its own alignment
    unread: str = ""  # why it is not understood: nothing is concluded from the rest then
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Source:
    """A whole file: its functions in order, and everything else that is no function as text, in order."""

    language: Language
    functions: tuple[Function, ...]
    includes: tuple[str, ...] = ()  # "<cuda_fp16.h>", as written
    preamble: tuple[str, ...] = ()  # using, typedef, struct, constants, pragmas: needed to compile the rest
    constants: tuple[tuple[str, Expr], ...] = ()  # constexpr and const variables of the file
    aliases: tuple[tuple[str, str], ...] = ()  # typedef and using: name -> type
    shared: tuple[Declare, ...] = ()  # shared memory declared at file scope
    records: tuple[Record, ...] = ()  # their text is in the preamble
    prototypes: tuple[Function, ...] = ()  # templates that are declared here, without their bodies
    operators: tuple[Function, ...] = ()  # free ones, "operator+"; their text is in the preamble
    of_records: frozenset[str] = frozenset()  # parts of the preamble: records, their methods, operators
    spellings: tuple[tuple[str, str], ...] = ()  # "a::f" -> what it is called here, without namespaces
    unread: tuple[str, ...] = ()  # why parts of the file were not understood, in words with line numbers
    decided: tuple[str, ...] = ()  # conditions on what the compiler defines, and how each came out
    asks_toolkit: bool = False  # it was not read, since a condition asks for the toolkit's version


MAX_DEPTH = 200  # of the tree; every walker stays far below Python's own limit with it


class Unreadable(Exception):
    """Why a part of the source was not understood, in words; `line` 0 where it has none."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class TooDeep(Unreadable):
    def __init__(self, line: int = 0) -> None:
        super().__init__(f"it is nested more than {MAX_DEPTH} levels deep; shorten the expression", line)


# -- How the cases of a switch end.


def without_break(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """What a case does before it ends; None where it goes on."""
    match stmts[-1] if stmts else None:
        case Jump("break"):
            return stmts[:-1]
        case Return():
            return stmts
        case Scope(body=body) as scope:
            inner = without_break(body)
            return None if inner is None else (*stmts[:-1], replace(scope, body=inner))
    return None


def leaves_switch(stmts: tuple[Stmt, ...]) -> bool:
    """Whether a break inside of a branch ends the switch, not a loop."""
    for stmt in stmts:
        match stmt:
            case Jump("break"):
                return True
            case If(then=then, otherwise=otherwise):
                if leaves_switch((*then, *otherwise)):
                    return True
            case Scope(body=body):
                if leaves_switch(body):
                    return True
            case Verbatim():
                return True
    return False
