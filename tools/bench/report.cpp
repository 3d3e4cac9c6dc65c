#include "tools/bench/report.h"
#include "tests/reference/numbers.h"
#include <ctime>
#include <nlohmann/json.hpp>

namespace gdn::bench {

using nlohmann::json;

namespace {

template <typename... Values> std::string format(const char *format, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

std::string headsOf(const Case &c) { return std::to_string(c.keyHeads) + "/" + std::to_string(c.valueHeads); }

template <typename T> json orNull(const std::optional<T> &value) { return value ? json(*value) : json(); }

json describe(uint32_t cuts, const Case &c) {
  return {{"op", operation(cuts, c)}, {"heads_k", c.keyHeads},         {"heads_v", c.valueHeads}, {"key_dim", c.keyDim},
          {"value_dim", c.valueDim},  {"type", reference::name(c.io)}, {"lengths", c.label}};
}

} // namespace

Origin originOf(const gpu::Gpu &gpu, const gpu::Bundle &bundle) {
  char date[16];
  std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  json metadata = json::parse(gdn_bundle_metadata(bundle.get()), nullptr, false);
  json gdnc = metadata.is_object() ? metadata.value("gdnc", json::object()) : json::object();
  auto field = [&](const char *name) {
    return gdnc.is_object() && gdnc.contains(name) && gdnc[name].is_string() ? gdnc[name].get<std::string>() : "";
  };
  std::string version = field("version"), commit = field("commit").substr(0, 12);
  return {date, gpu.info().name, (version.empty() ? "?" : version) + (commit.empty() ? "" : "+" + commit),
          gpu.info().driver_version};
}

std::string operation(uint32_t cuts, const Case &c) {
  std::string name = "forward";
  if (cuts & GDN_CUT_INVARIANT)
    name += "_invariant";
  const char *modes[] = {"", "_uncut", "_exact", "_fast"};
  name += modes[cuts & GDN_CUT_MODES];
  name += c.rawGates ? "_raw_gates" : c.allDecay ? "_all_decay" : "";
  return name + (c.normalise ? "_l2norm" : "");
}

const char *const csvHead = "date,gpu,clock_mhz,system,version,op,heads_k,heads_v,lengths,ms,clocks_per_chunk\n";

std::string csvRow(const Origin &origin, uint32_t cuts, const Case &c, const Measurement &m) {
  return origin.date + "," + origin.gpu + "," + (m.clocks ? format("%.0f", m.clocks->megahertz) : "") + ",gdnc," +
         origin.version + "," + operation(cuts, c) +
         format(",%u,%u,%s,%.4f,", c.keyHeads, c.valueHeads, c.label.c_str(), m.milliseconds) +
         (m.clocks ? format("%.0f", m.clocks->perChunk) : "") + "\n";
}

json toJson(const Origin &origin, json results) {
  return {{"gpu", origin.gpu},
          {"driver", origin.driver},
          {"version", origin.version},
          {"date", origin.date},
          {"results", std::move(results)}};
}

json toJson(uint32_t cuts, const Case &c, const Measurement &m) {
  json row = describe(cuts, c);
  row.update({{"split", m.split},
              {"ms", m.milliseconds},
              {"ms_fastest", m.fastest},
              {"ms_slowest", m.slowest},
              {"us_per_chunk", m.microsecondsPerChunk},
              {"floor_clocks", m.split ? json(c.floor(m.split)) : json()},
              {"error_o", orNull(m.outputError)},
              {"error_s", orNull(m.stateError)}});
  row["clocks_per_chunk"] = m.clocks ? json(m.clocks->perChunk) : json();
  row["clock_mhz"] = m.clocks ? json(m.clocks->megahertz) : json();
  row["of_floor"] = m.clocks && m.split ? json(c.floor(m.split) / m.clocks->perChunk) : json();
  return row;
}

json toJson(uint32_t cuts, const Case &c, const Profile &profile) {
  json row = describe(cuts, c);
  row["ms"] = profile.total;
  row["kernels"] = {{"start", profile.start}, {"plan", profile.plan}, {"main", profile.main}};
  std::optional<Clocks> clocks = clocksOf(profile.blocks);
  row["clocks_per_chunk"] = clocks ? json(clocks->perChunk) : json();
  row["clock_mhz"] = clocks ? json(clocks->megahertz) : json();
  row["phases"] = json::array();
  for (const Phase &phase : phases)
    if (std::vector<double> values = clocksOf(phase, profile.blocks); !values.empty())
      row["phases"].push_back({{"role", phase.role},
                               {"phase", phase.name},
                               {"of", phase.ofChunk ? "chunk" : "piece"},
                               {"clocks", median(values)},
                               {"samples", values.size()}});
  return row;
}

json toJson(const std::vector<Cost> &costs) {
  json rows = json::array();
  for (const Cost &cost : costs)
    rows.push_back({{"name", cost.name}, {"clocks", cost.clocks}, {"spread", cost.spread}});
  return rows;
}

std::string kernelsText(const Origin &origin, const gpu::Bundle &bundle, const Case &c) {
  std::string all = format("%s, driver %d.%d, bundle of gdnc %s\n", origin.gpu.c_str(), origin.driver / 1000,
                           origin.driver % 1000 / 10, origin.version.c_str());
  for (size_t i = 0; i < bundle.size(); ++i) {
    gdn_kernel_info info = bundle.kernel(i);
    if (info.key_dim == int(c.keyDim) && info.value_dim == int(c.valueDim) && info.io == int(c.io))
      all += format("%s %s %dx%d %s %s split %d%s%s: %d threads, %d registers, %d bytes spilled, %d bytes shared\n",
                    info.operation, info.arch, info.key_dim, info.value_dim, reference::name(c.io),
                    info.state_layout == GDN_V_FIRST ? "v-first" : "k-first", info.split,
                    info.features & GDN_NORMALISE_QK ? " l2norm" : "", info.profile ? " profile" : "", info.threads,
                    info.registers, info.spill_bytes, info.shared_bytes);
  }
  return all;
}

const char *const forwardHead =
    "heads    lengths      split        ms  us/chunk clk/chunk      MHz of floor   error O   error S\n";

std::string text(const Case &c, const Measurement &m) {
  std::string line = format("%-8s %-12s %5s %9.4f %9.3f ", headsOf(c).c_str(), c.label.c_str(),
                            m.split ? std::to_string(m.split).c_str() : "auto", m.milliseconds, m.microsecondsPerChunk);
  line += m.clocks ? format("%9.0f %8.0f ", m.clocks->perChunk, m.clocks->megahertz) : format("%9s %8s ", "-", "-");
  line += m.clocks && m.split ? format("%7.1f%% ", 100 * c.floor(m.split) / m.clocks->perChunk) : format("%8s ", "-");
  return line +
         (m.outputError ? format("%9.2e %9.2e\n", *m.outputError, *m.stateError) : format("%9s %9s\n", "-", "-"));
}

std::string text(const Case &c, const Profile &profile) {
  std::string all = format("%s heads, %s: %.4f ms\n", headsOf(c).c_str(), c.label.c_str(), profile.total);
  for (auto [name, milliseconds] :
       {std::pair("start and end", profile.start), {"plan", profile.plan}, {"forward", profile.main}})
    all += format("  %-14s %9.4f ms %6.1f %%\n", name, milliseconds, 100 * milliseconds / profile.total);
  if (std::optional<Clocks> clocks = clocksOf(profile.blocks))
    all += format("  %.0f clocks a chunk at %.0f MHz\n", clocks->perChunk, clocks->megahertz);
  all += "  role   of     phase                       clocks  samples\n";
  for (const Phase &phase : phases)
    if (std::vector<double> values = clocksOf(phase, profile.blocks); !values.empty())
      all += format("  %-6s %-6s %-26s %7.0f %8zu\n", phase.role, phase.ofChunk ? "chunk" : "piece", phase.name,
                    median(values), values.size());
  return all;
}

std::string text(const std::vector<Cost> &costs) {
  std::string all = "cost     clocks   spread\n";
  for (const Cost &cost : costs)
    all += format("%-6s %8.0f %7.1f%%\n", cost.name, cost.clocks, 100 * cost.spread);
  return all;
}

} // namespace gdn::bench
