"""Gated DeltaNet kernels, compiled ahead of time: no Triton, no JIT, no compiler at import or at the first call.

    gdnc.chunk_gated_delta_rule    signature and semantics of flash-linear-attention's
    gdnc.forward                   all that the kernels take: caller-owned outputs, strided views, states in place
    gdnc.flash_qla                 FlashQLA's functions
    gdnc.flashinfer                FlashInfer's prefill entry
    python -m gdnc doctor          which GPU, driver, bundle and kernels are found, and what is missing

Importing the package loads nothing; torch and libgdn are loaded when one of the above is first named. $GDN_BUNDLE names
a bundle to use in place of the one that the package carries, and $GDN_DRIVER=emu runs CPU tensors on the emulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._forward import forward
    from .fla import chunk_gated_delta_rule

__all__ = ["chunk_gated_delta_rule", "forward"]

_HOMES = {"chunk_gated_delta_rule": "fla", "forward": "_forward"}


def __getattr__(name: str):
    import importlib

    if name == "__version__":
        from importlib.metadata import version
        value = version("gdnc")
    elif name in _HOMES:
        value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
