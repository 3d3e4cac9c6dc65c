#include "compiler/backend/Toolkit.h"
#include "tools/gdnc/Common.h"
#include "tools/gdnc/Table.h"
#include "tools/gdnc/Version.h"
#include <CLI/CLI.hpp>
#include <dlfcn.h>
#include <gdn/gdn.h>
#include <nlohmann/json.hpp>

using namespace gdnc;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// Something this machine may have: what was found, or why it was not.
struct Finding {
  std::string name, version, place, error;
};

Finding describeTool(const std::string &name, const ToolSearch &search) {
  if (!search.tool)
    return {name, "", "", search.error};
  return {name, search.tool->versionText, search.tool->path, ""};
}

// The ptxas that every served target is content with.
ToolSearch findPtxasForAll() {
  Version newest;
  for (const Target &target : targets())
    if (target.served)
      newest = std::max(newest, target.ptxas);
  return findPtxas(newest);
}

// NVRTC from the folder tree that ptxas is in, else from where the loader looks.
Finding findNvrtc(const ToolSearch &ptxas) {
  std::vector<fs::path> folders;
  if (ptxas.tool) {
    fs::path root = fs::weakly_canonical(ptxas.tool->path).parent_path().parent_path();
    folders = {root / "lib64", root / "lib"};
  }
  folders.push_back("");
  for (const fs::path &folder : folders)
    for (const char *name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
      std::string path = (folder / name).string();
      void *library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
      if (!library)
        continue;
      auto version = reinterpret_cast<int (*)(int *, int *)>(dlsym(library, "nvrtcVersion"));
      int major = 0, minor = 0;
      if (version && version(&major, &minor) == 0)
        return {"nvrtc", fmt::format("{}.{}", major, minor), path, ""};
    }
  return {"nvrtc", "", "",
          "expected libnvrtc.so.13 or libnvrtc.so.12 beside ptxas or in the library path, got neither"};
}

void findDevices(std::vector<Finding> &findings) {
  gdn_device_info info{};
  info.struct_size = sizeof info;
  gdn_status status = gdn_device_query(0, &info);
  if (info.driver_version == 0) {
    findings.push_back({"driver", "", "", gdn_last_error_message()});
    return;
  }
  findings.push_back({"driver", fmt::format("CUDA {}.{}", info.driver_version / 1000, info.driver_version % 1000 / 10),
                      info.driver_path, ""});
  if (status != GDN_OK)
    findings.push_back({"gpu", "", "", gdn_last_error_message()});
  for (int32_t i = 0; status == GDN_OK && i < info.device_count; ++i)
    if (gdn_device_query(i, &info) == GDN_OK)
      findings.push_back({fmt::format("gpu {}", i), fmt::format("sm_{}", info.compute_capability),
                          fmt::format("{}, {} SMs", info.name, info.sm_count), ""});
}

void runDoctor(bool asJson) {
  ToolSearch ptxas = findPtxasForAll();
  std::vector<Finding> findings = {describeTool("ptxas", ptxas), describeTool("disassembler", findDisassembler()),
                                   findNvrtc(ptxas)};
  findDevices(findings);
  json report = {{"gdnc", versionText()}, {"found", json::object()}, {"missing", json::object()}};
  std::vector<TableRow> rows{{"", "version", "where"}};
  for (const Finding &finding : findings) {
    rows.push_back({finding.name, finding.error.empty() ? finding.version : "missing", finding.place});
    if (finding.error.empty())
      report["found"][finding.name] = {{"version", finding.version}, {"where", finding.place}};
    else
      report["missing"][finding.name] = finding.error;
  }
  if (asJson)
    fmt::print("{}\n", report.dump(2));
  else
    fmt::print("gdnc {}\n{}", versionText(), formatTable(rows));
  for (const Finding &finding : findings)
    if (!asJson && !finding.error.empty())
      fmt::print("{}: {}\n", finding.name, finding.error);
  if (!ptxas.tool) // all else is needed only by some commands
    throw Failure(EnvironmentError, "gdnc build needs ptxas");
}

} // namespace

void gdnc::addDoctor(CLI::App &app) {
  auto asJson = std::make_shared<bool>(false);
  CLI::App *command =
      app.add_subcommand("doctor", "show what this machine has of what gdnc uses; exit 3 without ptxas");
  command->add_flag("--json", *asJson, "print JSON");
  command->callback([asJson] { runDoctor(*asJson); });
}
