"""When a template is one of the same kernel, which of several is offered, and what a run begins from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.samples import (
    DEVICE,
    KERNEL,
    PROBLEM,
    TEMPLATE,
    WORKLOADS,
    a_problem,
    a_template,
    config,
    finalist,
    outcome,
    started,
    state_of,
    verified,
)
from tunesmith.base.codec import decode_json, encode_json
from tunesmith.base.text import digest_of
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template_file import parse_template
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Stopped
from tunesmith.run.library import (
    NAME,
    LibraryEntry,
    LibraryTemplate,
    Provenance,
    RunRecord,
    TimedConfig,
    WorkloadTime,
    entries_of,
    is_for_problem,
    kernel_digest,
    merge_entries,
    primed_from,
    rank_entries,
    record_of,
    run_id,
    signature_of,
    timings_of,
    with_past,
)
from tunesmith.run.state import State
from tunesmith.space.configset import Config

OWN = a_problem()


class NoTexts:
    def put(self, text: str) -> str:
        raise AssertionError(text)

    def get(self, digest: str) -> str:
        raise AssertionError(digest)


def a_problem_with(kernel: str = KERNEL, old: str = "", new: str = "") -> Problem:
    text = PROBLEM.format(kernel="", workloads=WORKLOADS)
    assert old in text
    return parse_problem(text.replace(old, new, 1), path="problem.toml", read=lambda _name: kernel)


def won(*more: object) -> State:
    """BLOCK=32 is the winner everywhere."""
    proven = {"small": 2.0, "wide": 4.0}
    return state_of(
        outcome(0, config(32), {"small": 0.5, "wide": 0.25}),
        outcome(1, config(64), {"small": 1.0, "wide": 1.0}),
        finalist(2, config(32), proven),
        verified(config(32), proven),
        Stopped("done"),
        *more,
    )


def entries(state: State | None = None, problem: Problem = OWN) -> list[LibraryEntry]:
    templates = Templates(problem, DEVICE, a_template(problem), NoTexts())
    files = {"problem.toml": "x", "kernel.cl": KERNEL}
    return entries_of(problem, state or won(), templates, files, "2026-11-15T10:00:00+00:00", "runs/scale-1")


def an_entry(**changes: object) -> LibraryEntry:
    return replace(entries()[0], **changes)


WHERE = Provenance("2026-11-15T10:00:00+00:00", "me", "a-host", "scale-1", "c" * 64)


def a_record() -> RunRecord:
    return record_of(OWN, won(), WHERE)


def some_timings(count: int) -> list[TimedConfig]:
    at = (WorkloadTime("small", "ok", 1e-3, 2e-3), WorkloadTime("wide", "wrong"))
    scores = (None if i % 5 == 4 else i / 1000 for i in range(count))
    return [TimedConfig("d", Config((("BLOCK", i), ("VEC", 4))), score, at) for i, score in enumerate(scores)]


def test_a_winner_is_stored_with_what_it_gave_and_what_is_known_of_it() -> None:
    (entry,) = entries()
    assert NAME.fullmatch(entry.name)
    assert entry.template == TEMPLATE
    assert entry.speedup == pytest.approx((2.0 * 4.0**3) ** (1 / 4))
    assert [(s.workload, s.speedup, s.config) for s in entry.served] == [
        ("small", 2.0, config(32)),
        ("wide", 4.0, config(32)),
    ]
    assert entry.best[0] == config(32)
    assert dict(entry.rows)[config(64)] == pytest.approx(0.0)
    assert decode_json(encode_json(entry), LibraryEntry) == entry


def test_nothing_is_stored_of_a_run_that_found_nothing_or_has_not_ended() -> None:
    searched = outcome(0, config(32), {"small": 0.5, "wide": 0.25})
    assert entries(state_of(searched)) == []
    assert entries(state_of(outcome(0, config(32), {"small": 2.0, "wide": 2.0}), Stopped("done"))) == []


def test_the_same_run_gives_the_same_name_and_other_sizes_another() -> None:
    assert entries()[0].name == entries()[0].name
    other = replace(OWN, workloads=tuple(replace(w, sizes=(("rows", 1), ("d", 8))) for w in OWN.workloads))
    assert entries(problem=other)[0].name != entries()[0].name


@pytest.mark.parametrize(
    "kernel",
    [
        KERNEL.replace("\n", "  \r\n") + "\n\n",
        KERNEL.replace("int d", "int  d"),
        f"// who wrote it\n/* and\n   when */\n{KERNEL}".replace("int d", "int d /* a row */"),
    ],
)
def test_comments_blanks_and_line_ends_make_no_other_kernel(kernel: str) -> None:
    assert kernel_digest(a_problem_with(kernel)) == kernel_digest(OWN)


def test_everything_else_does() -> None:
    texts = (KERNEL.replace("int d", "long d"), f"#define TWO 2\n{KERNEL}")
    changes = ({"defines": (("FAST", "1"),)}, {"headers": (("a.h", "int a;"),)})
    others = [a_problem_with(text) for text in texts]
    others += [replace(OWN, kernel=replace(OWN.kernel, **change)) for change in changes]
    # The kernels of this language are comments.
    texts = (f'// op = "{name}"' for name in ("copy", "scale"))
    others += [replace(OWN, kernel=replace(OWN.kernel, language="fake", text=text)) for text in texts]
    assert len({kernel_digest(one) for one in (OWN, *others)}) == 1 + len(others)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('type = "float32*"\nrole = "output"', 'type = "float16*"\nrole = "output"'),
        ('role = "input"\nshape = ["rows", "d"]', 'role = "input"\nshape = ["d", "rows"]'),
        ('value = "rows"', 'value = "rows + 0"\n[[argument]]\nname = "more"\ntype = "int32"\nvalue = "d"'),
    ],
)
def test_another_type_shape_or_argument_is_another_signature(old: str, new: str) -> None:
    changed = a_problem_with(old=old, new=new)
    assert kernel_digest(changed) == kernel_digest(OWN)
    assert not is_for_problem(an_entry(), changed)


def test_a_wider_contract_and_other_workloads_are_the_same_kernel() -> None:
    assert is_for_problem(an_entry(), a_problem_with(old="max = 4096 }", new="max = 8192 }"))
    assert signature_of(OWN).startswith("opencl scale(out: output float32[rows, d], x: input")


def test_the_same_device_comes_first_then_known_sizes_then_the_gain() -> None:
    plain = an_entry(name="a", speedup=2.0)
    faster = replace(plain, name="b", speedup=3.0)
    far = tuple(replace(s, sizes=(("rows", 9), ("d", 8))) for s in plain.served)
    elsewhere_sized = replace(plain, name="c", speedup=9.0, served=far)
    there = replace(plain, name="d", device="another", speedup=20.0)
    order = rank_entries([there, elsewhere_sized, plain, faster], OWN, plain.device)
    assert [e.name for e in order] == ["b", "a", "c", "d"]


def test_a_run_that_only_searched_again_takes_over_who_wrote_the_template() -> None:
    made = an_entry(name="first", moves=("lanes", "vector"), author="a model")
    again = with_past(an_entry(name="again"), [an_entry(name="x"), made])
    assert (again.name, again.moves, again.author) == ("again", ("lanes", "vector"), "a model")
    assert with_past(an_entry(moves=("own",)), [made]).moves == ("own",)
    assert with_past(an_entry(template="other"), [made]).moves == ()


def test_what_a_model_wrote_is_a_models_for_ever() -> None:
    made = an_entry(moves=("lanes",), author="a model")
    templates = Templates(OWN, DEVICE, a_template(OWN), NoTexts(), authors={"": "a model"})
    (again,) = entries_of(OWN, won(), templates, {}, "2026-11-15T10:00:00+00:00", "runs/scale-2")
    later = (
        with_past(an_entry(moves=("own",)), [made]),
        merge_entries(an_entry(speedup=99.0), made),
        merge_entries(made, an_entry()),
        LibraryTemplate.of(made),
        again,
    )
    assert {one.author for one in later} == {"a model"}
    assert templates.given.is_foreign
    assert templates.on(DEVICE).given == templates.given


def test_a_short_search_does_not_cost_what_a_long_one_has_found() -> None:
    long = an_entry(rows=((config(32), 1.2), (config(64), 0.0)), best=(config(32), config(64)), date="1")
    short = an_entry(rows=((config(64), 0.1),), best=(config(64),), speedup=1.1, date="2")
    found = merge_entries(short, long)
    assert (found.speedup, found.date, found.best) == (long.speedup, "1", (config(32), config(64)))
    assert dict(found.rows) == {config(32): 1.2, config(64): 0.1}, "the newer score"
    assert merge_entries(replace(short, speedup=9.0), long).best == (config(64), config(32))
    newer = merge_entries(replace(short, driver="another"), long)
    assert (newer.speedup, newer.date, len(newer.rows)) == (1.1, "2", 2)
    assert merge_entries(long, long) == long, "delivering twice changes nothing"


def test_a_stored_template_can_do_without_values_that_are_wrong_here() -> None:
    stored = LibraryTemplate.of(an_entry())
    assert stored.without(()) == TEMPLATE
    template = parse_template(stored.without([("VEC", 4)]), path="template.cl", problem=OWN)
    rules = [c for c in template.space.constraints if "VEC == 4" in c.expr.text]
    assert len(rules) == 1
    assert started().settings.library is False  # journals from before say nothing


def test_timings_are_those_of_the_journal_with_the_last_word_on_each() -> None:
    templates = Templates(OWN, DEVICE, a_template(OWN), NoTexts())
    timings, texts = timings_of(OWN, won(), templates)
    assert texts == {digest_of(TEMPLATE): TEMPLATE}
    assert [t.config for t in timings] == [config(32), config(64)]
    assert {t.template for t in timings} == set(texts)
    assert timings[1].score == pytest.approx(0.0)
    assert {(one.workload, one.status) for one in timings[0].at} == {("small", "ok"), ("wide", "ok")}
    assert all(one.seconds and one.original for one in timings[0].at)
    record = a_record()
    assert decode_json(encode_json(record), RunRecord) == record
    assert (record.id, record.finished) == (run_id(won()), True)
    assert record.about == "scale-1 of me@a-host"


def test_the_same_code_on_the_same_device_says_what_to_try_first_and_other_code_does_not() -> None:
    templates = Templates(OWN, DEVICE, a_template(OWN), NoTexts())
    timings, _ = timings_of(OWN, won(), templates)
    record, template = a_record(), a_template(OWN)
    same = primed_from(record, timings, OWN, template, DEVICE.name)
    assert same.first[0] == config(32)
    assert dict(same.rows)[config(64)] == pytest.approx(0.0)
    assert same.name == f"scale-1 of me@a-host, in the library, on {DEVICE.name}"
    for other in (replace(record, device="another"), replace(record, kernel="another")):
        found = primed_from(other, timings, OWN, template, DEVICE.name)
        assert found.first == ()
        assert found.rows == same.rows
    strange = [replace(t, config=Config((("OTHER", 1),))) for t in timings]
    assert primed_from(record, strange, OWN, template, DEVICE.name) is None
    failed = [replace(t, score=None) for t in timings]
    assert primed_from(record, failed, OWN, None, DEVICE.name) is None
