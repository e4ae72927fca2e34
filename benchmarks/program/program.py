"""A gated feed-forward block: kernels of our own, one of Triton, and the vendor's matrix products."""

from __future__ import annotations

from dataclasses import dataclass

import extension
import torch
import triton
import triton.language as tl

EPSILON = 1e-5


@triton.jit
def add_bias_kernel(x, bias, columns, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + row * columns + at, mask=inside) + tl.load(bias + at, mask=inside)
        tl.store(x + row * columns + at, value, mask=inside)


@dataclass(frozen=True)
class Block:
    norm: torch.Tensor
    narrow: torch.Tensor
    wide: torch.Tensor
    down: torch.Tensor
    bias: torch.Tensor


def make_block(hidden: int = 4096, rank: int = 512, dtype: torch.dtype = torch.bfloat16) -> Block:
    """Projections of low rank, as adapters have them."""
    torch.manual_seed(0)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda", dtype=torch.float32).mul_(shape[0] ** -0.5).to(dtype)

    norm = torch.rand(hidden, device="cuda").add_(0.5).to(dtype)
    bias = torch.randn(hidden, device="cuda").mul_(0.1).to(dtype)
    return Block(norm, drawn(hidden, rank), drawn(rank, 2 * hidden), drawn(hidden, hidden), bias)


def step(block: Block, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales of what the block makes of x; both x and residual change."""
    extension.fused_add_rms_norm(x, residual, block.norm, EPSILON)
    both = (x @ block.narrow) @ block.wide
    gated = extension.silu_and_mul(both)
    add_bias_kernel[(gated.shape[0],)](gated, block.bias, gated.shape[1], BLOCK=1024)
    return extension.quant_per_token(gated)


def plain_step(block: Block, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same by PyTorch alone, rounded where the kernels round."""
    dtype = x.dtype
    residual.copy_((x.float() + residual.float()).to(dtype))
    wide = residual.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
    x.copy_((wide * scale * block.norm.float()).to(dtype))
    both = ((x @ block.narrow) @ block.wide).float()
    gate, up = both.chunk(2, -1)
    gated = (torch.nn.functional.silu(gate) * up).to(dtype) + block.bias
    largest = gated.float().abs().amax(-1, keepdim=True).clamp_min(1e-10)
    codes = torch.round(gated.float() * (127.0 / largest)).clamp(-127, 127).to(torch.int8)
    return codes, (largest / 127.0)[:, 0]
