#include "compiler/backend/Asm.h"
#include "compiler/backend/Location.h"
#include "llvm/ADT/StringExtras.h"
using namespace mlir;

namespace gdnc {

static std::string registerClass(Type type) {
  if (isa<LLVM::LLVMPointerType>(type) || type.isInteger(64))
    return "l";
  if (type.isInteger(1))
    return "b";
  return type.isF32() ? "f" : "r";
}

std::string Asm::out(Type type, bool early) {
  assert(operands.empty() && "results come first");
  types.push_back(type);
  constraints.push_back((early ? "=&" : "=") + registerClass(type));
  return ("$" + llvm::Twine(constraints.size() - 1)).str();
}

static std::string list(llvm::ArrayRef<std::string> names) { return llvm::join(names, ", "); }

std::string Asm::outs(TypeRange types, bool early) {
  return list(llvm::map_to_vector(types, [&](Type t) { return out(t, early); }));
}

std::string Asm::inout(ValueRange values) {
  size_t first = types.size();
  std::string names = outs(values.getTypes());
  for (auto [i, value] : llvm::enumerate(values)) {
    constraints.push_back(std::to_string(first + i));
    operands.push_back(value);
  }
  return names;
}

std::string Asm::in(Value value) {
  constraints.push_back(registerClass(value.getType()));
  operands.push_back(value);
  return ("$" + llvm::Twine(constraints.size() - 1)).str();
}

std::string Asm::ins(ValueRange values) {
  return list(llvm::map_to_vector(values, [&](Value v) { return in(v); }));
}

llvm::SmallVector<Value> Asm::emit(const llvm::Twine &text, Effect effect) {
  if (effect == Effect::Memory)
    constraints.push_back("~{memory}");
  Type result;
  if (types.size() == 1)
    result = types[0];
  else if (!types.empty())
    result = LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
  auto op = LLVM::InlineAsmOp::create(builder, loc, result, operands, locationComment(loc) + text.str(),
                                      llvm::join(constraints, ","), effect != Effect::None, /*is_align_stack=*/false,
                                      LLVM::TailCallKind::None,
                                      /*asm_dialect=*/{}, /*operand_attrs=*/{});
  if (types.size() <= 1)
    return llvm::SmallVector<Value>(op->getResults());
  return llvm::map_to_vector(llvm::seq<int64_t>(types.size()), [&](int64_t i) -> Value {
    return LLVM::ExtractValueOp::create(builder, loc, op.getRes(), i);
  });
}

} // namespace gdnc
