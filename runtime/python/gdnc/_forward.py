"""gdnc.forward: makes what the caller does not give, and launches."""

from __future__ import annotations

import torch

from . import _library
from ._check import check, check_gradient
from ._launch import launch


def _new_state(q: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor | None, v_first: bool) -> torch.Tensor:
    matrix = (v.shape[3], q.shape[3]) if v_first else (q.shape[3], v.shape[3])
    sequences = q.shape[0] if cu_seqlens is None else cu_seqlens.numel() - 1
    return v.new_empty((sequences, v.shape[2], *matrix), dtype=torch.float32)


def forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    *,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    final_state: torch.Tensor | bool = False,
    state_v_first: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    normalize_qk: bool = False,
    beta_logits: bool = False,
    double_beta: bool = False,
    A_log: torch.Tensor | None = None,
    dt_bias: torch.Tensor | None = None,
    g_is_decay: bool = False,
    split: int = 0,
    cut: str = "auto",
    keys_normalised: bool = False,
    _launch=launch,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The gated delta rule over whole sequences. Per token of a v-head h, with its k-head h // (HV // H) and S [K, V]:

        S = exp(g) S;  u = beta (v - S^T k);  S = S + k u^T;  o = scale S^T q

    Args:
        q, k: [B, T, H, K], bfloat16 or float16.
        v: [B, T, HV, V] of q's dtype; HV is a multiple of H.
        g: [B, T, HV], float32, bfloat16 or float16: log decay (natural logarithm), at most 0. With A_log: the input of
            the gate.
        beta: [B, T, HV], float32, bfloat16 or float16: write strength. With beta_logits: its logits.
        scale: K^-0.5 if None.
        initial_state: [N, HV, K, V], float32, bfloat16 or float16; zeros if None. N is the number of sequences.
        final_state: False for none, True for a new float32 tensor, or the tensor [N, HV, K, V] to write, which may be
            initial_state itself.
        state_v_first: states are [N, HV, V, K].
        cu_seqlens: [N + 1], int32 or int64: sequence i is tokens cu_seqlens[i] to cu_seqlens[i + 1] of a batch of 1.
            It may be empty, and o is zero in tokens behind the last. The host does not read it. None: each row of the
            batch is a sequence.
        out: [B, T, HV, V] of q's dtype, to be written.
        normalize_qk: divides rows of q and k by their norms, sqrt(sum of squares + 1e-6). The bundle must hold the
            variant l2norm of the kernel.
        beta_logits: beta = sigmoid(beta); with double_beta 2 sigmoid(beta).
        A_log: [HV], float32, bfloat16 or float16: g = -exp(A_log) softplus(g + dt_bias).
        dt_bias: [HV], float32, bfloat16 or float16, or None for 0.
        g_is_decay: g is the decay itself, from 0 to 1.
        split: blocks that share one head's V; 0 lets the library choose.
        cut: how long sequences are cut over the GPU: "auto", "off", "exact" (without warm-ups), "fast" (with shorter ones,
            which approximate), or "invariant": to the same bits whatever else the batch holds. gdn/gdn.h says more.
        keys_normalised: promises |k| <= 1 and beta <= 2, which lets heads that decay be cut by warm-ups, and is so with
            normalize_qk and beta_logits.

    q, k, v, out, g and beta may be strided views whose last dimension is contiguous; addresses and strides of the first
    four are multiples of 16 bytes, and with B > 1 the batch must be one token axis. States may be strided over N and
    HV. All tensors are on one device; the kernel is enqueued on its current stream, without synchronisation, and a
    CUDA graph can capture it.

    Returns:
        o [B, T, HV, V] of q's dtype, and the final state or None.

    Raises:
        TypeError, ValueError: an argument has the wrong type, dtype, shape, device or strides.
        NotImplementedError: a gradient is asked for.
        RuntimeError: the library refuses the call, in its own words: misaligned strides, say, or dimensions for which
            the bundle has no kernel.
    """
    state = final_state if isinstance(final_state, torch.Tensor) else None
    if double_beta and not beta_logits:
        raise ValueError("double_beta: expected False without beta_logits, got True")
    if dt_bias is not None and A_log is None:
        raise ValueError("dt_bias: expected None without A_log, got a tensor")
    if g_is_decay and A_log is not None:
        raise ValueError("g_is_decay: expected False with A_log, got True")
    if cut not in _library.CUTS:
        raise ValueError(f"cut: expected one of {', '.join(_library.CUTS)}, got {cut}")
    flags = (_library.CUTS[cut] | keys_normalised * _library.KEYS_NORMALISED |
             normalize_qk * _library.NORMALISE_QK | beta_logits * _library.BETA_LOGITS |
             double_beta * _library.BETA_DOUBLED | g_is_decay * _library.G_IS_DECAY)
    try:
        if torch.is_grad_enabled():
            check_gradient(q, k, v, g, beta, initial_state, A_log, dt_bias)
        if scale is None:
            scale = k.shape[3]**-0.5
        if state is None and final_state:
            state = _new_state(q, v, cu_seqlens, state_v_first)
        if out is None:
            out = torch.empty_like(v, memory_format=torch.contiguous_format)
        _launch(q, k, v, g, beta, out, initial_state, state, cu_seqlens, scale, state_v_first, split, flags, A_log,
                dt_bias)
        return out, state
    except Exception as error:
        failure = error
    # Only now, since a call takes less time than the search for what is wrong with it.
    check(q, k, v, g, beta, out, initial_state, state, cu_seqlens, scale, state_v_first, split, flags, A_log, dt_bias)
    raise failure
