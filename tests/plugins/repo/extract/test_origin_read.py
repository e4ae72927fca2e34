"""The launch that promises were read from, in a problem file and back."""

from __future__ import annotations

import tomllib
from dataclasses import replace

from tests.plugins.repo.extract.test_same_names import OWN
from tunesmith.plugins.repo.extract.draft import origin_text
from tunesmith.plugins.repo.extract.host import host_launches
from tunesmith.plugins.repo.extract.slice import find_kernel
from tunesmith.plugins.repo.extract.tree import TextTree
from tunesmith.problem.problem import Origin


def test_it_is_written_behind_the_origin() -> None:
    tree = TextTree((("a.cu", OWN),))
    (launch,) = host_launches(tree, find_kernel(tree, "scale")).launches
    asked = ('name ==\n "a\\b"',)
    origin = Origin("a.cu", (2, 2), (launch.place,), (("a.cu", "0"),), read=launch.place, unread=asked)
    table = tomllib.loads(origin_text(origin))["origin"]
    assert table["read"] == {"launch": "a.cu:3", "unread": ['name == "a\\b"']}
    assert table["digests"] == {"a.cu": "0"}
    assert "include" not in table
    more = tomllib.loads(origin_text(replace(origin, include=("a/in", 'b"c'), alone=True)))["origin"]
    assert more["include"] == ["a/in", 'b"c']
    assert more["read"]["alone"] is True
    assert "read" not in tomllib.loads(origin_text(Origin("a.cu", (2, 2), (), ())))["origin"]
