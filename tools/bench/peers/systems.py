"""One adapter a system. forward(case) returns a closure that runs the operator once, as a user of that system calls it;
results(case, returned) turns what it returned into (o [T, HV, V], final state [N, HV, K, V])."""

import importlib.metadata
import json
import os

import torch

import gdn
from cases import DIM, SCALE


class System:
    name = package = ""

    def __init__(self, options):
        """Imports what is needed; raises if it is absent."""

    @property
    def version(self):
        return importlib.metadata.version(self.package)

    def forward(self, case):
        raise NotImplementedError

    def results(self, case, returned):
        return returned[0][0], returned[1]


class Gdnc(System):
    name = "gdnc"

    def __init__(self, options):
        if not options.library or not options.bundle:
            raise ValueError("needs --library and --bundle")
        torch.zeros(1, device="cuda")  # makes the context that the kernels are loaded into
        self.library = gdn.Library(options.library, options.bundle)

    @property
    def version(self):
        made = json.loads(self.library.metadata()).get("gdnc", {})
        commit = made.get("commit") or ""
        return made.get("version", "?") + ("+" + commit[:12] if commit else "")

    def forward(self, case):
        tokens, sequences = case.q.shape[1], len(case.lengths)
        o, state = torch.empty_like(case.v), torch.empty_like(case.state)

        def tensor(x):
            heads, columns = x.shape[2], x.shape[3] if x.dim() == 4 else 1
            dtype = gdn.F32 if x.dtype == torch.float32 else gdn.BF16
            return gdn.Tensor(x.data_ptr(), tokens * heads * columns, heads * columns, columns, dtype)

        def states(x):
            return gdn.State(x.data_ptr(), x.stride(0), x.stride(1), gdn.F32)

        args = gdn.ForwardArgs(
            batch=1, tokens=tokens, heads=case.heads, heads_v=case.heads_v, key_dim=DIM, value_dim=DIM,
            num_sequences=sequences, q=tensor(case.q), k=tensor(case.k), v=tensor(case.v), o=tensor(o),
            g=tensor(case.g), beta=tensor(case.beta), initial_state=states(case.state), final_state=states(state),
            state_layout=gdn.K_FIRST, cu_seqlens_dtype=gdn.INT32, cu_seqlens=case.cu32.data_ptr(), scale=SCALE)
        args.struct_size = gdn.c.sizeof(args)
        workspace = torch.empty(self.library.workspace_size(args), dtype=torch.uint8, device="cuda")
        args.workspace, args.workspace_size = workspace.data_ptr(), workspace.numel()

        def run():
            args.stream = torch.cuda.current_stream().cuda_stream
            self.library.forward(args)
            return o, state
        run.memory = case, workspace  # args holds addresses alone
        return run


class Fla(System):
    """flash-linear-attention on its own kernels."""

    name, package = "fla", "fla-core"

    def __init__(self, options):
        os.environ.update(FLA_FLASH_QLA="0", FLA_INTRACARD_CP="0")
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule
        self.operator = chunk_gated_delta_rule

    def forward(self, case):
        return lambda: self.operator(case.q, case.k, case.v, case.g, case.beta, scale=SCALE, initial_state=case.state,
                                     output_final_state=True, cu_seqlens=case.cu64)


class FlashQla(System):
    name = package = "flash-qla"

    def __init__(self, options):
        import flash_qla
        self.operator = flash_qla.chunk_gated_delta_rule

    def forward(self, case):
        return lambda: self.operator(case.q, case.k, case.v, case.g, case.beta, scale=SCALE, initial_state=case.state,
                                     output_final_state=True, cu_seqlens=case.cu64)


class FlashInfer(System):
    name, package = "flashinfer", "flashinfer-python"

    def __init__(self, options):
        from flashinfer.gdn_prefill import chunk_gated_delta_rule
        self.operator = chunk_gated_delta_rule

    def forward(self, case):
        q, k, v, alpha, beta = (x[0] for x in (case.q, case.k, case.v, case.alpha, case.beta))
        state, longest = case.state_v_first, max(case.lengths)
        return lambda: self.operator(q, k, v, g=alpha, beta=beta, scale=SCALE, initial_state=state,
                                     output_final_state=True, cu_seqlens=case.cu64, use_cp="auto", max_seqlen=longest)

    def results(self, case, returned):
        return returned[0], returned[1].transpose(-1, -2)


SYSTEMS = {system.name: system for system in (Gdnc, Fla, FlashQla, FlashInfer)}
