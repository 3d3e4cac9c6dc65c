"""libgdn through ctypes: what the package uses of gdn/gdn.h. Needs neither torch nor a GPU."""

from __future__ import annotations

import ctypes as c
import functools
import json
import os
from pathlib import Path

FOLDER = Path(__file__).parent
OPERATORS = FOLDER / "libgdn_torch.so"

OK = 0
NO_CONTEXT = 9
F32, BF16, F16, INT32, INT64 = range(5)
K_FIRST, V_FIRST = range(2)
CUTS = {"auto": 0, "off": 1, "exact": 2, "fast": 3, "invariant": 4}  # GDN_CUT_*
KEYS_NORMALISED = 8
BETA_LOGITS, BETA_DOUBLED, G_IS_DECAY, NORMALISE_QK, CHECKPOINTS_AFTER, CHECKPOINTS_BEFORE = (
    1 << bit for bit in range(8, 14))


class Error(RuntimeError):
    """A call of libgdn failed. `status` is its gdn_status; the message is the library's own sentence."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("batch_stride", c.c_int64), ("token_stride", c.c_int64),
                ("head_stride", c.c_int64), ("dtype", c.c_int32)]


class State(c.Structure):
    _fields_ = [("data", c.c_void_p), ("sequence_stride", c.c_int64), ("head_stride", c.c_int64),
                ("dtype", c.c_int32)]


class HeadValues(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int32)]


class Sized(c.Structure):
    """A structure that begins with its size, which is filled in."""

    def __init__(self, **fields):
        super().__init__(struct_size=c.sizeof(self), **fields)


class ForwardArgs(Sized):
    _fields_ = [("struct_size", c.c_size_t), ("batch", c.c_int64), ("tokens", c.c_int64), ("heads", c.c_int64),
                ("heads_v", c.c_int64), ("key_dim", c.c_int64), ("value_dim", c.c_int64),
                ("num_sequences", c.c_int64), ("q", Tensor), ("k", Tensor), ("v", Tensor), ("o", Tensor),
                ("g", Tensor), ("beta", Tensor), ("initial_state", State), ("final_state", State),
                ("state_layout", c.c_int32), ("cu_seqlens_dtype", c.c_int32), ("cu_seqlens", c.c_void_p),
                ("scale", c.c_float), ("flags", c.c_uint32), ("split", c.c_uint32), ("profile", c.c_void_p),
                ("profile_size", c.c_size_t), ("workspace", c.c_void_p), ("workspace_size", c.c_size_t),
                ("stream", c.c_void_p), ("a_log", HeadValues), ("dt_bias", HeadValues), ("read_indices", c.c_void_p),
                ("write_indices", c.c_void_p), ("state_slots", c.c_int64), ("state_indices_dtype", c.c_int32),
                ("checkpoints", State), ("checkpoint_rows", c.c_int64), ("checkpoint_every", c.c_int64),
                ("checkpoint_starts", c.c_void_p), ("checkpoint_starts_dtype", c.c_int32)]


class KernelInfo(Sized):
    _fields_ = [("struct_size", c.c_size_t), ("operation", c.c_char_p), ("arch", c.c_char_p), ("schedule", c.c_char_p),
                ("key_dim", c.c_int32), ("value_dim", c.c_int32), ("chunk", c.c_int32), ("io", c.c_int32),
                ("state_layout", c.c_int32), ("split", c.c_int32), ("profile", c.c_int32), ("threads", c.c_int32),
                ("registers", c.c_int32), ("spill_bytes", c.c_int32), ("stack_bytes", c.c_int32),
                ("shared_bytes", c.c_int32), ("elf_abi", c.c_int32), ("min_driver", c.c_int32),
                ("image_bytes", c.c_uint64), ("features", c.c_uint32)]


class DeviceInfo(Sized):
    _fields_ = [("struct_size", c.c_size_t), ("driver_version", c.c_int32), ("device_count", c.c_int32),
                ("sm_count", c.c_int32), ("compute_capability", c.c_int32), ("name", c.c_char * 256),
                ("driver_path", c.c_char * 256)]


# Argument and result types of the functions; a result that is not named is a gdn_status.
_FUNCTIONS = {
    "gdn_version": ([], c.c_uint32),
    "gdn_last_error_message": ([], c.c_char_p),
    "gdn_bundle_open": ([c.c_char_p, c.POINTER(c.c_void_p)], c.c_int),
    "gdn_bundle_metadata": ([c.c_void_p], c.c_char_p),
    "gdn_bundle_kernel_count": ([c.c_void_p], c.c_size_t),
    "gdn_bundle_kernel_info": ([c.c_void_p, c.c_size_t, c.POINTER(KernelInfo)], c.c_int),
    "gdn_device_query": ([c.c_int32, c.POINTER(DeviceInfo)], c.c_int),
    "gdn_forward_workspace_size": ([c.c_void_p, c.POINTER(ForwardArgs), c.POINTER(c.c_size_t)], c.c_int),
    "gdn_forward_check": ([c.c_void_p, c.POINTER(ForwardArgs)], c.c_int),
    "gdn_forward": ([c.c_void_p, c.POINTER(ForwardArgs)], c.c_int),
}


@functools.cache
def library() -> c.CDLL:
    lib = c.CDLL(str(FOLDER / "libgdn.so.0"))
    for name, (arguments, result) in _FUNCTIONS.items():
        function = getattr(lib, name)
        function.argtypes, function.restype = arguments, result
    return lib


def check(status: int) -> None:
    """Raises Error unless `status` is GDN_OK."""
    if status != OK:
        raise Error(status, library().gdn_last_error_message().decode())


def bundle_path() -> str:
    """The bundle whose kernels are launched: $GDN_BUNDLE, or the one that the package carries."""
    return os.environ.get("GDN_BUNDLE") or str(FOLDER / "default.gdnb")


@functools.cache
def bundle() -> c.c_void_p:
    """The process's bundle, open for as long as the process lives. Error if it is missing or corrupt."""
    opened = c.c_void_p()
    check(library().gdn_bundle_open(bundle_path().encode(), c.byref(opened)))
    return opened


def metadata() -> dict:
    """What the compiler wrote into the bundle: versions and flags."""
    return json.loads(library().gdn_bundle_metadata(bundle()))


def kernels() -> list[KernelInfo]:
    """What the bundle holds, sorted by key."""
    infos = [KernelInfo() for _ in range(library().gdn_bundle_kernel_count(bundle()))]
    for index, info in enumerate(infos):
        check(library().gdn_bundle_kernel_info(bundle(), index, c.byref(info)))
    return infos


def has_operators(torch: str) -> bool:
    """Whether this version of torch takes the operators of libgdn_torch.so, which use its stable ABI of 2.10."""
    return OPERATORS.exists() and tuple(int(part) for part in torch.split(".")[:2]) >= (2, 10)


def emulated() -> bool:
    """Whether the emulator stands in for the CUDA driver: then tensors lie in the CPU's memory."""
    return os.environ.get("GDN_DRIVER") == "emu"
