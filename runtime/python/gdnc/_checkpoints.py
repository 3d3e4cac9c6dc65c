"""Checkpoints as FlashInfer's callers ask for them: at multiples of tokens that count from before a call, and in any rows
of a pool. The kernel counts from a sequence's begin and writes rows that follow each other, so that inputs or
checkpoints are copied here; nothing is read from the device."""

from __future__ import annotations

import torch

from ._check import OFFSETS, check, check_argument, check_tensor
from ._forward import forward


class _Padding:
    """Before the tokens of each sequence, room for those that it had behind a multiple of `every` before the call."""

    def __init__(self, prefix_lens: torch.Tensor, cu_seqlens: torch.Tensor, tokens: int, every: int):
        begins = cu_seqlens[:-1]
        room = torch.where(cu_seqlens[1:] > begins, prefix_lens % every, 0)
        added = torch.nn.functional.pad(room.cumsum(0), (1, 0))
        at = torch.arange(tokens, dtype=begins.dtype, device=begins.device)
        self.rows = at + added[torch.searchsorted(begins, at, right=True)]
        self.tokens = tokens + len(begins) * (every - 1)  # that it may become
        self.cu_seqlens = cu_seqlens + added

    def spread(self, x: torch.Tensor, value: float = 0.0) -> torch.Tensor:
        return x.new_full((1, self.tokens, *x.shape[2:]), value).index_copy_(1, self.rows, x)

    def gather(self, x: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
        return torch.index_select(x, 1, self.rows, out=out)


def _is_written(cu_seqlens: torch.Tensor, tokens: int, starts: torch.Tensor, every: int, rows: int) -> torch.Tensor:
    """Which of the rows hold a checkpoint after a call."""
    counts = cu_seqlens.clamp(0, tokens).diff().clamp(min=0) // every
    counts = torch.where((starts >= 0) & (starts < rows), counts, 0)
    begins, ends = starts.clamp(0, rows).long(), (starts + counts).clamp(0, rows).long()
    one = torch.ones_like(begins)
    return torch.zeros(rows + 1, dtype=torch.int64, device=starts.device).index_add_(0, begins, one).index_add_(
        0, ends, -one).cumsum(0)[:rows] > 0


def _scatter(rows: torch.Tensor, wanted: torch.Tensor, pool: torch.Tensor, indices: torch.Tensor) -> None:
    """pool[indices[i]] = rows[i] where it is wanted. The last row has no index. Since the number of rows that are
    copied is the host's to say, the others copy the first that is wanted again, or, if none is, slot 0 onto itself."""
    last = len(rows) - 1
    rows[last] = pool[0]
    first = torch.where(wanted.any(), wanted.int().argmax(), last)
    source = torch.where(wanted, torch.arange(last, device=rows.device), first)
    target = torch.nn.functional.pad(indices, (0, 1))[source].long()
    pool.index_copy_(0, target, rows.index_select(0, source))


def forward_with(prefix_lens: torch.Tensor | None, indices: torch.Tensor | None, q, k, v, g, beta, *, neutral_gate: float,
                 out, cu_seqlens, final_state, checkpoints, checkpoint_every: int, checkpoint_starts,
                 **options) -> tuple[torch.Tensor, torch.Tensor | None]:
    """As gdnc.forward, for a packed batch.

    Args:
        prefix_lens: [N], int32 or int64: checkpoints stand where these tokens and those of the sequence are together a
            multiple of checkpoint_every.
        indices: [C], int32 or int64: row i of the checkpoints is row indices[i] of `checkpoints`, which is a pool. One
            outside it, such as -1, is not stored.
        neutral_gate: a g that leaves a state as it is.
    """
    state = final_state if isinstance(final_state, torch.Tensor) else None
    check(q, k, v, g, beta, out, options["initial_state"], state, cu_seqlens, options["scale"], options["state_v_first"],
          0, 0, options["A_log"], options["dt_bias"], options["read_indices"], options["write_indices"], checkpoints,
          checkpoint_every, checkpoint_starts)
    padding, rows = None, checkpoints
    if prefix_lens is not None:
        check_argument("prefix_lens", prefix_lens, checkpoint_starts.shape, OFFSETS, q.device)
        padding = _Padding(prefix_lens, cu_seqlens, q.shape[1], checkpoint_every)
        q, k, v, beta = (padding.spread(x) for x in (q, k, v, beta))
        g, cu_seqlens = padding.spread(g, neutral_gate), padding.cu_seqlens
    if indices is not None:
        check_tensor("checkpoint_state_indices", indices, 1)
        check_argument("checkpoint_state_indices", indices, indices.shape, OFFSETS, q.device)
        rows = checkpoints.new_empty((len(indices) + 1, *checkpoints.shape[1:]))
    o, final_state = forward(
        q, k, v, g, beta, out=None if padding else out, cu_seqlens=cu_seqlens, final_state=final_state,
        checkpoints=rows if indices is None else rows[:-1], checkpoint_every=checkpoint_every,
        checkpoint_starts=checkpoint_starts, **options)
    if padding:
        o = padding.gather(o, out)
    if indices is not None and len(indices) > 0 < len(checkpoints):
        wanted = _is_written(cu_seqlens, q.shape[1], checkpoint_starts, checkpoint_every, len(indices))
        _scatter(rows, wanted & (indices >= 0) & (indices < len(checkpoints)), checkpoints, indices)
    return o, final_state
