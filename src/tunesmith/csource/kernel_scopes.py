"""Kernels of one name in several namespaces: where a file defines them, and which one a launch means."""

from __future__ import annotations

from collections.abc import Sequence, Set

from tunesmith.csource.lex import Token

KernelScope = tuple[str, ...]  # namespaces that have a name, outermost first


def scopes_at(tokens: Sequence[Token]) -> list[KernelScope]:
    """For each token the namespaces around it."""
    found: list[KernelScope] = []
    open_braces: list[KernelScope] = []  # what each adds
    waiting: KernelScope = ()
    for at, token in enumerate(tokens):
        found.append(tuple(name for names in open_braces for name in names))
        if token.kind == "directive":
            continue
        if token.text == "namespace" and (at == 0 or tokens[at - 1].text != "using"):
            waiting = _names_behind(tokens, at)
        elif token.text == "{":
            open_braces.append(waiting)
            waiting = ()
        elif token.text == "}" and open_braces:
            open_braces.pop()
    return found


def _names_behind(tokens: Sequence[Token], at: int) -> KernelScope:
    names: list[str] = []
    for token in tokens[at + 1 :]:
        if token.text == "{":
            return tuple(names)
        if token.text in (";", "="):
            break
        if token.kind == "word" and token.text != "inline":
            names.append(token.text)
    return ()


def kernel_definitions(tokens: Sequence[Token], name: str) -> frozenset[KernelScope]:
    """The namespaces in which `__global__ ... name(...) { ... }` stands; declarations do not count."""
    scopes = scopes_at(tokens)
    found = set()
    for at, token in enumerate(tokens):
        if token.text == "__global__" and _defines(tokens, at + 1, name):
            found.add(scopes[at])
    return frozenset(found)


def _defines(tokens: Sequence[Token], at: int, name: str) -> bool:
    is_named, depth = False, 0
    for number in range(at, len(tokens)):
        text = tokens[number].text
        if depth == 0 and text in (";", "{"):
            return is_named and text == "{"
        if depth == 0 and text == name and number + 1 < len(tokens) and tokens[number + 1].text == "(":
            is_named = True
        depth += (text == "(") - (text == ")")
    return False


def launched_scope(
    around: KernelScope, written: Sequence[str], definitions: Set[KernelScope]
) -> KernelScope | None:
    """Of the kernel that a launch means by `written` qualifiers ("" first: from the top); None: it is not
    among those that are defined here."""
    if written and not written[0]:
        own = tuple(written[1:])
        return own if own in definitions else None
    for count in range(len(around), -1, -1):
        if (own := (*around[:count], *written)) in definitions:
            return own
    return None
