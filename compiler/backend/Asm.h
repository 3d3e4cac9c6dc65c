// A builder of llvm.inline_asm: operands are declared in the order of LLVM's constraints, and named in the text as
// `$n`.
#pragma once
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <string>

namespace gdnc {

// What inline assembly may not be moved across or merged with. Emission derives LLVM's memory attributes from it.
enum class Effect {
  None,   // a value of its operands alone
  Order,  // keeps its place among those with an effect
  Memory, // and loads and stores keep their side of it
};

class Asm {
public:
  Asm(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  // A result; `early`: written before the operands have been read. Results come before operands.
  std::string out(mlir::Type type, bool early = false);
  std::string outs(mlir::TypeRange types, bool early = false);
  // Results that start as these operands, in the same registers.
  std::string inout(mlir::ValueRange values);
  std::string in(mlir::Value value);
  std::string ins(mlir::ValueRange values);

  // Builds the op and returns its results. The text gets the location in front, as a comment.
  llvm::SmallVector<mlir::Value> emit(const llvm::Twine &text, Effect effect);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<std::string> constraints;
};

} // namespace gdnc
