// Members judged with the reference on the GPU: sizes past 2^31 elements do not fit plain host memory.
#include "tests/device/checks.h"
#include "tests/reference/numbers.h"
#include <algorithm>

namespace gdn::device {

namespace {

using reference::Problem;

constexpr const char *ptx =
#ifdef GDN_REFERENCE_PTX
#include GDN_REFERENCE_PTX
#else
    nullptr
#endif
    ;

class Module {
public:
  explicit Module(const gpu::Gpu &gpu) : gpu(gpu) {
    gpu.driver().cuModuleLoadData(&module, ptx);
    gpu.driver().cuModuleGetFunction(&reference, module, "gdn_reference");
    gpu.driver().cuModuleGetFunction(&compare, module, "gdn_compare");
  }
  ~Module() { gpu.driver().cuModuleUnload(module); }
  Module(const Module &) = delete;

  template <typename... Params> void launch(void *function, size_t blocks, unsigned threads, Params... params) const {
    void *addresses[] = {&params...};
    gpu.driver().cuLaunchKernel(function, unsigned(blocks), 1, 1, threads, 1, 1, 0, gpu.stream(), addresses, nullptr);
    gpu.synchronize();
  }

  const gpu::Gpu &gpu;
  void *module = nullptr, *reference = nullptr, *compare = nullptr;
};

// Plain device tensors of `tokens` rows and `sequences` states, which repeat those of a small problem.
struct Inputs {
  gpu::Memory q, k, v, g, beta, offsets, initial;
  Inputs(const gpu::Gpu &gpu, const Problem &part, size_t tokens, const std::vector<int64_t> &cuts)
      : q(repeated(gpu, part.io, part.q, part.tokens, tokens)), k(repeated(gpu, part.io, part.k, part.tokens, tokens)),
        v(repeated(gpu, part.io, part.v, part.tokens, tokens)),
        g(repeated(gpu, ElementType::F32, part.g, part.tokens, tokens)),
        beta(repeated(gpu, ElementType::F32, part.beta, part.tokens, tokens)), offsets(gpu, cuts.size() * 8),
        initial(repeated(gpu, ElementType::F32, part.state, part.sequences(), cuts.size() - 1)) {
    offsets.upload(cuts.data(), cuts.size() * 8);
  }

