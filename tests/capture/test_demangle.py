"""Names as the host's C++ library says them, and what of them is a function's own."""

from __future__ import annotations

import pytest

from tunesmith.capture.demangle import function_name


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
    ],
)
def test_a_function_is_called_by_its_scopes_and_its_name(name: str, own: str) -> None:
    assert function_name(name) == own
