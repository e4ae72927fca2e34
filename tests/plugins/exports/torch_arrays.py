"""Arrays of PyTorch's on a GPU for the operator of silu.py, and what it makes of them."""

from __future__ import annotations

from tests.frameworks import absent, need

torch = need("torch")
if not torch.cuda.is_available():
    absent("torch", "it sees no CUDA device")


def capability() -> int:
    major, minor = torch.cuda.get_device_capability()
    return 10 * major + minor


def given(tokens=16, d=64, dtype=torch.float16):
    torch.manual_seed(tokens + d)
    return torch.randn(tokens, 2 * d, device="cuda", dtype=dtype)


def empty(tokens=16, d=64):
    return torch.empty(tokens, d, device="cuda", dtype=torch.float16)


def expected(x, bonus=0):
    left, right = x.float().chunk(2, dim=-1)
    return torch.nn.functional.silu(left) * right + bonus


def close(found, wanted):
    torch.testing.assert_close(found.float(), wanted, rtol=2e-3, atol=0.15)  # halves near 200 are 1/8 apart


# A call that does not fit, and the error that it is.
REFUSED = [
    (lambda: given().float(), TypeError, "float16, got float32: convert"),
    (lambda: given()[None], ValueError, "2 axes, got 3"),
    (lambda: given(128, 8).t(), ValueError, "contiguous"),
    (lambda: given(16, 128)[:, ::2], ValueError, "contiguous"),
    (lambda: given().cpu(), ValueError, "runs on a CUDA device, got a tensor on cpu"),
    (lambda: given()[:, :127], ValueError, "shapes agree"),
]
