"""Given templates, one or several, and a run that begins from a template of the library."""

from __future__ import annotations

from dataclasses import replace

from tests.samples import DEVICE, TEMPLATE, a_problem, config, outcome, state_of
from tunesmith.expert.planning import LibraryAuthor, LibraryFirst
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run.events import Admitted, Decided, Declined, Searched, Settings
from tunesmith.run.library import LibraryTemplate
from tunesmith.run.ports import Refactoring, Written
from tunesmith.run.state import UNKNOWN_AUTHOR, State
from tunesmith.session.roles import GivenTemplate

KEPT = LibraryTemplate("scale-1", TEMPLATE, "template.cl", ("lanes",), "2.00× on a device, 2026-11-15")
OTHERS = Decided("finish", "it is their turn")


class Others:
    def decide(self, state: State) -> Decided:
        return OTHERS

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Declined:
        return Declined(f"asked for {task.moves}")


class TestGiven:
    def test_one_gets_everything_and_then_it_is_over(self) -> None:
        state = state_of(settings=Settings(evals=30))
        first = GivenTemplate().decide(state)
        assert (first.decision, first.candidate, first.evals) == ("search", "", None)
        assert GivenTemplate().decide(state_of(first, Searched("", "done"))).decision == "finish"

    def test_of_several_each_gets_its_part(self) -> None:
        beside = Admitted("u", 12, 12, "2")
        first = GivenTemplate().decide(state_of(beside, settings=Settings(evals=30, seconds=100.0)))
        assert (first.candidate, first.evals) == ("", 15)
        assert first.seconds is not None
        assert 40 < first.seconds <= 50
        spent = [outcome(i, config(32, i), {"small": 1.0, "wide": 1.0}) for i in range(10)]
        after = state_of(beside, first, *spent, Searched("", "its share"), settings=Settings(evals=30))
        second = GivenTemplate().decide(after)
        assert (second.candidate, second.evals) == ("2", None)  # all that is left


class TestKept:
    def test_is_the_first_round_and_the_planner_goes_on(self) -> None:
        planner = LibraryFirst(KEPT, Others())
        first = planner.decide(state_of())
        assert isinstance(first, Decided)
        assert (first.decision, first.by_moves) == ("refactor", True)
        assert "scale-1, 2.00× on a device" in first.reason
        assert planner.decide(state_of(first)) == OTHERS

    def test_its_text_is_handed_out_for_that_round_alone(self) -> None:
        author, problem = LibraryAuthor(KEPT, Others()), a_problem()
        own = LibraryFirst(KEPT, Others()).decide(state_of())
        assert isinstance(own, Decided)
        made = author.write(Refactoring(own.moves), problem, DEVICE)
        assert isinstance(made, Written)
        assert (made.text, made.moves) == (TEMPLATE, ("lanes",))
        assert author.write(Refactoring(("lanes",)), problem, DEVICE) == Declined("asked for ('lanes',)")

    def test_who_wrote_it_is_not_forgotten(self) -> None:
        for author in ("a model", "", UNKNOWN_AUTHOR):
            own = replace(KEPT, author=author)
            made = LibraryAuthor(own, Others()).write(Refactoring((KEPT.mark,)), a_problem(), DEVICE)
            assert isinstance(made, Written)
            assert made.author == author
        assert KEPT.author == UNKNOWN_AUTHOR, "where nobody says"

    def test_values_that_are_wrong_here_are_forbidden_in_it(self) -> None:
        task = Refactoring((KEPT.mark,), (("VEC", 4),), "VEC=4 is wrong")
        made = LibraryAuthor(replace(KEPT, moves=()), Others()).write(task, a_problem(), DEVICE)
        assert isinstance(made, Written)
        assert 'not_right_1 = "not (VEC == 4)"' in made.text
