"""SGLang's Gated DeltaNet layers: prefill is ours with --linear-attn-prefill-backend gdnc, or with
--linear-attn-backend gdnc, which leaves decode and verify to Triton.

SGLang loads the entry point `register` in each of its processes. A call that no kernel serves is an error, since this
backend is asked for by name.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["register"]

_NAME = "gdnc"
_DISPATCHER = "sglang.srt.layers.attention.linear.gdn_backend.GDNKernelDispatcher"


def register() -> None:
    """Adds the name to the choices of the command line, and the kernel to what dispatches them."""
    from sglang.srt.arg_groups.choices import add_linear_attn_kernel_backend_choices
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    add_linear_attn_kernel_backend_choices([_NAME])
    HookRegistry.register(_DISPATCHER + ".__init__", _dispatch, HookType.AROUND)


def _chosen() -> bool:
    """SGLang's enumeration of backends has one member for all names that it does not know."""
    from sglang.srt.runtime_context import get_exec
    options = get_exec().mamba
    return (options.linear_attn_prefill_backend or options.linear_attn_backend) == _NAME


def _dispatch(original, dispatcher, decode_backend, prefill_backend, *others, **named) -> None:
    """Around the dispatcher's __init__: its extend kernel, for prefill, becomes ours where it is chosen."""
    if not (prefill_backend.is_custom() and _chosen()):
        return original(dispatcher, decode_backend, prefill_backend, *others, **named)
    triton = type(prefill_backend)("triton")
    original(dispatcher, triton if decode_backend.is_custom() else decode_backend, triton, *others, **named)
    dispatcher.extend_kernel = _kernel()(dispatcher.extend_kernel)


def _kernel() -> type:
    from sglang.srt.layers.attention.linear.kernels.kernel_backend import LinearAttnKernelBase

    class GdncKernel(LinearAttnKernelBase):
        uses_state_checkpoints = True  # which extend's arguments ask for, in place of the states of all chunks

        def __init__(self, triton: LinearAttnKernelBase):
            self._triton = triton

        def decode(self, *tensors, **options):
            return self._triton.decode(*tensors, **options)

        def extend(
            self,
            q: torch.Tensor,
            k: torch.Tensor,
            v: torch.Tensor,
            g: torch.Tensor,
            beta: torch.Tensor,
            *,
            ssm_states: torch.Tensor,
            cache_indices: torch.Tensor,
            query_start_loc: torch.Tensor,
            inplace_update: bool = True,
            state_checkpoint_cu_starts: torch.Tensor | None = None,
            num_state_checkpoints: int = 0,
            state_checkpoint_every_n_tokens: int = 0,
            output: torch.Tensor | None = None,
            **others: object,
        ) -> tuple[torch.Tensor, None, torch.Tensor | None]:
            """As SGLang's own: q, k [1, T, H, K], not normalised, v [1, T, HV, V], g the log decay, beta the write
            strength, at most 1, [1, T, HV]; ssm_states [slots, HV, V, K] a pool, whose slots cache_indices [N] are read
            and, with inplace_update, written; -1 reads zeros and writes nothing.

            Returns o, None, and the checkpoints [1, num_state_checkpoints, HV, V, K] float32, sequence i's from row
            state_checkpoint_cu_starts[i] on, or None."""
            from .. import forward
            checkpoints: dict[str, Any] = {}
            if num_state_checkpoints > 0:
                starts = state_checkpoint_cu_starts
                checkpoints = dict(
                    checkpoints=ssm_states.new_empty((num_state_checkpoints, *ssm_states.shape[1:]),
                                                     dtype=torch.float32),
                    checkpoint_every=state_checkpoint_every_n_tokens,
                    checkpoint_starts=None if starts is None else starts[:-1])
            o, _ = forward(q, k, v, g, beta, initial_state=ssm_states,
                           final_state=ssm_states if inplace_update else False, read_indices=cache_indices,
                           state_v_first=True, cu_seqlens=query_start_loc, out=output, normalize_qk=True,
                           keys_normalised=True, **checkpoints)
            return o, None, checkpoints["checkpoints"][None] if checkpoints else None

    return GdncKernel
