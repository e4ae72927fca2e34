from __future__ import annotations

import numpy as np
import pytest

from tunesmith.space.configset import Param
from tunesmith.space.features import Encoding
from tunesmith.space.space import Space


def features(param: Param) -> np.ndarray:
    places = np.arange(len(param.values), dtype=np.uint8)[:, None]
    return Encoding.of(Space((param,))).features(places)


def test_sizes_are_placed_by_their_ratio() -> None:
    assert np.allclose(features(Param("A", (1, 2, 4, 16)))[:, 0], [0, 0.25, 0.5, 1])


def test_alignment_is_a_feature_where_values_are_not_powers_of_two() -> None:
    found = features(Param("A", (32, 48, 64, 96, 128)))
    assert found.shape[1] == 2
    assert found[1, 1] < found[0, 1] == found[3, 1] < found[2, 1] < found[4, 1]
    assert features(Param("A", (8, 16, 32))).shape[1] == 1
    assert features(Param("A", (1, 3, 5))).shape[1] == 1  # all odd: nothing to tell apart


def test_values_of_a_categorical_parameter_are_equally_far_apart() -> None:
    found = features(Param("A", (7, 1, 30, 2), categorical=True))
    apart = np.linalg.norm(found[:, None] - found[None], axis=2)
    assert np.allclose(apart, 1 - np.eye(4))


def test_zero_and_negative_values_have_a_place() -> None:
    assert np.allclose(features(Param("A", (0, 1, 3)))[:, 0], [0, 0.5, 1])
    assert np.allclose(features(Param("A", (-1, 0, 1)))[:, 0], [0, 0.5, 1])


def test_a_parameter_of_one_value_has_no_feature() -> None:
    space = Space((Param("A", (4,)), Param("B", (0, 1)), Param("C", (2, 4, 6))))
    encoding = Encoding.of(space)
    assert encoding.params == (1, 2)
    assert encoding.features(np.zeros((3, 3), dtype=np.uint8)).shape == (3, 3)
    assert encoding.owners.tolist() == [0, 1, 1]
    assert encoding.minor.tolist() == [False, False, True]


def test_values_whose_logarithms_are_the_same_are_distinguished_by_position() -> None:
    huge = Param("A", (2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3))
    features = Encoding.of(Space((huge,))).features(np.arange(4, dtype=np.uint8)[:, None])
    assert np.allclose(features[:, 0], [0, 1 / 3, 2 / 3, 1])


def test_too_many_categories_for_a_column_each_are_nearly_equally_far_apart() -> None:
    many = Encoding.of(Space((Param("K", tuple(range(70_000)), categorical=True),)))
    assert many.tables[0].nbytes < 100e6
    some = many.features(np.arange(0, 70_000, 1000, dtype=np.uint32)[:, None])
    apart = np.sum((some[:, None] - some[None]) ** 2, axis=2)[~np.eye(len(some), dtype=bool)]
    assert apart.mean() == pytest.approx(1, abs=0.02)
    assert 0.5 < apart.min() < apart.max() < 1.5
