#include "Decoder.h"
#include <algorithm>
#include <bit>
#include <cstring>

namespace gdn::emu {
namespace {

Special specialNamed(const std::string &name, bool &found) {
  // In the order of Special.
  static const char *const names[] = {"%tid.x",
                                      "%tid.y",
                                      "%tid.z",
                                      "%ntid.x",
                                      "%ntid.y",
                                      "%ntid.z",
                                      "%ctaid.x",
                                      "%ctaid.y",
                                      "%ctaid.z",
                                      "%nctaid.x",
                                      "%nctaid.y",
                                      "%nctaid.z",
                                      "%laneid",
                                      "%warpid",
                                      "%nwarpid",
                                      "%smid",
                                      "%nsmid",
                                      "%gridid",
                                      "%lanemask_eq",
                                      "%lanemask_le",
                                      "%lanemask_lt",
                                      "%lanemask_ge",
                                      "%lanemask_gt",
                                      "%clusterid.x",
                                      "%clusterid.y",
                                      "%clusterid.z",
                                      "%nclusterid.x",
                                      "%nclusterid.y",
                                      "%nclusterid.z",
                                      "%cluster_ctaid.x",
                                      "%cluster_ctaid.y",
                                      "%cluster_ctaid.z",
                                      "%cluster_nctaid.x",
                                      "%cluster_nctaid.y",
                                      "%cluster_nctaid.z",
                                      "%cluster_ctarank",
                                      "%cluster_nctarank",
                                      "%is_explicit_cluster",
                                      "%dynamic_smem_size",
                                      "%total_smem_size"};
  for (unsigned i = 0; i < std::size(names); i++)
    if (name == names[i])
      return found = true, Special(i);
  return found = false, Special::TidX;
}

const Variable *find(const std::vector<Variable> &list, const std::string &name) {
  for (auto &v : list)
    if (v.name == name)
      return &v;
  return nullptr;
}

} // namespace

const Row *findRow(const std::string &name) {
  static const auto table = [] {
    std::unordered_map<std::string, const Row *> rows;
    for (const Family *f : {&integerFamily, &arithmeticFamily, &floatFamily, &convertFamily, &dataFamily, &memoryFamily,
                            &warpFamily, &controlFamily, &barrierFamily, &asyncFamily, &matrixFamily, &wgmmaFamily})
      for (size_t i = 0; i < f->count; i++)
        rows.emplace(f->rows[i].name, &f->rows[i]);
    return rows;
  }();
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

void Decoder::fail(const std::string &message) const {
  std::string text = in->name;
  for (auto m : in->modifiers)
    text += "." + std::string(m);
  throw Error("line " + std::to_string(in->line) + ": '" + text + "': " + message);
}

bool Decoder::take(std::string_view modifier) {
  auto it = std::find(modifiers.begin(), modifiers.end(), modifier);
  if (it == modifiers.end())
    return false;
  modifiers.erase(it);
  return true;
}

std::string Decoder::takePrefix(std::string_view prefix) {
  auto it = std::find_if(modifiers.begin(), modifiers.end(), [&](auto m) { return m.starts_with(prefix); });
  if (it == modifiers.end())
    return "";
  std::string taken(*it);
  modifiers.erase(it);
  return taken;
}

int Decoder::choose(std::initializer_list<const char *> of) {
  int n = 0;
  for (const char *name : of) {
    if (take(name))
      return n;
    n++;
  }
  return -1;
}

int Decoder::chooseFirst(std::initializer_list<const char *> of) {
  for (auto it = modifiers.begin(); it != modifiers.end(); ++it)
    if (auto found = std::find(of.begin(), of.end(), *it); found != of.end()) {
      modifiers.erase(it);
      return int(found - of.begin());
    }
  return -1;
}

Type Decoder::peekType() const {
  for (auto m : modifiers)
    if (Type t = typeNamed(m); t != Type::None)
      return t;
  return Type::None;
}

Type Decoder::type() {
  for (auto it = modifiers.begin(); it != modifiers.end(); ++it)
    if (Type t = typeNamed(*it); t != Type::None) {
      modifiers.erase(it);
      return t;
    }
  fail("expected a type");
}

Space Decoder::space() {
  static const std::pair<const char *, Space> names[] = {
      {"global", Space::Global},          {"shared", Space::Shared}, {"shared::cta", Space::Shared},
      {"shared::cluster", Space::Shared}, {"local", Space::Local},   {"param", Space::Param},
      {"param::entry", Space::Param},     {"const", Space::Constant}};
  for (auto &[name, s] : names)
    if (take(name))
      return s;
  return Space::Generic;
}

const Operand &Decoder::operand(size_t n) {
  if (n >= in->operands.size())
    fail("expected more than " + std::to_string(in->operands.size()) + " operands");
  return in->operands[n];
}

void Decoder::expectOperands(size_t least, size_t most) {
  size_t n = in->operands.size();
  if (n < least || n > most)
    fail("expected " + std::to_string(least) + (most > least ? " to " + std::to_string(most) : "") + " operands, got " +
         std::to_string(n));
}

unsigned Decoder::width(const Operand &o) const {
  return o.kind == Operand::Kind::Register ? sizeOf(fn.registers[o.reg].type) : 0;
}

int64_t Decoder::integer(const Operand &o) const {
  if (o.kind != Operand::Kind::Integer)
    fail("expected an integer literal");
  return int64_t(o.bits);
}

Slot Decoder::constant(uint64_t bits, unsigned bytes) {
  if (bytes < 8)
    bits &= (uint64_t(1) << 8 * bytes) - 1;
  auto [it, isNew] = pool.try_emplace({bits, bytes}, 0);
  if (isNew) {
    it->second = Constants << areaShift | uint32_t(program.constants.size() * 8);
    uint64_t word = bits;
    for (unsigned b = bytes; b < 8; b *= 2)
      word |= word << 8 * b;
    program.constants.resize(program.constants.size() + 4 * bytes, word);
  }
  return it->second;
}

uint64_t Decoder::literal(Type type, const Operand &o) const {
  using K = Operand::Kind;
  if (o.kind == K::Integer) {
    if (type == Type::F32 || type == Type::F64)
      fail("expected a floating-point literal for a " + std::string(nameOf(type)));
    return o.bits;
  }
  if (o.kind == K::Float && type == Type::F64)
    return std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(o.bits))));
  if (o.kind == K::Double && sizeOf(type) == 4)
    return std::bit_cast<uint32_t>(float(std::bit_cast<double>(o.bits)));
  return o.bits;
}

