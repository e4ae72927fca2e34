"""Trees of tree-sitter: made, walked and asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tunesmith.csource.nodes import Language

if TYPE_CHECKING:
    from tree_sitter import Node


def syntax_tree(text: str, language: Language) -> Node:
    # Imported here: loading the grammars would double the start-up time of every command.
    from tree_sitter import Language as Grammar
    from tree_sitter import Parser

    if language == "opencl":
        import tree_sitter_c

        grammar = Grammar(tree_sitter_c.language())
    else:
        import tree_sitter_cuda

        grammar = Grammar(tree_sitter_cuda.language())
    return Parser(grammar).parse(encoded(text)).root_node


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def text_of(node: Node | None) -> str:
    if node is None or node.text is None:
        return ""
    return " ".join(node.text.decode("utf-8", "replace").split())


def syntax_nodes(node: Node) -> Iterator[Node]:
    """Every node below and with `node`, in the order of the text; no recursion, nesting has no limit."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children))


def is_field(parent: Node, name: str, child: Node) -> bool:
    return parent.child_by_field_name(name) == child


def callee(call: Node) -> str | None:
    """The plain name a call goes to, without namespace and template arguments; None for anything else."""
    function = call.child_by_field_name("function")
    while function is not None and function.type in ("qualified_identifier", "template_function"):
        function = function.child_by_field_name("name")
    if function is not None and function.type in ("identifier", "primitive_type"):
        return text_of(function)
    return None


def declared_name(declarator: Node | None) -> Node | None:
    """The identifier inside `*name`, `&name`, `name[3]`, `name(...)`."""
    for _ in range(32):
        if declarator is None or declarator.type == "identifier":
            return declarator
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type == "reference_declarator" and declarator.named_children:
            inner = declarator.named_children[-1]
        declarator = inner
    return None
