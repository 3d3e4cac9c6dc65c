"""Models of transformers, whose chunked rule is FLA's where that is installed, and so ours: logits and states of a
prompt, against transformers' own path of torch."""

import inspect
import unittest
from unittest import mock

import torch
from transformers import Qwen3_5TextConfig, Qwen3NextConfig
from transformers.cache_utils import LinearAttentionLayer
from transformers.models.qwen3_5 import modeling_qwen3_5
from transformers.models.qwen3_next import modeling_qwen3_next

from case import DEVICE, error

from gdnc.plugins import fla as plugin

SIZES = dict(vocab_size=64, hidden_size=128, intermediate_size=64, num_hidden_layers=4, num_attention_heads=2,
             num_key_value_heads=1, head_dim=64, linear_num_key_heads=1, linear_num_value_heads=2,
             linear_key_head_dim=128, linear_value_head_dim=128, pad_token_id=0)
MODELS = {
    "qwen3_next": (modeling_qwen3_next, modeling_qwen3_next.Qwen3NextForCausalLM,
                   Qwen3NextConfig(num_experts=2, num_experts_per_tok=2, moe_intermediate_size=64,
                                   shared_expert_intermediate_size=64, **SIZES)),
    "qwen3_5": (modeling_qwen3_5, modeling_qwen3_5.Qwen3_5ForCausalLM, Qwen3_5TextConfig(**SIZES))}


def run(model, inputs):
    """Logits and the recurrent states that are kept, in float64."""
    with torch.no_grad():
        result = model(**inputs, use_cache=True)
    states = [layer.recurrent_states[0] for layer in result.past_key_values.layers
              if isinstance(layer, LinearAttentionLayer)]
    return result.logits.double(), torch.stack(states).double()


class Models(unittest.TestCase):
    def check(self, name, inputs, shown=...):
        """No further from the model in float32 than with transformers' own path of torch."""
        module, model, config = MODELS[name]
        torch.manual_seed(0)
        model = model(config).to(DEVICE, torch.bfloat16).eval()
        with mock.patch.object(plugin, "launch", wraps=plugin.launch) as launch:
            ours = run(model, inputs)
        self.assertEqual(launch.call_count, config.layer_types.count("linear_attention"))
        with mock.patch.object(module, "torch_chunk_gated_delta_rule",
                               inspect.unwrap(module.torch_chunk_gated_delta_rule)):
            theirs, exact = run(model, inputs), run(model.float(), inputs)
        for mine, other, wanted in zip(ours, theirs, exact):
            if mine.dim() == 3:
                mine, other, wanted = mine[shown], other[shown], wanted[shown]
            self.assertLess(error(mine, wanted), 1.2 * error(other, wanted))

    def test_prompts(self):
        for name in MODELS:
            for length in 2, 70:
                with self.subTest(model=name, length=length):
                    self.check(name, dict(input_ids=torch.randint(1, 64, (2, length), device=DEVICE)))

    def test_padded_prompts(self):
        """Padding on the left, which the model masks."""
        mask = torch.ones(2, 70, dtype=torch.int64, device=DEVICE)
        mask[1, :30] = 0
        tokens = torch.randint(1, 64, (2, 70), device=DEVICE)
        self.check("qwen3_next", dict(input_ids=tokens, attention_mask=mask), mask.bool())

    def test_training(self):
        """Is handed back: the loss has a gradient."""
        module, model, config = MODELS["qwen3_next"]
        model = model(config).to(DEVICE, torch.bfloat16)
        backend = plugin.Backend()
        with mock.patch.object(module, "torch_chunk_gated_delta_rule") as rule:
            rule.side_effect = lambda q, k, v, **call: (v * 1, None)
            tokens = torch.ones(1, 70, dtype=torch.int64, device=DEVICE)
            model(input_ids=tokens, use_cache=False).logits.float().sum().backward()
        for call in rule.call_args_list:
            accepted, reason = backend.verify("chunk_gated_delta_rule", *call.args, **call.kwargs)
            self.assertFalse(accepted)
            self.assertRegex(reason, "expected no gradient to be asked for")


if __name__ == "__main__":
    unittest.main()
