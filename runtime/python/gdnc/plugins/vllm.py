"""vLLM's Qwen3-Next and Qwen3.5: the prefill's rule is ours where additional_config has gdn_prefill_backend "gdnc".

vLLM loads the entry point `register` in each of its processes. A call that no kernel serves is an error, since this
backend is asked for by name.
"""

from __future__ import annotations

import logging

import torch

__all__ = ["register"]


def register() -> None:
    """Replaces vLLM's operator by one that looks at the configuration; a second call changes nothing."""
    try:
        from vllm.config import get_current_vllm_config
        from vllm.model_executor.custom_op import op_registry_oot
        from vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn import ChunkGatedDeltaRule
    except ImportError as error:  # another version of vLLM, which has to go on
        logging.getLogger(__name__).warning("gdnc is no backend of this vLLM: %s", error)
        return
    if ChunkGatedDeltaRule.__name__ in op_registry_oot:
        return

    @ChunkGatedDeltaRule.register_oot(name=ChunkGatedDeltaRule.__name__)
    class GdncChunkGatedDeltaRule(ChunkGatedDeltaRule):
        def __init__(self) -> None:
            super().__init__()
            config = get_current_vllm_config().additional_config
            if isinstance(config, dict) and config.get("gdn_prefill_backend") == "gdnc":
                self._forward_method = self.forward_gdnc

        def forward_gdnc(
            self,
            q: torch.Tensor,
            k: torch.Tensor,
            v: torch.Tensor,
            g: torch.Tensor,
            beta: torch.Tensor,
            initial_state: torch.Tensor,
            output_final_state: bool,
            cu_seqlens: torch.Tensor | None = None,
            chunk_indices: torch.Tensor | None = None,
            chunk_offsets: torch.Tensor | None = None,
            use_qk_l2norm_in_kernel: bool = True,
            core_attn_out: torch.Tensor | None = None,
            **others: object,
        ) -> tuple[torch.Tensor, torch.Tensor | None]:
            """As vLLM's own: q, k [1, T, H, K], v [1, T, HV, V], states [N, HV, V, K]. Keys are normalised, here or
            before. core_attn_out, if given, begins with room for o, which is written there. The final state has the dtype
            of the initial one, that of vLLM's pool."""
            from .. import forward
            state = torch.empty_like(initial_state) if output_final_state else False
            out = None if core_attn_out is None else core_attn_out.view(-1)[:v.numel()].view(v.shape)
            return forward(q, k, v, g, beta, initial_state=initial_state, final_state=state,
                           state_v_first=True, cu_seqlens=cu_seqlens, out=out, normalize_qk=use_qk_l2norm_in_kernel,
                           keys_normalised=True)
