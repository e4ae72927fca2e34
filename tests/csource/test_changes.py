"""What a body may change of the variables that it names."""

from __future__ import annotations

import pytest

from tests.csource.reading import source_of
from tunesmith.csource import nodes as c
from tunesmith.csource.changes import Changes

HELPERS = """
struct V {
    float e[2]; float *p;
    __device__ void set(float v) { e[0] = v; }
    __device__ float get() const { return e[0]; }
};
__device__ void into(float &to, const float &from) { to = from; }
__device__ float twice(float v) { v *= 2; return v; }
__device__ void fill(float *to) { to[0] = 1; }
__device__ void only_reads(const float *p, float &to) { to = p[0]; }
"""


def _read(body: str, parameters: str) -> tuple[Changes, c.Function]:
    source = source_of(f"{HELPERS}\n__device__ void own({parameters}) {{ {body} }}\n")
    (function,) = (each for each in source.functions if each.name == "own")
    return Changes(source), function


PARAMETERS = "float a, float b, float *p, V v, int i"


@pytest.mark.parametrize(
    ("body", "whole", "through"),
    [
        ("a = b;", {"a"}, set()),
        ("++a; b--;", {"a", "b"}, set()),
        ("a += p[i];", {"a"}, set()),
        ("p[i] = a;", set(), {"p"}),
        ("*p = a;", set(), {"p"}),
        ("p += 1;", {"p"}, set()),
        ("into(a, b);", {"a"}, set()),
        ("b = twice(a);", {"b"}, set()),
        ("v.set(a);", {"v"}, set()),
        ("b = v.get();", {"b"}, set()),
        ("v.e[0] = a;", set(), {"v"}),
        ("(i ? a : b) = 1;", {"a", "b"}, set()),
        ("float &r = a; r = 2;", {"a", "r"}, set()),
        ("float *q = &a; *q = 2;", {"a"}, {"q"}),
        ("far_away(a);", {"a"}, set()),
        ("b = fmaxf(a, 1.0f);", {"b"}, set()),
        ('asm("mov.u32 %0, %0;" : "+f"(a));', {"a"}, set()),
    ],
)
def test_what_is_changed(body: str, whole: set[str], through: set[str]):
    changes, function = _read(body, PARAMETERS)
    found = changes.of(function.body)

    assert whole <= found.whole
    assert through <= found.through
    untouched = {"a", "b", "p", "v", "i"} - whole - through
    assert not untouched & found.whole


@pytest.mark.parametrize(
    ("body", "stores"),
    [
        ("a = b;", False),
        ("float t[2]; t[0] = a;", False),
        ("p[0] = a;", True),
        ("fill(p);", True),
        ("b = twice(a);", False),
        ("far_away(a);", True),
        ("atomicAdd(p, a);", True),
        ("__syncthreads();", True),
        ("__shared__ float s[2]; s[0] = a;", True),
        ("b = fmaxf(a, p[0]);", False),
    ],
)
def test_whether_anything_but_its_own_may_change(body: str, stores: bool):
    changes, function = _read(body, PARAMETERS)

    assert changes.stores(function) is stores


def test_a_parameter_by_reference_is_not_its_own():
    changes, function = _read("a += b;", "float &a, float b")
    assert changes.stores(function)
    assert not changes.stores(function, apart=frozenset({"a"}))


def test_variables_with_other_names():
    changes, function = _read("float &r = a; float *q = &b; const float c = i;", PARAMETERS)

    assert changes.addressed(function.body) == {"a", "b"}


def test_of_a_pointer_that_is_a_copy_only_what_it_points_to_changes():
    changes, function = _read("p[0] = a; v.e[1] = a;", PARAMETERS)
    found = changes.of(function.body)
    of = {parameter.name: found.parameter(parameter) for parameter in function.parameters}

    assert of == {"a": False, "b": False, "p": False, "v": True, "i": False}
