"""What the tests of the package share: inputs, the recurrence in float64, the error measure."""

import os
from types import SimpleNamespace

import torch

if os.environ.get("GDN_TEST_CTYPES"):
    torch.__version__ = "2.9.1"  # which has no operators

DEVICE = "cpu" if os.environ.get("GDN_DRIVER") == "emu" else "cuda"
BOUNDS = {torch.bfloat16: 5e-3, torch.float16: 1e-3}  # of the relative Frobenius error


def make(lengths=(70,), heads=(1, 2), dims=(128, 128), dtype=torch.bfloat16, batch=None, seed=0):
    """q, k [B, T, H, K], v [B, T, HV, V], g, beta [B, T, HV], h0 [N, HV, K, V], cu_seqlens [N + 1]: one packed row of
    sequences of these lengths, or with `batch` that many rows of the one length, and cu_seqlens None."""
    generator = torch.Generator().manual_seed(seed)
    (heads, heads_v), (key_dim, value_dim) = heads, dims
    rows = (batch or 1, sum(lengths))

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    def directions(*shape):
        return torch.nn.functional.normalize(normal(*shape), dim=-1).to(dtype)

    g = torch.nn.functional.logsigmoid(normal(*rows, heads_v)) / 4
    g[..., 0] = 0
    case = SimpleNamespace(
        q=directions(*rows, heads, key_dim), k=directions(*rows, heads, key_dim),
        v=normal(*rows, heads_v, value_dim).to(dtype), g=g, beta=normal(*rows, heads_v).sigmoid(),
        h0=normal(batch or len(lengths), heads_v, key_dim, value_dim),
        cu_seqlens=None if batch else torch.tensor((0,) + tuple(lengths)).cumsum(0))
    for name, x in vars(case).items():
        setattr(case, name, x if x is None else x.to(DEVICE))
    return case


def inputs(case):
    return case.q, case.k, case.v, case.g, case.beta


def recurrence(q, k, v, g, beta, h0=None, cu_seqlens=None, scale=None, between=None):
    """o [B, T, HV, V] and the final state [N, HV, K, V], token by token, float64 on the CPU. A list `between` receives
    a list of each sequence: its states before token 0, 64, 128 ... and behind the last."""
    q, k, v, g, beta = (x.detach().cpu().double() for x in (q, k, v, g, beta))
    (batch, tokens), ratio = q.shape[:2], v.shape[2] // q.shape[2]
    q, k = (x.repeat_interleave(ratio, 2).flatten(0, 1) for x in (q, k))
    v, g, beta = (x.flatten(0, 1) for x in (v, g, beta))
    cuts = [row * tokens for row in range(batch + 1)] if cu_seqlens is None else cu_seqlens.tolist()
    scale = q.shape[-1]**-0.5 if scale is None else scale
    o, states = torch.zeros_like(v), []
    for n, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        state = v.new_zeros(v.shape[1], q.shape[-1], v.shape[-1]) if h0 is None else h0[n].detach().cpu().double()
        if between is not None:
            between.append([])
        for t in range(begin, end):
            if between is not None and (t - begin) % 64 == 0:
                between[-1].append(state)
            state = g[t].exp()[:, None, None] * state
            u = beta[t][:, None] * (v[t] - torch.einsum("hkv,hk->hv", state, k[t]))
            state = state + k[t][:, :, None] * u[:, None, :]
            o[t] = scale * torch.einsum("hkv,hk->hv", state, q[t])
        states.append(state)
        if between is not None:
            between[-1].append(state)
    return o.view(batch, tokens, *v.shape[1:]), torch.stack(states) if states else None


def error(got, wanted):
    """Relative Frobenius error; infinite where something is not finite."""
    got = got.detach().cpu().double()
    if not got.isfinite().all():
        return float("inf")
    return ((got - wanted).norm() / wanted.norm().clamp(min=1e-30)).item()


def poisoned(shape, dtype=torch.float32):
    return torch.full(shape, float("nan"), dtype=dtype, device=DEVICE)
