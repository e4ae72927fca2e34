"""What exports ask about a call before a tuned kernel may serve it, as expressions over the sizes."""

from __future__ import annotations

from math import prod

from tunesmith.problem.dispatch import Dispatch, DispatchArgument, DispatchEntry
from tunesmith.problem.problem import element_type
from tunesmith.space import grammar as n
from tunesmith.space.expr import Expr, Node, parse, unparse


def bytes_of(argument: DispatchArgument) -> Expr:
    """The bytes of an array or of local memory, from its first element to the last one."""
    element = element_type(argument.type)
    shape = [n.FunctionCall("max", (n.Num(0), parse(text).tree)) for text in argument.shape]
    count: Node = _product(list(shape))
    if argument.strides:
        extent: Node = n.Num(1)
        for length, stride in zip(shape, argument.strides, strict=True):
            step = n.Arithmetic("*", n.Arithmetic("-", length, n.Num(1)), parse(stride).tree)
            extent = n.Arithmetic("+", extent, step)
        count = n.Conditional(n.Compare(count, ((">", n.Num(0)),)), extent, n.Num(0))
    if element.packed > 1:
        count = n.FunctionCall("ceildiv", (count, n.Num(element.packed)))
    tree = n.Arithmetic("*", count, n.Num(element.bytes))
    return Expr(unparse(tree), tree)


def within_contract(dispatch: Dispatch) -> Expr:
    """What callers promise: nothing was verified beyond it."""
    parts: list[Node] = []
    for rule in dispatch.sizes:
        size = n.Variable(rule.name)
        if rule.one_of:
            parts.append(n.OneOf(size, rule.one_of, False))
            continue
        parts.append(n.Compare(n.Num(rule.min), (("<=", size), ("<=", n.Num(rule.max)))))
        if rule.multiple_of != 1:
            rest = n.Arithmetic("%", size, n.Num(rule.multiple_of))
            parts.append(n.Compare(rest, (("==", n.Num(0)),)))
    parts += [parse(text).tree for text in dispatch.require]
    if not parts:
        return parse(1)
    tree = parts[0] if len(parts) == 1 else n.Logic("and", tuple(parts))
    return Expr(unparse(tree), tree)


def argument_of(dispatch: Dispatch, entry: DispatchEntry, name: str) -> DispatchArgument:
    return next(a for a in (*dispatch.arguments, *entry.workspace) if a.name == name)


def is_written(argument: DispatchArgument) -> bool:
    return argument.role in ("output", "inout", "workspace")


def about(argument: DispatchArgument, *, caller_fills: bool = False) -> str:
    """A parameter, for people."""
    if not argument.is_array:
        return f"{argument.type}, tuned with {argument.value}"
    strides = f" with strides [{', '.join(argument.strides)}]" if argument.strides else ""
    parts = [f"{argument.role} of {argument.type} [{', '.join(argument.shape)}]{strides}"]
    parts += [f"aligned to {argument.align} bytes"] if argument.align > 1 else []
    if argument.init is not None:
        fills = "you fill it" if caller_fills else "filled"
        parts.append(f"{fills} with {argument.init:g} before each call")
    return ", ".join(parts)


def _product(nodes: list[Node]) -> Node:
    if all(isinstance(node, n.Num) for node in nodes):
        return n.Num(prod(node.value for node in nodes if isinstance(node, n.Num)))
    product = nodes[0]
    for node in nodes[1:]:
        product = n.Arithmetic("*", product, node)
    return product
