"""Assembly in a kernel that only computes, as a helper: one value of registers, and no more is known of it.

    asm("fma.rn.f16x2 %0, %1, %2, %1;" : "=r"(r) : "r"(a[i]), "r"(b[i]));
                                        ->  r = fma_rn_f16x2(a[i], b[i]);

Compilers take an operand only where its type has the kind and the size of its constraint, so that nothing is
converted on the way. What does more than compute, or sets several values, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.assembly import NotAssembly, is_assembly, read_assembly, sections_of
from tunesmith.csource.effects import of_assembly
from tunesmith.csource.lex import blank
from tunesmith.csource.parse import read_expression, read_source_tree

_TYPES = {"f": "float", "r": "unsigned int", "h": "unsigned short", "l": "unsigned long long", "d": "double"}
_VALUE = re.compile(r'\s*"\s*=?&?([frhld])\s*"\s*\((.*)\)\s*', re.DOTALL)
_CONSTANT = re.compile(r'\s*"\s*n\s*"\s*\(\s*(-?\d+|0[xX][0-9a-fA-F]+)[uU]?\s*\)\s*')
_ADDRESS = re.compile(r"[\[\]]")


def with_helpers(source: c.Source) -> c.Source:
    """The kernels of a source with such assembly as calls, and the helpers ahead of them."""
    if source.language != "cuda" or not any(
        "asm" in function.text for function in source.functions if function.is_kernel
    ):
        return source
    apart = _Apart({word for f in source.functions for word in re.findall(r"\w+", f.text)})
    changed = [apart.kernel(f) if f.is_kernel else f for f in source.functions]
    return replace(source, functions=(*apart.helpers.values(), *changed)) if apart.helpers else source


@dataclass
class _Apart:
    taken: set[str]
    helpers: dict[str, c.Function] = field(default_factory=dict)  # by what follows their name

    def kernel(self, function: c.Function) -> c.Function:
        return replace(function, body=walk.map_statements(function.body, on_stmt=self._statement))

    def _statement(self, stmt: c.Stmt) -> c.Stmt:
        if not isinstance(stmt, c.Verbatim) or not is_assembly(stmt.text):
            return stmt
        try:
            found = self._call(stmt.text)
        except (NotAssembly, c.Unreadable):
            return stmt
        return c.Evaluate(found, line=stmt.line, comments=stmt.comments) if found is not None else stmt

    def _call(self, text: str) -> c.Expr | None:
        read, sections = read_assembly(text), sections_of(text)
        if of_assembly(text) or not read.instructions or len(sections) not in (2, 3):
            return None
        template, outputs, inputs = (*sections, "")[:3]
        if _ADDRESS.search(template):  # an address, or an operand by name
            return None
        target = _VALUE.fullmatch(outputs)
        if target is None or "=" not in outputs.partition("(")[0] or len(_listed(outputs)) != 1:
            return None
        place = read_expression(target[2])
        if not isinstance(place, c.Name | c.Member | c.Index):
            return None
        names, given, kept = list[str](), list[c.Expr](), list[str]()
        for number, operand in enumerate(_listed(inputs)):
            value, constant = _VALUE.fullmatch(operand), _CONSTANT.fullmatch(operand)
            if constant is not None:
                kept.append(f'"n"({constant[1]})')
            elif value is None or "=" in operand.partition("(")[0] or value[1] == "l":
                return None
            else:
                names.append(f"{_TYPES[value[1]]} in_{number}")
                given.append(read_expression(value[2]))
                kept.append(f'"{value[1]}"(in_{number})')
        made = (template.strip(), target[1], names, kept, "volatile" if read.volatile else "")
        name = self._helper(read.instructions[-1].opcode, *made)
        return c.Assign("=", place, c.Call(name, tuple(given)))

    def _helper(
        self, opcode: str, template: str, result: str, names: Sequence[str], kept: Sequence[str], word: str
    ) -> str:
        rest = (
            f"({', '.join(names)})\n{{\n    {_TYPES[result]} out;\n"
            f'    asm {word}({template} : "={result}"(out) : {", ".join(kept)});\n    return out;\n}}'
        )
        if rest not in self.helpers:
            name = walk.numbered(re.sub(r"\W+", "_", opcode), self.taken)
            self.taken.add(name)
            text = f"__device__ __forceinline__ {_TYPES[result]} {name}{rest}"
            (self.helpers[rest],) = read_source_tree(text, "cuda").functions
        return self.helpers[rest].name


def _listed(operands: str) -> list[str]:
    """Apart at commas outside strings and brackets."""
    plain, found, depth, start = blank(operands, ("string",)), list[str](), 0, 0
    for at, sign in enumerate(plain):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append(operands[start:at])
            start = at + 1
    return [part for part in (*found, operands[start:]) if part.strip()]
