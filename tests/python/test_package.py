"""The package without torch and without a GPU: import, doctor, the structures of gdn.h."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest

from gdnc import _library

EMULATOR = {"GDN_DRIVER": "emu", "LD_LIBRARY_PATH": os.environ["GDN_LIBRARIES"]}
BUNDLE = {"GDN_BUNDLE": os.environ["GDN_PTX_BUNDLE"]}


def python(*arguments, **environment):
    return subprocess.run([sys.executable, *arguments], env=dict(os.environ, **environment), capture_output=True,
                          text=True)


class Import(unittest.TestCase):
    def test_loads_nothing(self):
        run = python("-c", "import sys, gdnc; print({'gdnc', 'torch', 'ctypes'} & set(sys.modules))")
        self.assertEqual(run.stdout, "{'gdnc'}\n")

    def test_unknown_names(self):
        import gdnc
        with self.assertRaisesRegex(AttributeError, "module 'gdnc' has no attribute 'backward'"):
            gdnc.backward

    def test_version(self):
        import gdnc
        major, minor, patch = (int(part) for part in gdnc.__version__.split("."))
        self.assertEqual(_library.library().gdn_version(), major * 10000 + minor * 100 + patch)


class Layout(unittest.TestCase):
    def test_structures_are_those_of_the_header(self):
        structures = {"gdn_tensor": _library.Tensor, "gdn_state": _library.State,
                      "gdn_head_values": _library.HeadValues,
                      "gdn_forward_args": _library.ForwardArgs, "gdn_kernel_info": _library.KernelInfo,
                      "gdn_device_info": _library.DeviceInfo}
        expressions, ours = [], []
        for name, structure in structures.items():
            for field, *_ in structure._fields_:
                expressions += [f"offsetof({name}, {field})", f"sizeof((({name} *)0)->{field})"]
                ours += [getattr(structure, field).offset, getattr(structure, field).size]
            expressions.append(f"sizeof({name})")
            ours.append(ctypes.sizeof(structure))
        lines = "".join(f'  printf("%zu\\n", {expression});\n' for expression in expressions)
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/layout.c", "w") as file:
                file.write(f"#include <gdn/gdn.h>\n#include <stdio.h>\nint main(void) {{\n{lines}}}\n")
            program = f"{folder}/layout"
            subprocess.run([os.environ["CC"], "-I", os.environ["GDN_INCLUDE"], file.name, "-o", program], check=True)
            printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
        self.assertEqual(dict(zip(expressions, ours)), dict(zip(expressions, map(int, printed))))


class Doctor(unittest.TestCase):
    def test_without_a_gpu(self):
        run = python("-m", "gdnc", "doctor", GDN_DRIVER="/missing/libcuda.so.1")
        self.assertEqual(run.returncode, 3)
        self.assertIn("missing gpu: expected the CUDA driver library, got: /missing/libcuda.so.1", run.stdout)
        self.assertIn("forward sm_90a K=128 V=128: bf16 fp16, k-first v-first, split 1 split 2, plain l2norm\n", run.stdout)

    def test_without_torch(self):
        run = python("-S", "-m", "gdnc", "doctor", **EMULATOR)
        self.assertEqual((run.returncode, run.stderr), (3, ""))
        self.assertIn("missing torch: expected the package torch, got none", run.stdout)

    def test_json(self):
        run = python("-m", "gdnc", "doctor", "--json", **EMULATOR, **BUNDLE)
        report = json.loads(run.stdout)
        self.assertEqual(report["found"]["gpu 0"], "sm_90, gdn-emu sm_90a, 132 SMs")
        self.assertIn(BUNDLE["GDN_BUNDLE"], report["found"]["bundle"])
        self.assertEqual(run.returncode, 3 if report["missing"] else 0)

    def test_missing_bundle(self):
        run = python("-m", "gdnc", "doctor", GDN_BUNDLE="/missing/x.gdnb")
        self.assertEqual(run.returncode, 3)
        self.assertIn("missing bundle: /missing/x.gdnb: ", run.stdout)

    def test_usage(self):
        self.assertEqual(python("-m", "gdnc").returncode, 2)


if __name__ == "__main__":
    unittest.main()
