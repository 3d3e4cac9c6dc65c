#include "compiler/backend/Nvrtc.h"
#include "compiler/backend/Toolkit.h"
#include <dlfcn.h>
#include <filesystem>
namespace fs = std::filesystem;

namespace gdnc {
namespace {

using Program = void *;

// The functions that are used, of one NVRTC.
struct Nvrtc {
  int (*create)(Program *, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(Program, int, const char *const *);
  int (*logSize)(Program, size_t *);
  int (*log)(Program, char *);
  int (*ptxSize)(Program, size_t *);
  int (*ptx)(Program, char *);
  int (*destroy)(Program *);

  bool open(const std::string &path) {
    // It opens this one by name, which the loader finds only once it is there.
    std::error_code error;
    for (const fs::directory_entry &file : fs::directory_iterator(fs::path(path).parent_path(), error))
      if (file.path().filename().string().starts_with("libnvrtc-builtins.so."))
        dlopen(file.path().c_str(), RTLD_NOW);
    void *library = dlopen(path.c_str(), RTLD_NOW);
    auto find = [&](auto &function, const char *name) {
      function = library ? reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name)) : nullptr;
      return function != nullptr;
    };
    return find(create, "nvrtcCreateProgram") && find(compile, "nvrtcCompileProgram") &&
           find(logSize, "nvrtcGetProgramLogSize") && find(log, "nvrtcGetProgramLog") &&
           find(ptxSize, "nvrtcGetPTXSize") && find(ptx, "nvrtcGetPTX") && find(destroy, "nvrtcDestroyProgram");
  }
};

// What a getter of a size and one of the bytes give, without the zero at the end.
std::string textOf(Program program, int (*size)(Program, size_t *), int (*get)(Program, char *)) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0)
    return "";
  std::string text(bytes, '\0');
  get(program, text.data());
  return text.c_str();
}

std::string withVersion(std::string ptx, const Version &version) {
  const std::string key = ".version ";
  if (size_t at = ptx.find(key); at != ptx.npos)
    ptx.replace(at + key.size(), ptx.find('\n', at) - at - key.size(), version.text());
  return ptx;
}

} // namespace

Assembly compileCuda(const std::string &source, const std::string &name, const std::vector<std::string> &options,
                     const Target &target) {
  Assembly result;
  ToolSearch search = findNvrtc();
  Nvrtc nvrtc;
  if (!search.tool || !nvrtc.open(search.tool->path)) {
    result.environmentError = true;
    result.error = "error: " + (search.tool ? search.tool->path + ": not an NVRTC library" : search.error) + "\n";
    return result;
  }
  std::string arch = "--gpu-architecture=compute_" + std::string(target.arch.substr(3));
  std::vector<const char *> arguments = {arch.c_str(), "--std=c++20"};
  for (const std::string &option : options)
    arguments.push_back(option.c_str());
  Program program = nullptr;
  result.ok = nvrtc.create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr) == 0 &&
              nvrtc.compile(program, static_cast<int>(arguments.size()), arguments.data()) == 0;
  if (result.ok)
    result.output = withVersion(textOf(program, nvrtc.ptxSize, nvrtc.ptx), target.ptx);
  else
    result.error = textOf(program, nvrtc.logSize, nvrtc.log);
  if (program)
    nvrtc.destroy(&program);
  return result;
}

} // namespace gdnc
