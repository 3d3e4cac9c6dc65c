"""One launch: an operator of torch (2.10 and later), or through ctypes. Both refuse arguments that do not fit each
other, the operator in fewer words than _check.check."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable

import torch

from . import _library
from ._check import check, check_numbers
from ._library import ForwardArgs, HeadValues, State, Tensor

_DTYPES = {torch.float32: _library.F32, torch.bfloat16: _library.BF16, torch.float16: _library.F16,
           torch.int32: _library.INT32, torch.int64: _library.INT64}


def _tensor(x: torch.Tensor) -> Tensor:
    return Tensor(x.data_ptr(), x.stride(0), x.stride(1), x.stride(2), _DTYPES[x.dtype])


def _state(x: torch.Tensor | None) -> State:
    return State() if x is None else State(x.data_ptr(), x.stride(0), x.stride(1), _DTYPES[x.dtype])


def _head_values(x: torch.Tensor | None) -> HeadValues:
    return HeadValues() if x is None else HeadValues(x.data_ptr(), _DTYPES[x.dtype])


def _describe(q, k, v, g, beta, o, initial_state, final_state, cu_seqlens, scale, state_v_first, split, flags=0,
              A_log=None, dt_bias=None, read_indices=None, write_indices=None, checkpoints=None, checkpoint_every=0,
              checkpoint_starts=None) -> ForwardArgs:
    check(q, k, v, g, beta, o, initial_state, final_state, cu_seqlens, scale, state_v_first, split, flags, A_log,
          dt_bias, read_indices, write_indices, checkpoints, checkpoint_every, checkpoint_starts)
    check_numbers(scale, split, checkpoint_every)
    args = ForwardArgs(
        batch=q.shape[0], tokens=q.shape[1], heads=q.shape[2], heads_v=v.shape[2], key_dim=q.shape[3],
        value_dim=v.shape[3], q=_tensor(q), k=_tensor(k), v=_tensor(v), o=_tensor(o), g=_tensor(g), beta=_tensor(beta),
        initial_state=_state(initial_state), final_state=_state(final_state), state_layout=state_v_first, scale=scale,
        split=split, flags=flags, a_log=_head_values(A_log), dt_bias=_head_values(dt_bias),
        checkpoints=_state(checkpoints), checkpoint_every=checkpoint_every)
    if cu_seqlens is not None:
        args.num_sequences = len(cu_seqlens) - 1
        args.cu_seqlens, args.cu_seqlens_dtype = cu_seqlens.data_ptr(), _DTYPES[cu_seqlens.dtype]
    for name, indices, pool in ("read", read_indices, initial_state), ("write", write_indices, final_state):
        if indices is not None:
            setattr(args, f"{name}_indices", indices.data_ptr())
            args.state_slots, args.state_indices_dtype = len(pool), _DTYPES[indices.dtype]
    if checkpoints is not None:
        args.checkpoint_rows = len(checkpoints)
    if checkpoint_starts is not None:
        args.checkpoint_starts = checkpoint_starts.data_ptr()
        args.checkpoint_starts_dtype = _DTYPES[checkpoint_starts.dtype]
    return args


def _call(name: str, q: torch.Tensor, args: ForwardArgs) -> None:
    """Calls a function of libgdn on q's device and its current stream."""
    function, bundle = getattr(_library.library(), name), _library.bundle()
    if not q.is_cuda:
        return _library.check(function(bundle, c.byref(args)))
    with torch.cuda.device(q.device):
        args.stream = torch.cuda.current_stream().cuda_stream
        status = function(bundle, c.byref(args))
        if status == _library.NO_CONTEXT:  # a thread whose first use of the GPU this is; any kernel of torch binds one
            torch.zeros(1, device=q.device)
            status = function(bundle, c.byref(args))
    _library.check(status)


def _launch_ctypes(q, *others) -> None:
    args, needed = _describe(q, *others), c.c_size_t()
    _library.check(_library.library().gdn_forward_workspace_size(_library.bundle(), c.byref(args), c.byref(needed)))
    workspace = torch.empty(needed.value, dtype=torch.uint8, device=q.device)
    args.workspace, args.workspace_size = workspace.data_ptr(), needed.value
    _call("gdn_forward", q, args)


def check_launch(q, *others) -> None:
    """Raises what `launch` would with these arguments, and launches nothing."""
    if not (_direct_check and _direct_check(q, *others)):
        _call("gdn_forward_check", q, _describe(q, *others))


def _load_operators():
    """The operator torch.ops.gdnc.forward, with a fake kernel, and two functions of the same arguments, one that launches
    without torch's dispatcher, in half the time, and one that checks. They answer whether that went well: not with what
    only the operator takes, nor what is wrong. None for both with a torch whose tensors they do not know."""
    bundle = _library.bundle()  # with the package's libgdn, which serves the operators as well if it is there first
    library = c.PyDLL(str(_library.OPERATORS))
    library.gdn_torch_use(bundle, _library.emulated())
    torch.library.register_fake("gdnc::forward", check)
    library.gdn_torch_direct.argtypes, library.gdn_torch_direct.restype = [c.py_object] * 3, c.py_object
    table = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    functions = library.gdn_torch_direct(torch.Tensor, torch.nn.Parameter, table) if table else (None, None)
    return torch.ops.gdnc.forward.default, *functions


def _launch_either(*arguments) -> None:
    """By the function, unless something follows what torch dispatches, as compilers, modes and profilers do."""
    if (is_compiling() or is_tracing() or is_in_torch_dispatch_mode() or len_torch_function_stack()
            or profiler_enabled() or not _direct(*arguments)):
        _operator(*arguments)


launch: Callable[..., None] = _launch_ctypes
_direct_check = None
if _library.has_operators(torch.__version__):
    _operator, _direct, _direct_check = _load_operators()
    launch = _operator
    try:
        from torch._C import _is_tracing as is_tracing, _len_torch_function_stack as len_torch_function_stack
        from torch._C._autograd import _profiler_enabled as profiler_enabled
        from torch.compiler import is_compiling
        from torch.utils._python_dispatch import is_in_torch_dispatch_mode
        if _direct:
            launch = _launch_either
    except ImportError:  # a torch in which it cannot be asked what follows a call
        pass
