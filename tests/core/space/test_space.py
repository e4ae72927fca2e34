"""Spaces: domains, constraints, and the numbered set of what they leave."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.base.errors import BadInput
from tunesmith.space import configset
from tunesmith.space.configset import Config, Param
from tunesmith.space.expr import LIMIT, parse_expr
from tunesmith.space.space import Constraint, Space

SILU = Space(
    params=(Param("BLOCK", (64, 128, 256)), Param("VEC", (1, 2, 4, 8)), Param("MODE", (0, 1, 2), True)),
    constraints=(
        Constraint("whole_vectors", parse_expr("d % VEC == 0")),
        Constraint("no_idle_block", parse_expr("BLOCK * VEC < 2 * d"), "prefer"),
        Constraint("fits", parse_expr("BLOCK <= device.threads")),
        Constraint("no_spills", parse_expr("resources.spills == 0")),
    ),
)
DEVICE = {"device.threads": 128}


def test_config() -> None:
    config = Config.of({"BLOCK": 64, "VEC": 4})
    assert str(config) == "BLOCK=64 VEC=4"
    assert config["VEC"] == 4
    assert config.as_dict() == {"BLOCK": 64, "VEC": 4}
    assert config.replace("VEC", 8) == Config((("BLOCK", 64), ("VEC", 8)))
    assert len({config, Config.of({"BLOCK": 64, "VEC": 4})}) == 1
    with pytest.raises(KeyError):
        config["UNROLL"]
    with pytest.raises(KeyError):
        config.replace("UNROLL", 1)


@pytest.mark.parametrize(
    ("name", "values", "part"),
    [
        ("B-1", (1,), "named by letters"),
        ("min", (1,), "named by letters"),
        ("device", (1,), "named by letters"),
        ("B", (), "no values"),
        ("B", (1, 2, 1), "lists 1 more than once"),
        ("B", (True,), "integers"),
        ("B", (1.5,), "integers"),
        ("B", (LIMIT + 1,), "integers"),
    ],
)
def test_param_refused(name: str, values: tuple[int, ...], part: str) -> None:
    with pytest.raises(BadInput) as caught:
        Param(name, values)
    assert part in caught.value.message
    assert caught.value.hint


def test_param_neighbours_follow_the_declared_order() -> None:
    ordered = Param("B", (1, 8, 4))
    assert [ordered.neighbours(value) for value in (1, 8, 4)] == [(8,), (1, 4), (8,)]
    assert Param("B", (1, 8, 4), categorical=True).neighbours(8) == (1, 4)
    assert Param("B", (1,)).neighbours(1) == ()


def test_names_are_declared_once() -> None:
    with pytest.raises(BadInput, match="parameter A is declared twice"):
        Space((Param("A", (1,)), Param("A", (2,))))
    rule = Constraint("r", parse_expr("1"))
    with pytest.raises(BadInput, match="require r is declared twice"):
        Space((), (rule, rule))
    Space((), (rule, Constraint("r", parse_expr("1"), "prefer")))


def broken(config: Mapping[str, int], sizes: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(c.kind, c.name) for c in SILU.broken(Config.of(config), sizes, DEVICE)]


def test_what_a_configuration_breaks_is_named() -> None:
    kinds = {"whole_vectors": "require", "no_idle_block": "prefer", "fits": "require"}
    found = broken({"BLOCK": 256, "VEC": 4, "MODE": 0}, {"d": 10})
    assert found == [(kind, name) for name, kind in kinds.items()]


def test_what_only_a_build_tells_is_not_judged() -> None:
    assert broken({"BLOCK": 64, "VEC": 1, "MODE": 0}, {"d": 64}) == []


def test_a_constraint_without_a_value_is_broken() -> None:
    space = Space((Param("V", (0, 1)),), (Constraint("whole", parse_expr("d % V == 0")),))
    assert space.broken(Config.of({"V": 0}), {"d": 4}) == space.constraints


def test_missing_names_are_an_error() -> None:
    config = Config.of({"BLOCK": 64, "VEC": 1, "MODE": 0})
    for attempt in (
        lambda: SILU.broken(config, {"D": 4}, DEVICE),
        lambda: SILU.configs([{"D": 4}], DEVICE),
    ):
        with pytest.raises(BadInput, match=r'require whole_vectors, "d % VEC == 0", uses d, which') as caught:
            attempt()
        assert caught.value.hint == "did you mean 'D'?"
    with pytest.raises(
        BadInput, match=r"uses device\.threads, which has no value here: known are BLOCK, MODE"
    ):
        SILU.configs([{"d": 4}])
    with pytest.raises(BadInput, match="VEC is both a parameter and a size"):
        SILU.configs([{"d": 4, "VEC": 4}], DEVICE)
    with pytest.raises(BadInput, match="at least one workload"):
        SILU.configs([], DEVICE)


def test_configs() -> None:
    assert SILU.combinations == 36
    configs = SILU.configs([{"d": 100}], DEVICE)
    assert len(configs) == 9  # BLOCK 64 with VEC 1 or 2, BLOCK 128 with VEC 1; three modes each
    assert len(SILU.configs([{"d": 1}], DEVICE)) == 0
    assert list(SILU.configs([{"d": 1}], DEVICE)) == []
    assert SILU.configs([{"d": 100}, {"d": 1}], DEVICE).feasible(0) == (True, False)


def test_indexing() -> None:
    configs = SILU.configs([{"d": 100}], DEVICE)
    assert configs[-1] == configs[8] == list(configs)[8]
    for index in (9, -10):
        with pytest.raises(IndexError):
            configs[index]
        with pytest.raises(IndexError):
            configs.feasible(index)
    with pytest.raises(IndexError):
        configs.values_matrix([0, 9])
    assert configs.index(Config.of({"MODE": 0, "VEC": 1, "BLOCK": 64})) == 0
    assert configs.index(Config.of({"BLOCK": 64, "VEC": 1})) is None
    assert configs.index(Config.of({"BLOCK": 64, "VEC": 3, "MODE": 0})) is None
    assert Config.of({"BLOCK": 256, "VEC": 1, "MODE": 0}) not in configs
    assert "BLOCK=64" not in configs


def test_space_without_parameters() -> None:
    assert list(Space(()).configs()) == [Config(())]
    odd = Space((), (Constraint("odd", parse_expr("d % 2 == 1")),))
    assert len(odd.configs([{"d": 2}])) == 0
    assert odd.configs([{"d": 2}, {"d": 3}]).feasible(0) == (False, True)


def test_huge_products_stay_implicit() -> None:
    names = [f"P{i}" for i in range(17)]
    space = Space(
        tuple(Param(name, tuple(range(10))) for name in names), (Constraint("r", parse_expr("P0 < P9")),)
    )
    configs = space.configs()
    assert len(configs) == 45 * 10**15
    for index in (0, 1, 123_456_789_012_345, len(configs) - 1):
        assert configs.index(configs[index]) == index
    with pytest.raises(BadInput, match=r"2\*\*62"):
        Space(tuple(Param(f"P{i}", tuple(range(10))) for i in range(19))).configs()


def test_table_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configset, "MAX_ROWS", 99)
    params = tuple(Param(name, tuple(range(10))) for name in "ABC")
    assert len(Space(params).configs()) == 1000
    with pytest.raises(
        BadInput, match=r"A, B depend on one another .* more than 99 legal combinations"
    ) as caught:
        Space(params, (Constraint("r", parse_expr("A + B >= 0")),)).configs()
    assert caught.value.hint


def test_more_parameters_in_a_constraint_than_an_array_has_axes() -> None:
    names = [f"P{i}" for i in range(80)]
    params = (*(Param(name, (1,)) for name in names), Param("Q", (79, 80, 81)))
    total = f"max(0, {', '.join(names)}) * 80 >= Q"
    assert len(Space(params, (Constraint("r", parse_expr(total)),)).configs()) == 2


def test_workloads_meet_across_independent_parameters() -> None:
    """A suits only the first workload and B only the second: neither alone rules the pair out."""
    space = Space(
        (Param("A", (2, 3)), Param("B", (2, 3))),
        (Constraint("a", parse_expr("d % A == 0")), Constraint("b", parse_expr("d % B == 0"))),
    )
    configs = space.configs([{"d": 2}, {"d": 3}])
    feasible = {str(config): configs.feasible(i) for i, config in enumerate(configs)}
    assert feasible == {"A=2 B=2": (True, False), "A=3 B=3": (False, True)}
    assert configs.index(Config.of({"A": 2, "B": 3})) is None


def test_more_workloads_than_bits() -> None:
    space = Space(
        (Param("A", tuple(range(1, 9))), Param("B", (0, 1))), (Constraint("a", parse_expr("d % A == B")),)
    )
    configs = space.configs([{"d": d} for d in range(200)])
    for index, config in enumerate(configs):
        assert configs.feasible(index) == tuple(d % config["A"] == config["B"] for d in range(200))


ATOMS = (
    "{p} % {q} == 0", "{p} * {q} <= n", "n % {p} == 0", "{p} + {q} + {r} < 2 * n", "{p} in (0, 1, 4)",
    "n // {p} > 1", "{p} == 0 or m % {p} == 0", "{p} < {q} < {r}", "n > 3", "({q} if n > 4 else {p}) > 1",
    "is_pow2({p}) or m > 2", "{p} <= device.x", "next_pow2({p} - {q}) < m", "resources.registers < {p}",
)  # fmt: skip


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    names = "PQRSTU"[: draw(st.integers(1, 6))]
    domain = st.lists(st.integers(-1, 9), min_size=1, max_size=4, unique=True).map(tuple)
    params = tuple(Param(name, draw(domain)) for name in names)
    constraints: list[Constraint] = []
    for place in range(draw(st.integers(0, 5))):
        p, q, r = (draw(st.sampled_from(names)) for _ in range(3))
        text = draw(st.sampled_from(ATOMS)).format(p=p, q=q, r=r)
        constraints.append(
            Constraint(f"c{place}", parse_expr(text), draw(st.sampled_from(["require", "prefer"])))
        )
    return Space(params, tuple(constraints))


def brute_force(
    space: Space, workloads: Sequence[Mapping[str, int]], device: Mapping[str, int]
) -> dict[Config, tuple[bool, ...]]:
    rules = [c.expr for c in space.constraints if "resources" not in c.expr.text]
    legal: dict[Config, tuple[bool, ...]] = {}
    for values in itertools.product(*(param.values for param in space.params)):
        config = Config(tuple(zip((param.name for param in space.params), values, strict=True)))
        known = [{**config.as_dict(), **sizes, **device} for sizes in workloads]
        feasible = tuple(all(rule.holds(names) for rule in rules) for names in known)
        if any(feasible):
            legal[config] = feasible
    return legal


WORKLOADS = st.lists(
    st.fixed_dictionaries({"n": st.integers(0, 9), "m": st.integers(0, 6)}), min_size=1, max_size=3
)


@examples(300)
@given(spaces(), WORKLOADS, st.integers(0, 9), st.sampled_from([1, 7, 1 << 21]))
def test_configs_equal_brute_force(
    space: Space, workloads: list[dict[str, int]], limit: int, block: int
) -> None:
    device = {"device.x": limit}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configset, "_BLOCK", block)
        configs = space.configs(workloads, device)
    expected = brute_force(space, workloads, device)
    listed = list(configs)
    assert len(configs) == len(listed) == len(expected)
    assert set(listed) == expected.keys()
    for index, config in enumerate(listed):
        assert configs[index] == config
        assert configs.index(config) == index
        assert configs.feasible(index) == expected[config]
    for values in itertools.product(*(param.values for param in space.params)):
        config = Config.of(dict(zip((param.name for param in space.params), values, strict=True)))
        assert (config in configs) == (config in expected)
        legal_first = not space.broken(config, workloads[0], device)
        assert legal_first == expected.get(config, (False,))[0]


@examples(50)
@given(spaces(), WORKLOADS, st.data())
def test_matrices_agree_with_single_access(
    space: Space, workloads: list[dict[str, int]], data: st.DataObject
) -> None:
    configs = space.configs(workloads, {"device.x": 4})
    everything = configs.values_matrix()
    assert everything.shape == (len(configs), len(space.params))
    if len(configs):
        some = data.draw(st.lists(st.integers(0, len(configs) - 1), max_size=8))
        assert np.array_equal(configs.values_matrix(some), everything[some])
        for index, row, places in zip(some, everything[some].tolist(), configs.positions(some), strict=True):
            assert [value for _, value in configs[index].items] == row
            assert [p.values[place] for p, place in zip(space.params, places, strict=True)] == row
