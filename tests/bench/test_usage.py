"""gdn-bench's command line: what it refuses, and with which exit code and sentence."""

import os
import subprocess
import tempfile
import unittest

BENCH = os.environ["GDN_BENCH"]


class Usage(unittest.TestCase):
    def check(self, code, text, *arguments):
        with self.subTest(arguments=arguments):
            done = subprocess.run([BENCH, *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stdout if code == 0 else done.stderr)

    def test_commands(self):
        self.check(2, "A subcommand is required")
        self.check(2, "A subcommand is required", "measure")
        self.check(0, "forward", "--help")
        for command in "forward", "profile", "host", "calibrate":
            self.check(0, "--bundle", command, "--help")
            self.check(2, "--bundle is required", command)

    def test_defaults_are_each_commands_own(self):
        for command, heads in ("forward", "16/64,2/8"), ("profile", "16/64"), ("host", "2/8"):
            self.check(0, f"[{heads}]", command, "--help")

    def test_values(self):
        for command in "forward", "profile", "host":
            for argument, text in (("--heads=3/64", "expected heads as H/HV with HV a multiple of H, got 3/64"),
                                   ("--heads=16", "expected heads as H/HV with HV a multiple of H, got 16"),
                                   ("--lengths=4x", "expected lengths as NxL, L+L+.. or mixed, got 4x"),
                                   ("--dims=128", "expected dimensions as KxV, got 128"),
                                   ("--reps=0", "Value 0 not in range"),
                                   ("--cut=some", "some not in"),
                                   ("--gates=none", "none not in")):
                self.check(2, text, command, "--bundle=missing.gdnb", argument)
        self.check(2, "--output is required", "calibrate", "--bundle=missing.gdnb")
        for argument, value in ("--rounds", "2"), ("--limit", "0"):
            self.check(2, f"Value {value} not in range", "calibrate", "--bundle=missing.gdnb", "--output=x.csv",
                       argument, value)

    def test_missing_bundle_and_nothing_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.csv")
            for command in ["forward", "--csv", path], ["profile"], ["host"], ["calibrate", "-o", path]:
                self.check(3, "gdn-bench: missing.gdnb: ", *command, "--bundle=missing.gdnb")
            self.assertFalse(os.listdir(folder))
