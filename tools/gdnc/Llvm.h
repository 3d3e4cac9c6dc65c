// The few things taken from LLVM, whose headers are compiled without exceptions.
#pragma once
#include <string>
#include <string_view>

namespace gdnc {

std::string sha256(std::string_view bytes); // 64 hexadecimal digits
std::string llvmVersion();

} // namespace gdnc
