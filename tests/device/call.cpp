#include "tests/device/call.h"
#include "tests/reference/numbers.h"
#include "tests/reference/parallel.h"
#include <algorithm>
#include <cstring>
#include <numeric>

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

// Twice as many as sequences, and some: those with odd numbers are read, in the reverse order, and written without
// write indices; with them, those with even numbers are.
size_t slots(size_t sequences) { return 2 * sequences + 3; }
int64_t readSlot(const Storage &s, size_t sequences, size_t i) {
  return isRead(s, i) ? int64_t(2 * (sequences - i) - 1) : i % 2 ? -1 : int64_t(slots(sequences));
}
int64_t writeSlot(const Storage &s, size_t sequences, size_t i) {
  if (!s.writes)
    return readSlot(s, sequences, i);
  return s.holes && i % 3 == 2 ? (s.offsets == Storage::Offsets::Int32 ? INT32_MIN : INT64_MIN + 1) : int64_t(2 * i);
}

Tensor::Shape stateShape(const reference::Problem &p, const Storage &s, bool pool) {
  Tensor::Shape shape = Tensor::contiguous(pool ? slots(p.sequences()) : p.sequences(), p.valueHeads, p.stateSize());
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

// Where the checkpoints of each sequence begin, in the reverse order, a row between them; then the number of all rows.
std::vector<int64_t> startsOf(const reference::Problem &p, const Storage &s) {
  std::vector<size_t> rows = p.checkpointRows();
  if (s.follow)
    return {rows.begin(), rows.end()};
  std::vector<int64_t> starts(p.sequences() + 1);
  int64_t next = 1;
  for (size_t i = p.sequences(); i-- > 0; next += int64_t(rows[i + 1] - rows[i]) + 1)
    starts[i] = next;
  starts.back() = next;
  for (size_t i = 0; s.holes && i < p.sequences(); ++i)
    if (i % 3)
      starts[i] = i % 3 == 1 ? -1 : next + 1;
  return starts;
}

Tensor::Shape checkpointShape(const reference::Problem &p, const Storage &s) {
  Tensor::Shape shape = Tensor::contiguous(size_t(startsOf(p, s).back()), p.valueHeads, p.stateSize());
  if (s.stateGaps)
    shape.outerStride += 3 * gap;
  return shape;
}

size_t integerBytes(bool some, size_t count) { return some ? 2 * guard + count * sizeof(int64_t) : 0; }

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

bool isRead(const Storage &s, size_t sequence) { return !s.reads || !s.holes || sequence % 3 != 1; }

bool isWritten(const Storage &s, const reference::Problem &p, size_t sequence) {
  if (!s.reads && !s.writes)
    return true;
  return p.offsets[sequence] < p.offsets[sequence + 1] &&
         (s.writes ? !s.holes || sequence % 3 != 2 : isRead(s, sequence));
}

void *Tensor::pointer(size_t elements) const {
  return memory.size() ? memory.pointer(front + elements * reference::bytes(type)) : nullptr;
}

void Tensor::upload(const std::vector<Part> &parts, size_t used) {
  if (!memory.size())
    return;
  before.assign(memory.size(), std::byte(0xff));
  size_t size = reference::bytes(type);
  for (const Part &part : parts) {
    std::vector<std::byte> encoded = reference::encode(type, part.values);
    std::byte *to = before.data() + front + part.offset * size;
    eachRow(part.shape, [&](size_t outer, size_t at, size_t from) {
      if (outer < used)
        std::memcpy(to + at * size, &encoded[from * size], part.shape.width * size);
    });
  }
  memory.upload(before.data(), before.size());
}

void Tensor::poison() {
  before.assign(memory.size(), std::byte(0xff));
  memory.fill(0xff);
}

std::vector<float> Tensor::download(const std::vector<size_t> &rows, bool &untouched,
                                    std::vector<std::byte> &bytes) const {
  if (!memory.size())
    return {};
  std::vector<std::byte> image(memory.size());
  memory.download(image.data(), image.size());
  bytes.insert(bytes.end(), image.begin(), image.end());
  size_t size = reference::bytes(type);
  std::vector<std::byte> packed(rows.size() * shape.heads * shape.width * size);
  reference::parallelFor(rows.size() * shape.heads, [&](size_t i) {
    size_t at = front + (rows[i / shape.heads] * shape.outerStride + i % shape.heads * shape.headStride) * size;
    std::memcpy(&packed[i * shape.width * size], &image[at], shape.width * size);
    std::memcpy(&image[at], &before[at], shape.width * size);
  });
  untouched &= image == before;
  return reference::decode(type, packed.data(), packed.size() / size);
}

Call::Call(const gpu::Gpu &gpu, const gpu::Bundle &bundle, const reference::Problem &p, const Storage &s)
    : gpu(gpu), bundle(bundle), storage(s), keyDim(p.keyDim), valueDim(p.valueDim),
      query(gpu, p.io, queryShape(p, s), s.aligned),
      key(gpu, p.io, s.projection ? nothing() : queryShape(p, s), s.aligned),
      value(gpu, p.io, s.projection ? nothing() : valueShape(p, s), s.aligned),
      gate(gpu, s.gates, gateShape(p, s), s.aligned), strength(gpu, s.gates, gateShape(p, s), s.aligned),
      output(gpu, p.io, outputShape(p, s), s.aligned),
      offsets(gpu, integerBytes(s.offsets != Storage::Offsets::Dense, p.sequences() + 1)),
      readIndices(gpu, integerBytes(s.reads, p.sequences())), writeIndices(gpu, integerBytes(s.writes, p.sequences())),
      starts(gpu, integerBytes(p.every && (!s.follow || s.offsets != Storage::Offsets::Dense), p.sequences() + 1)) {
  if (!p.aLog.empty())
    rate.emplace(gpu, s.gates, Tensor::contiguous(1, p.valueHeads, 1), s.aligned);
  if (!p.dtBias.empty())
    bias.emplace(gpu, s.gates, Tensor::contiguous(1, p.valueHeads, 1), s.aligned);
  if (!p.state.empty())
    initial.emplace(gpu, s.initialState, stateShape(p, s, s.reads), s.aligned);
  if (s.wantsState && !s.inPlace)
    final.emplace(gpu, s.finalState, stateShape(p, s, s.reads || s.writes), s.aligned);
  if (p.every)
    between.emplace(gpu, s.checkpoints, checkpointShape(p, s), s.aligned);
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
  uploadStates(p);
  placeCheckpoints(p);
  uploadIntegers(offsets, p.offsets);
}

void Call::placeCheckpoints(const reference::Problem &p) {
  if (!between)
    return;
  std::vector<int64_t> first = startsOf(p, storage);
  std::vector<size_t> all = p.checkpointRows();
  args.checkpoint_rows = first.back() - storage.cramped;
  rows.clear(), placed.clear();
  for (size_t i = 0; i < p.sequences(); ++i)
    for (size_t row = all[i]; first[i] >= 0 && row < all[i + 1]; ++row)
      if (size_t at = size_t(first[i]) + row - all[i]; at < size_t(args.checkpoint_rows))
        rows.push_back(row), placed.push_back(at);
  uploadIntegers(starts, first);
}

void Call::uploadStates(const reference::Problem &p) {
  size_t count = p.sequences(), size = p.valueHeads * p.stateSize();
  bool pools = storage.reads || storage.writes;
  std::vector<int64_t> from(count), to(count);
  sequences.clear(), written.clear();
  for (size_t i = 0; i < count; ++i) {
    from[i] = readSlot(storage, count, i), to[i] = writeSlot(storage, count, i);
    if (isWritten(storage, p, i))
      sequences.push_back(i), written.push_back(pools ? size_t(to[i]) : i);
  }
  uploadIntegers(readIndices, from);
  uploadIntegers(writeIndices, to);
  if (!initial)
    return;
  initialValues = storage.valueFirst ? transposed(p.state, keyDim, valueDim) : p.state;
  if (storage.reads) {
    std::vector<float> pool(slots(count) * size, NAN);
    for (size_t i = 0; i < count; ++i)
      if (isRead(storage, i))
        std::copy_n(&initialValues[i * size], size, &pool[size_t(from[i]) * size]);
    initialValues = std::move(pool);
  }
  initial->upload(initialValues, initial->shape.outer);
}

void Call::uploadIntegers(gpu::Memory &memory, const std::vector<int64_t> &values) {
  if (!memory.size())
    return;
  memory.fill(0xff);
  if (storage.offsets == Storage::Offsets::Int32) {
    std::vector<int32_t> narrow(values.begin(), values.end());
    memory.upload(narrow.data(), narrow.size() * sizeof(int32_t), guard);
  } else {
    memory.upload(values.data(), values.size() * sizeof(int64_t), guard);
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
  if (storage.reads || storage.writes) {
    args.state_slots = int64_t(slots(p.sequences()));
    args.state_indices_dtype = args.cu_seqlens_dtype;
    args.read_indices = storage.reads ? readIndices.pointer(guard) : nullptr;
    args.write_indices = storage.writes ? writeIndices.pointer(guard) : nullptr;
  }
  args.cu_seqlens = dense ? nullptr : offsets.pointer(guard);
  if (between) {
    args.flags |= uint32_t(p.before ? GDN_CHECKPOINTS_BEFORE : GDN_CHECKPOINTS_AFTER);
    args.checkpoints = view(*between);
    args.checkpoint_every = p.every;
    args.checkpoint_starts = starts.size() ? starts.pointer(guard) : nullptr;
    args.checkpoint_starts_dtype = args.cu_seqlens_dtype;
  }
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
  for (std::optional<Tensor> *written : {&final, &between})
    if (*written)
      (*written)->poison();
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
  std::vector<size_t> tokens(output.shape.outer);
  std::iota(tokens.begin(), tokens.end(), size_t(0));
  outcome.output = output.download(tokens, outcome.untouched, outcome.bytes);
  if (const Tensor *state = final ? &*final : storage.inPlace ? &*initial : nullptr) {
    outcome.sequences = sequences;
    outcome.state = states(*state, written, outcome);
  }
  if (between) {
    outcome.rows = rows;
    outcome.checkpoints = states(*between, placed, outcome);
  }
  return outcome;
}

std::vector<float> Call::states(const Tensor &tensor, const std::vector<size_t> &rows, Outcome &outcome) const {
  std::vector<float> values = tensor.download(rows, outcome.untouched, outcome.bytes);
  return storage.valueFirst ? transposed(values, valueDim, keyDim) : values;
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
