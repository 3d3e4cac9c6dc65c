"""The interfaces that callers already use: names, orders of arguments, results."""

import inspect
import unittest

import torch

from case import DEVICE, error, inputs, make, poisoned, recurrence

import gdnc
from gdnc import flash_qla, flashinfer

BOUND = 5e-3


class FlashLinearAttention(unittest.TestCase):
    def test_positions(self):
        """Callers pass these by position."""
        self.assertEqual(list(inspect.signature(gdnc.chunk_gated_delta_rule).parameters)[:16], [
            "q", "k", "v", "g", "beta", "scale", "initial_state", "output_final_state", "use_qk_l2norm_in_kernel",
            "use_beta_sigmoid_in_kernel", "allow_neg_eigval", "state_v_first", "cu_seqlens", "cu_seqlens_cpu",
            "chunk_indices", "cp_context"])

    def test_results(self):
        case = make((30, 0, 40))
        wanted, wanted_final = recurrence(*inputs(case), case.h0, case.cu_seqlens, 0.1)
        o, final = gdnc.chunk_gated_delta_rule(*inputs(case), 0.1, case.h0, True, cu_seqlens=case.cu_seqlens)
        self.assertEqual((o.dtype, final.dtype), (torch.bfloat16, torch.float32))
        self.assertLess(error(o, wanted), BOUND)
        self.assertLess(error(final, wanted_final), BOUND)
        alone, none = gdnc.chunk_gated_delta_rule(*inputs(case), 0.1, case.h0, cu_seqlens=case.cu_seqlens,
                                                  cu_seqlens_cpu=case.cu_seqlens.cpu(), chunk_size=32)
        self.assertIsNone(none)
        self.assertTrue(torch.equal(alone, o))

    def test_layer(self):
        """As the GatedDeltaNet layer calls it: raw gates, logits, rows to be normalised, views of one buffer."""
        tokens, heads, heads_v = 70, 1, 2
        mixed = torch.randn(2, tokens, 128 * (2 * heads + heads_v), device=DEVICE).bfloat16()
        q, k, v = (x.unflatten(-1, (-1, 128)) for x in mixed.split([128 * heads, 128 * heads, 128 * heads_v], -1))
        raw, logits = (torch.randn(2, tokens, heads_v, device=DEVICE).bfloat16() for _ in range(2))
        A_log, dt_bias = torch.zeros(heads_v, device=DEVICE), torch.ones(heads_v, device=DEVICE)
        state = torch.randn(2, heads_v, 128, 128, device=DEVICE)
        o, final = gdnc.chunk_gated_delta_rule(
            q=q, k=k, v=v, g=raw, beta=logits, initial_state=state, output_final_state=True,
            use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True, state_v_first=True,
            cu_seqlens=None, use_gate_in_kernel=True, A_log=A_log, dt_bias=dt_bias)
        unit = [(x.double() / (x.double().square().sum(-1, keepdim=True) + 1e-6).sqrt()).to(x.dtype) for x in (q, k)]
        g = -torch.nn.functional.softplus(raw.double() + 1)
        wanted, wanted_final = recurrence(*unit, v, g, 2 * logits.double().sigmoid(), state.mT)
        self.assertLess(error(o, wanted), BOUND)
        self.assertLess(error(final.mT, wanted_final), BOUND)

    def test_old_name_of_the_layout(self):
        case = make()
        with self.assertWarns(DeprecationWarning):
            _, final = gdnc.chunk_gated_delta_rule(*inputs(case), output_final_state=True, transpose_state_layout=True)
        _, wanted = gdnc.chunk_gated_delta_rule(*inputs(case), output_final_state=True)
        self.assertLess(error(final.mT, wanted.cpu().double()), BOUND)


