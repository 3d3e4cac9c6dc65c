"""The C interface of libgdn (gdn/gdn.h) through ctypes, as far as the benchmark needs it."""

import ctypes as c

F32, BF16, F16, INT32, INT64 = range(5)
K_FIRST, V_FIRST = range(2)


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("batch_stride", c.c_int64), ("token_stride", c.c_int64),
                ("head_stride", c.c_int64), ("dtype", c.c_int32)]


class State(c.Structure):
    _fields_ = [("data", c.c_void_p), ("sequence_stride", c.c_int64), ("head_stride", c.c_int64),
                ("dtype", c.c_int32)]


class ForwardArgs(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("batch", c.c_int64), ("tokens", c.c_int64), ("heads", c.c_int64),
                ("heads_v", c.c_int64), ("key_dim", c.c_int64), ("value_dim", c.c_int64),
                ("num_sequences", c.c_int64), ("q", Tensor), ("k", Tensor), ("v", Tensor), ("o", Tensor),
                ("g", Tensor), ("beta", Tensor), ("initial_state", State), ("final_state", State),
                ("state_layout", c.c_int32), ("cu_seqlens_dtype", c.c_int32), ("cu_seqlens", c.c_void_p),
                ("scale", c.c_float), ("flags", c.c_uint32), ("split", c.c_uint32), ("profile", c.c_void_p),
                ("profile_size", c.c_size_t), ("workspace", c.c_void_p), ("workspace_size", c.c_size_t),
                ("stream", c.c_void_p)]


class Library:
    """libgdn with one bundle open. Errors are RuntimeErrors with the library's own sentence."""

    def __init__(self, library, bundle):
        self.lib = c.CDLL(library)
        self.lib.gdn_last_error_message.restype = c.c_char_p
        self.lib.gdn_bundle_metadata.restype = c.c_char_p
        self.lib.gdn_bundle_metadata.argtypes = [c.c_void_p]
        self.lib.gdn_bundle_open.argtypes = [c.c_char_p, c.POINTER(c.c_void_p)]
        self.lib.gdn_bundle_load.argtypes = [c.c_void_p]
        self.lib.gdn_forward.argtypes = [c.c_void_p, c.POINTER(ForwardArgs)]
        self.lib.gdn_forward_workspace_size.argtypes = [c.c_void_p, c.POINTER(ForwardArgs), c.POINTER(c.c_size_t)]
        self.bundle = c.c_void_p()
        self.check(self.lib.gdn_bundle_open(bundle.encode(), c.byref(self.bundle)))
        self.check(self.lib.gdn_bundle_load(self.bundle))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.gdn_last_error_message().decode())

    def metadata(self):
        return self.lib.gdn_bundle_metadata(self.bundle).decode()

    def workspace_size(self, args):
        size = c.c_size_t()
        self.check(self.lib.gdn_forward_workspace_size(self.bundle, c.byref(args), c.byref(size)))
        return size.value

    def forward(self, args):
        self.check(self.lib.gdn_forward(self.bundle, c.byref(args)))
