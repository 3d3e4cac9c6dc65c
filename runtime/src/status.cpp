#include "status.h"
#include <cstdarg>
#include <cstdio>

namespace {
thread_local char lastMessage[1024] = "";
}

gdn_status gdn::fail(gdn_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(lastMessage, sizeof lastMessage, format, arguments);
  va_end(arguments);
  return status;
}

const char *gdn_last_error_message(void) { return lastMessage; }

uint32_t gdn_version(void) { return GDN_VERSION_MAJOR * 10000 + GDN_VERSION_MINOR * 100 + GDN_VERSION_PATCH; }

const char *gdn_status_string(gdn_status status) {
  switch (status) {
  case GDN_OK:
    return "success";
  case GDN_INVALID_ARGUMENT:
    return "an argument is null, out of range, misaligned or contradicts another";
  case GDN_UNSUPPORTED:
    return "the bundle has no kernel for these dimensions and types";
  case GDN_WORKSPACE_TOO_SMALL:
    return "the workspace is smaller than the forward needs";
  case GDN_FILE_ERROR:
    return "the bundle's file cannot be opened or mapped";
  case GDN_BUNDLE_CORRUPT:
    return "the bundle is truncated, or its contents contradict each other or their hashes";
  case GDN_BUNDLE_VERSION:
    return "the bundle is of another version than this library reads";
  case GDN_NO_DRIVER:
    return "the CUDA driver library is missing or lacks a function";
  case GDN_DRIVER_TOO_OLD:
    return "the CUDA driver is older than the kernel's image needs";
  case GDN_NO_CONTEXT:
    return "the calling thread has no current CUDA context, or there is no such device";
  case GDN_WRONG_DEVICE:
    return "the bundle has no image for the current device's architecture";
  case GDN_DRIVER_ERROR:
    return "a CUDA driver call failed";
  case GDN_OUT_OF_MEMORY:
    return "host memory ran out";
  }
  return "a status that this version of the library does not know";
}
