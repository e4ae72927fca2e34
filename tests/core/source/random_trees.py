"""Random trees in the one spelling that the reader gives to each thing: what a round trip must keep."""

from __future__ import annotations

from random import Random

from tunesmith.source.tree import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Declare,
    Evaluate,
    Expr,
    For,
    If,
    Index,
    Jump,
    Member,
    Name,
    Number,
    Return,
    Scope,
    SizeOf,
    Stmt,
    Ternary,
    Type,
    Unary,
    While,
)

_NUMBERS = (
    Number("0", 0), Number("7", 7), Number("-3", -3), Number("0x1fu", 31), Number("1.5f", 1.5),
    Number("-2.0", -2.0), Number("1e-6f", 1e-6), Number("true", 1), Number("5LL", 5),
)  # fmt: skip
_TYPES = (
    Type("float"), Type("unsigned int"), Type("long long"), Type("__half"), Type("T"), Type("float4"),
)  # fmt: skip
_POINTERS = (Type("float", 1), Type("uint4", 1, const=True), Type("T", 1), Type("char", 2))
_VARIABLES = ("a", "b", "row")
_OPERATORS = [
    "+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||",
]  # fmt: skip
_ASSIGNMENTS = ["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="]


class RandomTrees:
    def __init__(self, random: Random) -> None:
        self._random = random

    def _one_of(self, *items):
        return items[self._random.randrange(len(items))]

    def _many(self, make, most: int, least: int = 0) -> tuple:
        return tuple(make() for _ in range(self._random.randint(least, most)))

    def expr(self, size: int) -> Expr:
        if size <= 0:
            leaf = self._one_of(Name(self._one_of(*_VARIABLES, "threadIdx.x", "blockDim.y")), None, None)
            return leaf or self._one_of(*_NUMBERS, SizeOf(self._one_of(*_TYPES)))

        def inner() -> Expr:
            return self.expr(size - self._random.randint(1, 3))

        match self._random.randrange(12):
            case 0 | 1 | 2:
                return Binary(self._one_of(*_OPERATORS), inner(), inner())
            case 3:
                return self._unary(inner())
            case 4:
                place = self.place(inner)
                return self._one_of(
                    Unary(self._one_of("++", "--"), place, self._one_of(True, False)), Unary("&", place)
                )
            case 5:
                return Assign(self._one_of(*_ASSIGNMENTS), self.place(inner), inner())
            case 6:
                return Ternary(inner(), inner(), inner())
            case 7:
                return Call(self._one_of("f", "fmaxf", "std::max"), self._many(inner, 3))
            case 8:
                return Call("g", (inner(),), ("float", "4"))
            case 9:
                return Cast(self._one_of(*_TYPES), inner())
            case 10:
                return Index(Cast(self._one_of(*_POINTERS), inner()), inner())
            case _:
                # `a * float2{b}` in a condition is the declaration of float2 to the grammar.
                return Call("f", (Braces((inner(), inner()), Type("float2")),))

    def _unary(self, operand: Expr) -> Expr:
        op = self._one_of("!", "~", "+", "-")
        plain = isinstance(operand, Number) and not operand.text.startswith("-")
        # -1 is one literal, so a minus never stands before a plain one.
        return Unary("!" if op == "-" and plain else op, operand)

    def place(self, inner) -> Expr:
        variable = Name(self._one_of(*_VARIABLES))
        return self._one_of(
            variable, Index(variable, inner()), Member(variable, "x"), Member(variable, "y", arrow=True)
        )

    def declare(self, size: int) -> Declare:
        name = self._one_of(*_VARIABLES)
        type_, value = self._one_of(*_TYPES), self.expr(size)
        return self._one_of(
            Declare(type_, name),
            Declare(type_, name, value),
            Declare(Type("int", const=True), name, value),
            Declare(self._one_of(*_POINTERS), name, value),
            Declare(type_, name, None, (value, Number("4", 4))),
            Declare(type_, name, Braces((value, value)), (Number("2", 2),)),
            Declare(type_, name, None, (value,), "shared", self._one_of(None, Number("16", 16))),
            Declare(type_, name, storage="dynamic shared"),
            Declare(Type("int"), name, value, storage="constexpr"),
        )

    def _effect(self, size: int) -> Evaluate:
        """`a * b;` alone is the declaration of a pointer, so only what has an effect stands alone."""
        value = self.expr(size)
        return Evaluate(self._one_of(Assign("=", self.place(lambda: value), value), Call("f", (value,))))

    def statement(self, size: int) -> Stmt:
        if size <= 0:
            return self._one_of(
                self.declare(2),
                self._effect(3),
                Return(self.expr(2)),
                Return(),
                Jump("break"),
                Jump("continue"),
            )

        def body() -> tuple[Stmt, ...]:
            return self._many(lambda: self.statement(size - self._random.randint(1, 2)), 3)

        match self._random.randrange(6):
            case 0 | 1:
                return If(self.expr(2), body(), body(), self._one_of(True, False))
            case 2 | 3:
                index = Declare(Type("int"), "i", self.expr(1))
                head = self._one_of(
                    (),
                    (index,),
                    (index, Declare(Type("int"), "j", self.expr(1))),
                    (Evaluate(Assign("=", Name("a"), self.expr(1))), Evaluate(Name("b"))),
                )
                condition = self._one_of(None, self.expr(2))
                return For(
                    head, condition, self._many(lambda: self.expr(2), 2), body(), self._one_of(None, 0, 1, 4)
                )
            case 4:
                return While(Binary("<", Name("a"), self.expr(2)), body(), self._one_of(True, False))
            case _:
                return Scope((*body(), self._effect(1)))
