// Single instructions, each in a kernel of its own: PTX made here, so that neither NVRTC nor ptxas is needed.
#include "tests/device/calibration.h"
#include "tests/reference/numbers.h"
#include "tests/reference/random.h"
#include <cstring>

namespace gdn::device {

namespace {

using reference::Random;
constexpr ElementType F32 = ElementType::F32, BF16 = ElementType::BF16, F16 = ElementType::F16;

std::string module(const std::string &body) {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 tiles[4096];\n"
         ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 o) {\n"
         ".reg .b64 %a, %b, %c, %o, %p, %da, %db;\n.reg .b32 %t, %n, %s, %x, %y, %z, %w, %r<8>;\n.reg .f32 %f<32>;\n"
         ".reg .pred %q;\nld.param.u64 %a, [a];\nld.param.u64 %b, [b];\nld.param.u64 %c, [c];\nld.param.u64 %o, [o];\n"
         "mov.u32 %t, %tid.x;\nmov.u32 %n, %ctaid.x;\nmov.u32 %x, %ntid.x;\nmad.lo.u32 %n, %n, %x, %t;\n" +
         body + "ret;\n}\n";
}

uint64_t hashOf(const std::vector<uint32_t> (&inputs)[3]) {
  return hashed(inputs[2], hashed(inputs[1], hashed(inputs[0])));
}

// Runs `body` with %n the thread's number in the grid, %t in the block, and %a, %b, %c, %o the addresses of three
// inputs and of an output of `bytes`.
std::vector<std::byte> run(const gpu::Gpu &gpu, const std::string &body, unsigned blocks, unsigned threads,
                           const std::vector<uint32_t> (&inputs)[3], size_t bytes) {
  gpu::Memory memory[4] = {
      {gpu, inputs[0].size() * 4}, {gpu, inputs[1].size() * 4}, {gpu, inputs[2].size() * 4}, {gpu, bytes}};
  gpu::Address addresses[4];
  void *params[4];
  for (int i = 0; i < 4; ++i) {
    if (i < 3)
      memory[i].upload(inputs[i].data(), memory[i].size());
    addresses[i] = memory[i].address();
    params[i] = &addresses[i];
  }
  memory[3].fill(0xff);
  void *loaded = nullptr, *kernel = nullptr;
  const auto &driver = gpu.driver();
  driver.cuModuleLoadData(&loaded, module(body).c_str());
  driver.cuModuleGetFunction(&kernel, loaded, "k");
  driver.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, gpu.stream(), params, nullptr);
  gpu.synchronize();
  std::vector<std::byte> result(bytes);
  memory[3].download(result.data(), bytes);
  driver.cuModuleUnload(loaded);
  return result;
}

// ---- One result of up to three words, lane by lane ----

struct Lanewise {
  const char *name, *code; // %w from %x, %y, %z
  ElementType type = F32;
  uint32_t ulps = 0;
  double absolute = 0;
};

// Bounds of the approximations are those of the PTX ISA, section "Floating Point Instructions".
const Lanewise lanewise[] = {
    {"ex2.approx.ftz.f32", "ex2.approx.ftz.f32 %w, %x;"},
    {"ex2.approx.f32", "ex2.approx.f32 %w, %x;"},
    {"lg2.approx.ftz.f32", "lg2.approx.ftz.f32 %w, %x;", F32, 2, 0x1p-22},
    {"rcp.approx.ftz.f32", "rcp.approx.ftz.f32 %w, %x;", F32, 1},
    {"rsqrt.approx.ftz.f32", "rsqrt.approx.ftz.f32 %w, %x;", F32, 2},
    {"sqrt.approx.ftz.f32", "sqrt.approx.ftz.f32 %w, %x;", F32, 2},
    {"tanh.approx.f32", "tanh.approx.f32 %w, %x;", F32, 1 << 13},
    {"add.rn.f32", "add.rn.f32 %w, %x, %y;"},
    {"add.rn.ftz.f32", "add.rn.ftz.f32 %w, %x, %y;"},
    {"add.rz.f32", "add.rz.f32 %w, %x, %y;"},
    {"mul.rn.f32", "mul.rn.f32 %w, %x, %y;"},
    {"mul.rn.ftz.f32", "mul.rn.ftz.f32 %w, %x, %y;"},
    {"mul.rp.f32", "mul.rp.f32 %w, %x, %y;"},
    {"fma.rn.f32", "fma.rn.f32 %w, %x, %y, %z;"},
    {"fma.rn.ftz.f32", "fma.rn.ftz.f32 %w, %x, %y, %z;"},
    {"fma.rm.f32", "fma.rm.f32 %w, %x, %y, %z;"},
    {"div.rn.f32", "div.rn.f32 %w, %x, %y;"},
    {"rcp.rn.f32", "rcp.rn.f32 %w, %x;"},
    {"sqrt.rn.f32", "sqrt.rn.f32 %w, %x;"},
    {"min.f32", "min.f32 %w, %x, %y;"},
    {"max.NaN.f32", "max.NaN.f32 %w, %x, %y;"},
    {"cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 %w, %x, %y;", BF16},
    {"cvt.rn.relu.bf16x2.f32", "cvt.rn.relu.bf16x2.f32 %w, %x, %y;", BF16},
    {"cvt.rn.f16x2.f32", "cvt.rn.f16x2.f32 %w, %x, %y;", F16},
    {"cvt.rn.satfinite.f16x2.f32", "cvt.rn.satfinite.f16x2.f32 %w, %x, %y;", F16},
    {"cvt.rn.bf16.f32", "{ .reg .b16 %h; cvt.rn.bf16.f32 %h, %x; mov.b32 %w, {%h, %h}; }", BF16},
    {"cvt.rn.f16.f32", "{ .reg .b16 %h; cvt.rn.f16.f32 %h, %x; mov.b32 %w, {%h, %h}; }", F16},
    {"cvt.f32.f16", "{ .reg .b16 %h, %g; mov.b32 {%h, %g}, %x; cvt.f32.f16 %w, %h; }"},
    {"cvt.f32.bf16", "{ .reg .b16 %h, %g; mov.b32 {%h, %g}, %x; cvt.f32.bf16 %w, %h; }"},
    {"cvt.rni.s32.f32", "cvt.rni.s32.f32 %w, %x;"},
    {"cvt.rzi.u32.f32", "cvt.rzi.u32.f32 %w, %x;"},
    {"cvt.rn.f32.s32", "cvt.rn.f32.s32 %w, %x;"},
    {"add.f16x2", "add.rn.f16x2 %w, %x, %y;", F16},
    {"mul.f16x2", "mul.rn.f16x2 %w, %x, %y;", F16},
    {"fma.rn.f16x2", "fma.rn.f16x2 %w, %x, %y, %z;", F16},
    {"fma.rn.bf16x2", "fma.rn.bf16x2 %w, %x, %y, %z;", BF16},
    {"max.f16x2", "max.f16x2 %w, %x, %y;", F16},
};

// Any bits, corners, and numbers of usual sizes, a third of each.
uint32_t operand(const Random &random, uint64_t index) {
  constexpr uint32_t corners[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x40000000, 0x7f800000,
                                  0xff800000, 0x7fc00000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff,
                                  0xff7fffff, 0x477fe000, 0x477ff000, 0x33000000, 0x4effffff, 0xc3170000, 0x7bff7bff,
                                  0x00010001, 0x83ff0400, 0x7c00fc00, 0x3c003c01};
  uint64_t bits = random.bits(4 * index);
  if (bits % 3 == 0)
    return uint32_t(bits >> 32);
  if (bits % 3 == 1)
    return corners[(bits >> 32) % std::size(corners)];
  return std::bit_cast<uint32_t>(std::ldexp(random.normal(4 * index + 1), int(bits >> 32 & 15) - 8));
}

void recordLanewise(const gpu::Gpu &gpu, Record &record) {
  constexpr unsigned count = 1 << 16, threads = 256;
  std::vector<uint32_t> inputs[3];
  for (unsigned i = 0; i < 3; ++i)
    for (unsigned n = 0; n < count; ++n)
      inputs[i].push_back(operand(Random(1, i), n));
  for (const Lanewise &each : lanewise) {
    std::string body;
    for (const char *name : {"a, %x", "b, %y", "c, %z"})
      body += std::string("mad.wide.u32 %p, %n, 4, %") + name[0] + ";\nld.global.b32 " + (name + 3) + ", [%p];\n";
    body += std::string(each.code) + "\nmad.wide.u32 %p, %n, 4, %o;\nst.global.b32 [%p], %w;\n";
    record[each.name] = {each.type, each.ulps, each.absolute, hashOf(inputs),
                         run(gpu, body, count / threads, threads, inputs, count * 4)};
  }
}

// ---- Products of matrices ----

// Registers of a thread: of a, b and the sums. Tiles in shared memory: 16 bytes of a thread, in pieces of 8 rows of 16
// bytes; 128 bytes from one piece to the next along k, 256 along the rows.
struct Product {
  std::string name;
  ElementType type;
  unsigned threads, a, b, sums;
  bool tileA, tileB;
};

std::string list(const char *prefix, unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(prefix) + std::to_string(first + i);
  return text + "}";
}

// Loads `count` registers of four bytes, %r or %f from `first` on, from the thread's place in an input.
std::string fetch(const char *prefix, unsigned first, unsigned count, const char *input) {
  std::string bytes = std::to_string(4 * count), text = "mad.wide.u32 %p, %n, " + bytes + ", " + input + ";\n";
  for (unsigned i = 0; i < count; ++i)
    text +=
        std::string("ld.global.b32 ") + prefix + std::to_string(first + i) + ", [%p+" + std::to_string(4 * i) + "];\n";
  return text;
}

std::string tile(unsigned first, unsigned offset, const char *descriptor) {
  std::string at = std::to_string(offset);
  return "mov.u32 %s, tiles;\nmad.lo.u32 %x, %t, 16, %s;\nst.shared.v4.b32 [%x+" + at + "], " + list("%r", first, 4) +
         ";\nadd.u32 %s, %s, " + at + ";\nshr.u32 %s, %s, 4;\nor.b32 %s, %s, 0x80000;\nmov.b64 " + descriptor +
         ", {%s, 16};\n";
}

std::string bodyOf(const Product &p) {
  std::string type = p.type == BF16 ? "bf16" : "f16", sums = list("%f", 0, p.sums);
  std::string text = fetch("%r", 0, p.a, "%a") + fetch("%r", 4, p.b, "%b") + fetch("%f", 0, p.sums, "%c");
  if (p.tileB) {
    text += (p.tileA ? tile(0, 0, "%da") : "") + tile(4, 2048, "%db") +
            "fence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.eq.u32 %q, 0, 0;\nwgmma.fence.sync.aligned;\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32." +
            type + "." + type + " " + sums + ", " + (p.tileA ? "%da" : list("%r", 0, 4)) + ", %db, %q, 1, 1" +
            (p.tileA ? ", 0, 0" : ", 0") + ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  } else {
    std::string shape = p.a == 4 ? "m16n8k16" : "m16n8k8";
    text += "mma.sync.aligned." + shape + ".row.col.f32." + type + "." + type + ".f32 " + sums + ", " +
            list("%r", 0, p.a) + ", " + (p.b == 1 ? "{%r4}" : list("%r", 4, p.b)) + ", " + sums + ";\n";
  }
  text += "mad.wide.u32 %p, %n, " + std::to_string(4 * p.sums) + ", %o;\n";
  for (unsigned i = 0; i < p.sums; ++i)
    text += "st.global.f32 [%p+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + ";\n";
  return text;
}

struct Inputs {
  const char *name;
  float (*operand)(const Random &, uint64_t, ElementType);
  float (*sum)(const Random &, uint64_t, ElementType);
};

float spread(const Random &random, uint64_t index, int least, int most) {
  int exponent = least + int(random.bits(index) % unsigned(most - least + 1));
  return std::ldexp(random.normal(index), exponent);
}

const Inputs inputsOfProducts[] = {
    {"normal", [](const Random &r, uint64_t n, ElementType) { return r.normal(n); },
     [](const Random &, uint64_t, ElementType) { return 0.0f; }},
    {"normal with a sum", [](const Random &r, uint64_t n, ElementType) { return r.normal(n); },
     [](const Random &r, uint64_t n, ElementType) { return 4 * r.normal(n); }},
    {"wide", [](const Random &r, uint64_t n, ElementType) { return spread(r, n, -7, 7); },
     [](const Random &r, uint64_t n, ElementType) { return spread(r, n, -24, 24); }},
    {"whole", [](const Random &r, uint64_t n, ElementType) { return float(int(r.bits(n) % 17) - 8); },
     [](const Random &r, uint64_t n, ElementType) { return float(int(r.bits(n) % 2001) - 1000); }},
    {"tiny",
     [](const Random &r, uint64_t n, ElementType t) {
       return t == F16 ? spread(r, n, -24, -10) : spread(r, n, -80, -60);
     },
     [](const Random &r, uint64_t n, ElementType t) {
       return t == F16 ? spread(r, n, -40, -24) : spread(r, n, -149, -126);
     }},
    {"any bits",
     [](const Random &r, uint64_t n, ElementType t) {
       return t == F16 ? reference::decodeF16(uint16_t(r.bits(n))) : reference::decodeBf16(uint16_t(r.bits(n)));
     },
     [](const Random &r, uint64_t n, ElementType) { return std::bit_cast<float>(uint32_t(r.bits(n))); }},
};

std::vector<uint32_t> words(const std::vector<float> &values, ElementType type) {
  std::vector<std::byte> bytes = reference::encode(type, values);
  std::vector<uint32_t> result(bytes.size() / 4);
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

void recordProducts(const gpu::Gpu &gpu, Record &record) {
  std::vector<Product> products;
  for (ElementType type : {BF16, F16}) {
    std::string suffix = std::string(".f32.") + reference::name(type);
    products.push_back({"wgmma.m64n64k16" + suffix + " a in registers", type, 128, 4, 4, 32, false, true});
    products.push_back({"wgmma.m64n64k16" + suffix + " a in shared memory", type, 128, 4, 4, 32, true, true});
    products.push_back({"mma.m16n8k16" + suffix, type, 32, 4, 2, 4, false, false});
    products.push_back({"mma.m16n8k8" + suffix, type, 32, 2, 1, 4, false, false});
  }
  for (const Product &p : products)
    for (const Inputs &in : inputsOfProducts) {
      unsigned blocks = 512 / p.threads, threads = blocks * p.threads;
      auto values = [&](unsigned count, auto make, uint64_t stream) {
        std::vector<float> result;
        for (unsigned n = 0; n < threads * count; ++n)
          result.push_back(make(Random(2, stream), n, p.type));
        return result;
      };
      std::vector<uint32_t> inputs[3] = {words(values(2 * p.a, in.operand, 0), p.type),
                                         words(values(2 * p.b, in.operand, 1), p.type),
                                         words(values(p.sums, in.sum, 2), F32)};
      record[p.name + ", " + in.name] = {F32, 0, 0, hashOf(inputs),
                                         run(gpu, bodyOf(p), blocks, p.threads, inputs, threads * p.sums * 4)};
    }
}

} // namespace

Record recordInstructions(const gpu::Gpu &gpu) {
  Record record;
  recordLanewise(gpu, record);
  recordProducts(gpu, record);
  return record;
}

} // namespace gdn::device