void Decoder::reference(const Operand &o, bool written) {
  program.references.push_back({uint32_t(program.code.size() - 1), uint32_t(program.slots.size()), o.reg, written});
  program.slots.push_back(noSlot);
}

void Decoder::out(Type type, const Operand &o, bool loose) {
  if (o.kind == Operand::Kind::Sink)
    return program.slots.push_back(noSlot);
  if (o.kind != Operand::Kind::Register)
    fail("expected a register as destination");
  const Register &r = fn.registers[o.reg];
  if ((r.type == Type::Pred) != (type == Type::Pred) || (loose ? width(o) < sizeOf(type) : width(o) != sizeOf(type)))
    fail("expected a " + std::to_string(sizeOf(type) * 8) + "-bit register, got '" + r.name + "' (" + nameOf(r.type) +
         ")");
  reference(o, true);
}

void Decoder::use(Type type, const Operand &o, bool loose) {
  switch (o.kind) {
  case Operand::Kind::Register: {
    const Register &r = fn.registers[o.reg];
    if ((r.type == Type::Pred) != (type == Type::Pred) || (loose ? width(o) < sizeOf(type) : width(o) != sizeOf(type)))
      fail("expected a " + std::to_string(sizeOf(type) * 8) + "-bit register, got '" + r.name + "' (" + nameOf(r.type) +
           ")");
    return reference(o, false);
  }
  case Operand::Kind::Integer:
  case Operand::Kind::Float:
  case Operand::Kind::Double:
    if (type == Type::Pred)
      return program.slots.push_back(constant(o.bits ? ~0u : 0, 4));
    return program.slots.push_back(constant(literal(type, o), sizeOf(type)));
  case Operand::Kind::Special: {
    bool found;
    Special s = specialNamed(o.name, found);
    if (!found)
      fail("unknown register '" + o.name + "'");
    if (sizeOf(type) != 4)
      fail("'" + o.name + "' has 32 bits");
    return program.slots.push_back(slotOf(s));
  }
  case Operand::Kind::Symbol:
    return program.slots.push_back(symbol(o, sizeOf(type)));
  default:
    fail("expected a register or a literal");
  }
}

