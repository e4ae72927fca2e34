"""Function templates that are handed a lambda, `each(x, n, [&](float v) { s += v; })`: one for each lambda.

The parameter goes, and with it the template parameter that is its type. What the lambda captures is handed on
in its place, by reference, and the lambda's own function is called with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.lex import lex
from tunesmith.csource.specialise import complete_arguments, specialise, template_meaning

_MOST = 32  # functions made of one kernel
_FORWARD = ("std::forward", "forward", "std::move", "move")


def with_handed_lambdas(function: c.Function, source: c.Source) -> tuple[c.Function, c.Source]:
    work = _HandedLambdas(source)
    body = work.body(function.body)
    if not work.made:
        return function, source
    made = tuple(work.made.values())
    return replace(function, body=body), replace(source, functions=(*source.functions, *made))


@dataclass
class _HandedLambdas:
    source: c.Source
    made: dict[str, c.Function] = field(default_factory=dict)

    def body(self, stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        return walk.map_nodes(stmts, lambda node: self._call(node) if isinstance(node, c.Call) else node)

    def _lambda(self, arg: c.Expr) -> c.Function | None:
        """The function of a lambda that is handed on: it is called with what it captures alone."""
        if not isinstance(arg, c.Call) or not arg.function.startswith("lambda_"):
            return None
        found = [f for f in self.source.functions if f.name == arg.function]
        handed = len(found) == 1 and len(arg.args) < len(found[0].parameters)
        return found[0] if handed else None

    def _call(self, call: c.Call) -> c.Expr:
        lambdas = [self._lambda(arg) for arg in call.args]
        if call.of is not None or not any(lambdas):
            return call
        name = "_with_".join([call.function, *(one.name for one in lambdas if one is not None)])
        if name not in self.made:
            made = self._made(call, lambdas, name)
            if made is None or len(self.made) >= _MOST:
                return call
            self.made[name] = made
        pairs = list(zip(call.args, lambdas, strict=True))
        plain = [arg for arg, one in pairs if one is None]
        captured = [
            own for arg, one in pairs if one is not None and isinstance(arg, c.Call) for own in arg.args
        ]
        return replace(call, function=name, args=(*plain, *captured))

    def _made(self, call: c.Call, lambdas: list[c.Function | None], name: str) -> c.Function | None:
        """The callee for just these lambdas; None where that is not clear."""
        count = len(call.args)
        named = [f for f in self.source.functions if f.name == call.function and not f.is_kernel]
        fitting = [f for f in named if len(f.parameters) == count]
        if len(fitting) != 1:
            return None
        callee, body = fitting[0], fitting[0].body
        types = [parameter.name for parameter in callee.template if parameter.kind == "type"]
        taken = {p.name for p in callee.parameters} | {*walk.declared_in(body), *walk.names_in(body)}
        parameters = [p for p, one in zip(callee.parameters, lambdas, strict=True) if one is None]
        gone: set[str] = set()
        for parameter, arg, one in zip(callee.parameters, call.args, lambdas, strict=True):
            if one is None or not isinstance(arg, c.Call):
                continue
            own = parameter.type.base
            explicit = [p.name for p in callee.template[: len(call.template_args)]]
            if own not in types or own in explicit or parameter.type.pointers:
                return None
            gone.add(own)
            held = self._captured(one, arg)
            if held is None or parameter.name in walk.assigned_in(body):
                return None
            names: list[c.Expr] = []
            for each in held:
                fresh = walk.fresh_name(each.name, taken)
                parameters.append(replace(each, name=fresh))
                names.append(c.Name(fresh))
            body = _called(body, parameter.name, replace(arg, args=tuple(names)))
            if parameter.name in walk.names_in(body):
                return None
        if _named(body, gone) or any(_words(p.type.base) & gone for p in parameters):
            return None
        template = tuple(p for p in callee.template if p.name not in gone)
        return replace(
            callee, name=name, template=template, parameters=tuple(parameters), body=self.body(body), text=""
        )

    def _captured(self, function: c.Function, handed: c.Call) -> tuple[c.Parameter, ...] | None:
        """What the lambda captures, under the types that it has there."""
        try:
            arguments = complete_arguments(function.template, handed.template_args, self.source)
            known = specialise(function, template_meaning(function.template, arguments, self.source))
        except c.Unreadable:
            return None
        count = len(handed.args)
        return known.parameters[len(known.parameters) - count :] if count else ()


def _called(body: tuple[c.Stmt, ...], name: str, handed: c.Call) -> tuple[c.Stmt, ...]:
    """With the lambda's function in place of the parameter: where it is called, and where it is handed on."""

    def node(expr: c.Expr) -> c.Expr:
        match expr:
            case c.Call(function="operator()", args=args, of=c.Name(name=own)) if own == name:
                return replace(handed, args=(*args, *handed.args))
            case c.Call(function=function, args=(c.Name(name=own),)) if own == name and function in _FORWARD:
                return handed
            case c.Call(args=args):
                given = tuple([handed if arg == c.Name(name) else arg for arg in args])
                return expr if given == args else replace(expr, args=given)
        return expr

    return walk.map_nodes(body, node)


def _named(body: tuple[c.Stmt, ...], types: set[str]) -> bool:
    """Whether one of the types is named in it."""
    for node in walk.nodes_in(body):
        own = getattr(node, "type", None)
        if isinstance(own, c.Type) and _words(own.base) & types:
            return True
        if isinstance(node, c.Call) and any(_words(text) & types for text in node.template_args):
            return True
        if isinstance(node, c.Opaque | c.Verbatim) and _words(node.text) & types:
            return True
    return False


def _words(text: str) -> set[str]:
    return {token.text for token in lex(text) if token.kind == "word"}
