"""Names as the host's C++ library says them, and what of them is a function's own."""

from __future__ import annotations

import pytest

from tunesmith.plugins.repo.capture.trace import function_name


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("void own::scale_rows_kernel<c10::BFloat16, 8>(c10::BFloat16*)", "own::scale_rows_kernel"),
        ("void (anonymous namespace)::k<4>(int)", "k"),
        (
            "void at::native::(anonymous namespace)::k<4, (anonymous namespace)::X<int> >(int)",
            "at::native::k",
        ),
        ("void A<int>::k<(8>4)>(int)", "A::k"),
        ("void ns::F<int>::operator()<float>(float*) const", "ns::F::operator()"),
        ("softmax<{n}, float>", "softmax"),
        ("scale_{type}", "scale_{type}"),
        ("unsigned int a::b::k(float*, int) const", "a::b::k"),
        ("void at::(anonymous namespace)::k<4>(at::(anonymous namespace)::X<int>, void (*)(int))", "at::k"),
        ("void k<at::(anonymous namespace)::X<(bool)1>, 2>(float*)", "k"),
        ("void A<(anonymous namespace)::B>::k<(8>4), (1<2)>(int)", "A::k"),
        ("void f(int)::{lambda(float)#1}::operator()(float) const", "f::{lambda(float)#1}::operator()"),
        ("bool ns::operator< <int>(X<int> const&, X<int> const&)", "ns::operator<"),
        ("ns::operator<<(X&, int)", "ns::operator<<"),
        ("ns::X::operator bool() const", "ns::X::operator bool"),
        ("void f(int) const::{lambda()#1}::g(k::h)", "f::{lambda()#1}::g"),
        ("cooperator(int)", "cooperator"),
        ("void k<float", "k"),
        ("", ""),
        ("(", ""),
    ],
)
def test_a_function_is_called_by_its_scopes_and_its_name(name: str, own: str) -> None:
    assert function_name(name) == own
