"""The benchmark's cells and their inputs. All systems get the same tensors; other layouts are made here, outside the timing."""

import functools
from dataclasses import dataclass

import torch

DIM = 128
SCALE = DIM**-0.5
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
    return lengths


def parse_heads(text):
    heads, heads_v = (int(x) for x in text.split("/"))
    if heads < 1 or heads_v % heads:
        raise ValueError(f"expected H/HV with HV a multiple of H, got {text}")
    return heads, heads_v


@dataclass
class Case:
    """q, k [1, T, H, 128], v [1, T, HV, 128], g and beta [1, T, HV] fp32, state [N, HV, K, V] fp32, cu32/cu64 [N + 1]."""

    heads: int
    heads_v: int
    label: str
    gates: str
    lengths: list
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    g: torch.Tensor
    beta: torch.Tensor
    state: torch.Tensor
    cu64: torch.Tensor

    @functools.cached_property
    def cu32(self):
        return self.cu64.int()

    @functools.cached_property
    def alpha(self):
        return self.g.exp()

    @functools.cached_property
    def state_v_first(self):
        return self.state.transpose(-1, -2).contiguous()


def make_case(heads_text, label, gates, seed=0):
    heads, heads_v = parse_heads(heads_text)
    lengths = parse_lengths(label)
    tokens = sum(lengths)
    generator = torch.Generator(device="cuda").manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, device="cuda")

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
    offsets = torch.tensor([0] + lengths).cumsum(0).cuda()
    return Case(heads, heads_v, label, gates, lengths, q, k, v, g, beta, state, offsets)
