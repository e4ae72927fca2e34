"""What an author is shown is a template itself."""

from __future__ import annotations

import pytest

from tests.samples import a_problem
from tunesmith.agents.prompting import example_file, read_file
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import vet_source
from tunesmith.run.events import Reply


@pytest.mark.parametrize("language", ["opencl", "cuda", "hip"])
def test_the_example_is_read_as_a_reply(language: str) -> None:
    text = read_file(Reply(example_file(language, concrete=False)))
    assert isinstance(text, str)
    template = parse_template(text.replace("(n,", "(rows,"), path="t.cl", problem=a_problem())
    assert [p.name for p in template.space.params] == ["BLOCK", "ITEMS"]
    assert vet_source(text, "", language) is None


@pytest.mark.parametrize("language", ["opencl", "cuda", "hip"])
def test_the_example_of_a_kernel_has_no_parameters(language: str) -> None:
    text = read_file(Reply(example_file(language, concrete=True)))
    assert isinstance(text, str)
    template = parse_template(text.replace("(n,", "(rows,"), path="t.cl", problem=a_problem())
    assert template.is_concrete
    assert vet_source(text, "", language) is None
