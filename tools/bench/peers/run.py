"""Times our forward beside its peers: the same tensors in one process, CUDA graphs replayed in turn, medians.

  python3 run.py --csv ../results/peers.csv
  python3 run.py --heads 2/8 16/64 --lengths 4x8192 --gates decay --host

Prints each cell's times and the ratio of the best peer's to ours, and at the end the geometric mean and the worst cell.
Systems that are not installed are left out. Exit code: 0 done, 2 usage, 3 nothing to time, 4 a result differs.
"""

import argparse
import csv
import datetime
import faulthandler
import gc
import math
import statistics
import sys
import time

import torch

from cases import CELLS, OPERATIONS, make_case, parse_heads, parse_lengths
from systems import SYSTEMS

FIELDS = ["date", "gpu", "clock_mhz", "system", "version", "op", "heads_k", "heads_v", "lengths", "ms",
          "clocks_per_chunk"]
FLUSHED = 256 << 20  # bytes, several times the L2: no replay starts on cached inputs
TOLERANCE = 2e-2     # relative difference of two systems' results; theirs from fp64 is a few 1e-3 each
HOST_CALLS = 20      # that are timed together; their launches fit the queue of a stream
SLEEP_CLOCKS = 100_000_000
STEP_SECONDS = 300   # a step that takes longer is taken for a deadlock; run-time compilation is one


class Replay:
    """A system's call on one case, captured."""

    def __init__(self, system, case):
        self.closure = system.forward(case)  # keeps alive what the captured kernels read
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.closure()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            self.returned = self.closure()
        self.graph.replay()
        torch.cuda.synchronize()
        self.results = [x.float().clone() for x in system.results(case, self.returned)]


def medians(replays, rounds, flush):
    """Milliseconds by name. The systems take turns, and the order rotates from round to round."""
    names, events = list(replays), {name: [] for name in replays}
    for i in range(rounds):
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            flush.zero_()
            begin.record()
            replays[name].graph.replay()
            end.record()
            events[name].append((begin, end))
    torch.cuda.synchronize()
    return {name: statistics.median(b.elapsed_time(e) for b, e in pairs) for name, pairs in events.items()}


def host_times(replays, rounds):
    """Milliseconds that an eager call keeps the host, by name. The GPU sleeps, so that no call waits for it."""
    times = {name: [] for name in replays}
    for _ in range(rounds):
        for name, replay in replays.items():
            torch.cuda._sleep(SLEEP_CLOCKS)
            begin = time.perf_counter()
            for _ in range(HOST_CALLS):
                replay.closure()
            times[name].append((time.perf_counter() - begin) / HOST_CALLS * 1e3)
            torch.cuda.synchronize()
    return {name: statistics.median(values) for name, values in times.items()}


def difference(x, y):
    return ((x - y).norm() / y.norm().clamp(min=1e-30)).item()


