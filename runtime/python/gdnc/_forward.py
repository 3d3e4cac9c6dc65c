"""gdnc.forward: checks what it is given, does what the kernels do not, launches."""

from __future__ import annotations

import torch

from . import _fusions, _library
from ._launch import launch

_DEVICE = "cpu" if _library.emulated() else "cuda"
_IO = (torch.bfloat16, torch.float16)
_REAL = (torch.float32, torch.bfloat16, torch.float16)
_OFFSETS = (torch.int32, torch.int64)


def _check(name: str, x: torch.Tensor, shape: tuple, dtypes: tuple, device: torch.device, dense: int = 1) -> None:
    """Raises unless x has the shape, one of the dtypes and the device, and `dense` last dimensions are contiguous."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
    if x.shape != shape:
        raise ValueError(f"{name}: expected shape {list(shape)}, got {list(x.shape)}")
    if x.dtype not in dtypes:
        raise TypeError(f"{name}: expected {' or '.join(str(d) for d in dtypes)}, got {x.dtype}")
    if x.device != device:
        raise ValueError(f"{name}: expected a tensor on {device} like q, got one on {x.device}")
    stride = 1
    for axis in range(x.dim() - 1, x.dim() - 1 - dense, -1):
        if x.stride(axis) != stride and x.shape[axis] > 1:
            raise ValueError(f"{name}: expected stride {stride} in dimension {axis}, got {x.stride(axis)}")
        stride *= x.shape[axis]


def _check_heads(q: torch.Tensor, v: torch.Tensor) -> None:
    for name, x in ("q", q), ("v", v):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
        if x.dim() != 4:
            raise ValueError(f"{name}: expected 4 dimensions, got {list(x.shape)}")
    if q.device.type != _DEVICE:
        raise ValueError(f"q: expected a tensor on {_DEVICE}, got one on {q.device}; CPU tensors run on the emulator "
                         "alone, which GDN_DRIVER=emu chooses")
    if q.shape[2] == 0 or v.shape[2] % q.shape[2]:
        raise ValueError(f"v: expected a number of heads that q's ({q.shape[2]}) divides, got {v.shape[2]}")


def _check_gradient(**tensors: torch.Tensor | None) -> None:
    if torch.is_grad_enabled():
        for name, x in tensors.items():
            if x is not None and x.requires_grad:
                raise NotImplementedError(f"{name}: expected no gradient to be asked for, since there is no backward "
                                          "kernel, got requires_grad=True; call it under torch.no_grad()")


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
    split: int = 0,
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
        normalize_qk: divides rows of q and k by their norms, sqrt(sum of squares + 1e-6).
        beta_logits: beta = sigmoid(beta); with double_beta 2 sigmoid(beta).
        A_log: [HV]: g = -exp(A_log) softplus(g + dt_bias).
        dt_bias: [HV], or None for 0.
        split: blocks that share one head's V; 0 lets the library choose.

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
    _check_heads(q, v)
    _check_gradient(q=q, k=k, v=v, g=g, beta=beta, initial_state=initial_state, A_log=A_log, dt_bias=dt_bias)
    device, (batch, tokens, heads, key_dim), (heads_v, value_dim) = q.device, q.shape, v.shape[2:]
    _check("q", q, q.shape, _IO, device)
    io = (q.dtype,)
    _check("k", k, q.shape, io, device)
    _check("v", v, (batch, tokens, heads_v, value_dim), io, device)
    _check("g", g, (batch, tokens, heads_v), _REAL, device)
    _check("beta", beta, (batch, tokens, heads_v), _REAL, device)

    sequences = batch
    if cu_seqlens is not None:
        if not isinstance(cu_seqlens, torch.Tensor) or cu_seqlens.dim() != 1 or len(cu_seqlens) == 0:
            raise ValueError("cu_seqlens: expected a tensor of one dimension with at least 1 element, got "
                             f"{list(getattr(cu_seqlens, 'shape', [])) or type(cu_seqlens).__name__}")
        _check("cu_seqlens", cu_seqlens, cu_seqlens.shape, _OFFSETS, device)
        if batch != 1:
            raise ValueError(f"q: expected a batch of 1 with cu_seqlens, got {batch}")
        sequences = len(cu_seqlens) - 1
    states = (sequences, heads_v) + ((value_dim, key_dim) if state_v_first else (key_dim, value_dim))
    if initial_state is not None:
        _check("initial_state", initial_state, states, _REAL, device, dense=2)
    if isinstance(final_state, torch.Tensor):
        _check("final_state", final_state, states, _REAL, device, dense=2)
    else:
        final_state = torch.empty(states, dtype=torch.float32, device=device) if final_state else None
    if out is None:
        out = torch.empty(v.shape, dtype=q.dtype, device=device)
    else:
        _check("out", out, v.shape, io, device)

    if normalize_qk:
        q, k = _fusions.normalize(q), _fusions.normalize(k)
    if beta_logits:
        beta = _fusions.write_strength(beta, double_beta)
    if A_log is not None:
        g = _fusions.log_decay(g, A_log, dt_bias)
    launch(q, k, v, g, beta, out, initial_state, final_state, cu_seqlens, key_dim**-0.5 if scale is None else scale,
           state_v_first, split)
    return out, final_state
