// The dialects that compilation goes through.
#pragma once

namespace mlir {
class DialectRegistry;
}

namespace gdnc {
void registerDialects(mlir::DialectRegistry &registry);
} // namespace gdnc
