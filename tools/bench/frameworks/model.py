"""A Qwen3-Next-shaped model of transformers with random weights, on our kernels and on FLA's.

The truth is the same model in float32 on transformers' own path of torch. Noise is how far logits on FLA's kernels lie
from it, the largest over the positions of the same prompt. Ours may differ from FLA's by twice that at every position,
and may lie 1.2 times as far from the truth in the mean square. Greedy tokens may differ from where the two best logits
lie within twice the noise of the steps. Prompts of each length alone, and batches, padded and packed. FLA's kernels run
with the first of their configurations, since it takes minutes to tune them. Exit code: 0 agrees, 3 no GPU or package,
4 differs.
"""

import argparse
import inspect
import os
import sys
from dataclasses import dataclass
from unittest import mock

import torch

DEVICE, VOCABULARY = "cuda", 4096
KERNELS = "fla", "gdnc"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1, 63, 64, 65, 1000, 4096, 16384])
    parser.add_argument("--batch-lengths", type=int, nargs="+", default=[1, 63, 200, 1000, 3000])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--heads", type=int, nargs=2, default=[16, 32], help="k-heads and v-heads of the rule")
    parser.add_argument("--new-tokens", type=int, default=32)
    return parser.parse_args()


def without_tuning():
    from triton.runtime.autotuner import Autotuner
    initialise = Autotuner.__init__

    def take_first(self, *arguments, **options):
        initialise(self, *arguments, **options)
        self.configs = self.configs[:1]
    return mock.patch.object(Autotuner, "__init__", take_first)


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


def random_tokens(*shape):
    return torch.randint(1, VOCABULARY, shape, device=DEVICE)


def exact_rule():
    """transformers' rule of torch, for packed sequences as well."""
    from transformers.models.qwen3_next import modeling_qwen3_next as module
    rule = inspect.unwrap(module.torch_chunk_gated_delta_rule)

    def each_sequence(*tensors, g, beta, cu_seqlens=None, **options):
        if cu_seqlens is None:
            return rule(*tensors, g=g, beta=beta, **options)
        cuts = cu_seqlens.tolist()
        return torch.cat([rule(*(x[:, begin:end] for x in tensors), g=g[:, begin:end], beta=beta[:, begin:end],
                               **options)[0] for begin, end in zip(cuts, cuts[1:])], 1), None
    return mock.patch.object(module, "torch_chunk_gated_delta_rule", each_sequence)


@dataclass
class Case:
    what: str
    inputs: dict   # of the truth
    shown: object  # which of the truth's positions `logits` are of
    logits: dict   # by kernels
    tokens: dict | None = None  # what they chose, greedily


class Comparison:
    def __init__(self, model, options):
        self.model, self.options, self.failures = model, options, 0

    def logits(self, inputs, shown=...):
        return self.model(**inputs, use_cache=False).logits[shown].float()

    def with_each(self, function):
        results = {}
        for name in KERNELS:
            os.environ["FLA_GDNC"] = "1" if name == "gdnc" else "0"  # which FLA looks at in every call
            results[name] = function()
        return results

    def generate(self, tokens):
        result = self.model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False,
                                     max_new_tokens=self.options.new_tokens, output_logits=True,
                                     return_dict_in_generate=True)
        return result.sequences[:, tokens.shape[1]:], torch.stack(result.logits, 1).float()

    def prompts(self):
        for length in self.options.lengths:
            tokens = random_tokens(1, length)
            yield Case(f"prompt of {length}", dict(input_ids=tokens), ...,
                       self.with_each(lambda: self.logits(dict(input_ids=tokens))))
            chosen = self.with_each(lambda: self.generate(tokens))
            followed = torch.cat([tokens, chosen["fla"][0]], 1)[:, :-1]  # by which the truth is led
            yield Case(f"greedy after {length}", dict(input_ids=followed), (slice(None), slice(length - 1, None)),
                       {name: logits for name, (_, logits) in chosen.items()},
                       {name: chosen for name, (chosen, _) in chosen.items()})

    def batches(self):
        lengths, longest = self.options.batch_lengths, max(self.options.batch_lengths)
        tokens = random_tokens(len(lengths), longest)
        mask = torch.arange(longest, device=DEVICE) >= longest - torch.tensor(lengths, device=DEVICE)[:, None]
        offsets = torch.tensor([0, *lengths], device=DEVICE).cumsum(0).int()
        positions = torch.cat([torch.arange(length, device=DEVICE) for length in lengths])
        padded = dict(input_ids=tokens, attention_mask=mask.long())
        packed = dict(input_ids=tokens[mask][None], position_ids=positions[None], cu_seq_lens_q=offsets,
                      cu_seq_lens_k=offsets, max_length_q=longest, max_length_k=longest)
        for what, inputs, shown in ("padded", padded, mask), ("packed", packed, ...):
            yield Case(f"{what} {lengths}", inputs, shown, self.with_each(lambda: self.logits(inputs, shown)))

    def judge(self, case):
        exact, ours, theirs = self.logits(case.inputs, case.shown), case.logits["gdnc"], case.logits["fla"]
        noise = (theirs - exact).abs().max().item()
        if case.tokens is None:
            apart = (ours - theirs).abs().max().item()
            farther = ((ours - exact).norm() / (theirs - exact).norm()).item()
            agrees = apart <= 2 * noise and farther <= 1.2
            text = f"logits differ by {apart:.3f}, noise {noise:.3f}, from the truth {farther:.3f} times as far as FLA's"
        else:
            differing = (case.tokens["gdnc"] != case.tokens["fla"])[0].nonzero()
            agrees, text = True, f"the same {self.options.new_tokens} tokens"
            if len(differing):
                first = differing[0].item()
                best, second = theirs[0, first].topk(2).values.tolist()
                agrees = best - second <= 2 * noise
                text = f"differ at token {first}, where the two best logits lie {best - second:.3f} apart, noise {noise:.3f}"
        self.failures += not agrees
        print(f"{case.what}: {text}{'' if agrees else '  DIFFERS'}", flush=True)

    def run(self):
        cases = [*self.prompts(), *self.batches()]
        self.model.float()
        with exact_rule():
            for case in cases:
                self.judge(case)
        print(f"{len(cases) - self.failures} of {len(cases)} agree", flush=True)


def main():
    options = arguments()
    try:
        with without_tuning():
            import gdnc.plugins.fla  # switches the backend on
            model = make_model(options)
    except (ImportError, RuntimeError) as error:
        print(f"model.py: {error}", file=sys.stderr)
        sys.exit(3)
    comparison = Comparison(model, options)
    with torch.no_grad(), without_tuning():
        comparison.run()
    sys.exit(4 if comparison.failures else 0)


if __name__ == "__main__":
    main()
