"""The operator that torch knows: schema, fake kernel, compilation; and that calls without it are the same."""

import os
import subprocess
import sys
import tempfile
import threading
import unittest
from types import SimpleNamespace
from unittest import mock

import torch

from case import DEVICE, inputs, make, poisoned

import gdnc
from gdnc import _launch, _library


@unittest.skipIf(os.environ.get("GDN_TEST_CTYPES"), "torch.compile needs the operator")
class Operator(unittest.TestCase):
    def fit(self):
        """Arguments that the operator takes, one of each kind."""
        case = make((30, 40))
        per_head = torch.zeros(2, device=DEVICE)
        slots, rows = torch.tensor([1, 0], device=DEVICE), torch.empty_like(case.h0)
        return [*inputs(case), torch.empty_like(case.v), case.h0, torch.empty_like(case.h0), case.cu_seqlens, 0.1, False,
                0, _library.CHECKPOINTS_AFTER, per_head, per_head, slots, slots, rows, 64, slots]

    def test_is_used_where_it_is_looked_at(self):
        """By compilers, modes and profilers, and for what are no plain tensors; else a call does without."""
        class Mode(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **kwargs or {})

        class Named(torch.Tensor):
            pass

        case, calls = make((30, 40)), []

        def run(q=case.q):
            with mock.patch.object(_launch, "_operator", side_effect=torch.ops.gdnc.forward.default) as operator:
                o, _ = gdnc.forward(q, *inputs(case)[1:], cu_seqlens=case.cu_seqlens)
            calls.append(operator.call_count)
            return o

        wanted = run()
        run(torch.nn.Parameter(case.q, requires_grad=False))
        self.assertEqual(calls, [0, 0])
        with Mode():
            run()
        with torch.overrides.BaseTorchFunctionMode():
            run()
        with torch.profiler.profile(acc_events=True) as profile:
            run()
        self.assertIn("gdnc::forward", [event.name for event in profile.events()])
        traced = torch.jit.trace(run, (case.q,), check_trace=False)
        self.assertIn("gdnc::forward", str(traced.graph))
        self.assertTrue(torch.equal(run(case.q.as_subclass(Named)), wanted))
        self.assertEqual(calls[2:], [1] * 5)

    def test_another_torch(self):
        """In which the function knows no tensors, or whatever follows a call is not to be seen."""
        for missing in "torch.Tensor.__dlpack_c_exchange_api__", "torch._C._is_tracing":
            script = f"import torch; del {missing}; from gdnc import _launch; assert _launch.launch is _launch._operator"
            subprocess.run([sys.executable, "-c", script], check=True)

    def test_another_libgdn_in_the_path(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/libgdn.so.0", "w"):
                path = folder + ":" + os.environ.get("LD_LIBRARY_PATH", "")
            subprocess.run([sys.executable, "-c", "from gdnc import _launch; assert _launch._direct"], check=True,
                           env=dict(os.environ, LD_LIBRARY_PATH=path))

    def test_lazily_negated(self):
        case = make(heads=(1, 1))
        wanted, _ = gdnc.forward(*inputs(case))
        negated = torch.complex(case.g, -case.g).conj().imag
        self.assertTrue(negated.is_neg())
        self.assertTrue(torch.equal(gdnc.forward(case.q, case.k, case.v, negated, case.beta)[0], wanted))

    def test_others_run_meanwhile(self):
        """A launch may wait for the GPU, and then not for what else Python has to do."""
        case, ticks, through = make((200,)), [], threading.Event()

        def tick():
            while not through.wait(1e-3):
                ticks.append(1)

        thread = threading.Thread(target=tick)
        thread.start()
        arguments = *inputs(case), torch.empty_like(case.v), *[None] * 3, 0.1, False, 0, 0, *[None] * 5, 0, None
        while not ticks:
            pass
        before = len(ticks)
        self.assertTrue(_launch._direct(*arguments))
        during = len(ticks) - before
        through.set()
        thread.join()
        if DEVICE == "cpu":  # where a launch takes as long as the kernel
            self.assertGreater(during, 5)

    def test_refuses_what_reaches_past_a_tensor(self):
        """Even where no Python stands before it."""
        fit = self.fit()
        for position, x in enumerate(fit):
            if not isinstance(x, torch.Tensor):
                continue
            for wrong in x[..., 1:], torch.stack([x, x], -1)[..., 0], x[None]:
                with self.subTest(position=position, shape=list(wrong.shape), stride=wrong.stride()):
                    unfit = *fit[:position], wrong, *fit[position + 1:]
                    with self.assertRaisesRegex(RuntimeError, r"^\w+: expected what gdnc\.forward takes, got another "):
                        torch.ops.gdnc.forward(*unfit)
                    self.assertIs(_launch._direct(*unfit), False)
                    self.assertIs(_launch._direct_check(*unfit), False)

    def test_what_only_the_operator_refuses(self):
        fit = self.fit()
        self.assertIs(_launch._direct(*fit), True)
        self.assertIs(_launch._direct(*fit[1:]), False)
        for position, x in enumerate(fit):
            for wrong in [1.5, "x", [1], torch.zeros(1, device="meta")]:
                if position != 10 and not (position == 9 and isinstance(wrong, float)):
                    with self.subTest(position=position, wrong=wrong):
                        self.assertIs(_launch._direct(*fit[:position], wrong, *fit[position + 1:]), False)

    def test_opcheck(self):
        case = make((30, 40))
        o, final = torch.empty_like(case.v), torch.empty_like(case.h0)
        per_head = torch.zeros(2, device=DEVICE)
        slots, rows = torch.tensor([1, 0], device=DEVICE), torch.empty_like(case.h0)
        for states, flags, values in (
                ((case.h0, final, case.cu_seqlens), _library.CHECKPOINTS_BEFORE,
                 (per_head, per_head, slots, slots, rows, 64, slots)),
                ((None,) * 3, _library.NORMALISE_QK, (None,) * 5 + (0, None))):
            torch.library.opcheck(torch.ops.gdnc.forward.default,
                                  (*inputs(case), o, *states, 0.1, False, 0, flags, *values))

    def test_compiled(self):
        """Whole graphs, with what stands around a call compiled as well, and a state that is written in place."""
        def layer(q, k, v, g, beta, state, cu_seqlens):
            o, _ = gdnc.forward(q * 2, k, v, g, beta, initial_state=state, final_state=state, cu_seqlens=cu_seqlens,
                                normalize_qk=True)
            return o.float() + 1

        def fla(q, k, v, g, beta, state, cu_seqlens):
            return gdnc.chunk_gated_delta_rule(q, k, v, g, beta, None, state, True, cu_seqlens=cu_seqlens)

        for function in layer, fla:
            compiled = torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=True)
            for lengths in (30, 40), (5, 0, 7):
                with self.subTest(function=function.__name__, lengths=lengths):
                    case = make(lengths)
                    states = case.h0.clone(), case.h0.clone()
                    wanted = function(*inputs(case), states[0], case.cu_seqlens)
                    got = compiled(*inputs(case), states[1], case.cu_seqlens)
                    torch.testing.assert_close(got, wanted, rtol=0, atol=0)
                    self.assertTrue(torch.equal(*states))


