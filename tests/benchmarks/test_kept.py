"""Comparisons made small: the same events, a whole chain, and nothing of the machine."""

from __future__ import annotations

import json

from benchmarks.kept import small_journal
from tunesmith.run.journal import FIRST, chain_fault

LONG = 2.5745575283058534e-6


def journal(*events: dict[str, object]) -> bytes:
    lines = [
        json.dumps({"number": n, "before": FIRST, "event": e}, separators=(",", ":"))
        for n, e in enumerate(events)
    ]
    return "".join(line + "\n" for line in lines).encode()


def test_times_are_cut_and_the_chain_holds() -> None:
    kept = small_journal(journal({"samples": [LONG, 0.000020563521475162147], "seed": 1}, {"code": "a" * 64}))
    lines = kept.split(b"\n")[:-1]
    read = [json.loads(line) for line in lines]
    assert read[0]["event"] == {"samples": [2.5746e-6, 2.0564e-5], "seed": 1}
    assert read[1]["event"] == {"code": "a" * 64}
    assert chain_fault(lines, [line["before"] for line in read]) is None


def test_the_operating_system_is_taken_out() -> None:
    versions = [["python", "3.12.3"], ["system", "Linux-1.2-x86_64"], ["numpy", "2.5.2"]]
    [line] = small_journal(journal({"versions": versions})).split(b"\n")[:-1]
    assert json.loads(line)["event"]["versions"] == [["python", "3.12.3"], ["numpy", "2.5.2"]]