  static gpu::Memory repeated(const gpu::Gpu &gpu, ElementType type, const std::vector<float> &values, size_t rows,
                              size_t wanted) {
    std::vector<std::byte> encoded = reference::encode(type, values);
    size_t size = encoded.size() / std::max<size_t>(rows, 1) * wanted;
    gpu::Memory memory(gpu, size);
    size_t done = std::min(size, encoded.size());
    memory.upload(encoded.data(), done);
    for (size_t piece; done < size; done += piece) {
      piece = std::min(done, size - done);
      gpu.driver().cuMemcpyDtoD_v2(memory.address() + done, memory.address(), piece);
    }
    gpu.driver().cuStreamSynchronize(nullptr);
    return memory;
  }
};

// The reference's results in fp32.
struct Truth {
  gpu::Memory output, state;
  Truth(const Module &module, const Problem &part, const Inputs &in, size_t tokens, size_t sequences)
      : output(module.gpu, tokens * part.valueHeads * part.valueDim * 4),
        state(module.gpu, sequences * part.valueHeads * part.stateSize() * 4) {
    output.fill(0);
    size_t blocks = sequences * part.valueHeads * ((part.valueDim + 31) / 32);
    module.launch(module.reference, blocks, 128, in.q.address(), in.k.address(), in.v.address(), in.g.address(),
                  in.beta.address(), in.initial.address(), in.offsets.address(), output.address(), state.address(),
                  int(part.keyHeads), int(part.valueHeads), int(part.keyDim), int(part.valueDim), part.scale,
                  int(part.io));
  }
};

reference::Error compare(const Module &module, const gpu::Memory &want, const gpu::Memory &got, ElementType type,
                         size_t heads, size_t width) {
  size_t rows = want.size() / 4 / width;
  gpu::Memory difference(module.gpu, rows * 8), norm(module.gpu, rows * 8), faults(module.gpu, 16);
  faults.fill(0);
  module.launch(module.compare, (rows * 32 + 255) / 256, 256, want.address(), got.address(), int(type),
                (long long)(rows), int(width), difference.address(), norm.address(), faults.address());
  std::vector<double> differences(rows), norms(rows);
  uint64_t counts[2];
  difference.download(differences.data(), rows * 8);
  norm.download(norms.data(), rows * 8);
  faults.download(counts, sizeof(counts));
  reference::Error error = reference::compareRows(differences, norms, heads);
  error.notFinite = counts[0];
  error.notZero = counts[1];
  return error;
}

void forward(const Session &session, const Problem &part, const Inputs &in, int64_t tokens, int64_t sequences,
             gpu::Memory &output, gpu::Memory &state) {
  gdn_forward_args args = {};
  args.struct_size = sizeof(args);
  args.batch = 1;
  args.tokens = tokens;
  args.heads = part.keyHeads;
  args.heads_v = part.valueHeads;
  args.key_dim = part.keyDim;
  args.value_dim = part.valueDim;
  args.num_sequences = sequences;
  auto io = gdn_dtype(part.io);
  args.q = gdn_contiguous(in.q.pointer(), io, tokens, part.keyHeads, part.keyDim);
  args.k = gdn_contiguous(in.k.pointer(), io, tokens, part.keyHeads, part.keyDim);
  args.v = gdn_contiguous(in.v.pointer(), io, tokens, part.valueHeads, part.valueDim);
  args.o = gdn_contiguous(output.pointer(), io, tokens, part.valueHeads, part.valueDim);
  args.g = gdn_contiguous(in.g.pointer(), GDN_F32, tokens, part.valueHeads, 1);
  args.beta = gdn_contiguous(in.beta.pointer(), GDN_F32, tokens, part.valueHeads, 1);
  if (in.initial.size())
    args.initial_state =
        gdn_contiguous_state(in.initial.pointer(), GDN_F32, part.valueHeads, part.keyDim, part.valueDim);
  args.final_state = gdn_contiguous_state(state.pointer(), GDN_F32, part.valueHeads, part.keyDim, part.valueDim);
  args.cu_seqlens_dtype = GDN_INT64;
  args.cu_seqlens = in.offsets.pointer();
  args.scale = part.scale;
  args.stream = session.gpu.stream();
  size_t size = 0;
  gpu::check(gdn_forward_workspace_size(session.bundle.get(), &args, &size), "gdn_forward_workspace_size");
  gpu::Memory workspace(session.gpu, size);
  args.workspace = workspace.pointer();
  args.workspace_size = size;
  gpu::check(gdn_forward(session.bundle.get(), &args), "gdn_forward");
  session.gpu.synchronize();
}

std::vector<float> download(const gpu::Memory &memory) {
  std::vector<float> values(memory.size() / 4);
  memory.download(values.data(), memory.size());
  return values;
}

std::string whyNot(const Session &session, size_t needed) {
  if (!ptx)
    return "built without NVRTC";
  if (!session.gpu.hasModules())
    return "the driver loads no PTX";
  return needed > session.gpu.freeMemory() ? "needs " + std::to_string(needed >> 30) + " GiB of GPU memory" : "";
}

} // namespace

Verdict judgeReference(const Session &session, const Member &member, uint64_t seed) {
  Verdict verdict;
  verdict.skipped = whyNot(session, 0);
  if (!verdict.skipped.empty())
    return verdict;
  Problem p = generate(member.recipe, seed);
  reference::Result want = reference::recurrence(p);
  Truth truth(Module(session.gpu), p, Inputs(session.gpu, p, p.tokens, p.offsets), p.tokens, p.sequences());
  constexpr double bound = 1e-6; // its results are rounded to fp32
  verdict.outputBound = reference::Bound::of(bound, p.valueDim);
  verdict.stateBound = reference::Bound::of(bound, p.stateSize());
  verdict.output = reference::compare(want.output, download(truth.output), p.valueHeads, p.valueDim);
  verdict.state = reference::compare(want.state, download(truth.state), p.valueHeads, p.stateSize());
  verdict.require(verdict.output.within(verdict.outputBound), "O differs");
  verdict.require(verdict.state.within(verdict.stateBound), "S differs");
  return verdict;
}

Verdict judgeLarge(const Session &session, const Member &member, uint64_t seed) {
  Verdict verdict;
  // Periods are odd, so that no power of two of rows away lies the same value.
  reference::Recipe small = member.recipe;
  std::vector<int64_t> cuts = {0};
  for (int64_t length : member.recipe.lengths)
    cuts.push_back(cuts.back() + length);
  size_t tokens = cuts.back(), sequences = cuts.size() - 1;
  bool many = sequences > 1000;
  small.lengths = many ? std::vector<int64_t>(257, 1) : std::vector<int64_t>{8191};
  Problem part = generate(small, seed);
  size_t elements = tokens * part.valueHeads * part.valueDim, states = sequences * part.valueHeads * part.stateSize();
  size_t stateCopies = member.recipe.hasState ? 3 : 2;
  verdict.skipped = whyNot(session, elements * (2 + 2 + 2 + 4) + states * 4 * stateCopies);
  if (!verdict.skipped.empty())
    return verdict;

  Module module(session.gpu);
  Inputs inputs(session.gpu, part, tokens, cuts);
  gpu::Memory output(session.gpu, elements * 2), state(session.gpu, states * 4);
  output.fill(0xff);
  state.fill(0xff);
  forward(session, part, inputs, int64_t(tokens), int64_t(sequences), output, state);
  Truth truth(module, part, inputs, tokens, sequences);
  verdict.outputBound = reference::Bound::of(benignBound(part.io), part.valueDim);
  verdict.stateBound = reference::Bound::of(benignBound(part.io), part.stateSize());
  verdict.output = compare(module, truth.output, output, part.io, part.valueHeads, part.valueDim);
  verdict.state = compare(module, truth.state, state, ElementType::F32, part.valueHeads, part.stateSize());
  verdict.require(verdict.output.within(verdict.outputBound), "O differs");
  verdict.require(verdict.state.within(verdict.stateBound), "S differs");
  return verdict;
}

} // namespace gdn::device
