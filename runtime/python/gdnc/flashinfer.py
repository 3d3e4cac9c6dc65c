"""FlashInfer's prefill entry, `flashinfer.gdn_prefill.chunk_gated_delta_rule`."""

from __future__ import annotations

import functools
from typing import Any, Literal

import torch

from ._check import check_tensor
from ._checkpoints import forward_with
from ._forward import forward

__all__ = ["chunk_gated_delta_rule"]


def chunk_gated_delta_rule(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor | None = None,
    beta: torch.Tensor | None = None,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    use_qk_l2norm_in_kernel: bool = False,
    output: torch.Tensor | None = None,
    output_state: torch.Tensor | None = None,
    state_checkpoints: torch.Tensor | None = None,
    checkpoint_cu_starts: torch.Tensor | None = None,
    checkpoint_every_n_tokens: int = 0,
    use_cp: Literal["auto"] | bool = "auto",
    state_indices: torch.Tensor | None = None,
    _cp_chunk_len: int | None = None,
    backend: str = "auto",
    max_seqlen: int | None = None,
    *,
    gate_domain: Literal["linear", "log"] = "linear",
    use_gate_in_kernel: bool = False,
    A_log: torch.Tensor | None = None,
    dt_bias: torch.Tensor | None = None,
    beta_is_logit: bool = False,
    cu_seqlens_cpu: object | None = None,
    output_state_indices: torch.Tensor | None = None,
    checkpoint_state_indices: torch.Tensor | None = None,
    prefix_lens: torch.Tensor | None = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """As FlashInfer's function of this name.

    Args:
        q: [T, HQ, K], bfloat16 or float16.
        k: [T, HK, K].
        v: [T, HV, V]; either HV is a multiple of HQ = HK, or HQ is one of HK = HV, whose heads are then repeated. HO is
            the larger of HQ and HV.
        g: [T, HO]: alpha, the decay itself, or with gate_domain "log" its logarithm, or with use_gate_in_kernel the
            input of -exp(A_log) softplus(g + dt_bias). None: no decay.
        beta: [T, HO]: write strength, or with beta_is_logit its logits. None: ones.
        scale: K^-0.5 if None.
        initial_state: [N, HO, V, K], float32, bfloat16 or float16; with state_indices a pool [slots, HO, V, K].
        cu_seqlens: [N + 1], int32 or int64; required.
        output: [T, HO, V], to be written.
        output_state: [N, HO, V, K], to be written if output_final_state is set; with state_indices a pool as large as
            initial_state, which it may be, and required.
        state_indices: [N], int32 or int64: the state of the pools that sequence i starts from and ends in. One outside,
            such as -1, reads zeros and writes nothing.
        output_state_indices: [N], of the dtype of state_indices: where it ends instead.
        state_checkpoints: [C, HO, V, K], float32, bfloat16 or float16, to be written: the states of each sequence after
            every checkpoint_every_n_tokens tokens, a multiple of 64, from row checkpoint_cu_starts[i] on ([N] or
            [N + 1], int32 or int64). The bundle must hold the variant checkpoints of the kernel.
        checkpoint_state_indices: [E], int32 or int64: what would be row i of the checkpoints is written to row
            checkpoint_state_indices[i] of state_checkpoints, which is a pool. One outside it, such as -1, is not
            written. They pass through E rows of their own first.
        prefix_lens: [N], int32 or int64, at least 0: tokens of each sequence before this call, from which checkpoints
            are counted on: they stand where prefix_lens[i] and tokens of the call are together a multiple of
            checkpoint_every_n_tokens. Inputs and o are copied, and prefix_lens[i] % checkpoint_every_n_tokens tokens
            that change nothing are run before a sequence's own.
        A_log, dt_bias: [HO].
        use_cp, _cp_chunk_len, backend, max_seqlen, cu_seqlens_cpu: have no effect.

    Returns:
        o [T, HO, V] of q's dtype; with output_final_state also the final state [N, HO, V, K].

    Raises:
        NotImplementedError: a gradient is asked for.
        TypeError, ValueError, RuntimeError: as gdnc.forward.
    """
    for name, value in ("checkpoint_state_indices", checkpoint_state_indices), ("prefix_lens", prefix_lens):
        if value is not None and not checkpoint_every_n_tokens:
            raise ValueError(f"{name}: expected None without checkpoint_every_n_tokens, got a tensor")
    if checkpoint_every_n_tokens < 0 or checkpoint_every_n_tokens % 64:
        raise ValueError(f"checkpoint_every_n_tokens: expected a multiple of 64, got {checkpoint_every_n_tokens}")
    if output_state_indices is not None and state_indices is None:
        raise ValueError("output_state_indices: expected None without state_indices, got a tensor")
    if state_indices is not None and output_final_state and output_state is None:
        raise ValueError("output_state: expected a pool with state_indices and output_final_state, got None")
    if state_indices is not None and initial_state is None:  # all start from zeros
        if output_state_indices is None:
            output_state_indices = state_indices
        state_indices = None
    if checkpoint_every_n_tokens and (state_checkpoints is None or checkpoint_cu_starts is None):
        raise ValueError("state_checkpoints and checkpoint_cu_starts: expected tensors with checkpoint_every_n_tokens, "
                         "got None")
    if not checkpoint_every_n_tokens:
        state_checkpoints = checkpoint_cu_starts = None
    if cu_seqlens is None:
        raise ValueError("cu_seqlens: expected a tensor, got None")
    if gate_domain not in ("linear", "log"):
        raise ValueError(f"gate_domain: expected 'linear' or 'log', got {gate_domain!r}")
    if use_gate_in_kernel and (g is None or A_log is None):
        raise ValueError("g and A_log: expected tensors with use_gate_in_kernel, got None")
    for name, x in ("q", q), ("k", k), ("v", v):
        check_tensor(name, x, 3)
    if q.shape[1] > k.shape[1] == v.shape[1] > 0 == q.shape[1] % k.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))

    def constant(value: float) -> torch.Tensor:
        return torch.full((1, v.shape[1]), value, dtype=torch.float32, device=q.device).expand(v.shape[:2])

    inputs = (q, k, v, constant(0) if g is None else g, constant(1) if beta is None else beta)
    options: dict[str, Any] = dict(
        scale=scale, initial_state=initial_state, state_v_first=True, cu_seqlens=cu_seqlens,
        final_state=output_state if output_final_state and output_state is not None else output_final_state,
        out=None if output is None else output[None], normalize_qk=use_qk_l2norm_in_kernel,
        beta_logits=beta is not None and beta_is_logit,
        A_log=A_log if use_gate_in_kernel else None, dt_bias=dt_bias if use_gate_in_kernel else None,
        g_is_decay=g is not None and not use_gate_in_kernel and gate_domain == "linear",
        read_indices=state_indices, write_indices=output_state_indices if output_final_state else None,
        checkpoints=state_checkpoints, checkpoint_every=checkpoint_every_n_tokens,
        checkpoint_starts=None if checkpoint_cu_starts is None else checkpoint_cu_starts[:len(cu_seqlens) - 1])
    launch = forward
    if prefix_lens is not None or checkpoint_state_indices is not None:
        neutral_gate = float("-inf") if use_gate_in_kernel else float(options["g_is_decay"])
        launch = functools.partial(forward_with, prefix_lens, checkpoint_state_indices, neutral_gate=neutral_gate)
    o, final_state = launch(*(x[None] for x in inputs), **options)
    return o[0] if final_state is None else (o[0], final_state)
