"""gdnc.forward against the recurrence in float64, into poisoned outputs."""

import unittest

import torch

from case import BOUNDS, DEVICE, error, inputs, make, poisoned, recurrence

import gdnc


class Forward(unittest.TestCase):
    def check(self, case, bound=None, tail=0, **options):
        """Runs the case with its initial state, and compares."""
        out = poisoned(case.v.shape, case.q.dtype)
        state = options.pop("final_state", None)
        state = poisoned(case.h0.shape) if state is None else state
        v_first = options.get("state_v_first", False)
        o, final = gdnc.forward(*inputs(case), initial_state=options.pop("initial_state", case.h0), final_state=state,
                                cu_seqlens=case.cu_seqlens, out=out, **options)
        self.assertIs(o, out)
        self.assertIs(final, state)
        wanted, wanted_final = recurrence(*inputs(case), case.h0, case.cu_seqlens, options.get("scale"))
        bound = bound or BOUNDS[case.q.dtype]
        self.assertLess(error(o, wanted), bound)
        self.assertLess(error(final.transpose(-1, -2) if v_first else final, wanted_final), bound)
        if tail:
            self.assertTrue((o[:, -tail:] == 0).all())

    def test_dimensions_and_types(self):
        for dims in (64, 64), (128, 128), (96, 192):
            for dtype in BOUNDS:
                with self.subTest(dims=dims, dtype=dtype):
                    self.check(make(dims=dims, dtype=dtype))

    def test_heads(self):
        for heads in (1, 1), (1, 3), (2, 4), (3, 3):
            with self.subTest(heads=heads):
                self.check(make((33,), heads))

    def test_dense_batch(self):
        for tokens in 1, 63, 64, 65:
            with self.subTest(tokens=tokens):
                self.check(make((tokens,), batch=3))

    def test_packed_sequences(self):
        for dtype in torch.int32, torch.int64:
            with self.subTest(dtype=dtype):
                case = make((0, 1, 64, 0, 65, 7, 0))
                case.cu_seqlens = case.cu_seqlens.to(dtype)
                self.check(case)

    def test_padded_tail(self):
        case = make((20, 13, 90))
        case.cu_seqlens, case.h0 = case.cu_seqlens[:3], case.h0[:2]
        self.check(case, tail=90)

    def test_offsets_within_a_larger_buffer(self):
        case = make((5, 70))
        case.cu_seqlens = torch.cat([case.cu_seqlens.new_tensor([9] * 3), case.cu_seqlens])[3:]
        self.check(case)

    def test_no_tokens(self):
        case = make((0,), batch=2)
        o, final = gdnc.forward(*inputs(case), initial_state=case.h0, final_state=poisoned(case.h0.shape))
        self.assertEqual(o.numel(), 0)
        self.assertTrue(torch.equal(final, case.h0))

    def test_no_initial_state_is_zeros(self):
        case = make()
        with_zeros = gdnc.forward(*inputs(case), initial_state=torch.zeros_like(case.h0), final_state=True)
        without = gdnc.forward(*inputs(case), final_state=True)
        for a, b in zip(with_zeros, without):
            self.assertTrue(torch.equal(a, b))

    def test_states(self):
        for dtype in torch.float32, torch.bfloat16, torch.float16:
            for v_first in False, True:
                with self.subTest(dtype=dtype, v_first=v_first):
                    case = make((30, 40))
                    case.h0 = case.h0.to(dtype)
                    stored = case.h0.transpose(-1, -2).contiguous() if v_first else case.h0
                    self.check(case, initial_state=stored, state_v_first=v_first,
                               final_state=poisoned(stored.shape, dtype))
                    self.check(case, initial_state=stored, state_v_first=v_first, final_state=poisoned(stored.shape))

    def test_state_in_place_in_a_strided_pool(self):
        case = make((30, 40))
        pool = poisoned((4, 5, 128, 128))
        pool[1:3, 2:4] = case.h0
        slots = pool[1:3, 2:4]
        self.check(case, initial_state=slots, final_state=slots)
        pool[1:3, 2:4] = float("nan")
        self.assertTrue(pool.isnan().all())  # nothing else was written

    def test_pools(self):
        """Read and written by indices: some outside, one empty, the others untouched."""
        for dtype in torch.int32, torch.int64:
            for v_first in False, True:
                with self.subTest(dtype=dtype, v_first=v_first):
                    case = make((30, 0, 70, 5))
                    pool = poisoned((9, 2, 128, 128))
                    pool[[7, 2, 4]] = case.h0[[0, 1, 3]].mT if v_first else case.h0[[0, 1, 3]]
                    before, final = pool.clone(), poisoned((9, 3, 128, 128))
                    reads = torch.tensor([7, 2, -1, 4], dtype=dtype, device=DEVICE)
                    writes = torch.tensor([8, 3, 0, 9], dtype=dtype, device=DEVICE)
                    case.h0[2] = 0
                    wanted, wanted_final = recurrence(*inputs(case), case.h0, case.cu_seqlens)
                    o, returned = gdnc.forward(
                        *inputs(case), initial_state=pool, final_state=final[:, 1:], state_v_first=v_first,
                        cu_seqlens=case.cu_seqlens, read_indices=reads, write_indices=writes)
                    self.assertLess(error(o, wanted), 5e-3)
                    got = final[[8, 0], 1:]
                    self.assertLess(error(got.mT if v_first else got, wanted_final[[0, 2]]), 5e-3)
                    self.assertEqual(returned.data_ptr(), final[:, 1:].data_ptr())
                    final[[8, 0], 1:] = float("nan")
                    self.assertTrue(final.isnan().all())
                    self.assertTrue(torch.equal(pool.nan_to_num(5), before.nan_to_num(5)))

    def test_pool_in_place(self):
        case = make((30, 0, 40))
        pool = poisoned((5, 2, 128, 128))
        slots = torch.tensor([4, 1, 2], device=DEVICE)
        pool[slots] = case.h0
        _, wanted = recurrence(*inputs(case), case.h0, case.cu_seqlens)
        gdnc.forward(*inputs(case), initial_state=pool, final_state=pool, cu_seqlens=case.cu_seqlens,
                     read_indices=slots)
        self.assertLess(error(pool[slots], wanted), 5e-3)
        self.assertTrue(torch.equal(pool[1], case.h0[1]) and pool[[0, 3]].isnan().all())

    def test_written_pool_alone(self):
        case = make((30, 40))
        pool, slots = poisoned((5, 2, 128, 128)), torch.tensor([3, 0], device=DEVICE)
        _, wanted = recurrence(*inputs(case), case.h0, case.cu_seqlens)
        gdnc.forward(*inputs(case), initial_state=case.h0, final_state=pool, cu_seqlens=case.cu_seqlens,
                     write_indices=slots)
        self.assertLess(error(pool[slots], wanted), 5e-3)
        self.assertTrue(pool[[1, 2, 4]].isnan().all())

    def test_checkpoints(self):
        case, between = make((130, 0, 64, 200)), []
        recurrence(*inputs(case), case.h0, case.cu_seqlens, between=between)
        starts = torch.tensor([1, 0, 4, 6], device=DEVICE)
        wanted = {False: {1: between[0][1], 2: between[0][2], 4: between[2][1], 6: between[3][1], 7: between[3][2],
                          8: between[3][3]},
                  True: {1: between[0][0], 2: between[0][2], 4: between[2][0], 6: between[3][0], 7: between[3][2]}}
        for before, every in (False, 64), (True, 128):
            for dtype in torch.float32, torch.bfloat16:
                for v_first in False, True:
                    with self.subTest(before=before, dtype=dtype, v_first=v_first):
                        rows = poisoned((10, 3, 128, 128), dtype)
                        gdnc.forward(
                            *inputs(case), initial_state=case.h0.mT.contiguous() if v_first else case.h0,
                            state_v_first=v_first, cu_seqlens=case.cu_seqlens, checkpoints=rows[:, 1:],
                            checkpoint_every=every, checkpoint_starts=starts, checkpoints_before=before)
                        for row, state in wanted[before].items():
                            got = rows[row, 1:]
                            self.assertLess(error(got.mT if v_first else got, state), 5e-3)
                            rows[row, 1:] = float("nan")
                        self.assertTrue(rows.isnan().all())

    def test_checkpoints_of_a_dense_batch(self):
        case, between = make((130,), batch=2), []
        recurrence(*inputs(case), case.h0, between=between)
        rows = poisoned((4, 2, 128, 128))
        gdnc.forward(*inputs(case), initial_state=case.h0, checkpoints=rows, checkpoint_every=64)
        self.assertLess(error(rows, torch.stack([state for states in between for state in states[1:3]])), 5e-3)

    def test_strided_views(self):
        case = make((70,), (1, 2))
        tokens = case.q.shape[1]
        packed = torch.zeros(1, tokens, 1024, dtype=case.q.dtype, device=DEVICE)
        views = {}
        for name, (begin, columns) in {"q": (0, 128), "k": (128, 128), "v": (256, 256)}.items():
            views[name] = packed[..., begin:begin + columns].unflatten(-1, (-1, 128))
            views[name].copy_(getattr(case, name))
        gates = torch.zeros(1, tokens, 4, device=DEVICE)
        gates[..., :2], gates[..., 2:] = case.g, case.beta
        out = poisoned((1, tokens, 512), case.q.dtype)
        o, _ = gdnc.forward(views["q"], views["k"], views["v"], gates[..., :2], gates[..., 2:], initial_state=case.h0,
                            out=out[..., 128:384].unflatten(-1, (2, 128)))
        wanted, _ = recurrence(*inputs(case), case.h0)
        self.assertLess(error(o, wanted), BOUNDS[case.q.dtype])
        self.assertTrue(out[..., :128].isnan().all() and out[..., 384:].isnan().all())

    def test_gate_types(self):
        for dtype in torch.bfloat16, torch.float16:
            with self.subTest(dtype=dtype):
                case = make()
                case.g, case.beta = case.g.to(dtype), case.beta.to(dtype)
                self.check(case)

    def test_scale(self):
        self.check(make(), scale=0.5)
        case = make()
        o, _ = gdnc.forward(*inputs(case), scale=0, out=poisoned(case.v.shape, case.v.dtype))
        self.assertTrue((o == 0).all())

    def test_split(self):
        for split in 1, 2:
            with self.subTest(split=split):
                self.check(make(), split=split)

    def test_cuts(self):
        long, short = make((2 * 2048 + 100,), (1, 1)), make((2 * 2048 + 100, 30), (1, 1))
        for name in "q", "k", "v", "g", "beta":
            getattr(short, name)[:, :long.q.shape[1]] = getattr(long, name)
        short.h0[0] = long.h0[0]
        results = {}
        for cut in "off", "invariant":
            with self.subTest(cut=cut):
                self.check(long, cut=cut)
                results[cut] = gdnc.forward(*inputs(long), initial_state=long.h0, cu_seqlens=long.cu_seqlens, cut=cut)[0]
        self.assertFalse(torch.equal(*results.values()))
        batch, _ = gdnc.chunk_gated_delta_rule(*inputs(short), initial_state=short.h0, cu_seqlens=short.cu_seqlens,
                                               cut="invariant")
        self.assertTrue(torch.equal(batch[:, :long.q.shape[1]], results["invariant"]))

    def test_keys_normalised(self):
        self.check(make(), cut="fast", keys_normalised=True)
        with self.assertRaisesRegex(RuntimeError, "GDN_KEYS_NORMALISED"):
            gdnc.forward(*inputs(make()), cut="fast")

    def test_strong_decay(self):
        case = make()
        case.g = torch.full_like(case.g, -1e4)
        self.check(case)

    def test_the_kernel_reads_offsets_at_each_call(self):
        case = make((30, 40))
        first, _ = gdnc.forward(*inputs(case), cu_seqlens=case.cu_seqlens)
        case.cu_seqlens[1] = 10
        second, _ = gdnc.forward(*inputs(case), cu_seqlens=case.cu_seqlens)
        self.assertLess(error(second, recurrence(*inputs(case), None, case.cu_seqlens)[0]), 5e-3)
        self.assertFalse(torch.equal(first, second))


