"""tools/bench/peers/run.py on the emulator, ours alone: whether it calls what it says, not how fast that is."""

import csv
import os
import subprocess
import sys
import tempfile
import unittest

PEERS = os.path.join(os.path.dirname(__file__), "../../tools/bench/peers")


class Benchmark(unittest.TestCase):
    def run_it(self, *arguments):
        done = subprocess.run([sys.executable, os.path.join(PEERS, "run.py"), *arguments], capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_times(self):
        modes = ["", "_exact", "_uncut", "_fast", "_invariant", "_l2norm", "_raw_g", "_logits", "_bf16_gates", "_alpha",
                 "_layer"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.csv")
            out = self.run_it("--systems", *("gdnc" + mode.replace("_", "-") for mode in modes), "--cells", "1/4:70",
                              "--gates", "quarter", "decay", "--reps", "1", "--csv", path)
            with open(path, newline="") as file:
                rows = list(csv.DictReader(file))
        self.assertEqual([row["op"] for row in rows], ["forward" + mode + gates for gates in ("", "_all_decay")
                                                       for mode in modes])
        for row in rows:
            self.assertGreater(float(row["ms"]), 0, out)
        self.assertNotIn("differs", out)

    def test_errors(self):
        out = self.run_it("--systems", "gdnc", "gdnc-uncut", "--errors", "--cells", "1/2:30+70+1")
        lines = [line.split() for line in out.splitlines() if "quarter" in line]
        self.assertEqual([line[3] for line in lines], ["o", "state"])
        for line in lines:
            for error in line[5::2]:
                self.assertTrue(1e-5 < float(error) < 5e-3, out)
