"""The interface of flash-linear-attention's `fla.ops.gated_delta_rule`."""

from __future__ import annotations

import warnings

import torch

from ._forward import forward
from ._launch import launch

__all__ = ["chunk_gated_delta_rule"]


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
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    cu_seqlens_cpu: torch.Tensor | None = None,
    chunk_indices: torch.Tensor | None = None,
    cp_context: object | None = None,
    *,
    use_gate_in_kernel: bool = False,
    A_log: torch.Tensor | None = None,
    dt_bias: torch.Tensor | None = None,
    chunk_size: int = 64,
    transpose_state_layout: bool | None = None,
    head_first: bool = False,
    cut: str = "auto",
    keys_normalised: bool = False,
    _launch=launch,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """As flash-linear-attention's function of this name; gdnc.forward says what the tensors must be.

    Args:
        q, k: [B, T, H, K], bfloat16 or float16.
        v: [B, T, HV, V], HV a multiple of H.
        g: [B, T, HV]: log decay; with use_gate_in_kernel the input of -exp(A_log) softplus(g + dt_bias).
        beta: [B, T, HV]: write strength; with use_beta_sigmoid_in_kernel its logits, and with allow_neg_eigval as well
            beta = 2 sigmoid(logits).
        scale: K^-0.5 if None.
        initial_state: [N, HV, K, V], or [N, HV, V, K] with state_v_first (its old name: transpose_state_layout).
        output_final_state: whether the final state is returned, in float32 and the layout of the initial one.
        use_qk_l2norm_in_kernel: normalises the rows of q and k.
        cu_seqlens: [N + 1], int32 or int64, of a packed batch (B = 1).
        A_log, dt_bias: [HV].
        cut, keys_normalised: ours alone, as gdnc.forward has them.
        cu_seqlens_cpu, chunk_indices, chunk_size: not needed; chunks have 64 tokens, whatever is asked for.

    Returns:
        o [B, T, HV, V] of q's dtype, and the final state or None.

    Raises:
        NotImplementedError: cp_context is given, or a gradient is asked for.
        TypeError, ValueError, RuntimeError: as gdnc.forward.
    """
    if cp_context is not None:
        raise NotImplementedError(f"cp_context: expected None, got {type(cp_context).__name__}; there is no context "
                                  "parallelism over several GPUs")
    if head_first:
        raise ValueError("head_first: expected False, since tensors are [B, T, H, ...], got True")
    if chunk_size not in (16, 32, 64):
        raise ValueError(f"chunk_size: expected 16, 32 or 64, got {chunk_size}")
    if transpose_state_layout is not None:
        if state_v_first:
            raise ValueError("transpose_state_layout: expected None, since state_v_first is given, got "
                             f"{transpose_state_layout}")
        warnings.warn("transpose_state_layout is the old name of state_v_first", DeprecationWarning, stacklevel=2)
        state_v_first = transpose_state_layout
    if use_gate_in_kernel and A_log is None:
        raise ValueError("A_log: expected a tensor with use_gate_in_kernel, got None")
    if allow_neg_eigval and not use_beta_sigmoid_in_kernel:
        raise ValueError("allow_neg_eigval: expected False without use_beta_sigmoid_in_kernel, got True")
    return forward(
        q, k, v, g, beta, scale=scale, initial_state=initial_state, final_state=output_final_state,
        state_v_first=state_v_first, cu_seqlens=cu_seqlens, normalize_qk=use_qk_l2norm_in_kernel,
        beta_logits=use_beta_sigmoid_in_kernel, double_beta=allow_neg_eigval,
        A_log=A_log if use_gate_in_kernel else None, dt_bias=dt_bias if use_gate_in_kernel else None,
        cut=cut, keys_normalised=keys_normalised, _launch=_launch)
