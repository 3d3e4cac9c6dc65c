#include "compiler/driver/Parameters.h"
#include "dialects/sm/Sm.h"
#include "llvm/ADT/StringSwitch.h"
using gdn::ElementType;
using gdn::KernelParam;

namespace gdnc {

// The op's verifier has checked keys, kinds and element types.
static KernelParam parameter(mlir::DictionaryAttr entry) {
  auto text = [&](llvm::StringRef key) {
    auto value = entry.getAs<mlir::StringAttr>(key);
    return value ? value.getValue() : llvm::StringRef();
  };
  auto number = [&](llvm::StringRef key) {
    auto value = entry.getAs<mlir::IntegerAttr>(key);
    return value ? value.getInt() : 0;
  };
  KernelParam result;
  result.kind = llvm::StringSwitch<KernelParam::Kind>(text("kind"))
                    .Case("map", KernelParam::Kind::Map)
                    .Case("pointer", KernelParam::Kind::Pointer)
                    .Case("stride", KernelParam::Kind::Stride)
                    .Case("element", KernelParam::Kind::Element)
                    .Case("scalar", KernelParam::Kind::Scalar)
                    .Default(KernelParam::Kind::Batch);
  result.name = text("name").str();
  result.axis = number("axis");
  result.element = llvm::StringSwitch<ElementType>(text("element"))
                       .Case("f32", ElementType::F32)
                       .Case("f16", ElementType::F16)
                       .Default(ElementType::BF16);
  result.columns = number("columns");
  result.boxColumns = number("box_columns");
  result.boxRows = number("box_rows");
  return result;
}

std::vector<KernelParam> kernelParameters(sm::KernelOp kernel) {
  std::vector<KernelParam> result;
  for (auto entry : kernel.getParams().getAsRange<mlir::DictionaryAttr>())
    result.push_back(parameter(entry));
  return result;
}

} // namespace gdnc
