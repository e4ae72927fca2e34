"""The roofline of a run: each workload before and after, below what the device allows."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tunesmith.deliver.rooflines import floors_svg, run_roofline_svg
from tunesmith.profiles.facts import RoofFacts
from tunesmith.run.report import BoundReport

SVG = "{http://www.w3.org/2000/svg}"
MOVED = RoofFacts(1 << 30, 0.0, (("memory bandwidth", 1e-3), ("launch", 2e-6)))
ROW = BoundReport(
    "decode", "memory", 4.0, "memory bandwidth", "it waits", tuned_bound="memory", tuned_distance=1.25
)
BYTES = (
    replace(ROW, roof=MOVED),
    replace(ROW, workload="small", roof=RoofFacts(1 << 20, 0.0, (("launch", 2e-6),)), tuned_distance=None),
)
OPERATIONS = (
    replace(ROW, roof=RoofFacts(1 << 30, 4e9, (("memory bandwidth", 1e-3), ("fp32 rate", 1e-4)))),
    replace(
        ROW,
        workload="dense",
        roof=RoofFacts(1 << 30, 1e12, (("fp32 rate", 2.5e-2), ("memory bandwidth", 1e-3))),
    ),
)


def drawn(bounds: tuple[BoundReport, ...]) -> ElementTree.Element:
    data = run_roofline_svg(bounds, "rms<norm>")
    assert data is not None
    return ElementTree.fromstring(data)


def words(root: ElementTree.Element) -> str:
    return " ".join(e.text or "" for e in root.iter() if e.tag in (f"{SVG}text", f"{SVG}title"))


def tips(root: ElementTree.Element) -> list[str]:
    return [e.text or "" for c in root.iter(f"{SVG}circle") for e in c.iter(f"{SVG}title")]


def test_by_bytes_where_no_operations_are_stated() -> None:
    root = drawn(BYTES)
    assert "MiB that must move" in words(root)
    assert tips(root)[:2] == ["decode, original: 268.4", "decode, tuned: 859"]  # 1 GiB in 4 and 1.25 ms
    assert len(tips(root)) == 3, "the original alone where nothing else was looked at"
    assert "memory bandwidth" in words(root)
    assert "launch" in words(root)


def test_by_intensity_where_operations_are_stated() -> None:
    root = drawn(OPERATIONS)
    assert "operations for each byte that must move" in words(root)
    assert tips(root)[0] == "decode, original: 1000"  # 4e9 in 4 ms
    (slope,) = root.iter(f"{SVG}polyline")
    points = [tuple(map(float, pair.split(","))) for pair in slope.attrib["points"].split()]
    assert len(points) == 3, "up to the ridge, and flat from there on"
    assert points[1][1] == pytest.approx(points[2][1])
    assert points[0][1] > points[1][1], "it rises: the top is at 0"


def test_no_dot_lies_above_its_bar() -> None:
    for bounds in (BYTES, OPERATIONS):
        root = drawn(bounds)
        bars = [float(e.attrib["y1"]) for e in root.iter(f"{SVG}line") if e.get("stroke-width") == "2.4"]
        dots = [float(e.attrib["cy"]) for e in root.iter(f"{SVG}circle") if list(e)]
        assert len(bars) == len(bounds)
        assert min(dots) >= min(bars)


def test_without_bytes_or_ceilings_there_is_no_roofline_and_still_the_distance() -> None:
    for roof in (None, RoofFacts(0, 0.0, MOVED.floors), RoofFacts(1 << 20)):
        rows = (replace(ROW, roof=roof),)
        assert run_roofline_svg(rows, "n") is None
        assert b"4.00" in floors_svg(rows)
    assert run_roofline_svg((replace(ROW, roof=MOVED, distance=None),), "n") is None
