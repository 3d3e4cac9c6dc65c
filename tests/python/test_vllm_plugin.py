"""The plug-in of vLLM, against the package itself: entry point, choice, and the operator with the arguments of vLLM's
layer."""

import importlib.metadata
import inspect
import unittest
from types import SimpleNamespace
from unittest import mock

import torch

from case import error, inputs, make, poisoned, recurrence

from vllm.model_executor import custom_op
from vllm.model_executor.layers.mamba.gdn import qwen_gdn_linear_attn as layers

BOUND = 5e-3


def operator(**additional):
    """As the layer makes it; what else its configuration holds does not matter here."""
    config = SimpleNamespace(
        additional_config=additional, model_config=SimpleNamespace(hf_text_config=SimpleNamespace()))
    with mock.patch("vllm.config.get_current_vllm_config", return_value=config), \
            mock.patch.object(layers, "get_current_vllm_config", return_value=config), \
            mock.patch.object(custom_op.CustomOp, "dispatch_forward", return_value=None):
        for register in importlib.metadata.entry_points(group="vllm.general_plugins", name="gdnc"):
            register.load()()
        made = layers.ChunkGatedDeltaRule()
    custom_op.op_registry_oot.clear()
    return made


class Plugin(unittest.TestCase):
    def test_is_chosen_by_name(self):
        self.assertEqual(operator()._forward_method.__name__, "forward_native")
        self.assertEqual(operator(gdn_prefill_backend="triton")._forward_method.__name__, "forward_native")
        chosen = operator(gdn_prefill_backend="gdnc")
        self.assertIsInstance(chosen, layers.ChunkGatedDeltaRule)
        self.assertEqual(chosen._forward_method.__name__, "forward_gdnc")

    def test_takes_what_vllm_passes(self):
        theirs = list(inspect.signature(layers.ChunkGatedDeltaRule.forward_native).parameters)[:-1]
        ours = list(inspect.signature(operator(gdn_prefill_backend="gdnc").forward_gdnc).parameters)
        self.assertEqual(ours[:len(theirs) - 1], theirs[1:])

    def test_results(self):
        chosen = operator(gdn_prefill_backend="gdnc")
        case = make((30, 40))
        wanted, wanted_final = recurrence(*inputs(case), case.h0, case.cu_seqlens)
        call = dict(zip(("q", "k", "v", "g", "beta"), inputs(case)), initial_state=case.h0.mT.contiguous(),
                    output_final_state=True, cu_seqlens=case.cu_seqlens.int(), chunk_indices=None, chunk_offsets=None,
                    aiter_prefill_metadata=None)
        buffer = poisoned((80, 2, 128), torch.bfloat16)
        for options in dict(), dict(core_attn_out=buffer):
            for normalised in False, True:
                o, final = chosen(**call, use_qk_l2norm_in_kernel=normalised, **options)
                self.assertLess(error(o, wanted), BOUND)
                self.assertLess(error(final.mT, wanted_final), BOUND)
                self.assertEqual(final.dtype, torch.float32)
        call["initial_state"] = call["initial_state"].bfloat16()
        self.assertEqual(chosen(**call)[1].dtype, torch.bfloat16)
        self.assertIsNone(chosen(**call | {"output_final_state": False})[1])
        self.assertEqual(o.data_ptr(), buffer.data_ptr())
        self.assertTrue(buffer[70:].isnan().all())

    def test_another_version(self):
        from gdnc.plugins import vllm as plugin
        with mock.patch.dict("sys.modules", {layers.__name__: None}), \
                self.assertLogs(plugin.__name__, "WARNING") as log:
            plugin.register()
        self.assertIn("gdnc is no backend of this vLLM", log.output[0])


if __name__ == "__main__":
    unittest.main()
