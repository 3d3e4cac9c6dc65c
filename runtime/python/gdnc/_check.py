"""What is wrong with the arguments of a call: each with a sentence that names it, what is expected and what it is."""

from __future__ import annotations

from numbers import Integral, Real

import torch

from . import _library

_DEVICE = "cpu" if _library.emulated() else "cuda"
_IO = (torch.bfloat16, torch.float16)
REALS = (torch.float32, torch.bfloat16, torch.float16)
OFFSETS = (torch.int32, torch.int64)


def check_tensor(name: str, x: torch.Tensor, rank: int) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
    if x.dim() != rank:
        raise ValueError(f"{name}: expected a tensor of rank {rank}, got shape {list(x.shape)}")


def check_argument(name: str, x: torch.Tensor, shape: tuple, dtypes: tuple, device: torch.device,
                   dense: int = 1) -> None:
    """Raises unless x has the shape, one of the dtypes and the device, and `dense` last dimensions are contiguous."""
    check_tensor(name, x, len(shape))
    if x.shape != shape:
        raise ValueError(f"{name}: expected shape {list(shape)}, got {list(x.shape)}")
    if x.dtype not in dtypes:
        raise TypeError(f"{name}: expected {' or '.join(str(d) for d in dtypes)}, got {x.dtype}")
    if x.device != device:
        raise ValueError(f"{name}: expected a tensor on {device} like q, got one on {x.device}")
    stride = 1
    for axis in range(len(shape) - 1, len(shape) - 1 - dense, -1):
        if x.stride(axis) != stride and x.shape[axis] > 1:
            raise ValueError(f"{name}: expected stride {stride} in dimension {axis}, got {x.stride(axis)}")
        stride *= x.shape[axis]


def check(q, k, v, g, beta, out, initial_state, final_state, cu_seqlens, scale, state_v_first, split, flags=0,
          A_log=None, dt_bias=None, read_indices=None, write_indices=None, checkpoints=None, checkpoint_every=0,
          checkpoint_starts=None) -> None:
    """Raises TypeError or ValueError unless these arguments of a launch fit each other; `out` may be None."""
    check_tensor("q", q, 4)
    check_tensor("v", v, 4)
    device, (batch, tokens, heads, key_dim), (heads_v, value_dim) = q.device, q.shape, v.shape[2:]
    if device.type != _DEVICE:
        raise ValueError(f"q: expected a tensor on {_DEVICE}, got one on {device}; CPU tensors run on the emulator "
                         "alone, which GDN_DRIVER=emu chooses")
    if key_dim == 0:
        raise ValueError(f"q: expected a last dimension of at least 1, got shape {list(q.shape)}")
    if heads == 0 or heads_v % heads:
        raise ValueError(f"v: expected a number of heads that q's ({heads}) divides, got {heads_v}")
    io, values = (q.dtype,), (batch, tokens, heads_v, value_dim)
    check_argument("q", q, q.shape, _IO, device)
    check_argument("k", k, q.shape, io, device)
    check_argument("v", v, values, io, device)
    check_argument("g", g, values[:3], REALS, device)
    check_argument("beta", beta, values[:3], REALS, device)
    for name, x in ("A_log", A_log), ("dt_bias", dt_bias):
        if x is not None:
            check_argument(name, x, values[2:3], REALS, device)
    if out is not None:
        check_argument("out", out, values, io, device)
    sequences = batch
    if cu_seqlens is not None:
        check_tensor("cu_seqlens", cu_seqlens, 1)
        check_argument("cu_seqlens", cu_seqlens, cu_seqlens.shape, OFFSETS, device)
        if len(cu_seqlens) == 0:
            raise ValueError("cu_seqlens: expected at least 1 element, got 0")
        if batch != 1:
            raise ValueError(f"q: expected a batch of 1 with cu_seqlens, got {batch}")
        sequences = len(cu_seqlens) - 1
    matrix = (value_dim, key_dim) if state_v_first else (key_dim, value_dim)
    slots = _slots(initial_state, final_state, read_indices, write_indices, sequences, device)
    for name, state, rows in zip(("initial_state", "final_state"), (initial_state, final_state), slots):
        if state is not None:
            check_argument(name, state, (rows, heads_v, *matrix), REALS, device, dense=2)
    if checkpoints is not None:
        check_tensor("checkpoints", checkpoints, 4)
        check_argument("checkpoints", checkpoints, (len(checkpoints), heads_v, *matrix), REALS, device, dense=2)
    if checkpoint_starts is not None:
        check_argument("checkpoint_starts", checkpoint_starts, (sequences,), OFFSETS, device)


def _slots(initial_state, final_state, read_indices, write_indices, sequences: int,
           device: torch.device) -> tuple[int, int]:
    """How many states initial_state and final_state must hold."""
    dtypes: tuple[torch.dtype, ...] = OFFSETS
    for name, indices, pool, state in (("read_indices", read_indices, "initial_state", initial_state),
                                       ("write_indices", write_indices, "final_state", final_state)):
        if indices is None:
            continue
        check_argument(name, indices, (sequences,), dtypes, device)
        dtypes = (indices.dtype,)
        if state is None:
            raise ValueError(f"{name}: expected None without a tensor {pool}, got a tensor")
        check_tensor(pool, state, 4)
    if read_indices is not None:
        return len(initial_state), len(initial_state)
    return sequences, sequences if write_indices is None else len(final_state)


def check_numbers(scale: float | None, split: int, checkpoint_every: int) -> None:
    for name, x, kind, what in (("scale", scale, Real, "a number"), ("split", split, Integral, "an integer"),
                                ("checkpoint_every", checkpoint_every, Integral, "an integer")):
        if not isinstance(x, kind):
            raise TypeError(f"{name}: expected {what}, got {type(x).__name__}")
    if not 0 <= split <= 64:
        raise ValueError(f"split: expected 0 to 64, got {split}")


def check_gradient(*tensors: torch.Tensor | None) -> None:
    """Of q, k, v, g, beta, initial_state, A_log and dt_bias."""
    for x in tensors:
        if x is not None and x.requires_grad:
            named = zip(("q", "k", "v", "g", "beta", "initial_state", "A_log", "dt_bias"), tensors)
            name = next(name for name, tensor in named if tensor is x)
            raise NotImplementedError(f"{name}: expected no gradient to be asked for, since there is no backward "
                                      "kernel, got requires_grad=True; call it under torch.no_grad()")
