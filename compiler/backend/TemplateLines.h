// Where in a template the PTX and the machine code of a kernel come from. PTX says it in comments, "// file:line", each
// for what follows it: unlike .loc they leave no trace in the cubin.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace gdnc {

// PTX as LLVM prints it, with such comments in place of its directives for debuggers.
std::string commentLines(std::string_view ptx);

// The template line, "file:line" without folders, of each line of PTX; empty where unknown.
std::vector<std::string> templateLines(std::string_view ptx);

// Template lines that `instruction` stands for in the PTX, in the order of the text.
std::vector<std::string> linesOfInstruction(std::string_view ptx, std::string_view instruction);

// Template lines at which a kernel loads from or stores to its stack, the busiest first. The cubin is of that PTX, with
// ptxas' line information.
std::vector<std::string> linesOfStackUse(std::string_view cubin, std::string_view ptx);

} // namespace gdnc
