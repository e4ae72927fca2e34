from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.core.source.random_trees import RandomTrees
from tests.thoroughness import examples
from tunesmith.source.printing import print_statements
from tunesmith.source.reader.parse import read_source_tree

_AROUND = "template <typename T, int N> __device__ T g(T x);\n"


@given(st.integers(0, 2**40))
@examples(400)
def test_what_is_printed_is_read_back_as_the_same_tree(seed: int):
    trees = RandomTrees(Random(seed))
    stmts = tuple(trees.statement(seed % 6) for _ in range(1 + seed % 3))
    text = print_statements(stmts, 1)

    source = read_source_tree(f"{_AROUND}__device__ void f()\n{{\n{text}}}\n", "cuda")

    assert source.unread == (), text
    assert print_statements(source.functions[0].body, 1) == text
    assert source.functions[0].body == stmts, text
