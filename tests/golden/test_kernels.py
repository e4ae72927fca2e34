"""What the reader of C and the expert answer to pieces of text: one test for each case of `kernels/`.

UPDATE_WANT=1 writes the answers of today into the files; what it changes is to be reviewed.
"""

from __future__ import annotations

import os

import pytest

from tests.golden.cases import Case, all_cases, rewrite
from tests.golden.csource_readers import CSOURCE
from tests.golden.drafting_readers import DRAFTING
from tests.golden.model_readers import MODEL
from tests.golden.moves_readers import MOVE_READERS
from tests.golden.writing_readers import WRITING
from tunesmith.base.errors import BadInput
from tunesmith.expert.write import Unwritable
from tunesmith.source.tree import Unreadable

READERS = CSOURCE | DRAFTING | MODEL | MOVE_READERS | WRITING
CASES = all_cases()


def answer(case: Case) -> tuple[str, ...]:
    reader, told = READERS[case.reader], case.told
    found: list[str] = []
    for text in case.texts:
        try:
            lines = [line.rstrip() for part in reader(text, **told) for line in part.split("\n")]
        except (BadInput, Unreadable, Unwritable, ValueError) as error:
            hint = getattr(error, "hint", None)
            lines = [f"refused: {error}", *([f"hint: {hint}"] if hint else [])]
        found += [" | ".join(lines).strip()] if case.by_line else lines
    return tuple(found)


def test_cases_have_names_of_their_own() -> None:
    names = [str(case) for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.long] if case.is_long else []) for case in CASES], ids=str
)
def test_answer(case: Case) -> None:
    found = answer(case)
    if os.environ.get("UPDATE_WANT"):
        rewrite(case, found)
    else:
        assert found == case.want
