#!/usr/bin/env python3
"""Compares the work of every served kernel, counted on the emulator, with work.json.

    tests/golden/work.py build/release/bin/gdnc             exits 4 where a count rose by more than 1 %
    tests/golden/work.py build/release/bin/gdnc --update    writes work.json anew

Each kernel runs one sequence of 16 chunks with two heads. Counts follow from the PTX, hence from LLVM and ptxas: with
other versions than the table's, what rose is reported and no failure.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "work.json"
SCHEDULES = HERE.parents[1] / "coefs" / "schedule.csv"
TOKENS = 1024


def architectures():
    """Those that coefs/schedule.csv serves, sorted."""
    lines = [line for line in SCHEDULES.read_text().splitlines() if not line.startswith("#")]
    return sorted({row["arch"] for row in csv.DictReader(lines)})


def measure(gdnc):
    """{"llvm": version, "ptxas": {arch: version}, "kernels": {name: {count: value}}} of what gdnc makes now."""
    with tempfile.TemporaryDirectory() as folder:
        command = [gdnc, "build", "--all", "--arch", ",".join(architectures()), "-o", f"{folder}/bundle.gdnb"]
        command += ["--run-emulator", str(TOKENS), "--json"]
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    kernels = {result["kernel"]: result["work"] for result in report["run"]["results"]}
    return {"llvm": report["metadata"]["llvm"], "ptxas": report["metadata"]["ptxas"], "kernels": kernels}


def changes(old, new):
    """Lines on what differs, and whether it is a regression: a count that rose by more than 1 %, or a kernel that only
    one of the tables has.

    >>> changes({"k": {"n": 100, "m": 5}}, {"k": {"n": 101, "m": 5}})
    [('k: n: 100 -> 101', False)]
    >>> changes({"k": {"n": 100}}, {"k": {"n": 102}})
    [('k: n: 100 -> 102', True)]
    >>> changes({"k": {"n": 100}}, {"k": {"m": 1}})
    [('k: m: 0 -> 1', True), ('k: n: 100 -> 0', False)]
    >>> changes({"k": {}}, {"l": {}})
    [('k: no longer served', True), ('l: not in the table', True)]
    """
    found = []
    for kernel in sorted(old.keys() | new.keys()):
        if kernel not in old or kernel not in new:
            found.append((f"{kernel}: " + ("not in the table" if kernel in new else "no longer served"), True))
            continue
        was, now = old[kernel], new[kernel]
        for name in sorted(was.keys() | now.keys()):
            before, after = was.get(name, 0), now.get(name, 0)
            if before != after:
                found.append((f"{kernel}: {name}: {before:.15g} -> {after:.15g}", after > before * 1.01))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gdnc")
    parser.add_argument("--update", action="store_true", help="write the table anew")
    options = parser.parse_args()
    now = measure(options.gdnc)
    if options.update:
        TABLE.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        return 0
    table = json.loads(TABLE.read_text())
    same = True
    for tool in ("llvm", "ptxas"):
        if table[tool] != now[tool]:
            same = False
            print(f"{tool}: the table was made with {table[tool]}, this is {now[tool]}: nothing fails")
    found = changes(table["kernels"], now["kernels"])
    for line, regression in found:
        print(line + (" (regression)" if regression else ""))
    regressions = sum(regression for _, regression in found)
    print(f"{len(now['kernels'])} kernels, {len(found)} counts differ, {regressions} of them regressions")
    if regressions and same:
        print("expected no count above the table's; tests/golden/work.py --update accepts what is meant to be")
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
