"""Write a problem file from Python values: the tables of docs/problem-file.md as typed dictionaries."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import operator
import symtable
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import TypedDict

from tunesmith.base.errors import BadInput
from tunesmith.problem.problem import Compare, Distribution, Role

Expression = str | int  # over the sizes, as in a problem file: "ceildiv(n, 256)"


class ArgumentTable(TypedDict, total=False):
    """One argument, in the kernel's own order; `name` and `type` are always needed."""

    name: str
    type: str  # "float32*" is an array, "int32" a scalar
    role: Role
    shape: Sequence[Expression]
    strides: Sequence[Expression]
    value: Expression | float
    values: Distribution
    range: tuple[float, float]
    init: float | str  # of an input: an expression over its index
    align: int
    alias: str
    rtol: float
    atol: float
    compare: Compare | str  # also "file.py:function"
    order: str  # "any", or the output that it goes with
    along: str
    keys: str
    traffic: Expression


class LaunchTable(TypedDict, total=False):
    """One launch; `grid` counts blocks, `block` threads."""

    grid: Sequence[Expression]
    block: Sequence[Expression]
    entry: str
    args: Sequence[str]
    shared: Expression
    cluster: Sequence[Expression]
    cooperative: bool
    pdl: bool
    when: Expression


class SizeTable(TypedDict, total=False):
    """What callers promise about one size: `min` and `max`, or `one_of`."""

    min: int
    max: int
    multiple_of: int
    one_of: Sequence[int]


class AccuracyTable(TypedDict, total=False):
    """How near a result must be; the reference is a function, so it is an argument of its own."""

    rtol: float
    atol: float
    independent: str
    deterministic: bool
    baseline_may_fail: bool


class KernelTable(TypedDict, total=False):
    """How the kernel is built, where its source and its entry do not say all."""

    language: str  # one that a backend runs, or hip
    flags: Sequence[str]
    defines: Mapping[str, str | int | float]
    include: Sequence[str]
    compiler: str  # one of the language's


WorkloadTable = Mapping[str, int | float | str]  # a value for every size, and weight and cache


def toml_text(root: Mapping[str, object]) -> str:
    """A problem file with these keys. Lists of tables become [[key]], tables [key]; None is left out."""
    lines = [
        f"{_toml_key(k)} = {_toml_value(v, k)}" for k, v in root.items() if v is not None and not _is_table(v)
    ]
    for key, value in root.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_toml_key(key)}]", *_toml_pairs(value, key)]
        elif _is_table(value) and isinstance(value, Sequence):
            for item in value:
                lines += ["", f"[[{_toml_key(key)}]]", *_toml_pairs(item, key)]
    return "\n".join(lines) + "\n"


