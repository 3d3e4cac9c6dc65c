"""What this machine has of what the package needs. Imports no torch and makes no CUDA context."""

from __future__ import annotations

import ctypes as c
import json
from importlib import metadata

from . import _library

_DTYPES = {_library.BF16: "bf16", _library.F16: "fp16"}
_LAYOUTS = {_library.K_FIRST: "k-first", _library.V_FIRST: "v-first"}


def _cuda(version: int) -> str:
    return f"CUDA {version // 1000}.{version % 1000 // 10}"


def _devices() -> list[_library.DeviceInfo]:
    infos = [_library.DeviceInfo()]
    _library.check(_library.library().gdn_device_query(0, c.byref(infos[0])))
    for ordinal in range(1, infos[0].device_count):
        infos.append(_library.DeviceInfo())
        _library.check(_library.library().gdn_device_query(ordinal, c.byref(infos[-1])))
    return infos


def _serves(kernel: _library.KernelInfo, device: _library.DeviceInfo) -> bool:
    arch = kernel.arch.decode()
    sm = int(arch[3:].rstrip("af"))
    if arch.endswith("f"):
        return sm // 10 == device.compute_capability // 10 and sm <= device.compute_capability
    return sm == device.compute_capability


def _features(kernel: _library.KernelInfo) -> str:
    names = {"l2norm": _library.NORMALISE_QK, "checkpoints": _library.CHECKPOINTS_AFTER}
    return "+".join(name for name, flag in names.items() if kernel.features & flag) or "plain"


def _variants(kernels: list[_library.KernelInfo]) -> list[str]:
    """One line for kernels that differ in types, layout, split and features alone."""
    groups: dict[str, list[_library.KernelInfo]] = {}
    for kernel in kernels:
        if kernel.operation != b"forward":  # serves all of these
            continue
        head = f"{kernel.operation.decode()} {kernel.arch.decode()} K={kernel.key_dim} V={kernel.value_dim}"
        groups.setdefault(head, []).append(kernel)
    lines = []
    for head, group in groups.items():
        choices = (dict.fromkeys(_DTYPES[kernel.io] for kernel in group),
                   dict.fromkeys(_LAYOUTS[kernel.state_layout] for kernel in group),
                   dict.fromkeys(f"split {kernel.split}" for kernel in group),
                   dict.fromkeys(_features(kernel) for kernel in group))
        lines.append(f"{head}: " + ", ".join(" ".join(choice) for choice in choices))
    return lines


def examine() -> dict[str, dict[str, object]]:
    """What is found and what is missing, by name: {"found": {...}, "missing": {...}}."""
    found: dict[str, object] = {}
    missing: dict[str, object] = {}
    number = _library.library().gdn_version()
    found["libgdn"] = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    devices, kernels = [], []
    try:
        devices = _devices()
        found["driver"] = f"{_cuda(devices[0].driver_version)}, {devices[0].driver_path.decode()}"
    except _library.Error as error:
        missing["gpu"] = str(error)
    try:
        kernels = _library.kernels()
        maker = _library.metadata()["gdnc"]
        commit = (maker["commit"] or "unknown")[:12]
        found["bundle"] = (f"{_library.bundle_path()}, by gdnc {maker['version']}+{commit}, "
                           f"needs {_cuda(max(kernel.min_driver for kernel in kernels))}")
        found["kernels"] = _variants(kernels)
    except _library.Error as error:
        missing["bundle"] = str(error)
    for ordinal, device in enumerate(devices):
        found[f"gpu {ordinal}"] = f"sm_{device.compute_capability}, {device.name.decode()}, {device.sm_count} SMs"
        if kernels and not any(_serves(kernel, device) for kernel in kernels):
            missing[f"kernels of gpu {ordinal}"] = f"expected kernels for sm_{device.compute_capability}, got none"
    try:
        torch = metadata.version("torch")
        found["torch"] = f"{torch}, {'operators' if _library.has_operators(torch) else 'through ctypes'}"
    except metadata.PackageNotFoundError:
        missing["torch"] = "expected the package torch, got none"
    return {"found": found, "missing": missing}


def main(as_json: bool) -> int:
    """Prints the report. 0, or 3 if a call would fail for what is missing."""
    report = examine()
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        for name, value in report["found"].items():
            lines = value if isinstance(value, list) else [value]
            for line in lines:
                print(f"{name:8}{line}")
                name = ""
        for name, sentence in report["missing"].items():
            print(f"missing {name}: {sentence}")
    return 3 if report["missing"] else 0
