from __future__ import annotations

import numpy as np

from tunesmith.core.space import Param, Space
from tunesmith.search.encoding import Encoding


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
