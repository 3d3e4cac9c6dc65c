"""Times our forward beside its peers: the same tensors in one process, CUDA graphs replayed in turn, medians.

  python3 run.py --csv ../results/peers.csv                        all 66 cells; then report.py ../results/peers.csv
  python3 run.py --csv x.csv --cells 16/64:4x8192 8/16:mixed --gates quarter decay
  python3 run.py --csv x.csv --budget 500                          as far as that goes; again: the rest
  python3 run.py --errors --cells 2/8:1x8192                       errors against float64 instead of times

Heads by heads: first every system runs each cell once, which compiles, then the cells are timed. Systems that are not
installed are left out; a cell that the file already has for these versions is not timed again. GDN_DRIVER=emu runs ours
on the emulator, whose times mean nothing. Exit code: 0 done, 2 usage, 3 nothing to time, 4 a result differs or an error
is too large.
"""

import argparse
import csv
import datetime
import faulthandler
import gc
import os
import statistics
import sys
import time

from cases import CELLS, OPERATIONS, cells, make_case, reference
from systems import SYSTEMS

FIELDS = ["date", "gpu", "clock_mhz", "system", "version", "op", "heads_k", "heads_v", "lengths", "ms",
          "clocks_per_chunk"]
FLUSHED = 256 << 20  # bytes, several times the L2: no replay starts on cached inputs
COPIED = 1 << 30     # bytes of the copy that shows the memory's speed
TOLERANCE = 2e-2     # relative difference of two systems' results; theirs from float64 is a few 1e-3 each
ERROR_RATIO = 1.05   # ours to the best peer's
ERROR_SEEDS = 3
HOST_CALLS = 20      # that are timed together; their launches fit the queue of a stream
SLEEP_CLOCKS = 100_000_000
STEP_SECONDS = 300   # a step that takes longer is taken for a deadlock; run-time compilation is one


class Gpu:
    """CUDA graphs, timed by events."""

    device = "cuda"

    def __init__(self):
        import torch
        self.torch, self.name = torch, torch.cuda.get_device_name()
        self.flush = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")

    def synchronize(self):
        self.torch.cuda.synchronize()

    def capture(self, closure):
        """What replays it, and what the captured call returned."""
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                closure()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            returned = closure()
        return graph.replay, returned

    def timed(self, run):
        """Enqueues it; returns what says how many milliseconds it took, once all is through."""
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        begin.record()
        run()
        end.record()
        return lambda: begin.elapsed_time(end)

    def hold(self):
        self.torch.cuda._sleep(SLEEP_CLOCKS)


class Emulator:
    """Calls, timed by the host's clock."""

    device = "cpu"

    def __init__(self):
        self.name = "gdn-emu"

    def synchronize(self):
        pass

    def capture(self, closure):
        return closure, closure()

    def timed(self, run):
        begin = time.perf_counter()
        run()
        milliseconds = (time.perf_counter() - begin) * 1e3
        return lambda: milliseconds

    def hold(self):
        pass


class Replay:
    """A system's call on one case, captured."""

    def __init__(self, machine, system, case):
        self.closure = system.forward(case)  # keeps alive what the captured kernels read
        self.run, self.returned = machine.capture(self.closure)
        self.run()
        machine.synchronize()
        self.results = [x.float().clone() for x in system.results(case, self.returned)]


def medians(machine, runs, rounds):
    """Milliseconds by name. The systems take turns, and the order rotates from round to round."""
    names, times = list(runs), {name: [] for name in runs}
    for i in range(rounds):
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            times[name].append(machine.timed(runs[name]))
    machine.synchronize()
    return {name: statistics.median(ms() for ms in each) for name, each in times.items()}


def host_times(machine, replays, rounds):
    """Milliseconds that an eager call keeps the host, by name. The GPU sleeps, so that no call waits for it."""
    times = {name: [] for name in replays}
    for _ in range(rounds):
        for name, replay in replays.items():
            machine.hold()
            begin = time.perf_counter()
            for _ in range(HOST_CALLS):
                replay.closure()
            times[name].append((time.perf_counter() - begin) / HOST_CALLS * 1e3)
            machine.synchronize()
    return {name: statistics.median(values) for name, values in times.items()}


def difference(x, y):
    """Relative Frobenius difference; infinite where x is not finite."""
    if not x.isfinite().all():
        return float("inf")
    return ((x - y).norm() / y.norm().clamp(min=1e-30)).item()


class Table:
    """Rows of CSV, appended as they are measured; the cells that the file has already are done."""

    def __init__(self, path):
        self.done, self.file = set(), None
        if not path:
            return
        if os.path.exists(path):
            with open(path, newline="") as file:
                for row in csv.DictReader(file):
                    self.done.add(self.key(row))
        self.file = open(path, "a", newline="")
        self.writer = csv.DictWriter(self.file, FIELDS)
        if self.file.tell() == 0:
            self.writer.writeheader()

    @staticmethod
    def key(row):
        return tuple(str(row[name]) for name in ("gpu", "system", "version", "op", "heads_k", "heads_v", "lengths"))

    def add(self, **row):
        self.done.add(self.key(row))
        if self.file:
            self.writer.writerow(dict(row, date=datetime.datetime.now(datetime.timezone.utc).date().isoformat()))
            self.file.flush()


