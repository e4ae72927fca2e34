"""What an extraction leaves open, filled in by a model whose reply is data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tunesmith
from tests.cuda_here import needs_nvrtc
from tunesmith.base.errors import BadInput, WaitingForModel
from tunesmith.plugins.repo.extract.draft import Extraction
from tunesmith.plugins.repo.extract.extract import NOT_PROVEN
from tunesmith.plugins.repo.extract.fill import (
    ATTEMPTS,
    fill_open_places,
    insert_values,
    open_places,
    values_of,
)
from tunesmith.plugins.repo.extract.slice import BuildAttempt
from tunesmith.run.events import NoReply, Reply, Request

KERNEL = """__global__ void scaled(float* out, const float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * x[i];
}
"""
DRAFT = """# Drafted. Replace every "FILL"; the comment beside it says what is wanted.
name = "scaled"
[kernel]
source = "kernel.cu"
entry = "scaled"
[[argument]]
name = "out"
type = "float32*"
shape = ["FILL"]  # one entry per axis, "FILL" of them
role = "output"
[[argument]]
name = "x"
type = "float32*"
shape = ["n"]
role = "input"
[[argument]]
name = "factor"
type = "float32"
value = "FILL"  # the number callers pass # without quotes
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["ceildiv(n, 256)"]
block = ["256"]
[contract]
n = { min = 1, max = "FILL" }  # the largest
[workloads]
example = { n = "FILL" }
[accuracy]
"""
VALUES = {
    "argument.0.shape.0": "n",
    "argument.2.value": 0.5,
    "contract.n.max": 65536,
    "workloads.example.n": 4096,
}


class Scripted:
    """Says one thing after the other."""

    name = "a model"

    def __init__(self, *replies: object) -> None:
        self.replies = list(replies)
        self.asked: list[Request] = []

    def reply(self, request: Request) -> Any:
        self.asked.append(request)
        said = self.replies.pop(0)
        return (
            said if isinstance(said, NoReply) else Reply(said if isinstance(said, str) else json.dumps(said))
        )


def draft(text: str = DRAFT) -> Extraction:
    files = (("kernel.cu", KERNEL), ("problem.toml", text))
    return Extraction("a.cu:1", "scaled", files, 4, 4, 1, BuildAttempt("digest"), ())


def test_places_are_told_with_their_lines() -> None:
    places = open_places(DRAFT)
    assert [place.path for place in places] == list(VALUES)
    assert places[1].line == 'value = "FILL"  # the number callers pass # without quotes'


def test_values_take_their_places_and_are_marked() -> None:
    model = Scripted({"values": VALUES, "why": "so"})
    found = fill_open_places(draft(), model)
    text = dict(found.found.files)["problem.toml"]
    assert 'shape = ["n"]  # by a model' in text
    assert "value = 0.5  # by a model" in text
    assert "n = { min = 1, max = 65536 }  # by a model" in text
    assert text.count('"FILL"') == 1  # of the first comment
    assert found.found.fills == 0
    assert found.said == ("4 places filled in by a model; proof or `check` decide",)
    (request,) = model.asked
    assert (request.role, request.expects) == ("extractor", "json")
    assert "- contract.n.max: n = { min" in request.messages[1].text
    assert KERNEL in request.messages[1].text


def test_what_cannot_be_used_goes_back_with_the_reason() -> None:
    outside = {**VALUES, "workloads.example.n": 1 << 20}
    model = Scripted("no idea", {"values": outside}, {"values": VALUES})
    found = fill_open_places(draft(), model)
    assert found.found.fills == 0
    assert "not one JSON object" in model.asked[1].messages[-1].text
    assert "is outside the contract, which allows 1 to 65536" in model.asked[2].messages[-1].text
    assert [request.number for request in model.asked] == [1, 2, 3]


def test_after_three_attempts_the_draft_stays() -> None:
    found = fill_open_places(draft(), Scripted(*["nothing"] * ATTEMPTS))
    assert found.found == draft()
    assert found.said[0].startswith("a model did not fill in the rest: the reply is not one JSON object")
    silent = fill_open_places(draft(), Scripted(NoReply("it is off", lasts=True)))
    assert silent.said == ("a model did not fill in the rest: it is off",)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({**VALUES, "kernel.source": "/etc/passwd"}, "kernel.source was not asked for"),
        ({k: v for k, v in VALUES.items() if k != "contract.n.max"}, "contract.n.max has no value"),
        ({**VALUES, "argument.2.value": {"a": 1}}, "argument.2.value is a number or a short text"),
        ({**VALUES, "argument.2.value": True}, "argument.2.value is a number or a short text"),
        ({**VALUES, "argument.2.value": "FILL"}, "argument.2.value is a number or a short text"),
        ({**VALUES, "argument.0.shape.0": 'n"]\nrole = "input'}, "argument.0.shape.0 is a number or a short"),
        ({**VALUES, "contract.n.max": [1, 2]}, "contract.n.max"),
        ({**VALUES, "contract.n.max": ["1"]}, "contract.n.max takes one value"),
    ],
)
def test_only_what_was_asked_for_is_taken(values: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words.replace(".", r"\.")):
        values_of(json.dumps({"values": values}), open_places(DRAFT))


def test_a_list_may_take_the_place_of_an_axis_and_quotes_stay_inside() -> None:
    text = insert_values(DRAFT, {**VALUES, "argument.0.shape.0": ["n", 'a" # b']}, "m")
    assert 'shape = ["n", "a\\" # b"]  # by m' in text


def test_a_size_without_a_name_is_not_asked_for() -> None:
    nameless = DRAFT.replace('n = { min = 1, max = "FILL" }', '"FILL" = { min = 1, max = 2 }')
    model = Scripted()
    found = fill_open_places(draft(nameless), model)
    assert (found.said, model.asked) == (
        ("a size without a name is for you to name, so no model was asked",),
        [],
    )


@needs_nvrtc
@pytest.mark.long
def test_through_a_mailbox_and_from_its_recording(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "a.cu").write_text(KERNEL)
    wish: Any = {"kernel": "scaled", "trim": False, "out": tmp_path / "problem"}
    with pytest.raises(WaitingForModel, match="0001-extractor"):
        tunesmith.extract(sources, model="mailbox", wait=False, **wish)
    box = tmp_path / "problem" / "mailbox"
    (letter,) = box.iterdir()
    listed = [line[2:].split(": ")[0] for line in letter.read_text().splitlines() if line.startswith("- ")]
    known = {"value": 0.5, "max": 65536, "n": 4096}
    values = {path: known[path.rpartition(".")[2]] for path in listed}
    (box / "0001-extractor.reply.md").write_text(json.dumps({"values": values}))
    found = tunesmith.extract(sources, model="mailbox", wait=False, **wish)
    assert (found.fills, found.faults) == (0, ())
    assert (tmp_path / "problem" / "problem.toml").read_text().startswith(NOT_PROVEN)
    assert "filled in is not proven by a captured launch" in found.report[-1]
    again = tunesmith.extract(sources, model=f"recorded:{box}", **{**wish, "out": tmp_path / "again"})
    assert again.fills == 0
    with pytest.raises(BadInput, match="built-in expert has said"):
        tunesmith.extract(sources, model="expert", **{**wish, "out": tmp_path / "third"})
