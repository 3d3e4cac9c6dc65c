"""tools/bench/peers without a GPU and without torch: cells, resuming, budgets, ratios, the report and its picture."""

import contextlib
import csv
import io
import json
import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/bench/peers"))

import cases
import picture
import report
import run
import stamps


class Cells(unittest.TestCase):
    def test_benchmark(self):
        found = cases.cells()
        self.assertEqual(len(found), 66)
        self.assertEqual(len(set(found)), 66)
        self.assertEqual([sum(heads == h for h, _ in found) for heads in ("16/64", "16/32", "2/8", "16/16")],
                         [12, 12, 12, 5])

    def test_choices(self):
        self.assertEqual(cases.cells(["2/8"], ["4x8192", "mixed"]), [("2/8", "4x8192"), ("2/8", "mixed")])
        self.assertEqual(cases.cells(named=["16/64:1+2x63"]), [("16/64", "1+2x63")])
        self.assertEqual(cases.cells(["32/32"]), [("32/32", lengths) for lengths in cases.CORE_LENGTHS])

    def test_refusals(self):
        for heads, lengths, named in ((["3/64"], None, None), (["2/0"], None, None), (["16"], None, None),
                                      (None, ["4x"], None), (None, ["0x7"], None), (None, None, ["16/64"]),
                                      (None, None, ["16/64:0"])):
            with self.subTest(heads=heads, lengths=lengths, named=named), self.assertRaises(ValueError):
                cases.cells(heads, lengths, named)

    def test_work(self):
        self.assertEqual(cases.chunks("2/8", "1+64+65"), 8 * 4)
        query_key, value_output, gates, states = 2 * 1 * 128 * 2, 2 * 2 * 128 * 2, 2 * 2 * 4, 2 * 2 * 128 * 128 * 4
        self.assertEqual(cases.moved_bytes("1/2", "4+6"), 10 * (query_key + value_output + gates) + 2 * states)


class Stamps(unittest.TestCase):
    def test_columns_are_those_of_the_header(self):
        with open(os.path.join(os.path.dirname(__file__), "../../runtime/include/gdn/gdn.h")) as file:
            header = dict(re.findall(r"GDN_PROFILE_(\w+) = (\d+)", file.read()))
        for name in "ROWS", "COLUMNS", "BEGIN_NS", "BEGIN", "FIRST_CHUNK", "LAST_CHUNK", "STORED", "CHUNKS", "END_NS":
            self.assertEqual(getattr(stamps, name), int(header[name]), name)

    def test_medians_of_the_longest_pieces(self):
        def piece(chunks, clocks):
            row = [0] * stamps.COLUMNS
            row[stamps.CHUNKS], row[stamps.FIRST_CHUNK], row[stamps.LAST_CHUNK] = chunks, 1000, 1000 + clocks
            row[stamps.STORED], row[stamps.BEGIN_NS], row[stamps.END_NS] = 2100, 500, 1700
            return row
        nothing = [0] * stamps.COLUMNS
        blocks = [[piece(2, 9000), piece(10, 10 * clocks), nothing] for clocks in (3000, 3500, 4400)]
        self.assertEqual(stamps.decode(blocks), (3500, 1750))
        self.assertIsNone(stamps.decode([[nothing], [nothing]]))


