#include "driver/driver.h"
#include "status.h"
#include <cstdio>

using namespace gdn;

gdn_status gdn_device_query(int32_t device, gdn_device_info *info) {
  return guarded([&] {
    GDN_TRY(checkSized("info", info));
    if (device < 0)
      return fail(GDN_INVALID_ARGUMENT, "device: expected 0 or more, got %d", device);
    const Driver *driver;
    GDN_TRY(Driver::get(driver));
    gdn_device_info filled{};
    filled.driver_version = driver->version;
    filled.device_count = static_cast<int32_t>(driver->devices.size());
    std::snprintf(filled.driver_path, sizeof filled.driver_path, "%s", driver->path.c_str());
    if (device < filled.device_count) {
      const Device &found = driver->devices[static_cast<size_t>(device)];
      filled.sm_count = found.sms;
      filled.compute_capability = found.capability;
      std::snprintf(filled.name, sizeof filled.name, "%s", found.name.c_str());
    }
    fillSized(info, filled);
    if (device >= filled.device_count)
      return fail(GDN_NO_CONTEXT, "device: expected one below %d, got %d", filled.device_count, device);
    return GDN_OK;
  });
}
