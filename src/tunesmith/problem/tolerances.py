"""By what tolerance results were found right, in words for reports and certificates."""

from __future__ import annotations

from tunesmith.problem.problem import Argument, Problem

LOOSE = 0.1  # a relative tolerance that says little, but for types of one byte
ANYTHING = 1.0  # one that zeros meet
EMPTY = "accepts anything"


def verdict_words(problem: Problem, has_reference: bool) -> str:
    """What it means that results were found right: by what, and by which rules."""
    said = (_tolerances(problem, has_reference), problem.own_rules)
    rules = "; ".join(words for words in said if words)
    if has_reference:
        return f"{'right' if EMPTY in rules else 'right by the float64 reference'}: {rules}"
    seen = " and what was recorded of a program" if problem.recorded else ""
    return f"matches the original{seen} (there is no reference): {rules}"


def _tolerances(problem: Problem, compares_errors: bool) -> str:
    """`rtol`, `atol` and `compare`, by outputs where they differ, and whose errors are the bound besides."""
    outputs = [a for a in problem.arguments if a.is_written and not a.alias]
    by_rule: dict[str, list[str]] = {}
    for one in outputs:
        if one.checker is None:  # else `own_rules` names it
            by_rule.setdefault(_rule(problem, one, compares_errors), []).append(one.name)
    named = len(by_rule) > 1 or len(outputs) > sum(map(len, by_rule.values()))
    return ", ".join(f"{' and '.join(names)} {rule}" if named else rule for rule, names in by_rule.items())


def _rule(problem: Problem, output: Argument, compares_errors: bool) -> str:
    accuracy = problem.accuracy
    rtol = accuracy.rtol if output.rtol is None else output.rtol
    atol = accuracy.atol if output.atol is None else output.atol
    words = f"rtol {rtol:g} and atol {atol:g}"
    if output.compare == "exact" or (output.compare is None and output.element.kind != "float"):
        return "exact"
    if output.compare == "codes":
        return f"codes, next to a tie within {words}" if atol < ANYTHING / 2 else f"codes within {words}"
    if rtol >= ANYTHING:
        words += f", which {EMPTY}"
    elif atol >= ANYTHING:
        words += f", which accepts anything up to {atol:g}"
    elif rtol >= LOOSE and output.element.bytes > 1:
        words += ", which is loose"
    return f"close within {words}" + (", and twice the original's error" if compares_errors else "")
