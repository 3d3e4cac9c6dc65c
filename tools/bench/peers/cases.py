"""The benchmark's cells and their inputs. All systems get the same tensors; other layouts are made here, outside the
timing."""

import functools
from dataclasses import dataclass

DIM = 128
SCALE = DIM**-0.5
CHUNK = 64
MIXED = [1, 7, 63, 64, 65, 1000, 4096, 16384]

ALL_LENGTHS = ["1x8192", "1x2048", "1x4096", "1x16384", "1x32768", "1x65536", "4x8192", "8x4096", "16x2048", "32x1024",
               "256x128", "mixed"]  # 1x8192 first: some systems tune themselves on the first lengths they see
CORE_LENGTHS = ["1x8192", "1x32768", "4x8192", "16x2048", "mixed"]
CELLS = {"16/64": ALL_LENGTHS, "16/32": ALL_LENGTHS, "2/8": ALL_LENGTHS, "16/48": CORE_LENGTHS, "8/32": CORE_LENGTHS,
         "8/16": CORE_LENGTHS, "4/16": CORE_LENGTHS, "2/4": CORE_LENGTHS, "16/16": CORE_LENGTHS}
OPERATIONS = {"quarter": "forward", "decay": "forward_all_decay"}


def parse_lengths(text):
    if text == "mixed":
        return list(MIXED)
    lengths = []
    for part in text.split("+"):
        count, _, length = part.rpartition("x")
        lengths += [int(length)] * int(count or 1)
    if not lengths or min(lengths) < 1:
        raise ValueError(f"expected lengths of at least 1, got {text}")
    return lengths


def parse_heads(text):
    heads, heads_v = (int(x) for x in text.split("/"))
    if heads < 1 or heads_v < 1 or heads_v % heads:
        raise ValueError(f"expected H/HV with HV a multiple of H, got {text}")
    return heads, heads_v


def cells(heads=None, lengths=None, named=None):
    """(heads, lengths) of each cell: those that are `named` "16/64:4x8192", or all of the benchmark's with these heads
    and, where they are given, these lengths. Heads that the benchmark does not have get its core lengths."""
    if named:
        found = [tuple(name.split(":")) for name in named]
        for name, cell in zip(named, found):
            if len(cell) != 2:
                raise ValueError(f"expected a cell as 16/64:4x8192, got {name}")
    else:
        found = [(h, l) for h in heads or CELLS for l in lengths or CELLS.get(h, CORE_LENGTHS)]
    for h, l in found:
        parse_heads(h)
        parse_lengths(l)
    return found


def chunks(heads, lengths):
    """64-token chunks over all v-heads."""
    return parse_heads(heads)[1] * sum(-(-length // CHUNK) for length in parse_lengths(lengths))


def moved_bytes(heads, lengths):
    """What a call must read and write: q, k, v, o in bf16, g, beta and both states in fp32, each once."""
    (h, hv), lengths = parse_heads(heads), parse_lengths(lengths)
    return sum(lengths) * (4 * DIM * (h + hv) + 8 * hv) + 8 * len(lengths) * hv * DIM * DIM


@dataclass
class Case:
    """q, k [1, T, H, 128], v [1, T, HV, 128], g and beta [1, T, HV] fp32, state [N, HV, K, V] fp32, cu32 and cu64
    [N + 1]."""

    heads: int
    heads_v: int
    label: str
    gates: str
    lengths: list
    q: object
    k: object
    v: object
    g: object
    beta: object
    state: object
    cu64: object

    @functools.cached_property
    def cu32(self):
        return self.cu64.int()

    @functools.cached_property
    def alpha(self):
        return self.g.exp()

    @functools.cached_property
    def state_v_first(self):
        return self.state.transpose(-1, -2).contiguous()


def make_case(heads_text, label, gates, seed=0, device="cuda"):
    import torch

    heads, heads_v = parse_heads(heads_text)
    lengths = parse_lengths(label)
    tokens = sum(lengths)
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, device=device)

    def directions(*shape):
        return torch.nn.functional.normalize(normal(*shape), dim=-1).bfloat16()

    q = directions(1, tokens, heads, DIM)
    k = directions(1, tokens, heads, DIM)
    v = normal(1, tokens, heads_v, DIM).bfloat16()
    g = torch.nn.functional.logsigmoid(normal(1, tokens, heads_v)) / 16
    if gates == "quarter":
        g[..., 3::4] = 0
    beta = normal(1, tokens, heads_v).sigmoid()
    state = 0.1 * normal(len(lengths), heads_v, DIM, DIM)
    offsets = torch.tensor([0] + lengths).cumsum(0).to(device)
    return Case(heads, heads_v, label, gates, lengths, q, k, v, g, beta, state, offsets)


def reference(case, heads):
    """o [T, len(heads), V] and states [N, len(heads), K, V] of these v-heads, token by token in float64. All sequences
    go on at once."""
    import torch

    ratio = case.heads_v // case.heads
    q, k = (x[0][:, [h // ratio for h in heads]].double() for x in (case.q, case.k))
    v, decay, beta = case.v[0][:, heads].double(), case.g[0][:, heads].double().exp(), case.beta[0][:, heads].double()
    order = sorted(range(len(case.lengths)), key=lambda n: -case.lengths[n])
    begins = case.cu64[:-1][order]
    states, o = case.state[order][:, heads].double(), torch.empty_like(v)
    alive = len(order)
    for t in range(max(case.lengths)):
        while case.lengths[order[alive - 1]] <= t:
            alive -= 1
        at, s = begins[:alive] + t, states[:alive]
        s *= decay[at][..., None, None]
        u = beta[at][..., None] * (v[at] - (k[at][..., None, :] @ s)[..., 0, :])
        s += k[at][..., None] * u[..., None, :]
        o[at] = SCALE * (q[at][..., None, :] @ s)[..., 0, :]
    final = torch.empty_like(states)
    final[order] = states
    return o, final
