"""What an author is shown is a template itself."""

from __future__ import annotations

import pytest

from tests.samples import a_problem
from tunesmith.agents.prompting import example_file, read_file
from tunesmith.problem.template_file import parse_template
from tunesmith.problem.vet import vet_source
from tunesmith.run.events import Reply


@pytest.mark.parametrize("language", ["opencl", "cuda", "hip"])
@pytest.mark.parametrize(("concrete", "params"), [(False, ["BLOCK", "ITEMS"]), (True, [])])
def test_the_example_is_read_as_a_reply(language: str, concrete: bool, params: list[str]) -> None:
    text = read_file(Reply(example_file(language, concrete)))
    assert isinstance(text, str)
    template = parse_template(text.replace("(n,", "(rows,"), path="t.cl", problem=a_problem())
    assert [p.name for p in template.space.params] == params
    assert template.is_concrete is concrete
    assert vet_source(text, "", language) is None
