"""Which method, operator, constructor or conversion is meant: chosen by the types of what it is given.

Each that is chosen is a function under a name of its own, "vec<float, 4>::load#0", which no other has.
Where the language would weigh one conversion against another, nothing is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import is_function
from tunesmith.source.fold import fold_expr
from tunesmith.source.reader.parse import EXPLICIT, THIS
from tunesmith.source.reader.records import BITS, CONST, UNCLEAR, Instance, Instances
from tunesmith.source.reader.templates import Meaning, file_meaning, specialise_function
from tunesmith.source.types import INTEGERS

_Type = Callable[[c.Expr], c.Type | None]
_FLOATS = frozenset({"float", "double"})
_SAME, _NUMBER, _PATTERN, _MADE = 3, 2, 1, 0


class Overloads:
    def __init__(self, source: c.Source, instances: Instances) -> None:
        self.made: dict[str, c.Function] = {}
        self._source, self._instances = source, instances
        self._methods: dict[tuple[str, str], tuple[str, ...]] = {}
        meaning = file_meaning(source)
        self._operators: dict[str, list[str]] = {}
        self._failed: dict[str, str] = {}  # operators that are not understood
        for number, operator in enumerate(source.operators):
            try:
                name = self._settle_overload(operator, number, meaning)
            except c.Unreadable as trouble:
                self._failed[operator.name] = trouble.reason
                continue
            self._operators.setdefault(operator.name, []).append(name)
        self._library: dict[str, list[str]] = {}
        kept: list[c.Function] = []
        for number, function in enumerate(source.functions):
            if function.is_kernel or not is_function(function.name) or not self._takes_record(function):
                kept.append(function)
                continue
            self._library.setdefault(function.name, []).append(
                self._settle_overload(function, number, meaning)
            )
        self.source = replace(source, functions=tuple(kept))  # without those that bear a library's name

    def _settle_overload(self, function: c.Function, number: int, meaning: Meaning) -> str:
        """What it is called from now on."""
        name = f"{function.name}#{number}"
        done = replace(
            specialise_function(replace(function, template=()), meaning), template=function.template
        )
        self.made[name] = replace(self._instances.settled(done), name=name, text="")
        return name

    def _takes_record(self, function: c.Function) -> bool:
        names = {record.name for record in self._source.records}
        return any(p.type.base.split("<")[0] in names for p in function.parameters)

    def of_library_name(self, call: c.Call, type_of: _Type) -> str:
        """The file's own `__ldg(const bf16 *)`, where it is meant; "": the library's."""
        named = self._library.get(call.function, ())
        names = [name for name in named if self._parameter_count(name) == len(call.args)]
        if not names:
            return ""
        types = [type_of(arg) for arg in call.args]
        fitting = [n for n in names if all(s == _SAME for s in self._argument_scores(n, types))]
        if any(type_ is None for type_ in types) or len(fitting) > 1:
            raise c.Unreadable(f"which {call.function} is called cannot be told from its arguments")
        return fitting[0] if fitting else ""

    def _parameter_count(self, name: str) -> int:
        return len(self.made[name].parameters)

    def method(
        self, instance: Instance, name: str, args: tuple[c.Expr, ...], type_of: _Type, line: int, how: str
    ) -> tuple[str, tuple[c.Expr, ...]]:
        """The function's name and its arguments, the object first and defaults filled in.

        `how`: CONST, UNCLEAR, or "" for an object that may be changed.
        """
        return self._called(instance, name, args, type_of, line, how, is_static=False)

    def static(
        self, instance: Instance, name: str, args: tuple[c.Expr, ...], type_of: _Type, line: int
    ) -> tuple[str, tuple[c.Expr, ...]]:
        return self._called(instance, name, args, type_of, line, "", is_static=True)

    def _called(
        self,
        instance: Instance,
        name: str,
        args: tuple[c.Expr, ...],
        type_of: _Type,
        line: int,
        how: str,
        is_static: bool,
    ) -> tuple[str, tuple[c.Expr, ...]]:
        names = self._named(instance, name)
        if not names:
            raise c.Unreadable(f"{instance.name} has no method {name} whose text is in the file", line)
        fitting: list[tuple[str, tuple[c.Expr, ...]]] = []
        for one in names:
            parameters = self.made[one].parameters
            has_object = bool(parameters) and parameters[0].name == THIS
            given = args if has_object or is_static else args[1:]
            if (has_object and is_static) or len(given) > len(parameters):
                continue
            if how == CONST and has_object and not parameters[0].type.const:
                continue  # it may not be called
            rest = [parameter.default for parameter in parameters[len(given) :]]
            if all(value is not None for value in rest):
                fitting.append((one, (*given, *(value for value in rest if value is not None))))
        what = f"{instance.name}::{name}"
        best = self._best([one for one, _ in fitting], dict(fitting), type_of, what, line, how)
        return best, dict(fitting)[best]

    def _named(self, instance: Instance, name: str) -> tuple[str, ...]:
        key = instance.name, name
        if key not in self._methods:
            found = self._instances.methods(instance, name)
            names = tuple(f"{instance.name}::{name}#{number}" for number in range(len(found)))
            for one, function in zip(names, found, strict=True):
                self.made[one] = replace(function, name=one)
            self._methods[key] = names
        return self._methods[key]

    def _best(
        self,
        names: list[str],
        args: dict[str, tuple[c.Expr, ...]],
        type_of: _Type,
        what: str,
        line: int,
        how: str = "",
    ) -> str:
        types = {name: [type_of(arg) for arg in args[name]] for name in names}
        scores = {name: self._argument_scores(name, given) for name, given in types.items()}
        scores = {name: each for name, each in scores.items() if min(each, default=_SAME) >= 0}
        if not scores and len(names) == 1:
            return names[0]
        best = _closest_matches(scores)
        if len(best) > 1:
            best = self._for_either(best, what, line, how)
        if len(best) != 1 or self._is_beside_template(best[0], {name: types[name] for name in scores}):
            raise c.Unreadable(f"which {what} is called cannot be told from its arguments", line)
        return best[0]

    def _for_either(self, names: list[str], what: str, line: int, how: str = UNCLEAR) -> list[str]:
        """Of two for the same types, the one for objects that may be changed.

        Where it is not told whether this one may, both must do the same.
        """
        open_ = [n for n in names if not self.made[n].parameters[0].type.const]
        if len(open_) != 1 or how != UNCLEAR:
            return open_ or names
        texts = (self.made[name].body for name in names)
        first, *others = (walk.map_types(text, lambda type_: replace(type_, const=False)) for text in texts)
        if any(body != first for body in others):
            reason = f"{what} does one thing to an object that is const and another to one that is not"
            raise c.Unreadable(reason, line)
        return open_

    def _is_beside_template(self, best: str, types: Mapping[str, list[c.Type | None]]) -> bool:
        """Whether it converts what a template among the others may take as it is: that would be closer."""
        scores = self._argument_scores(best, types[best])
        for name, given in types.items():
            function = self.made[name]
            generic = {parameter.name for parameter in function.template}
            for parameter, type_, score in zip(function.parameters, given, scores, strict=False):
                if score in (_NUMBER, _MADE) and type_ is not None and parameter.type.base in generic:
                    return True
        return False

    def _argument_scores(self, name: str, types: list[c.Type | None]) -> list[int]:
        function = self.made[name]
        generic = {parameter.name for parameter in function.template}
        return [
            self._score_conversion(parameter.type, type_, generic)
            for parameter, type_ in zip(function.parameters, types, strict=True)
        ]

    def _score_conversion(self, formal: c.Type, given: c.Type | None, generic: set[str]) -> int:
        if given is None:
            return _PATTERN
        if (formal.base, formal.pointers) == (given.base, given.pointers):
            return _SAME
        if formal.base in generic:
            return _PATTERN if formal.pointers <= given.pointers else -1
        if any(word in generic for word in _split_template_words(formal.base)):
            same = formal.base.split("<")[0] == given.base.split("<")[0]
            return _PATTERN if same and formal.pointers == given.pointers else -1
        if formal.pointers or given.pointers:
            return _PATTERN if formal.base == "void" and formal.pointers and given.pointers else -1
        if _is_number(formal) and _is_number(given):
            return _NUMBER
        return _MADE if self._instances.of(formal) or self._instances.of(given) else -1

    def operator(
        self, op: str, types: tuple[c.Type | None, ...], is_number: Callable[[c.Type | None], bool]
    ) -> str:
        """The function that a sign means for these types; "" where it is the language's own.

        `is_number`: whether an object may stand for a number; then no other is made a record for an operator.
        """
        if f"operator{op}" in self._failed:
            raise c.Unreadable(f"operator{op} of the file: {self._failed[f'operator{op}']}")
        names = list(self._operators.get(f"operator{op}", ()))
        instance = self._instances.of(types[0])
        if instance is not None:
            names += self._named(instance, f"operator{op}")
        names = [name for name in names if self._parameter_count(name) == len(types)]
        worst = {-1, _MADE} if any(map(is_number, types)) else {-1}
        scores = {name: self._argument_scores(name, list(types)) for name in names}
        scores = {name: each for name, each in scores.items() if min(each) not in worst}
        if not scores:
            return ""
        best = _closest_matches(scores)
        if len(best) > 1:
            best = self._for_either(best, f"operator{op}", 0, "" if op == "[]" else UNCLEAR)
        if len(best) != 1 or self._is_beside_template(best[0], {name: list(types) for name in scores}):
            raise c.Unreadable(f"which operator{op} is meant cannot be told from its operands")
        return best[0]

    def conversion(self, instance: Instance, base: str | None, explicit: bool = True) -> str | None:
        """To a type, or to any number where that is told by there being one conversion only."""
        names = [m.name for m in instance.record.methods if m.name.startswith("operator ")]
        found = [one for name in dict.fromkeys(names) for one in self._named(instance, name)]
        found = [one for one in found if explicit or self.made[one].text != EXPLICIT]
        exact = [one for one in found if self.made[one].result.base == base]
        if exact:
            return exact[0] if len(exact) == 1 else self._for_either(exact, f"the {base} of it", 0)[0]
        numbers = [one for one in found if _is_number(self.made[one].result)]
        if base is not None and self._instances.named(base) is not None:
            return None
        return numbers[0] if len(numbers) == 1 else None

    def tested(self, instance: Instance, value: c.Expr, line: int) -> c.Expr:
        """An object that stands as a condition: its bool, or the one number that it becomes."""
        found = self.conversion(instance, "bool")
        if found is None:
            raise c.Unreadable(f"whether a {instance.name} holds as a condition is not known", line)
        return c.Call(found, (value,))

    def constructor(
        self, instance: Instance, args: tuple[c.Expr, ...], type_of: _Type, line: int, implicit: bool = False
    ) -> tuple[str, tuple[c.Expr, ...]] | None:
        """The constructor for these arguments, with its defaults filled in; None where none is written.

        Unless it gives the object it takes that first. `implicit`: nobody has asked for a conversion.
        """
        word = instance.record.name.rpartition("::")[2]
        given: dict[str, tuple[c.Expr, ...]] = {}
        for name in self._named(instance, word):
            function = self.made[name]
            rest = [parameter.default for parameter in function.parameters[len(args) + 1 :]]
            too_many = len(args) + 1 > len(function.parameters)
            if too_many or None in rest or self._copies(name, instance):
                continue
            if not implicit or function.text != EXPLICIT:
                given[name] = (c.Name(THIS), *args, *(value for value in rest if value is not None))
        if not given:
            if args and self._named(instance, word):
                raise c.Unreadable(f"no constructor of {instance.name} takes {len(args)} arguments", line)
            return None

        def typed(arg: c.Expr) -> c.Type | None:
            return c.Type(instance.name) if arg == c.Name(THIS) else type_of(arg)

        name = self._best(list(given), given, typed, f"constructor of {instance.name}", line)
        return self._as_expression(name, instance) or name, given[name][1:]

    def _copies(self, name: str, instance: Instance) -> bool:
        parameters = self.made[name].parameters
        return len(parameters) == 2 and self._instances.of(parameters[1].type) is instance

    def _as_expression(self, name: str, instance: Instance) -> str:
        """A constructor that only sets the one field, as a function that gives the object."""
        function, only = self.made[name], instance.only
        made = name.replace("#", "#made ")
        if made in self.made:
            return made
        stmt = function.body[0] if len(function.body) == 1 else None
        match stmt:
            case c.Evaluate(
                expr=c.Assign("=", c.Member(base=c.Name(name="this"), arrow=False) as field, value)
            ):
                if only is None or only.inner is not None or field.field != only.name:
                    return ""
            case _:
                return ""
        body = c.Return(c.Cast(c.Type(instance.name, space=BITS), fold_expr(value)), line=stmt.line)
        result, parameters = c.Type(instance.name), function.parameters[1:]
        self.made[made] = replace(function, name=made, parameters=parameters, body=(body,), result=result)
        return made


def _closest_matches(scores: Mapping[str, Sequence[int]]) -> list[str]:
    """Those whose worst argument is the best, and of these the best in all."""
    ranks = {name: (min(each, default=_SAME), sum(each)) for name, each in scores.items()}
    return [name for name, rank in ranks.items() if rank == max(ranks.values())]


def _is_number(type_: c.Type) -> bool:
    return not type_.is_pointer and (type_.base in INTEGERS or type_.base in _FLOATS)


def _split_template_words(text: str) -> list[str]:
    return text.replace("<", " ").replace(">", " ").replace(",", " ").split() if "<" in text else []
