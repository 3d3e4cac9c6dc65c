"""gdnc.forward: makes what the caller does not give, and launches."""

from __future__ import annotations

import torch

from ._check import check, check_gradient, check_numbers
from ._launch import launch
from ._library import (BETA_DOUBLED, BETA_LOGITS, CHECKPOINTS_AFTER, CHECKPOINTS_BEFORE, CUTS, G_IS_DECAY,
                       KEYS_NORMALISED, NORMALISE_QK)


def _new_state(q: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor | None, v_first: bool,
               initial_state: torch.Tensor | None) -> torch.Tensor:
    if initial_state is not None:  # of the same shape, which takes less time
        return torch.empty_like(initial_state, dtype=torch.float32, memory_format=torch.contiguous_format)
    (batch, _, _, key_dim), (_, _, heads_v, value_dim) = q.shape, v.shape
    sequences = batch if cu_seqlens is None else cu_seqlens.numel() - 1
    matrix = (value_dim, key_dim) if v_first else (key_dim, value_dim)
    return v.new_empty((sequences, heads_v, *matrix), dtype=torch.float32)


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
    read_indices: torch.Tensor | None = None,
    write_indices: torch.Tensor | None = None,
    checkpoints: torch.Tensor | None = None,
    checkpoint_every: int = 0,
    checkpoint_starts: torch.Tensor | None = None,
    checkpoints_before: bool = False,
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

        read_indices: [N], int32 or int64: initial_state is a pool [slots, HV, K, V] then, and sequence i starts from
            its state read_indices[i]. An index outside, such as -1, reads zeros. None: sequence i from state i.
        write_indices: [N], of read_indices' dtype: final_state is a pool then, as large as initial_state where both are
            pools, and sequence i ends in its state write_indices[i]. None: as read_indices. An index outside writes
            nothing, and neither does a sequence without tokens. A state that a sequence writes is no other's to read or
            write; it may be the one that it reads, of one pool.
        checkpoints: [R, HV, K, V], float32, bfloat16 or float16, to be written: the states of a sequence after every
            checkpoint_every tokens, as many as it has. The bundle must hold the variant checkpoints of the kernel.
        checkpoint_every: a multiple of 64.
        checkpoint_starts: [N], int32 or int64: the row of each sequence's first checkpoint; others follow it. Rows
            outside are not written. None, without cu_seqlens: those of sequence i + 1 follow those of sequence i.
        checkpoints_before: they are the states before tokens 0, checkpoint_every, 2 checkpoint_every ...

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
    if double_beta and not beta_logits:
        raise ValueError("double_beta: expected False without beta_logits, got True")
    if dt_bias is not None and A_log is None:
        raise ValueError("dt_bias: expected None without A_log, got a tensor")
    if g_is_decay and A_log is not None:
        raise ValueError("g_is_decay: expected False with A_log, got True")
    if final_state is True and read_indices is not None:
        raise ValueError("final_state: expected a tensor or False with read_indices, got True")
    if cut not in CUTS:
        raise ValueError(f"cut: expected one of {', '.join(CUTS)}, got {cut}")
    flags = CUTS[cut]
    if keys_normalised:
        flags |= KEYS_NORMALISED
    if normalize_qk:
        flags |= NORMALISE_QK
    if beta_logits:
        flags |= BETA_LOGITS
    if double_beta:
        flags |= BETA_DOUBLED
    if g_is_decay:
        flags |= G_IS_DECAY
    if checkpoints is not None:
        flags |= CHECKPOINTS_BEFORE if checkpoints_before else CHECKPOINTS_AFTER
    state = None if final_state is None or isinstance(final_state, bool) else final_state
    more = flags, A_log, dt_bias, read_indices, write_indices, checkpoints, checkpoint_every, checkpoint_starts
    try:
        if scale is None:
            scale = k.shape[3]**-0.5
        if torch.is_grad_enabled():
            check_gradient(q, k, v, g, beta, initial_state, A_log, dt_bias)
        if state is None and final_state:
            state = _new_state(q, v, cu_seqlens, state_v_first, initial_state)
        if out is None:
            out = torch.empty_like(v, memory_format=torch.contiguous_format)
        _launch(q, k, v, g, beta, out, initial_state, state, cu_seqlens, scale, state_v_first, split, *more)
        return out, state
    except Exception as error:
        failure = error
    # Only now, since a call takes less time than the search for what is wrong with it.
    check(q, k, v, g, beta, out, initial_state, state, cu_seqlens, scale, state_v_first, split, *more)
    check_numbers(scale, split, checkpoint_every)
    raise failure
