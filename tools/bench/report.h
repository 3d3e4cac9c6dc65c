// What is printed and written: rows of CSV, JSON, tables.
#pragma once
#include "tools/bench/calibrate.h"
#include "tools/bench/measure.h"
#include <nlohmann/json_fwd.hpp>

namespace gdn::bench {

// What all results of a run have in common.
struct Origin {
  std::string date, gpu, version; // UTC, YYYY-MM-DD; as the driver names it; of the compiler that made the bundle
  int driver;                     // CUDA version, as gdn_device_info has it
};
Origin originOf(const gpu::Gpu &gpu, const gpu::Bundle &bundle);

// The name of what was measured: what is not the default has one of its own.
std::string operation(uint32_t cuts, const Case &c);

// In the columns that all results share.
extern const char *const csvHead;
std::string csvRow(const Origin &origin, uint32_t cuts, const Case &c, const Measurement &m);

nlohmann::json toJson(const Origin &origin, nlohmann::json results);
nlohmann::json toJson(uint32_t cuts, const Case &c, const Measurement &m);
nlohmann::json toJson(uint32_t cuts, const Case &c, const Profile &profile);
nlohmann::json toJson(const std::vector<Cost> &costs);

std::string kernelsText(const Origin &origin, const gpu::Bundle &bundle, const Case &c);
extern const char *const forwardHead;
std::string text(const Case &c, const Measurement &m);
std::string text(const Case &c, const Profile &profile);
std::string text(const std::vector<Cost> &costs);

} // namespace gdn::bench
