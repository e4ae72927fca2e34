"""The program's own tests: its kernels against PyTorch."""

from __future__ import annotations

import extension
import pytest
import torch
from program import EPSILON, make_block, plain_step, step

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
TYPES = (torch.bfloat16, torch.float16)


def drawn(rows: int, hidden: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(rows, hidden, device="cuda").to(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("hidden", [64, 1056, 4096])
@pytest.mark.parametrize("rows", [1, 64, 333])
def test_norm(rows: int, hidden: int, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x, residual, weight = drawn(rows, hidden, dtype), drawn(rows, hidden, dtype), drawn(1, hidden, dtype)[0]
    total = (x.float() + residual.float()).to(dtype)
    wide = total.double()
    wanted = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON) * weight.double()
    extension.fused_add_rms_norm(x, residual, weight, EPSILON)
    assert torch.equal(residual, total)
    torch.testing.assert_close(x.double(), wanted, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [64, 1056, 4096])
@pytest.mark.parametrize("rows", [1, 64, 333])
def test_activation(rows: int, width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(2)
    both = drawn(rows, 2 * width, dtype)
    gate, up = both.double().chunk(2, -1)
    wanted = torch.nn.functional.silu(gate) * up
    torch.testing.assert_close(extension.silu_and_mul(both).double(), wanted, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("hidden", [64, 1056, 4096])
@pytest.mark.parametrize("rows", [1, 64, 333])
def test_quantisation(rows: int, hidden: int, dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    x = drawn(rows, hidden, dtype)
    codes, scales = extension.quant_per_token(x)
    torch.testing.assert_close(scales, x.float().abs().amax(-1) / 127.0, rtol=1e-6, atol=0)
    error = (codes.float() * scales[:, None] - x.float()).abs()
    assert bool((error <= 0.5001 * scales[:, None]).all())
    assert int(codes.abs().amax()) == 127


def test_a_step() -> None:
    block = make_block()
    x, residual = drawn(64, 4096, torch.bfloat16), drawn(64, 4096, torch.bfloat16)
    wanted_codes, wanted_scales = plain_step(block, x.clone(), residual.clone())
    codes, scales = step(block, x, residual)
    torch.testing.assert_close(scales, wanted_scales, rtol=2e-2, atol=0)
    assert float((codes.int() - wanted_codes.int()).abs().float().mean()) < 0.5
