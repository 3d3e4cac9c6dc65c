"""The plug-in of SGLang, against the package itself: entry point, choice, and the kernel with the arguments of SGLang's
layer."""

import importlib.metadata
import unittest
from types import SimpleNamespace
from unittest import mock

import torch

from case import error, inputs, make, recurrence

from sglang.srt.arg_groups import choices
from sglang.srt.layers.attention.linear import gdn_backend
from sglang.srt.layers.attention.linear.kernels.kernel_backend import LinearAttnKernelBase
from sglang.srt.layers.attention.linear.utils import LinearAttnKernelBackend
from sglang.srt.plugins import hook_registry

BOUND = 5e-3


class Triton(LinearAttnKernelBase):
    """Stands for SGLang's own kernel, which needs a GPU."""

    def decode(self, *tensors, **options):
        return "decoded"

    def extend(self, *tensors, **options):
        raise AssertionError("SGLang's own")


def dispatcher(decode, prefill):
    """As SGLang makes it for these options of the command line."""
    options = SimpleNamespace(linear_attn_prefill_backend=prefill, linear_attn_decode_backend=decode,
                              linear_attn_backend="triton")
    with mock.patch("sglang.srt.runtime_context.get_exec", return_value=SimpleNamespace(mamba=options)), \
            mock.patch.object(gdn_backend, "TritonGDNKernel", Triton):
        return gdn_backend.GDNKernelDispatcher(LinearAttnKernelBackend(decode), LinearAttnKernelBackend(prefill))


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for register in importlib.metadata.entry_points(group="sglang.srt.plugins", name="gdnc"):
            register.load()()
        hook_registry.HookRegistry.apply_hooks()

    def test_is_chosen_by_name(self):
        self.assertIn("gdnc", choices.LINEAR_ATTN_KERNEL_BACKEND_CHOICES)
        self.assertIsInstance(dispatcher("triton", "triton").extend_kernel, Triton)
        with self.assertRaisesRegex(ValueError, "Unsupported GDN prefill backend"):
            dispatcher("triton", "another")
        for decode in "triton", "gdnc":
            chosen = dispatcher(decode, "gdnc")
            self.assertEqual(type(chosen.extend_kernel).__name__, "GdncKernel")
            self.assertTrue(chosen.extend_uses_state_checkpoints)
            self.assertIsInstance(chosen.decode_kernel, Triton)
            self.assertEqual(chosen.extend_kernel.decode(), "decoded")

    def test_results(self):
        """A pool with slots to spare, one sequence without a slot, and checkpoints, as SGLang numbers them."""
        case = make((130, 40, 70))
        unit = torch.nn.functional.normalize
        q, k, v, g, beta = case.q * 3, case.k * 2, case.v, case.g, case.beta
        slots = torch.tensor([3, -1, 0], dtype=torch.int32)
        pool = torch.randn(5, 2, 128, 128)
        before = pool.clone()
        states = torch.stack([before[3], torch.zeros_like(before[0]), before[0]]).mT
        wanted, final = recurrence(unit(q.float(), dim=-1), unit(k.float(), dim=-1), v, g, beta, states,
                                   case.cu_seqlens)
        starts = torch.tensor([0, 2, 2, 3])
        call = dict(q=q, k=k, v=v, g=g, beta=beta, cache_indices=slots, query_start_loc=case.cu_seqlens.int(),
                    layer_id=0, extend_prefix_lens=None, track_state=None, track_chunk_idx=None)
        chosen = dispatcher("triton", "gdnc")
        o, _, none = chosen.extend(**call, ssm_states=pool, inplace_update=False)
        self.assertIsNone(none)
        self.assertTrue(torch.equal(pool, before))
        output = torch.empty_like(v)
        o, last, rows = chosen.extend(
            **call, ssm_states=pool, output=output, state_checkpoint_cu_starts=starts, num_state_checkpoints=3,
            state_checkpoint_every_n_tokens=64)
        self.assertIsNone(last)
        self.assertEqual(o.data_ptr(), output.data_ptr())
        self.assertLess(error(o, wanted), BOUND)
        self.assertLess(error(pool[[3, 0]].mT, final[[0, 2]]), BOUND)
        self.assertTrue(torch.equal(pool[[1, 2, 4]], before[[1, 2, 4]]))
        self.assertEqual(rows.shape, (1, 3, 2, 128, 128))
        for row, (sequence, tokens) in enumerate(((0, 64), (0, 128), (2, 64))):
            begin = case.cu_seqlens[sequence].item()
            part = (x[:, begin:begin + tokens] for x in (unit(q.float(), dim=-1), unit(k.float(), dim=-1), v, g, beta))
            self.assertLess(error(rows[0, row].mT, recurrence(*part, states[sequence:sequence + 1])[1][0]), BOUND)


if __name__ == "__main__":
    unittest.main()
