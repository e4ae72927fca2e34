from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.source.corpus import EXAMPLES, Example
from tunesmith.source.inline import inline_calls, side_effect
from tunesmith.source.printing import print_function
from tunesmith.source.reader.parse import read_source_tree
from tunesmith.source.reader.templates import BoundKernel, bind_kernel, own_functions
from tunesmith.source.tree import Function, Opaque, Source
from tunesmith.source.walk import calls_in, expressions_in

_ALL = pytest.mark.parametrize("example", EXAMPLES, ids=str)


def test_the_corpus_is_there():
    assert len(EXAMPLES) >= 40
    assert {example.language for example in EXAMPLES} == {"cuda", "hip", "opencl"}


@_ALL
@pytest.mark.few(6)
def test_everything_in_the_file_is_read(example: Example):
    source = read_source_tree(example.text, example.language)

    assert source.unread == ()
    assert any(function.is_kernel for function in source.functions)


@_ALL
@pytest.mark.few(6)
def test_what_is_printed_is_read_back_as_the_same_tree(example: Example):
    source = read_source_tree(example.text, example.language)
    functions = [function for function in source.functions if "::" not in function.name]
    printed = [print_function(function, example.language, head=_head(function)) for function in functions]

    again = read_source_tree("\n".join([*source.preamble, *printed]), example.language)

    assert again.unread == ()
    assert [_bare(f) for f in again.functions if "::" not in f.name] == [_bare(f) for f in functions]


@_ALL
@pytest.mark.few(6)
def test_the_entry_is_bound_and_helpers_that_touch_memory_are_put_in_place(example: Example):
    source = read_source_tree(example.text, example.language)
    bound = bind_kernel(source, example.entry)
    assert isinstance(bound, BoundKernel), bound

    inlined = inline_calls(bound.function, source)

    assert inlined.notes == ()
    assert bound.function.template == ()
    left = [f for call in calls_in(inlined.function.body) for f in own_functions(call, source)]
    assert [function.name for function in left if side_effect(function, source)] == []
    assert not any(isinstance(node, Opaque) for node in expressions_in(inlined.function.body))


@_ALL
@pytest.mark.few(6)
def test_the_bound_and_inlined_kernel_is_read_back_as_the_same_tree(example: Example):
    bound = bind_kernel(read_source_tree(example.text, example.language), example.entry)
    assert isinstance(bound, BoundKernel)
    function = inline_calls(bound.function, bound.source).function
    others = "\n".join(_text_of(bound.source, function))

    text = print_function(function, example.language, head=_head(function))
    again = read_source_tree(f"{others}\n{text}", example.language)

    assert _bare(again.functions[-1]) == _bare(function)


def _text_of(source: Source, function: Function) -> list[str]:
    """What the kernel's text needs around it: templates that it still calls must be known as such."""
    return [*source.preamble, *(f.text for f in source.functions if not f.is_kernel)]


def _bare(function: Function) -> Function:
    return replace(function, text="", template=())


def _head(function: Function) -> str:
    """Of a function whose template is printed as well; the grammar of OpenCL knows no __global__."""
    if not function.template:
        return ""
    parameters = [
        f"typename {p.name}" if p.kind == "type" or p.type is None else f"{p.type.base} {p.name}"
        for p in function.template
    ]
    return f"template <{', '.join(parameters)}> {'__global__' if function.is_kernel else '__device__'}"