void Decoder::inout(Type type, const Operand &o) {
  out(type, o);
  // The same slot is read: a second reference to it.
  Reference r = program.references.back();
  r.written = false;
  program.references.push_back(r);
}

// The address of a variable as a constant. Parameters move from launch to launch: their base is a special register.
Slot Decoder::symbol(const Operand &o, unsigned bytes) {
  if (o.name == "WARP_SZ")
    return constant(32, bytes);
  if (auto it = sharedAt.find(o.name); it != sharedAt.end())
    return constant(it->second + o.offset, bytes);
  if (auto it = localAt.find(o.name); it != localAt.end())
    return constant(it->second + o.offset, bytes);
  if (auto it = image.variables.find(o.name); it != image.variables.end())
    return constant(reinterpret_cast<uint64_t>(it->second.get()) + o.offset, bytes);
  if (const Variable *p = find(fn.params, o.name)) {
    inst().imm = int64_t(p->offset) + o.offset;
    return slotOf(Special::ParamBase);
  }
  fail("unknown name '" + o.name + "'");
}

void Decoder::address(const Operand &o) {
  if (o.kind != Operand::Kind::Address || o.items.empty())
    fail("expected an address in brackets");
  const Operand &base = o.items[0];
  Inst &i = inst();
  i.imm = 0;
  if (base.kind == Operand::Kind::Register) {
    i.wide = width(base) == 8;
    if (!i.wide && width(base) != 4)
      fail("expected an address of 32 or 64 bits, got '" + base.name + "'");
    reference(base, false);
  } else {
    i.wide = true;
    use(Type::B64, base);
  }
  i.imm += o.offset;
}

void Decoder::finish(Run run, Unit unit) {
  if (!modifiers.empty())
    fail("modifier '." + std::string(modifiers.front()) + "' is not supported here");
  inst().run = run;
  inst().unit = unit;
}

void Decoder::decodeOne(const Instruction &source) {
  in = &source;
  modifiers = source.modifiers;
  program.code.emplace_back();
  program.source.push_back(&source);
  Inst &i = inst();
  i.line = source.line;
  i.guardFlip = source.guardNegated ? ~0u : 0;
  i.target = uint32_t(program.slots.size()); // becomes `a` once the slots stand still
  Operand guard;
  if (source.guard >= 0)
    guard.kind = Operand::Kind::Register, guard.reg = source.guard;
  else
    guard.kind = Operand::Kind::Integer, guard.bits = 1;
  use(Type::Pred, guard);
  const Row *row = findRow(source.name);
  if (!row)
    throw Error("line " + std::to_string(source.line) + ": unknown instruction '" + source.name + "'");
  row->decode(*this);
}

void Decoder::layoutShared() {
  uint32_t at = sharedBase;
  auto place = [&](const std::vector<Variable> &list, bool unsizedOnes) {
    for (auto &v : list) {
      if (v.unsized)
        program.dynamicAlign = std::max<uint32_t>(program.dynamicAlign, v.align);
      if (v.unsized != unsizedOnes)
        continue;
      at = (at + v.align - 1) / v.align * v.align;
      sharedAt[v.name] = at;
      at += v.bytes;
    }
  };
  for (bool unsizedOnes : {false, true}) {
    if (unsizedOnes)
      at = (at + program.dynamicAlign - 1) / program.dynamicAlign * program.dynamicAlign;
    place(image.module.shared, unsizedOnes);
    place(fn.shared, unsizedOnes);
  }
  program.sharedStatic = at - sharedBase;
  for (auto &v : fn.local) {
    program.localBytes = (program.localBytes + v.align - 1) / v.align * v.align;
    localAt[v.name] = program.localBytes;
    program.localBytes += v.bytes;
  }
}

void Decoder::run() {
  program.fn = &fn;
  layoutShared();
  program.code.reserve(fn.code.size() + 1);
  for (auto &source : fn.code)
    decodeOne(source);
  // A body that ends without ret returns.
  static const Instruction ret{0, -1, false, "ret", {}, {}, {}};
  decodeOne(ret);
  allocateRegisters(program);
}

std::unique_ptr<Program> decode(const Image &image, const Function &fn) {
  auto program = std::make_unique<Program>();
  Decoder(image, fn, *program).run();
  return program;
}

} // namespace gdn::emu
