"""A file of workloads: read as in a problem file, under the problem's own contract."""

from __future__ import annotations

import pytest

from tests.samples import a_problem
from tunesmith.base.errors import BadInput
from tunesmith.problem.problem import Workload
from tunesmith.problem.problem_file import with_workloads


def refused(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        with_workloads(a_problem(), text, path="sizes.toml")
    return str(caught.value)


def test_they_take_the_place_of_the_problems_own_and_nothing_else_changes() -> None:
    flat = '[workloads.flat]\nrows = 1\nd = 4096\nweight = 2.0\ncache = "warm"\n'
    text = f"[workloads.tall]\nrows = 512\nd = 64\n{flat}"
    found = with_workloads(a_problem(), text, path="sizes.toml")
    assert found.workloads == (
        Workload("tall", (("rows", 512), ("d", 64))),
        Workload("flat", (("rows", 1), ("d", 4096)), 2.0, "warm"),
    )
    assert found.kernel == a_problem().kernel
    assert found.contract == a_problem().contract


def test_inline_tables_will_do() -> None:
    found = with_workloads(a_problem(), "[workloads]\none = { rows = 8, d = 8 }\n", path="sizes.toml")
    assert [w.name for w in found.workloads] == ["one"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "sizes.toml: workloads is missing"),
        ("[workloads]\n", "sizes.toml:1: [workloads]: there are no workloads"),
        (
            "[workloads.a]\nrows = 5000\nd = 8\n",
            "sizes.toml:2: workload 'a': rows = 5000 is outside",
        ),
        ("[workloads.a]\nrows = 5\nd = 9\n", "sizes.toml:3: workload 'a': d = 9 is outside the contract"),
        ("[workloads.a]\nrows = 5\n", "sizes.toml:1: workload 'a': no value for d"),
        (
            "[workloads.a]\nrows = 5\nd = 8\nn = 3\n",
            "sizes.toml:4: workload 'a': 'n' has no rule in",
        ),
        ('[workloads.a]\nrows = "5"\nd = 8\n', "sizes.toml:2"),
        ("[workloads.a]\nrows = 5\nd = 8\nweight = 0\n", "weight must be above 0"),
        ("name = 3\n[workloads.a]\nrows = 5\nd = 8\n", "sizes.toml:1: unknown key 'name'"),
        ("[workloads\n", "sizes.toml:1: not readable as TOML"),
        ('[workloads."a/b"]\nrows = 5\nd = 8\n', "a workload's name has letters"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, words: str) -> None:
    assert words in refused(text)