def toml_string(text: str) -> str:
    """A TOML basic string. JSON's are the same but for DEL, and for surrogates, which TOML cannot hold."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_table(value: object) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return isinstance(value, Mapping) or (is_list and all(isinstance(item, Mapping) for item in value))  # type: ignore[attr-defined]


def _toml_pairs(table: Mapping[str, object], place: str) -> list[str]:
    return [f"{_toml_key(k)} = {_toml_value(v, f'{place}.{k}')}" for k, v in table.items() if v is not None]


def _toml_key(name: object) -> str:
    if not isinstance(name, str):
        raise BadInput(f"the name of a key is a text, got {name!r}", hint="write it in quotes")
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else toml_string(name)


def _toml_value(value: object, place: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_toml_pairs(value, place)) + " }" if value else "{}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml_value(item, place) for item in value) + "]"
    try:
        return str(operator.index(value))  # type: ignore[arg-type]  # NumPy's integers too
    except TypeError:
        pass
    try:
        return repr(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        kind = type(value).__name__
        allowed = "a text, a number, true or false, a list or a dictionary of these"
        hint = "pass what a problem file could hold; a function belongs in `reference` or `inputs`"
        raise BadInput(f"{place} must be {allowed}, got {value!r} of type {kind}", hint=hint) from None


Function = Callable[..., object]
HINT = (
    "write it as a plain `def` that uses imports, numbers and other functions alone; or put it into a file, "
    "and load the problem from a problem.toml that names it"
)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def function_file(function: Function, what: str) -> str:
    """The text of a Python file that defines `function` under its own name. `what`: what it is for."""
    collected = _Collected(what)
    collected.function(function.__name__ if hasattr(function, "__name__") else "?", function)
    parts = ["from __future__ import annotations\n", *sorted(collected.imports), *collected.values]
    return "\n".join(parts) + "\n\n" + "\n\n".join(collected.functions)


class _Collected:
    """Everything that one function needs, each name once."""

    def __init__(self, what: str) -> None:
        self.imports: set[str] = set()
        self.values: list[str] = []
        self.functions: list[str] = []
        self._what = what
        self._seen: dict[str, object] = {}

    def function(self, name: str, function: object) -> None:
        text = self._source(name, function)
        assert isinstance(function, FunctionType)
        self._seen[name] = function
        known = dict(function.__globals__)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        known |= {free: cell.cell_contents for free, cell in cells}
        for used in _global_names(text):
            if used in known:
                self._collect_global(used, known[used], name)
            elif not hasattr(builtins, used):
                raise self._refused(f"{name} uses {used!r}, which is defined nowhere")
        self.functions.append(text)

    def _collect_global(self, name: str, value: object, user: str) -> None:
        if name in self._seen:
            if self._seen[name] is not value and self._seen[name] != value:
                raise self._refused(f"{name!r} means two things in the functions it needs")
            return
        self._seen[name] = value
        if isinstance(value, ModuleType):
            module = value.__name__
            self.imports.add(f"import {module}" if module == name else f"import {module} as {name}")
        elif _is_plain_literal(value):
            self.values.append(f"{name} = {value!r}")
        elif (found := _import_path(value)) is not None:
            renamed = f" as {name}" if found[1] != name else ""
            self.imports.add(f"from {found[0]} import {found[1]}{renamed}")
        elif isinstance(value, FunctionType) and value.__name__ == name:
            self.function(name, value)
        else:
            kind = type(value).__name__
            raise self._refused(f"{user} uses {name!r}, a {kind} that cannot be written into a file")

    def _source(self, name: str, function: object) -> str:
        if not isinstance(function, FunctionType):
            raise self._refused(f"a plain function is needed, got {function!r}")
        if not name.isidentifier():
            raise self._refused("a lambda has no source of its own")
        if hasattr(function, "__wrapped__"):
            raise self._refused(f"{name} is decorated, and what it wraps is not all of it")
        try:
            text = textwrap.dedent(inspect.getsource(function))
            tree = ast.parse(text)
        except (OSError, TypeError, SyntaxError, IndentationError) as error:
            raise self._refused(f"the source of {name} cannot be had: {error}") from error
        first = tree.body[0]
        if not isinstance(first, ast.FunctionDef) or first.name != name:
            raise self._refused(f"{name} is not defined by a plain `def {name}`")
        if first.decorator_list:
            raise self._refused(f"{name} is decorated, and what its decorator does would be lost")
        return text

    def _refused(self, why: str) -> BadInput:
        return BadInput(f"{self._what}: {why}", hint=HINT)


def _global_names(text: str) -> list[str]:
    """Names that the function takes from around it; annotations are never evaluated, so they do not count."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    found: dict[str, None] = {}
    tables = [symtable.symtable(ast.unparse(tree), "reference.py", "exec")]
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    while tables:
        table = tables.pop()
        for symbol in table.get_symbols():
            outside = symbol.is_global() if table.get_type() != "module" else not symbol.is_assigned()
            if symbol.is_referenced() and outside and symbol.get_name() not in defined:
                found[symbol.get_name()] = None
        tables += table.get_children()
    return sorted(found)


def _import_path(value: object) -> tuple[str, str] | None:
    """Module and name of something that an installed module has; not of the user's own script or notebook."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    module = module or getattr(type(value), "__module__", None)
    name = name or getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not name.isidentifier():
        return None
    source = str(getattr(sys.modules.get(module), "__file__", ""))
    known = module.partition(".")[0] in sys.stdlib_module_names
    installed = known or "site-packages" in source or "dist-packages" in source
    if module in ("__main__", "builtins") or not installed:
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is value else None


def _is_plain_literal(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain_literal, value))
    if isinstance(value, dict):
        return all(_is_plain_literal(k) and _is_plain_literal(v) for k, v in value.items())
    if isinstance(value, float) and value - value != 0:  # repr of an infinity or a NaN is no Python
        return False
    return type(value) in _PLAIN
