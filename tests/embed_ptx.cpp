// Build tool: compiles CUDA C++ to PTX with NVRTC, opened at run time, and writes it as a C++ string literal.
//   embed-ptx LIBNVRTC SOURCE.cu OUTPUT.inc ARCH [OPTION of NVRTC]...
#include <cstdio>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

template <typename... Params> auto function(void *library, const char *name) {
  return reinterpret_cast<int (*)(Params...)>(dlsym(library, name));
}

int fail(const std::string &message) {
  std::fprintf(stderr, "embed-ptx: %s\n", message.c_str());
  return 1;
}

} // namespace

int main(int count, char **arguments) {
  if (count < 5)
    return fail("expected LIBNVRTC SOURCE.cu OUTPUT.inc ARCH [OPTION]...");
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (!library)
    return fail(dlerror());
  using Size = size_t *;
  auto create =
      function<void **, const char *, const char *, int, const char **, const char **>(library, "nvrtcCreateProgram");
  auto compile = function<void *, int, const char **>(library, "nvrtcCompileProgram");
  auto logSize = function<void *, Size>(library, "nvrtcGetProgramLogSize");
  auto getLog = function<void *, char *>(library, "nvrtcGetProgramLog");
  auto ptxSize = function<void *, Size>(library, "nvrtcGetPTXSize");
  auto getPtx = function<void *, char *>(library, "nvrtcGetPTX");
  if (!create || !compile || !logSize || !getLog || !ptxSize || !getPtx)
    return fail(std::string("not an NVRTC library: ") + arguments[1]);

  std::stringstream source;
  source << std::ifstream(arguments[2]).rdbuf();
  void *program = nullptr;
  std::string arch = std::string("--gpu-architecture=") + arguments[4];
  std::vector<const char *> options = {arch.c_str(), "--std=c++17"};
  options.insert(options.end(), arguments + 5, arguments + count);
  if (create(&program, source.str().c_str(), arguments[2], 0, nullptr, nullptr))
    return fail("nvrtcCreateProgram failed");
  if (compile(program, static_cast<int>(options.size()), options.data())) {
    size_t size = 0;
    logSize(program, &size);
    std::string log(size, 0);
    getLog(program, log.data());
    return fail(log);
  }
  size_t size = 0;
  ptxSize(program, &size);
  std::string ptx(size, 0);
  getPtx(program, ptx.data());
  std::ofstream out(arguments[3]);
  out << "R\"ptx(" << ptx.c_str() << ")ptx\"\n";
  return out.flush() ? 0 : fail(std::string("cannot write ") + arguments[3]);
}
