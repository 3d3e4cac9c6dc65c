"""A backend of flash-linear-attention: importing this module switches it on, FLA_GDNC=0 in the environment off.

It serves `fla.ops.gated_delta_rule.chunk_gated_delta_rule`, and through it FLA's layers and transformers' models, where
it can; what it cannot (gradients, context parallelism, other dtypes and dimensions) goes on as without it, and
FLA's logger says why.
"""

from __future__ import annotations

import inspect

import torch

from .._launch import check_launch, launch
from ..fla import chunk_gated_delta_rule

try:
    from fla.backends import BaseBackend, register
except ImportError:  # before 0.6
    from fla.ops.backends import BaseBackend
    from fla.ops.gated_delta_rule.backends import gdr_registry

    def register(operation: str):
        """As fla.backends.register, for the one operation that this backend serves."""
        def decorator(backend: type[BaseBackend]) -> type[BaseBackend]:
            gdr_registry.register(backend())
            return backend
        return decorator

_POSITIONAL = 14  # up to cu_seqlens_cpu versions of FLA agree on the order
_PARAMETERS = inspect.signature(chunk_gated_delta_rule).parameters


def _is_readable(x: torch.Tensor) -> bool:
    """Whether kernels read x [B, T, heads, columns] where it lies, as far as a copy could change that."""
    if x.is_contiguous():
        return x.data_ptr() % 16 == 0
    batch, *strides, columns = x.stride()
    return (columns == 1 and x.data_ptr() % 16 == 0 and all(stride * x.element_size() % 16 == 0 for stride in strides)
            and (x.shape[0] == 1 or batch == x.shape[1] * strides[0]))


def _copy(x: torch.Tensor) -> torch.Tensor:
    return x.clone(memory_format=torch.contiguous_format)


def _room(x: torch.Tensor) -> torch.Tensor:
    """What a copy of x looks like."""
    return torch.empty_like(x, memory_format=torch.contiguous_format, requires_grad=x.requires_grad)


def _call(q, k, v, g, beta, *others, make, launch, **options):
    """FLA takes any strides: what no kernel reads is what `make` makes of it. What FLA ignores is ignored."""
    q, k, v = (x if _is_readable(x) else make(x) for x in (q, k, v))
    g, beta = (x if x.is_contiguous() else make(x) for x in (g, beta))
    return chunk_gated_delta_rule(
        q, k, v, g, beta, *others, _launch=launch,
        **{name: value for name, value in options.items() if name in _PARAMETERS})


@register("gated_delta_rule")
class Backend(BaseBackend):
    backend_type = "gdnc"
    package_name = "gdnc"
    env_var = "FLA_GDNC"
    default_enable = True
    priority = 2  # before FlashQLA's, which is 3

    def chunk_gated_delta_rule_verifier(self, *tensors, **options) -> tuple[bool, str | None]:
        """Whether a call can be served, else why not: FLA does not guard the call itself."""
        if len(tensors) > _POSITIONAL:
            return False, f"expected at most {_POSITIONAL} positional arguments, got {len(tensors)}"
        try:
            _call(*tensors, **options, make=_room, launch=check_launch)
        except Exception as error:
            return False, str(error)
        return True, None

    def chunk_gated_delta_rule(self, *tensors, **options):
        return _call(*tensors, **options, make=_copy, launch=launch)