class Benchmark:
    def __init__(self, options, systems):
        self.options, self.systems = options, systems
        self.flush = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")
        self.ratios, self.differs = {}, False
        self.file = open(options.csv, "a", newline="") if options.csv else None
        if self.file:
            self.table = csv.DictWriter(self.file, FIELDS)
            if self.file.tell() == 0:
                self.table.writeheader()

    def prepare(self, case):
        replays = {}
        for system in self.systems:
            faulthandler.dump_traceback_later(STEP_SECONDS, exit=True)
            try:
                replays[system.name] = Replay(system, case)
            except Exception as error:  # one system's failure must not end the others' run
                print(f"  {system.name} failed: {type(error).__name__}: {str(error)[:200]}", flush=True)
                torch.cuda.synchronize()
        return replays

    def compare(self, replays):
        if "gdnc" not in replays:
            return
        for name, replay in replays.items():
            if name == "gdnc":
                continue
            errors = [difference(x, y) for x, y in zip(replays["gdnc"].results, replay.results)]
            if not all(e <= TOLERANCE for e in errors):  # also where one is NaN
                print(f"  gdnc differs from {name}: o {errors[0]:.1e}, state {errors[1]:.1e}", flush=True)
                self.differs = True

    def cell(self, heads, lengths, gates):
        case = make_case(heads, lengths, gates, self.options.seed)
        replays = self.prepare(case)
        if not replays:
            return
        faulthandler.dump_traceback_later(STEP_SECONDS, exit=True)
        self.compare(replays)
        medians(replays, 2, self.flush)
        times = medians(replays, self.options.reps, self.flush)
        host = host_times(replays, self.options.reps) if self.options.host else {}
        faulthandler.cancel_dump_traceback_later()
        peers = {name: ms for name, ms in times.items() if name != "gdnc"}
        line = "  ".join(f"{name} {ms:.4f}" for name, ms in times.items())
        if "gdnc" in times and peers:
            best = min(peers, key=peers.get)
            self.ratios[heads, lengths, gates] = peers[best] / times["gdnc"]
            line += f"  ratio {self.ratios[heads, lengths, gates]:.2f} to {best}"
        print(f"{heads:6} {lengths:8} {gates:8} {line}", flush=True)
        if host:
            line = "  ".join(f"{name} {1e3 * ms:.1f}" for name, ms in host.items())
            print(f"{heads:6} {lengths:8} host us  {line}", flush=True)
        self.write(case, OPERATIONS[gates], times)
        self.write(case, "host", host)

    def write(self, case, operation, times):
        if not self.file:
            return
        for system in self.systems:
            if system.name in times:
                self.table.writerow({
                    "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
                    "gpu": torch.cuda.get_device_name(), "system": system.name, "version": system.version,
                    "op": operation, "heads_k": case.heads, "heads_v": case.heads_v,
                    "lengths": case.label, "ms": f"{times[system.name]:.4f}"})
        self.file.flush()

    def summary(self):
        for gates in self.options.gates:
            ratios = {cell: ratio for cell, ratio in self.ratios.items() if cell[2] == gates}
            if ratios:
                worst = min(ratios, key=ratios.get)
                mean = math.exp(statistics.fmean(math.log(x) for x in ratios.values()))
                print(f"{gates}: best peer / gdnc: geometric mean {mean:.3f} over {len(ratios)} cells, "
                      f"worst {ratios[worst]:.3f} at {worst[0]} {worst[1]}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), help="default: all")
    parser.add_argument("--heads", nargs="+", default=list(CELLS), help="H/HV; default: all nine of the benchmark")
    parser.add_argument("--lengths", nargs="+", help="4x8192, 1+7+63, mixed; default: the benchmark's for these heads")
    parser.add_argument("--gates", nargs="+", choices=OPERATIONS, default=["quarter"],
                        help="quarter: every fourth head has no decay; decay: all decay")
    parser.add_argument("--host", action="store_true", help="also times how long an eager call keeps the host")
    parser.add_argument("--reps", type=int, default=20, help="timed rounds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", help="appends the times to this file")
    options = parser.parse_args()
    try:
        for heads in options.heads:
            parse_heads(heads)
        for lengths in options.lengths or []:
            parse_lengths(lengths)
    except ValueError as error:
        parser.error(str(error))
    if options.reps < 1:
        parser.error("--reps: expected at least 1")
    return options


def main():
    options = arguments()
    if not torch.cuda.is_available():
        sys.exit(environment("no GPU"))
    systems = []
    for name in options.systems:
        try:
            systems.append(SYSTEMS[name]())
            print(f"{name} {systems[-1].version}", flush=True)
        except Exception as error:
            print(f"{name}: left out: {type(error).__name__}: {str(error)[:200]}", flush=True)
    if not systems:
        sys.exit(environment("none of the systems could be loaded"))
    benchmark = Benchmark(options, systems)
    with torch.inference_mode():
        for heads in options.heads:
            for lengths in options.lengths or CELLS.get(heads, CELLS["2/4"]):
                for gates in options.gates:
                    benchmark.cell(heads, lengths, gates)
                    gc.collect()
    benchmark.summary()
    sys.exit(4 if benchmark.differs else 0)


def environment(reason):
    print(f"run.py: {reason}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    main()
