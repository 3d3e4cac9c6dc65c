"""What the wheel holds, and what its libraries ask of a system."""

import os
import re
import subprocess
import unittest
import zipfile

from gdnc import _library

WHEEL = os.environ["GDN_WHEEL"]
LIBRARIES = [_library.FOLDER / "libgdn.so.0", _library.OPERATORS]
# The newest versions of symbols that a system of the wheel's tag, manylinux_2_34, has.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (11, 0, 0)}
NEEDED = {"libgdn.so.0": {"libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"},
          "libgdn_torch.so": {
              "libgdn.so.0", "libtorch.so", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6"}}


def readelf(option, library):
    return subprocess.run(["readelf", "-W", option, str(library)], check=True, capture_output=True, text=True).stdout


class Wheel(unittest.TestCase):
    def test_symbols_are_no_newer_than_the_tag(self):
        self.assertRegex(WHEEL, r"-py3-none-manylinux_2_34_x86_64\.whl$")
        for library in LIBRARIES:
            versions = re.findall(r"Name: ([A-Z]+)_([0-9.]+)", readelf("-V", library))
            self.assertIn("GLIBC", dict(versions))
            for name, version in versions:
                if name in NEWEST:
                    number = tuple(map(int, version.split(".")))
                    self.assertLessEqual(number, NEWEST[name], f"{library}: {name}_{version}")

    def test_libraries_need_no_others(self):
        for library in LIBRARIES:
            needed = set(re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", library)))
            self.assertLessEqual(needed, NEEDED[library.name])

    def test_content(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            names = wheel.namelist()
            sizes = {entry.filename: entry.file_size for entry in wheel.infolist()}
        self.assertLess(sizes.pop("gdnc/default.gdnb"), 4_000_000)
        self.assertLess(sum(sizes.values()), 500_000)
        for name in "py.typed", "plugins/fla.py", "default.gdnb", *(library.name for library in LIBRARIES):
            self.assertIn(f"gdnc/{name}", names)
        for name in "LICENSE", "NOTICES", "METADATA", "RECORD", "entry_points.txt":
            self.assertTrue(any(path.endswith(f".dist-info/{name}") for path in names), name)
        self.assertEqual([path for path in names if re.search("ptxas|nvrtc|cuda|emu", path)], [])

    def test_bundle(self):
        """All that is served, with the oldest ptxas, so that the oldest drivers take it; no PTX."""
        metadata = _library.metadata()
        self.assertEqual(metadata["ptxas"], {"sm_90a": "12.8.93"})
        self.assertFalse(metadata["flags"]["ptx"])
        kernels = _library.kernels()
        served = {(k.key_dim, k.value_dim) for k in kernels if k.operation == b"forward"}
        self.assertEqual(served, {(64, 64), (96, 192), (128, 128)})
        self.assertEqual([k.arch for k in kernels if k.operation == b"plan"], [b"sm_90a"])
        self.assertEqual({k.min_driver for k in kernels}, {12000})


if __name__ == "__main__":
    unittest.main()