def rows(**times):
    """Rows of CSV, in which a system's name has its operation behind a colon: {"gdnc:forward": {"2/8 4x8192": 0.5}}."""
    for name, cells in times.items():
        system, operation = name.split(":")
        for cell, ms in cells.items():
            heads, lengths = cell.split()
            yield dict(dict.fromkeys(run.FIELDS, ""), system=system, version="1", op=operation, lengths=lengths, ms=ms,
                       heads_k=heads.split("/")[0], heads_v=heads.split("/")[1])


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, given, name="x.csv"):
        with open(self.path(name), "w", newline="") as file:
            table = csv.DictWriter(file, run.FIELDS)
            table.writeheader()
            table.writerows(given)
        return self.path(name)

    def results(self, given):
        return report.summarize(*report.read([self.write(given)]), sms=132)

    def test_ratios_are_to_the_best_peer(self):
        results = self.results(rows(**{
            "gdnc:forward": {"2/8 1x64": 2.0, "16/64 1x64": 1.0}, "gdnc:forward_exact": {"2/8 1x64": 0.1},
            "fla:forward": {"2/8 1x64": 9.0, "16/64 1x64": 8.0},
            "flashinfer:forward": {"2/8 1x64": 4.0, "16/64 1x64": 9.0},
            "gdnc:forward_all_decay": {"2/8 1x64": 1.0}, "fla:forward_all_decay": {"2/8 1x64": 1.5}}))
        self.assertEqual([(x["gates"], x["heads"], x["ratio"], x["best_peer"]) for x in results],
                         [("quarter", "16/64", 8.0, "fla"), ("quarter", "2/8", 2.0, "flashinfer"),
                          ("decay", "2/8", 1.5, "fla")])
        means = report.means(results)
        self.assertAlmostEqual(means["quarter"]["geometric_mean"], 4.0)
        self.assertEqual((means["quarter"]["cells"], means["quarter"]["worst"], means["quarter"]["worst_cell"]),
                         (2, 2.0, "2/8 1x64"))
        self.assertEqual(means["decay"]["geometric_mean"], 1.5)

    def test_the_last_version_and_the_last_row_count(self):
        given = list(rows(**{"gdnc:forward": {"2/8 1x64": 3.0, "2/8 1x128": 5.0}, "fla:forward": {"2/8 1x64": 6.0}}))
        given += [dict(given[0], version="2", ms="2.5"), dict(given[0], version="2", ms="2.0"),
                  dict(given[0], version="2", ms="")]  # failed
        results = self.results(given)
        self.assertEqual([(x["lengths"], x["ms"]) for x in results], [("1x64", {"gdnc": 2.0, "fla": 6.0})])

    def test_without_ours_or_peers_there_is_no_ratio(self):
        for name in "gdnc:forward", "fla:forward", "gdnc:forward_exact":
            results = self.results(rows(**{name: {"2/8 1x64": 1.0}}))
            self.assertIsNone(results[0]["ratio"])
            self.assertEqual(report.means(results), {})

    def test_floor(self):
        copy = dict.fromkeys(run.FIELDS, "") | dict(system="torch", op="copy", lengths=1 << 30, ms="0.5")
        given = list(rows(**{"gdnc:forward": {"16/64 4x8192": 0.6, "16/64 256x128": 1.2}}))
        for row in given:
            row.update(clock_mhz="1800", clocks_per_chunk="3600")
        for x in self.results(given + [copy]):
            tensor = cases.chunks(x["heads"], x["lengths"]) * 2560 / (132 * 1.8e6)
            memory = cases.moved_bytes(x["heads"], x["lengths"]) / ((2 << 30) / 0.5)
            self.assertEqual(tensor > memory, x["lengths"] == "4x8192")
            self.assertAlmostEqual(x["floor_ms"], max(tensor, memory))
            self.assertAlmostEqual(x["of_floor"], max(tensor, memory) / x["ms"]["gdnc"])
        given[0]["clock_mhz"] = given[1]["clock_mhz"] = ""
        self.assertIsNone(self.results(given + [copy])[0]["of_floor"])

    def test_files(self):
        lengths = {f"16/64 1x{2048 << i}": 0.1 * 2**i for i in range(4)}
        thrice = {cell: 3 * ms for cell, ms in lengths.items()}
        path = self.write(rows(**{"gdnc:forward": lengths, "fla:forward": thrice}))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(report.main([path, "--json", self.path("x.json"), "--svg", self.path("x.svg")]), 0)
        self.assertIn("| 16/64 | 1x4096 | 0.2000 | 0.6000 | 3.00 fla |  |  |", out.getvalue())
        self.assertIn("forward: best peer / gdnc: geometric mean 3.000 over 4 cells, worst 3.000", out.getvalue())
        with open(self.path("x.json")) as file:
            found = json.load(file)
        self.assertEqual(len(found["cells"]), 4)
        self.assertAlmostEqual(found["means"]["quarter"]["geometric_mean"], 3)
        drawing = xml.parse(self.path("x.svg")).getroot()
        lines = [[tuple(map(float, point.split(","))) for point in line.get("points").split()]
                 for line in drawing.iter("{http://www.w3.org/2000/svg}polyline")]
        self.assertEqual([len(points) for points in lines], [4, 4])
        for points in lines:  # ms double with the length: straight in logarithms, upwards to the right
            steps = [(x1 - x0, y0 - y1) for (x0, y0), (x1, y1) in zip(points, points[1:])]
            for dx, dy in steps:
                self.assertAlmostEqual(dx, steps[0][0], delta=0.21)
                self.assertAlmostEqual(dy, steps[0][1], delta=0.21)
                self.assertGreater(min(dx, dy), 10)
            for x, y in points:
                self.assertTrue(0 <= x <= float(drawing.get("width")) and 0 <= y <= float(drawing.get("height")))
        self.assertGreater(lines[0][0][1], lines[1][0][1])  # ours is below

    def test_ticks_enclose_what_is_drawn(self):
        for low, high in (0.03, 0.9), (1, 1), (2, 5), (0.2, 0.2), (4.9, 5.1), (0.05, 10):
            marks = picture.ticks(low, high)
            self.assertLessEqual(marks[0], low * 1.001)
            self.assertGreaterEqual(marks[-1], high * 0.999)

    def test_refusals(self):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(report.main([self.path("missing.csv")]), 3)
            self.assertIn("missing.csv", err.getvalue())
            with open(self.path("bad.csv"), "w") as file:
                file.write("a,b\n1,2\n")
            self.assertEqual(report.main([self.path("bad.csv")]), 3)
            with self.assertRaises(SystemExit) as raised:
                report.main([self.path("x.csv"), "--sms", "0"])
            self.assertEqual(raised.exception.code, 2)