class Fusions(unittest.TestCase):
    def setUp(self):
        self.case = make()
        self.case.q[:, 3], self.case.k[:, 5] = 0, 0

    def check(self, reference, got, bound=5e-3):
        wanted, wanted_final = recurrence(*reference, self.case.h0)
        self.assertLess(error(got[0], wanted), bound)
        self.assertLess(error(got[1], wanted_final), bound)

    def forward(self, *tensors, **options):
        return gdnc.forward(*tensors, initial_state=self.case.h0, final_state=True, **options)

    def test_normalized_rows(self):
        q, k, v, g, beta = inputs(self.case)
        q, k = 3 * q, 0.25 * k
        exact = [x.double() / (x.double().square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k)]
        self.check((*exact, v, g, beta), self.forward(q, k, v, g, beta, normalize_qk=True))

    def test_decays(self):
        q, k, v, g, beta = inputs(self.case)
        alpha = g.exp()
        alpha[:, 7] = 0
        self.check((q, k, v, alpha.double().log(), beta), self.forward(q, k, v, alpha, beta, g_is_decay=True))

    def test_beta_logits(self):
        q, k, v, g, _ = inputs(self.case)
        logits = torch.randn(g.shape, device=DEVICE)
        for double in False, True:
            with self.subTest(double=double):
                beta = logits.double().sigmoid() * (1 + double)
                self.check((q, k, v, g, beta), self.forward(q, k, v, g, logits, beta_logits=True, double_beta=double))
        got, wanted = (self.forward(q, k, v, g, logits, beta_logits=true) for true in (2, True))
        self.assertTrue(torch.equal(got[0], wanted[0]))

    def test_gate_inputs(self):
        q, k, v, _, beta = inputs(self.case)
        raw = (4 * torch.randn(beta.shape, device=DEVICE)).bfloat16()
        A_log, bias = torch.tensor([-1., 2.], device=DEVICE), torch.tensor([0.5, -1.], device=DEVICE)
        for dt_bias in None, bias:
            with self.subTest(dt_bias=dt_bias):
                x = raw.double() + (0 if dt_bias is None else dt_bias.double())
                g = -A_log.double().exp() * torch.nn.functional.softplus(x)
                self.check((q, k, v, g, beta), self.forward(q, k, v, raw, beta, A_log=A_log, dt_bias=dt_bias))


if __name__ == "__main__":
    unittest.main()
