// How the library fails: a status, and a sentence for the calling thread.
#pragma once
#include "gdn/gdn.h"
#include <algorithm>
#include <cstring>
#include <new>

namespace gdn {

// Keeps the sentence and returns `status`.
[[gnu::format(printf, 2, 3)]] gdn_status fail(gdn_status status, const char *format, ...);

// Runs the body of a C function: no exception leaves it.
template <typename Body> gdn_status guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(GDN_OUT_OF_MEMORY, "host memory ran out");
  }
}

// Checks a struct of the caller that begins with its size: at least `least`, that of the first version. Callers of
// later versions may give a longer one.
template <typename Struct> gdn_status checkSized(const char *name, const Struct *value, size_t least = sizeof(Struct)) {
  if (!value)
    return fail(GDN_INVALID_ARGUMENT, "%s: expected a struct, got NULL", name);
  if (value->struct_size < least)
    return fail(GDN_INVALID_ARGUMENT, "%s.struct_size: expected at least %zu, got %zu", name, least,
                value->struct_size);
  return GDN_OK;
}

// Fills such a struct as far as it reaches and zeroes what only its caller knows.
template <typename Struct> void fillSized(Struct *out, Struct filled) {
  filled.struct_size = out->struct_size;
  if (filled.struct_size > sizeof filled)
    std::memset(reinterpret_cast<char *>(out) + sizeof filled, 0, filled.struct_size - sizeof filled);
  std::memcpy(static_cast<void *>(out), &filled, std::min(filled.struct_size, sizeof filled));
}

} // namespace gdn

#define GDN_TRY(expression)                                                                                            \
  do {                                                                                                                 \
    if (gdn_status status_ = (expression); status_ != GDN_OK)                                                          \
      return status_;                                                                                                  \
  } while (false)
