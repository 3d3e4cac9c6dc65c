#include "compiler/backend/Toolkit.h"
#include "tools/gdnc/Common.h"
#include "tools/gdnc/Table.h"
#include "tools/gdnc/Version.h"
#include <CLI/CLI.hpp>
#include <gdn/gdn.h>
#include <nlohmann/json.hpp>

using namespace gdnc;
using nlohmann::json;

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
  ToolSearch ptxas = findPtxasForAll(), nvrtc = findNvrtc();
  std::vector<Finding> findings = {describeTool("ptxas", ptxas), describeTool("disassembler", findDisassembler()),
                                   describeTool("nvrtc", nvrtc)};
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
  if (!ptxas.tool || !nvrtc.tool) // all else is needed only by some commands
    throw Failure(EnvironmentError, "gdnc build needs ptxas and NVRTC");
}

} // namespace

void gdnc::addDoctor(CLI::App &app) {
  auto asJson = std::make_shared<bool>(false);
  CLI::App *command =
      app.add_subcommand("doctor", "show what this machine has of what gdnc uses; exit 3 without ptxas or NVRTC");
  command->add_flag("--json", *asJson, "print JSON");
  command->callback([asJson] { runDoctor(*asJson); });
}
