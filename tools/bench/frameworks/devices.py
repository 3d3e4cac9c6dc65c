"""Two GPUs: one process that uses both from two threads, and one process a GPU, each with its own current device.

Every result must be bit for bit that of GPU 0, wherever and from whichever current device it was computed. Exit code:
0 agrees, 3 fewer than two GPUs, 4 differs.
"""

import sys
import threading

import torch
import torch.multiprocessing as processes


def case(device):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    q, k = (torch.nn.functional.normalize(normal(1, 3000, 4, 128), dim=-1).bfloat16() for _ in range(2))
    v, g, beta = normal(1, 3000, 8, 128).bfloat16(), -normal(1, 3000, 8).abs() / 16, normal(1, 3000, 8).sigmoid()
    return [x.to(device) for x in (q, k, v, g, beta)]


def compute(device, current, rounds=50):
    import gdnc
    torch.cuda.set_device(current)
    tensors = case(device)
    for _ in range(rounds):
        result = gdnc.forward(*tensors, final_state=True)
    assert torch.cuda.current_device() == current
    return [x.cpu() for x in result]


def work(rank, results):
    results.put((rank, [x.float().numpy() for x in compute(f"cuda:{rank}", rank)]))


def same(got, wanted, what):
    equal = all(torch.equal(x.float(), y.float()) for x, y in zip(got, wanted))
    print(f"{what}: {'the same bits' if equal else 'DIFFERS'}", flush=True)
    return equal


def refused():
    import gdnc
    first, second = case("cuda:0"), case("cuda:1")
    for at in range(1, 5):
        mixed = first[:at] + second[at:at + 1] + first[at + 1:]
        try:
            gdnc.forward(*mixed)
        except ValueError as error:
            if "on cuda:0 like q, got one on cuda:1" in str(error):
                continue
        print(f"tensor {at} on another GPU than q: expected a ValueError  DIFFERS", flush=True)
        return False
    print("tensors on two GPUs: refused", flush=True)
    return True


def main():
    if torch.cuda.device_count() < 2:
        print(f"devices.py: expected two GPUs, got {torch.cuda.device_count()}", file=sys.stderr)
        sys.exit(3)
    wanted = compute("cuda:0", 0)
    agrees = [same(compute("cuda:1", 0), wanted, "GPU 1, current 0"),
              same(compute("cuda:0", 1), wanted, "GPU 0, current 1")]
    torch.cuda.set_device(0)
    threaded = {}
    threads = [threading.Thread(target=lambda n=n: threaded.update({n: compute(f"cuda:{n}", n)})) for n in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agrees += [same(threaded[n], wanted, f"thread of GPU {n}") for n in (0, 1)] + [refused()]
    context = processes.get_context("spawn")
    results = context.SimpleQueue()
    children = [context.Process(target=work, args=(rank, results)) for rank in (0, 1)]
    for child in children:
        child.start()
    for _ in children:
        rank, arrays = results.get()
        agrees.append(same([torch.from_numpy(x) for x in arrays], wanted, f"process of GPU {rank}"))
    for child in children:
        child.join()
    sys.exit(0 if all(agrees) else 4)


if __name__ == "__main__":
    main()
