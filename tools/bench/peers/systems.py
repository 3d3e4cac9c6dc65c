"""One adapter a system. forward(case) returns a closure that runs the operator once, as a user of that system calls it;
results(case, returned) turns what it returned into (o [T, HV, V], final state [N, HV, K, V])."""

import importlib.metadata
import os

from cases import SCALE


class System:
    name = package = ""
    mode = ""  # behind "forward" in the operation's name

    def __init__(self):
        """Imports what is needed; raises if it is absent."""

    @property
    def version(self):
        return importlib.metadata.version(self.package)

    def forward(self, case):
        raise NotImplementedError

    def results(self, case, returned):
        return returned[0][0], returned[1]

    def clocks(self, case):
        """Clocks of one block for a chunk and the SM's MHz, from inside the kernel; None where that cannot be had."""
        return None


class Gdnc(System):
    """The default call, which says that keys are normalised."""

    name = package = "gdnc"
    cut = "auto"

    def __init__(self):
        import gdnc
        from gdnc import _library
        self.operator, self.library = gdnc.chunk_gated_delta_rule, _library
        self.commit = (_library.metadata()["gdnc"]["commit"] or "")[:12]

    @property
    def version(self):
        return super().version + ("+" + self.commit if self.commit else "")

    def forward(self, case):
        return lambda: self.operator(case.q, case.k, case.v, case.g, case.beta, scale=SCALE, initial_state=case.state,
                                     output_final_state=True, cu_seqlens=case.cu64, cut=self.cut,
                                     keys_normalised=self.cut != "off")

    def clocks(self, case):
        if self.cut != "auto" or not any(kernel.profile for kernel in self.library.kernels()):
            return None
        import stamps
        return stamps.clocks(self.library, case, self.library.KEYS_NORMALISED)


class GdncExact(Gdnc):
    """Without warm-ups: also what the default call does where nothing is said of the keys."""

    mode, cut = "_exact", "exact"


class GdncFast(Gdnc):
    mode, cut = "_fast", "fast"


class GdncInvariant(Gdnc):
    mode, cut = "_invariant", "invariant"


class GdncUncut(Gdnc):
    mode, cut = "_uncut", "off"


class GdncFusion(Gdnc):
    """The default call where the kernel makes of its inputs, those of `inputs`, what the plain call is given."""

    def forward(self, case):
        from gdnc import forward
        call = dict(q=case.q, k=case.k, v=case.v, g=case.g, beta=case.beta, scale=SCALE, initial_state=case.state,
                    final_state=True, cu_seqlens=case.cu64, keys_normalised=True) | self.inputs(case)
        return lambda: forward(**call)

    def inputs(self, case):
        raise NotImplementedError

    def clocks(self, case):
        return None


class GdncL2norm(GdncFusion):
    mode = "_l2norm"

    def inputs(self, case):
        return dict(q=2 * case.q, k=2 * case.k, normalize_qk=True)


class GdncRawGates(GdncFusion):
    mode = "_raw_g"

    def inputs(self, case):
        import torch
        rate = torch.full([case.heads_v], 1 / 16, device=case.g.device)
        return dict(g=(case.g * -16).expm1().log().clamp(min=-1000) - 1, A_log=rate.log(), dt_bias=torch.ones_like(rate))


class GdncLogits(GdncFusion):
    mode = "_logits"

    def inputs(self, case):
        return dict(beta=case.beta.logit(), beta_logits=True)


class GdncHalfGates(GdncFusion):
    mode = "_bf16_gates"

    def inputs(self, case):
        return dict(g=case.g.bfloat16(), beta=case.beta.bfloat16())


class GdncAlpha(GdncFusion):
    mode = "_alpha"

    def inputs(self, case):
        return dict(g=case.alpha, g_is_decay=True)


class GdncLayer(GdncFusion):
    """As FLA's layer calls it: L2-normalisation, gates and sigmoid, all in bf16."""

    mode = "_layer"

    def inputs(self, case):
        fusions = GdncL2norm.inputs(self, case) | GdncRawGates.inputs(self, case) | GdncLogits.inputs(self, case)
        return fusions | {name: fusions[name].bfloat16() for name in ("g", "beta")}


class Fla(System):
    """flash-linear-attention on its own kernels."""

    name, package = "fla", "fla-core"

    def __init__(self):
        os.environ.update(FLA_FLASH_QLA="0", FLA_INTRACARD_CP="0")
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule
        self.operator = chunk_gated_delta_rule

    def forward(self, case):
        return lambda: self.operator(case.q, case.k, case.v, case.g, case.beta, scale=SCALE, initial_state=case.state,
                                     output_final_state=True, cu_seqlens=case.cu64)


class FlashQla(System):
    name = package = "flash-qla"

    def __init__(self):
        import flash_qla
        self.operator = flash_qla.chunk_gated_delta_rule

    def forward(self, case):
        return lambda: self.operator(case.q, case.k, case.v, case.g, case.beta, scale=SCALE, initial_state=case.state,
                                     output_final_state=True, cu_seqlens=case.cu64)


class FlashInfer(System):
    name, package = "flashinfer", "flashinfer-python"

    def __init__(self):
        from flashinfer.gdn_prefill import chunk_gated_delta_rule
        self.operator = chunk_gated_delta_rule

    def forward(self, case):
        q, k, v, alpha, beta = (x[0] for x in (case.q, case.k, case.v, case.alpha, case.beta))
        state, longest = case.state_v_first, max(case.lengths)
        return lambda: self.operator(q, k, v, g=alpha, beta=beta, scale=SCALE, initial_state=state,
                                     output_final_state=True, cu_seqlens=case.cu64, use_cp="auto", max_seqlen=longest)

    def results(self, case, returned):
        return returned[0], returned[1].transpose(-1, -2)


SYSTEMS = {system.name + system.mode.replace("_", "-"): system
           for system in (Gdnc, GdncExact, GdncUncut, GdncFast, GdncInvariant, GdncL2norm, GdncRawGates, GdncLogits,
                          GdncHalfGates, GdncAlpha, GdncLayer, Fla, FlashQla, FlashInfer)}
