"""Seconds, bytes and rates as people write them."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= 10 * factor:
            return f"{seconds / factor:.1f} {unit}"
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-4 else f"{seconds * 1e6:.1f} µs"


def bytes_text(count: float) -> str:
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.4g} {unit}"
    return f"{count:.0f} bytes"


def rate_text(rate: float) -> str:
    return f"{scaled(rate)}B/s"


def scaled(value: float) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g} "
