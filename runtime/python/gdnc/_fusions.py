"""What callers want fused into the kernels, in float32 with torch's own operators."""

from __future__ import annotations

import torch

from ._check import REAL, check_argument


def normalize(x: torch.Tensor) -> torch.Tensor:
    """x [..., K] / sqrt(sum of squares + 1e-6), of x's dtype. Rows of zeros stay zero."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().sum(-1, keepdim=True) + 1e-6)).to(x.dtype)


def write_strength(logits: torch.Tensor, double: bool) -> torch.Tensor:
    """sigmoid(logits), or twice that; float32."""
    beta = logits.float().sigmoid()
    return 2 * beta if double else beta


def log_decay(x: torch.Tensor, A_log: torch.Tensor, dt_bias: torch.Tensor | None) -> torch.Tensor:
    """-exp(A_log) softplus(x + dt_bias) of x [..., HV], A_log and dt_bias [HV]; float32."""
    check_argument("A_log", A_log, x.shape[-1:], REAL, x.device)
    if dt_bias is not None:
        check_argument("dt_bias", dt_bias, x.shape[-1:], REAL, x.device)
        x = x.float() + dt_bias.float()
    return -A_log.float().exp() * torch.nn.functional.softplus(x.float())
