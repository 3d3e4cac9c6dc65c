"""What callers of the low-level forward keep of each chunk, with torch's operators; nothing is read on the host."""

from __future__ import annotations

import torch

from ._check import check_tensor

CHUNK = 64


def _rows(tokens: int, cu_seqlens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of the chunks of packed sequences: [C, 64] token numbers, and which of them exist. C bounds the number of
    chunks from above, so that it need not be read from the device."""
    begin, end = cu_seqlens[:-1].long(), cu_seqlens[1:].long()
    chunks = (end - begin + CHUNK - 1) // CHUNK
    last = chunks.cumsum(0)
    index = torch.arange(tokens // CHUNK + len(begin), device=cu_seqlens.device)
    sequence = torch.searchsorted(last, index, right=True).clamp(max=len(begin) - 1)
    rows = begin[sequence] + (index - (last - chunks)[sequence]) * CHUNK
    rows = rows[:, None] + torch.arange(CHUNK, device=rows.device)
    return rows, (rows < end[sequence][:, None]) & (index < last[-1])[:, None]


def states(k: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor | None,
           v_first: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Room for the state that enters each chunk, of k's dtype: [B, NT, HV, K, V] or [B, NT, HV, V, K]; and of packed
    sequences the row that each begins at."""
    check_tensor("k", k, 4)
    check_tensor("v", v, 4)
    (batch, tokens), matrix = k.shape[:2], (v.shape[3], k.shape[3]) if v_first else (k.shape[3], v.shape[3])
    if cu_seqlens is None:
        return k.new_empty(batch, (tokens + CHUNK - 1) // CHUNK, v.shape[2], *matrix), None
    check_tensor("cu_seqlens", cu_seqlens, 1)
    chunks = (cu_seqlens.diff() + CHUNK - 1) // CHUNK
    return k.new_empty(1, tokens // CHUNK + len(chunks), v.shape[2], *matrix), chunks.cumsum(0) - chunks


def prepare(k: torch.Tensor, g: torch.Tensor, beta: torch.Tensor,
            cu_seqlens: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Of k [B, T, H, K], g and beta [B, T, HV]: the sums of g within chunks, [B, T, HV] float32, and the rows of
    (I + strict_tril(diag(beta) K K^T))^-1 of each chunk, [B, T, HV, 64] of k's dtype. Both are zero behind the last
    sequence."""
    batch, tokens, heads_v = g.shape
    g_cumsum = g.new_zeros(batch * tokens + 1, heads_v, dtype=torch.float32)  # the last row takes what does not exist
    inverse = k.new_zeros(batch * tokens + 1, heads_v, CHUNK)
    if cu_seqlens is None:
        cu_seqlens = torch.arange(batch + 1, device=k.device) * tokens
    if batch * tokens > 0 and len(cu_seqlens) > 1:
        rows, exist = _rows(batch * tokens, cu_seqlens)
        source, target = rows.where(exist, 0), rows.where(exist, batch * tokens)
        keys, sums, strength = (x.flatten(0, 1)[source].float() for x in (k, g, beta))
        strength = (strength * exist[..., None]).transpose(1, 2)[..., None]  # [C, HV, 64, 1]
        products = torch.einsum("cihk,cjhk->chij", keys, keys).repeat_interleave(heads_v // k.shape[2], 1)
        eye = torch.eye(CHUNK, device=k.device).expand_as(products)
        solved = torch.linalg.solve_triangular((strength * products).tril(-1), eye, upper=False, unitriangular=True)
        g_cumsum[target] = sums.cumsum(1)
        inverse[target] = solved.transpose(1, 2).to(k.dtype)
    return g_cumsum[:-1].view(g.shape), inverse[:-1].view(batch, tokens, heads_v, CHUNK)
