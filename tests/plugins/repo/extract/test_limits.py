"""How far a contract goes, and who says so."""

from __future__ import annotations

from tunesmith.expert.drafts.bare import KnownFacts, KnownWorkload
from tunesmith.plugins.repo.extract.host import with_limits

SEEN = (
    KnownWorkload("one", (("rows", 100), ("hidden", 4096))),
    KnownWorkload("other", (("rows", 3000), ("hidden", 1024))),
)


def test_the_largest_that_was_seen_and_no_guess() -> None:
    found = with_limits(KnownFacts(workloads=SEEN), "seen")
    assert found.limits == {"rows": (1, 3000), "hidden": (1, 4096)}
    assert found.limits_from == dict.fromkeys(("rows", "hidden"), "the largest that was seen")


def test_what_the_host_checks_goes_first() -> None:
    requires = ("hidden <= 8192", "rows < 65536", "rows > 3", "heads <= 64", "hidden % heads == 0")
    known = KnownFacts(workloads=SEEN, requires=requires, multiples={"hidden": 8, "rows": 5})
    found = with_limits(known, "given")
    assert found.limits == {"rows": (5, 65535), "hidden": (8, 8192), "heads": (1, 64)}
    assert set(found.limits_from.values()) == {"as the host checks"}
    assert found.requires == ("hidden % heads == 0",)


def test_a_check_that_what_was_seen_contradicts_is_of_another_instance() -> None:
    found = with_limits(KnownFacts(workloads=SEEN, requires=("hidden <= 1024",)), "seen")
    assert found.limits["hidden"] == (1, 4096)
    assert found.limits_from["hidden"] == "the largest that was seen"


def test_a_least_size_alone_stays_a_condition() -> None:
    found = with_limits(KnownFacts(requires=("n >= 4",)), "given")
    assert (found.limits, found.requires) == ({}, ("n >= 4",))