class Benchmark:
    def __init__(self, options, machine, systems):
        self.options, self.machine, self.systems = options, machine, systems
        self.table = Table(options.csv)
        self.differs = False
        self.begin = time.monotonic()

    def row(self, system, operation, heads, lengths):
        heads, heads_v = heads.split("/")
        return dict(gpu=self.machine.name, system=system.name, version=system.version, op=operation, heads_k=heads,
                    heads_v=heads_v, lengths=lengths)

    def time_copy(self):
        """A copy by a kernel, of COPIED bytes read and as many written: the memory's speed, for report.py."""
        torch = self.machine.torch
        row = dict(gpu=self.machine.name, system="torch", version=torch.__version__, op="copy", heads_k="", heads_v="",
                   lengths=COPIED)
        if Table.key(row) not in self.table.done:
            source = torch.randn(COPIED // 4, device="cuda")
            target = torch.empty_like(source)
            times = medians(self.machine, {"copy": lambda: torch.mul(source, 1.0, out=target)}, self.options.reps)
            self.table.add(**row, ms=f"{times['copy']:.4f}")

    def is_done(self, heads, lengths, gates):
        return all(Table.key(self.row(system, operation_of(system, gates), heads, lengths)) in self.table.done
                   for system in self.systems.values())

    def has_time(self):
        return not self.options.budget or time.monotonic() - self.begin < self.options.budget

    def attempt(self, name, step):
        """What step() returns; None, after a line that says so, where it fails: that must not end the others' run."""
        faulthandler.dump_traceback_later(STEP_SECONDS, exit=True)
        try:
            return step()
        except Exception as error:
            print(f"  {name} failed: {type(error).__name__}: {str(error)[:200]}", flush=True)
            self.machine.synchronize()
        finally:
            faulthandler.cancel_dump_traceback_later()

    def warm_up(self, heads, lengths, gates):
        begin, line = time.monotonic(), []
        case = make_case(heads, lengths, gates, self.options.seed, self.machine.device)
        for name, system in self.systems.items():
            self.attempt(name, lambda: (system.forward(case)(), self.machine.synchronize()))
            line.append(f"{name} {time.monotonic() - begin:.1f}")
            begin = time.monotonic()
        print(f"{heads:6} {lengths:8} {gates:8} warm-up s  {'  '.join(line)}", flush=True)

    def compare(self, replays):
        ours = replays.get("gdnc")
        for name, replay in replays.items():
            if ours is None or replay is ours:
                continue
            errors = [difference(x, y) for x, y in zip(ours.results, replay.results)]
            if not all(e <= TOLERANCE for e in errors):  # also where one is NaN
                print(f"  gdnc differs from {name}: o {errors[0]:.1e}, state {errors[1]:.1e}", flush=True)
                self.differs = True

    def time(self, heads, lengths, gates):
        case = make_case(heads, lengths, gates, self.options.seed, self.machine.device)
        replays = {name: self.attempt(name, lambda: Replay(self.machine, system, case))
                   for name, system in self.systems.items()}
        replays = {name: replay for name, replay in replays.items() if replay}
        self.compare(replays)
        runs = {name: replay.run for name, replay in replays.items()}
        if runs:
            medians(self.machine, runs, 2)
        times = medians(self.machine, runs, self.options.reps) if runs else {}
        clocks = {name: self.attempt(name, lambda: self.systems[name].clocks(case)) for name in times}
        for name, system in self.systems.items():  # a row without a time where it failed
            megahertz = f"{clocks[name][1]:.0f}" if clocks.get(name) else ""
            per_chunk = f"{clocks[name][0]:.0f}" if clocks.get(name) else ""
            self.table.add(**self.row(system, operation_of(system, gates), heads, lengths), clock_mhz=megahertz,
                           ms=f"{times[name]:.4f}" if name in times else "", clocks_per_chunk=per_chunk)
        line = "  ".join(f"{name} {ms:.4f}" for name, ms in times.items())
        print(f"{heads:6} {lengths:8} {gates:8} {line}{ratio_text(self.systems, times)}", flush=True)
        if self.options.host and replays:
            host = host_times(self.machine, replays, self.options.reps)
            line = "  ".join(f"{name} {1e3 * ms:.1f}" for name, ms in host.items())
            print(f"{heads:6} {lengths:8} host us  {line}", flush=True)
            for name, ms in host.items():
                operation = "host" + self.systems[name].mode
                self.table.add(**self.row(self.systems[name], operation, heads, lengths), ms=f"{ms:.4f}")

    def run(self, wanted):
        """Times the cells, heads by heads; returns how many are left."""
        pending = [(cell, gates) for cell in wanted for gates in self.options.gates
                   if not self.is_done(*cell, gates)]
        print(f"{len(pending)} of {len(wanted) * len(self.options.gates)} cells to be timed", flush=True)
        for heads in dict.fromkeys(cell[0] for cell, _ in pending):
            mine = [(cell, gates) for cell, gates in pending if cell[0] == heads]
            for cell, gates in mine:
                if self.has_time():
                    self.warm_up(*cell, gates)
                    gc.collect()
            for cell, gates in mine if not self.options.warm_up_only else []:
                if not self.has_time():
                    return sum(not self.is_done(*cell, gates) for cell, gates in pending)
                self.time(*cell, gates)
                gc.collect()
        return 0

    def errors(self, heads, lengths, gates):
        """Errors of o and state against float64, medians over seeds: the larger of the first head's and of the last
        one's, which has no decay where a quarter has none."""
        errors = {name: [] for name in self.systems}
        for seed in range(self.options.seed, self.options.seed + ERROR_SEEDS):
            case = make_case(heads, lengths, gates, seed, self.machine.device)
            picked = sorted({0, case.heads_v - 1})
            wanted = reference(case, picked)
            for name, system in self.systems.items():
                got = self.attempt(name, lambda: system.results(case, system.forward(case)()))
                if got:
                    errors[name].append([max(difference(x[:, head].double(), y[:, i]) for i, head in enumerate(picked))
                                         for x, y in zip(got, wanted)])
        found = {name: [statistics.median(values) for values in zip(*each)] for name, each in errors.items() if each}
        for i, what in enumerate(("o", "state")):
            line = "  ".join(f"{name} {each[i]:.2e}" for name, each in found.items())
            peers = [each[i] for name, each in found.items() if self.systems[name].name != "gdnc"]
            ours = [each[i] for name, each in found.items() if self.systems[name].name == "gdnc"]
            if ours and peers:
                ratio = max(ours) / min(peers)
                self.differs |= not ratio <= ERROR_RATIO
                line += f"  ours to the best peer's {ratio:.3f}"
            print(f"{heads:6} {lengths:8} {gates:8} {what:5} {line}", flush=True)


def operation_of(system, gates):
    return OPERATIONS[gates].replace("forward", "forward" + system.mode)


def ratio_text(systems, times):
    peers = {name: ms for name, ms in times.items() if systems[name].name != "gdnc"}
    if "gdnc" not in times or not peers:
        return ""
    best = min(peers, key=peers.get)
    return f"  ratio {peers[best] / times['gdnc']:.2f} to {best}"


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {text}")
    return value


def arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, metavar="SYSTEM",
                        default=["gdnc", "gdnc-exact", "gdnc-uncut", "fla", "flash-qla", "flashinfer"],
                        help=f"of {', '.join(SYSTEMS)}; default: %(default)s")
    parser.add_argument("--heads", nargs="+", help=f"H/HV; default: the benchmark's, {' '.join(CELLS)}")
    parser.add_argument("--lengths", nargs="+", help="4x8192, 1+7+63, mixed; default: the benchmark's for these heads")
    parser.add_argument("--cells", nargs="+", help="16/64:4x8192 and so on, in place of heads and lengths")
    parser.add_argument("--gates", nargs="+", choices=OPERATIONS, default=["quarter"],
                        help="quarter: every fourth head has no decay; decay: all decay")
    parser.add_argument("--errors", action="store_true", help="errors against float64 instead of times")
    parser.add_argument("--host", action="store_true", help="also times how long an eager call keeps the host")
    parser.add_argument("--warm-up-only", action="store_true", help="compiles what the cells need, and times nothing")
    parser.add_argument("--budget", type=positive, help="seconds after which no further cell is begun")
    parser.add_argument("--reps", type=positive, default=20, help="timed rounds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", help="appends the times to this file, and skips what it has")
    options = parser.parse_args(arguments)
    if options.cells and (options.heads or options.lengths):
        parser.error("--cells: expected neither --heads nor --lengths beside it")
    try:
        options.cells = cells(options.heads, options.lengths, options.cells)
    except ValueError as error:
        parser.error(str(error))
    return options


def load(names):
    systems = {}
    for name in names:
        try:
            systems[name] = SYSTEMS[name]()
            print(f"{name} {systems[name].version}", flush=True)
        except Exception as error:
            print(f"{name}: left out: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return systems


def main():
    options = arguments()
    import torch
    emulated = os.environ.get("GDN_DRIVER") == "emu"
    if not emulated and not torch.cuda.is_available():
        sys.exit(environment("no GPU"))
    machine = Emulator() if emulated else Gpu()
    systems = load(options.systems)
    if not systems:
        sys.exit(environment("none of the systems could be loaded"))
    benchmark = Benchmark(options, machine, systems)
    with torch.inference_mode():
        if options.errors:
            for cell in options.cells:
                for gates in options.gates:
                    benchmark.errors(*cell, gates)
        else:
            if not emulated and not options.warm_up_only:
                benchmark.time_copy()
            left = benchmark.run(options.cells)
            print(f"{left} cells left" if left else "done", flush=True)
    sys.exit(4 if benchmark.differs else 0)


def environment(reason):
    print(f"run.py: {reason}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    main()
