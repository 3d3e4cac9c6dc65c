#include "Ptx.h"

namespace gdn::emu {
namespace {
struct Row {
  const char *name;
  uint8_t bytes;
  bool isSigned, isFloat;
};
// In the order of Type.
constexpr Row rows[] = {
    {"none", 0, false, false},  {"pred", 4, false, false},  {"b8", 1, false, false},    {"b16", 2, false, false},
    {"b32", 4, false, false},   {"b64", 8, false, false},   {"b128", 16, false, false}, {"u8", 1, false, false},
    {"u16", 2, false, false},   {"u32", 4, false, false},   {"u64", 8, false, false},   {"s8", 1, true, false},
    {"s16", 2, true, false},    {"s32", 4, true, false},    {"s64", 8, true, false},    {"f16", 2, false, true},
    {"f32", 4, false, true},    {"f64", 8, false, true},    {"bf16", 2, false, true},   {"tf32", 4, false, true},
    {"f16x2", 4, false, true},  {"bf16x2", 4, false, true}, {"f32x2", 8, false, true},  {"e4m3x2", 2, false, true},
    {"e5m2x2", 2, false, true},
};
const Row &row(Type type) { return rows[unsigned(type)]; }
} // namespace

unsigned sizeOf(Type type) { return row(type).bytes; }
bool isSigned(Type type) { return row(type).isSigned; }
bool isFloat(Type type) { return row(type).isFloat; }
const char *nameOf(Type type) { return row(type).name; }

Type typeNamed(std::string_view name) {
  for (unsigned i = 1; i < std::size(rows); i++)
    if (name == rows[i].name)
      return Type(i);
  return Type::None;
}

} // namespace gdn::emu