class Ctypes(unittest.TestCase):
    def test_same_results(self):
        case = make((30, 40))
        results = []
        launches = [_launch._launch_ctypes]
        if not os.environ.get("GDN_TEST_CTYPES"):
            launches += [_launch._operator, _launch._direct]
        for launch in launches:
            o, final = torch.empty_like(case.v), torch.empty_like(case.h0)
            launch(*inputs(case), o, case.h0, final, case.cu_seqlens, 0.1, False, 0, _library.BETA_LOGITS,
                   torch.ones(2, device=DEVICE), *[None] * 4, 0, None)
            results.append((o, final))
        for result in results[1:]:
            torch.testing.assert_close(result, results[0], rtol=0, atol=0)

    def test_check_launches_nothing(self):
        case = make((30, 40))
        o, final = poisoned(case.v.shape, case.v.dtype), poisoned(case.h0.shape)
        arguments = *inputs(case), o, case.h0, final, case.cu_seqlens, 0.1, False
        more = 0, *[None] * 5, 0, None
        with mock.patch.object(_launch, "_call", wraps=_launch._call) as slow:
            _launch.check_launch(*arguments, 0, *more)
            self.assertEqual(slow.called, bool(os.environ.get("GDN_TEST_CTYPES")))
        self.assertTrue(o.isnan().all() and final.isnan().all())
        with self.assertRaisesRegex(_library.Error, "^expected a forward kernel for .* split=5, got a bundle without"):
            _launch.check_launch(*arguments, 5, *more)

    def test_runs_on_the_device_of_q(self):
        """Whatever is current, on its stream; a thread without a context gets one."""
        q, args = SimpleNamespace(is_cuda=True, device=torch.device("cuda", 1)), _library.ForwardArgs()
        statuses, streams = [_library.NO_CONTEXT, _library.OK], []

        def forward(bundle, given):
            self.assertTrue(guard.return_value.__enter__.called and not guard.return_value.__exit__.called)
            streams.append(given._obj.stream)
            return statuses.pop(0)

        with mock.patch.object(torch.cuda, "device") as guard, mock.patch.object(torch, "zeros") as zeros, \
                mock.patch.object(torch.cuda, "current_stream", return_value=SimpleNamespace(cuda_stream=5)), \
                mock.patch.object(_library, "library", return_value=SimpleNamespace(gdn_forward=forward)):
            _launch._call("gdn_forward", q, args)
        guard.assert_called_once_with(q.device)
        zeros.assert_called_once_with(1, device=q.device)
        self.assertEqual(streams, [5, 5])

    def test_older_torch(self):
        self.assertFalse(_library.has_operators("2.9.1+cu128"))
        self.assertTrue(_library.has_operators("2.10.0+cu128"))
        self.assertTrue(_library.has_operators("3.0.0a0"))


if __name__ == "__main__":
    unittest.main()
