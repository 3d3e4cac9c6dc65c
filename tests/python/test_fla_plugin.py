"""The backend of flash-linear-attention, against the package itself: what it serves, and what it hands back."""

import inspect
import os
import unittest
from types import SimpleNamespace
from unittest import mock

import torch
from torch.nn import functional

from case import DEVICE, error, inputs, make, recurrence

import fla
import fla.ops.gated_delta_rule.chunk as chunk
from fla.layers import GatedDeltaNet
from fla.layers import gated_deltanet as layers

from gdnc.plugins import fla as plugin

BOUND = 5e-3

chunk_gated_delta_rule = chunk.chunk_gated_delta_rule
if fla.__version__ < "0.6":  # there torch.compiler.disable looks through the dispatcher, which no call meets then
    chunk_gated_delta_rule = chunk.dispatch("gated_delta_rule")(inspect.unwrap(chunk_gated_delta_rule))


def reference(q, k, v, g, beta, A_log, dt_bias, allow_neg_eigval=False, cu_seqlens=None, **flags):
    """What the layer asks for, in float64: all fusions."""
    q, k = (x.double() / (x.double().square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    g = -A_log.double().exp() * functional.softplus(g.double() + dt_bias)
    beta = (1 + allow_neg_eigval) * beta.double().sigmoid()
    o, state = recurrence(q, k, v, g, beta, cu_seqlens=cu_seqlens)
    return o.to(v), state.mT.to(v.device)


def convolution(x, weight, bias=None, **others):
    """FLA's, without its kernels, which no CPU runs."""
    x = functional.pad(x.mT, (weight.shape[1] - 1, 0))
    return functional.silu(functional.conv1d(x, weight[:, None], bias, groups=len(weight))).mT.contiguous(), None


def layer(**options):
    """FLA's layer of one k-head, its norm without its kernels."""
    torch.manual_seed(0)
    made = GatedDeltaNet(hidden_size=128, expand_v=1, head_dim=128, num_heads=1, **options)
    made.o_norm.forward = lambda o, gate: functional.rms_norm(o, o.shape[-1:]) * functional.silu(gate)
    return made.to(DEVICE, torch.bfloat16).eval()


class Serves(unittest.TestCase):
    def setUp(self):
        patches = (mock.patch.object(chunk.ChunkGatedDeltaRuleFunction, "apply", side_effect=AssertionError("FLA's")),
                   mock.patch.object(layers, "causal_conv1d", convolution))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def test_function(self):
        case = make((30, 0, 40))
        wanted, wanted_final = recurrence(*inputs(case), case.h0, case.cu_seqlens, 0.1)
        o, final = chunk_gated_delta_rule(*inputs(case), 0.1, case.h0, True, cu_seqlens=case.cu_seqlens, ignored=1)
        self.assertLess(error(o, wanted), BOUND)
        self.assertLess(error(final, wanted_final), BOUND)

    def test_any_strides(self):
        """FLA takes them, so that layers rely on it."""
        def strided(x):
            return x.transpose(1, 2).contiguous().transpose(1, 2)

        def columns_apart(x):
            return torch.stack([x, x], -1)[..., 0]

        def misaligned(x):
            return functional.pad(x, (4, 4))[..., 4:-4]

        case = make(batch=2)
        wanted, _ = chunk_gated_delta_rule(*inputs(case))
        for change in strided, columns_apart, misaligned:
            with self.subTest(change=change.__name__):
                got, _ = chunk_gated_delta_rule(*map(change, inputs(case)))
                self.assertTrue(torch.equal(got, wanted))

    def check_layer(self, made, **options):
        x = torch.randn(2, 70, 128, device=DEVICE).bfloat16()
        calls = []

        def record(**call):
            calls.append(call)
            return chunk_gated_delta_rule(**call)

        with torch.no_grad():
            with mock.patch.object(layers, "chunk_gated_delta_rule", record):
                got = made(x, **options)[0]
            with mock.patch.object(layers, "chunk_gated_delta_rule", reference):
                wanted = made(x, **options)[0]
        self.assertLess(error(got, wanted.double()), 1e-2)
        return calls[0]

    def test_layer(self):
        """All three fusions at once, with q, k and v as views of what one convolution writes."""
        for options in dict(num_v_heads=2), dict(allow_neg_eigval=True):
            call = self.check_layer(layer(**options))
            self.assertTrue(call["use_qk_l2norm_in_kernel"] and call["use_beta_sigmoid_in_kernel"] and
                            call["use_gate_in_kernel"] and call["state_v_first"])
            self.assertFalse(call["q"].is_contiguous())

    def test_layer_of_a_padded_batch(self):
        mask = torch.ones(2, 70, dtype=torch.int64, device=DEVICE)
        mask[1, :40] = 0
        call = self.check_layer(layer(use_short_conv=False), attention_mask=mask)
        self.assertEqual(call["cu_seqlens"].tolist(), [0, 70, 100])


class HandsBack(unittest.TestCase):
    """What is not served reaches FLA's own function, and nothing of ours is launched."""

    def hand_back(self, reason, *more, **changes):
        case = make((30, 40))
        call = dict(zip(("q", "k", "v", "g", "beta"), inputs(case)), cu_seqlens=case.cu_seqlens)
        for name, change in changes.items():
            call[name] = change(call[name]) if callable(change) else change
        accepted, said = plugin.Backend().verify("chunk_gated_delta_rule", *more, **call)
        self.assertFalse(accepted)
        self.assertRegex(said, reason)
        with mock.patch.object(chunk.ChunkGatedDeltaRuleFunction, "apply", return_value=("o", "state")) as theirs:
            self.assertEqual(chunk_gated_delta_rule(**call), ("o", "state"))
        theirs.assert_called_once()

    def test_gradients(self):
        for name in "q", "k", "v", "g", "beta":
            self.hand_back(f"^{name}: expected no gradient", **{name: lambda x: x.clone().requires_grad_()})
        parameter = torch.nn.Parameter(torch.zeros(2, device=DEVICE))
        self.hand_back("^A_log: expected no gradient", use_gate_in_kernel=True, A_log=parameter)
        self.hand_back("^initial_state: expected no gradient",
                       initial_state=torch.zeros(2, 2, 128, 128, device=DEVICE, requires_grad=True))

    def test_training_of_a_layer(self):
        """Its parameters want gradients, whatever its input wants."""
        x = torch.randn(1, 70, 128, device=DEVICE).bfloat16()
        with mock.patch.object(chunk.ChunkGatedDeltaRuleFunction, "apply") as theirs, \
                mock.patch.object(layers, "causal_conv1d", convolution):
            theirs.side_effect = lambda q, k, v, *others: (v * 1, None)
            with mock.patch.object(layers, "chunk_gated_delta_rule", chunk_gated_delta_rule):
                layer().train()(x)[0].float().sum().backward()
        theirs.assert_called_once()

    def test_context_parallelism(self):
        offsets = torch.tensor([0, 30, 70], device=DEVICE)
        context = SimpleNamespace(cu_seqlens=offsets, cu_seqlens_cpu=None)
        self.hand_back("^cp_context: expected None", cp_context=context)

    def test_dtypes_and_dimensions(self):
        single = {name: torch.Tensor.float for name in ("q", "k", "v")}
        self.hand_back("^q: expected torch.bfloat16 or torch.float16, got torch.float32$", **single)
        narrow = {name: lambda x: x[..., :32] for name in ("q", "k", "v")}
        self.hand_back("^expected a forward kernel for K=32 V=32 ", **narrow)

    def test_positions_that_versions_disagree_on(self):
        accepted, said = plugin.Backend().verify("chunk_gated_delta_rule", *[None] * 15)
        self.assertEqual((accepted, said), (False, "expected at most 14 positional arguments, got 15"))

    def test_switched_off(self):
        case = make()
        for value, theirs in ("0", 1), ("1", 0):
            with mock.patch.dict(os.environ, FLA_GDNC=value), \
                    mock.patch.object(chunk.ChunkGatedDeltaRuleFunction, "apply", return_value=(1, 2)) as apply:
                chunk_gated_delta_rule(*inputs(case))
                self.assertEqual(apply.call_count, theirs)


if __name__ == "__main__":
    unittest.main()