class FlashQla(unittest.TestCase):
    def test_positions(self):
        self.assertEqual(list(inspect.signature(flash_qla.chunk_gated_delta_rule).parameters), [
            "q", "k", "v", "g", "beta", "scale", "initial_state", "output_final_state", "use_qk_l2norm_in_kernel",
            "cu_seqlens", "head_first", "state_v_first", "auto_cp", "enable_fwd_cp_cache", "cp_context",
            "force_intra_cp"])
        self.assertEqual(list(inspect.signature(flash_qla.chunk_gated_delta_rule_fwd).parameters), [
            "q", "k", "v", "g", "beta", "scale", "initial_state", "cu_seqlens", "output_final_state", "output_h",
            "auto_cp", "state_v_first", "enable_fwd_cp_cache", "cp_context", "is_train"])

    def test_results(self):
        case = make()
        wanted, wanted_final = recurrence(*inputs(case), case.h0)
        o, final = flash_qla.chunk_gated_delta_rule(*inputs(case), None, case.h0, True)
        self.assertLess(error(o, wanted), BOUND)
        self.assertLess(error(final, wanted_final), BOUND)

    def check_chunks(self, case, cuts, g_cumsum, inverse):
        """Chunk by chunk, in float64."""
        ratio = case.v.shape[2] // case.k.shape[2]
        k, g, beta = (x.flatten(0, 1).cpu().double() for x in (case.k, case.g, case.beta))
        g_cumsum, inverse = g_cumsum.flatten(0, 1), inverse.flatten(0, 1)
        for begin, end in zip(cuts, cuts[1:]):
            for first in range(begin, end, 64):
                rows = slice(first, min(first + 64, end))
                size = rows.stop - first
                self.assertLess(error(g_cumsum[rows], g[rows].cumsum(0)), 1e-6)
                for head in range(case.v.shape[2]):
                    keys = k[rows, head // ratio]
                    lower = (beta[rows, head, None] * (keys @ keys.T)).tril(-1)
                    wanted = torch.zeros(size, 64, dtype=torch.float64)
                    wanted[:, :size] = torch.linalg.inv(torch.eye(size, dtype=torch.float64) + lower)
                    self.assertLess(error(inverse[rows, head], wanted), 4e-3)

    def test_forward_packed(self):
        case = make((30, 0, 130, 1, 40), (2, 4))
        tail, case.cu_seqlens, case.h0 = 40, case.cu_seqlens[:5], case.h0[:4]
        g_cumsum, inverse, o, h, final, cache = flash_qla.chunk_gated_delta_rule_fwd(
            *inputs(case), initial_state=case.h0, cu_seqlens=case.cu_seqlens)
        wanted, wanted_final = recurrence(*inputs(case), case.h0, case.cu_seqlens)
        self.assertLess(error(o, wanted), BOUND)
        self.assertLess(error(final, wanted_final), BOUND)
        self.assertEqual((h, cache), (None, None))
        self.assertEqual((g_cumsum.dtype, g_cumsum.shape), (torch.float32, case.g.shape))
        self.assertEqual((inverse.dtype, inverse.shape), (torch.bfloat16, (1, 201, 4, 64)))
        self.check_chunks(case, case.cu_seqlens.tolist(), g_cumsum, inverse)
        self.assertTrue((g_cumsum[:, -tail:] == 0).all() and (inverse[:, -tail:] == 0).all())

    def test_states_between(self):
        case, between = make((30, 0, 130, 64, 40), (2, 4)), []
        recurrence(*inputs(case), case.h0, case.cu_seqlens, between=between)
        wanted = torch.stack([state for states in between for state in states[:-1]])
        for v_first in False, True:
            h = flash_qla.chunk_gated_delta_rule_fwd(
                *inputs(case), initial_state=case.h0.mT.contiguous() if v_first else case.h0,
                cu_seqlens=case.cu_seqlens, output_h=True, state_v_first=v_first)[3]
            self.assertEqual((h.dtype, h.shape), (torch.bfloat16, (1, 264 // 64 + 5, 4, 128, 128)))
            self.assertLess(error((h.mT if v_first else h)[0, :len(wanted)], wanted), BOUND)
        case, between = make((100,), batch=2), []
        recurrence(*inputs(case), between=between)
        h = flash_qla.chunk_gated_delta_rule_fwd(*inputs(case), output_h=True)[3]
        self.assertEqual(h.shape, (2, 2, 2, 128, 128))
        self.assertTrue((h[:, 0] == 0).all())
        self.assertLess(error(h, torch.stack([torch.stack(states[:-1]) for states in between])), BOUND)

    def test_forward_dense(self):
        case = make((100,), batch=2)
        g_cumsum, inverse, _, _, final, _ = flash_qla.chunk_gated_delta_rule_fwd(*inputs(case),
                                                                                 output_final_state=False)
        self.assertIsNone(final)
        self.check_chunks(case, [0, 100, 200], g_cumsum, inverse)


class FlashInfer(unittest.TestCase):
    def setUp(self):
        self.case = make((30, 40))
        self.packed = [x[0] for x in inputs(self.case)]
        self.state = self.case.h0.mT.contiguous()

    def check(self, o, final, h0, *reference):
        wanted, wanted_final = recurrence(*(x[None] for x in reference), h0, self.case.cu_seqlens)
        self.assertLess(error(o, wanted[0]), BOUND)
        if final is not None:
            self.assertLess(error(final.mT, wanted_final), BOUND)

    def test_positions(self):
        self.assertEqual(list(inspect.signature(flashinfer.chunk_gated_delta_rule).parameters)[:21], [
            "q", "k", "v", "g", "beta", "scale", "initial_state", "output_final_state", "cu_seqlens",
            "use_qk_l2norm_in_kernel", "output", "output_state", "state_checkpoints", "checkpoint_cu_starts",
            "checkpoint_every_n_tokens", "use_cp", "state_indices", "_cp_chunk_len", "backend", "max_seqlen",
            "gate_domain"])

    def test_linear_and_log_gates(self):
        q, k, v, g, beta = self.packed
        g[3] = float("-inf")  # alpha = 0
        exact = g.clamp(min=-1e4)
        o, final = flashinfer.chunk_gated_delta_rule(q, k, v, g.exp(), beta, None, self.state, True,
                                                     self.case.cu_seqlens)
        self.check(o, final, self.case.h0, q, k, v, exact, beta)
        o, final = flashinfer.chunk_gated_delta_rule(q, k, v, exact, beta, None, self.state, True, self.case.cu_seqlens,
                                                     gate_domain="log")
        self.check(o, final, self.case.h0, q, k, v, exact, beta)

    def test_defaults(self):
        q, k, v, g, beta = self.packed
        o = flashinfer.chunk_gated_delta_rule(q, k, v, cu_seqlens=self.case.cu_seqlens)
        self.check(o, None, None, q, k, v, 0 * g, torch.ones_like(beta))

    def test_callers_outputs(self):
        q, k, v, g, beta = self.packed
        out, state = poisoned(v.shape, v.dtype), poisoned(self.state.shape, torch.bfloat16)
        o, final = flashinfer.chunk_gated_delta_rule(
            q, k, v, g, beta, initial_state=self.state, output_final_state=True, cu_seqlens=self.case.cu_seqlens,
            output=out, output_state=state, gate_domain="log", use_cp=False, backend="flashinfer", max_seqlen=40)
        self.assertEqual((o.data_ptr(), final.data_ptr()), (out.data_ptr(), state.data_ptr()))
        self.check(out, state, self.case.h0, q, k, v, g, beta)

    def test_pools(self):
        q, k, v, g, beta = self.packed
        reads, writes = (torch.tensor(x, device=DEVICE, dtype=torch.int32) for x in ([3, -1], [0, 2]))
        pool = poisoned((4, 2, 128, 128))
        pool[3] = self.state[0]
        self.case.h0[1] = 0
        o, final = flashinfer.chunk_gated_delta_rule(
            q, k, v, g, beta, None, pool, True, self.case.cu_seqlens, output_state=pool, gate_domain="log",
            state_indices=reads, output_state_indices=writes)
        self.assertEqual(final.data_ptr(), pool.data_ptr())
        self.check(o, pool[[0, 2]], self.case.h0, q, k, v, g, beta)
        self.assertTrue(torch.equal(pool[3], self.state[0]) and pool[1].isnan().all())
        pool = poisoned((4, 2, 128, 128))  # as in place, from zeros
        o, _ = flashinfer.chunk_gated_delta_rule(q, k, v, g, beta, None, None, True, self.case.cu_seqlens,
                                                 output_state=pool, gate_domain="log", state_indices=writes)
        self.check(o, pool[[0, 2]], None, q, k, v, g, beta)

    def test_checkpoints(self):
        case, between = make((130, 30, 70)), []
        q, k, v, g, beta = (x[0] for x in inputs(case))
        recurrence(*inputs(case), case.h0, case.cu_seqlens, between=between)
        rows, starts = poisoned((3, 2, 128, 128)), torch.tensor([0, 2, 2, 3], device=DEVICE)
        o = flashinfer.chunk_gated_delta_rule(
            q, k, v, g, beta, initial_state=case.h0.mT.contiguous(), cu_seqlens=case.cu_seqlens, gate_domain="log",
            state_checkpoints=rows, checkpoint_cu_starts=starts, checkpoint_every_n_tokens=64)
        self.assertEqual(o.shape, v.shape)
        self.assertLess(error(rows.mT, torch.stack([between[0][1], between[0][2], between[2][1]])), BOUND)

    def test_checkpoints_in_a_pool(self):
        """In the rows that an index names, also of the pool that the states are in; in no others."""
        case, between = make((130, 0, 30, 200)), []
        q, k, v, g, beta = (x[0] for x in inputs(case))
        pool = poisoned((9, 2, 128, 128))
        pool[4:8] = case.h0.mT
        states = torch.tensor([4, 5, 6, 7], device=DEVICE)
        recurrence(*inputs(case), case.h0, case.cu_seqlens, between=between)
        # A page table of four rows a sequence, of which the first has two checkpoints and the last three; not all have
        # a row.
        table = torch.tensor([[8, 3, 4, 5], [6, 7, 4, 5], [6, 7, 4, 5], [1, -1, 0, 7]], device=DEVICE)
        starts = torch.arange(0, 16, 4, device=DEVICE)
        call = dict(output_final_state=True, cu_seqlens=case.cu_seqlens, gate_domain="log",
                    checkpoint_cu_starts=starts, checkpoint_every_n_tokens=64)
        for dtype in torch.int32, torch.int64:
            rows = pool.clone()
            o, final = flashinfer.chunk_gated_delta_rule(
                q, k, v, g, beta, initial_state=rows, output_state=rows, state_indices=states.to(dtype),
                state_checkpoints=rows, checkpoint_state_indices=table.flatten().to(dtype), **call)
            self.assertEqual(final.data_ptr(), rows.data_ptr())
            wanted = {8: between[0][1], 3: between[0][2], 1: between[3][1], 0: between[3][3], 4: between[0][-1],
                      6: between[2][-1], 7: between[3][-1]}
            for row, state in wanted.items():
                self.assertLess(error(rows[row].mT, state), BOUND, row)
            self.assertTrue(torch.equal(rows[5], pool[5]) and rows[2].isnan().all())
        rows = pool.clone()
        flashinfer.chunk_gated_delta_rule(
            q, k, v, g, beta, initial_state=self.state.new_zeros(4, 2, 128, 128), state_checkpoints=rows,
            checkpoint_state_indices=torch.full_like(table.flatten(), -1), **call)
        torch.testing.assert_close(rows, pool, rtol=0, atol=0, equal_nan=True)

    def test_checkpoints_behind_a_prefix(self):
        """At multiples that count from before the call; gates of each kind; tokens behind the last sequence."""
        case = make((230, 20, 0, 40, 130, 25))
        case.cu_seqlens, case.h0 = case.cu_seqlens[:6], case.h0[:5]
        q, k, v, g, beta = (x[0] for x in inputs(case))
        tokens = case.cu_seqlens.tolist()
        prefix = torch.tensor((100, 0, 128, 30, 190), device=DEVICE, dtype=torch.int32)
        call = dict(initial_state=case.h0.mT.contiguous(), output_final_state=True, cu_seqlens=case.cu_seqlens,
                    checkpoint_cu_starts=torch.tensor([0, 2, 2, 2, 2, 3], device=DEVICE),
                    checkpoint_every_n_tokens=128, prefix_lens=prefix)
        A_log, dt_bias = torch.zeros(2, device=DEVICE), torch.ones(2, device=DEVICE)
        raw = -torch.nn.functional.softplus(g + 1)
        for gates, decay, options in ((g, g, dict(gate_domain="log")), (g.exp(), g, {}), (None, 0 * g, {}),
                                      (g, raw, dict(use_gate_in_kernel=True, A_log=A_log, dt_bias=dt_bias))):
            rows, out = poisoned((3, 2, 128, 128)), poisoned(v.shape, v.dtype)
            o, final = flashinfer.chunk_gated_delta_rule(q, k, v, gates, beta, output=out, state_checkpoints=rows,
                                                         **call, **options)
            self.assertEqual(o.data_ptr(), out.data_ptr())
            wanted, wanted_final = recurrence(q[None], k[None], v[None], decay[None], beta[None], case.h0,
                                              case.cu_seqlens)
            self.assertLess(error(o, wanted[0]), BOUND)
            self.assertTrue((o[-25:] == 0).all())
            self.assertLess(error(final.mT, wanted_final), BOUND)
            # New tokens up to the multiples 128 and 256 of sequence 0, and 256 of the last.
            for row, (sequence, count) in enumerate(((0, 28), (0, 156), (4, 66))):
                part = slice(tokens[sequence], tokens[sequence] + count)
                _, state = recurrence(*(x[None, part] for x in (q, k, v, decay, beta)),
                                      case.h0[sequence:sequence + 1])
                self.assertLess(error(rows[row].mT, state[0]), BOUND, row)

    def test_more_heads_of_q(self):
        q, k, v, g, beta = self.packed
        q = torch.cat([q, q.flip(0)], 1)
        k, v = k[:, :1], v[:, :1]
        o, final = flashinfer.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True, gate_domain="log",
                                                     cu_seqlens=self.case.cu_seqlens)
        self.assertEqual(o.shape, (70, 2, 128))
        self.check(o, final, None, q, k.repeat(1, 2, 1), v.repeat(1, 2, 1), g, beta)

    def test_raw_gates_and_logits(self):
        q, k, v, g, beta = self.packed
        A_log, dt_bias = torch.zeros(2, device=DEVICE), torch.ones(2, device=DEVICE)
        o = flashinfer.chunk_gated_delta_rule(q, k, v, g, beta, cu_seqlens=self.case.cu_seqlens,
                                              use_gate_in_kernel=True, A_log=A_log, dt_bias=dt_bias, beta_is_logit=True)
        self.check(o, None, None, q, k, v, -torch.nn.functional.softplus(g + 1), beta.sigmoid())


if __name__ == "__main__":
    unittest.main()
