"""Cooperation by the toolkit's own libraries, said in words that are understood: CUB and cooperative groups.

    cub::BlockReduce<float, 256>(temp).Sum(x)     ->  __block_total_add(x, 256)   for the first thread
    cub::WarpReduce<float>(temp).Reduce(x, Max)   ->  __warp_total_max(x, 32)     for each warp's first
    cg::reduce(tile, x, cg::plus<float>())        ->  __tile_total_add(x, 32)     for all threads
    tile.shfl_xor(x, 1), tile.thread_rank()       ->  __shfl_xor(x, 1, 32), threadIdx.x % 32
    cub::BlockLoad, cub::BlockStore               ->  a loop of each thread (block_copies)

What is not in these tables stays as it is, and is then not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import is_pure
from tunesmith.source.fold import fold_expr, int_value
from tunesmith.source.reader.parse import read_expression
from tunesmith.source.types import split_arguments

# -- CUB's loads and stores of a block's elements, as what each thread loads and stores for itself.
#
#     cub::BlockLoad<float, 256, 4>(temp).Load(p, items, n, 0.0f)
#         ->  for (j = 0; j < 4; ++j) items[j] = threadIdx.x * 4 + j < n ? p[threadIdx.x * 4 + j] : 0.0f
#
# How the elements come there (directly, as vectors, by way of shared memory) makes no difference to who has
# which: thread t has those from t * ITEMS on. Striped ones, and blocks of several axes, are left alone.


_COPY = re.compile(r"(?:typename )?cub::Block(Load|Store)<(.+)>")
COPY_STORAGE = re.compile(r"(?:typename )?cub::Block(?:Load|Store)<.+>::TempStorage")
SHARED_STORAGE = re.compile(r"__shared__ union \{(?: ?(?:typename )?[^;{}]+::TempStorage \w+;)+ ?\} ?\w+ ?;?")
_BLOCKED = re.compile(
    r"(?:cub::)?BLOCK_(?:LOAD|STORE)_(?:DIRECT|VECTORIZE|(?:WARP_)?TRANSPOSE(?:_TIMESLICED)?)"
)


@dataclass(frozen=True)
class BlockCopy:
    way: str  # Load, Store
    items: int


def copy_of(base: str) -> BlockCopy | None:
    """What a type copies; None where it is no such type, or one whose elements lie otherwise."""
    found = _COPY.fullmatch(base)
    if found is None:
        return None
    args = split_arguments(found[2])
    if not 3 <= len(args) <= 4 or (len(args) == 4 and not _BLOCKED.fullmatch(args[3])):
        return None
    try:
        items = int_value(fold_expr(read_expression(args[2])))
    except c.Unreadable:
        return None
    return BlockCopy(found[1], items) if items is not None and 0 < items <= 256 else None


def expand_block_copy(call: c.Call, copy: BlockCopy, number: int, line: int) -> tuple[c.Stmt, ...] | None:
    """The call as statements; None where it is not understood."""
    if call.function != copy.way or not 2 <= len(call.args) <= 3 + (copy.way == "Load"):
        return None
    place, items, *more = call.args
    if not all(is_pure(arg) for arg in more) or not isinstance(items, c.Name | c.Index):
        return None
    index, count = c.Name(f"item_{number}"), c.Number(str(copy.items), copy.items)
    at = c.Binary("+", c.Binary("*", c.Name("threadIdx.x"), count), index)
    there, here = _offset_element(place, at), c.Index(items, index)
    target, value = (here, there) if copy.way == "Load" else (there, here)
    before: list[c.Stmt] = []
    body: c.Stmt = c.Evaluate(c.Assign("=", target, value), line=line)
    if more:
        valid: c.Expr = more[0]
        if not isinstance(valid, c.Name | c.Number):
            before.append(c.Declare(c.Type("int", const=True), f"valid_{number}", valid, line=line))
            valid = c.Name(f"valid_{number}")
        inside = c.Binary("<", at, valid)
        if len(more) == 2:
            chosen = c.Ternary(inside, value, more[1])
            body = c.Evaluate(c.Assign("=", target, chosen), line=line)
        else:
            body = c.If(inside, (body,), line=line)
    zero = c.Declare(c.Type("int"), index.name, c.Number("0", 0), line=line)
    head = c.Binary("<", index, count), (c.Unary("++", index),)
    return (*before, c.For((zero,), *head, (body,), unroll=0, line=line))


def _offset_element(place: c.Expr, at: c.Expr) -> c.Expr:
    match place:
        case c.Unary(op="&", operand=c.Index(base=base, index=index)):
            return c.Index(base, c.Binary("+", index, at))
    return c.Index(place, at)


_GROUP = re.compile(r"(?:const )?(?:cooperative_groups::)?(thread_block|thread_block_tile<(.+)>)")
_REDUCTION = re.compile(r"(?:typename )?(hip|)cub::(Block|Warp)Reduce<(.+)>")
_STORAGE = re.compile(r"(?:typename )?(?:hip)?cub::(?:Block|Warp)Reduce<.+>::TempStorage")
_OPERATORS = {
    "cub::Sum": "add", "cub::Max": "max", "cub::Min": "min", "cuda::std::plus": "add",
    "hipcub::Sum": "add", "hipcub::Max": "max", "hipcub::Min": "min",
    "cuda::maximum": "max", "cuda::minimum": "min", "cooperative_groups::plus": "add",
    "cooperative_groups::greater": "max", "cooperative_groups::less": "min", "plus": "add", "greater": "max",
    "less": "min",
}  # fmt: skip
_SHUFFLES = {"shfl": "__shfl", "shfl_xor": "__shfl_xor", "shfl_down": "__shfl_down", "shfl_up": "__shfl_up"}
_AXES = {"thread_index": "threadIdx", "group_index": "blockIdx", "dim_threads": "blockDim"}


@dataclass(frozen=True)
class ThreadGroup:
    width: c.Expr | None = None  # of a tile; None: the whole block


@dataclass(frozen=True)
class Reduction:
    kind: str  # block, warp
    threads: c.Expr


def uses_library(function: c.Function) -> bool:
    """Whether it calls methods, which may be those of a group of threads."""
    return any(isinstance(node, c.Call) and node.of is not None for node in walk.nodes_in(function.body))


def with_known_cooperation(function: c.Function) -> c.Function:
    """The function, its template's arguments filled in, with the libraries' cooperation said plainly."""
    work = _Cooperation(function)
    if not work.known and not uses_library(function):
        return function
    body = walk.map_statements(function.body, lambda expr: walk.map_expr(expr, work.expr), work.statement)
    return replace(function, body=body)


class _Cooperation:
    def __init__(self, function: c.Function) -> None:
        self.known: dict[str, ThreadGroup | Reduction] = {}
        self._copies = 0
        self._arrays = {n.name for n in walk.nodes_in(function.body) if isinstance(n, c.Declare) and n.dims}
        for parameter in function.parameters:
            self._note(parameter.name, parameter.type, None)
        for node in walk.nodes_in(function.body):
            if isinstance(node, c.Declare):
                self._note(node.name, node.type, node.init)

    def _note(self, name: str, type_: c.Type, init: c.Expr | None) -> None:
        found = None if type_.is_pointer else _of_type(type_.base)
        if found is None and type_.base == "auto" and init is not None:
            found = self.of(init)
        if found is not None:
            self.known[name] = found

    def of(self, expr: c.Expr) -> ThreadGroup | Reduction | None:
        """What an expression is a group of, or a reduction by."""
        match expr:
            case c.Name(name=name):
                return self.known.get(name)
            case c.Cast(type=type_) if not type_.is_pointer:
                return _of_type(type_.base)
            case c.Call(function=function, template_args=texts, of=None, args=args):
                word = _unqualified_function(function)
                if word == "this_thread_block" and not args:
                    return ThreadGroup()
                if word == "tiled_partition" and len(texts) >= 1 and len(args) == 1:
                    within = self.of(args[0])
                    is_group = isinstance(within, ThreadGroup)
                    return ThreadGroup(_read_template_value(texts[0])) if is_group else None
                reduction = f"{function}<{', '.join(texts)}>" if texts else function
                return _of_type(reduction) if _REDUCTION.fullmatch(reduction) else None
        return None

    def statement(self, stmt: c.Stmt) -> c.Stmt | Iterable[c.Stmt]:
        if isinstance(stmt, c.Declare):
            base = stmt.type.base
            is_library = stmt.name in self.known or _STORAGE.fullmatch(base) or COPY_STORAGE.fullmatch(base)
            return () if is_library else stmt
        if isinstance(stmt, c.Verbatim) and SHARED_STORAGE.fullmatch(" ".join(stmt.text.split())):
            return ()  # whoever is not understood names it still
        match stmt:
            case c.Evaluate(expr=c.Call(of=c.Cast(type=type_)) as call):
                copy = copy_of(type_.base)
            case c.Evaluate(expr=c.Call(of=c.Call(function=function, template_args=texts)) as call):
                copy = copy_of(f"{function}<{', '.join(texts)}>")
            case _:
                return stmt
        self._copies += 1
        done = None if copy is None else expand_block_copy(call, copy, self._copies, stmt.line)
        return stmt if done is None else done

    def expr(self, node: c.Expr) -> c.Expr:
        match node:
            case c.Call(of=of) if of is not None:
                known = self.of(of)
                if isinstance(known, Reduction):
                    return self._lower_reduction(node, known)
                return self._method(node, known) if known is not None else node
            case c.Call(args=(group, value, op)) if _unqualified_function(node.function) == "reduce":
                known, kind = self.of(group), _reduction_operator(op)
                if isinstance(known, ThreadGroup) and known.width is not None and kind:
                    return c.Call(f"__tile_total_{kind}", (value, known.width))
            case c.Call(function=function, args=(group,)):
                word = _unqualified_function(function)
                if word in ("sync", "thread_rank") and isinstance(known := self.of(group), ThreadGroup):
                    return self._method(c.Call(word, of=group), known)
            case c.Member(base=c.Call(function=function, args=(), of=of), field=field) if of is not None:
                if function in _AXES and self.of(of) == ThreadGroup() and field in ("x", "y", "z"):
                    return c.Name(f"{_AXES[function]}.{field}")
        return node

    def _lower_reduction(self, call: c.Call, known: Reduction) -> c.Expr:
        args, kind = list(call.args), ""
        if call.function == "Sum" and args:
            kind = "add"
        elif call.function in ("Max", "Min") and args:
            kind = call.function.lower()
        elif call.function == "Reduce" and len(args) >= 2:
            kind = _reduction_operator(args.pop(1))
        if not kind or len(args) > 2 or (isinstance(args[0], c.Name) and args[0].name in self._arrays):
            return call
        return c.Call(f"__{known.kind}_total_{kind}", (args[0], known.threads, *args[1:]))

    def _method(self, call: c.Call, group: ThreadGroup) -> c.Expr:
        name, width = call.function, group.width
        rank, size = _thread_rank_in_block(), _threads_per_block_expr()
        if not call.args and name in ("sync", "thread_rank", "size", "num_threads"):
            if name == "sync":
                return c.Call("__syncthreads" if width is None else "__syncwarp")
            if name == "thread_rank":
                return rank if width is None else c.Binary("%", rank, width)
            return size if width is None else width
        if width is None:
            return call
        if name == "meta_group_rank" and not call.args:
            return c.Binary("/", rank, width)
        if name == "meta_group_size" and not call.args:
            return c.Binary("/", c.Binary("-", c.Binary("+", size, width), c.Number("1", 1)), width)
        if name in _SHUFFLES and len(call.args) == 2:
            return c.Call(_SHUFFLES[name], (*call.args, width))
        return call


def _thread_rank_in_block() -> c.Expr:
    x, y, z = (c.Name(f"threadIdx.{axis}") for axis in "xyz")
    wide, high = c.Name("blockDim.x"), c.Name("blockDim.y")
    return c.Binary("+", x, c.Binary("*", wide, c.Binary("+", y, c.Binary("*", high, z))))


def _threads_per_block_expr() -> c.Expr:
    x, y, z = (c.Name(f"blockDim.{axis}") for axis in "xyz")
    return c.Binary("*", c.Binary("*", x, y), z)


def _unqualified_function(function: str) -> str:
    space, _, name = function.rpartition("::")
    return name if space in ("", "cooperative_groups") else ""


def _read_template_value(text: str) -> c.Expr:
    return c.Number(text, int(text)) if text.isdigit() else read_expression(text)


def _of_type(base: str) -> ThreadGroup | Reduction | None:
    group = _GROUP.fullmatch(base)
    if group is not None:
        return ThreadGroup(_read_template_value(split_arguments(group[2])[0])) if group[2] else ThreadGroup()
    found = _REDUCTION.fullmatch(base)
    if found is None:
        return None
    args = split_arguments(found[3])
    if found[2] == "Warp":
        if found[1] and len(args) < 2:
            return None  # as wide as the device's own, which only the device knows
        return Reduction("warp", _read_template_value(args[1] if len(args) > 1 else "32"))
    if len(args) < 2:
        return None
    threads = _read_template_value(args[1])
    for more in args[3:5]:  # its third argument says how it is done
        threads = c.Binary("*", threads, _read_template_value(more))
    return Reduction("block", threads)


def _reduction_operator(expr: c.Expr) -> str:
    """`cub::Sum{}`, `cub::Max()`, `cg::plus<float>()`; "" for what is not known."""
    name = ""
    match expr:
        case c.Braces(items=(), type=type_) if type_ is not None:
            name = type_.base
        case c.Call(function=function, args=(), of=None):
            name = function
    return _OPERATORS.get(name.split("<")[0].removeprefix("::"), "")
