"""What run.py has timed: each cell beside the best peer, geometric means, and the curve.

  python3 report.py ../results/peers.csv                             the table, as Markdown
  python3 report.py ../results/peers.csv --json x.json --svg x.svg   all numbers; time against length, one line a system

Of each system the version of its last row counts, and of rows for one cell and operation the last. Floor: the larger
of the tensor cores' time, 2,560 clocks a chunk spread over the SMs at the clock seen in the kernel, and of the bytes
that a call must move at the speed of a copy. Needs no GPU and nothing beyond Python. Exit code: 0 done, 2 usage, 3 a
file that cannot be read or written.
"""

import argparse
import csv
import json
import statistics
import sys

from cases import CELLS, OPERATIONS, chunks, moved_bytes, parse_lengths
from picture import curves

CHUNK_CLOCKS = 2560  # of the tensor cores, K = V = 128


def name_of(row):
    """system and what its operation has beyond the gates: gdnc, gdnc-exact, fla."""
    mode = row["op"].removeprefix("forward").replace("_all_decay", "")
    return row["system"] + mode.replace("_", "-")


def gates_of(operation):
    return "decay" if operation.endswith("_all_decay") else "quarter"


def read(paths):
    """Rows of forward operations by (gates, heads, lengths) and system; the memory's bytes a millisecond or None."""
    rows = []
    for path in paths:
        with open(path, newline="") as file:
            rows += [row for row in csv.DictReader(file) if row["ms"]]
    versions = {row["system"]: row["version"] for row in rows}
    cells, speed = {}, None
    for row in rows:
        if row["op"] == "copy":
            speed = 2 * int(row["lengths"]) / float(row["ms"])
        elif row["op"].startswith("forward") and row["version"] == versions[row["system"]]:
            key = gates_of(row["op"]), f"{row['heads_k']}/{row['heads_v']}", row["lengths"]
            cells.setdefault(key, {})[name_of(row)] = row
    return cells, speed


def floor(heads, lengths, megahertz, speed, sms):
    """Milliseconds; None where the clock is not known."""
    if not megahertz:
        return None
    tensor = chunks(heads, lengths) * CHUNK_CLOCKS / (sms * float(megahertz) * 1e3)
    return max(tensor, moved_bytes(heads, lengths) / speed if speed else 0)


def place(key):
    """Cells in the benchmark's order, others behind them."""
    gates, heads, lengths = key
    order, lengths = list(CELLS), parse_lengths(lengths)
    rank = order.index(heads) if heads in order else len(order)
    return rank, heads, len(lengths), lengths, list(OPERATIONS).index(gates)


def summarize(cells, speed, sms):
    """A dict a cell: times in ms by system, the best peer, its time over ours, clocks and floor."""
    results = []
    for key in sorted(cells, key=place):
        gates, heads, lengths = key
        times = {name: float(row["ms"]) for name, row in cells[key].items()}
        peers = {name: ms for name, ms in times.items() if cells[key][name]["system"] != "gdnc"}
        best = min(peers, key=peers.get) if peers else None
        ours = cells[key].get("gdnc", {})
        least = floor(heads, lengths, ours.get("clock_mhz"), speed, sms)
        results.append({
            "gates": gates, "heads": heads, "lengths": lengths, "ms": times, "best_peer": best,
            "ratio": times[best] / times["gdnc"] if best and ours else None,
            "clocks_per_chunk": float(ours["clocks_per_chunk"]) if ours.get("clocks_per_chunk") else None,
            "clock_mhz": float(ours["clock_mhz"]) if ours.get("clock_mhz") else None,
            "floor_ms": least, "of_floor": least / times["gdnc"] if least else None})
    return results


def means(results):
    """By gates: the geometric mean of the ratios, how many there are, and the worst cell."""
    found = {}
    for gates in OPERATIONS:
        ratios = {(x["heads"], x["lengths"]): x["ratio"] for x in results if x["gates"] == gates and x["ratio"]}
        if ratios:
            worst = min(ratios, key=ratios.get)
            found[gates] = {"geometric_mean": statistics.geometric_mean(ratios.values()), "cells": len(ratios),
                            "worst": ratios[worst], "worst_cell": " ".join(worst)}
    return found


def table(results, gates):
    """Markdown: one row a cell."""
    mine = [x for x in results if x["gates"] == gates]
    systems = list(dict.fromkeys(name for x in mine for name in x["ms"]))
    lines = ["| heads | lengths | " + " | ".join(systems) + " | ratio | clk/chunk | of floor |",
             "|---" * (len(systems) + 5) + "|"]
    for x in mine:
        cells = [x["heads"], x["lengths"]]
        cells += [f"{x['ms'][name]:.4f}" if name in x["ms"] else "" for name in systems]
        cells.append(f"{x['ratio']:.2f} {x['best_peer']}" if x["ratio"] else "")
        cells.append(f"{x['clocks_per_chunk']:.0f}" if x["clocks_per_chunk"] else "")
        cells.append(f"{100 * x['of_floor']:.0f} %" if x["of_floor"] else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def lines_of(results, gates="quarter"):
    """By heads and system: (length, ms) of single sequences, where there are more than two."""
    panels = {}
    for x in results:
        lengths = parse_lengths(x["lengths"])
        if x["gates"] == gates and len(lengths) == 1:
            for name, ms in sorted(x["ms"].items(), key=lambda pair: not pair[0].startswith("gdnc")):  # ours first
                panels.setdefault(x["heads"], {}).setdefault(name, []).append((lengths[0], ms))
    return {heads: {name: sorted(points) for name, points in lines.items()} for heads, lines in panels.items()
            if max(map(len, lines.values())) > 2}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", nargs="+", help="what run.py wrote")
    parser.add_argument("--json", help="writes all numbers to this file")
    parser.add_argument("--svg", help="draws time against length into this file")
    parser.add_argument("--sms", type=int, default=132,
                        help="SMs of the GPU, for the floor; default: an H200's, %(default)s")
    options = parser.parse_args(arguments)
    if options.sms < 1:
        parser.error(f"--sms: expected at least 1, got {options.sms}")
    try:
        cells, speed = read(options.csv)
        results = summarize(cells, speed, options.sms)
        if options.json:
            with open(options.json, "w") as file:
                json.dump({"cells": results, "means": means(results)}, file, indent=2)
        if options.svg:
            with open(options.svg, "w") as file:
                file.write(curves(lines_of(results)))
    except (OSError, KeyError, ValueError) as error:
        print(f"report.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 3
    for gates, operation in OPERATIONS.items():
        if any(x["gates"] == gates for x in results):
            print(f"{operation}\n\n{table(results, gates)}\n")
    for gates, mean in means(results).items():
        print(f"{OPERATIONS[gates]}: best peer / gdnc: geometric mean {mean['geometric_mean']:.3f} over "
              f"{mean['cells']} cells, worst {mean['worst']:.3f} at {mean['worst_cell']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
