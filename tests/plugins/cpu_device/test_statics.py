"""Shared arrays of fixed sizes: room between them, and their names."""

from __future__ import annotations

import pytest

from tunesmith.plugins.cpu_device.build import SharedArray, pad_thread_locals

ASSEMBLY = """\t.section\t.tbss,"awT",@nobits
_ZZ1kPfE1s:
\t.zero\t256
\t.bss
counts:
\t.zero\t4
\t.section\t.tbss._ZZ1gE1t,"awGT",@nobits,_ZZ1gE1t,comdat
_ZZ1gE1t:
\t.zero\t8
"""


def test_only_what_is_thread_local_has_room_behind_it() -> None:
    made = pad_thread_locals(ASSEMBLY).splitlines()
    assert [made[at + 1] for at, line in enumerate(made) if line in ("\t.zero\t256", "\t.zero\t8")] == [
        "\t.zero\t64"
    ] * 2
    assert made.count("\t.zero\t64") == 2
    assert [line for line in made if line != "\t.zero\t64"] == ASSEMBLY.splitlines()


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("_ZZ1kPfPKfiE1s", "the shared array s"),
        ("_ZZ3sumILi32EEffE4part", "the shared array part"),
        ("_ZL4tile", "the shared array tile"),
        ("odd", "a shared array"),
    ],
)
def test_arrays_have_their_own_names(name: str, title: str) -> None:
    assert SharedArray(0, 4, name).title == title
