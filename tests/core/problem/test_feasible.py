"""What of a template is searched on a device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.samples import DEVICE, TEMPLATE, a_device, a_problem, a_template
from tunesmith.base.errors import BadInput
from tunesmith.problem.template import configs_of
from tunesmith.space import configset

PROBLEM = a_problem()


def test_what_no_build_could_make_fit_is_not_searched() -> None:
    template = a_template(PROBLEM)
    every = configs_of(PROBLEM, template, DEVICE)
    small = configs_of(PROBLEM, template, a_device(max_threads=64))
    assert {config["BLOCK"] for config in every} == {32, 64, 128, 256}
    assert {config["BLOCK"] for config in small} == {32, 64}
    assert all(config in every for config in small)


def test_a_device_on_which_nothing_fits() -> None:
    with pytest.raises(
        BadInput, match=r"fits a device, which demands: threads per block, 1 <= BLOCK <= 16$"
    ) as caught:
        configs_of(PROBLEM, a_template(PROBLEM), a_device(max_threads=16))
    assert "smaller values, or name another device" in (caught.value.hint or "")


def test_limits_that_leave_nothing_only_together() -> None:
    text = TEMPLATE.replace('block = ["BLOCK"]', 'block = ["BLOCK"]\n// shared = "4096 // BLOCK"')
    with pytest.raises(BadInput, match=r"1 <= BLOCK <= 64; shared memory per block, 0 <= .* <= 32$"):
        configs_of(PROBLEM, a_template(PROBLEM, text), a_device(max_threads=64, shared=32))


def test_constraints_that_leave_nothing_anywhere() -> None:
    text = TEMPLATE.replace("// [require]", '// [require]\n// never = "device.sms > 9999"')
    with pytest.raises(BadInput, match="the template's constraints leave no configuration") as caught:
        configs_of(PROBLEM, a_template(PROBLEM, text), a_device(max_threads=16))
    assert caught.value.hint == "widen a parameter or loosen a constraint"


def test_limits_that_tie_too_much_together_are_left_to_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    tied = a_template(PROBLEM, TEMPLATE.replace('block = ["BLOCK"]', 'block = ["BLOCK", "VEC"]'))
    small = a_device(max_threads=128)
    apart = len(configs_of(PROBLEM, tied, DEVICE))
    assert len(configs_of(PROBLEM, tied, small)) < apart
    monkeypatch.setattr(configset, "MAX_ROWS", 5)
    assert len(configs_of(PROBLEM, tied, small)) == apart


def test_a_space_that_cannot_be_listed_is_still_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    template = a_template(PROBLEM)
    own = replace(template, space=replace(template.space))
    monkeypatch.setattr(configset, "MAX_ROWS", 1)
    with pytest.raises(BadInput, match="legal combinations"):
        configs_of(PROBLEM, own, DEVICE)
