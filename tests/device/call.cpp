#include "tests/device/call.h"
#include "tests/reference/numbers.h"
#include "tests/reference/parallel.h"
#include <algorithm>
#include <cstring>

namespace gdn::device {

namespace {

constexpr size_t guard = 64 << 10, misalign = 16; // bytes
constexpr size_t gap = 8;                         // elements between rows that lie apart

Tensor::Shape queryShape(const reference::Problem &p, const Storage &s) {
  Tensor::Shape shape = Tensor::contiguous(p.tokens, p.keyHeads, p.keyDim);
  if (s.projection)
    shape.outerStride = 2 * shape.heads * shape.width + size_t(p.valueHeads) * p.valueDim + gap;
  return shape;
}

Tensor::Shape valueShape(const reference::Problem &p, const Storage &s) {
  Tensor::Shape shape = Tensor::contiguous(p.tokens, p.valueHeads, p.valueDim);
  if (s.projection)
    shape.outerStride = queryShape(p, s).outerStride;
  return shape;
}

Tensor::Shape outputShape(const reference::Problem &p, const Storage &s) {
  Tensor::Shape shape = Tensor::contiguous(p.tokens, p.valueHeads, p.valueDim);
  if (s.projection) {
    shape.headStride += gap;
    shape.outerStride = shape.heads * shape.headStride + gap;
  }
  return shape;
}

Tensor::Shape gateShape(const reference::Problem &p, const Storage &s) {
  Tensor::Shape shape = Tensor::contiguous(p.tokens, p.valueHeads, 1);
  if (s.projection)
    shape.outerStride += 3;
  return shape;
}

Tensor::Shape stateShape(const reference::Problem &p, const Storage &s) {
  Tensor::Shape shape = Tensor::contiguous(p.sequences(), p.valueHeads, p.stateSize());
  if (s.stateGaps) {
    shape.headStride += gap;
    shape.outerStride = shape.heads * shape.headStride + 3 * gap;
  }
  return shape;
}

// What only exists as a part of another tensor takes no memory of its own.
Tensor::Shape nothing() { return Tensor::contiguous(0, 1, 1); }

gdn_tensor view(const Tensor &memory, const Tensor::Shape &shape, size_t offset, int64_t tokens) {
  return {memory.pointer(offset), int64_t(shape.outerStride) * tokens, int64_t(shape.outerStride),
          int64_t(shape.headStride), int32_t(memory.type)};
}

gdn_state view(const Tensor &memory) {
  return {memory.pointer(), int64_t(memory.shape.outerStride), int64_t(memory.shape.headStride), int32_t(memory.type)};
}

template <typename Visit> void eachRow(const Tensor::Shape &shape, Visit visit) {
  reference::parallelFor(shape.outer, [&](size_t outer) {
    for (size_t head = 0; head < shape.heads; ++head)
      visit(outer, outer * shape.outerStride + head * shape.headStride, (outer * shape.heads + head) * shape.width);
  });
}

} // namespace

Tensor::Tensor(const gpu::Gpu &gpu, ElementType type, Shape shape, bool aligned)
    : shape(shape), type(type), front(guard + (aligned ? 0 : misalign)),
      memory(gpu, shape.count() ? front + shape.outer * shape.outerStride * reference::bytes(type) + guard : 0) {}

void *Tensor::pointer(size_t elements) const {
  return memory.size() ? memory.pointer(front + elements * reference::bytes(type)) : nullptr;
}

void Tensor::upload(const std::vector<Part> &parts, size_t used) {
  if (!memory.size())
    return;
  std::vector<std::byte> image(memory.size(), std::byte(0xff));
  size_t size = reference::bytes(type);
  for (const Part &part : parts) {
    std::vector<std::byte> encoded = reference::encode(type, part.values);
    std::byte *to = image.data() + front + part.offset * size;
    eachRow(part.shape, [&](size_t outer, size_t at, size_t from) {
      if (outer < used)
        std::memcpy(to + at * size, &encoded[from * size], part.shape.width * size);
    });
  }
  memory.upload(image.data(), image.size());
}

std::vector<float> Tensor::download(bool &untouched, std::vector<std::byte> &bytes) const {
  if (!memory.size())
    return {};
  std::vector<std::byte> image(memory.size());
  memory.download(image.data(), image.size());
  bytes.insert(bytes.end(), image.begin(), image.end());
  size_t size = reference::bytes(type);
  std::byte *from = image.data() + front;
  std::vector<std::byte> packed(shape.count() * size);
  eachRow(shape, [&](size_t, size_t at, size_t to) {
    std::memcpy(&packed[to * size], from + at * size, shape.width * size);
    std::memset(from + at * size, 0xff, shape.width * size);
  });
  for (std::byte byte : image)
    untouched &= byte == std::byte(0xff);
  return reference::decode(type, packed.data(), shape.count());
}

Call::Call(const gpu::Gpu &gpu, const gpu::Bundle &bundle, const reference::Problem &p, const Storage &s)
    : gpu(gpu), bundle(bundle), storage(s), keyDim(p.keyDim), valueDim(p.valueDim),
      query(gpu, p.io, queryShape(p, s), s.aligned),
      key(gpu, p.io, s.projection ? nothing() : queryShape(p, s), s.aligned),
      value(gpu, p.io, s.projection ? nothing() : valueShape(p, s), s.aligned),
      gate(gpu, s.gates, gateShape(p, s), s.aligned), strength(gpu, s.gates, gateShape(p, s), s.aligned),
      output(gpu, p.io, outputShape(p, s), s.aligned),
      offsets(gpu, s.offsets == Storage::Offsets::Dense ? 0 : 2 * guard + (p.sequences() + 1) * sizeof(int64_t)) {
  if (!p.aLog.empty())
    rate.emplace(gpu, s.gates, Tensor::contiguous(1, p.valueHeads, 1), s.aligned);
  if (!p.dtBias.empty())
    bias.emplace(gpu, s.gates, Tensor::contiguous(1, p.valueHeads, 1), s.aligned);
  if (!p.state.empty())
    initial.emplace(gpu, s.initialState, stateShape(p, s), s.aligned);
  if (s.wantsState && !s.inPlace)
    final.emplace(gpu, s.finalState, stateShape(p, s), s.aligned);
  upload(p);
  fillArguments(p);
}

void Call::upload(const reference::Problem &p) {
  size_t used = size_t(p.offsets.back());
  if (storage.projection) {
    size_t width = size_t(p.keyHeads) * keyDim;
    query.upload({{query.shape, 0, p.q}, {query.shape, width, p.k}, {valueShape(p, storage), 2 * width, p.v}}, used);
  } else {
    query.upload(p.q, used);
    key.upload(p.k, used);
    value.upload(p.v, used);
  }
  gate.upload(p.g, used);
  strength.upload(p.beta, used);
  if (rate)
    rate->upload(p.aLog, 1);
  if (bias)
    bias->upload(p.dtBias, 1);
  if (initial) {
    initialValues = storage.valueFirst ? transposed(p.state, keyDim, valueDim) : p.state;
    initial->upload(initialValues, p.sequences());
  }
  uploadOffsets(p.offsets);
}

void Call::uploadOffsets(const std::vector<int64_t> &values) {
  if (!offsets.size())
    return;
  offsets.fill(0xff);
  if (storage.offsets == Storage::Offsets::Int32) {
    std::vector<int32_t> narrow(values.begin(), values.end());
    offsets.upload(narrow.data(), narrow.size() * sizeof(int32_t), guard);
  } else {
    offsets.upload(values.data(), values.size() * sizeof(int64_t), guard);
  }
}

void Call::fillArguments(const reference::Problem &p) {
  bool dense = storage.offsets == Storage::Offsets::Dense;
  args.struct_size = sizeof(args);
  args.batch = dense ? int64_t(p.sequences()) : 1;
  args.tokens = p.tokens / args.batch;
  args.heads = p.keyHeads;
  args.heads_v = p.valueHeads;
  args.key_dim = p.keyDim;
  args.value_dim = p.valueDim;
  args.num_sequences = int64_t(p.sequences());
  size_t width = size_t(p.keyHeads) * p.keyDim;
  const Tensor &keys = storage.projection ? query : key, &values = storage.projection ? query : value;
  args.q = view(query, query.shape, 0, args.tokens);
  args.k = view(keys, query.shape, storage.projection ? width : 0, args.tokens);
  args.v = view(values, valueShape(p, storage), storage.projection ? 2 * width : 0, args.tokens);
  args.o = view(output, output.shape, 0, args.tokens);
  args.g = view(gate, gate.shape, 0, args.tokens);
  args.beta = view(strength, strength.shape, 0, args.tokens);
  if (initial)
    args.initial_state = view(*initial);
  if (final || storage.inPlace)
    args.final_state = view(final ? *final : *initial);
  args.state_layout = storage.valueFirst ? GDN_V_FIRST : GDN_K_FIRST;
  args.cu_seqlens_dtype = storage.offsets == Storage::Offsets::Int32 ? GDN_INT32 : GDN_INT64;
  args.cu_seqlens = dense ? nullptr : offsets.pointer(guard);
  args.scale = p.scale;
  for (auto [set, flag] : {std::pair(p.betaLogits, GDN_BETA_LOGITS),
                           {p.betaDoubled, GDN_BETA_DOUBLED},
                           {p.gateIsDecay, GDN_G_IS_DECAY},
                           {p.normalise, GDN_NORMALISE_QK}})
    args.flags |= set ? uint32_t(flag) : 0;
  for (auto [values, to] : {std::pair(&rate, &args.a_log), {&bias, &args.dt_bias}})
    if (*values)
      *to = {(*values)->pointer(), int32_t((*values)->type)};
  args.flags |= storage.cuts;
  args.split = storage.split;
  args.stream = gpu.stream();
  size_t size = 0;
  gpu::check(gdn_forward_workspace_size(bundle.get(), &args, &size), "gdn_forward_workspace_size");
  workspace.emplace(gpu, size);
  args.workspace = size ? workspace->pointer() : nullptr;
  args.workspace_size = size;
}

void Call::poison() {
  output.poison();
  if (final)
    final->poison();
  if (storage.inPlace)
    initial->upload(initialValues, initial->shape.outer);
}

void Call::launch() { gpu::check(gdn_forward(bundle.get(), &args), "gdn_forward"); }

void Call::setProfile(const gpu::Memory *stamps) {
  args.profile = stamps ? stamps->pointer() : nullptr;
  args.profile_size = stamps ? stamps->size() : 0;
}

Outcome Call::collect() const {
  gpu.synchronize();
  Outcome outcome;
  outcome.output = output.download(outcome.untouched, outcome.bytes);
  if (const Tensor *state = final ? &*final : storage.inPlace ? &*initial : nullptr) {
    outcome.state = state->download(outcome.untouched, outcome.bytes);
    if (storage.valueFirst)
      outcome.state = transposed(outcome.state, valueDim, keyDim);
  }
  return outcome;
}

std::vector<float> Call::transposed(const std::vector<float> &matrices, size_t rows, size_t columns) const {
  std::vector<float> result(matrices.size());
  reference::parallelFor(matrices.size() / (rows * columns), [&](size_t matrix) {
    size_t base = matrix * rows * columns;
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j)
        result[base + j * rows + i] = matrices[base + i * columns + j];
  });
  return result;
}

} // namespace gdn::device
