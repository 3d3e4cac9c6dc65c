"""What is not served is refused with a sentence that names argument, expectation and value."""

import unittest

import torch

from case import DEVICE, inputs, make

import gdnc
from gdnc import flash_qla, flashinfer


class Refusals(unittest.TestCase):
    def refuse(self, kind, sentence, function=gdnc.forward, **changes):
        case = make((30, 40))
        arguments = dict(zip(("q", "k", "v", "g", "beta"), inputs(case)), cu_seqlens=case.cu_seqlens)
        for name, change in changes.items():
            arguments[name] = change(arguments.get(name)) if callable(change) else change
        with self.assertRaisesRegex(kind, sentence):
            function(**arguments)

    def test_types(self):
        self.refuse(TypeError, r"^q: expected a tensor, got list$", q=[1])
        self.refuse(TypeError, r"^g: expected a tensor, got NoneType$", g=None)
        self.refuse(TypeError, r"^q: expected torch.bfloat16 or torch.float16, got torch.float32$",
                    q=torch.Tensor.float)
        self.refuse(TypeError, r"^k: expected torch.bfloat16, got torch.float16$", k=torch.Tensor.half)
        self.refuse(TypeError, r"^v: expected torch.bfloat16, got torch.float32$", v=torch.Tensor.float)
        self.refuse(TypeError, r"^beta: expected .*float32 or .*, got torch.float64$", beta=torch.Tensor.double)
        self.refuse(TypeError, r"^cu_seqlens: expected torch.int32 or torch.int64, got torch.int16$",
                    cu_seqlens=torch.Tensor.short)
        self.refuse(TypeError, r"^initial_state: .*, got torch.float64$",
                    initial_state=torch.zeros(2, 2, 128, 128, dtype=torch.float64, device=DEVICE))
        self.refuse(TypeError, r"^out: expected torch.bfloat16, got torch.float32$",
                    out=torch.zeros(1, 70, 2, 128, device=DEVICE))

    def test_shapes(self):
        self.refuse(ValueError, r"^q: expected a tensor of rank 4, got shape \[70, 1, 128\]$", q=lambda x: x[0])
        self.refuse(ValueError, r"^k: expected shape \[1, 70, 1, 128\], got \[1, 69, 1, 128\]$", k=lambda x: x[:, 1:])
        self.refuse(ValueError, r"^v: expected shape \[1, 70, 2, 128\], got \[1, 60, 2, 128\]$", v=lambda x: x[:, 10:])
        self.refuse(ValueError, r"^g: expected shape \[1, 70, 2\], got \[1, 70, 1\]$", g=lambda x: x[..., :1])
        self.refuse(ValueError, r"^v: expected a number of heads that q's \(2\) divides, got 3$",
                    q=lambda x: x.expand(1, 70, 2, 128), v=lambda x: x[:, :, :1].expand(1, 70, 3, 128))
        self.refuse(ValueError, r"^initial_state: expected shape \[2, 2, 128, 128\], got \[3, 2, 128, 128\]$",
                    initial_state=torch.zeros(3, 2, 128, 128, device=DEVICE))
        self.refuse(ValueError, r"^cu_seqlens: expected a tensor of rank 1, got shape \[1, 3\]$",
                    cu_seqlens=lambda x: x[None])
        self.refuse(ValueError, r"^q: expected a batch of 1 with cu_seqlens, got 2$",
                    **{name: lambda x: torch.cat([x, x]) for name in ("q", "k", "v", "g", "beta")})

    def test_numbers(self):
        self.refuse(TypeError, r"^scale: expected a number, got str$", scale="x")
        self.refuse(TypeError, r"^split: expected an integer, got float$", split=1.5)
        self.refuse(TypeError, r"^checkpoint_every: expected an integer, got str$", checkpoint_every="x")
        for split in -1, 65, 2**32, 2**32 + 1, 2**70:
            self.refuse(ValueError, rf"^split: expected 0 to 64, got {split}$", split=split)
        self.refuse(ValueError, r"^q: expected a last dimension of at least 1, got shape \[1, 70, 1, 0\]$",
                    q=lambda x: x[..., :0], k=lambda x: x[..., :0])

    def test_cut(self):
        self.refuse(ValueError, r"^cut: expected one of auto, off, exact, fast, invariant, got half$", cut="half")
        self.refuse(ValueError, r"^cut: expected .*, got 1$", gdnc.chunk_gated_delta_rule, cut=1)

    def test_strides(self):
        def columns_apart(x):
            return torch.stack([x, x], -1)[..., 0]
        self.refuse(ValueError, r"^q: expected stride 1 in dimension 3, got 2$", q=columns_apart)
        self.refuse(ValueError, r"^beta: expected stride 1 in dimension 2, got 2$", beta=columns_apart)
        self.refuse(ValueError, r"^initial_state: expected stride 1 in dimension 3, got 128$",
                    initial_state=torch.zeros(2, 2, 128, 128, device=DEVICE).mT)
        self.refuse(RuntimeError, r"^q\.token_stride: expected a multiple of 8 elements \(16 bytes\), got 129$",
                    q=lambda x: torch.nn.functional.pad(x, (0, 1))[..., :128])
        self.refuse(RuntimeError, r"^k\.data: expected a multiple of 16 bytes, got 0x",
                    k=lambda x: torch.nn.functional.pad(x, (4, 4))[..., 4:132])
        self.refuse(RuntimeError, r"^o\.token_stride: expected at least 128 elements, .* is written twice, got 0$",
                    out=torch.zeros(1, 1, 2, 128, dtype=torch.bfloat16, device=DEVICE).expand(1, 70, 2, 128))

    def test_devices(self):
        other = "meta"
        self.refuse(ValueError, rf"^q: expected a tensor on {DEVICE}, got one on meta", q=lambda x: x.to(other))
        for name in "k", "v", "g", "beta", "cu_seqlens":
            self.refuse(ValueError, rf"^{name}: expected a tensor on {DEVICE}.* like q, got one on meta$",
                        **{name: lambda x: x.to(other)})

    def test_gradients(self):
        for name in "q", "k", "v", "g", "beta":
            self.refuse(NotImplementedError, rf"^{name}: expected no gradient to be asked for, .* requires_grad=True",
                        **{name: lambda x: x.clone().requires_grad_()})
        self.refuse(NotImplementedError, "^A_log: ", A_log=torch.zeros(2, device=DEVICE, requires_grad=True))
        case = make()
        with torch.no_grad():
            o, _ = gdnc.forward(case.q.requires_grad_(), *inputs(case)[1:])
        self.assertFalse(o.requires_grad)

    def test_fusions(self):
        per_head = torch.zeros(2, device=DEVICE)
        self.refuse(ValueError, "^double_beta: expected False without beta_logits, got True$", double_beta=True)
        self.refuse(ValueError, "^dt_bias: expected None without A_log, got a tensor$", dt_bias=per_head)
        self.refuse(ValueError, "^g_is_decay: expected False with A_log, got True$", g_is_decay=True, A_log=per_head)
        self.refuse(ValueError, r"^A_log: expected shape \[2\], got \[1\]$", A_log=per_head[:1])
        self.refuse(TypeError, "^dt_bias: expected .*float16, got torch.int64$", A_log=per_head,
                    dt_bias=per_head.long())

    def test_pools(self):
        pool, slots = torch.zeros(5, 2, 128, 128, device=DEVICE), torch.tensor([3, 1], device=DEVICE)
        fit = {"initial_state": pool, "final_state": pool, "read_indices": slots, "write_indices": slots}
        for name in "read_indices", "write_indices":
            self.refuse(TypeError, rf"^{name}: expected a tensor, got list$", **fit | {name: [0, 1]})
            self.refuse(TypeError, rf"^{name}: expected torch.int32 or torch.int64, got torch.float32$",
                        **fit | {"write_indices": None} | {name: slots.float()} if name == "read_indices" else
                        fit | {"read_indices": None, name: slots.float()})
            self.refuse(ValueError, rf"^{name}: expected shape \[2\], got \[3\]$",
                        **fit | {name: torch.tensor([0, 1, 2], device=DEVICE)})
            self.refuse(ValueError, rf"^{name}: expected a tensor on {DEVICE}.* like q, got one on meta$",
                        **fit | {name: slots.to("meta")})
            self.refuse(ValueError, rf"^{name}: expected stride 1 in dimension 0, got 2$",
                        **fit | {name: slots.repeat_interleave(2)[::2]})
        self.refuse(TypeError, r"^write_indices: expected torch.int64, got torch.int32$",
                    **fit | {"write_indices": slots.int()})
        self.refuse(ValueError, r"^read_indices: expected None without a tensor initial_state, got a tensor$",
                    **fit | {"initial_state": None})
        self.refuse(ValueError, r"^write_indices: expected None without a tensor final_state, got a tensor$",
                    **fit | {"final_state": None})
        self.refuse(ValueError, r"^final_state: expected a tensor or False with read_indices, got True$",
                    **fit | {"final_state": True})
        self.refuse(ValueError, r"^final_state: expected shape \[5, 2, 128, 128\], got \[4, 2, 128, 128\]$",
                    **fit | {"final_state": pool[:4].clone()})
        self.refuse(ValueError, r"^initial_state: expected shape \[5, 2, 128, 128\], got \[5, 3, 128, 128\]$",
                    **fit | {"initial_state": torch.zeros(5, 3, 128, 128, device=DEVICE)})
        self.refuse(RuntimeError, r"^final_state.sequence_stride: expected at least 32768 elements, .*, got 16384$",
                    **fit | {"final_state": torch.zeros(6 * 16384, device=DEVICE).as_strided(
                        (5, 2, 128, 128), (16384, 16384, 128, 1))})

    def test_checkpoints(self):
        rows, starts = torch.zeros(5, 2, 128, 128, device=DEVICE), torch.tensor([0, 1], device=DEVICE)
        fit = {"checkpoints": rows, "checkpoint_every": 64, "checkpoint_starts": starts}
        self.refuse(TypeError, r"^checkpoints: expected .*float16, got torch.float64$",
                    **fit | {"checkpoints": rows.double()})
        self.refuse(ValueError, r"^checkpoints: expected shape \[5, 2, 128, 128\], got \[5, 1, 128, 128\]$",
                    **fit | {"checkpoints": rows[:, :1]})
        self.refuse(ValueError, r"^checkpoints: expected a tensor on .* got one on meta$",
                    **fit | {"checkpoints": rows.to("meta")})
        self.refuse(ValueError, r"^checkpoint_starts: expected shape \[2\], got \[1\]$",
                    **fit | {"checkpoint_starts": starts[:1]})
        self.refuse(TypeError, r"^checkpoint_starts: expected torch.int32 or torch.int64, got torch.int16$",
                    **fit | {"checkpoint_starts": starts.short()})
        self.refuse(RuntimeError, r"^checkpoint_every: expected a multiple of 64 tokens, got 100$",
                    **fit | {"checkpoint_every": 100})
        self.refuse(RuntimeError, r"^checkpoint_starts: expected an address with cu_seqlens, got NULL$",
                    **fit | {"checkpoint_starts": None})

    def test_what_no_kernel_serves(self):
        self.refuse(RuntimeError, r"^expected a forward kernel for K=128 V=128 bf16 k-first split=5, got a bundle ",
                    split=5)
        self.refuse(RuntimeError, r"^expected a forward kernel for K=120 V=128 ",
                    q=lambda x: x[..., :120], k=lambda x: x[..., :120])
        self.refuse(RuntimeError, r"^scale: expected a finite number, got nan$", scale=float("nan"))

    def test_flash_linear_attention(self):
        fla = gdnc.chunk_gated_delta_rule
        self.refuse(NotImplementedError, "^cp_context: expected None, got object", fla, cp_context=object())
        self.refuse(ValueError, "^head_first: ", fla, head_first=True)
        self.refuse(ValueError, "^chunk_size: expected 16, 32 or 64, got 128$", fla, chunk_size=128)
        self.refuse(ValueError, "^A_log: expected a tensor with use_gate_in_kernel, got None$", fla,
                    use_gate_in_kernel=True)
        self.refuse(ValueError, "^allow_neg_eigval: ", fla, allow_neg_eigval=True)
        self.refuse(ValueError, "^transpose_state_layout: ", fla, state_v_first=True, transpose_state_layout=True)

    def test_flash_qla(self):
        self.refuse(NotImplementedError, "^cp_context: ", flash_qla.chunk_gated_delta_rule, cp_context=object())
        self.refuse(ValueError, "^head_first: ", flash_qla.chunk_gated_delta_rule, head_first=True)
        self.refuse(TypeError, "^k: expected a tensor, got NoneType$", flash_qla.chunk_gated_delta_rule_fwd,
                    output_h=True, k=None)

    def test_flashinfer(self):
        entry = flashinfer.chunk_gated_delta_rule
        packed = {name: lambda x: x[0] for name in ("q", "k", "v", "g", "beta")}
        self.refuse(ValueError, "^q: expected a tensor of rank 3, got shape ", entry)
        self.refuse(TypeError, "^v: expected a tensor, got NoneType$", entry, **packed | {"v": None})
        self.refuse(ValueError, "^cu_seqlens: expected a tensor, got None$", entry, **packed | {"cu_seqlens": None})
        self.refuse(ValueError, "^gate_domain: expected 'linear' or 'log', got 'ln'$", entry, **packed,
                    gate_domain="ln")
        slots = torch.arange(2, device=DEVICE)
        for name in "prefix_lens", "checkpoint_state_indices":
            self.refuse(ValueError, rf"^{name}: expected None without checkpoint_every_n_tokens, got a tensor$", entry,
                        **packed, **{name: slots})
        checkpoints = packed | {
            "checkpoint_every_n_tokens": 64, "state_checkpoints": torch.zeros(5, 2, 128, 128, device=DEVICE),
            "checkpoint_cu_starts": slots, "checkpoint_state_indices": slots, "prefix_lens": slots}
        for every in -64, 100:
            self.refuse(ValueError, rf"^checkpoint_every_n_tokens: expected a multiple of 64, got {every}$", entry,
                        **checkpoints | {"checkpoint_every_n_tokens": every})
        self.refuse(ValueError, r"^prefix_lens: expected shape \[2\], got \[1\]$", entry,
                    **checkpoints | {"prefix_lens": slots[:1]})
        for name in "prefix_lens", "checkpoint_state_indices":
            self.refuse(TypeError, rf"^{name}: expected torch.int32 or torch.int64, got torch.float32$", entry,
                        **checkpoints | {name: slots.float()})
            self.refuse(TypeError, rf"^{name}: expected a tensor, got list$", entry, **checkpoints | {name: [0, 1]})
            self.refuse(ValueError, rf"^{name}: expected a tensor on {DEVICE}.* like q, got one on meta$", entry,
                        **checkpoints | {name: slots.to("meta")})
        self.refuse(ValueError, r"^checkpoint_state_indices: expected a tensor of rank 1, got shape \[1, 2\]$", entry,
                    **checkpoints | {"checkpoint_state_indices": slots[None]})
        self.refuse(ValueError, r"^checkpoint_starts: expected shape \[2\], got \[1\]$", entry,
                    **checkpoints | {"checkpoint_cu_starts": slots[:1]})
        self.refuse(ValueError, r"^k: expected shape \[1, 70, 1, 128\], got \[1, 69, 1, 128\]$", entry,
                    **checkpoints | {"k": lambda x: x[0, 1:]})
        self.refuse(ValueError, "^output_state_indices: expected None without state_indices, got a tensor$", entry,
                    **packed, output_state_indices=slots)
        self.refuse(ValueError, "^output_state: expected a pool with state_indices and output_final_state, got None$",
                    entry, **packed, state_indices=slots, output_final_state=True)
        self.refuse(ValueError, "^state_checkpoints and checkpoint_cu_starts: expected tensors with .*, got None$", entry,
                    **packed, checkpoint_every_n_tokens=64)


if __name__ == "__main__":
    unittest.main()
