"""What only a GPU shows: streams, graphs, threads, devices. Here, on a GPU, with a bundle that has the variants l2norm and
checkpoints in GDN_BUNDLE: python3 -m unittest test_gpu test_forward test_refusals test_interfaces test_operator."""

import threading
import unittest

import torch

from case import DEVICE, error, inputs, make, recurrence

import gdnc
from gdnc import flashinfer


@unittest.skipUnless(DEVICE == "cuda" and torch.cuda.is_available(), "needs a GPU")
class Gpu(unittest.TestCase):
    def setUp(self):
        self.case = make((300, 0, 77))
        self.wanted = self.forward()

    def forward(self, **options):
        return gdnc.forward(*inputs(self.case), initial_state=self.case.h0, final_state=True,
                            cu_seqlens=self.case.cu_seqlens, **options)

    def assert_same(self, got, wanted=None):
        torch.testing.assert_close(got, self.wanted if wanted is None else wanted, rtol=0, atol=0)

    def test_current_stream(self):
        values = self.case.v.clone()
        stream = torch.cuda.Stream()
        self.case.v.fill_(float("nan"))
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            self.case.v.copy_(values)
            got = self.forward()
        stream.synchronize()
        self.assert_same(got)

    def test_does_not_synchronize(self):
        torch.cuda.set_sync_debug_mode("error")
        try:
            self.forward(normalize_qk=True)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    def test_graph(self):
        """Replays read what the tensors hold then, offsets among it."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = self.forward()
        for offsets in (0, 300, 300, 377), (0, 5, 64, 377), (0, 0, 0, 100):
            with self.subTest(offsets=offsets):
                self.case.cu_seqlens.copy_(torch.tensor(offsets))
                self.case.v.mul_(0.5)
                for x in got:
                    x.fill_(float("nan"))
                graph.replay()
                self.assert_same(got, self.forward())

    def test_checkpoints_in_a_graph(self):
        """Where they stand and which rows are theirs is read from the device, in every replay anew."""
        starts, prefix = torch.tensor([0, 6, 6], device=DEVICE), torch.tensor([40, 0, 70], device=DEVICE)
        table, pool = torch.arange(8, device=DEVICE), torch.zeros(9, 2, 128, 128, device=DEVICE)

        def run(rows):
            return flashinfer.chunk_gated_delta_rule(
                *(x[0] for x in inputs(self.case)), initial_state=self.case.h0.mT.contiguous(),
                cu_seqlens=self.case.cu_seqlens, gate_domain="log", state_checkpoints=rows, checkpoint_cu_starts=starts,
                checkpoint_every_n_tokens=64, checkpoint_state_indices=table, prefix_lens=prefix)

        run(pool)
        torch.cuda.set_sync_debug_mode("error")
        try:
            run(pool)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            o = run(pool)
        for before, rows in (((40, 0, 70), (3, 2, 1, 0, 4, 5, 6, 7)), ((63, 9, 0), (8, -1, 9, 0, 1, 2, -1, 7)),
                             ((0, 0, 0), (-1,) * 8)):
            with self.subTest(before=before, rows=rows):
                prefix.copy_(torch.tensor(before))
                table.copy_(torch.tensor(rows))
                pool.normal_()
                wanted = pool.clone()
                graph.replay()
                self.assert_same(o, run(wanted))
                self.assert_same(pool, wanted)

    def test_thread_that_has_not_used_the_gpu(self):
        results = []
        thread = threading.Thread(target=lambda: results.append(self.forward()))
        thread.start()
        thread.join()
        self.assert_same(results[0])

    def test_compiled_by_inductor(self):
        def model(q, k, v, g, beta, state, cu_seqlens):
            o, final = gdnc.chunk_gated_delta_rule(q.sin(), k, v, g, beta, None, state, True, True,
                                                   cu_seqlens=cu_seqlens)
            return o * 2, final
        arguments = *inputs(self.case), self.case.h0, self.case.cu_seqlens
        for got, wanted in zip(torch.compile(model, fullgraph=True)(*arguments), model(*arguments)):
            self.assertLess(error(got, wanted.cpu().double()), 1e-2)

    def test_long_sequence(self):
        case = make((4096,), (2, 4))
        o, final = gdnc.forward(*inputs(case), initial_state=case.h0, final_state=True)
        wanted, wanted_final = recurrence(*inputs(case), case.h0)
        self.assertLess(error(o, wanted), 5e-3)
        self.assertLess(error(final, wanted_final), 5e-3)

    def test_cpu_tensors(self):
        case = make()
        with self.assertRaisesRegex(ValueError, "^q: expected a tensor on cuda, got one on cpu; CPU tensors run on "):
            gdnc.forward(*(x.cpu() for x in inputs(case)))
        with self.assertRaisesRegex(ValueError, "^g: expected a tensor on cuda:0 like q, got one on cpu$"):
            gdnc.forward(case.q, case.k, case.v, case.g.cpu(), case.beta)

    @unittest.skipUnless(torch.cuda.device_count() > 1, "needs two GPUs")
    def test_two_devices(self):
        other = [x.to("cuda:1") for x in inputs(self.case)]
        o, final = gdnc.forward(*other, initial_state=self.case.h0.to("cuda:1"), final_state=True,
                                cu_seqlens=self.case.cu_seqlens.to("cuda:1"))
        self.assertEqual(torch.cuda.current_device(), 0)
        self.assert_same((o.to("cuda:0"), final.to("cuda:0")))
        with self.assertRaisesRegex(ValueError, "^k: expected a tensor on cuda:0 like q, got one on cuda:1$"):
            gdnc.forward(self.case.q, other[1], *inputs(self.case)[2:])


if __name__ == "__main__":
    unittest.main()