class Machine(run.Emulator):
    """Time goes on by what each closure returns."""

    clock = 0.0

    def timed(self, closure):
        milliseconds = closure()
        self.clock += milliseconds
        return lambda: milliseconds


class System:
    version, mode = "1", ""

    def __init__(self, name, milliseconds, machine):
        self.name, self.milliseconds, self.machine, self.calls = name, milliseconds, machine, []

    def forward(self, case):
        if self.milliseconds is None:
            raise RuntimeError("not today")

        def call():
            self.calls.append(case)
            return self.milliseconds
        return call

    def results(self, case, returned):
        return ()

    def clocks(self, case):
        return (3600.4, 1750.2) if self.name == "gdnc" else None


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.csv = os.path.join(folder.name, "x.csv")
        self.machine = Machine()
        self.enterContext(mock.patch.object(run, "make_case", lambda *cell: cell[:3]))

    def run_cells(self, *arguments, times=(("gdnc", 2.0), ("fla", 6.0))):
        options = run.arguments(["--csv", self.csv, *arguments])
        systems = {name: System(name, ms, self.machine) for name, ms in times}
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            benchmark = run.Benchmark(options, self.machine, systems)
            benchmark.compare = lambda replays: None  # there are no tensors
            self.left = benchmark.run(options.cells)
        benchmark.table.file.close()
        self.systems, self.out = systems, out.getvalue()
        with open(self.csv, newline="") as file:
            return list(csv.DictReader(file))

    def test_rows_and_ratio(self):
        found = self.run_cells("--cells", "2/8:1x64", "--gates", "quarter", "decay", "--reps", "3")
        self.assertEqual([(row["system"], row["op"], row["heads_k"], row["heads_v"], row["lengths"], row["ms"],
                           row["clock_mhz"], row["clocks_per_chunk"]) for row in found],
                         [("gdnc", "forward", "2", "8", "1x64", "2.0000", "1750", "3600"),
                          ("fla", "forward", "2", "8", "1x64", "6.0000", "", ""),
                          ("gdnc", "forward_all_decay", "2", "8", "1x64", "2.0000", "1750", "3600"),
                          ("fla", "forward_all_decay", "2", "8", "1x64", "6.0000", "", "")])
        self.assertIn("ratio 3.00 to fla", self.out)

    def test_what_the_file_has_is_skipped(self):
        self.run_cells("--cells", "2/8:1x64", "--reps", "1")
        found = self.run_cells("--cells", "2/8:1x64", "2/8:1x128", "--reps", "1")
        self.assertEqual([row["lengths"] for row in found], ["1x64", "1x64", "1x128", "1x128"])
        self.assertIn("1 of 2 cells to be timed", self.out)
        found = self.run_cells("--cells", "2/8:1x64", "--reps", "1", times=(("gdnc", 2.0), ("flash-qla", 5.0)))
        self.assertEqual([row["system"] for row in found[4:]], ["gdnc", "flash-qla"])  # side by side

    def test_one_that_fails_has_a_row_without_a_time(self):
        found = self.run_cells("--cells", "2/8:1x64", "--reps", "1", times=(("gdnc", 2.0), ("fla", None)))
        self.assertEqual([(row["system"], row["ms"]) for row in found], [("gdnc", "2.0000"), ("fla", "")])
        self.assertIn("fla failed: RuntimeError: not today", self.out)
        self.run_cells("--cells", "2/8:1x64", "--reps", "1", times=(("gdnc", 2.0), ("fla", None)))
        self.assertIn("0 of 1 cells to be timed", self.out)

    def test_warm_up_comes_first_heads_by_heads(self):
        self.run_cells("--heads", "2/8", "4/16", "--lengths", "1x64", "1x128", "--reps", "1")
        order = list(dict.fromkeys(self.systems["gdnc"].calls))
        self.assertEqual([cell[0] for cell in order], ["2/8", "2/8", "4/16", "4/16"])
        self.assertEqual([line.split()[1:4] for line in self.out.splitlines()[1:5]],
                         [["1x64", "quarter", "warm-up"], ["1x128", "quarter", "warm-up"], ["1x64", "quarter", "gdnc"],
                          ["1x128", "quarter", "gdnc"]])

    def test_warm_up_only(self):
        self.assertEqual(self.run_cells("--heads", "2/8", "--lengths", "1x64", "--warm-up-only"), [])
        self.assertEqual(len(self.systems["fla"].calls), 1)

    def test_budget(self):
        with mock.patch.object(run.time, "monotonic", lambda: self.machine.clock):
            found = self.run_cells("--heads", "2/8", "--lengths", "1x64", "1x128", "1x256", "--reps", "1",
                                   "--budget", "30")  # 24 a cell
            self.assertEqual([row["lengths"] for row in found], ["1x64", "1x64", "1x128", "1x128"])
            self.assertEqual(self.left, 1)
            found = self.run_cells("--heads", "2/8", "--lengths", "1x64", "1x128", "1x256", "--reps", "1")
            self.assertEqual((self.left, len(found)), (0, 6))

    def test_turns_rotate(self):
        order = []
        runs = {name: lambda name=name: order.append(name) or 1.0 for name in "abc"}
        self.assertEqual(run.medians(self.machine, runs, 3), {"a": 1.0, "b": 1.0, "c": 1.0})
        self.assertEqual("".join(order), "abcbcacab")

    def test_refusals(self):
        for given, text in ((["--heads", "3/64"], "expected H/HV with HV a multiple of H, got 3/64"),
                            (["--cells", "2/8"], "expected a cell as 16/64:4x8192, got 2/8"),
                            (["--cells", "2/8:1x64", "--heads", "2/8"], "expected neither --heads nor --lengths"),
                            (["--reps", "0"], "expected at least 1, got 0"),
                            (["--budget", "-1"], "expected at least 1, got -1"),
                            (["--systems", "mine"], "invalid choice: 'mine'")):
            with self.subTest(given=given), contextlib.redirect_stderr(io.StringIO()) as err:
                with self.assertRaises(SystemExit) as raised:
                    run.arguments(given)
                self.assertEqual(raised.exception.code, 2)
                self.assertIn(text, err.getvalue())


if __name__ == "__main__":
    unittest.main()
