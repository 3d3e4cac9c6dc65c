"""FlashQLA's functions: `import gdnc.flash_qla as flash_qla` is the whole change."""

from __future__ import annotations

import torch

from . import _chunks
from ._forward import forward

__all__ = ["chunk_gated_delta_rule", "chunk_gated_delta_rule_fwd"]


def _check_context(cp_context: object | None) -> None:
    if cp_context is not None:
        raise NotImplementedError(f"cp_context: expected None, got {type(cp_context).__name__}; there is no context "
                                  "parallelism over several GPUs")


def chunk_gated_delta_rule(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    head_first: bool = False,
    state_v_first: bool = False,
    auto_cp: bool = True,
    enable_fwd_cp_cache: bool = True,
    cp_context: object | None = None,
    force_intra_cp: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """As FlashQLA's function of this name; gdnc.forward says what the tensors must be.

    Args:
        q, k [B, T, H, K]; v [B, T, HV, V]; g (log decay), beta [B, T, HV]; cu_seqlens [N + 1].
        initial_state: [N, HV, K, V], or [N, HV, V, K] with state_v_first.
        auto_cp, enable_fwd_cp_cache, force_intra_cp: have no effect; no state is ever dropped.

    Returns:
        o [B, T, HV, V] of q's dtype, and the final state (float32) or None.

    Raises:
        NotImplementedError: cp_context is given, or a gradient is asked for.
        TypeError, ValueError, RuntimeError: as gdnc.forward.
    """
    _check_context(cp_context)
    if head_first:
        raise ValueError("head_first: expected False, since tensors are [B, T, H, ...], got True")
    return forward(q, k, v, g, beta, scale=scale, initial_state=initial_state, final_state=output_final_state,
                   state_v_first=state_v_first, cu_seqlens=cu_seqlens, normalize_qk=use_qk_l2norm_in_kernel)


def chunk_gated_delta_rule_fwd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    cu_seqlens: torch.Tensor | None = None,
    output_final_state: bool = True,
    output_h: bool = False,
    auto_cp: bool = True,
    state_v_first: bool = False,
    enable_fwd_cp_cache: bool = False,
    cp_context: object | None = None,
    is_train: bool | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None, None]:
    """As FlashQLA's function of this name: what a backward wants to keep, beside the outputs.

    Args: as chunk_gated_delta_rule.

    Returns:
        g_cumsum: [B, T, HV] float32, the sum of g from the token's chunk of 64 on.
        A: [B, T, HV, 64] of k's dtype, rows of (I + strict_tril(diag(beta) K K^T))^-1 of each chunk.
        o: [B, T, HV, V] of q's dtype.
        h: the states that enter the chunks of 64 tokens, of k's dtype: [B, NT, HV, K, V] or [B, NT, HV, V, K], or None
            without output_h, which takes the variant checkpoints of the kernel. With cu_seqlens those of one sequence
            follow those of the one before, and NT is T // 64 + N, which the host knows: rows behind the last chunk are
            not set.
        final_state: [N, HV, K, V] or [N, HV, V, K], float32, or None.
        cp_cache: None.

    Raises:
        NotImplementedError: cp_context is given, or a gradient is asked for.
        TypeError, ValueError, RuntimeError: as gdnc.forward.
    """
    _check_context(cp_context)
    h, starts = _chunks.states(k, v, cu_seqlens, state_v_first) if output_h else (None, None)
    o, final_state = forward(q, k, v, g, beta, scale=scale, initial_state=initial_state,
                             final_state=output_final_state, state_v_first=state_v_first, cu_seqlens=cu_seqlens,
                             checkpoints=None if h is None else h.flatten(0, 1), checkpoint_every=_chunks.CHUNK,
                             checkpoint_starts=starts, checkpoints_before=True)
    g_cumsum, inverse = _chunks.prepare(k, g, beta, cu_seqlens)
    return g_cumsum, inverse, o, h, final_state, None
