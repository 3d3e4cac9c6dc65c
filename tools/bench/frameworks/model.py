"""A Qwen3-Next-shaped model of transformers with random weights, on our kernels and on FLA's.

Noise is how far logits on FLA's kernels lie from those of the same model in float32 on transformers' own path of torch,
the largest over all prompts up to --exact-tokens. Logits of ours and FLA's may differ by twice that, at every position;
greedy tokens may differ from where on FLA's two best logits lie so close. Prompts of each length alone, and batches,
padded and packed. Exit code: 0 agrees, 3 no GPU or package, 4 differs.
"""

import argparse
import inspect
import os
import sys
from unittest import mock

import torch

DEVICE, VOCABULARY = "cuda", 4096


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1, 2, 63, 64, 65, 1000, 4096, 16384])
    parser.add_argument("--batch-lengths", type=int, nargs="+", default=[1, 63, 200, 1000, 3000])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--heads", type=int, nargs=2, default=[16, 32], help="k-heads and v-heads of the rule")
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--exact-tokens", type=int, default=4096, help="longest prompt that is run in float32 as well")
    return parser.parse_args()


def make_model(options):
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM
    config = Qwen3NextConfig(
        vocab_size=VOCABULARY, hidden_size=options.hidden, num_hidden_layers=options.layers, num_attention_heads=16,
        num_key_value_heads=2, head_dim=128, linear_num_key_heads=options.heads[0],
        linear_num_value_heads=options.heads[1], linear_key_head_dim=128, linear_value_head_dim=128,
        # All experts are taken, so that no rounding changes the choice.
        num_experts=4, num_experts_per_tok=4, moe_intermediate_size=512, shared_expert_intermediate_size=512,
        pad_token_id=0, eos_token_id=None)
    torch.manual_seed(0)
    return Qwen3NextForCausalLM(config).to(DEVICE, torch.bfloat16).eval()


class Comparison:
    def __init__(self, model, options):
        self.model, self.options, self.noise, self.failures = model, options, 0.0, 0

    def logits(self, kernels, shown=..., **inputs):
        os.environ["FLA_GDNC"] = "1" if kernels == "gdnc" else "0"
        return self.model(**inputs, use_cache=False).logits[shown].float()

    def exact(self, tokens):
        from transformers.models.qwen3_next import modeling_qwen3_next as module
        rule = inspect.unwrap(module.torch_chunk_gated_delta_rule)
        model = self.model.float()
        try:
            with mock.patch.object(module, "torch_chunk_gated_delta_rule", rule):
                return self.logits("fla", input_ids=tokens)
        finally:
            model.bfloat16()

    def report(self, what, ours, theirs):
        """The largest difference of a logit over all positions: at most twice the noise, which both have."""
        worst = (ours - theirs).abs().max().item()
        agrees = worst <= 2 * self.noise
        self.failures += not agrees
        print(f"{what}: logits differ by {worst:.3f}, noise {self.noise:.3f}{'' if agrees else '  DIFFERS'}",
              flush=True)

    def measure_noise(self, lengths):
        for length in lengths:
            tokens = torch.randint(1, VOCABULARY, (1, length), device=DEVICE)
            exact = self.exact(tokens)
            theirs, ours = ((self.logits(name, input_ids=tokens) - exact).abs().max().item()
                            for name in ("fla", "gdnc"))
            self.noise = max(self.noise, theirs)
            print(f"prompt of {length}: logits from those in float32, fla {theirs:.3f}, gdnc {ours:.3f}, "
                  f"their deviation {exact.std().item():.3f}", flush=True)

    def prompts(self):
        for length in self.options.lengths:
            tokens = torch.randint(1, VOCABULARY, (1, length), device=DEVICE)
            self.report(f"prompt of {length}", *(self.logits(name, input_ids=tokens) for name in ("gdnc", "fla")))

    def batches(self):
        lengths, longest = self.options.batch_lengths, max(self.options.batch_lengths)
        tokens = torch.randint(1, VOCABULARY, (len(lengths), longest), device=DEVICE)
        mask = torch.arange(longest, device=DEVICE) >= longest - torch.tensor(lengths, device=DEVICE)[:, None]
        inputs = dict(input_ids=tokens, attention_mask=mask.long())
        self.report(f"padded {lengths}", *(self.logits(name, mask, **inputs) for name in ("gdnc", "fla")))
        offsets = torch.tensor([0, *lengths], device=DEVICE).cumsum(0).int()
        positions = torch.cat([torch.arange(length, device=DEVICE) for length in lengths])
        packed = dict(input_ids=tokens[mask][None], position_ids=positions[None],
                      cu_seq_lens_q=offsets, cu_seq_lens_k=offsets, max_length_q=longest, max_length_k=longest)
        self.report(f"packed {lengths}", *(self.logits(name, **packed) for name in ("gdnc", "fla")))

    def generate(self, kernels, tokens):
        os.environ["FLA_GDNC"] = "1" if kernels == "gdnc" else "0"
        result = self.model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False,
                                     max_new_tokens=self.options.new_tokens, output_logits=True,
                                     return_dict_in_generate=True)
        return result.sequences[0, tokens.shape[1]:], torch.stack(result.logits)[:, 0].float()

    def greedy(self):
        for length in self.options.lengths:
            tokens = torch.randint(1, VOCABULARY, (1, length), device=DEVICE)
            (ours, _), (theirs, logits) = (self.generate(name, tokens) for name in ("gdnc", "fla"))
            differing = (ours != theirs).nonzero()
            if len(differing) == 0:
                print(f"greedy after {length}: the same {len(ours)} tokens", flush=True)
                continue
            first = differing[0].item()
            best, second = logits[first].topk(2).values.tolist()
            gap = best - second
            agrees = gap <= 2 * self.noise
            self.failures += not agrees
            print(f"greedy after {length}: differ at token {first}, where the two best logits lie {gap:.3f} apart"
                  f"{'' if agrees else '  DIFFERS'}", flush=True)


def main():
    options = arguments()
    try:
        import gdnc.plugins.fla  # switches the backend on
        model = make_model(options)
    except (ImportError, RuntimeError) as error:
        print(f"model.py: {error}", file=sys.stderr)
        sys.exit(3)
    comparison = Comparison(model, options)
    with torch.no_grad():
        comparison.measure_noise([length for length in options.lengths if length <= options.exact_tokens])
        comparison.prompts()
        comparison.batches()
        comparison.greedy()
    sys.exit(4 if comparison.failures else 0)


if __name__ == "__main__":
    main()
