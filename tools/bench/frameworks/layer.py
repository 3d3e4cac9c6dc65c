"""FLA's GatedDeltaNet layer with FLA's own kernels and with ours, in turn in one process: medians of CUDA events.

The operator is what the layer calls after its convolutions: gates, sigmoid, L2-normalisation and the recurrence. Exit
code: 0 done, 3 no GPU or package, 4 a result differs.
"""

import argparse
import os
import statistics
import sys

import torch

TOLERANCE = 2e-2  # relative difference of two results in bf16, each a few 1e-3 from float64


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--v-heads", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--reps", type=int, default=30)
    return parser.parse_args()


def with_kernels(name, function):
    os.environ["FLA_GDNC"] = "1" if name == "gdnc" else "0"  # which FLA looks at in every call
    return function()


def medians(function, reps):
    """Milliseconds by name; the two take turns."""
    flush, events = torch.empty(256 << 20, dtype=torch.uint8, device="cuda"), {"fla": [], "gdnc": []}
    for rep in range(reps + 3):
        for name in list(events)[::1 if rep % 2 else -1]:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            begin.record()
            with_kernels(name, function)
            end.record()
            if rep >= 3:
                events[name].append((begin, end))
    torch.cuda.synchronize()
    return {name: statistics.median(b.elapsed_time(e) for b, e in pairs) for name, pairs in events.items()}


def compare(what, function):
    ours, theirs = (with_kernels(name, function)[0].float() for name in ("gdnc", "fla"))
    error = ((ours - theirs).norm() / theirs.norm()).item()
    print(f"{what}: relative difference {error:.1e}", flush=True)
    return error <= TOLERANCE


def main():
    options = arguments()
    try:
        torch.cuda.init()
        import gdnc.plugins.fla  # switches the backend on
        from fla.layers import GatedDeltaNet, gated_deltanet
    except (ImportError, RuntimeError, AssertionError) as error:
        print(f"layer.py: {error}", file=sys.stderr)
        sys.exit(3)
    torch.manual_seed(0)
    layer = GatedDeltaNet(options.hidden, expand_v=1, head_dim=128, num_heads=options.heads,
                          num_v_heads=options.v_heads).to("cuda", torch.bfloat16).eval()
    x = torch.randn(options.batch, options.tokens, options.hidden, device="cuda").bfloat16()
    calls, operator = [], gated_deltanet.chunk_gated_delta_rule
    gated_deltanet.chunk_gated_delta_rule = lambda **call: calls.append(call) or operator(**call)
    with torch.inference_mode():
        layer(x)
        gated_deltanet.chunk_gated_delta_rule = operator
        parts = {"operator": lambda: operator(**calls[0]), "layer": lambda: layer(x)}
        same = [compare(name, part) for name, part in parts.items()]
        for name, part in parts.items():
            times = medians(part, options.reps)
            print(f"{name:8}  fla {times['fla']:.4f} ms  gdnc {times['gdnc']:.4f} ms  "
                  f"ratio {times['fla'] / times['gdnc']:.2f}", flush=True)
    sys.exit(0 if all(same) else 4)


if __name__ == "__main__":
    main()
