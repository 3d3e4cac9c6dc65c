"""Compares the ctypes structures in gdn.py with the offsets that a C program prints: `struct.field offset` a line."""

import ctypes
import subprocess
import sys

import gdn

STRUCTURES = {"gdn_tensor": gdn.Tensor, "gdn_state": gdn.State, "gdn_forward_args": gdn.ForwardArgs}


def main():
    printed = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.split()
    wanted = dict(zip(printed[::2], (int(x) for x in printed[1::2])))
    ours = {}
    for name, structure in STRUCTURES.items():
        ours.update({f"{name}.{field}": getattr(structure, field).offset for field, _ in structure._fields_})
        ours[f"{name}.size"] = ctypes.sizeof(structure)
    wrong = [key for key in wanted.keys() | ours.keys() if wanted.get(key) != ours.get(key)]
    for key in sorted(wrong):
        print(f"{key}: expected {wanted.get(key)}, got {ours.get(key)}")
    sys.exit(4 if wrong else 0)


if __name__ == "__main__":
    main()
