// What this gdnc was built from.
#pragma once
#include <string>

namespace gdnc {

extern const char *const version; // "0.1.0"
extern const char *const commit;  // git hash of the source; empty where it was no git checkout
extern const bool modified;       // tracked files differed from the commit

// "0.1.0 (3115470...)", "0.1.0 (3115470..., modified)" or "0.1.0 (not from git)".
std::string versionText();

} // namespace gdnc
